"""The search for one length scale per input, by the gradient of the leave-one-out error of exact kernel machines."""

from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from binfeat._machine.kernel_algebra.leave_one_out import (
    SingularKernelError,
    leave_one_out,
    leave_one_out_error,
    residuals,
)
from binfeat._machine.kernel_algebra.matrices import Frame, kernel_matrix
from binfeat._machine.search.adam import Adam
from binfeat._rows.rows import Scratch

_RATE, _LAST_RATE = 0.2, 0.01  # of Adam: the longest step of a logarithm, at the start and at the end
_START = 0.3  # sum over inputs of gamma times their mean distance: wide, so that every pair of rows tells something
_FIRST_ALPHA = 0.5
LEAST_ALPHA, MOST_ALPHA = 1e-3, 1e3
SHARE = 0.6  # of few rows that a step takes, so that no two steps see the same
_PRIOR = 3.0  # logarithms lie about their mean: a squared deviation counts as so much of a row's log error
_PRIOR_INPUTS = 20  # from which on it is less: of many inputs a few matter
_WORK = 3e7  # pairs of rows times inputs in a step
_FEWEST = 150
_LAST = 10  # steps whose mean error is that of a search
_DISTANCE_ROWS = 10_000
_LEAST_PART = 1 / 2  # of the mean one, that a revived input has in the exponent


def mean_distances(X, categorical, rng, power=1):
    """Mean of two rows' distance along each input, to a power; for a categorical input how often they differ."""
    order = rng.permutation(len(X))
    difference = np.abs(X[order] - X[np.roll(order, 1)]) ** power  # no row with itself
    difference[:, categorical] = difference[:, categorical] > 0
    return difference.mean(axis=0)


