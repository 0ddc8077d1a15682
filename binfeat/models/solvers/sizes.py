"""Numbers of rows and trees of exact and local models that memory and time allow."""

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from binfeat._common.memory import allowed_bytes, require_bytes
from binfeat._threads import one_blas_thread, thread_count
from binfeat.kernels.families import Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelValues
from binfeat.length_scales.leave_one_out import MOST_PRECISE_ROWS
from binfeat.length_scales.matrices import kernel_matrix
from binfeat.length_scales.search import MOST_INPUTS
from binfeat.linear.target_groups import VECTORS
from binfeat.models.kernel_algebra.solve import MOST_FACTORED, solve_bytes
from binfeat.models.problem import Problem
from binfeat.models.run import FEWER_ROWS, Phase, Run
from binfeat.models.settings import SIZES, Settings
from binfeat.models.solvers.cells import CellSolver

if TYPE_CHECKING:
    from binfeat.models.solvers.all_rows import AllRows

TUNING_ROWS = MOST_PRECISE_ROWS  # maximum of rows tuned by leave-one-out predictions of all rows


def fit_bytes(max_bytes: int | None) -> int:
    """Return the bytes allowed for a fit: `max_bytes`, or a quarter of the computer's memory."""
    return allowed_bytes(max_bytes, 4)


def least_dtype(n_rows: int) -> np.dtype:
    """Return the dtype of coefficients and vectors if memory is short: float64 for many rows."""
    return np.dtype(np.float32 if n_rows <= SIZES.float32_rows else np.float64)


def row_bytes(n_targets: int) -> int:
    """Return the bytes of a row's targets and weights, and of their copies in a solve."""
    return 8 * (2 + 5 * n_targets)


def require_table_bytes(shape: tuple[int, ...], n_rows: int, n_targets: int, max_bytes: int | None) -> None:
    """Raise an error if copies of a table of this shape (() if unknown) and its targets do not fit into `max_bytes`.

    It is a ValueError, or a MemoryError if `max_bytes` is None and the computer's memory is the limit.
    """
    n_columns = shape[1] if len(shape) == 2 else 0
    n_copies = SIZES.wide_table_copies if n_columns > SIZES.wide_columns else SIZES.table_copies
    n_bytes = n_rows * (8 * n_copies * n_columns + row_bytes(n_targets)) - SIZES.more_bytes
    if n_bytes > 0:
        words = f"dense copies of X, {n_rows:,} rows of {n_columns:,} columns, and of {n_targets:,} targets"
        require_bytes(n_bytes, max_bytes, words, "Use fewer columns, for example by TruncatedSVD, or fewer rows.")


def bytes_for_features(max_bytes: int | None, n_rows: int, n_targets: int) -> int:
    """Return the bytes for codes and bins, after vectors of the rows; codes can use half of them."""
    return max(0, fit_bytes(max_bytes) - n_rows * row_bytes(n_targets))


def _bytes_of_bin(n_targets: int, together: int, dtype: np.dtype) -> int:
    """Return the bytes of a bin, with a coefficient per target before and after a solve."""
    return SIZES.bin_bytes + dtype.itemsize * (2 * n_targets + VECTORS * together)


def most_grids(max_bytes: float, n_rows: int, bins_of_grid: float, n_targets: int, dtype: np.dtype) -> float:
    """Return the number of grids that fit into this number of bytes, with the fewest targets per solve."""
    bins = bins_of_grid * _bytes_of_bin(n_targets, min(SIZES.targets_together, n_targets), dtype)
    return max(max_bytes / 2 / bins, max_bytes / (bins + SIZES.code_bytes * n_rows))  # codes in a file, or in memory


def bytes_for_bins(max_bytes: float, n_rows: int, n_grids: int) -> float:
    return max_bytes - min(max_bytes / 2, SIZES.code_bytes * n_rows * n_grids)


