"""Random binning features in one call, without fit: `transform`."""

import functools
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.array_types import ArrayLike, DTypeLike
from binfeat._common.categories import with_category_numbers
from binfeat._common.frames import is_source
from binfeat._common.validation import (
    CheckedRows,
    InputNames,
    canonical,
    check_categorical,
    check_float_type,
    check_gamma,
    check_integer,
    checked_rows,
    float_dtype,
)
from binfeat._threads import thread_count
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.fineness import warn_of_collisions, warn_of_rows
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.hashed_columns import check_hashed, fold_codes, hashed_offsets
from binfeat.features.binning.input_checks import ARRAY_CHECKS, check_categories, require_binning_memory
from binfeat.features.binning.tables import BinningInput
from binfeat.kernels.base import Kernel, PitchKernel
from binfeat.kernels.families import Product
from binfeat.kernels.lookup import binning_kernel
from binfeat.kernels.skip import Skip

_RECENT_GRIDS = 8  # number of cached draws of grids for calls with the same arguments
_RECENT_SIZE = 2**17  # maximum of inputs times grids (32 bytes each) in the cache


def transform(
    X: Any,
    *,
    kernel: str | Kernel = "laplacian",
    gamma: float | ArrayLike | None = None,
    n_grids: int = 256,
    n_features: int = 2**20,
    categorical_features: ArrayLike | None = None,
    random_state: int = 0,
    dtype: DTypeLike | None = None,
    n_jobs: int | None = None,
) -> sparse.csr_matrix | sparse.csr_array:
    """Compute random binning features with hashed columns, without fit.

    Each of `n_grids` random grids divides the input space into bins, and a row of Z has one non-zero entry per grid, in
    the column of its bin. The inner product of two rows of Z estimates the kernel value of the two rows of X. Equal
    rows and equal arguments give equal features in every call, in every process and on every computer.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_inputs)
        Rows. A missing value (NaN) matches other missing values and nothing else.
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        Kernel: "laplacian", "hat", or an object of class `Laplacian`, `Hat`, `GammaPitch`, `Product` or `Skip`.
    gamma : float, array-like of shape (n_inputs,) or LearnedGamma, default=None
        Inverse length scale, one for all inputs or one per input; 0 ignores an input. None is ``1 / n_inputs``, as in
        `sklearn.metrics.pairwise`, and requires inputs of similar scale. `learn_gamma` learns it from targets.
    n_grids : int, default=256
        Number of grids, which is the number of non-zeros in each row. The standard error of an estimate of the kernel
        value k is ``sqrt(k (1 - k) / n_grids)``.
    n_features : int, default=2**20
        Number of columns, at least ``2 * n_grids``. Two bins of a grid share a column with probability
        ``n_grids / n_features``, so estimates of the kernel value k are too large by ``(1 - k) * n_grids / n_features``
        on average.
    categorical_features : array-like of bool, int or str, default=None
        Inputs that contain categories: a mask, positions, or column names. They contain category numbers, or labels of
        any kind if X is a data frame. Different categories of input j multiply the kernel by ``exp(-gamma_j)``.
    random_state : int, default=0
        Seed of the grids. Use a secret seed for rows from untrusted users: a known seed suffices to construct rows that
        share their columns.
    dtype : {numpy.float32, numpy.float64}, default=None
        Type of the values; None is float32 for float32 `X`, else float64.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, by default all threads.

    Returns
    -------
    Z : scipy.sparse.csr_matrix or csr_array of shape (n_rows, n_features)
        Features: ``1 / sqrt(n_grids)`` in one column of each grid. The type follows scikit-learn's `sparse_interface`
        setting.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range, or if `X` contains infinity or is not numeric.
    MemoryError
        If the result would need more memory than the computer has.

    Warns
    -----
    UserWarning
        If X has more than 100 rows and most bins contain a single row, or nearly all rows share their bins; or if
        `n_features` is so small that collisions of bins dominate the error.

    See Also
    --------
    binfeat.RandomBinning : Features with one column per occupied bin, and with learned length scales.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007, Algorithm 2.

    Examples
    --------
    >>> import binfeat
    >>> Z = binfeat.transform([[0.0, 1.0], [0.1, 1.0], [5.0, 5.0]], gamma=1.0)
    >>> Z.shape, Z.nnz
    ((3, 1048576), 768)
    >>> (Z @ Z.T).toarray().round(1)
    array([[1. , 0.9, 0. ],
           [0.9, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    n_grids = check_integer(n_grids, "n_grids", 1)
    seed = check_integer(random_state, "random_state", 0)
    check_hashed(n_features, n_grids)
    thread_count(n_jobs)
    law = binning_kernel(kernel)
    if isinstance(gamma, str):
        raise ValueError(
            f"gamma must be None, a number or one number per input, since transform fits nothing; got {gamma!r}. "
            f"Use RandomBinning(gamma={gamma!r})."
        )
    X, categorical = _checked(X, categorical_features)
    value_dtype = check_float_type(float_dtype(X.dtype) if dtype is None else dtype)
    gammas = check_gamma(1.0 / X.shape[1] if gamma is None else gamma, X.shape[1], power=1)
    X, inputs = _occurring(X)
    require_binning_memory(X.shape, n_grids, value_dtype.itemsize + 4)
    grids = _grids(law, gammas, n_grids, seed, categorical, inputs)
    warn_of_rows(grids, X, n_jobs)
    offsets = hashed_offsets(n_features, n_grids)
    codes = fold_codes(grids, BinningInput.of(X), offsets, n_jobs).array
    warn_of_collisions(codes, offsets)
    return BinMatrix._trusted(codes, offsets, value_dtype, n_jobs).tocsr()


def _checked(X: Any, categorical_features: ArrayLike | None) -> tuple[CheckedRows, np.ndarray | None]:
    """Return the rows as an array or canonical CSR, and a mask of the categorical inputs or None."""
    if is_source(X):
        raise TypeError(
            "X must be rows in memory, and is a source of blocks. Call transform for each block, or use "
            "RandomBinning(n_features=...), which accepts a source."
        )
    names = InputNames()
    numbers = with_category_numbers(X, categorical_features)
    X = canonical(checked_rows(names, numbers, estimator="transform", **ARRAY_CHECKS))
    if categorical_features is None:
        return X, None
    categorical = check_categorical(categorical_features, names)
    check_categories(X, categorical)
    return X, categorical


def _occurring(X: CheckedRows) -> tuple[CheckedRows, np.ndarray | None]:
    """Return a sparse matrix without empty inputs, and the numbers of the other inputs (None for all)."""
    if not sparse.issparse(X):
        return X, None
    inputs = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    inputs = inputs if inputs.size else np.zeros(1, inputs.dtype)  # one empty input, because grids need an input
    if 2 * inputs.size > X.shape[1]:
        return X, None
    places = np.empty(X.shape[1], X.indices.dtype)
    places[inputs] = np.arange(inputs.size)
    return sparse.csr_matrix((X.data, places[X.indices], X.indptr), shape=(X.shape[0], inputs.size)), inputs


def _grids(
    law: Kernel,
    gamma: np.ndarray,
    n_grids: int,
    seed: int,
    categorical: np.ndarray | None,
    inputs: np.ndarray | None,
) -> Grids:
    """Return the grids of the inputs, drawn or cached."""
    if gamma.size * n_grids > _RECENT_SIZE or inputs is not None or _has_function(law):
        return Grids.draw(law, gamma, n_grids, seed, categorical, inputs)
    flags = None if categorical is None else categorical.tobytes()
    return _recent(law, gamma.tobytes(), n_grids, seed, flags)


def _has_function(law: Kernel | PitchKernel) -> bool:
    """Return True if a kernel contains a function of the user, which can change or have no hash."""
    return isinstance(law, Product) or (isinstance(law, Skip) and _has_function(law.kernel))


@functools.lru_cache(maxsize=_RECENT_GRIDS)
def _recent(law: Kernel, gamma: bytes, n_grids: int, seed: int, flags: bytes | None) -> Grids:
    categorical = None if flags is None else np.frombuffer(flags, bool)
    return Grids.draw(law, np.frombuffer(gamma), n_grids, seed, categorical)
