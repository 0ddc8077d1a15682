"""Warnings about grids with too few shared bins, or with nearly all rows in one bin."""

import sys
from dataclasses import dataclass
from types import FrameType
from typing import Self

import numpy as np

from binfeat._common.validation import CheckedRows
from binfeat._common.warned import warn
from binfeat.features.binning.grids import Grids

_FEWEST_ROWS = 100  # fewer rows do not determine how fine the grids are
_COARSE = 0.95  # share of pairs of rows in one bin, above which features are nearly constant
_SAMPLE_ROWS, _SAMPLE_GRIDS, _GROWTH = 1024, 16, 4
_COLLISION_GRIDS = 4  # grids for counting occupied columns
_UNSEEN = 0.9  # share of grids without a bin, above which a row is far from the training rows


@dataclass(frozen=True)
class Fineness:
    """Number of bins that rows occupy, and frequency with which two rows share a bin."""

    n_rows: int
    kappa: float  # mean number of occupied bins per grid
    shared: float  # share of pairs of rows (including a row with itself) in one bin: the mean of the kernel

    @classmethod
    def of_counts(cls, counts: np.ndarray, n_grids: int) -> Self:
        """Compute the fineness from the number of rows in each bin of all grids."""
        n_rows = counts.sum() / n_grids
        return cls(round(n_rows), counts.size / n_grids, float((counts / n_rows) @ (counts / n_rows)) / n_grids)

    @classmethod
    def of_rows(cls, grids: Grids, X: CheckedRows, n_jobs: int | None = None) -> Self:
        """Estimate the fineness on a sample of rows, which grows while most of its bins contain a single row."""
        grids, size = grids[:_SAMPLE_GRIDS], _SAMPLE_ROWS
        while True:
            part = X[:: max(1, X.shape[0] // size)]
            hashes = grids.hash(part, n_jobs)
            counts = np.concatenate([np.unique(row, return_counts=True)[1] for row in hashes])
            found = cls.of_counts(counts, len(grids))
            if not found.too_fine or part.shape[0] == X.shape[0]:
                return found
            size *= _GROWTH

    @property
    def too_fine(self) -> bool:
        return self.kappa > self.n_rows / 2

    def warn(self) -> bool:
        """Warn if features of these grids cannot generalize, or are nearly constant; return whether they are."""
        if self.n_rows <= _FEWEST_ROWS or not (self.too_fine or self.shared > _COARSE):
            return False
        if _in_search():  # one text for all candidates, so that Python shows it once
            warn(
                "Some candidates of this search have grids that are too fine or too coarse: most bins contain a "
                "single row, or nearly all rows. Try other values of gamma, or scale the inputs."
            )
        elif self.too_fine:
            warn(
                f"Grids are too fine: {self.n_rows:,} rows occupy kappa = {self.kappa:,.0f} bins per grid on average, "
                "so most bins contain a single row. Decrease gamma or scale the inputs."
            )
        else:
            warn(
                f"Grids are too coarse: {self.n_rows:,} rows occupy kappa = {self.kappa:,.2g} bins per grid on "
                f"average, and {self.shared:.1%} of the pairs of rows share a bin, so the features are nearly "
                "constant. Increase gamma or scale the inputs."
            )
        return True


def warn_of_rows(grids: Grids, X: CheckedRows, n_jobs: int | None = None) -> None:
    """Warn if the grids are too fine or too coarse for rows without counted bins."""
    if X.shape[0] > _FEWEST_ROWS:
        Fineness.of_rows(grids, X, n_jobs).warn()


def warn_of_collisions(codes: np.ndarray, offsets: np.ndarray) -> None:
    """Warn if different bins often share a hashed column, for codes (n_grids, n_rows) in columns from `offsets` on."""
    n_grids, n_columns = len(codes), int(offsets[1])
    if n_columns < 2 * np.sqrt(n_grids):
        wanted = n_grids * int(np.ceil(2 * np.sqrt(n_grids)))
        warn(
            f"n_features={int(offsets[-1]):,} leaves {n_columns} columns for each of {n_grids:,} grids. Two different "
            f"bins of a grid share a column with probability 1 / {n_columns}, and this bias of kernel estimates "
            "exceeds their largest standard error, 1 / (2 * sqrt(n_grids)). "
            f"Pass n_features={wanted:,} or more."
        )
        return
    if codes.shape[1] <= n_columns / 4:
        return
    occupied = np.zeros((min(n_grids, _COLLISION_GRIDS), n_columns), dtype=bool)
    for flags, own in zip(occupied, codes):
        flags[own] = True
    share = occupied.mean()
    if share > 1 - np.exp(-0.5):  # the expected share if half as many bins as columns are occupied
        bins = -n_columns * np.log1p(-min(share, 1 - 0.5 / n_columns))
        warn(
            f"{share:.0%} of the {n_columns:,} hashed columns of a grid are occupied, by an estimated {bins:,.0f} "
            f"bins, so different bins often share a column. Increase n_features, which is {int(offsets[-1]):,}, or "
            "decrease gamma."
        )


def warn_of_unseen(codes: np.ndarray, none: np.integer, n_training_rows: int) -> None:
    """Warn if most rows of a batch share almost no bin with the training rows."""
    if codes.shape[1] <= _FEWEST_ROWS or n_training_rows <= _FEWEST_ROWS:
        return
    shares = np.mean(codes[:, :: max(1, codes.shape[1] // _SAMPLE_ROWS)] == none, axis=0)
    far = np.mean(shares > _UNSEEN)
    if far > 0.5 and not _in_search():
        warn(
            f"{far:.0%} of the rows share a bin with training rows in fewer than 1 of 10 grids, so their features are "
            "nearly empty. Check the units of X, decrease gamma or scale the inputs."
        )


def _in_search() -> bool:
    """Return True inside scikit-learn's cross-validation or parameter search."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_fit_and_score" and frame.f_globals.get("__name__", "").startswith("sklearn."):
            return True
        frame = frame.f_back
    return False
