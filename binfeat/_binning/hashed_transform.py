"""Random binning features in one call, without fit: `transform`."""

from typing import Any

from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from binfeat._binning.bin_matrix import BinMatrix
from binfeat._binning.grids import Grids
from binfeat._binning.hashed_columns import check_hashed, fold_codes, hashed_offsets
from binfeat._binning.input_checks import ARRAY_CHECKS, require_binning_memory
from binfeat._binning.row_table import RowTable
from binfeat._common.validation import (
    canonical,
    check_float_type,
    check_gamma,
    check_integer,
    checked_array,
    float_dtype,
)
from binfeat._kernels.base import Kernel
from binfeat.kernels import binning_kernel


def transform(
    X: Any,
    *,
    kernel: str | Kernel = "laplacian",
    gamma: float | ArrayLike = 1.0,
    n_grids: int = 64,
    n_features: int = 2**20,
    random_state: int = 0,
    dtype: DTypeLike | None = None,
) -> sparse.csr_matrix | sparse.csr_array:
    """Random binning features with hashed columns, in one call and without fit.

    The same arguments give the same columns for the same row in every call, process and computer. Inner
    products of rows approximate the kernel as the features of `RandomBinning` do, up to the share of bins that
    meet in one of the ``n_features // n_grids`` columns of a grid.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        NaN matches NaN and nothing else.
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        Kernel with a pitch law: "laplacian", "hat", `kernels.Laplacian`, `Hat`, `GammaPitch`, `Product` or `Skip`.
    gamma : float or array-like of shape (n_inputs,), default=1.0
        Inverse length scale of each input; 0 ignores an input.
    n_grids : int, default=64
        Number of grids, which is the number of non-zeros in each row.
    n_features : int, default=2**20
        Number of columns, at least ``2 * n_grids``.
    random_state : int, default=0
        Seed of the grids. Anyone who knows the seed can make rows that collide, and the default is public.
    dtype : {numpy.float32, numpy.float64}, default=None
        Type of the values; None gives float32 for float32 `X`, else float64.

    Returns
    -------
    Z : scipy.sparse.csr_matrix or csr_array of shape (n_rows, n_features)
        ``1 / sqrt(n_grids)`` in one column of each grid. The type follows scikit-learn's `sparse_interface` setting.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range or `X` is not a finite (or NaN) numeric table.
    MemoryError
        If the result would need more memory than the computer has.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007, Algorithm 2.

    Examples
    --------
    >>> import binfeat
    >>> Z = binfeat.transform([[0.0, 1.0], [0.1, 1.0], [5.0, 5.0]], n_grids=100)
    >>> Z.shape, Z.nnz
    ((3, 1048576), 300)
    >>> (Z @ Z.T).toarray().round(1)
    array([[1. , 0.9, 0. ],
           [0.9, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    n_grids = check_integer(n_grids, "n_grids", 1)
    seed = check_integer(random_state, "random_state", 0)
    check_hashed(n_features, n_grids)
    law = binning_kernel(kernel)
    if isinstance(gamma, str):
        raise ValueError(f"gamma must be a number or one number per input, since nothing is fitted; got {gamma!r}.")
    X = canonical(checked_array(X, input_name="X", **ARRAY_CHECKS))
    value_dtype = check_float_type(float_dtype(X.dtype) if dtype is None else dtype)
    gamma = check_gamma(gamma, X.shape[1])
    require_binning_memory(X.shape, n_grids, value_dtype.itemsize + 4)
    offsets = hashed_offsets(n_features, n_grids)
    store = fold_codes(Grids.draw(law, gamma, n_grids, seed), RowTable.of(X), offsets)
    return BinMatrix._trusted(store.array, offsets, value_dtype, None).tocsr()
