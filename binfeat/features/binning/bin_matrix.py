"""The compact form of a random binning matrix, and its CSR form."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.array_types import ArrayLike, DTypeLike
from binfeat._common.memory import require_memory
from binfeat._common.operators import RowMatrix, row_numbers
from binfeat._common.sparse_tables import csr_container
from binfeat._common.subsets import slices
from binfeat._common.validation import check_float_type, check_row_weights
from binfeat._engine.bin_tables import count_entries, to_csr
from binfeat._threads import thread_count
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.coded_features import CodedFeatures, CodedRange, no_bin

_BLOCK_ROWS = 2**17  # read at a time from codes in a file
_INT32_MAX, _INT64_MAX = np.iinfo(np.int32).max, np.iinfo(np.int64).max


def code_dtype(largest_grid: int) -> type[np.unsignedinteger]:
    """Return the dtype of codes for the number of bins of the largest grid."""
    return np.uint16 if largest_grid <= np.iinfo(np.uint16).max else np.uint32


def code_dtype_of(offsets: np.ndarray) -> type[np.unsignedinteger]:
    """Return the dtype of codes for the first column of each grid and the number of columns."""
    return code_dtype(np.diff(offsets).max())


class BinMatrix(CodedFeatures, RowMatrix):
    """Random binning features as codes: 2 or 4 bytes per entry instead of CSR's 12.

    ``RandomBinning(output="codes")`` and `RandomBinning.encode` return it. It is a
    `scipy.sparse.linalg.LinearOperator`, so `CGRidge` and the solvers of SciPy accept it. Row i has the value
    ``1 / sqrt(n_grids)`` in column ``offsets[p] + codes[p, i]`` of each grid p. The largest value of the type of
    `codes` means "no bin".

    Parameters
    ----------
    codes : ndarray of shape (n_grids, n_rows), uint16 or uint32
        Index of each row's bin within each grid. An array in C order is not copied, so later changes to it change
        the matrix.
    offsets : array-like of shape (n_grids + 1,), int
        First column of each grid, and the number of columns.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the entries.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting.

    Attributes
    ----------
    shape : tuple of (int, int)
        Rows and columns.
    nbytes : int
        Bytes held by the codes and the offsets.
    y, sample_weight : ndarray or None
        Targets and weights of the rows, if the rows are from a source of blocks.

    Raises
    ------
    ValueError
        If the shapes or types of `codes` and `offsets` are inconsistent, or a code is outside of its grid.

    Notes
    -----
    ``Z @ W`` and ``Z.T @ V`` use only the codes. Their order of summation does not depend on the number of threads.
    Products with sparse matrices are sparse, and use the CSR form. Write ``(Z.T @ S.T).T`` for a sparse matrix S on the
    left. A pickle or a deep copy contains the codes, even if they are in a scratch file. A shallow copy shares them.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import RandomBinning
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> Z = RandomBinning(gamma=0.3, n_grids=100, output="codes", random_state=0).fit_transform(X)
    >>> Z.codes.shape, Z.codes.dtype
    ((100, 1000), dtype('uint16'))
    >>> w = np.ones(Z.shape[1])
    >>> bool(np.allclose(Z @ w, Z.tocsr() @ w))
    True
    """

    _instead = "output='csr', or its tocsr()"

    def __init__(
        self, codes: np.ndarray, offsets: ArrayLike, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None
    ) -> None:
        codes = np.ascontiguousarray(codes)
        offsets = np.asarray(offsets)
        if codes.ndim != 2 or codes.dtype not in (np.uint16, np.uint32) or codes.shape[0] == 0:
            raise ValueError(
                "codes must be a uint16 or uint32 array of shape (n_grids, n_rows); "
                f"got {codes.dtype} and shape {codes.shape}."
            )
        wanted = offsets.dtype.kind in "iu" and offsets.shape == (codes.shape[0] + 1,)
        if not wanted or offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any() or offsets[-1] > _INT64_MAX:
            raise ValueError(
                f"offsets must be {codes.shape[0] + 1} increasing integers from 0, one more than grids; got {offsets}."
            )
        dtype, offsets = check_float_type(dtype), offsets.astype(np.int64)
        if (np.diff(offsets) >= 2**32).any():
            raise ValueError(f"offsets must give each grid fewer than 2^32 columns; got {offsets}.")
        thread_count(n_jobs)
        none = no_bin(codes.dtype)
        for p, (grid_codes, size) in enumerate(zip(codes, np.diff(offsets), strict=True)):
            wrong = grid_codes[(grid_codes != none) & (grid_codes >= size)]
            if wrong.size:
                raise ValueError(f"codes of grid {p} must be below {size}, or {none} for no bin; got {wrong[0]}.")
        self._set(codes, offsets, dtype, n_jobs)

    def _set(self, codes: np.ndarray, offsets: np.ndarray, dtype: DTypeLike, n_jobs: int | None) -> None:
        super().__init__(dtype, (codes.shape[1], int(offsets[-1])))
        self.codes, self._value = codes, self.dtype.type(1 / np.sqrt(codes.shape[0]))
        self.offsets = np.array(offsets)  # a copy, because users may edit offsets of an estimator
        self.n_jobs = n_jobs
        self.y: np.ndarray | None = None
        self.sample_weight: np.ndarray | None = None
        self._store: CodeStore | None = None

    @classmethod
    def _trusted(cls, codes: np.ndarray, offsets: np.ndarray, dtype: DTypeLike, n_jobs: int | None) -> "BinMatrix":
        """Create a matrix from codes that are known to be in range."""
        matrix = cls.__new__(cls)
        matrix._set(codes, offsets, dtype, n_jobs)
        return matrix

    @classmethod
    def _of_store(
        cls,
        store: CodeStore,
        offsets: np.ndarray,
        dtype: DTypeLike,
        n_jobs: int | None,
        y: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
    ) -> "BinMatrix":
        """Create a matrix from the codes in a CodeStore, with targets and weights of its rows."""
        matrix = cls._trusted(store.array, offsets, dtype, n_jobs)
        matrix._store, matrix.y, matrix.sample_weight = store, y, sample_weight
        return matrix

    def __copy__(self) -> "BinMatrix":
        copy = type(self).__new__(type(self))
        copy.__dict__.update(vars(self))
        return copy

    def __getstate__(self) -> dict:
        """Return the state without the store, because its buffer contains unused memory."""
        if self.computed:
            require_memory(self.codes.nbytes, "the copy of codes in a scratch file", "Copy fewer rows or grids.")
        return {**vars(self), "_store": None}

    @property
    def computed(self) -> bool:
        """Return True if codes are in a file and should be read a block of rows at a time."""
        return self._store is not None and self._store.in_file

    def row_blocks(self) -> Iterator[tuple[slice, CodedRange]]:
        """Yield pairs of a slice of rows and their part of the matrix, for solvers, without copies."""
        for rows in slices(self.shape[0], _BLOCK_ROWS):
            yield rows, CodedRange(self, rows)

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.offsets.nbytes

    def take(self, rows: ArrayLike) -> "BinMatrix":
        """Select rows by position.

        Parameters
        ----------
        rows : array-like of shape (n_taken,), int
            Negative numbers count from the end.

        Returns
        -------
        taken : BinMatrix of shape (n_taken, n_columns)

        Raises
        ------
        IndexError
            If `rows` is not a one-dimensional array of integers, or an integer is out of range.
        """
        rows = row_numbers(rows)
        most = np.inf if self._store is None else self._store.max_bytes
        store = CodeStore(rows.size, len(self.codes), most, self.codes.dtype)
        for codes, taken in zip(self.codes, store.array, strict=True):
            taken[:] = codes.take(rows)
        return self._of_store(store, self.offsets, self.dtype, self.n_jobs)

    def tocsr(self) -> sparse.csr_matrix | sparse.csr_array:
        """Convert to CSR.

        Returns
        -------
        Z : scipy.sparse.csr_matrix or csr_array of shape (n_rows, n_columns)
            Its type follows scikit-learn's `sparse_interface` setting. Indices are int32 if possible.

        Raises
        ------
        MemoryError
            If the CSR matrix would need more memory than the computer has.
        """
        n_rows, n_columns = self.shape
        row_starts = np.zeros(n_rows + 1, np.int64)
        count_entries(self.codes, self.offsets, row_starts[1:], n_jobs=self.n_jobs)
        np.cumsum(row_starts, out=row_starts)
        n_entries = int(row_starts[-1])
        index_dtype = np.int32 if max(n_entries, n_columns) <= _INT32_MAX else np.int64
        entry_bytes = self.dtype.itemsize + np.dtype(index_dtype).itemsize
        require_memory(
            n_entries * entry_bytes, "the CSR matrix", "Use output='codes', or fewer rows or grids at a time."
        )
        columns, values = np.empty(n_entries, index_dtype), np.empty(n_entries, self.dtype)
        to_csr(self.codes, self.offsets, self._value, row_starts, columns, values, n_jobs=self.n_jobs)
        Z = csr_container()((values, columns, row_starts.astype(index_dtype)), shape=self.shape)
        Z.has_canonical_format = True
        return Z

    def toarray(self) -> np.ndarray:
        """Convert to a dense array.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_columns)

        Raises
        ------
        MemoryError
            If the array would need more memory than the computer has.
        """
        n_bytes = self.shape[0] * self.shape[1] * self.dtype.itemsize
        require_memory(n_bytes, "the dense array", "Use tocsr(), or fewer rows or grids at a time.")
        return self.tocsr().toarray()

    def gram_diagonal(self, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Compute the diagonal of ``Z.T @ Z``: the number of rows in each bin, divided by the number of grids.

        Parameters
        ----------
        sample_weight : ndarray of shape (n_rows,), default=None
            Weights of the rows; None counts each as 1.

        Returns
        -------
        diagonal : ndarray of shape (n_columns,), float64

        Raises
        ------
        ValueError
            If `sample_weight` does not have one value per row.
        """
        if sample_weight is None:
            return self._bin_sizes() / self.codes.shape[0]
        return super().gram_diagonal(check_row_weights(sample_weight, self.shape[0]))

    def _matmat(self, W: Any) -> Any:
        return self.tocsr() @ W if sparse.issparse(W) else super()._matmat(W)

    def _rmatmat(self, V: Any) -> Any:
        return self.tocsr().T @ V if sparse.issparse(V) else super()._rmatmat(V)
