"""Newton's steps of a deviance, once kernels and penalty are chosen."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.warned import warn
from binfeat.models.features.all_rows import RowsOf
from binfeat.models.machines.candidate import Solution
from binfeat.models.problem import WorkingProblem
from binfeat.models.run import Phase, Run
from binfeat.models.search.scaled_kernels import ScaledKernels
from binfeat.models.warm_start import machine_again

_MOST, _SMALL, _LARGE = 6, 0.01, 0.1  # steps; of a logarithm of a mean, where steps end, and where that is no end
_WORSE = 1.01  # a larger ratio of leave-one-out errors is not rounding


def reweighted(
    problem: WorkingProblem, kernels: ScaledKernels, solution: Solution, rows: RowsOf, run: Run
) -> tuple[WorkingProblem, Solution]:
    """Approximate the problem near the solution and solve again, until both agree.

    If the penalty was selected, steps end before one that raises the leave-one-out deviance: random features have
    a penalty that suits the first squares, which may be too small for the minimum.
    """
    best, scores, moved = (problem, solution), solution.scores_of_all(kernels.X, run.settings.n_jobs), np.inf
    for _ in range(_MOST):
        start = run.clock.used
        stepped = _step(*best, scores, kernels, rows, run.quiet(0))
        if run.settings.alpha is None and stepped[1].error > _WORSE * best[1].error:
            moved = 0.0
            break
        before, best = scores, stepped
        scores = best[1].scores_of_all(kernels.X, run.settings.n_jobs)
        moved = _moved(best[0], scores - before)
        if moved < _SMALL or not run.may_continue(Phase.SOLUTION, run.clock.used - start):
            break
    if moved > _LARGE:
        end = f"the last step changed log-means by {moved:.2g}. Increase alpha."
        message = f"loss={run.settings.loss!r} did not converge: {end}"
        warn(message, ConvergenceWarning)
    run.note("loss", f"{run.settings.loss}, last step changed log-means by {moved:.1g}", best[1].error)
    return best


def _step(
    problem: WorkingProblem,
    solution: Solution,
    scores: np.ndarray,
    kernels: ScaledKernels,
    rows: RowsOf,
    run: Run,
) -> tuple[WorkingProblem, Solution]:
    """The problem near scores of the solution, and its own solution with the same kernels and penalty."""
    near = problem.at(scores, solution.predictor(kernels.scaler, run.settings.n_jobs))
    return near, machine_again(solution, near, kernels, run).solve(rows(near, run), run)


def _moved(problem: WorkingProblem, steps: np.ndarray) -> float:
    """Root mean square of steps of the logarithms of means, weighted as the rows are."""
    squares = ((steps * problem.targets.std) ** 2).mean(axis=1)
    return float(np.sqrt(np.average(squares, weights=problem.relative_weights(np.arange(len(squares))))))
