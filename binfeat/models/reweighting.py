"""Newton's steps of a loss by solutions of whole models, once kernels and penalty are chosen."""

from typing import cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.warned import warn
from binfeat.models.features.all_rows import RowsOf
from binfeat.models.machines.candidate import Solution
from binfeat.models.problem import Problem
from binfeat.models.run import Phase, Run
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.target.targets import Targets
from binfeat.models.warm_start import machine_again

_MOST, _SMALL, _LARGE = 6, 0.01, 0.1  # steps; of a logarithm of a mean, where steps end, and where that is no end
_WORSE = 1.01  # a larger ratio of leave-one-out errors is not rounding


def reweighted(
    problem: Problem, kernels: ScaledKernels, solution: Solution, rows: RowsOf, run: Run
) -> tuple[Problem, Solution]:
    """Approximate the problem near the solution and solve again, until both agree.

    Squared errors need no step, and losses that need a kernel matrix are at their minimum. If the penalty was selected,
    steps end before one that raises the leave-one-out loss: random features have a penalty that suits the first
    squares, which may be too small for the minimum.
    """
    if not problem.loss.has_link:
        return problem, solution
    scores, moved = solution.scores_of_all(kernels.X, run.settings.n_jobs), np.inf
    for _ in range(_MOST):
        start, quiet = run.clock.used, run.quiet(0)
        near = problem.at(scores, solution.predictor(kernels.scaler, run.settings.n_jobs))
        following = machine_again(solution, near, kernels, quiet).solve(rows(near, quiet), quiet)
        if run.settings.alpha is None and following.error > _WORSE * solution.error:
            moved = 0.0
            break
        before, problem, solution = scores, near, following
        scores = solution.scores_of_all(kernels.X, run.settings.n_jobs)
        moved = _moved(problem, scores - before)
        if moved < _SMALL or not run.may_continue(Phase.SOLUTION, run.clock.used - start):
            break
    if moved > _LARGE:
        end = f"the last step changed log-means by {moved:.2g}. Increase alpha."
        message = f"loss={run.settings.loss!r} did not converge: {end}"
        warn(message, ConvergenceWarning)
    run.note("loss", f"{run.settings.loss}, last step changed log-means by {moved:.1g}", solution.error)
    return problem, solution


def _moved(problem: Problem, steps: np.ndarray) -> float:
    """Root mean square of steps of the logarithms of means, weighted as the rows are."""
    squares = ((steps * cast(Targets, problem.targets).std) ** 2).mean(axis=1)
    return float(np.sqrt(np.average(squares, weights=problem.relative_weights(np.arange(len(squares))))))
