"""Dense features that are computed on demand."""

from collections.abc import Callable, Iterator

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.operators import row_numbers
from binfeat._common.subsets import slices
from binfeat._rows.products import ComputedFeatures

_BLOCK_BYTES = 2**26  # computed features in memory


class LazyFeatures(ComputedFeatures):
    """Dense features of the rows of X, computed on demand by `compute` in blocks of rows, with the dtype of X."""

    dense = True
    _instead = "transform, or its toarray()"

    def __init__(self, compute: Callable[[np.ndarray], np.ndarray], X: np.ndarray, n_columns: int) -> None:
        self._compute, self._X = compute, X
        super().__init__(X.dtype, (X.shape[0], n_columns))

    def row_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield pairs of a slice of rows and their features."""
        step = max(1, _BLOCK_BYTES // (self.shape[1] * self.dtype.itemsize))
        for rows in slices(self.shape[0], step):
            yield rows, self._compute(self._X[rows])

    def take(self, rows: ArrayLike) -> "LazyFeatures":
        """Select rows by number; IndexError if the numbers are not integers in one dimension."""
        return LazyFeatures(self._compute, self._X[row_numbers(rows)], self.shape[1])

    def toarray(self) -> np.ndarray:
        """Compute all features."""
        return self._compute(self._X)
