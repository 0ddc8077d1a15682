"""Dense features that are computed whenever they are needed."""

from collections.abc import Callable, Iterator

import numpy as np

from binfeat._common.subsets import slices
from binfeat._rows.products import ComputedRows

_BLOCK_BYTES = 2**26  # of computed features held at a time


class LazyFeatures(ComputedRows):
    """Dense features of rows of X, by `compute` in X's type, a block of rows at a time whenever they are needed."""

    dense = True
    _instead = "transform, or its toarray()"

    def __init__(self, compute: Callable[[np.ndarray], np.ndarray], X: np.ndarray, n_columns: int) -> None:
        self._compute, self._X = compute, X
        super().__init__(X.dtype, (X.shape[0], n_columns))

    def row_blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Pairs of rows, as a slice, and their features."""
        step = max(1, _BLOCK_BYTES // (self.shape[1] * self.dtype.itemsize))
        for rows in slices(self.shape[0], step):
            yield rows, self._compute(self._X[rows])

    def take(self, rows: np.ndarray) -> "LazyFeatures":
        """Rows by number."""
        return LazyFeatures(self._compute, self._X[rows], self.shape[1])

    def toarray(self) -> np.ndarray:
        """All features at once."""
        return self._compute(self._X)
