"""Figures that bound what a fit tries; measured in perf/README.md."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes of samples and of trials.

    Attributes
    ----------
    sample_rows : int
        Rows that length scales are learned from.
    late_rows : int
        Rows of the last rounds.
    sample_out : int
        Held-out rows of a sample.
    row_grids : int
        Rows times grids of a sample: few rows need many grids to tell two length scales apart.
    sample_grids : tuple of (int, int)
        Fewest and most grids of a sample; the growth of a machine starts there too.
    few_grids : int
        Enough to compare penalties and overall factors on all rows.
    most_entries : int
        Rows times grids of a machine: half a minute on two cores.
    n_fourier : int
        Fourier features.
    fourier_bytes : int
        Memory that they may take to be tried.
    """

    sample_rows: int = 40_000
    late_rows: int = 100_000
    sample_out: int = 10_000
    row_grids: int = 2_000_000
    sample_grids: tuple[int, int] = (50, 400)
    few_grids: int = 20
    most_entries: int = 160_000_000
    n_fourier: int = 1024
    fourier_bytes: int = 2**30
