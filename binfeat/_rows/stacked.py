"""Features side by side and features computed when they are needed, as operators."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from binfeat._common.memory import require_memory
from binfeat._rows.products import gram_diagonal, product, transposed_product

_BLOCK_BYTES = 2**26  # of computed features held at a time


class RowMatrix(LinearOperator):
    """An operator whose rows can be picked."""

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        """Rows by slice, integers or mask."""
        return self.take(np.atleast_1d(np.arange(self.shape[0])[rows]))

    def _matmat(self, W):
        W = np.asfortranarray(W, dtype=np.result_type(self.dtype, np.asarray(W).dtype))
        out = np.empty((self.shape[0], W.shape[1]), W.dtype, order="F")
        self._matmat_into(W, out)
        return out

    def _rmatmat(self, V):
        V = np.asfortranarray(V, dtype=np.result_type(self.dtype, np.asarray(V).dtype))
        out = np.empty((self.shape[1], V.shape[1]), V.dtype, order="F")
        self._rmatmat_into(V, out)
        return out

    def _matvec(self, w):
        return self._matmat(np.reshape(w, (-1, 1)))

    def _rmatvec(self, v):
        return self._rmatmat(np.reshape(v, (-1, 1)))


class FeatureBlocks(RowMatrix):
    """Blocks of features side by side, each times a number; nothing is copied or made dense.

    Parameters
    ----------
    blocks : list of ndarray, CSR, BinMatrix or FeatureRows, all of n_rows rows
    scales : sequence of float
        What each block is multiplied by.

    Attributes
    ----------
    shape : tuple of (int, int)
    dtype : numpy.dtype
        The widest of the blocks'.
    """

    def __init__(self, blocks, scales):
        self.blocks, self.scales = list(blocks), [float(scale) for scale in scales]
        self._starts = np.cumsum([0, *(block.shape[1] for block in self.blocks)])
        dtype = np.result_type(*(block.dtype for block in self.blocks))
        super().__init__(dtype, (self.blocks[0].shape[0], int(self._starts[-1])))

    def _parts(self):
        """Each block with its number and its columns."""
        return zip(self.blocks, self.scales, map(slice, self._starts[:-1], self._starts[1:]), strict=True)

    @property
    def dense(self):
        """Whether all blocks are dense, or become so when they are computed."""
        return all(is_dense(block) for block in self.blocks)

    def take(self, rows):
        """Rows by number, as blocks."""
        return FeatureBlocks([block[rows] for block in self.blocks], self.scales)

    def toarray(self):
        """All features in a dense array.

        Raises
        ------
        MemoryError
            If it would need more memory than the machine has.
        """
        require_memory(self.shape[0] * self.shape[1] * self.dtype.itemsize, "the array", "Use the blocks as they are.")
        out = np.empty(self.shape, self.dtype)
        for block, scale, own in self._parts():
            block = block.tocsr() if hasattr(block, "gram_diagonal") and not is_dense(block) else block
            out[:, own] = block.toarray() if hasattr(block, "toarray") else block
            out[:, own] *= scale
        return out

    def tocsr(self):
        """All features in one CSR matrix."""
        parts = []
        for block, scale, _ in self._parts():
            block = block.toarray() if isinstance(block, FeatureRows) else block
            parts.append((block.tocsr() if hasattr(block, "tocsr") else sparse.csr_array(block)) * scale)
        return sparse.hstack(parts, format="csr", dtype=self.dtype)

    def gram_diagonal(self, sample_weight=None):
        """Diagonal of ``Z.T @ Z``; see `BinMatrix.gram_diagonal`."""
        weights = None if sample_weight is None else np.reshape(sample_weight, (-1, 1))
        parts = [gram_diagonal(block, weights).ravel() * scale**2 for block, scale, _ in self._parts()]
        return np.concatenate(parts)

    def _matmat_into(self, W, out):
        part = np.empty_like(out)
        for i, (block, scale, own) in enumerate(self._parts()):
            product(block, np.asfortranarray(W[own] * W.dtype.type(scale)), part if i else out)
            if i:
                out += part

    def _rmatmat_into(self, V, out):
        for block, scale, own in self._parts():
            part = np.empty((block.shape[1], V.shape[1]), V.dtype, order="F")
            transposed_product(block, V, part)
            np.multiply(part, V.dtype.type(scale), out=out[own])


class FeatureRows(RowMatrix):
    """Dense features, computed again a block of rows at a time whenever they are needed.

    Parameters
    ----------
    compute : callable
        From some rows of X to their features, an array of X's type.
    X : array or CSR of shape (n_rows, n_inputs), float32 or float64
    n_columns : int
    """

    dense = True

    def __init__(self, compute, X, n_columns):
        self._compute, self._X = compute, X
        super().__init__(X.dtype, (X.shape[0], n_columns))

    def row_blocks(self):
        """Pairs of rows, as a slice, and their features."""
        step = max(1, _BLOCK_BYTES // (self.shape[1] * self.dtype.itemsize))
        for start in range(0, self.shape[0], step):
            rows = slice(start, start + step)
            yield rows, self._compute(self._X[rows])

    def take(self, rows):
        """Rows by number."""
        return FeatureRows(self._compute, self._X[rows], self.shape[1])

    def toarray(self):
        """All features at once."""
        return self._compute(self._X)

    def gram_diagonal(self, sample_weight=None):
        """Diagonal of ``Z.T @ Z``; see `BinMatrix.gram_diagonal`."""
        weights = np.ones(self.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return sum(np.einsum("ij,ij,i->j", Z, Z, weights[rows]) for rows, Z in self.row_blocks())

    def _matmat_into(self, W, out):
        for rows, Z in self.row_blocks():
            out[rows] = Z @ W

    def _rmatmat_into(self, V, out):
        out[:] = 0
        for rows, Z in self.row_blocks():
            out += Z.T @ V[rows]


def is_dense(Z):
    """Whether Z is an array, or blocks that are or become ones."""
    return isinstance(Z, np.ndarray) or getattr(Z, "dense", False)
