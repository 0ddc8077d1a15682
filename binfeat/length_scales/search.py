"""The search for one length scale per input by the gradient of the leave-one-out error of exact models."""

from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Self

import numpy as np

from binfeat._common.arrays import Scratch, quotients
from binfeat._common.held_out import surely_less
from binfeat._common.subsets import cached_parts, thinned
from binfeat.kernels.base import Kernel
from binfeat.length_scales.adam import Adam
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.leave_one_out import (
    LeaveOneOut,
    SingularKernelError,
    Weights,
    constant_squares,
    leave_one_out,
    residuals,
    weighted_squares,
)
from binfeat.length_scales.matrices import Frame, differentiable_matrix

_RATE, _LAST_RATE = 0.2, 0.01  # of Adam: the longest step of a logarithm, at the start and at the end
_START = 0.3  # sum over inputs of gamma times mean distance; small, so that every pair of rows is informative
_SHORTER = 4.0 ** np.arange(1, 5)  # times these gammas, which are tried where the first ones tell nothing
_TELLS = 0.95  # of the error of the mean, below which gammas tell something
_SURELY = 2.0  # standard errors
_FIRST_ALPHA = 0.5
LEAST_ALPHA, MOST_ALPHA = 1e-3, 1e3
SHARE = 0.6  # of few rows that a step takes, so that no two steps see the same
_PRIOR = 3.0  # logarithms lie about their mean: a squared deviation counts as this multiple of a row's log error
_PRIOR_INPUTS = 20  # with more inputs the prior is weaker: of many inputs a few matter
_WORK = 3e7  # pairs of rows times inputs in a step
_FEWEST = 150
MOST_INPUTS = int(_WORK / _FEWEST**2)  # with which the fewest rows are no more work than that
_LAST = 10  # the error of a search is the mean over this number of steps
_DISTANCE_ROWS = 10_000
_LEAST_PART = 1 / 2  # of the mean part in the exponent, which a revived input has


def mean_distances(X: np.ndarray, categorical: np.ndarray, rng: np.random.Generator, power: int = 1) -> np.ndarray:
    """Mean of two rows' distance along every input, to a power; for a categorical input how often rows differ."""
    order, total = rng.permutation(len(X)), np.zeros((0, X.shape[1]))
    others = np.roll(order, 1)  # no row with itself
    for part in cached_parts(len(X), X.shape[1]):
        difference = np.abs(X[order[part]] - X[others[part]]) ** power
        difference[:, categorical] = difference[:, categorical] > 0
        total = np.concatenate([total, difference]).sum(axis=0, keepdims=True)  # in the order of rows
    return total[0] / len(X)


