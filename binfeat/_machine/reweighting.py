"""Newton's steps of a deviance, once kernels and penalty are chosen."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.validation import callers_level
from binfeat._machine.conclusion import concluded
from binfeat._machine.features.all_rows import MemoryRows
from binfeat._machine.machines.candidate import Solution
from binfeat._machine.problem import WorkingProblem
from binfeat._machine.run import Phase, Run
from binfeat._machine.search.scaled_kernels import ScaledKernels
from binfeat._machine.warm_start import KnownKernels, known_machine

_MOST, _SMALL, _LARGE = 6, 0.01, 0.1  # steps; of a logarithm of a mean, where steps end, and where that is no end


def reweighted(
    problem: WorkingProblem, kernels: ScaledKernels, solution: Solution, run: Run
) -> tuple[WorkingProblem, Solution]:
    """The problem near the solution of all rows, and that of it: again, until they agree."""
    scores, moved = solution.scores(kernels.X, run.settings.n_jobs), np.inf
    for _ in range(_MOST):
        start = run.clock.used
        problem = problem.at(scores)
        quiet = run.quiet(0)
        known = concluded(problem, kernels, solution, quiet)
        machine = known_machine(known, problem, KnownKernels(known, problem, quiet).settled(), quiet)
        solution = machine.solve(MemoryRows(problem, quiet), quiet)
        before, scores = scores, solution.scores(kernels.X, run.settings.n_jobs)
        steps = (scores - before) * problem.targets.std
        moved = float(
            np.sqrt(np.average((steps**2).mean(axis=1), weights=problem.relative_weights(np.arange(len(steps)))))
        )
        if moved < _SMALL or not run.may_continue(Phase.SOLUTION, run.clock.used - start):
            break
    if moved > _LARGE:
        message = f"the last Newton step of loss={run.settings.loss!r} still moved logarithms of means by {moved:.2g}."
        warnings.warn(message, ConvergenceWarning, stacklevel=callers_level())
    run.note("loss", f"{run.settings.loss}, logarithms moved by {moved:.1g}", solution.error)
    return problem, solution
