"""Ridge machines on a sample of the rows, and how they do on rows held out."""

from dataclasses import dataclass

import numpy as np

from binfeat._binning.bin_matrix import BinMatrix
from binfeat._binning.code_store import CodeStore
from binfeat._binning.grids import Grids
from binfeat._binning.tables import BinTables, count_bins, find_codes
from binfeat._linear.result import SolverOptions
from binfeat._linear.solve import solve_ridge
from binfeat._rows.rows import LocalRows

_OPTIONS = SolverOptions(tol=1e-2, max_iter=100, solver="cg")


def surely_less(errors, others, n_deviations=1.0):
    """Whether the mean of errors is below that of others of the same rows by so many paired standard errors."""
    gain = others - errors
    return gain.mean() > n_deviations * gain.std() / np.sqrt(gain.size)


@dataclass(frozen=True)
class SampleFit:
    """A ridge machine on binning features, and how it does on held-out rows."""

    gamma: np.ndarray
    alpha: float
    grids: Grids
    errors: np.ndarray

    @property
    def error(self):
        return self.errors.mean()


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
        codes = CodeStore(len(self.X), self.n_grids)
        bins = count_bins(grids, [self.X], len(self.X), codes=codes, n_jobs=self.n_jobs)
        Z = BinMatrix._trusted(codes.array, bins.starts, np.dtype(np.float64), self.n_jobs)
        tables = BinTables(bins.keys, bins.starts, self.n_jobs)
        out_codes = find_codes(tables, grids, self.X_out, self.n_jobs, codes.array.dtype)
        out = BinMatrix._trusted(out_codes, bins.starts, Z.dtype, self.n_jobs)
        fits = []
        for alpha, result in zip(alphas, solve_ridge(LocalRows(Z, self.Y, self.weights), alphas, _OPTIONS)):
            errors = self.loss(out @ result.solution + result.intercept)
            fits.append(SampleFit(gamma, float(alpha), grids, errors))
        return min(fits, key=lambda fit: fit.error)

    def of_kernel(self, kernel):
        """The same rows with another kernel."""
        options = {"categorical": self.categorical, "n_grids": self.n_grids, "seed": self.seed, "n_jobs": self.n_jobs}
        return Sample(self.X, self.Y, self.weights, self.X_out, self.loss, kernel=kernel, **options)