def exponent_shares(gamma: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Share of every input in the kernel's mean exponent."""
    shares = gamma / max(gamma.max(), np.finfo(float).tiny) * distance
    return shares / max(shares.sum(), np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class SearchRows:
    """Scaled inputs, targets and weights of the rows that a search learns from."""

    X: np.ndarray  # (n_rows, n_inputs)
    Y: np.ndarray  # (n_rows, n_targets), of unit scale
    weights: Weights
    used: np.ndarray  # numbers of the rows with positive weight
    frame: Frame

    def part(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, Weights]:
        """Columns, targets and weights of the rows with these numbers."""
        weights = None if self.weights is None else self.weights[rows]
        return self.frame.columns(self.X[rows]), self.Y[rows].astype(np.float32), weights

    def spread(self, most: int) -> np.ndarray:
        """Numbers of at most `most` used rows, evenly spaced: the same for all searches."""
        return thinned(self.used, most)


class LengthScaleSearch:
    """Adam on the logarithms of all length scales and of the penalty, every step with fresh rows.

    What is minimised is the logarithm of the leave-one-out error on the rows of the step, plus a prior: of few rows
    and many inputs the logarithms of gamma stay together. The search begins with a gamma for each input by its mean
    distance, or, if inputs are not `scaled`, with the same gamma for all. If alpha is None, it is learned.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: np.ndarray,
        Y: np.ndarray,
        weights: Weights,
        categorical: np.ndarray,
        seed: int,
        *,
        alpha: float | None = None,
        scaled: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel, self.matrix = kernel, differentiable_matrix(kernel, categorical, n_jobs)
        self._rng = np.random.default_rng(seed)
        used = np.arange(len(X)) if weights is None else np.flatnonzero(weights > 0)
        some = X[self._rng.permutation(used)[:_DISTANCE_ROWS]]
        self.rows = SearchRows(X, Y, weights, used, Frame.of(some, categorical))
        self._distance = mean_distances(some, categorical, self._rng, kernel.power)
        self._live = self._distance > 0
        distance = self._distance if scaled else np.where(self._live, self._distance.mean(), 0.0)
        share = _START / max(1.0, float(np.count_nonzero(self._live)))
        with np.errstate(divide="ignore"):
            gamma = quotients(share, distance)
            logs = np.log(self.rows.frame.gamma(kernel, gamma))
        self._theta = np.append(logs, np.log(alpha or _FIRST_ALPHA))
        self.learns_alpha = alpha is None
        self._adam = Adam(self._theta.shape)
        self._order, self._place = self._rng.permutation(used), 0
        self.n_rows = 0  # of a step
        self.n_done = 0  # steps, including the steps that a singular kernel made impossible
        self.errors: list[float] = []  # leave-one-out errors of the rows of every step, before the step
        self.gammas: list[np.ndarray] = []  # before every step
        self._scratch = Scratch()

    @property
    def gamma(self) -> np.ndarray:
        return self.framed_gamma / self.rows.frame.gamma(self.kernel, 1.0)

    @property
    def framed_gamma(self) -> np.ndarray:
        """Gammas for columns of the rows."""
        return np.exp(self._theta[:-1])

    @property
    def alpha(self) -> float:
        return float(np.exp(self._theta[-1]))

    @property
    def error(self) -> float:
        """Mean error of the last steps, on the same rows for searches of the same seed and number of steps."""
        return float(np.mean(self.errors[-_LAST:])) if self.errors else np.nan

    @property
    def found(self) -> Trial:
        """The kernel after the steps so far."""
        kernel = KernelSum([KernelPart(self.kernel, self.gamma)], self.alpha, self.n_rows)
        return Trial(kernel, self.error, len(self.errors))

    def run(self, n_steps: int, most_rows: int, until: int | None = None, progress: float = 0.0) -> Self:
        """Go on to step `until` of `n_steps`, of `most_rows` rows at most, with a rate that falls towards the end.

        `progress` is the share of the time that is gone: if time ends the search earlier, the rate falls earlier.
        """
        affordable, n_used = max(_FEWEST, int(np.sqrt(_WORK / max(1, self._distance.size)))), len(self.rows.used)
        self.n_rows = max(min(2, n_used), min(most_rows, affordable, int(SHARE * n_used)))
        if not self.n_done and self._live.any():
            with suppress(SingularKernelError):
                self._shorten()
        for k in range(self.n_done, n_steps if until is None else min(until, n_steps)):
            self.n_done += 1
            if self._live.any():
                with suppress(SingularKernelError):
                    self._step(self._draw(), _RATE + (_LAST_RATE - _RATE) * max(k / n_steps, progress))
        return self

    def of_kernel(self, kernel: Kernel, n_done: int) -> "LengthScaleSearch":
        """A search that goes on from here with another kernel of the same power, as if `n_done` steps were done."""
        other, rng = copy(self), deepcopy(self._rng)
        other.kernel, other.matrix = kernel, differentiable_matrix(kernel, self.matrix.categorical, self.matrix.n_jobs)
        other._theta, other._adam = self._theta.copy(), deepcopy(self._adam)
        other._rng, other.n_done, other.errors, other.gammas = rng, n_done, [*self.errors], [*self.gammas]
        other._scratch = Scratch()
        return other

    def error_on(self, most: int) -> float:
        """Leave-one-out error on at most `most` rows, which are the same for all searches of the same rows."""
        if self._live.any():
            with suppress(SingularKernelError):
                part = self.rows.part(self.rows.spread(most))
                return float(self._squares(*part).mean(dtype=np.float64))
        return np.inf

    def _squares(self, X: np.ndarray, Y: np.ndarray, weights: Weights, factor: float = 1.0) -> np.ndarray:
        """Weighted squares of leave-one-out residuals, (n_rows, n_targets), with gammas times a factor."""
        return weighted_squares(self.matrix(X, X, factor * self.framed_gamma), self.alpha, weights, Y)

    def _shorten(self) -> None:
        """Begin with shorter length scales if only they have a leave-one-out error below the constant's.

        Kernels so wide have no slopes towards what changes fast. Every other row chooses, and the others judge.
        """
        _, Y, weights = part = self.rows.part(self.rows.spread(self.n_rows))
        mean = _TELLS * constant_squares(self.alpha, weights, Y).mean(axis=1)

        def losses(factor: float) -> np.ndarray:
            return self._squares(*part, factor).mean(axis=1, dtype=np.float64)

        if losses(1.0).mean() < mean.mean():
            return
        tries = [losses(factor) for factor in _SHORTER]
        best = int(np.argmin([own[::2].mean() for own in tries]))
        if surely_less(tries[best][1::2], mean[1::2], _SURELY):
            self._theta[:-1] += np.log(_SHORTER[best])

    def revive(self, n_rows: int) -> float:
        """Go on with some of the inputs that seemed idle, if that lowers the error on `n_rows` rows.

        A step's few rows do not show what some inputs do together. Their gammas fall, and with them their slopes. So
        all inputs get at least half of the mean part in the exponent, and inputs keep it whose gammas should then rise
        further. Returned is the ratio of the error to the error before.
        """
        parts = self.gamma * self._distance
        least = _LEAST_PART * parts.sum() / max(1, np.count_nonzero(self._live))
        idle = self._live & (parts < least)
        if not idle.any():
            return 1.0
        before, error = self._theta, self.error_on(n_rows)
        raised = before.copy()
        raised[:-1][idle] += np.log(least / parts[idle])
        self._theta, rising = raised, np.zeros_like(idle)
        with suppress(SingularKernelError):
            rising = idle & (self._leave_one_out(self.rows.spread(n_rows)).slopes < 0)
        self._theta = np.where(np.append(rising, False), raised, before)
        found = self.error_on(n_rows)
        if not found < error:
            self._theta = before
            return 1.0
        self._adam = Adam(before.shape)
        return found / error

    def _leave_one_out(self, rows: np.ndarray) -> LeaveOneOut:
        """Error and slopes on the rows with these numbers."""
        part = self.rows.part(rows)
        return leave_one_out(self.matrix, *part, self.framed_gamma, self.alpha, self._rng, self._scratch)

    def left_out(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of at most `most` rows, and their leave-one-out residuals."""
        rows = self.rows.spread(most)
        X, Y, weights = self.rows.part(rows)
        return rows, residuals(self.matrix(X, X, self.framed_gamma), self.alpha, weights, Y)

    def _draw(self) -> np.ndarray:
        """Numbers of the rows of a step: in random order, every row once before any row comes again."""
        if self._place + self.n_rows > len(self._order):
            self._order, self._place = self._rng.permutation(self.rows.used), 0
        self._place += self.n_rows
        return self._order[self._place - self.n_rows : self._place]

    def _step(self, rows: np.ndarray, rate: float) -> None:
        left_out = self._leave_one_out(rows)
        self.errors.append(left_out.error)
        self.gammas.append(self.gamma)
        if left_out.error > 0:
            self._theta -= rate * self._adam.step(self._slopes(left_out))
            if self.learns_alpha:
                self._theta[-1] = np.clip(self._theta[-1], np.log(LEAST_ALPHA), np.log(MOST_ALPHA))

    def _slopes(self, left_out: LeaveOneOut) -> np.ndarray:
        """Slopes of the logarithm of the error plus the prior, by the logarithms of gamma and alpha."""
        logs = self._theta[:-1]
        apart = np.where(self._live, logs, 0.0) - logs[self._live].mean()
        prior = _PRIOR * min(1.0, np.sqrt(_PRIOR_INPUTS / len(logs))) / len(self.rows.used)
        gammas = np.where(self._live, left_out.slopes / left_out.error + 2 * prior * apart, 0.0)
        return np.append(gammas, self.learns_alpha * left_out.alpha_slope / left_out.error)
