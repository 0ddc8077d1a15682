"""Limits of local models from memory and time, and their maximum number of trees."""

from functools import cache
from time import perf_counter

import numpy as np

from binfeat._common import memory
from binfeat._threads import one_blas_thread, thread_count
from binfeat.kernels.families import Laplacian, Matern
from binfeat.length_scales.matrices import kernel_matrix
from binfeat.length_scales.sums import KernelValues
from binfeat.models.features.all_rows import AllRows
from binfeat.models.features.feature_bytes import fit_bytes
from binfeat.models.machines.cell_solver import CellSolver
from binfeat.models.problem import Problem
from binfeat.models.run import FEWER_ROWS, Phase, Run

MOST_TREES, _MOST_WORK = 8, 1_600_000  # rows of all trees together
_CELL_BYTES = 32  # of a pair of rows: matrices of cells side by side
_FEW_ROWS, _MANY_ROWS, _MANY_INPUTS = 64, 1500, 100  # rows of the timed cell
_OF_TREE = 0.7  # of the time that is left
_LARGER_TREES = 3  # of larger cells, for which there has to be time
_NUMBER, _TARGET = 4, 16  # bytes of a row in a tree: its place, and a coefficient and a residual for each target


def cell_rows(run: Run) -> int:
    """Rows of a cell at most, to begin with."""
    return run.settings.cell_rows or run.limits.cell_rows


def may_double(most: int, seconds: float, rows: AllRows, problem: Problem, run: Run) -> bool:
    """Return True if there is time for cells of twice this many rows, given the `seconds` of a tree.

    Only where the user says how much time there is.
    """
    is_open = run.settings.max_seconds is not None and run.settings.cell_rows is None and most < rows.n_all
    in_memory = _trees_by_bytes(rows, problem, run, 2 * most) >= 2  # the one before, and the new one
    return is_open and in_memory and run.may_continue(Phase.CELLS, _LARGER_TREES * 4 * seconds)


def most_trees(rows: AllRows, problem: Problem, run: Run) -> int:
    """Return the maximum number of trees of a local model."""
    if run.settings.n_trees is not None:
        return run.settings.n_trees
    by_bytes = _trees_by_bytes(rows, problem, run, cell_rows(run))
    by_work = min(max(1, _MOST_WORK // rows.n_all), MOST_TREES)
    if 0 < by_bytes < by_work:
        run.note_memory(f"{by_bytes} trees")
    return int(np.clip(by_bytes, 0, by_work))


def tree_seconds(rows: AllRows, problem: Problem, run: Run) -> float:
    """Return the expected seconds of a tree; 0 without a time limit."""
    if run.settings.max_seconds is None:
        return 0.0
    return rows.n_all * _row_seconds(min(rows.n_all, cell_rows(run)), problem.table.shape[1], run)


def rows_in_time(n_inputs: int, run: Run) -> float:
    """Return the number of rows for which a tree should finish in time, after all earlier steps."""
    left = _OF_TREE * run.clock.left_of(Phase.CELLS)
    return left if np.isinf(left) else left / _row_seconds(cell_rows(run), n_inputs, run)


def _row_seconds(n_rows: int, n_inputs: int, run: Run) -> float:
    """Return the seconds per row in a cell of this size, with all threads busy."""
    return _cell_seconds(n_rows, n_inputs) / n_rows / thread_count(run.settings.n_jobs)


@cache
def _cell_seconds(n_rows: int, n_inputs: int) -> float:
    """Return the seconds of a cell in one thread, with two kernels, measured on this computer and extrapolated."""
    d, n = min(n_inputs, _MANY_INPUTS), min(n_rows, _MANY_ROWS)
    matrices = [kernel_matrix(kernel, np.zeros(d, bool), 1) for kernel in (Laplacian(), Matern(1.5))]
    kernel = KernelValues(matrices, [0.5, 0.5], np.full((2, d), 1 / d), 1)
    X = np.random.default_rng(0).normal(size=(d, n)).astype(np.float32)
    solve = CellSolver(kernel, 0.1, None, n)
    with one_blas_thread():
        for rows in (X[:, :_FEW_ROWS].copy(), X):  # the first call loads compiled kernels
            start = perf_counter()
            solve(rows, rows[:1].T, None)
    return (perf_counter() - start) * (n_inputs / d) * (n_rows / n) ** 3


def fits(rows: AllRows, problem: Problem, run: Run) -> bool:
    """Return True if memory and time are sufficient for a tree."""
    in_memory = _trees_by_bytes(rows, problem, run, cell_rows(run)) > 0
    if not (in_memory or rows.in_memory):
        of_row = (_shared_bytes(rows, problem) + _tree_bytes(rows, problem)) / rows.n_all
        most = (fit_bytes(run.settings.max_bytes) - _cell_bytes(rows, cell_rows(run))) / of_row
        run.note_memory(f"cells of {max(0, int(most)):,} rows")
    are_few = run.cut_short == FEWER_ROWS  # since time is short
    return in_memory and (are_few or run.may_continue(Phase.CELLS, tree_seconds(rows, problem, run)))


def require_bytes(rows: AllRows, problem: Problem, run: Run) -> None:
    """Raise ValueError, or MemoryError if `max_bytes` is None, if a tree of the rows needs too much memory."""
    n_bytes = _shared_bytes(rows, problem) + _cell_bytes(rows, cell_rows(run)) + _tree_bytes(rows, problem)
    what = f"features='local' of {rows.n_all:,} rows and {problem.table.shape[1]} columns"
    memory.require_bytes(n_bytes, run.settings.max_bytes, what, "Use features='binning' or 'fourier', or fewer rows.")


def _trees_by_bytes(rows: AllRows, problem: Problem, run: Run, most: int) -> float:
    left = fit_bytes(run.settings.max_bytes) - _shared_bytes(rows, problem) - _cell_bytes(rows, most)
    return left // _tree_bytes(rows, problem)


def _shared_bytes(rows: AllRows, problem: Problem) -> int:
    """Return the memory shared by all trees."""
    return rows.kept_bytes + 4 * rows.n_all * problem.table.shape[1]


def _cell_bytes(rows: AllRows, most: int) -> int:
    return _CELL_BYTES * min(rows.n_all, most) ** 2


def _tree_bytes(rows: AllRows, problem: Problem) -> int:
    return rows.n_all * (_NUMBER + _TARGET * problem.n_targets)
