"""Features of a source's rows as an operator that reads the source whenever it needs them."""

import numpy as np

from binfeat._rows.products import ComputedRows


class StreamedFeatures(ComputedRows):
    """Features of the rows of a source, read and computed again a block of rows at a time for every product.

    Parameters
    ----------
    rows : Rows
    compute : callable
        From a block of rows to their features: an array, CSR or a BinMatrix.
    n_columns : int
    dtype : {numpy.float32, numpy.float64}
    dense : bool
        Whether features are arrays.
    y, sample_weight : ndarray or None
        Targets and weights that came with the source.

    Attributes
    ----------
    shape : tuple of (int, int)
    """

    streamed = True

    def __init__(self, rows, compute, n_columns, dtype, *, dense, y=None, sample_weight=None, taken=None):
        self._rows, self._compute, self._taken = rows, compute, taken
        self.dense, self.y, self.sample_weight = dense, y, sample_weight
        super().__init__(np.dtype(dtype), (rows.n_rows if taken is None else taken.size, n_columns))

    @classmethod
    def of(cls, survey, compute, n_columns, *, dense):
        """Features of the rows that a survey has seen."""
        dtype = np.float32 if survey.dtype == np.float32 else np.float64
        rows = survey.rows(width=n_columns if dense else 0)
        return cls(rows, compute, n_columns, dtype, dense=dense, y=survey.y, sample_weight=survey.sample_weight)

    def row_blocks(self):
        """Pairs of rows, as a slice, and their features."""
        blocks = (self._compute(X) for X in self._rows) if self._taken is None else self._taken_blocks()
        stop = 0
        for Z in blocks:
            start, stop = stop, stop + Z.shape[0]
            yield slice(start, stop), Z

    def _taken_blocks(self):
        start = 0
        for X in self._rows:
            first, last = np.searchsorted(self._taken, (start, start + X.shape[0]))
            if first < last:
                yield self._compute(X[self._taken[first:last] - start])
            start += X.shape[0]

    def take(self, rows):
        """Rows by number, which must ascend."""
        rows = np.asarray(rows)
        if (np.diff(rows) < 0).any():
            raise ValueError("rows of a source can be taken in ascending order only; sort their numbers.")
        own = rows if self._taken is None else self._taken[rows]
        return StreamedFeatures(self._rows, self._compute, self.shape[1], self.dtype, dense=self.dense, taken=own)
