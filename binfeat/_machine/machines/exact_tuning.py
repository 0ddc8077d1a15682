"""The overall length scale and the penalty of exact machines, of one kernel or a sum, by leave-one-out errors."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from binfeat._common.held_out import SquaredErrors
from binfeat._common.subsets import evenly_spaced
from binfeat._engine.policy import one_blas_thread, side_by_side
from binfeat._machine.fitted.kernel_function import Part, kernel_sum
from binfeat._machine.kernel_algebra.leave_one_out import (
    LEAST_PRECISE_ALPHA,
    MOST_PRECISE_ROWS,
    SingularKernelError,
    inverse_root,
    precise_inverse_root,
)
from binfeat._machine.kernel_algebra.matrices import Frame, Linear
from binfeat._machine.kernel_algebra.sums import KernelSum
from binfeat._machine.machines.exact_size import TUNING_ROWS
from binfeat._machine.problem import MarginProblem, Problem
from binfeat._machine.run import Phase, Run
from binfeat._machine.search.length_scales import LengthScales
from binfeat._machine.search.scaled_kernels import ScaledKernels

_ROUNDS = 2  # of both, as finer kernels take other penalties
_FACTOR, _DECREASE = 1.5, np.sqrt(10.0)  # between two overall factors, and two penalties
LEAST_ALPHA = 1e-3  # of more rows than float64 is worth its time for
_SHARES = 0.75, 0.5  # of the better kernel in a sum of two
_LINEAR_SHARES = 0.5, 0.9, 0.99  # of what the linear kernel counts for beside them, each by its own penalty
_MOST_NOISE = 0.9  # share of the variance of the targets
_NEAR, _NEAR_ROWS = 2.0, 400  # times the error so far, up to which a linear machine's is near, and rows that tell
_PENALTIES = 10.0 ** np.arange(-3.0, 3.0)  # of a linear machine, by the rows

_Place = tuple[np.float32, ...]  # of a try


@dataclass(frozen=True, eq=False)
class Tuned:
    """A kernel, or a sum, with a penalty, and the leave-one-out predictions with them."""

    parts: list[Part]
    alpha: float
    loss: float
    predictions: np.ndarray  # (n_rows, n_targets)
    K: np.ndarray  # (n_rows, n_rows), float32: its values
    ratio: float = 1.0  # of the penalty to that of squares

    @property
    def place(self) -> _Place:
        return _place(self.parts, self.alpha)


class ExactTuning:
    """Tries, by leave-one-out predictions of some rows."""

    def __init__(self, problem: Problem, run: Run, kernels: ScaledKernels, solution_seconds: float) -> None:
        self._problem, self._run, self._kernels = problem, run, kernels
        self._solution_seconds = solution_seconds
        train = self._weighty(problem.train)
        # Rows that the machine may have, those that may be left out, and those of them that are in tries.
        self.all_rows = np.append(train, self._weighty(problem.held_out)) if run.settings.refits else train
        self.known = train if run.settings.has_cv else self.all_rows
        self.rows = self.known[evenly_spaced(len(self.known), TUNING_ROWS)]
        self.frame = Frame.of(kernels.X[self.rows], problem.categorical)
        few = len(self.all_rows) <= MOST_PRECISE_ROWS
        self._root = precise_inverse_root if few else inverse_root
        self._least_alpha = LEAST_PRECISE_ALPHA * len(self.all_rows) if few else LEAST_ALPHA
        self._try_seconds = 0.0  # of the longest try so far

    def best(self) -> Tuned:
        """The kernels, tuned, or a sum of them, whatever has the least error; of other losses only the penalty."""
        if isinstance(self._problem, MarginProblem):
            squares = ExactTuning(self._problem.of_squares, self._run, self._kernels, self._solution_seconds).best()
            of_loss = self.of(squares.parts, squares.alpha)
            return replace(of_loss, ratio=of_loss.alpha / squares.alpha)
        tuned_of: dict[LengthScales, Tuned] = {}

        def tune(scales: LengthScales) -> None:
            tuned_of[scales] = self._tuned(scales)

        with one_blas_thread():
            side_by_side(tune, self._kernels.scales, self._run.settings.n_jobs)
            tuned = sorted((tuned_of[scales] for scales in self._kernels.scales), key=lambda tuned: tuned.loss)
            return self._beside_linear(self._best_sum(*tuned))

    def of(self, parts: list[Part], alpha: float) -> Tuned:
        """Known kernels. The penalty is tuned where there are more rows to judge it than it came from."""
        with one_blas_thread():
            tuned = self._try(parts, alpha)
            if self._run.settings.alpha is None and len(self.rows) > parts[0].scales.n_rows:
                tuned = self._descend(tuned, self._with_alpha, _DECREASE, set())
        return tuned

    def squared_error(self, tuned: Tuned) -> float:
        """Of leave-one-out predictions, by the variance of the targets."""
        problem, rows = self._problem, self.rows
        return SquaredErrors(problem.Y[rows], problem.weights_of(rows))(tuned.predictions).mean()

    def kernel(self, parts: list[Part]) -> KernelSum:
        return kernel_sum(parts, self.frame, self._problem.categorical, self._run.settings.n_jobs)

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """Rows as columns of the kernels."""
        return self.frame.columns(self._kernels.X[rows])

    def _weighty(self, rows: np.ndarray) -> np.ndarray:
        weights = self._problem.weights_of(rows)
        return rows if weights is None else rows[weights[:, 0] > 0]

    def _tuned(self, scales: LengthScales) -> Tuned:
        """The overall factor and the penalty, each in turn, that the leave-one-out predictions are best with."""
        given = self._run.settings.alpha
        seen: set[_Place] = set()
        best = self._try([Part(scales, 1.0)], scales.alpha if given is None else given / self._problem.mean_weight)
        for _ in range(_ROUNDS):
            before = best
            if given is None:
                best = self._descend(best, self._with_alpha, _DECREASE, seen)
            if self._kernels.learned:
                best = self._descend(best, _with_factor, _FACTOR, seen)
            if best is before:
                break
        return best

    def _with_alpha(self, tuned: Tuned, step: float) -> tuple[list[Part], float, np.ndarray | None]:
        return tuned.parts, max(self._least_alpha, tuned.alpha * step), tuned.K

    def _descend(self, best: Tuned, moved: Callable, step: float, seen: set[_Place]) -> Tuned:
        """Steps down while that helps, or else steps up; what was seen before, and was not better, is not tried again.

        Of what is seen the best is always at hand.
        """
        for move in (1 / step, step):
            before = best
            seen.add(best.place)
            while best.loss > self._problem.negligible and self._may_try():
                candidate = moved(best, move)
                place = _place(*candidate[:2])
                if place in seen:
                    break
                seen.add(place)
                other = self._try(*candidate)
                if other.loss >= best.loss:
                    break
                best = other
            if best is not before:
                break
        return best

    def _may_try(self) -> bool:
        """Whether one more try may gain something, and there is time for it, and then for the solution."""
        seconds = self._try_seconds + self._solution_seconds
        return not self._kernels.is_perfect and self._run.may_continue(Phase.SOLUTION, seconds)

    def _best_sum(self, best: Tuned, *others: Tuned) -> Tuned:
        """More and more of the other kernel beside the better one, while that helps."""
        first, mixed = best, dict[float, Tuned]()
        for other in others if self._may_try() else ():

            def mix(share: float, other: Tuned = other) -> None:
                parts = [replace(first.parts[0], share=share), replace(other.parts[0], share=1 - share)]
                K = _mixed(share, first.K, 1 - share, other.K)
                mixed[share] = self._try(parts, first.alpha**share * other.alpha ** (1 - share), K)

            side_by_side(mix, _SHARES, self._run.settings.n_jobs)
            for share in _SHARES:
                if mixed[share].loss >= best.loss:
                    break
                best = mixed[share]
        return best

    def _beside_linear(self, best: Tuned) -> Tuned:
        """More and more of a linear kernel beside the others, while that helps."""
        first, linear = best, self._linear(best)
        if linear is None or not self._may_try():
            return best
        columns = self.columns(self.rows)
        linear_K = self.kernel([linear])(columns, columns)
        for share in _LINEAR_SHARES:
            own, others = share / linear.scales.alpha, (1 - share) / first.alpha
            alpha = 1 / (own + others)
            parts = [replace(part, share=alpha * others * part.share) for part in first.parts]
            K = _mixed(alpha * others, first.K, alpha * own, linear_K)
            both = self._try([*parts, replace(linear, share=alpha * own)], alpha, K)
            if both.loss >= best.loss:
                break
            best = both
        if best is not first:
            best = self._descend(best, self._with_alpha, _DECREASE, set())
        return best

    def _linear(self, best: Tuned) -> Part | None:
        """The linear kernel of numbers of variance 1, where it may be of use; its penalty is noise by signal."""
        problem, settings, numbers = self._problem, self._run.settings, ~self._problem.categorical
        if settings.kernel is not None or settings.alpha is not None or not numbers.any():
            return None
        error = self.squared_error(best)
        some = self.rows[:_NEAR_ROWS]
        if _linear_error(self.columns(some)[numbers], problem.Y[some]) > _NEAR * error:
            return None
        gamma = np.where(numbers, 1 / (np.count_nonzero(numbers) * self.frame.unit**2), 0.0)
        noise = min(_MOST_NOISE, error)
        alpha = max(self._least_alpha, noise / (1 - noise))
        return Part(LengthScales(Linear(), gamma, alpha, error, best.parts[0].scales.n_rows, 0), 1.0)

    def _try(self, parts: list[Part], alpha: float, K: np.ndarray | None = None) -> Tuned:
        """The leave-one-out predictions with parts whose kernel matrix may be known."""
        problem, rows, start = self._problem, self.rows, self._run.clock.used
        if K is None:
            columns = self.columns(rows)
            K = self.kernel(parts)(columns, columns)
        try:
            predictions = problem.left_out(rows, K, alpha, self._root)
        except SingularKernelError:
            return Tuned(parts, alpha, np.inf, np.zeros((len(rows), problem.n_targets)), K)
        self._try_seconds = max(self._try_seconds, self._run.clock.used - start)
        return Tuned(parts, alpha, float(problem.losses(rows)(predictions).mean()), predictions, K)


def _with_factor(tuned: Tuned, step: float) -> tuple[list[Part], float, np.ndarray | None]:
    return [replace(part, factor=part.factor * step) for part in tuned.parts], tuned.alpha, None


def _linear_error(columns: np.ndarray, Y: np.ndarray) -> float:
    """What ridge regression leaves of targets, by generalised cross-validation (Golub, Heath & Wahba 1979)."""
    X, Y = (values - values.mean(axis=0) for values in (columns.T, Y))
    values, U = np.linalg.eigh(X @ X.T)
    kept = values / (values + len(X) * _PENALTIES[:, np.newaxis])
    left = (1 - kept) ** 2 @ ((U.T @ Y) ** 2).sum(axis=1)
    return float((left / Y.size / (1 - kept.sum(axis=1) / len(X)) ** 2).min())


def _place(parts: list[Part], alpha: float) -> _Place:
    """What a try differs from others of the same kernels in, but for rounding."""
    return *(np.float32(part.factor) for part in parts), np.float32(alpha)


def _mixed(share: float, K: np.ndarray, other_share: float, other_K: np.ndarray) -> np.ndarray:
    """A weighted sum of two kernel matrices."""
    mixed = np.float32(share) * K
    mixed += np.float32(other_share) * other_K
    return mixed
