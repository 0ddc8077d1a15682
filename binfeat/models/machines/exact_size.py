"""Maximum number of rows of an exact model, from memory and time."""

import numpy as np

from binfeat.length_scales.leave_one_out import MOST_PRECISE_ROWS
from binfeat.length_scales.search import MOST_INPUTS
from binfeat.models.features.feature_bytes import fit_bytes
from binfeat.models.kernel_algebra.solve import MOST_FACTORED, solve_bytes
from binfeat.models.problem import MarginProblem, Problem
from binfeat.models.run import Phase, Run
from binfeat.models.search.wide import is_wide

TUNING_ROWS = MOST_PRECISE_ROWS  # that are tuned by leave-one-out predictions of all of them
_PAIR_SECONDS, _INPUT_SECONDS = 8e-9, 3e-10  # of a pair of rows in a solve, and of each of its inputs
_WIDE_SECONDS = 2e-11  # of an input where all kernels are products of matrices
_CHOICE_BYTES = 9  # of a pair of rows that choices are made by: matrices side by side


def exact_seconds(n_rows: int, n_inputs: int) -> float:
    """Return the expected seconds of a solution for this number of rows on a slow processor."""
    of_input = _WIDE_SECONDS if n_inputs > MOST_INPUTS else _INPUT_SECONDS
    return n_rows**2 * (_PAIR_SECONDS + n_inputs * of_input)


def exact_bytes(n_rows: int | np.ndarray, n_targets: int) -> np.ndarray:
    """Return the memory of a model of this number of rows in addition to the table; also for arrays."""
    return solve_bytes(n_rows, n_targets) + _CHOICE_BYTES * np.minimum(n_rows, TUNING_ROWS) ** 2


def most_exact_rows(problem: Problem, run: Run) -> int:
    """Return the maximum number of rows of an exact model; memory and time grow with their square.

    Of a wide table nothing takes less time.
    """
    limits, n_inputs, wide = run.limits, problem.table.shape[1], is_wide(problem, run.settings)
    most = min(limits.exact_rows, MOST_FACTORED) if isinstance(problem, MarginProblem) else limits.exact_rows
    n_rows = min(most, int(np.sqrt((limits.wide_work if wide else limits.exact_work) / max(1, n_inputs))))
    taken = np.maximum.accumulate(exact_bytes(np.arange(n_rows + 1), problem.n_solves))  # by these rows, or by fewer
    by_bytes = int(np.searchsorted(taken, fit_bytes(run.settings.max_bytes), "right")) - 1
    if by_bytes < len(problem.table) <= n_rows:
        run.note_memory(f"exact with {by_bytes:,} rows")
    n_rows = min(n_rows, by_bytes)
    while n_rows and not wide and not run.may_continue(Phase.EXACT, exact_seconds(n_rows, n_inputs)):
        n_rows -= -(-n_rows // 8)
    return n_rows
