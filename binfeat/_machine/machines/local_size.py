"""Whether a local machine fits in memory and time, and how many trees it may have."""

import numpy as np

from binfeat._machine.features.feature_bytes import fit_bytes
from binfeat._machine.machines.exact_size import exact_seconds
from binfeat._machine.problem import Problem
from binfeat._machine.run import Phase, Run

MOST_TREES, _MOST_WORK = 8, 1_600_000  # rows of all trees together
_CELL_BYTES = 32  # of a pair of rows: matrices of cells side by side
_NUMBER, _TARGET = 4, 16  # bytes of a row in a tree: its place, and a coefficient and a residual for each target


def cell_rows(run: Run) -> int:
    """Rows of a cell at most."""
    return run.settings.cell_rows or run.limits.cell_rows


def most_trees(problem: Problem, run: Run) -> int:
    """Trees that a local machine may have."""
    if run.settings.n_trees is not None:
        return run.settings.n_trees
    n_rows, n_inputs = problem.table.shape
    shared = 4 * n_rows * n_inputs + _CELL_BYTES * min(n_rows, cell_rows(run)) ** 2
    of_tree = n_rows * (_NUMBER + _TARGET * problem.n_targets)
    by_bytes = (fit_bytes(run.settings.max_bytes) - shared) // of_tree
    by_work = min(max(1, _MOST_WORK // n_rows), MOST_TREES)
    if 0 < by_bytes < by_work:
        run.note_memory(f"{by_bytes} trees")
    return int(np.clip(by_bytes, 0, by_work))


def tree_seconds(problem: Problem, run: Run) -> float:
    """What a tree is expected to take, on a slow processor."""
    n_rows, n_inputs = problem.table.shape
    most = min(n_rows, cell_rows(run))
    return n_rows / most * exact_seconds(most, n_inputs)


def fits(problem: Problem, run: Run) -> bool:
    """Whether memory is enough for a tree, and time, too."""
    return most_trees(problem, run) > 0 and run.may_continue(Phase.EXACT, tree_seconds(problem, run))
