"""The search for one length scale per input, by rounds of machines on a sample."""

import logging

import numpy as np

_log = logging.getLogger("binfeat")

_ROWS = 2000  # at which the machine's answers are looked at: 5,000 found no better gammas on Forest Cover
_FACTOR = 1.6  # between two overall factors that are tried
_PATIENCE = 2  # rounds that gain less than a standard error before the search ends
ALPHAS = np.geomspace(10.0, 1e-3, 9)
NEAR = np.array([np.sqrt(10), 1.0, 1 / np.sqrt(10)])  # factors of a penalty that is looked at again
_LEAST_ALPHA = 1e-3
_ALPHA_ROUNDS = 3  # in each of which the penalty is looked at once
_START = 10.0  # sum over inputs of gamma times their mean distance, before anything is known


def mean_distances(X, categorical, rng):
    """Mean distance of two rows along each input; for a categorical one how often they differ."""
    difference = np.abs(X - X[rng.permutation(len(X))])
    difference[:, categorical] = difference[:, categorical] > 0
    missing = np.isnan(difference)
    difference[missing] = 0.0
    return difference.sum(axis=0) / np.maximum(1, len(X) - missing.sum(axis=0))


def exponent_shares(gamma, distance):
    """Share of each input in the kernel's mean exponent."""
    shares = gamma / max(gamma.max(), np.finfo(float).tiny) * distance
    return shares / max(shares.sum(), np.finfo(float).tiny)


def _per_distance(distance, total):
    """Gammas with which every input that varies contributes alike."""
    live = distance > 0
    return np.divide(total / max(1, live.sum()), distance, out=np.zeros_like(distance), where=live)


class LengthScaleSearch:
    """Rounds of a fit, a look at its slopes, and new inverse length scales from them.

    `penalties` gives those of some penalties that may be tried. New gammas go with the root of the relevances
    (Radhakrishnan et al., recursive feature machines, whose average gradient outer product has them on its
    diagonal), keep the kernel's mean exponent, and are then scaled together as held-out rows say.
    """

    def __init__(self, sample, seed, start=None, scaled=True, penalties=lambda alphas: alphas):
        self.sample, self._start, self._scaled, self._penalties = sample, start, scaled, penalties
        rng = np.random.default_rng(seed)
        self._distance = mean_distances(sample.X, sample.categorical, rng)
        self._rows = rng.permutation(len(sample.X))[:_ROWS]
        self.fits = []

    def _first(self):
        """Every input alike, or what an earlier search found, as fine as held-out rows say."""
        if self._start is None:
            gamma = _per_distance(self._distance, _START)
            if not self._scaled:
                gamma = np.where(gamma > 0, _START / max(self._distance.sum(), np.finfo(float).tiny), 0.0)
            return self.sample.fit(gamma, self._penalties(ALPHAS))
        gamma, alpha = self._start.gamma, self._start.alpha
        return min((self.sample.fit(gamma * f, [alpha]) for f in (1.0, _FACTOR)), key=lambda fit: fit.error)

    def _round(self, fit):
        relevances = self.sample.relevances(fit, self._rows)
        gamma = np.sqrt(relevances)
        total, new_total = fit.gamma @ self._distance, gamma @ self._distance
        if not new_total > 0:
            return fit
        gamma *= total / new_total
        alphas = np.array([fit.alpha])
        if len(self.fits) % _ALPHA_ROUNDS == 0:
            near = fit.alpha * NEAR
            alphas = self._penalties(near[near >= 0.99 * _LEAST_ALPHA])
        now = self.sample.fit(gamma, alphas)
        for factor in (_FACTOR, 1 / _FACTOR):
            other = self.sample.fit(gamma * factor, [now.alpha])
            if other.error < now.error:
                return other
        return now

    @property
    def best(self):
        return min(self.fits, key=lambda fit: fit.error)

    def run(self, max_rounds, going=lambda: True):
        """Search until two rounds gain less than a paired standard error, or `going` says no."""
        self.fits = [self._first()]
        stalled = 0
        while len(self.fits) <= max_rounds and stalled < _PATIENCE and going():
            now, best = self._round(self.fits[-1]), self.best
            stalled = 0 if now.gains_on(best) else stalled + 1
            self.fits.append(now)
            _log.info("length scales, round %d: held-out error %.4g", len(self.fits) - 1, now.error)
        return self

    @property
    def relevances(self):
        """Share of each input in the best kernel's mean exponent."""
        return exponent_shares(self.best.gamma, self._distance)
