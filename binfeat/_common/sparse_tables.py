"""The class of CSR results, and checks of sparse matrices, because neither SciPy nor the kernels check indices."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config

_REPAIR = "Build the matrix again from its rows, columns and values, or load it from an undamaged file."
_UNSIGNED = {np.dtype(np.int32): np.uint32, np.dtype(np.int64): np.uint64}


def csr_container() -> type:
    """Return the CSR class for scikit-learn's setting `sparse_interface`, which exists from version 1.9 on."""
    return sparse.csr_array if get_config().get("sparse_interface") == "sparray" else sparse.csr_matrix


def check_sparse(X: Any, name: str = "X") -> None:
    """Raise ValueError if indices of a sparse matrix or array point outside of its arrays; X is not changed.

    Anything that is not sparse passes. The cost is one pass over the indices.
    """
    if not sparse.issparse(X):
        return
    check = _CHECKS.get(X.format)
    fault = None if check is None else next(check(X), None)
    if fault is not None:
        raise ValueError(f"{name} is a damaged sparse matrix in {X.format.upper()} format: {fault}. {_REPAIR}")


def _beyond(indices: np.ndarray, size: int) -> bool:
    """Return True if an index is negative or at least `size`; as unsigned numbers, negative indices are very large."""
    return indices.size > 0 and int(indices.view(_UNSIGNED[indices.dtype]).max()) >= size


def _not_indices(indices: Any, name: str) -> Iterator[str]:
    is_plain = isinstance(indices, np.ndarray) and not isinstance(indices, np.ma.MaskedArray)
    if not (is_plain and indices.ndim == 1 and indices.dtype in _UNSIGNED):
        kind = f"{indices.dtype} of shape {indices.shape}" if hasattr(indices, "dtype") else type(indices).__name__
        yield f"{name} should be an int32 or int64 array in one dimension, got {kind}"


def _compressed(X: Any) -> Iterator[str]:
    indptr, indices, n_values = X.indptr, X.indices, len(X.data)
    yield from _not_indices(indptr, "indptr")
    yield from _not_indices(indices, "indices")
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    n_rows, n_columns = X.shape if X.ndim == 2 else (1, *X.shape)
    n_major, n_minor = (n_columns, n_rows) if X.format == "csc" else (n_rows // height, n_columns // width)
    if indptr.size != n_major + 1:
        yield f"indptr should have {n_major + 1} numbers, got {indptr.size}"
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        yield "indptr should increase from 0"
    n_entries = int(indptr[-1])
    if n_entries > min(indices.size, n_values):
        yield f"indptr ends at {n_entries}, but there are {indices.size} indices and {n_values} values"
    if _beyond(indices[:n_entries], n_minor):
        yield f"indices should be from 0 to {n_minor - 1}, got {_first_beyond(indices[:n_entries], n_minor)}"


def _coordinates(X: Any) -> Iterator[str]:
    coordinates = getattr(X, "coords", None) or (X.row, X.col)
    for axis, (indices, size) in enumerate(zip(coordinates, X.shape, strict=True)):
        yield from _not_indices(indices, f"coordinates of axis {axis}")
        if indices.size != len(X.data):
            yield f"axis {axis} has {indices.size} coordinates for {len(X.data)} values"
        if _beyond(indices, size):
            got = _first_beyond(indices, size)
            yield f"coordinates of axis {axis} should be from 0 to {size - 1}, got {got}"


def _lists(X: Any) -> Iterator[str]:
    n_rows, n_columns = X.shape
    if X.rows.shape != (n_rows,) or X.data.shape != (n_rows,):
        yield f"it should have {n_rows} lists of columns and of values"
    for columns, values in zip(X.rows, X.data, strict=True):
        if len(columns) != len(values):
            yield f"a row has {len(columns)} columns and {len(values)} values"
        if columns and not 0 <= min(columns) <= max(columns) < n_columns:
            yield f"columns should be from 0 to {n_columns - 1}, got {min(columns)} to {max(columns)}"


def _diagonals(X: Any) -> Iterator[str]:
    yield from _not_indices(X.offsets, "offsets")
    if X.data.ndim != 2 or len(X.data) != X.offsets.size:
        yield f"it has {X.offsets.size} offsets for {len(X.data)} diagonals"
    if X.offsets.size and np.abs(X.offsets.astype(np.float64)).max() > max(X.shape):
        yield f"offsets should be at most {max(X.shape)} in magnitude"


def _first_beyond(indices: np.ndarray, size: int) -> int:
    return int(indices[(indices < 0) | (indices >= size)][0])


_CHECKS = {
    **dict.fromkeys(("csr", "csc", "bsr"), _compressed),
    "coo": _coordinates,
    "lil": _lists,
    "dia": _diagonals,
}
