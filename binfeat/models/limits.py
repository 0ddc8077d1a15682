"""Figures that bound what a fit tries, and the mechanisms of a default fit; measured in perf/notes."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mechanisms:
    """Mechanisms of a default fit. `python -m perf ablation` switches each of them off, and nothing else does."""

    linear_maps: bool = True
    ranks: bool = True
    codes: bool = True
    revival: bool = True
    second_kernel: bool = True
    target_transforms: bool = True
    fine_tuning: bool = True
    averages: bool = True  # of trees
    duplicates: bool = True
    global_part: bool = True  # effects of levels that all cells of a local model share


@dataclass(frozen=True)
class Limits:
    """Sizes of samples and of trials."""

    exact_rows: int = 10_000  # of an exact model; local models of more rows are faster and nearly as accurate
    exact_work: float = 2e10  # pairs of its rows times inputs
    wide_work: float = 1e12  # the same where inputs are many, and all kernels products of matrices
    cell_rows: int = 1500  # maximum of trees of a local model
    hurried_rows: int = 3000  # kept by any time limit, and used after Ctrl-C
    hurried_out: int = 1000  # validation rows after Ctrl-C
    n_steps: int = 60  # of a search for length scales
    sample_rows: int = 40_000  # that kinds of features are compared on
    sample_out: int = 10_000  # validation rows of a sample
    row_grids: int = 2_000_000  # rows times grids of a sample: few rows need many grids to tell two kernels apart
    sample_grids: tuple[int, int] = (50, 400)  # minimum and maximum of grids in a sample; also at the start of growth
    few_grids: int = 20  # enough to compare penalties and overall factors on all rows
    work_of_a_row: int = 20_000  # grids times iterations of all solves: half a minute for 400,000 rows on two cores
    work: int = 500_000_000  # the limit for all rows together, in addition
    n_fourier: int = 1024  # random Fourier features to begin with
    fourier_bytes: int = 2**30  # that they may take to be tried
    fourier_products: float = 2e11  # multiplications of the Gram matrix of more of them
    mechanisms: Mechanisms = field(default_factory=Mechanisms)
