"""The search for one length scale per input by the gradient of the leave-one-out error of exact models."""

from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from binfeat._common.arrays import Scratch, quotients
from binfeat._common.held_out import is_significantly_less, n_independent, of_random_groups
from binfeat._common.subsets import cached_parts, thinned
from binfeat.kernels.base import Kernel
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.leave_one_out import (
    Groups,
    LeaveOneOut,
    SingularKernelError,
    Weights,
    constant_squares,
    leave_one_out,
    residuals,
    weighted_squares,
)
from binfeat.length_scales.limits import SEARCH
from binfeat.length_scales.matrices import Standardizer, differentiable_matrix

_MOMENTUM, _SECOND = 0.9, 0.99


class Adam:
    """Steps of about the same length in all parameters (Kingma & Ba 2015), for an array of parameters."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._mean, self._square, self._n_steps = np.zeros(shape), np.zeros(shape), 0

    def step(self, slopes: np.ndarray | float) -> np.ndarray:
        """Return the step to subtract from the parameters, for a rate of 1."""
        self._n_steps += 1
        self._mean += (1 - _MOMENTUM) * (slopes - self._mean)
        self._square += (1 - _SECOND) * (slopes**2 - self._square)
        direction = self._mean / (1 - _MOMENTUM**self._n_steps)
        scale = np.sqrt(self._square / (1 - _SECOND**self._n_steps))
        return quotients(direction, scale)


class KernelSteps:
    """Adam on the logarithms of the gammas of all parts of a kernel, of their shares, and of the penalty.

    A step follows the mean slope of the logarithms of leave-one-out errors of some sets of rows, plus a prior: the
    gammas of a part stay together, or in proportion to the initial gammas; in that case, each part also has a common
    factor.
    """

    def __init__(
        self,
        gammas: np.ndarray,  # (n_parts, n_inputs), for standardized columns; zeros stay
        shares: np.ndarray,  # (n_parts,)
        alpha: float,
        *,
        prior: float,
        least_alpha: float,
        alpha_rate: float = 1.0,  # rate of the penalty, relative to the rate of gammas
        factor_rate: float = 1.0,  # rate of the common factors, relative to the rate of gammas
        keeps_proportions: bool = False,
        learns_gamma: bool = True,
        learns_shares: bool = True,
        learns_alpha: bool = True,
    ) -> None:
        self._live, self.learns_alpha = gammas > 0, learns_alpha
        self._moves, self._learns_shares = learns_gamma & self._live, learns_shares and len(shares) > 1
        self._logs = np.log(np.where(self._live, gammas, 1.0))
        self._start, self._has_factors = self._logs if keeps_proportions else 0.0, keeps_proportions
        self._log_shares, self._log_alpha = np.log(shares), float(np.log(alpha))
        self._prior, self._least_alpha = 2 * prior, least_alpha
        self._alpha_rate, self._factor_rate = alpha_rate, factor_rate
        shapes = self._logs.shape, (len(self._logs), 1), self._log_shares.shape, ()
        self._of_gammas, self._of_factors, self._of_shares, self._of_alpha = map(Adam, shapes)

    @property
    def gammas(self) -> np.ndarray:
        return np.exp(self._logs) * self._live

    @property
    def shares(self) -> np.ndarray:
        shares = np.exp(self._log_shares)
        return shares / shares.sum()

    @property
    def alpha(self) -> float:
        return float(np.exp(self._log_alpha))

    def times(self, factors: np.ndarray | float) -> Self:
        """Return the same steps with gammas multiplied by factors."""
        other = copy(self)
        other._logs = self._logs + np.log(factors)
        return other

    def step(self, left_out: list[LeaveOneOut], rate: float) -> None:
        """Make a step, given the slopes of some sets of rows with positive errors."""
        slopes = np.mean([own.slopes / own.error for own in left_out], axis=0)
        by_gamma, by_share = slopes[: self._logs.size].reshape(self._logs.shape), slopes[self._logs.size :]
        by_gamma = np.where(self._moves, by_gamma + self._prior * self._apart, 0.0)
        steps = self._of_gammas.step(by_gamma)
        if self._has_factors:
            factors = self._of_factors.step(by_gamma.sum(axis=1, keepdims=True))
            steps += self._factor_rate * factors * self._moves
        self._logs = self._logs - rate * steps
        if self._learns_shares:
            self._log_shares = self._log_shares - rate * self._of_shares.step(by_share - self.shares * by_share.sum())
        if self.learns_alpha:
            slope = float(np.mean([own.alpha_slope / own.error for own in left_out]))
            moved = self._log_alpha - self._alpha_rate * rate * float(self._of_alpha.step(slope))
            self._log_alpha = float(np.clip(moved, np.log(self._least_alpha), np.log(MOST_ALPHA)))

    @property
    def _apart(self) -> np.ndarray:
        """Return deviations of the gammas of each part from their mean change."""
        moved = np.where(self._moves, self._logs - self._start, 0.0)
        means = moved.sum(axis=1, keepdims=True) / np.maximum(1, self._moves.sum(axis=1, keepdims=True))
        return moved - means


@dataclass(frozen=True)
class SearchPlan:
    """Numbers of steps and of rows per step, and the steps after which searches are compared."""

    n_steps: int
    rows: int
    late_rows: int  # rows of the last steps

    @classmethod
    def of(cls, n_steps: int, n_rows: int) -> Self:
        """Plan for a table of `n_rows` rows: `n_steps` steps, or more for the finer kernels of many rows."""
        times = np.clip(n_rows / SEARCH.many_rows, 1.0, SEARCH.most_times_steps)
        rows = int(np.clip(n_rows // SEARCH.table_rows, SEARCH.step_rows, SEARCH.most_step_rows))
        late_rows = max(rows, min(SEARCH.late_step_rows, n_rows // SEARCH.late_table_rows))
        return cls(round(n_steps * times), rows, late_rows)

    @property
    def half(self) -> int:
        """Step after which optional kernels must be better."""
        return self.n_steps // 2

    @property
    def early(self) -> int:
        """Step after which kernels are compared: two thirds of the steps."""
        return self.n_steps - self.n_steps // 3

    @property
    def kernel_selection(self) -> int:
        """Step after which radial kernels are compared."""
        return min(self.early + SEARCH.look_steps, self.n_steps)

    def n_looks(self, needs_kernel: bool) -> int:
        """Return how often a search reads the clock; `needs_kernel` is True if a kernel is required."""
        ends = 0, *([self.half] if needs_kernel else []), self.early, self.kernel_selection, self.n_steps
        return sum(map(n_chunks, ends[:-1], ends[1:]))


def n_chunks(done: int, last: int) -> int:
    """Number of chunks of steps, with a reading of the clock after each chunk."""
    return max(1, -(-(last - done) // SEARCH.look_steps))


LEAST_ALPHA, MOST_ALPHA = 1e-3, 1e3
MOST_INPUTS = int(SEARCH.step_work / SEARCH.fewest_step_rows**2)  # inputs of a step with the fewest rows


def mean_distances(X: np.ndarray, categorical: np.ndarray, rng: np.random.Generator, power: int = 1) -> np.ndarray:
    """Return the mean distance of two rows along each input, to a power; for categories how often rows differ."""
    order, total = rng.permutation(len(X)), np.zeros((0, X.shape[1]))
    others = np.roll(order, 1)  # no row is paired with itself
    for part in cached_parts(len(X), X.shape[1]):
        difference = np.abs(X[order[part]] - X[others[part]]) ** power
        difference[:, categorical] = difference[:, categorical] > 0
        total = np.concatenate([total, difference]).sum(axis=0, keepdims=True)  # summed in the order of rows
    return total[0] / len(X)


def exponent_shares(gamma: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Return the share of each input in the kernel's mean exponent."""
    shares = gamma / max(gamma.max(), np.finfo(float).tiny) * distance
    return shares / max(shares.sum(), np.finfo(float).tiny)


