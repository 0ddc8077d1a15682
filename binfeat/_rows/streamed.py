"""Features of a source's rows as an operator that reads the source whenever it needs them."""

import numpy as np

from binfeat._rows.features import RowMatrix
from binfeat._rows.products import gram_diagonal, product, transposed_product


class StreamedRows(RowMatrix):
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
        return StreamedRows(self._rows, self._compute, self.shape[1], self.dtype, dense=self.dense, taken=own)

    def gram_diagonal(self, sample_weight=None):
        """Diagonal of ``Z.T @ Z``; see `BinMatrix.gram_diagonal`."""
        weights = np.ones((self.shape[0], 1)) if sample_weight is None else np.reshape(sample_weight, (-1, 1))
        return sum(gram_diagonal(Z, weights[rows]).ravel() for rows, Z in self.row_blocks())

    def _matmat_into(self, W, out):
        for rows, Z in self.row_blocks():
            part = np.empty((Z.shape[0], W.shape[1]), out.dtype, order="F")
            product(Z, W, part)
            out[rows] = part

    def _rmatmat_into(self, V, out):
        out[:] = 0
        part = np.empty_like(out)
        for rows, Z in self.row_blocks():
            transposed_product(Z, np.asfortranarray(V[rows]), part)
            out += part
