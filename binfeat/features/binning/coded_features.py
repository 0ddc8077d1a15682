"""Products with the codes of consecutive rows: a `BinMatrix`, or a block of its rows."""

import numpy as np

from binfeat._common.array_types import ArrayLike, DTypeLike
from binfeat._common.subsets import slices
from binfeat._engine.products import BLOCK_ROWS, COPIES, FEW_BINS, count, multiply, multiply_transposed
from binfeat._engine.simd import FOUR
from binfeat._threads import thread_count


def no_bin(dtype: DTypeLike) -> np.uint32:
    """Return the code for "no bin": the largest value of the dtype."""
    return np.uint32(np.iinfo(np.dtype(dtype)).max)


class CodedFeatures:
    """Features of consecutive rows as codes, with products and sums over rows.

    `codes` may contain more rows: these rows begin at `_first_row`.
    """

    codes: np.ndarray  # (n_grids, n_all_rows)
    offsets: np.ndarray  # (n_grids + 1,) int64: first column of each grid, and the number of columns
    shape: tuple[int, int]
    dtype: np.dtype
    n_jobs: int | None
    _value: np.floating  # value of all entries
    _first_row: int = 0

    def gram_diagonal(self, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Return the diagonal of ``Z.T @ diag(sample_weight) @ Z``, (n_columns,) float64."""
        weights = np.ones(self.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        sums = np.empty((1, self.shape[1]))
        self._multiply_transposed(np.ascontiguousarray(weights.reshape(1, -1)), 1 / self.codes.shape[0], sums)
        return sums[0]

    def _bin_sizes(self) -> np.ndarray:
        """Return the number of all rows in each bin, (n_columns,) int64."""
        sizes = np.empty(self.shape[1], np.int64)
        count(self.codes, self.offsets, sizes, n_jobs=self.n_jobs)
        return sizes

    def _unseen_shares(self) -> np.ndarray:
        """Return the share of grids without a bin for each of all rows."""
        return np.mean(self.codes == no_bin(self.codes.dtype), axis=0)

    def _multiply(self, weights: np.ndarray, value: float | np.floating, out: np.ndarray) -> None:
        """Write ``weights @ Z.T`` with `value` for all entries, for weights (n_targets, n_columns)."""
        workers, (n_targets, n_rows) = thread_count(self.n_jobs), out.shape
        n_blocks = 1 if n_targets % (FOUR * workers) == 0 else workers
        sums = np.empty((workers, -(-n_rows // n_blocks), FOUR), out.dtype)
        scratch = *self._tables(workers, out.dtype), sums
        value = out.dtype.type(value)
        rows = self.codes, self.offsets, self._first_row
        multiply(*rows, weights, value, n_blocks, *scratch, out, n_jobs=self.n_jobs)

    def _multiply_transposed(self, values: np.ndarray, value: float | np.floating, out: np.ndarray) -> None:
        """Write ``values @ Z`` with `value` for all entries, for values (n_targets, n_rows)."""
        workers, (n_targets, n_rows) = thread_count(self.n_jobs), values.shape
        copies, rows = np.empty((workers, COPIES, FEW_BINS + 1), out.dtype), np.empty((n_rows, FOUR), out.dtype)
        tables = self._tables(workers, out.dtype)
        totals = np.empty(tables[1].shape)
        value, scratch = out.dtype.type(value), (copies, *tables, totals, rows)
        block = BLOCK_ROWS if out.dtype == np.float32 else n_rows
        for some in slices(n_targets, FOUR):
            of_some = values[some], value, block, *scratch, out[some]
            multiply_transposed(self.codes, self.offsets, self._first_row, *of_some, n_jobs=self.n_jobs)

    def _tables(self, workers: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return scratch arrays for two targets and the largest grid, and for four targets and two grids."""
        bins = np.diff(self.offsets).max() + 1
        return np.empty((workers, bins, 2), dtype), np.empty((workers, 2, bins, FOUR), dtype)

    def _matmat_into(self, W: np.ndarray, out: np.ndarray) -> None:
        """Write ``Z @ W``; both arrays are in Fortran order with the same dtype."""
        self._multiply(W.T, self._value, out.T)

    def _rmatmat_into(self, V: np.ndarray, out: np.ndarray) -> None:
        """Write ``Z.T @ V``; both arrays are in Fortran order with the same dtype."""
        self._multiply_transposed(V.T, self._value, out.T)


class CodedRange(CodedFeatures):
    """A block of consecutive rows of other `CodedFeatures`, without copies."""

    def __init__(self, all_rows: CodedFeatures, rows: slice) -> None:
        self.codes, self.offsets, self.n_jobs = all_rows.codes, all_rows.offsets, all_rows.n_jobs
        self.shape, self.dtype = (rows.stop - rows.start, all_rows.shape[1]), all_rows.dtype
        self._value, self._first_row = all_rows._value, rows.start
