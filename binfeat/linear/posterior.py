"""The Gaussian posterior of the coefficients of a ridge model, as a root of their covariance.

With noise of variance 1 / v_i, the prior ``w ~ N(0, I / alpha)`` and a flat prior of the intercept, the coefficients
have the covariance ``(A + alpha)^-1`` around the ridge solution, with the matrix A of the normal equations.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.array_record import ArrayRecord
from binfeat._common.arrays import quotients
from binfeat._common.subsets import slices
from binfeat._common.warned import warn
from binfeat._rows.products import Features, unseen_shares
from binfeat._rows.rows import ProcessRows
from binfeat._threads import threads_to_factorize
from binfeat.linear import cg
from binfeat.linear.gram import GramSystem, gram_system
from binfeat.linear.normal_equations import NormalEquations
from binfeat.linear.result import Result, RidgeSystem, SolverOptions
from binfeat.linear.solve import uses_gram

_TOGETHER = 8  # samples per solve, and rows of the root per product
_TOL = 0.03  # residual of samples; its square is the mean relative excess of variances, weighted by eigenvalues
_MOST_RESIDUAL = 2 * _TOL  # without a warning
_LEAST_FREEDOM = 1e-3  # minimum of the degrees of freedom, as a share of the rows


@dataclass(frozen=True, eq=False)
class RidgePosterior(ArrayRecord):
    """Roots of the covariance: squared predictions with these coefficients add up to variances, for unit noise."""

    alpha: Annotated[np.ndarray, np.float64]
    coef: Annotated[np.ndarray, np.float32, "roots", "features"]
    intercept: Annotated[np.ndarray, np.float64, "roots"]

    def parts(self, Z: Features) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of roots, and their products with the rows Z, (n_rows, n_some)."""
        for some in slices(len(self.intercept), _TOGETHER):
            yield some, np.asarray(Z @ self.coef[some].T) + self.intercept[some]

    def times(self, factor: float) -> "RidgePosterior":
        """Return the posterior for noise of this variance."""
        root = np.sqrt(factor)
        return RidgePosterior(np.array(self.alpha / factor), self.coef * np.float32(root), self.intercept * root)

    def variances(self, Z: Features) -> np.ndarray:
        """Return the variances of predictions for the rows of Z."""
        total = np.zeros(Z.shape[0])
        for _, part in self.parts(Z):
            total += np.einsum("ij,ij->i", part, part, dtype=np.float64)
        return total + unseen_shares(Z) / self.alpha


def ridge_posterior(
    rows: ProcessRows,
    alpha: float,
    n_samples: int,
    options: SolverOptions,
    rng: np.random.Generator,
    system: RidgeSystem | None = None,
    warns: bool = False,
) -> RidgePosterior:
    """Compute the posterior of a ridge model with positive `alpha`: exact with a Gram matrix, otherwise by samples.

    The difference d of a prior sample w and noise e solves ``(A + alpha) d = alpha w - Z'V e`` (Wilson et al. 2021).
    The solve starts from w, because ``w - d`` is independent of d. An iterate is d plus a part of ``w - d``, so its
    variance is too large by the variance of this part: never too small, and correct in directions without data. From
    0, an iterate is a part of d, and its variance is too small where eigenvalues are small. `system` contains the
    equations of the rows, if they are known. `warns` enables a warning if `max_iter` is too small.
    """
    if system is None and uses_gram(rows, 1, options):
        system = gram_system(rows, options.fit_intercept)
    if isinstance(system, GramSystem):
        return _closed(system, alpha, options.fit_intercept)
    coef, intercept = np.empty((n_samples, rows.shape[1]), np.float32), np.empty(n_samples)
    residual = 0.0
    for some in slices(n_samples, _TOGETHER):
        result = _sampled(rows, alpha, some.stop - some.start, options, rng)
        coef[some], intercept[some] = result.solution.T, result.intercept
        residual = max(residual, result.residuals[-1].max())
    if warns and residual > _MOST_RESIDUAL:
        warn(
            f"Standard deviations are too large, because the solves of posterior samples stopped after at most "
            f"{options.max_iter} iterations with a relative residual of {residual:.2g}, above {_TOL}. "
            "Increase max_iter or alpha.",
            ConvergenceWarning,
        )
    coef /= np.float32(np.sqrt(n_samples))
    return RidgePosterior(np.array(float(alpha)), coef, intercept / np.sqrt(n_samples))


def _sampled(
    rows: ProcessRows, alpha: float, n_samples: int, options: SolverOptions, rng: np.random.Generator
) -> Result:
    """Return the solution for some posterior samples, minus the mean."""
    prior = rng.standard_normal((n_samples, rows.shape[1])).astype(rows.dtype) / rows.dtype.type(np.sqrt(alpha))
    noise = rng.standard_normal((n_samples, rows.shape[0])).T
    if rows.weights is not None:
        noise *= quotients(1.0, np.sqrt(rows.weights))
    system = NormalEquations(ProcessRows(rows.Z, -noise, rows.weights), options.fit_intercept)
    system.right += rows.dtype.type(alpha) * prior.T
    options = replace(options, tol=_TOL, callback=None)
    return cg.solve(system, np.full(n_samples, alpha), options, start=prior.T)


def _closed(system: GramSystem, alpha: float, fit_intercept: bool) -> RidgePosterior:
    """Return the posterior from a root of the inverse; the last root represents the mean of the targets.

    Intercepts refer to the rounded roots, because products with the means cancel if these are far from 0.
    """
    coef = _inverse_root(system.matrix, alpha).astype(np.float32)
    intercept = -coef.astype(np.float64) @ system.means
    if fit_intercept:
        coef = np.vstack([coef, np.zeros(len(system.matrix), np.float32)])
        intercept = np.append(intercept, 1 / np.sqrt(system.total))
    return RidgePosterior(np.array(float(alpha)), coef, intercept)


def _inverse_root(matrix: np.ndarray, alpha: float) -> np.ndarray:
    """Return R with ``R' R = (matrix + alpha)^-1``, without directions in which rows vary by rounding only."""
    n, least = len(matrix), len(matrix) * np.finfo(np.float64).eps
    scale = np.sqrt(np.diag(matrix) + alpha)
    shifted = matrix / np.multiply.outer(scale, scale) + np.diag(alpha / scale**2)
    with threads_to_factorize(n):
        factor, failed = linalg.lapack.dpotrf(shifted, lower=1)
        if not failed and (np.diag(factor) ** 2 > least).all():
            return linalg.lapack.dtrtri(factor, lower=1)[0] / scale
        values, vectors = linalg.eigh(shifted, check_finite=False, driver="evd")
    known = values > least * values[-1]
    return (vectors[:, known] / np.sqrt(values[known])).T / scale


def noise_variance(rows: ProcessRows, posterior: RidgePosterior, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Estimate the variance of the noise of each target from the residuals of the training rows.

    A residual has the variance ``s2 (1 / v_i - u_i)``, with the variance u_i of the prediction. So weighted squares
    are divided by the number of rows minus the trace of the hat matrix, the sum of ``v_i u_i``.
    """
    weights = np.ones((rows.shape[0], 1)) if rows.weights is None else rows.weights
    squares = (weights * (rows.Y - np.asarray(rows.design @ coef) - intercept) ** 2).sum(axis=0)
    n_rows = np.count_nonzero(weights)
    freedom = n_rows - float(weights[:, 0] @ posterior.variances(rows.design))
    return squares / max(freedom, _LEAST_FREEDOM * n_rows)
