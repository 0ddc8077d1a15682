"""Learns one length scale per input from the slopes of fitted machines."""

import logging
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length

from binfeat._binning.bin_matrix import BinMatrix
from binfeat._binning.bins import Bins, BinTables, count_bins
from binfeat._binning.grids import Grids
from binfeat._binning.input_checks import ARRAY_CHECKS, require_binning_memory
from binfeat._common.held_out import SquaredErrors
from binfeat._common.labels import check_labels, one_against_rest
from binfeat._common.validation import (
    check_categorical,
    check_integer,
    check_moderate,
    check_share,
    check_weights,
    checked_array,
    checked_rows,
    seed_of,
)
from binfeat._engine.differences import differences
from binfeat._engine.policy import thread_count
from binfeat._linear import cg
from binfeat._linear.path import solve_path
from binfeat._machine.growth import find_codes
from binfeat._rows.products import RidgeSystem
from binfeat.kernels import binning_kernel

_log = logging.getLogger("binfeat")

_OUT_ROWS = 10_000  # maximum number of held-out rows
_ROWS = 2000  # at which slopes are measured: 5,000 found no better length scales on Forest Cover
_FACTOR = 1.6  # between two common factors of all gammas that are tried
_PATIENCE = 2  # rounds that gain less than a standard error before the search ends
_TOL = 1e-2
_MAX_ITER = 100
ALPHAS = np.geomspace(10.0, 1e-3, 9)
NEAR = np.array([np.sqrt(10), 1.0, 1 / np.sqrt(10)])  # factors of a penalty when it is chosen again
_LEAST_ALPHA = 1e-3
_ALPHA_ROUNDS = 3  # after so many rounds the penalty is chosen again
_START = 10.0  # sum over inputs of gamma times mean distance, at the start


def surely_less(errors, others):
    """Whether the mean of `errors` is below that of `others`, for the same rows, by a paired standard error."""
    gain = others - errors
    return gain.mean() > gain.std() / np.sqrt(gain.size)


@dataclass(frozen=True)
class Fit:
    """A ridge machine on binning features, and its errors on held-out rows."""

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
        return surely_less(self.errors, other.errors)


class Sample:
    """Rows to learn from and rows held out, and the machines fitted to them.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_inputs), float64
    Y : ndarray of shape (n_rows, n_targets)
    weights : ndarray of shape (n_rows, 1) or None
    X_out : ndarray of shape (n_out, n_inputs)
    judge : callable
        Held-out loss: from predictions (n_out, n_targets) to errors, one for each held-out row or one for all.
    categorical : ndarray of bool of shape (n_inputs,)
    kernel : kernel with a pitch law
    n_grids : int
    seed : int
    n_jobs : int or None
    """

    def __init__(self, X, Y, weights, X_out, judge, *, categorical, kernel, n_grids, seed, n_jobs=None):
        self.X, self.Y, self.weights, self.X_out, self.judge = X, Y, weights, X_out, judge
        self.categorical, self.kernel = categorical, kernel
        self.n_grids, self.seed, self.n_jobs = n_grids, seed, n_jobs

    def fit(self, gamma, alphas):
        """The machine with these gammas and the penalty, among `alphas`, that is best on the held-out rows."""
        grids = Grids.draw(self.kernel, gamma, self.n_grids, self.seed, self.categorical)
        codes = np.empty((self.n_grids, len(self.X)), np.uint32)
        bins = count_bins(grids, self.X, Bins.none(self.n_grids), codes, self.n_jobs)
        Z = BinMatrix._trusted(codes, bins.starts, np.dtype(np.float64), self.n_jobs)
        tables = BinTables(bins.keys, bins.starts, self.n_jobs)
        out_codes = find_codes(tables, grids, self.X_out, self.n_jobs)
        out = BinMatrix._trusted(out_codes, bins.starts, Z.dtype, self.n_jobs)
        system = RidgeSystem(Z, self.weights, fit_intercept=True)
        fits = []
        for alpha, result in zip(alphas, self._solve(system, alphas), strict=False):
            if result.status == "interrupted":
                raise KeyboardInterrupt
            intercept = system.mean(self.Y - Z @ result.solution)
            errors = self.judge(out @ result.solution + intercept)
            fits.append(Fit(gamma, float(alpha), grids, bins, result.solution, errors))
        return min(fits, key=lambda fit: fit.error)

    def of_kernel(self, kernel):
        """The same rows with another kernel."""
        options = {"categorical": self.categorical, "n_grids": self.n_grids, "seed": self.seed, "n_jobs": self.n_jobs}
        return Sample(self.X, self.Y, self.weights, self.X_out, self.judge, kernel=kernel, **options)

    def _solve(self, system, alphas):
        if len(alphas) > 1:
            return solve_path(system, self.Y, alphas, tol=_TOL, max_iter=_MAX_ITER)
        options = {"tol": _TOL, "max_iter": _MAX_ITER}
        shift = np.full(self.Y.shape[1], float(alphas[0]))
        return [cg.solve(system.apply, system.right_side(self.Y), system.diagonal(), shift, **options)]

    def relevances(self, fit, rows):
        """Mean squared slope of the machine along each input, at some of the rows.

        The slope is a central difference over two length scales of the input, or over its range if that is less. A
        categorical input is replaced by the value of another row instead, and an input of two values by each of them;
        their squares are multiplied by the probability that two rows differ.
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
            squares *= self.weights[rows] / self.weights[rows].mean()
        return share * squares.mean(axis=0) / span**2

    def _replacements(self, X, gamma):
        """Values below and above those of each row, their distance, and the weight of the squared difference."""
        least, most = np.fmin.reduce(self.X, axis=0), np.fmax.reduce(self.X, axis=0)
        reach = np.nan_to_num(most - least)  # 0 where all is missing
        step = np.minimum(np.divide(1.0, gamma, out=np.zeros_like(gamma), where=gamma > 0), reach / 2)
        low, high, span, share = X - step, X + step, np.where(step > 0, 2 * step, np.inf), np.ones(len(gamma))
        for j in np.flatnonzero(self._two_values(least, most) & ~self.categorical):
            upper = np.mean(self.X[:, j] == most[j])
            low[:, j], high[:, j], span[j], share[j] = least[j], most[j], reach[j], 4 * upper * (1 - upper)
        for j in np.flatnonzero(self.categorical):
            low[:, j], high[:, j], span[j], share[j] = X[:, j], np.roll(X[:, j], 1), 1.0, 2.0
        return low, high, span, share

    def _two_values(self, least, most):
        return ((least == self.X) | (most == self.X)).all(axis=0) & (least < most)


def mean_distances(X, categorical, rng):
    """Mean distance of two rows along each input; for a categorical input the share of pairs that differ."""
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
    """Gammas with which all inputs that vary have equal parts in the kernel's exponent."""
    live = distance > 0
    return np.divide(total / max(1, live.sum()), distance, out=np.zeros_like(distance), where=live)