def dtype_and_targets_at_a_time(max_bytes: float, n_bins: int, n_targets: int, least: np.dtype) -> tuple[np.dtype, int]:
    """Return the dtype of vectors, and the targets solved together: float64 and all if they need little memory."""
    max_bytes = min(max_bytes, SIZES.ample_bytes)
    if n_bins * _bytes_of_bin(n_targets, n_targets, np.dtype(np.float64)) <= max_bytes:
        return np.dtype(np.float64), n_targets
    left = max_bytes / n_bins - _bytes_of_bin(n_targets, 0, least)
    pairs = max(1, left // (SIZES.targets_together * VECTORS * least.itemsize))
    return least, int(min(SIZES.targets_together * pairs, n_targets))


def is_high_dimensional(problem: Problem, settings: Settings) -> bool:
    """Return True for numeric inputs, too many for a search with all kernels."""
    is_open = settings.kernel is None and settings.learns_gamma
    return is_open and problem.table.shape[1] > MOST_INPUTS and not problem.categorical.any()


def exact_seconds(n_rows: int, n_inputs: int) -> float:
    """Return the expected seconds of a solution for this number of rows on a slow processor."""
    of_input = SIZES.high_dimensional_input_seconds if n_inputs > MOST_INPUTS else SIZES.input_seconds
    return n_rows**2 * (SIZES.pair_seconds + n_inputs * of_input)


def exact_bytes(n_rows: int | np.ndarray, n_targets: int) -> np.ndarray:
    return solve_bytes(n_rows, n_targets) + SIZES.choice_pair_bytes * np.minimum(n_rows, TUNING_ROWS) ** 2


def n_solves(problem: Problem) -> int:
    """Return the approximate number of right-hand sides of a kernel matrix."""
    return problem.n_targets * (SIZES.loss_steps if problem.loss.needs_matrix else 1)


def most_exact_rows(problem: Problem, run: Run) -> int:
    """Return the maximum number of rows of an exact model; memory and time grow with their square."""
    limits, n_inputs, many = run.limits, problem.table.shape[1], is_high_dimensional(problem, run.settings)
    most = min(limits.exact_rows, MOST_FACTORED) if problem.loss.needs_matrix else limits.exact_rows
    n_rows = min(most, int(np.sqrt((limits.high_dimensional_work if many else limits.exact_work) / max(1, n_inputs))))
    taken = np.maximum.accumulate(exact_bytes(np.arange(n_rows + 1), n_solves(problem)))  # for these or fewer rows
    by_bytes = int(np.searchsorted(taken, fit_bytes(run.settings.max_bytes), "right")) - 1
    if by_bytes < len(problem.table) <= n_rows:
        run.note_memory(f"exact with {by_bytes:,} rows")
    n_rows = min(n_rows, by_bytes)
    while n_rows and not many and not run.may_continue(Phase.EXACT, exact_seconds(n_rows, n_inputs)):
        n_rows -= -(-n_rows // 8)
    return n_rows


def cell_rows(run: Run) -> int:
    return run.settings.cell_rows or run.limits.cell_rows


def may_double(most: int, seconds: float, rows: "AllRows", problem: Problem, run: Run) -> bool:
    """Return True if there is time for cells of twice this many rows, given the `seconds` of a tree."""
    is_open = run.settings.max_seconds is not None and run.settings.cell_rows is None and most < rows.n_all
    in_memory = _trees_by_bytes(rows, problem, run, 2 * most) >= 2  # the previous and the new tree
    return is_open and in_memory and run.may_continue(Phase.CELLS, SIZES.larger_trees * 4 * seconds)


def most_trees(rows: "AllRows", problem: Problem, run: Run) -> int:
    if run.settings.n_trees is not None:
        return run.settings.n_trees
    by_bytes = _trees_by_bytes(rows, problem, run, cell_rows(run))
    by_work = min(max(1, SIZES.tree_rows // rows.n_all), SIZES.most_trees)
    if 0 < by_bytes < by_work:
        run.note_memory("1 tree" if by_bytes == 1 else f"{by_bytes} trees")
    return int(np.clip(by_bytes, 0, by_work))


def tree_seconds(rows: "AllRows", problem: Problem, run: Run) -> float:
    """Return the expected seconds of a tree; 0 without a time limit."""
    if run.settings.max_seconds is None:
        return 0.0
    return rows.n_all * _row_seconds(min(rows.n_all, cell_rows(run)), problem.table.shape[1], run)


def rows_in_time(n_inputs: int, run: Run) -> float:
    left = SIZES.tree_share * run.clock.left_of(Phase.CELLS)
    return left if np.isinf(left) else left / _row_seconds(cell_rows(run), n_inputs, run)


def _row_seconds(n_rows: int, n_inputs: int, run: Run) -> float:
    """Return the seconds per row in a cell of this size, with all threads busy."""
    return _cell_seconds(n_rows, n_inputs) / n_rows / thread_count(run.settings.n_jobs)


@cache
def _cell_seconds(n_rows: int, n_inputs: int) -> float:
    """Return the seconds of a cell in one thread, with two kernels, measured on this computer and extrapolated."""
    d, n = min(n_inputs, SIZES.timed_inputs), min(n_rows, SIZES.timed_rows)
    matrices = [kernel_matrix(kernel, np.zeros(d, bool), 1) for kernel in (Laplacian(), Matern(1.5))]
    kernel = KernelValues(matrices, [0.5, 0.5], np.full((2, d), 1 / d), 1)
    X = np.random.default_rng(0).normal(size=(d, n)).astype(np.float32)
    solve = CellSolver(kernel, 0.1, None, n)
    with one_blas_thread():
        for rows in (X[:, : SIZES.timed_first_rows].copy(), X):  # the first call loads compiled kernels
            start = perf_counter()
            solve(rows, rows[:1].T, None)
    return (perf_counter() - start) * (n_inputs / d) * (n_rows / n) ** 3


def fits(rows: "AllRows", problem: Problem, run: Run) -> bool:
    in_memory = _trees_by_bytes(rows, problem, run, cell_rows(run)) > 0
    if not (in_memory or rows.in_memory):
        of_row = (_shared_bytes(rows, problem) + _tree_bytes(rows, problem)) / rows.n_all
        most = (fit_bytes(run.settings.max_bytes) - _cell_bytes(rows, cell_rows(run))) / of_row
        run.note_memory(f"cells of {max(0, int(most)):,} rows")
    are_few = run.cut_short == FEWER_ROWS  # because of a time limit
    return in_memory and (are_few or run.may_continue(Phase.CELLS, tree_seconds(rows, problem, run)))


def require_tree_bytes(rows: "AllRows", problem: Problem, run: Run) -> None:
    """Raise ValueError, or MemoryError if `max_bytes` is None, if a tree of the rows needs too much memory."""
    n_bytes = _shared_bytes(rows, problem) + _cell_bytes(rows, cell_rows(run)) + _tree_bytes(rows, problem)
    what = f"features='local' of {rows.n_all:,} rows and {problem.table.shape[1]} columns"
    require_bytes(n_bytes, run.settings.max_bytes, what, "Use features='binning' or 'fourier', or fewer rows.")


def _trees_by_bytes(rows: "AllRows", problem: Problem, run: Run, most: int) -> float:
    left = fit_bytes(run.settings.max_bytes) - _shared_bytes(rows, problem) - _cell_bytes(rows, most)
    return left // _tree_bytes(rows, problem)


def _shared_bytes(rows: "AllRows", problem: Problem) -> int:
    return rows.kept_bytes + rows.n_all * (4 * problem.table.shape[1] + SIZES.vector_bytes)


def _cell_bytes(rows: "AllRows", most: int) -> int:
    return SIZES.cell_pair_bytes * min(rows.n_all, most) ** 2


def _tree_bytes(rows: "AllRows", problem: Problem) -> int:
    return rows.n_all * (SIZES.number_bytes + SIZES.target_bytes * problem.n_targets)
