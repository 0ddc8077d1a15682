"""Learns one width per input from how a fitted machine answers to each of them."""

import logging
from dataclasses import dataclass, replace

import numpy as np

from binfeat._bin_matrix import BinMatrix, no_bin
from binfeat._bins import Bins, BinTables, count_bins
from binfeat._engine.differences import differences
from binfeat._engine.policy import thread_count
from binfeat._grids import Grids
from binfeat._operators import RidgeSystem
from binfeat._solver import pcg
from binfeat._solver.path import solve_path

_log = logging.getLogger("binfeat")

_ROWS = 2000  # at which the machine's answers are looked at: 5,000 found no better widths on Forest Cover
_FACTOR = 1.6  # between two overall widths that are tried
_PATIENCE = 2  # rounds that gain less than a standard error before the search ends
_TOL = 1e-2
_MAX_ITER = 100
_ALPHAS = np.geomspace(10.0, 1e-3, 9)
_LEAST_ALPHA = 1e-3
_START = 10.0  # sum over inputs of gamma times their mean distance, before anything is known


@dataclass(frozen=True)
class Fit:
    """A ridge machine on binning features, and how it does on held-out rows."""

    gamma: np.ndarray
    alpha: float
    grids: Grids
    bins: Bins
    coef: np.ndarray
    errors: np.ndarray

    @property
    def error(self):
        return self.errors.mean()

    def gains_on(self, other):
        """Whether this fit's error is lower by a paired standard error."""
        gain = other.errors - self.errors
        return gain.mean() > gain.std() / np.sqrt(gain.size)


class Sample:
    """Rows to learn from and rows held out, and the machines fitted to them.

    Parameters
    ----------
    X, Y, weights : ndarray of shape (n_rows, n_inputs), (n_rows, n_targets) and (n_rows,) or None
    X_out, Y_out, weights_out : the same for the held-out rows
    categorical : ndarray of bool of shape (n_inputs,)
    kernel : kernel with a pitch law
    n_grids : int
    seed : int
    n_jobs : int or None
    """

    def __init__(self, train, held_out, categorical, kernel, n_grids, seed, n_jobs=None):
        self.X, self.Y, self.weights = train
        self.X_out, self.Y_out, self.weights_out = held_out
        self.categorical, self.kernel = categorical, kernel
        self.n_grids, self.seed, self.n_jobs = n_grids, seed, n_jobs

    def fit(self, gamma, alphas):
        """The machine of these widths with the best of some penalties on the held-out rows."""
        grids = Grids.draw(self.kernel, gamma, self.n_grids, self.seed, self.categorical)
        codes = np.empty((self.n_grids, len(self.X)), np.uint32)
        bins = count_bins(grids, self.X, Bins.none(self.n_grids), codes, self.n_jobs)
        Z = BinMatrix._trusted(codes, bins.starts, np.dtype(np.float64), self.n_jobs)
        out = self._encode(grids, bins)
        system = RidgeSystem(Z, None if self.weights is None else self.weights[:, None], fit_intercept=True)
        fits = []
        for alpha, result in zip(alphas, self._solve(system, alphas), strict=False):
            intercept = system.mean(self.Y - Z @ result.solution)
            errors = ((self.Y_out - out @ result.solution - intercept) ** 2).mean(axis=1)
            errors = errors if self.weights_out is None else errors * self.weights_out
            fits.append(Fit(gamma, float(alpha), grids, bins, result.solution, errors))
        return min(fits, key=lambda fit: fit.error)

    def _solve(self, system, alphas):
        if len(alphas) > 1:
            return solve_path(system, self.Y, alphas, tol=_TOL, max_iter=_MAX_ITER)
        options = {"tol": _TOL, "max_iter": _MAX_ITER}
        shift = np.full(self.Y.shape[1], float(alphas[0]))
        return [pcg.solve(system.apply, system.right_side(self.Y), system.diagonal(), shift, **options)]

    def _encode(self, grids, bins):
        tables = BinTables(bins.keys, bins.starts, self.n_jobs)
        hashes = grids.hash(self.X_out, self.n_jobs)
        codes = np.empty(hashes.shape, np.uint32)
        tables.find(slice(0, len(grids)), hashes, no_bin(codes.dtype), codes, 0, self.n_jobs)
        return BinMatrix._trusted(codes, bins.starts, np.dtype(np.float64), self.n_jobs)

    def relevances(self, fit, rows):
        """Mean squared slope of the machine along each input, at some of the rows.

        The slope is a difference over twice the input's own width, at most its range. A categorical input is
        replaced by another row's value instead, and an input of two values by each of them; the square then
        counts as often as two rows differ.
        """
        X = self.X[rows]
        low, high, span, share = self._replacements(X, fit.gamma)
        tables = BinTables(fit.bins.keys, fit.bins.starts, self.n_jobs)
        out = np.empty((*X.shape, fit.coef.shape[1]))
        weights = np.ascontiguousarray(fit.coef.T)
        grids, blocks = fit.grids.arrays, thread_count(self.n_jobs)
        differences(X, low, high, *grids, *tables.arrays, weights, blocks, out, n_jobs=self.n_jobs)
        squares = (out**2).mean(axis=2) / self.n_grids
        if self.weights is not None:
            squares *= (self.weights[rows] / self.weights[rows].mean())[:, None]
        return share * squares.mean(axis=0) / span**2

    def _replacements(self, X, gamma):
        """Values below and above each row's, their distance, and what the squared difference counts."""
        least, most = np.nanmin(self.X, axis=0), np.nanmax(self.X, axis=0)
        reach = most - least
        step = np.minimum(np.divide(1.0, gamma, out=np.zeros_like(gamma), where=gamma > 0), reach / 2)
        low, high, span, share = X - step, X + step, np.where(step > 0, 2 * step, np.inf), np.ones(len(gamma))
        for j in np.flatnonzero(self._two_values(least, most) & ~self.categorical):
            upper = np.mean(self.X[:, j] == most[j])
            low[:, j], high[:, j], span[j], share[j] = least[j], most[j], reach[j], 4 * upper * (1 - upper)
        for j in np.flatnonzero(self.categorical):
            low[:, j], high[:, j], span[j], share[j] = X[:, j], np.roll(X[:, j], 1), 1.0, 2.0
        return low, high, span, share

    def _two_values(self, least, most):
        return ((self.X == least) | (self.X == most)).all(axis=0) & (least < most)


