"""Random binning features: `RandomBinning`."""

from math import ceil
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.availability import unavailable_if
from binfeat._common.callbacks import CallbackSupportMixin
from binfeat._common.fit_rollback import all_or_nothing, fit_method
from binfeat._common.gamma_scale import gamma_of_inputs
from binfeat._common.persistence import Persistent
from binfeat._common.validation import (
    CheckedRows,
    check_input_names,
    check_integer,
    check_share,
    float_dtype,
    is_word,
)
from binfeat._rows.sources import SourceSummary, is_source
from binfeat._rows.streamed import StreamedFeatures
from binfeat.features.binning.base import BinningBase, as_output, lacks_bins, lacks_gamma
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.bins import Bins
from binfeat.features.binning.more_grids import bins_of
from binfeat.features.binning.saved import check_binning, check_offsets
from binfeat.features.binning.tables import BinningInput
from binfeat.kernels.base import Kernel
from binfeat.kernels.parameters import WithKernel


class RandomBinning(WithKernel, Persistent, CallbackSupportMixin, BinningBase):
    """Sparse random binning features. Their inner products approximate a kernel.

    Each of `n_grids` random grids divides the input space into cells, and a row has the value ``1 / sqrt(n_grids)`` in
    the column of its cell. Two rows x and y are in the same cell of a grid with probability ``k(x, y)``, where k is the
    kernel. The inner product of their features is the share of grids in which they are in the same cell: an unbiased
    estimate of ``k(x, y)``.

    Parameters
    ----------
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        Kernel: "laplacian", "hat", or an object of class `Laplacian`, `Hat`, `GammaPitch`, `Product` or `Skip`.
    gamma : "scale", "learn", float, array-like of shape (n_inputs,) or LearnedGamma, default="scale"
        Inverse length scale, one for all inputs or one per input; 0 ignores an input. "scale" is
        ``1 / (n_inputs * std_j)``, where std_j is the standard deviation of input j, or 1 if it is constant. "learn"
        learns one length scale per input from y, like `learn_gamma`, and then one common factor by the validation error
        of ridge regression on the features. With "scale" and "learn", inputs need no scaling. Different categories of a
        categorical input j multiply the kernel by ``exp(-gamma_j)``.
    n_grids : int, default=256
        Number of grids, P in the paper. A row of Z has at most one non-zero entry per grid. The standard error of an
        estimate of the kernel value k is ``sqrt(k (1 - k) / n_grids)``; see `min_grids`.
    n_features : int, default=None
        None creates one column for each bin that contains a training row; rows in other bins have no entry for the
        grid. An int is the number of hashed columns, ``n_features // n_grids`` for each grid, at least 2. Two bins of a
        grid share a hashed column with probability ``n_grids / n_features``. Use hashed columns for streams.
    min_count : int, default=1
        Minimum number of training rows of a bin that has a column. Only for ``n_features=None``.
    categorical_features : array-like of bool, int or str, default=None
        Inputs that contain categories: a mask, positions, or column names. They contain category numbers, or labels of
        any kind if X is a data frame.
    output : {"csr", "codes"}, default="csr"
        Type of the features: CSR, or the compact `BinMatrix` of bin numbers (codes), with which `CGRidge` is faster.
    max_bytes : int, default=None
        Memory limit for the codes of a source of blocks, see `binfeat.blocks`. None is half of the computer's memory.
        Larger codes are stored in a scratch file. If the disk is full, hashed codes are recomputed for every product.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, by default all threads. 1 also limits BLAS to one thread.
    random_state : int, RandomState instance or None, default=None
        Seed of the grids. With an int, grid p is the same for any `n_grids`.
    warm_start : bool, default=False
        If True, `fit` of a fitted map keeps `gamma_`, the grids and their bins, and adds grids up to `n_grids`.
        Requires an int `random_state` and ``n_features=None``.

    Attributes
    ----------
    gamma_ : ndarray of shape (n_inputs,)
        Inverse length scale of each input.
    n_bins_ : int
        Number of columns: bins with at least `min_count` training rows. Only for ``n_features=None``.
    bin_offsets_ : ndarray of shape (n_grids + 1,), int64
        First column of each grid, and the number of columns.
    bin_counts_ : ndarray of shape (n_bins,), int64
        Number of training rows in each bin, in descending order within a grid after `fit`; `partial_fit` keeps the
        order of earlier bins. Equal counts are in ascending order of the hash. Only for ``n_features=None``.
    kappa_ : float
        Mean number of columns per grid. Only for ``n_features=None``.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_inputs,)
        Number of inputs, and their names, when X has string column names.

    Warns
    -----
    UserWarning
        If X has more than 100 rows and most bins contain a single row, or nearly all rows share their bins; if there
        are so few hashed columns that collisions dominate the error; or if most rows of a large batch passed to
        `transform` are in bins without training rows.

    See Also
    --------
    binfeat.transform : Hashed features in one call, without `fit`.
    binfeat.CGRidge : Ridge regression on the features.

    Notes
    -----
    Bins are bitwise the same for any number of threads, any split into batches and any memory order, for dense and CSR
    input, and for float32 values and their float64 copies. All values further than ``2^51 - 1`` cells from the origin
    are in the same cell. A missing value (NaN) matches other missing values and nothing else. The guide describes the
    choice of kernel, gamma and number of grids: :doc:`/user_guide/plot_14_features`.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007, section 4 and Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import RandomBinning
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> binning = RandomBinning(n_grids=500, gamma=0.5, random_state=0)
    >>> Z = binning.fit_transform(X)
    >>> exact = np.exp(-0.5 * np.abs(X[:, None] - X).sum(axis=2))
    >>> bool(np.abs((Z @ Z.T).toarray() - exact).mean() < 0.02)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    _check_state = staticmethod(check_binning)

    def __init__(
        self,
        *,
        kernel: str | Kernel = "laplacian",
        gamma: str | float | ArrayLike = "scale",
        n_grids: int = 256,
        n_features: int | None = None,
        min_count: int = 1,
        categorical_features: ArrayLike | None = None,
        output: str = "csr",
        max_bytes: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.n_grids = n_grids
        self.n_features = n_features
        self.min_count = min_count
        self.categorical_features = categorical_features
        self.output = output
        self.max_bytes = max_bytes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the grids and find the occupied bins.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_inputs), or a source of blocks of its rows
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets, used by ``gamma="learn"`` only, and None for a source. Floats are numbers; strings, booleans, and
            integers with few different values are classes.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Weights of the rows, used by ``gamma="scale"`` and "learn".

        Returns
        -------
        self : RandomBinning

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, the kernel has no pitch law, X has infinite values, or a block differs from
            the first block in its columns or type; the message names the block.
        """
        table, earlier = self._begin(X, y, sample_weight)
        self._fit_bins(table, earlier)
        table.end()
        return self

    @fit_method
    def fit_transform(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> sparse.csr_matrix | Any:
        """Fit and transform the same rows. They are hashed only once.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_inputs), or a source of blocks of its rows
        y, sample_weight : array-like, default=None
            As in `fit`.

        Returns
        -------
        Z : CSR or BinMatrix of shape (n_rows, n_columns)
            Always a `BinMatrix` for a source, with the source's targets and weights, which `CGRidge` uses.

        Raises
        ------
        TypeError, ValueError
            If a block differs from the first block in its columns or type; the message names the block.
        OSError
            If the codes need more than `max_bytes` and do not fit on the disk.
        """
        table, earlier = self._begin(X, y, sample_weight, encodes=True)
        try:
            store = self._encode_bins(table, earlier)
        except OSError:
            if table.summary is None or not self._hashed:
                raise
            table.end()
            return StreamedFeatures.of(table.summary, self._encode, int(self.bin_offsets_[-1]), dense=False)
        table.end()
        Z = BinMatrix._of_store(store, self.bin_offsets_, table.dtype, self.n_jobs, table.y, table.sample_weight)
        return as_output(Z, self.output) if table.summary is None else Z

    @unavailable_if(lacks_gamma)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Append the bins of more rows to the bins of earlier calls, without changing existing codes.

        New bins of a grid are in descending order of their count. Columns of later grids move to higher positions; set
        `n_features` for columns that never move.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        y : None
            Ignored.

        Returns
        -------
        self : RandomBinning

        Raises
        ------
        AttributeError
            If `gamma` is "scale", which needs all rows.
        """
        first = not hasattr(self, "bin_offsets_")
        if first:
            self._check_parameters()
        else:
            check_offsets(self.__dict__)
        table = BinningInput.of(self._check(X, reset=first))
        if first:
            self._draw(gamma_of_inputs(self.gamma, None, self._categorical, power=1))
        if not self._hashed:
            self._learn(table, known=None if first else Bins.join_within_grids(bins_of(self)))
        return self

    def encode(self, X: Any) -> BinMatrix:
        """Map rows to their features in compact form.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)

        Returns
        -------
        Z : BinMatrix of shape (n_rows, n_columns)
        """
        check_is_fitted(self)
        return self._encode(self._check(X))

    def _encode(self, X: CheckedRows) -> BinMatrix:
        check_offsets(self.__dict__)
        self._require_memory(X, len(self._scale))
        return BinMatrix._trusted(self._codes_of(X), self.bin_offsets_, float_dtype(X.dtype), self.n_jobs)

    def transform(self, X: Any) -> sparse.csr_matrix | Any:
        """Map rows to their features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        Z : CSR or BinMatrix of shape (n_rows, n_columns)
            Of the type `output`. CSR indices are int32 if possible; values are float32 for float32 X.
            For a source, a `LinearOperator` that reads the source again for every product.

        Raises
        ------
        MemoryError
            If the result would need more memory than the computer has.
        """
        if is_source(X):
            check_is_fitted(self)
            summary = SourceSummary.of_fitted(X, self._check)
            return StreamedFeatures.of(summary, self._encode, int(self.bin_offsets_[-1]), dense=False)
        return as_output(self.encode(X), self.output)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the columns, "randombinning_{grid}_{code}".

        Parameters
        ----------
        input_features : array-like of str, default=None
            Only checked against the names seen in `fit`.

        Returns
        -------
        names : ndarray of shape (n_columns,), object
        """
        check_is_fitted(self, "bin_offsets_")
        check_input_names(self, input_features)
        sizes = np.diff(self.bin_offsets_)
        return np.array([f"randombinning_{p}_{c}" for p, size in enumerate(sizes) for c in range(size)], dtype=object)

    @unavailable_if(lacks_bins)
    def unseen_shares(self, X: Any) -> np.ndarray:
        """Return the share of the grids in which the bin of a row has no column, for each row.

        A bin has a column if it contains at least `min_count` training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_inputs)

        Returns
        -------
        shares : ndarray of shape (n_rows,)
            0 for training rows if `min_count` is 1. Near 1 for rows far from all training rows, which have nearly empty
            features.
        """
        return self.encode(X)._unseen_shares()

    def bin_bounds(self, X: Any, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of the box in input space that a column represents, to interpret linear coefficients.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_inputs)
            Rows with at least one row in the bin, for example the training rows.
        column : int
            Number of the column.

        Returns
        -------
        lower, upper : ndarrays of shape (n_inputs,)
            The bin contains x if ``lower < x <= upper`` for every input; infinite along ignored inputs, NaN along
            inputs with a missing value. With hashed columns the column may contain further boxes.

        Raises
        ------
        ValueError
            If there is no such column, or no row of X lies in its bin.
        """
        check_is_fitted(self)
        n_columns = int(self.bin_offsets_[-1])
        column = check_integer(column, "column", 0, n_columns - 1)
        X = self._check(X)
        p = int(np.searchsorted(self.bin_offsets_, column, side="right")) - 1
        inside = np.flatnonzero(self._encode(X).codes[p] == column - self.bin_offsets_[p])
        if not inside.size:
            raise ValueError(f"No row of X lies in the bin of column {column}; pass rows that include training rows.")
        row = X[[inside[0]]]
        return self._grids.box(p, np.ravel(row.toarray() if sparse.issparse(row) else row).astype(np.float64))

    @staticmethod
    def min_grids(standard_error: float, kernel_value: float = 0.5) -> int:
        """Return the smallest number of grids for estimates of a kernel value with at most this standard error.

        Parameters
        ----------
        standard_error : float
            Between 0 and 1.
        kernel_value : float, default=0.5
            Exact value k of the kernel, between 0 and 1; 0.5 has the largest error.

        Returns
        -------
        n_grids : int
            ``k (1 - k) / standard_error**2``, rounded up.

        Examples
        --------
        >>> from binfeat import RandomBinning
        >>> RandomBinning.min_grids(0.05)
        100
        """
        error, value = check_share(standard_error, "standard_error"), check_share(kernel_value, "kernel_value")
        return max(1, ceil(value * (1 - value) / error**2 * (1 - 1e-12)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = is_word(self.gamma, "learn")
        return tags