@dataclass(frozen=True)
class LearnedGamma:
    """Result of a search for length scales.

    Attributes
    ----------
    gamma : ndarray of shape (n_inputs,)
        Inverse length scale of each input.
    relevances : ndarray of shape (n_inputs,)
        Share of each input in the kernel's mean exponent; they sum to 1.
    alpha : float
        Best penalty with these gammas on the rows of the search.
    errors : ndarray of shape (n_rounds + 1,)
        Held-out mean squared error before the first and after each round.
    gammas : ndarray of shape (n_rounds + 1, n_inputs)
        Inverse length scales before the first and after each round.
    """

    gamma: np.ndarray
    relevances: np.ndarray
    alpha: float
    errors: np.ndarray
    gammas: np.ndarray


class WidthSearch:
    """Rounds of a fit, the measurement of its slopes, and new gammas from these.

    `penalties` maps an array of penalties to those that may be tried. New gammas are proportional to the square
    roots of the relevances (the diagonal of the average gradient outer product of Radhakrishnan et al., recursive
    feature machines), keep the kernel's mean exponent, and get one common factor that is chosen on held-out rows.
    """

    def __init__(self, sample, seed, start=None, scaled=True, penalties=lambda alphas: alphas):
        self.sample, self._start, self._scaled, self._penalties = sample, start, scaled, penalties
        rng = np.random.default_rng(seed)
        self._distance = mean_distances(sample.X, sample.categorical, rng)
        self._rows = rng.permutation(len(sample.X))[:_ROWS]
        self.fits = []

    def _first(self):
        """All inputs alike, or the result of an earlier search with the common factor that is best on held-out rows."""
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
        total, own = fit.gamma @ self._distance, gamma @ self._distance
        if not own > 0:
            return fit
        gamma *= total / own
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
        """Search until two rounds gain less than a paired standard error, or `going` returns False."""
        self.fits = [self._first()]
        stalled = 0
        while len(self.fits) <= max_rounds and stalled < _PATIENCE and going():
            now, best = self._round(self.fits[-1]), self.best
            stalled = 0 if now.gains_on(best) else stalled + 1
            self.fits.append(now)
            _log.info("length scales, round %d: held-out error %.4g", len(self.fits) - 1, now.error)
        return self

    def learned(self):
        """The result, as arrays."""
        best = self.best
        return LearnedGamma(
            best.gamma,
            exponent_shares(best.gamma, self._distance),
            best.alpha,
            np.array([fit.error for fit in self.fits]),
            np.array([fit.gamma for fit in self.fits]),
        )