def _mean_distances(X, categorical, rng):
    """Mean distance of two rows along each input; for a categorical one how often they differ."""
    difference = np.abs(X - X[rng.permutation(len(X))])
    difference[:, categorical] = difference[:, categorical] > 0
    return np.nan_to_num(np.nanmean(difference, axis=0))


def _per_distance(distance, total):
    """Widths to which every input that varies contributes alike."""
    live = distance > 0
    return np.divide(total / max(1, live.sum()), distance, out=np.zeros_like(distance), where=live)


@dataclass(frozen=True)
class LearnedGamma:
    """What a search for widths found.

    Attributes
    ----------
    gamma : ndarray of shape (n_inputs,)
    relevances : ndarray of shape (n_inputs,)
        Share of each input in the kernel's mean exponent; they sum to 1.
    alpha : float
        Penalty that went best with them on the rows of the search.
    errors : ndarray of shape (n_rounds + 1,)
        Held-out mean squared error before the first and after each round.
    gammas : ndarray of shape (n_rounds + 1, n_inputs)
    """

    gamma: np.ndarray
    relevances: np.ndarray
    alpha: float
    errors: np.ndarray
    gammas: np.ndarray


class WidthSearch:
    """Rounds of a fit, a look at its slopes, and new widths from them.

    New widths go with the root of the relevances (Radhakrishnan et al., recursive feature machines, whose
    average gradient outer product has them on its diagonal), keep the kernel's mean exponent, and are then
    scaled together as held-out rows say.
    """

    def __init__(self, sample, seed):
        self._sample = sample
        self._rng = np.random.default_rng(seed)
        self._distance = _mean_distances(sample.X, sample.categorical, self._rng)
        self._rows = self._rng.permutation(len(sample.X))[:_ROWS]

    def start(self, totals=(_START,)):
        """The best fit among those with every input alike."""
        fits = [self._sample.fit(_per_distance(self._distance, total), _ALPHAS) for total in totals]
        return min(fits, key=lambda fit: fit.error)

    def _round(self, fit):
        relevances = self._sample.relevances(fit, self._rows)
        gamma = np.sqrt(relevances)
        total, own = fit.gamma @ self._distance, gamma @ self._distance
        if not own > 0:
            return fit
        gamma *= total / own
        near = fit.alpha * np.array([np.sqrt(10), 1.0, 1 / np.sqrt(10)])
        now = self._sample.fit(gamma, near[near >= 0.99 * _LEAST_ALPHA])
        wider, finer = (self._sample.fit(gamma * factor, [now.alpha]) for factor in (1 / _FACTOR, _FACTOR))
        return min((now, wider, finer), key=lambda fit: fit.error)

    def run(self, max_rounds, going=lambda: True):
        """Search until two rounds gain less than a paired standard error, or `going` says no."""
        best = now = self.start()
        fits, stalled = [now], 0
        for number in range(max_rounds):
            if stalled == _PATIENCE or not going():
                break
            now = self._round(now)
            fits.append(now)
            stalled = 0 if now.gains_on(best) else stalled + 1
            best = min(best, now, key=lambda fit: fit.error)
            _log.info("widths, round %d: held-out squared error %.4g", number + 1, now.error)
        shares = best.gamma * self._distance
        return LearnedGamma(
            best.gamma,
            shares / max(shares.sum(), np.finfo(float).tiny),
            best.alpha,
            np.array([fit.error for fit in fits]),
            np.array([fit.gamma for fit in fits]),
        )
