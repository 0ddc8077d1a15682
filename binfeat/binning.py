"""Random binning features: `RandomBinning`."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from binfeat._binning.bin_matrix import BinMatrix, code_dtype
from binfeat._binning.bins import Bins, rank_bins
from binfeat._binning.grids import Grids
from binfeat._binning.hashed_columns import check_hashed, fold_codes, hashed_offsets
from binfeat._binning.input_checks import ARRAY_CHECKS, check_categories, require_binning_memory, require_grids_memory
from binfeat._binning.row_table import RowTable
from binfeat._binning.saved import check_binning, check_offsets
from binfeat._binning.tables import BinTables, count_bins, find_codes
from binfeat._common.availability import unavailable_if
from binfeat._common.callbacks import CallbackSupportMixin
from binfeat._common.derived import Derived
from binfeat._common.fit_rollback import all_or_nothing, fit_method
from binfeat._common.gamma_scale import Moments, gamma_of_inputs, is_scale
from binfeat._common.operators import FeatureMap
from binfeat._common.persistence import Persistent
from binfeat._common.progress import Progress
from binfeat._common.validation import (
    canonical,
    check_categorical,
    check_choice,
    check_input_names,
    check_integer,
    checked_rows,
    float_dtype,
    is_word,
    seed_of,
)
from binfeat._engine.policy import thread_count
from binfeat._kernels.base import Kernel
from binfeat._kernels.parameters import WithKernel
from binfeat._rows.sources import Survey, is_source
from binfeat._rows.streamed import StreamedFeatures
from binfeat.kernels import binning_kernel

__all__ = ["RandomBinning"]


def _lacks_gamma(binning):
    needs = f"partial_fit needs gamma as a number or an array, as gamma={binning.gamma!r} needs all rows at once."
    return needs if isinstance(binning.gamma, str) else None


class RandomBinning(WithKernel, Persistent, CallbackSupportMixin, FeatureMap):
    """Random binning features, whose inner products approximate a kernel.

    Each of `n_grids` random grids divides the input space into cells, and a row has the value ``1 / sqrt(n_grids)``
    in the column of its cell. Two rows x and y share a cell of one grid with probability
    ``prod_j E[max(0, 1 - |x_j - y_j| / pitch_j)] = k(x, y)``, so ``z(x) @ z(y)`` is the average of `n_grids`
    independent 0/1 variables of mean ``k(x, y)``.

    Parameters
    ----------
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        Kernel with a pitch law: "laplacian", "hat", `kernels.Laplacian`, `Hat`, `GammaPitch`, `Product` or `Skip`.
    gamma : "scale", float or array-like of shape (n_inputs,), default="scale"
        Inverse length scale of each input; 0 ignores an input. "scale" is ``1 / (n_inputs * std)``, with the standard
        deviation of all values of X. If rows differ in categorical input j, the kernel has a factor ``exp(-gamma_j)``.
    n_grids : int, default=64
        Number of grids, P in the paper. A row of Z has at most one non-zero for each grid.
    n_features : int, default=None
        None makes one column for each bin seen in `fit`; other bins have no entry. An int is a number of hashed
        columns: ``n_features // n_grids`` for each grid, at least 2.
    min_count : int, default=1
        Minimum number of training rows of a bin that has a column. Only for ``n_features=None``.
    categorical_features : array-like of bool, int or str, default=None
        Inputs that hold category numbers: a mask, positions, or column names.
    output : {"csr", "codes"}, default="csr"
        What `transform` returns: CSR, or the compact `BinMatrix`.
    max_bytes : int, default=None
        Memory limit for the codes of a source of blocks, see `binfeat.blocks`; None is half of the computer's memory.
        Larger codes are kept in a scratch file without a name, in the folder `tempfile.gettempdir`. If the disk has
        no room either, hashed columns are computed again for every product.
    n_jobs : int, default=None
        Number of threads; None is Numba's current setting, all threads at first. With 1, BLAS has one, too.
    random_state : int, RandomState instance or None, default=None
        Seed of the grids. With an int, grid p is the same for any `n_grids`.

    Attributes
    ----------
    gamma_ : ndarray of shape (n_inputs,)
        Inverse length scale of each input.
    n_bins_ : int
        Number of occupied bins, which is the number of columns. Only for ``n_features=None``.
    bin_offsets_ : ndarray of shape (n_grids + 1,), int64
        First column of each grid, and the number of columns.
    bin_counts_ : ndarray of shape (n_bins,), int64
        Number of training rows in each bin, in descending order within a grid and, where equal, in ascending order of
        the hash. Only for ``n_features=None``.
    kappa_ : float
        Mean number of occupied bins per grid. Only for ``n_features=None``.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_inputs,)
        Names of the inputs, when X has string column names.

    Warns
    -----
    UserWarning
        If the number of bins exceeds half of rows times grids, so that most rows are alone in their bins.

    See Also
    --------
    binfeat.transform : Hashed features in one call, without `fit`.
    binfeat.CGRidge : A linear machine to train on the features.

    Notes
    -----
    Bins are bitwise the same for any number of threads, any split into batches and any memory order, for dense and CSR
    input, and for float32 values and their float64 copies. All values further than ``2^51 - 1`` pitches from the
    origin share the border cell. NaN matches NaN and nothing else.

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

    gamma_: np.ndarray
    n_bins_: int
    bin_offsets_: np.ndarray
    bin_counts_: np.ndarray
    kappa_: float

    _check_state = staticmethod(check_binning)

    def __init__(
        self,
        *,
        kernel: str | Kernel = "laplacian",
        gamma: str | float | ArrayLike = "scale",
        n_grids: int = 64,
        n_features: int | None = None,
        min_count: int = 1,
        categorical_features: ArrayLike | None = None,
        output: str = "csr",
        max_bytes: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
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

    @fit_method
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the grids and find the occupied bins.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
        y : None
            Ignored.

        Returns
        -------
        self : RandomBinning

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, the kernel has no pitch law, X has infinite values, or a block is not like
            the others; the message names it.
        """
        table = self._begin(X)
        if not self._hashed:
            self._learn(table)
        table.progress.end()
        return self

    @fit_method
    def fit_transform(self, X: Any, y: Any = None) -> sparse.csr_matrix | Any:
        """Fit and transform the same rows, which are hashed once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
        y : None
            Ignored.

        Returns
        -------
        Z : CSR or BinMatrix of shape (n_rows, n_columns)
            For a source always a `BinMatrix`, which keeps the source's targets and weights for the ridge machines.

        Raises
        ------
        TypeError, ValueError
            If a block is not like the others; the message names it.
        OSError
            If the codes need more than `max_bytes` and the disk has no room for them.
        """
        table = self._begin(X, encodes=True)
        try:
            if self._hashed:
                store = fold_codes(self._grids, table, self.bin_offsets_, self.n_jobs)
            else:
                store = self._learn(table, table.store(self.n_grids))
        except OSError:
            if not (self._hashed and is_source(X)):
                raise
            return StreamedFeatures.of(table.survey, self.encode, int(self.bin_offsets_[-1]), dense=False)
        table.progress.end()
        Z = BinMatrix._of_store(store, self.bin_offsets_, table.dtype, self.n_jobs, table.y, table.sample_weight)
        return Z if is_source(X) else self._as_output(Z)

    @unavailable_if(_lacks_gamma)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add the bins of more rows after the bins of earlier calls, which keep their codes.

        The new bins of a grid are in descending order of their count. Columns of later grids move to make room; set
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
        table = RowTable.of(self._check(X, reset=first))
        if first:
            self._draw(None)
        if not self._hashed and first:
            self._learn(table)
        elif not self._hashed:
            coded = Bins(self._bin_keys, self.bin_counts_, self.bin_offsets_)
            rare = Bins(self._rare_keys, self._rare_counts, self._rare_starts)
            self._learn(table, known=Bins.join_within_grids([coded, rare]))
        return self

    def encode(self, X: Any) -> BinMatrix:
        """The features of X in compact form.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)

        Returns
        -------
        Z : BinMatrix of shape (n_rows, n_columns)
        """
        check_is_fitted(self)
        check_offsets(self.__dict__)
        X = self._check(X)
        self._require_memory(X, len(self._scale))
        if self._hashed:
            codes = fold_codes(self._grids, RowTable.of(X), self.bin_offsets_, self.n_jobs).array
        else:
            keys = self._bin_keys
            tables = self._derived.get(keys, lambda: BinTables(keys, self.bin_offsets_, self.n_jobs))
            codes = find_codes(tables, self._grids, X, self.n_jobs, self._code_dtype)
        return BinMatrix._trusted(codes, self.bin_offsets_, float_dtype(X.dtype), self.n_jobs)

    def transform(self, X: Any) -> sparse.csr_matrix | Any:
        """Map rows to their features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        Z : CSR or BinMatrix of shape (n_rows, n_columns)
            Its type is set by `output`. CSR indices are int32 where that is enough; values are float32 for float32 X.
            For a source, a `LinearOperator` that reads the source again for every product.

        Raises
        ------
        MemoryError
            If the result would need more memory than the computer has.
        """
        if is_source(X):
            check_is_fitted(self)
            survey = Survey(X, lambda rows, _: self._check(rows))
            return StreamedFeatures.of(survey, self.encode, int(self.bin_offsets_[-1]), dense=False)
        return self._as_output(self.encode(X))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Names of the columns: "randombinning_{grid}_{code}".

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _begin(self, X, encodes=False):
        """Check parameters and rows, and draw the grids."""
        self._check_parameters()
        look = (lambda rows: Moments.of(rows, self._categorical)) if is_scale(self.gamma) else None
        if is_source(X):
            survey = Survey(X, self._check, look)
            self._draw(survey.sum)
            return RowTable.of_source(survey, self.max_bytes).watched(Progress(self, X, None), int(self.n_grids))
        X = self._check(X, reset=True)
        if encodes:
            self._require_memory(X, int(self.n_grids))
        self._draw(look and look(X))
        return RowTable.of(X).watched(Progress(self, X, None), int(self.n_grids))

    def _check_parameters(self):
        n_grids = check_integer(self.n_grids, "n_grids", 1)
        check_integer(self.min_count, "min_count", 1)
        check_choice(self.output, "output", ("csr", "codes"))
        thread_count(self.n_jobs)
        check_integer(0 if self.max_bytes is None else self.max_bytes, "max_bytes", 0)
        binning_kernel(self.kernel)
        if self.n_features is not None:
            check_hashed(self.n_features, n_grids)

    def _draw(self, moments):
        """Draw the grids for rows of these `Moments`, or None where `gamma` needs none."""
        law, n_grids, categorical = binning_kernel(self.kernel), int(self.n_grids), self._categorical
        require_grids_memory(n_grids, categorical.size)
        self.gamma_ = gamma_of_inputs(self.gamma, moments, categorical, power=1)
        grids = Grids.draw(law, self.gamma_, n_grids, seed_of(self.random_state), categorical)
        self._scale, self._shift, self._keys, self._nan_keys = grids.arrays
        self._hashed, self._derived = self.n_features is not None, Derived()
        if self._hashed:
            self.bin_offsets_ = hashed_offsets(self.n_features, n_grids)

    def _check(self, X, reset=False):
        X = canonical(checked_rows(self, X, reset=reset, **ARRAY_CHECKS))
        if reset:
            self._categorical = check_categorical(self.categorical_features, self)
        check_categories(X, self._categorical)
        return X

    def _require_memory(self, X, n_grids):
        """Refuse rows whose features do not fit in memory."""
        beside_a_code = 0 if is_word(self.output, "codes") else float_dtype(X.dtype).itemsize + 4
        require_binning_memory(X.shape, n_grids, beside_a_code)

    @property
    def _grids(self):
        return Grids(self._scale, self._shift, self._keys, self._nan_keys)

    @property
    def _code_dtype(self):
        return code_dtype(np.diff(self.bin_offsets_).max())

    def _learn(self, table, store=None, known=None):
        """Learn the bins of rows, write the codes of the rows to the store if there is one, and return the store."""
        bins = count_bins(self._grids, table.blocks, table.n_rows, known, store, self.n_jobs, tell=table.tell)
        n_coded = 0 if known is None else np.diff(self.bin_offsets_)
        learned = rank_bins(bins, self.min_count, n_coded, self.n_jobs)
        if store is not None:
            store.recode(learned.new_codes, learned.starts, learned.code_dtype, self.n_jobs)
        self._keep(learned, table.n_rows)
        return store

    def _keep(self, learned, n_rows):
        """Set the attributes that describe the bins of `n_rows` rows."""
        coded, rare = learned.coded, learned.rare
        learned.warn_if_too_fine(n_rows)
        self._bin_keys, self.bin_counts_, self.bin_offsets_ = coded.keys, coded.counts, coded.starts
        self.n_bins_, self.kappa_ = coded.keys.size, coded.keys.size / coded.sizes.size
        self._rare_keys, self._rare_counts, self._rare_starts = rare.keys, rare.counts, rare.starts

    def _as_output(self, matrix):
        return matrix if is_word(self.output, "codes") else matrix.tocsr()