def exponent_shares(gamma, distance):
    """Share of each input in the kernel's mean exponent."""
    shares = gamma / max(gamma.max(), np.finfo(float).tiny) * distance
    return shares / max(shares.sum(), np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class LengthScales:
    """A kernel with a gamma for each input, a penalty, and the leave-one-out error that they have on few rows."""

    kernel: Any
    gamma: np.ndarray
    alpha: float
    error: float
    n_rows: int  # of a step
    n_steps: int
    linear_map: np.ndarray | None = None  # (n_inputs, rank), of scaled inputs, for a radial kernel


class LengthScaleSearch:
    """Adam on the logarithms of all length scales and of the penalty, each step with fresh rows.

    What is minimised is the logarithm of the leave-one-out error on the rows of the step, plus a prior: of few rows
    and many inputs the logarithms of gamma stay together.

    Parameters
    ----------
    kernel : kernel
        Of `exact_kernels.kernel_matrix`.
    X : ndarray of shape (n_rows, n_inputs)
    Y : ndarray of shape (n_rows, n_targets)
        Of unit scale.
    weights : ndarray of shape (n_rows,) or None
        Of mean 1.
    categorical : ndarray of bool of shape (n_inputs,)
    seed : int
    alpha : float or None
        None learns it.
    scaled : bool
        Whether the search begins with a gamma for each input, by its mean distance; else with one for all.

    Attributes
    ----------
    gamma : ndarray of shape (n_inputs,)
    alpha : float
    n_rows : int
        Of a step.
    n_done : int
        Steps so far, with those that a singular kernel made impossible.
    errors : list of float
        Leave-one-out error of each step's rows, before the step.
    gammas : list of ndarray
        Before each step.
    matrix : what computes the kernel
    rows : ndarray of int
        Numbers of the rows that weigh more than 0.
    learns_alpha : bool
    """

    def __init__(self, kernel, X, Y, weights, categorical, seed, *, alpha=None, scaled=True, n_jobs=None):
        self.kernel, self._X, self._Y, self._weights = kernel, X, Y, weights
        self.matrix, self._rng = kernel_matrix(kernel, categorical, n_jobs), np.random.default_rng(seed)
        self.rows = np.arange(len(X)) if weights is None else np.flatnonzero(weights > 0)
        some = X[self._rng.permutation(self.rows)[:_DISTANCE_ROWS]]
        self._frame = Frame.of(some, categorical)
        self._distance = mean_distances(some, categorical, self._rng, kernel.power)
        self._live = self._distance > 0
        self._theta = np.append(self._first(scaled), np.log(alpha or _FIRST_ALPHA))
        self.learns_alpha = alpha is None
        self._adam = Adam(self._theta.shape)
        self._order, self._place = self._rng.permutation(self.rows), 0
        self.n_rows = self.n_done = 0
        self.errors, self.gammas, self._scratch = [], [], Scratch()

    def _first(self, scaled):
        """Logarithms to begin with, of gammas in the frame's units."""
        distance = self._distance if scaled else np.where(self._live, self._distance.mean(), 0.0)
        share = _START / max(1.0, float(np.count_nonzero(self._live)))
        with np.errstate(divide="ignore"):
            gamma = np.divide(share, distance, out=np.zeros_like(distance), where=self._live)
            return np.log(self._frame.gamma(self.kernel, gamma))

    @property
    def gamma(self):
        return self.framed_gamma / self._frame.gamma(self.kernel, 1.0)

    @property
    def framed_gamma(self):
        """Gammas for columns of the rows."""
        return np.exp(self._theta[:-1])

    @property
    def alpha(self):
        return float(np.exp(self._theta[-1]))

    @property
    def error(self):
        """Mean of the last steps; the same rows for searches of one seed that have made as many."""
        return float(np.mean(self.errors[-_LAST:])) if self.errors else np.nan

    @property
    def found(self):
        """What there is now."""
        return LengthScales(self.kernel, self.gamma, self.alpha, self.error, self.n_rows, len(self.errors))

    def run(self, n_steps, most_rows, until=None, progress=0.0):
        """Go on to step `until` of so many, of so many rows at most, with a rate that falls towards the end.

        The end may be nearer than that: `progress` is the share of the time that is gone.
        """
        affordable = max(_FEWEST, int(np.sqrt(_WORK / max(1, self._X.shape[1]))))
        self.n_rows = max(min(2, len(self.rows)), min(most_rows, affordable, int(SHARE * len(self.rows))))
        for k in range(self.n_done, n_steps if until is None else min(until, n_steps)):
            self.n_done += 1
            if self._live.any():
                with suppress(SingularKernelError):
                    self._step(self._draw(), _RATE + (_LAST_RATE - _RATE) * max(k / n_steps, progress))
        return self

    def of_kernel(self, kernel, n_done):
        """A search that goes on from here with another kernel of the same power, as if it had made so many steps."""
        other, rng = copy(self), deepcopy(self._rng)
        other.kernel, other.matrix = kernel, kernel_matrix(kernel, self.matrix.categorical, self.matrix.n_jobs)
        other._theta, other._adam = self._theta.copy(), deepcopy(self._adam)
        other._rng, other.n_done, other.errors, other.gammas = rng, n_done, [*self.errors], [*self.gammas]
        other._scratch = Scratch()
        return other

    def error_on(self, most):
        """Leave-one-out error as things stand, on at most so many rows: the same for all searches of one seed."""
        if not self._live.any():
            return np.inf
        X, Y, weights = self.part(self.spread(most))
        try:
            return leave_one_out_error(self.matrix, X, Y, weights, self.framed_gamma, self.alpha)
        except SingularKernelError:
            return np.inf

    def revive(self, n_rows):
        """Go on with some of the inputs that seemed idle, if that lowers the error on so many rows.

        A step's few rows do not show what some inputs do together. Their gammas fall, and with them their slopes. So
        all inputs get at least half of the mean part in the exponent, and those keep it whose gammas should then rise
        further.

        Returns
        -------
        ratio : float
            Of the error to the one before.
        """
        parts = self.gamma * self._distance
        least = _LEAST_PART * parts.sum() / max(1, np.count_nonzero(self._live))
        idle = self._live & (parts < least)
        if not idle.any():
            return 1.0
        before, error = self._theta, self.error_on(n_rows)
        raised = before.copy()
        raised[:-1][idle] += np.log(least / parts[idle])
        self._theta = raised
        rising = idle & (self._slopes_on(n_rows) < 0)
        self._theta = np.where(np.append(rising, False), raised, before)
        revived = self.error_on(n_rows)
        if revived >= error:
            self._theta = before
            return 1.0
        self._adam = Adam(self._theta.shape)
        return revived / error

    def _slopes_on(self, most):
        """Slopes of the error on at most so many rows by the logarithms of gamma."""
        X, Y, weights = self.part(self.spread(most))
        with suppress(SingularKernelError):
            gamma = self.framed_gamma
            return leave_one_out(self.matrix, X, Y, weights, gamma, self.alpha, self._rng, self._scratch).slopes
        return np.zeros_like(self.gamma)

    def spread(self, most):
        """Numbers of at most so many rows, the same for all searches of one seed."""
        return self.rows[np.linspace(0, len(self.rows) - 1, min(most, len(self.rows))).astype(np.intp)]

    def left_out(self, most):
        """Numbers of these rows, and their leave-one-out residuals."""
        X, Y, weights = self.part(self.spread(most))
        return self.spread(most), residuals(self.matrix(X, X, self.framed_gamma), self.alpha, weights, Y)

    def part(self, rows):
        """Columns, targets and weights of rows with these numbers."""
        weights = None if self._weights is None else self._weights[rows]
        return self.columns(self._X[rows]), self._Y[rows].astype(np.float32), weights

    def columns(self, X):
        """Rows as columns of the kernels."""
        return self._frame.columns(X)

    def _draw(self):
        if self._place + self.n_rows > len(self._order):
            self._order, self._place = self._rng.permutation(self.rows), 0
        self._place += self.n_rows
        return self._order[self._place - self.n_rows : self._place]

    def _step(self, rows, rate):
        X, Y, weights = self.part(rows)
        found = leave_one_out(self.matrix, X, Y, weights, self.framed_gamma, self.alpha, self._rng, self._scratch)
        self.errors.append(found.error)
        self.gammas.append(self.gamma)
        if found.error > 0:
            self._move(self._slopes(found), rate)

    def _slopes(self, found):
        """Of what is minimised, by the logarithms."""
        logs = self._theta[:-1]
        apart = np.where(self._live, logs, 0.0) - logs[self._live].mean()
        prior = _PRIOR * min(1.0, np.sqrt(_PRIOR_INPUTS / len(logs))) / len(self.rows)
        gammas = np.where(self._live, found.slopes / found.error + 2 * prior * apart, 0.0)
        return np.append(gammas, self.learns_alpha * found.alpha_slope / found.error)

    def _move(self, slopes, rate):
        self._theta -= rate * self._adam.step(slopes)
        if self.learns_alpha:
            self._theta[-1] = np.clip(self._theta[-1], np.log(LEAST_ALPHA), np.log(MOST_ALPHA))
