"""The overall length scale and the penalty of exact machines, of one kernel or a sum, by leave-one-out errors."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from binfeat._common.held_out import SquaredErrors
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.models.fitted.kernel_function import KernelPart, kernel_sum
from binfeat.models.kernel_algebra.leave_one_out import SingularKernelError, least_alpha, precise_inverse_root
from binfeat.models.machines.descent import Descent, Hyperparameters, Try
from binfeat.models.machines.kernel_rows import KernelRows
from binfeat.models.problem import MarginProblem
from binfeat.models.run import Phase, Run
from binfeat.models.search.length_scales import LengthScales
from binfeat.models.search.scaled_kernels import ScaledKernels

_FEWEST_AHEAD = 400  # rows, of which a try takes longer than threads need to begin
_OF_GROUPS = 0.1, 1.0, 10.0  # penalties to start with: those of single rows that nearly agree are far too small
_SHARES = 0.75, 0.5  # of the better kernel in a sum of two


@dataclass(frozen=True, eq=False)
class Tuned:
    """A kernel, or a sum, with a penalty."""

    parts: list[KernelPart]
    alpha: float
    squared_error: float  # of predictions for rows left out, by the variance of the targets
    predictions: np.ndarray | None = None  # for the rows that it was tuned by, if at hand: (n_rows, n_targets)


@dataclass(frozen=True, eq=False)
class _Try(Try):
    """With kernel values, and predictions for rows left out."""

    predictions: np.ndarray  # (n_judged, n_targets)

    @property
    def K(self) -> np.ndarray:
        return cast(np.ndarray, self.params.K)


class ExactTuning:
    """Tries, by predictions for rows held out, or left out one by one, that are few enough for float64."""

    def __init__(self, rows: KernelRows, run: Run, kernels: ScaledKernels, solution_seconds: float) -> None:
        self._rows, self._problem, self._run, self._kernels = rows, rows.problem, run, kernels
        self._solution_seconds = solution_seconds
        self._least_alpha = least_alpha(len(rows.all))
        self._try_seconds = 0.0  # of the longest try so far

    def best(self) -> Tuned:
        """The kernels, tuned, or a sum of them, whatever has the least error; of other losses only the penalty."""
        if isinstance(self._problem, MarginProblem):
            rows = replace(self._rows, problem=self._problem.of_squares)
            squares = ExactTuning(rows, self._run, self._kernels, self._solution_seconds).best()
            return self.of(Hyperparameters(squares.parts, squares.alpha))
        with one_blas_thread():
            tuned = side_by_side(self._tuned, self._kernels.scales, self._run.settings.n_jobs)
            return self._result(self._best_sum(*sorted(tuned, key=lambda each: each.loss)))

    def of(self, known: Hyperparameters) -> Tuned:
        """Known kernels. The penalty is tuned where there are more rows to judge it than it came from."""
        with one_blas_thread():
            tuned = self._try(known)
            if self._run.settings.alpha is None and len(self._rows.known) > known.parts[0].scales.n_rows:
                tuned = self._descent().penalty(tuned)
            return self._result(tuned)

    def _result(self, tuned: _Try) -> Tuned:
        return Tuned(tuned.parts, tuned.alpha, self._squared_error(tuned), tuned.predictions)

    def _squared_error(self, tuned: _Try) -> float:
        problem, rows = self._problem, self._rows.judged
        return SquaredErrors(problem.Y[rows], problem.weights_of(rows))(tuned.predictions).mean()

    def _tuned(self, scales: LengthScales) -> _Try:
        """The overall factor and the penalty, each in turn, that the leave-one-out predictions are best with."""
        given = self._problem.relative_alpha(self._run.settings.alpha)
        alpha = max(self._least_alpha, scales.alpha) if given is None else given
        first = self._try(Hyperparameters([KernelPart(scales, 1.0)], alpha))
        others = _OF_GROUPS if given is None and self._problem.is_grouped else ()
        tries = [first, *(self._try(replace(first.params, alpha=own)) for own in others)]
        start = min(tries, key=lambda each: each.loss)
        descent = self._descent(is_alone=len(self._kernels.scales) == 1)
        return descent.in_turn(start, learns_alpha=given is None, learns_factor=self._kernels.learned)

    def _descent(self, is_alone: bool = True) -> Descent[_Try]:
        def may_gain(best: _Try) -> bool:
            return best.loss > self._problem.negligible and self._may_try()

        looks_ahead = is_alone and len(self._rows.known) >= _FEWEST_AHEAD
        return Descent(self._try, may_gain, (self._least_alpha, np.inf), self._run.settings.n_jobs, looks_ahead)

    def _may_try(self) -> bool:
        """Whether one more try may gain something, and there is time for it, and then for the solution."""
        seconds = self._try_seconds + self._solution_seconds
        return not self._kernels.is_perfect and self._run.may_continue(Phase.SOLUTION, seconds)

    def _best_sum(self, best: _Try, *others: _Try) -> _Try:
        """More and more of the other kernel beside the better one, while that helps."""
        first = best
        for other in others if self._run.limits.mechanisms.second_kernel and self._may_try() else ():

            def mix(share: float, other: _Try = other) -> _Try:
                parts = [replace(first.parts[0], share=share), replace(other.parts[0], share=1 - share)]
                K = _mixed(share, first.K, 1 - share, other.K)
                return self._try(Hyperparameters(parts, first.alpha**share * other.alpha ** (1 - share), K))

            for mixed in side_by_side(mix, _SHARES, self._run.settings.n_jobs):
                if mixed.loss >= best.loss:
                    break
                best = mixed
        return best

    def _try(self, params: Hyperparameters) -> _Try:
        """Predictions for the rows that judge."""
        problem, rows, start = self._problem, self._rows.judged, self._run.clock.used
        K = self._matrix(params.parts) if params.K is None else params.K
        known, alpha = replace(params, K=K), params.alpha
        try:
            if self._rows.held_out.size:
                predictions = problem.predicted(self._rows.known, K, alpha, precise_inverse_root)
            else:
                predictions = problem.left_out(rows, K, alpha, precise_inverse_root)
        except SingularKernelError:
            return _Try(known, np.inf, np.zeros((len(rows), problem.n_targets)))
        self._try_seconds = max(self._try_seconds, self._run.clock.used - start)
        losses = problem.losses_of_wide(rows) if self._rows.is_wide else problem.losses(rows)
        return _Try(known, float(losses(predictions).mean()), predictions)

    def _matrix(self, parts: list[KernelPart]) -> np.ndarray:
        columns = self._rows.columns(np.append(self._rows.known, self._rows.held_out))
        kernel = kernel_sum(parts, self._rows.frame, self._problem.categorical, self._run.settings.n_jobs)
        return kernel(columns, columns)


def _mixed(share: float, K: np.ndarray, other_share: float, other_K: np.ndarray) -> np.ndarray:
    """A weighted sum of two kernel matrices."""
    mixed = np.float32(share) * K
    mixed += np.float32(other_share) * other_K
    return mixed
