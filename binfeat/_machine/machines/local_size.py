"""Whether a local machine fits in memory and time, and how many trees it may have."""

import numpy as np

from binfeat._common import memory
from binfeat._machine.features.all_rows import AllRows
from binfeat._machine.features.feature_bytes import fit_bytes
from binfeat._machine.problem import Problem
from binfeat._machine.run import FEWER_ROWS, Phase, Run

MOST_TREES, _MOST_WORK = 8, 1_600_000  # rows of all trees together
_CELL_BYTES = 32  # of a pair of rows: matrices of cells side by side
_PAIR_SECONDS, _INPUT_SECONDS = 8e-9, 1e-10  # of a pair of rows in a cell, and of each of its inputs
_OF_TREE = 0.7  # of the time that is left
_NUMBER, _TARGET = 4, 16  # bytes of a row in a tree: its place, and a coefficient and a residual for each target


def cell_rows(run: Run) -> int:
    """Rows of a cell at most."""
    return run.settings.cell_rows or run.limits.cell_rows


def most_trees(rows: AllRows, problem: Problem, run: Run) -> int:
    """Trees that a local machine may have."""
    if run.settings.n_trees is not None:
        return run.settings.n_trees
    by_bytes = _trees_by_bytes(rows, problem, run)
    by_work = min(max(1, _MOST_WORK // rows.n_all), MOST_TREES)
    if 0 < by_bytes < by_work:
        run.note_memory(f"{by_bytes} trees")
    return int(np.clip(by_bytes, 0, by_work))


def tree_seconds(rows: AllRows, problem: Problem, run: Run) -> float:
    """What a tree is expected to take, on a slow processor."""
    return rows.n_all * _row_seconds(min(rows.n_all, cell_rows(run)), problem.table.shape[1])


def rows_in_time(n_inputs: int, run: Run) -> float:
    """Rows of which a tree is expected to end in time, after what comes before."""
    return _OF_TREE * run.clock.left_of(Phase.EXACT) / _row_seconds(cell_rows(run), n_inputs)


def _row_seconds(n_rows: int, n_inputs: int) -> float:
    """Of a row in a cell of so many."""
    return n_rows * (_PAIR_SECONDS + n_inputs * _INPUT_SECONDS)


def fits(rows: AllRows, problem: Problem, run: Run) -> bool:
    """Whether memory is enough for a tree, and time, too."""
    in_memory = _trees_by_bytes(rows, problem, run) > 0
    if not (in_memory or rows.in_memory):
        of_row = (_shared_bytes(rows, problem, run) - _cell_bytes(rows, run) + _tree_bytes(rows, problem)) / rows.n_all
        most = (fit_bytes(run.settings.max_bytes) - _cell_bytes(rows, run)) / of_row
        run.note_memory(f"cells of {max(0, int(most)):,} rows")
    are_few = run.cut_short == FEWER_ROWS  # since time is short
    return in_memory and (are_few or run.may_continue(Phase.EXACT, tree_seconds(rows, problem, run)))


def require_bytes(rows: AllRows, problem: Problem, run: Run) -> None:
    """Refuse rows of which a tree takes too much: by a ValueError, or a MemoryError where `max_bytes` is None."""
    n_bytes = _shared_bytes(rows, problem, run) + _tree_bytes(rows, problem)
    what = f"features='local' of {rows.n_all:,} rows and {problem.table.shape[1]} columns"
    memory.require_bytes(n_bytes, run.settings.max_bytes, what, "Use features='binning' or 'fourier', or fewer rows.")


def _trees_by_bytes(rows: AllRows, problem: Problem, run: Run) -> float:
    left = fit_bytes(run.settings.max_bytes) - _shared_bytes(rows, problem, run)
    return left // _tree_bytes(rows, problem)


def _shared_bytes(rows: AllRows, problem: Problem, run: Run) -> int:
    """What all trees have in common."""
    support = 4 * rows.n_all * problem.table.shape[1]
    return rows.kept_bytes + support + _cell_bytes(rows, run)


def _cell_bytes(rows: AllRows, run: Run) -> int:
    return _CELL_BYTES * min(rows.n_all, cell_rows(run)) ** 2


def _tree_bytes(rows: AllRows, problem: Problem) -> int:
    return rows.n_all * (_NUMBER + _TARGET * problem.n_targets)