class LengthScaleSearch:
    """Adam on the logarithms of all length scales and of the penalty, with new rows in each step.

    It minimizes the logarithm of the leave-one-out error on the rows of the step, plus a prior: with few rows and many
    inputs, the logarithms of gamma stay together. The initial gamma of each input follows from its mean distance; if
    inputs are not `scaled`, all are equal. If alpha is None, it is learned.

    Groups are left out as a whole, because inputs that are constant within groups would identify the group of a row.
    A step draws some of the groups, and the prior counts groups, because rows of a group have similar errors.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: np.ndarray,  # (n_rows, n_inputs)
        Y: np.ndarray,  # (n_rows, n_targets), with unit scale
        weights: Weights,
        categorical: np.ndarray,
        seed: int,
        *,
        alpha: float | None = None,
        scaled: bool = True,
        starts_shorter: bool = True,
        groups: Groups = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel, self.matrix = kernel, differentiable_matrix(kernel, categorical, n_jobs)
        self._rng = np.random.default_rng(seed)
        self._X, self._Y, self._weights, self._groups = X, Y, weights, groups
        self.used = np.arange(len(X)) if weights is None else np.flatnonzero(weights > 0)  # rows with positive weight
        some = X[self._rng.permutation(self.used)[: SEARCH.distance_rows]]
        self.standardizer = Standardizer.of(some, categorical)
        self._distance = mean_distances(some, categorical, self._rng, kernel.power)
        self._live = self._distance > 0
        distance = self._distance if scaled else np.where(self._live, self._distance.mean(), 0.0)
        share = SEARCH.start_exponent / max(1.0, float(np.count_nonzero(self._live)))
        with np.errstate(divide="ignore"):
            gamma = self.standardizer.gamma(kernel, quotients(share, distance))
        prior = SEARCH.prior * min(1.0, np.sqrt(SEARCH.prior_inputs / len(gamma))) / n_independent(self.used, groups)
        self._steps = KernelSteps(
            gamma[np.newaxis],
            np.ones(1),
            0.5 if alpha is None else max(alpha, np.finfo(float).tiny),
            prior=prior,
            least_alpha=LEAST_ALPHA,
            learns_alpha=alpha is None,
        )
        self.learns_alpha = alpha is None
        self._order, self._n_drawn = self._rng.permutation(self.used), 0
        self._starts_shorter = starts_shorter
        self.n_rows = 0  # rows of the last step
        self.n_done = 0  # steps, including steps that failed because of a singular kernel
        self.errors: list[float] = []  # leave-one-out errors of the rows of each step, before the step
        self.gammas: list[np.ndarray] = []  # before each step
        self._scratch = Scratch()

    @property
    def gamma(self) -> np.ndarray:
        return self.standardized_gamma / self.standardizer.gamma(self.kernel, 1.0)

    @property
    def standardized_gamma(self) -> np.ndarray:
        """Return gammas for columns of the rows."""
        return self._steps.gammas[0]

    @property
    def alpha(self) -> float:
        return self._steps.alpha

    @property
    def error(self) -> float:
        """Return the mean error of the last 10 steps, on equal rows for searches with equal seeds and steps."""
        return float(np.mean(self.errors[-10:])) if self.errors else np.nan

    @property
    def found(self) -> Trial:
        """Return the kernel after the steps so far."""
        kernel = KernelSum([KernelPart(self.kernel, self.gamma)], self.alpha, self.n_rows)
        return Trial(kernel, self.error, len(self.errors))

    def part(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, Weights]:
        """Return columns, targets and weights of the rows with these numbers."""
        weights = None if self._weights is None else self._weights[rows]
        return self.standardizer.columns(self._X[rows]), self._Y[rows].astype(np.float32), weights

    def groups(self, rows: np.ndarray | slice) -> Groups:
        """Return the groups of the rows with these numbers, if rows are left out by groups."""
        return None if self._groups is None else self._groups[rows]

    def run(self, n_steps: int, most_rows: int, until: int | None = None, progress: float = 0.0) -> Self:
        """Continue to step `until` of `n_steps`, with at most `most_rows` rows per step and a decreasing rate.

        `progress` is the used share of the time. If it is ahead of the steps, the rate decreases earlier.
        """
        n_used, by_work = len(self.used), int(np.sqrt(SEARCH.step_work / max(1, self._distance.size)))
        affordable = max(SEARCH.fewest_step_rows, by_work)
        self.n_rows = max(min(2, n_used), min(most_rows, affordable, int(SEARCH.row_share * n_used)))
        if self._starts_shorter and not self.n_done and self._live.any():
            with suppress(SingularKernelError):
                self._shorten(max(self.n_rows, min(SEARCH.start_rows, affordable)))
        first, last = SEARCH.rates
        for k in range(self.n_done, n_steps if until is None else min(until, n_steps)):
            self.n_done += 1
            if self._live.any():
                with suppress(SingularKernelError):
                    self._step(self._drawn(), first + (last - first) * max(k / n_steps, progress))
        return self

    def _drawn(self) -> np.ndarray:
        """Draw the rows of a step: each row once before any row is drawn again, or rows of some of the groups."""
        if self._groups is not None:
            some = of_random_groups(self.used, self._groups, SEARCH.row_share, self._rng)
            return self._rng.permutation(some)[: self.n_rows]
        if self._n_drawn + self.n_rows > len(self._order):
            self._order, self._n_drawn = self._rng.permutation(np.sort(self._order)), 0
        self._n_drawn += self.n_rows
        return self._order[self._n_drawn - self.n_rows : self._n_drawn]

    def of_kernel(self, kernel: Kernel, n_done: int) -> "LengthScaleSearch":
        """Return a search that continues from here with another kernel of the same power, after `n_done` steps."""
        other, rng = copy(self), deepcopy(self._rng)
        other.kernel, other.matrix = kernel, differentiable_matrix(kernel, self.matrix.categorical, self.matrix.n_jobs)
        other._steps, other._rng, other.n_done = deepcopy(self._steps), rng, n_done
        other.errors, other.gammas = [*self.errors], [*self.gammas]
        other._scratch = Scratch()
        return other

    def found_on(self, rows: np.ndarray) -> Trial:
        """Return the kernel after the steps so far, with its leave-one-out error on some rows."""
        error = np.inf
        if self._live.any():
            with suppress(SingularKernelError):
                (X, Y, weights), groups = self.part(rows), self.groups(rows)
                K = self.matrix(X, X, self.standardized_gamma)
                error = float(weighted_squares(K, self.alpha, weights, Y, groups=groups).mean(dtype=np.float64))
        return replace(self.found, error=error)

    def _shorten(self, most_rows: int) -> None:
        """Start with shorter length scales if only they have a leave-one-out error below the constant's.

        With long length scales, the error has no slope towards functions that vary fast. Each half of the rows selects
        a factor, and the other half validates it. Few rows are too far apart to show the gain of short length scales.
        """

        def losses(factor: float, alpha: float) -> np.ndarray:
            K = self.matrix(X, X, factor * self.standardized_gamma)
            return weighted_squares(K, alpha, weights, Y, groups=groups).mean(axis=1, dtype=np.float64)

        for n_rows in dict.fromkeys((self.n_rows, most_rows)):  # few rows are enough for most signals
            rows = thinned(self.used, n_rows)
            (X, Y, weights), groups = self.part(rows), self.groups(rows)
            first, constant = losses(1.0, self.alpha), constant_squares(self.alpha, weights, Y).mean(axis=1)
            if first.mean() < SEARCH.seen_error * constant.mean():
                return
        factors = 4.0 ** (np.arange(1, 5) * self.kernel.power)  # of gamma: length scales of 1/4 to 1/256
        alpha = self.alpha * (SEARCH.noisy_penalty if self.learns_alpha else 1.0)
        tries = np.array([losses(factor, alpha) for factor in factors])
        validated = np.empty(len(rows))
        for half in (0, 1):
            validated[half::2] = tries[tries[:, 1 - half :: 2].mean(axis=1).argmin(), half::2]
        known = SEARCH.shorter_error * min(first, constant, key=np.mean)
        if is_significantly_less(validated, known, 3.0):
            self._steps = self._steps.times(factors[tries.mean(axis=1).argmin()])

    def left_out(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of at most `most` rows, and their leave-one-out residuals."""
        rows = thinned(self.used, most)
        X, Y, weights = self.part(rows)
        K = self.matrix(X, X, self.standardized_gamma)
        return rows, residuals(K, self.alpha, weights, Y, groups=self.groups(rows))

    def _step(self, rows: np.ndarray, rate: float) -> None:
        given = *self.part(rows), self.standardized_gamma, self.alpha, self._rng, self._scratch
        left_out = leave_one_out(self.matrix, *given, self.groups(rows))
        self.errors.append(left_out.error)
        self.gammas.append(self.gamma)
        if left_out.error > 0:
            self._steps.step([left_out], rate)
