"""Exact kernel machines of few rows: overall length scale and penalty by leave-one-out errors, one kernel or a sum."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from binfeat._common.held_out import SquaredErrors
from binfeat._engine.policy import one_blas_thread, side_by_side, threads_to_factorise
from binfeat._machine.fitted.functions import ExactFunction
from binfeat._machine.kernel_algebra.leave_one_out import (
    LEAST_PRECISE_ALPHA,
    MOST_PRECISE_ROWS,
    SingularKernelError,
    inverse_root,
    precise_inverse_root,
    residuals,
)
from binfeat._machine.kernel_algebra.matrices import Frame, Linear, kernel_matrix
from binfeat._machine.kernel_algebra.solve import matrix_to_solve, solve_bytes, solve_kernel
from binfeat._machine.kernel_algebra.sums import KernelSum
from binfeat._machine.machines.feature_bytes import fit_bytes
from binfeat._machine.search.length_scales import LengthScales

_ROWS = 1500  # on which leave-one-out errors are compared
_ROUNDS = 2  # of both, as finer kernels take other penalties
_FACTOR, _DECREASE = 1.5, np.sqrt(10.0)  # between two overall factors, and two penalties
_LEAST_ALPHA = 1e-3  # of more rows than float64 is worth its time for
_SHARES = 0.75, 0.5  # of the better kernel in a sum of two
_LINEAR_SHARES = 0.5, 0.9, 0.99  # of what the linear kernel counts for beside them, each by its own penalty
_MOST_NOISE = 0.9  # share of the variance of the targets
_NEAR, _NEAR_ROWS = 2.0, 400  # times the error so far, up to which a linear machine's is near, and rows that tell
_PENALTIES = 10.0 ** np.arange(-3.0, 3.0)  # of a linear machine, by the rows
_PAIR_SECONDS, _INPUT_SECONDS = 8e-9, 3e-10  # of a pair of rows in a solve, and of each of its inputs
_CHOICE_BYTES = 9  # of a pair of rows that choices are made by: matrices side by side
_SHARE_OF_TIME = 0.5  # that an exact machine may take
_MOST_GROWTH, _DAMPING = 0.5, 0.5  # powers of the number of rows, by which factor and penalty are continued


def exact_seconds(n_rows, n_inputs):
    """What the solution for so many rows is expected to take, on a slow processor."""
    return n_rows**2 * (_PAIR_SECONDS + n_inputs * _INPUT_SECONDS)


def most_exact_rows(problem):
    """Rows that an exact machine may have: its matrix and the solution take memory and time by their square."""
    limits, budget, n_inputs = problem.limits, problem.budget, problem.table.shape[1]
    n_rows = min(limits.exact_rows, int(np.sqrt(limits.exact_work / max(1, n_inputs))))
    taken = np.maximum.accumulate(exact_bytes(np.arange(n_rows + 1), problem.Y.shape[1]))  # by these rows, or by fewer
    n_rows = int(np.searchsorted(taken, fit_bytes(problem.machine.max_bytes), "right")) - 1
    while n_rows and not budget.allows(exact_seconds(n_rows, n_inputs), _SHARE_OF_TIME):
        n_rows -= -(-n_rows // 8)
    return n_rows


def exact_bytes(n_rows, n_targets):
    """Memory that a machine of so many rows takes beside its table, or of each of an array of numbers."""
    return solve_bytes(n_rows, n_targets) + _CHOICE_BYTES * np.minimum(n_rows, _ROWS) ** 2


@dataclass(frozen=True, eq=False)
class Part:
    """A kernel of a sum."""

    scales: LengthScales
    factor: float  # of its gamma
    share: float = 1.0

    @property
    def gamma(self):
        return self.factor * self.scales.gamma


@dataclass(frozen=True, eq=False)
class Tuned:
    """A kernel, or a sum, with a penalty, and the leave-one-out predictions with them."""

    parts: list
    alpha: float
    loss: float
    predictions: np.ndarray  # (n_rows, n_targets)
    K: np.ndarray  # (n_rows, n_rows), float32: its values


class ExactChoice:
    """An exact kernel machine on all rows, or some.

    Parameters
    ----------
    problem : Problem
    kernels : KernelChoice
        Done.

    Attributes
    ----------
    rows : ndarray of int
        Rows with leave-one-out predictions, which choices are made by.
    predictions : ndarray of shape (len(rows), n_targets)
    error : float
    function : ExactFunction
    intercept : ndarray of shape (n_targets,)
    alpha : float
    scales : LengthScales
        Of the kernel with the largest share.
    gamma : ndarray of shape (n_inputs,)
        Likewise.
    """

    def __init__(self, problem, kernels):
        self._problem, self._kernels = problem, kernels
        train = self._weighty(problem.train)
        self._all = np.append(train, self._weighty(problem.held_out)) if problem.machine.refit else train
        known = self._all if problem.machine.cv is None else train
        self.rows = known[np.linspace(0, len(known) - 1, min(len(known), _ROWS)).astype(int)]
        self._frame = Frame.of(kernels.X[self.rows], problem.categorical)
        few = len(self._all) <= MOST_PRECISE_ROWS
        self._root: Any = precise_inverse_root if few else inverse_root
        self._least_alpha = LEAST_PRECISE_ALPHA * len(self._all) if few else _LEAST_ALPHA
        self._try_seconds = 0.0  # of the longest try so far

    def choose(self):
        """Tune the kernels, and try sums of them."""
        found: dict[object, Tuned] = {}

        def tune(scales):
            found[scales] = self._tuned(scales)

        with one_blas_thread():
            side_by_side(tune, self._kernels.found, self._problem.n_jobs)
            tuned = [found[scales] for scales in self._kernels.found]
            self._best = self._beside_linear(self._best_sum(*sorted(tuned, key=_loss)))
        self.predictions, self.error = self._best.predictions, self._best.loss

    def take(self, parts, alpha):
        """Take kernels as they are. The penalty is tuned where there are more rows to judge it than it came from."""
        with one_blas_thread():
            self._best = self._try(parts, alpha)
            if self._tunes_alpha and len(self.rows) > parts[0].scales.n_rows:
                self._best = self._descend(self._best, self._with_alpha, _DECREASE, set())
        self.predictions, self.error = self._best.predictions, self._best.loss

    def _weighty(self, rows):
        weights = self._problem.weights_of(rows)
        return rows if weights is None else rows[weights[:, 0] > 0]

    def _relative_weights(self, rows):
        weights = self._problem.weights_of(rows)
        return None if weights is None else weights[:, 0] / self._problem.mean_weight

    def _loss(self, predictions):
        return float(self._problem.loss_of(self.rows)(predictions).mean())

    def _tuned(self, scales):
        """The overall factor and the penalty, each in turn, that the leave-one-out predictions are best with."""
        problem = self._problem
        alpha = scales.alpha if self._tunes_alpha else float(problem.machine.alpha) / problem.mean_weight
        seen: set[tuple] = set()
        best = self._try([Part(scales, 1.0)], alpha)
        for _ in range(_ROUNDS):
            before = best
            if self._tunes_alpha:
                best = self._descend(best, self._with_alpha, _DECREASE, seen)
            if self._kernels.learned:
                best = self._descend(best, self._with_factor, _FACTOR, seen)
            if best is before:
                break
        return best

    def _with_alpha(self, one, step):
        return one.parts, max(self._least_alpha, one.alpha * step), one.K

    def _with_factor(self, one, step):
        return [replace(part, factor=part.factor * step) for part in one.parts], one.alpha, None

    @property
    def _tunes_alpha(self):
        return self._problem.machine.alpha == "auto"

    def _descend(self, best, moved, step, seen):
        """Steps down while that helps, or else steps up; what was seen before, and was not better, is not tried again.

        Of what is seen the best is always at hand.
        """
        for move in (1 / step, step):
            before = best
            seen.add(_place(best.parts, best.alpha))
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

    def _may_try(self):
        """Whether one more try may gain something, and there is time for it, and then for the solution."""
        seconds = self._try_seconds + exact_seconds(len(self._all), self._kernels.X.shape[1])
        return not self._kernels.is_perfect and self._problem.budget.allows(seconds)

    def _best_sum(self, best, *others):
        """More and more of the other kernel beside the better one, while that helps."""
        first, mixed = best, {}
        for other in others if self._may_try() else ():

            def mix(share, other=other):
                parts = [replace(first.parts[0], share=share), replace(other.parts[0], share=1 - share)]
                K = _mixed(share, first.K, 1 - share, other.K)
                mixed[share] = self._try(parts, first.alpha**share * other.alpha ** (1 - share), K)

            side_by_side(mix, _SHARES, self._problem.n_jobs)
            for share in _SHARES:
                if mixed[share].loss >= best.loss:
                    break
                best = mixed[share]
        return best

    def _beside_linear(self, best):
        """More and more of a linear kernel beside the others, while that helps."""
        first, linear = best, self._linear(best)
        if linear is None or not self._may_try():
            return best
        linear_K = self._matrix([linear])
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

    def _linear(self, best):
        """The linear kernel of numbers of variance 1, or None; its penalty is noise by signal."""
        problem, numbers = self._problem, ~self._problem.categorical
        if problem.machine.kernel != "auto" or not (self._tunes_alpha and numbers.any()):
            return None
        error = self._squared_error(best)
        some = self.rows[:_NEAR_ROWS]
        if _linear_error(self._columns(some)[numbers], problem.Y[some]) > _NEAR * error:
            return None
        gamma = np.where(numbers, 1 / (np.count_nonzero(numbers) * self._frame.unit**2), 0.0)
        noise = min(_MOST_NOISE, error)
        alpha = max(self._least_alpha, noise / (1 - noise))
        return Part(LengthScales(Linear(), gamma, alpha, error, best.parts[0].scales.n_rows, 0), 1.0)

    def _squared_error(self, tuned):
        """Of leave-one-out predictions, by the variance of the targets."""
        problem, rows = self._problem, self.rows
        return SquaredErrors(problem.Y[rows], problem.weights_of(rows))(tuned.predictions).mean()

    def _try(self, parts, alpha, K=None):
        """The leave-one-out predictions with parts whose kernel matrix may be known."""
        problem, rows, start = self._problem, self.rows, self._problem.budget.used
        Y, K = problem.Y[rows].astype(np.float32), self._matrix(parts) if K is None else K
        try:
            predictions = problem.Y[rows] - residuals(K, alpha, self._relative_weights(rows), Y, self._root)
        except SingularKernelError:
            return Tuned(parts, alpha, np.inf, np.zeros(Y.shape), K)
        self._try_seconds = max(self._try_seconds, problem.budget.used - start)
        return Tuned(parts, alpha, self._loss(predictions), predictions, K)

    def _columns(self, rows):
        return self._frame.columns(self._kernels.X[rows])

    def _matrix(self, parts):
        """Values for the rows that choices are made by."""
        columns = self._columns(self.rows)
        return self._kernel(parts)(columns, columns)

    def _kernel(self, parts):
        problem, scales = self._problem, [part.scales for part in parts]
        matrices = [kernel_matrix(each.kernel, problem.categorical, problem.n_jobs, each.linear_map) for each in scales]
        gammas = [self._frame.gamma(part.scales.kernel, part.gamma) for part in parts]
        return KernelSum(matrices, [part.share for part in parts], gammas, problem.n_jobs)

    def _continued(self, tuned, n_rows):
        """Parts and penalty for more rows than they were found with, continued as they went from fewer."""
        some, few = len(self.rows), max(1, tuned.parts[0].scales.n_rows)
        if n_rows <= some or some <= few:
            return tuned.parts, tuned.alpha
        growth, further = np.log(some / few), np.log(n_rows / some)
        parts = []
        for part in tuned.parts:
            power = np.clip(np.log(part.factor) / growth, 0.0, _MOST_GROWTH)
            parts.append(replace(part, factor=part.factor * np.exp(power * further)))
        alpha = tuned.alpha
        if self._tunes_alpha:
            before = np.exp(sum(part.share * np.log(part.scales.alpha) for part in parts))
            power = np.clip(np.log(alpha / before) / growth, -1.0, 0.0)
            alpha = max(min(alpha, _LEAST_ALPHA), alpha * np.exp(_DAMPING * power * further))
        return parts, alpha

    def solve(self, most=None):
        """Solve for all rows, or so many at most, with more or less of what fewer of them were best with."""
        problem, rows = self._problem, self._all[:most]
        parts, alpha = self._continued(self._best, len(rows))
        X, Y = self._columns(rows), problem.Y[rows].astype(np.float32)
        kernel, weights = self._kernel(parts), self._relative_weights(rows)
        with threads_to_factorise(len(rows)):
            K = matrix_to_solve(kernel, X, Y.shape[1])
            coef, alpha = solve_kernel(K, alpha, weights, Y, np.sqrt(self._squared_error(self._best)))
        self.alpha = alpha * problem.mean_weight if self._tunes_alpha else float(problem.machine.alpha)
        main = max((part for part in parts if not isinstance(part.scales.kernel, Linear)), key=_share)
        self.scales, self.gamma = main.scales, main.gamma
        self.kernel_name = _named(parts)
        self.intercept = coef.sum(axis=0, dtype=np.float64)
        self.function = ExactFunction.of(parts, problem.categorical, X, self._frame, alpha, weights, coef)


def _linear_error(columns, Y):
    """What ridge regression leaves of targets, by generalised cross-validation (Golub, Heath & Wahba 1979)."""
    X, Y = (values - values.mean(axis=0) for values in (columns.T, Y))
    values, U = np.linalg.eigh(X @ X.T)
    kept = values / (values + len(X) * _PENALTIES[:, np.newaxis])
    left = (1 - kept) ** 2 @ ((U.T @ Y) ** 2).sum(axis=1)
    return float((left / Y.size / (1 - kept.sum(axis=1) / len(X)) ** 2).min())


def _place(parts, alpha):
    """What a try differs from others of the same kernels in, but for rounding."""
    return *(np.float32(part.factor) for part in parts), np.float32(alpha)


def _mixed(share, K, other_share, other_K):
    """A weighted sum of two kernel matrices."""
    mixed = np.float32(share) * K
    mixed += np.float32(other_share) * other_K
    return mixed


def _named(parts):
    if len(parts) == 1:
        return repr(parts[0].scales.kernel)
    return " + ".join(f"{part.share:.3g} {part.scales.kernel!r}" for part in parts)


def _share(part):
    return part.share


def _loss(tuned):
    return tuned.loss
