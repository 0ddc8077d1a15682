"""One interface for all kinds of features: products, the diagonal of the Gram matrix, blocks of rows."""

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from binfeat._common.operators import RowMatrix
from binfeat._common.subsets import slices
from binfeat._common.validation import check_row_weights
from binfeat._engine.products import BLOCK_ROWS, MOST_BLOCK_ROWS, SUMS_PER_BIN

# Features of ridge models: an array, a sparse matrix, a data frame, a BinMatrix or another LinearOperator.
Design: TypeAlias = Any


class Features(Protocol):
    """Features of rows: an array, a sparse matrix, a BinMatrix or another LinearOperator."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def T(self) -> Any: ...
    def __matmul__(self, W: np.ndarray, /) -> Any: ...
    def __getitem__(self, rows: Any, /) -> Any: ...


class BlockFeatures(Features, Protocol):
    """Features that are computed or read again in every pass, a block of rows at a time."""

    def row_blocks(self) -> Iterator[tuple[slice, Features]]: ...
    def toarray(self) -> np.ndarray: ...  # only for dense features


def product(Z: Features, W: np.ndarray, out: np.ndarray) -> None:
    """Write ``Z @ W``; W and out are in Fortran order."""
    if hasattr(Z, "_matmat_into"):
        Z._matmat_into(W, out)
    else:
        out[:] = Z @ W


def transposed_product(Z: Any, V: np.ndarray, out: np.ndarray) -> None:
    """Write ``Z.T @ V``; V and out are in Fortran order.

    A float32 sum of very many rows would lose small terms, so sums of blocks of rows are added in float64.
    """
    if hasattr(Z, "_rmatmat_into"):
        Z._rmatmat_into(V, out)
        return
    n_rows = step = Z.shape[0]
    if out.dtype == np.float32 and sparse.issparse(Z):
        step = max(BLOCK_ROWS, min(SUMS_PER_BIN * Z.shape[1] * n_rows // max(1, Z.nnz), MOST_BLOCK_ROWS))
    elif out.dtype == np.float32 and isinstance(Z, np.ndarray):
        step = 4 * BLOCK_ROWS  # BLAS adds several interleaved sums
    if step >= n_rows:
        out[:] = Z.T @ V
        return
    sums = np.zeros(out.shape)
    for rows in slices(n_rows, step):
        sums += _view(Z, rows).T @ V[rows]
    out[:] = sums


def _view(Z: Any, rows: slice) -> Any:
    """Return rows of an array or a CSR matrix, without copying entries."""
    if not sparse.issparse(Z):
        return Z[rows]
    starts = Z.indptr[rows.start : rows.stop + 1]
    own = slice(starts[0], starts[-1])
    entries = Z.data[own], Z.indices[own], starts - starts[0]
    return sparse.csr_array(entries, shape=(rows.stop - rows.start, Z.shape[1]))


def gram_diagonal(Z: Features, weights: np.ndarray | None) -> np.ndarray | Any:
    """Return the diagonal of ``Z.T @ diag(w) @ Z`` for each column w of the weights (or ones), (n_columns, k) float64.

    None if an operator does not provide it.
    """
    if hasattr(Z, "gram_diagonal"):
        columns = [None] if weights is None else weights.T
        return np.stack([Z.gram_diagonal(column) for column in columns], axis=1)
    if isinstance(Z, LinearOperator):
        return None
    weights = np.ones((Z.shape[0], 1)) if weights is None else weights
    if hasattr(Z, "power"):  # sparse
        return np.asarray(Z.power(2, dtype=np.float64).T @ weights)
    array = np.asarray(Z)
    return np.einsum("ij,ij,ik->jk", array, array, weights, dtype=np.float64)


def unseen_shares(Z: Features) -> np.ndarray:
    """Return the share of missing features for each row: bins without training rows have no column."""
    return Z._unseen_shares() if hasattr(Z, "_unseen_shares") else np.zeros(Z.shape[0])


def is_dense(Z: Features) -> bool:
    """Return True if Z is an array, or an operator on dense arrays."""
    return isinstance(Z, np.ndarray) or getattr(Z, "dense", False)


def is_computed(Z: Features) -> TypeGuard[BlockFeatures]:
    """Return True if features are computed or read again in every pass."""
    return getattr(Z, "computed", False)


class ComputedFeatures(RowMatrix):
    """Features in blocks of rows, computed or read again in every pass.

    Subclasses implement ``row_blocks()``, an iterator over pairs of a slice of rows and their features.
    """

    computed = True

    def gram_diagonal(self, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Diagonal of ``Z.T @ Z``; see `BinMatrix.gram_diagonal`."""
        n_rows = self.shape[0]
        weights = np.ones(n_rows) if sample_weight is None else check_row_weights(sample_weight, n_rows)
        weights = weights[:, np.newaxis]
        diagonals = (gram_diagonal(Z, weights[rows]).ravel() for rows, Z in self.row_blocks())
        return sum(diagonals, start=np.zeros(self.shape[1]))

    def _matmat_into(self, W: np.ndarray, out: np.ndarray) -> None:
        for rows, Z in self.row_blocks():
            part = np.empty((Z.shape[0], W.shape[1]), out.dtype, order="F")
            product(Z, W, part)
            out[rows] = part

    def _rmatmat_into(self, V: np.ndarray, out: np.ndarray) -> None:
        out[:] = 0
        part = np.empty_like(out)
        for rows, Z in self.row_blocks():
            transposed_product(Z, np.asfortranarray(V[rows]), part)
            out += part
