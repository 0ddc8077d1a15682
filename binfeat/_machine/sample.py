"""Ridge machines on a sample of the rows, how they do on rows held out, and which inputs they answer to."""

from dataclasses import dataclass

import numpy as np

from binfeat._binning.bin_matrix import BinMatrix
from binfeat._binning.bins import Bins
from binfeat._binning.grids import Grids
from binfeat._binning.tables import BinTables, count_bins, find_codes
from binfeat._engine.differences import differences
from binfeat._engine.policy import thread_count
from binfeat._linear.result import SolverOptions
from binfeat._linear.solve import solve_ridge
from binfeat._rows.rows import LocalRows

_OPTIONS = SolverOptions(tol=1e-2, max_iter=100, solver="cg")


def surely_less(errors, others):
    """Whether the mean of errors is below that of others of the same rows by a paired standard error."""
    gain = others - errors
    return gain.mean() > gain.std() / np.sqrt(gain.size)


@dataclass(frozen=True)
class SampleFit:
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
        return surely_less(self.errors, other.errors)


class Sample:
    """Rows to learn from and rows held out, and the machines fitted to them.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_inputs), float64
    Y : ndarray of shape (n_rows, n_targets)
    weights : ndarray of shape (n_rows, 1) or None
    X_out : ndarray of shape (n_out, n_inputs)
    loss : callable
        From predictions (n_out, n_targets) to errors, one for each held-out row or one for all.
    categorical : ndarray of bool of shape (n_inputs,)
    kernel : kernel with a pitch law
    n_grids : int
    seed : int
    n_jobs : int or None
    """

    def __init__(self, X, Y, weights, X_out, loss, *, categorical, kernel, n_grids, seed, n_jobs=None):
        self.X, self.Y, self.weights, self.X_out, self.loss = X, Y, weights, X_out, loss
        self.categorical, self.kernel = categorical, kernel
        self.n_grids, self.seed, self.n_jobs = n_grids, seed, n_jobs

    def fit(self, gamma, alphas):
        """The machine of these gammas with the best of some penalties on the held-out rows."""
        grids = Grids.draw(self.kernel, gamma, self.n_grids, self.seed, self.categorical)
        codes = np.empty((self.n_grids, len(self.X)), np.uint32)
        bins = count_bins(grids, [self.X], len(self.X), codes=codes, n_jobs=self.n_jobs)
        Z = BinMatrix._trusted(codes, bins.starts, np.dtype(np.float64), self.n_jobs)
        tables = BinTables(bins.keys, bins.starts, self.n_jobs)
        out_codes = find_codes(tables, grids, self.X_out, self.n_jobs)
        out = BinMatrix._trusted(out_codes, bins.starts, Z.dtype, self.n_jobs)
        fits = []
        for alpha, result in zip(alphas, solve_ridge(LocalRows(Z, self.Y, self.weights), alphas, _OPTIONS)):
            errors = self.loss(out @ result.solution + result.intercept)
            fits.append(SampleFit(gamma, float(alpha), grids, bins, result.solution, errors))
        return min(fits, key=lambda fit: fit.error)

    def of_kernel(self, kernel):
        """The same rows with another kernel."""
        options = {"categorical": self.categorical, "n_grids": self.n_grids, "seed": self.seed, "n_jobs": self.n_jobs}
        return Sample(self.X, self.Y, self.weights, self.X_out, self.loss, kernel=kernel, **options)

    def relevances(self, fit, rows):
        """Mean squared slope of the machine along each input, at some of the rows.

        The slope is a difference over twice the input's length scale, at most its range. A categorical input is
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
            squares *= self.weights[rows] / self.weights[rows].mean()
        return share * squares.mean(axis=0) / span**2

    def _replacements(self, X, gamma):
        """Values below and above each row's, their distance, and what the squared difference counts."""
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
