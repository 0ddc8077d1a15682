"""Common length scale and penalty of exact models, for one kernel or a sum, by leave-one-out errors."""

from dataclasses import replace
from typing import cast

import numpy as np

from binfeat._common.held_out import SquaredErrors
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.length_scales.kernel_sum import KernelSum, Trial
from binfeat.length_scales.leave_one_out import SingularKernelError, least_alpha, precise_inverse_root
from binfeat.models.machines.descent import Descent
from binfeat.models.machines.kernel_rows import KernelRows
from binfeat.models.problem import MarginProblem
from binfeat.models.run import Phase, Run
from binfeat.models.search.scaled_kernels import ScaledKernels

_FEWEST_AHEAD = 400  # rows from which a trial takes longer than the start of threads
_OF_GROUPS = 0.1, 1.0, 10.0  # initial penalties; penalties from nearly equal single rows would be far too small
_SHARES = 0.75, 0.5  # of the better kernel in a sum of two


class ExactTuning:
    """Trials with validation or leave-one-out predictions, for few rows in float64."""

    def __init__(self, rows: KernelRows, run: Run, kernels: ScaledKernels, solution_seconds: float) -> None:
        self._rows, self._problem, self._run, self._kernels = rows, rows.problem, run, kernels
        self._solution_seconds = solution_seconds
        self._least_alpha = least_alpha(len(rows.all))
        self._try_seconds = 0.0  # of the longest try so far

    def best(self) -> Trial:
        """Return the tuned kernel or sum with the lowest error; for other losses only the penalty is tuned."""
        if isinstance(self._problem, MarginProblem):
            rows = replace(self._rows, problem=self._problem.of_squares)
            squares = ExactTuning(rows, self._run, self._kernels, self._solution_seconds).best()
            return self.of(squares.kernel)
        with one_blas_thread():
            tuned = side_by_side(self._tuned, self._kernels.found, self._run.settings.n_jobs)
            return self._result(self._best_sum(*sorted(tuned, key=lambda each: each.error)))

    def of(self, known: KernelSum) -> Trial:
        """Known kernels. The penalty is tuned where there are more rows to judge it than it came from."""
        with one_blas_thread():
            tuned = self._try(known)
            if self._run.settings.alpha is None and len(self._rows.known) > known.n_rows:
                tuned = self._descent().penalty(tuned)
            return self._result(tuned)

    def _result(self, tuned: Trial) -> Trial:
        """The trial with its squared error, whatever judged it."""
        problem, rows, predictions = self._problem, self._rows.judged, cast(np.ndarray, tuned.predictions)
        squares = SquaredErrors(problem.Y[rows], problem.weights_of(rows))(predictions)
        return replace(tuned, error=squares.mean(), K=None)

    def _tuned(self, found: Trial) -> Trial:
        """The overall factor and the penalty, each in turn, that the leave-one-out predictions are best with."""
        given = self._problem.relative_alpha(self._run.settings.alpha)
        alpha = max(self._least_alpha, found.kernel.alpha) if given is None else given
        first = self._try(replace(found.kernel, alpha=alpha))
        others = _OF_GROUPS if given is None and self._problem.is_grouped else ()
        tries = [first, *(self._try(replace(first.kernel, alpha=own), first) for own in others)]
        start = min(tries, key=lambda each: each.error)
        descent = self._descent(is_alone=len(self._kernels.found) == 1)
        return descent.in_turn(start, learns_alpha=given is None, learns_factor=self._kernels.learned)

    def _descent(self, is_alone: bool = True) -> Descent[Trial]:
        def may_gain(best: Trial) -> bool:
            return best.error > self._problem.negligible and self._may_try()

        looks_ahead = is_alone and len(self._rows.known) >= _FEWEST_AHEAD
        return Descent(self._try, may_gain, (self._least_alpha, np.inf), self._run.settings.n_jobs, looks_ahead)

    def _may_try(self) -> bool:
        """Return True if one more trial may help, and there is time for it and for the solution."""
        seconds = self._try_seconds + self._solution_seconds
        return not self._kernels.is_perfect and self._run.may_continue(Phase.SOLUTION, seconds)

    def _best_sum(self, best: Trial, *others: Trial) -> Trial:
        """Increase the share of the second kernel while that lowers the error."""
        first = best
        for other in others if self._run.limits.mechanisms.second_kernel and self._may_try() else ():

            def mix(share: float, other: Trial = other) -> Trial:
                (one,), (two,) = first.kernel.parts, other.kernel.parts
                parts = [replace(one, share=share), replace(two, share=1 - share)]
                alpha = first.kernel.alpha**share * other.kernel.alpha ** (1 - share)
                K = _mixed(share, cast(np.ndarray, first.K), 1 - share, cast(np.ndarray, other.K))
                return self._tried(replace(first.kernel, parts=parts, alpha=alpha), K)

            for mixed in side_by_side(mix, _SHARES, self._run.settings.n_jobs):
                if mixed.error >= best.error:
                    break
                best = mixed
        return best

    def _try(self, kernel: KernelSum, near: Trial | None = None) -> Trial:
        """The kernel with its predictions for the rows that judge; a trial with the same parts has the matrix."""
        same = near is not None and near.kernel.parts is kernel.parts
        return self._tried(kernel, near.K if near is not None and same else None)

    def _tried(self, kernel: KernelSum, K: np.ndarray | None) -> Trial:
        problem, rows, start = self._problem, self._rows.judged, self._run.clock.used
        K, alpha = self._matrix(kernel) if K is None else K, kernel.alpha
        try:
            if self._rows.held_out.size:
                predictions = problem.predicted(self._rows.known, K, alpha, precise_inverse_root)
            else:
                predictions = problem.left_out(rows, K, alpha, precise_inverse_root)
        except SingularKernelError:
            return Trial(kernel, np.inf, predictions=np.zeros((len(rows), problem.n_targets)), K=K)
        self._try_seconds = max(self._try_seconds, self._run.clock.used - start)
        losses = problem.losses_of_wide(rows) if self._rows.is_wide else problem.losses(rows)
        return Trial(kernel, float(losses(predictions).mean()), predictions=predictions, K=K)

    def _matrix(self, kernel: KernelSum) -> np.ndarray:
        columns = self._rows.columns(np.append(self._rows.known, self._rows.held_out))
        values = kernel.values(self._rows.frame, self._problem.categorical, self._run.settings.n_jobs)
        return values(columns, columns)


def _mixed(share: float, K: np.ndarray, other_share: float, other_K: np.ndarray) -> np.ndarray:
    """A weighted sum of two kernel matrices."""
    mixed = np.float32(share) * K
    mixed += np.float32(other_share) * other_K
    return mixed
