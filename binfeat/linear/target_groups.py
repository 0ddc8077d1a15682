"""Ridge models for many targets, with groups of targets one after the other if vectors need too much memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from binfeat._common.memory import allowed_bytes
from binfeat._common.subsets import slices
from binfeat._engine.simd import FOUR
from binfeat._rows.rows import Rows
from binfeat.linear.result import Penalties, Result, RidgeSystem, SolveInterrupted, SolverOptions

VECTORS = 5  # of the solver, for each target: solution, right-hand side, residual, direction and image
_MEMORY_PART = 4  # these vectors may need a quarter of the memory


def targets_at_a_time(rows: Rows) -> int:
    """Return the number of targets with vectors of up to a quarter of the memory; at least four."""
    of_target = VECTORS * rows.dtype.itemsize * max(1, rows.shape[1])
    most = allowed_bytes(None, _MEMORY_PART) / of_target
    return rows.n_targets if most >= rows.n_targets else int(max(FOUR, most // FOUR * FOUR))


class GroupedTargets:
    """Normal equations of groups of targets, computed when the group is solved; a `RidgeSystem`.

    `system_of` returns the equations of rows with some of the targets. For a path of penalties, each group starts from
    its solution for the last penalty. Callbacks see the iterates of the current group.
    """

    def __init__(self, rows: Rows, n_together: int, system_of: Callable[[Rows], RidgeSystem]) -> None:
        self._rows, self._system_of = rows, system_of
        self._groups = slices(rows.n_targets, n_together)

    def solve(self, alphas: Penalties, options: SolverOptions, start: Result | None = None) -> Iterator[Result]:
        """Yield results for descending penalties; the first solve begins at `start`; see `solve_ridge`."""
        for alpha in alphas:
            result = self._solved(np.broadcast_to(alpha, self._rows.n_targets), options, start)
            yield result
            if result.status == "stopped":
                return
            start = result

    def _solved(self, alphas: np.ndarray, options: SolverOptions, start: Result | None) -> Result:
        result = self._unsolved(options.fit_intercept, start)
        for targets in self._groups:
            own = None if start is None else start.of_targets(targets)
            try:
                system = self._system_of(self._rows.of_targets(targets))
                part = next(system.solve([alphas[targets]], options, own))
            except SolveInterrupted as error:
                raise SolveInterrupted(_joined(result, targets, error.result)) from error
            except KeyboardInterrupt as error:  # between the solves
                raise SolveInterrupted(replace(result, status="interrupted")) from error
            result = _joined(result, targets, part)
            if part.status == "stopped":
                break
        return result

    def _unsolved(self, fit_intercept: bool, start: Result | None) -> Result:
        """Return a copy of the start, or coefficients 0 and the means of the targets."""
        shape = self._rows.shape[1], self._rows.n_targets
        if start is not None:
            solution, intercept = np.array(start.solution, order="F"), start.intercept.copy()
        else:
            weight, sums = self._rows.totals()
            solution = np.zeros(shape, self._rows.dtype, order="F")
            intercept = sums / np.maximum(weight, np.finfo(float).tiny) if fit_intercept else np.zeros(shape[1])
        return Result(solution, intercept, 1, np.ones((1, shape[1])), "converged")


def _joined(result: Result, targets: slice, part: Result) -> Result:
    """Write the result of a group into the result of all targets, in place; the first other status is kept."""
    n_iter, converged = max(result.n_iter, part.n_iter), result.status == "converged"
    residuals = np.ones((n_iter + 1, result.residuals.shape[1]))
    residuals[: len(result.residuals)] = result.residuals
    residuals[len(result.residuals) :] = result.residuals[-1]
    residuals[: len(part.residuals), targets] = part.residuals
    residuals[len(part.residuals) :, targets] = part.residuals[-1]
    result.solution[:, targets], result.intercept[targets] = part.solution, part.intercept
    return replace(
        result,
        n_iter=n_iter,
        residuals=residuals,
        status=part.status if converged or part.status == "stopped" else result.status,
        solver=part.solver,
    )