def learn_gamma(
    X,
    y,
    *,
    kernel="laplacian",
    categorical_features=None,
    sample_weight=None,
    n_grids=50,
    max_rounds=12,
    max_rows=40_000,
    validation_fraction=0.2,
    n_jobs=None,
    random_state=None,
):
    """Learn one length scale per input (ARD), ``1 / gamma_j``, from the slopes of ridge machines on binning features.

    In each round a machine is fitted to a sample of the rows. The relevance of an input is the mean squared slope
    along it, by central differences over its length scale (the diagonal of the average gradient outer product:
    Radhakrishnan et al., recursive feature machines, Science 383, 2024). The new gammas are proportional to the square
    roots of the relevances, keep the kernel's mean exponent, and get one common factor chosen on held-out rows.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        NaN matches NaN and nothing else.
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        Numbers, or labels of classes.
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        A kernel that has a pitch law.
    categorical_features : array-like of bool, int or str, default=None
        Inputs whose values are category numbers, as in `RandomBinning`.
    sample_weight : float or array-like of shape (n_rows,), default=None
    n_grids : int, default=50
        Number of grids of the machine; fewer rows need more grids.
    max_rounds : int, default=12
        Maximum number of rounds; the search ends earlier once two rounds in a row gain less than a paired standard
        error.
    max_rows : int, default=40_000
        Maximum number of training rows.
    validation_fraction : float, default=0.2
        Share of the rows that is held out; at most 10,000 of these are used.
    n_jobs : int, default=None
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    learned : LearnedGamma
        With `gamma` for `RandomBinning`, `relevances`, `alpha`, and the errors and gammas of all rounds.

    Raises
    ------
    ValueError
        If a parameter is out of range, X or y holds infinity or numbers beyond 1e100, lengths differ, or there
        are fewer than 2 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import learn_gamma
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> learned = learn_gamma(X, np.sin(2 * X[:, 1]), random_state=0)
    >>> int(learned.relevances.argmax())
    1
    """
    checked = _Checked()
    X = checked_rows(checked, X, **ARRAY_CHECKS)
    check_moderate(X.data if sparse.issparse(X) else X, "X")
    Y = _targets(y)
    check_consistent_length(X, Y)
    if X.shape[0] < 2:
        raise ValueError("learn_gamma needs at least 2 rows, to hold some out; got 1.")
    weights = check_weights(sample_weight, X.shape[0])
    share = check_share(validation_fraction, "validation_fraction")
    seed = seed_of(random_state)
    order = np.random.default_rng(seed).permutation(X.shape[0])
    n_out = min(max(1, round(share * order.size)), order.size - 1)
    out = order[:n_out][:_OUT_ROWS]
    train = order[n_out:][: check_integer(max_rows, "max_rows", 1)]
    n_grids = check_integer(n_grids, "n_grids", 1)
    require_binning_memory(train.size, X.shape[1], n_grids, 0)
    sample = Sample(
        _dense(X, train),
        Y[train],
        None if weights is None else weights[train],
        _dense(X, out),
        SquaredErrors(Y[out], None if weights is None else weights[out]),
        categorical=check_categorical(categorical_features, checked),
        kernel=binning_kernel(kernel),
        n_grids=n_grids,
        seed=seed,
        n_jobs=n_jobs,
    )
    return WidthSearch(sample, seed).run(check_integer(max_rounds, "max_rounds", 1)).learned()


class _Checked(BaseEstimator):
    """Keeps the number and names of inputs that the checks of a table find."""


def _targets(y):
    """Standardised targets of shape (n_rows, n_targets): 1 and -1 for classes."""
    y = checked_array(y, dtype=None, ensure_2d=False, input_name="y")
    if y.dtype.kind not in "iufb" or (y.ndim == 1 and y.dtype.kind in "iub" and np.unique(y).size <= 2):
        classes, labels = np.unique(check_labels(y), return_inverse=True)
        return one_against_rest(labels, classes.size)
    Y = y.reshape(y.shape[0], -1).astype(np.float64)
    check_moderate(Y, "y")
    std = Y.std(axis=0)
    return (Y - Y.mean(axis=0)) / np.where(std > 0, std, 1.0)


def _dense(X, rows):
    part = X[rows]
    return np.ascontiguousarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)
