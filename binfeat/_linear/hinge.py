"""The L2 support vector machine in the primal, by Newton's method on the ridge system."""

from dataclasses import dataclass

import numpy as np

from binfeat._linear import cg
from binfeat._linear.result import Result
from binfeat._rows.products import RidgeSystem

_INNER_REDUCTION = 0.1  # each Newton system is solved until its residual is this share of its first one
_LINE_STEPS = 30
_ROUNDING = 1e-13  # relative differences of objectives below this say nothing
_LONGEST_STEP = 2.0  # keeps rounding from being followed where the two machines are all but one
_NEWTON_STEPS = 100  # far more than a piecewise quadratic objective takes


@dataclass
class _Machines:
    """One machine for each target: coefficients, intercepts, and their scores of the training rows."""

    coef: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray

    def towards(self, other, step):
        parts = ((a + (b - a) * step).astype(a.dtype) for a, b in zip(vars(self).values(), vars(other).values()))
        return _Machines(*parts)


def solve_hinge(Z, Y, weights, alpha, *, fit_intercept, tol, max_iter, start=None, monitor=None):
    """Minimise ``sum_i v_i max(0, 1 - y_i f_i)^2 + alpha |w|^2`` with ``f = Z w + b`` for each target.

    The loss is quadratic between kinks, and its Newton step is the ridge machine on the rows inside the
    margin (Keerthi & DeCoste, JMLR 2005); a line search along it is exact. All targets share the products.

    Parameters
    ----------
    Z : design matrix of shape (n_rows, n_columns)
    Y : ndarray of shape (n_rows, n_targets), of -1 and 1
    weights : ndarray of shape (n_rows, 1) or (n_rows, n_targets), or None
    alpha : ndarray of shape (n_targets,)
    fit_intercept : bool
    tol : float
        Newton's method ends when its ridge system is solved to this relative residual and the objective no
        longer falls by more than the square of it.
    max_iter : int
        Most iterations of conjugate gradients in all.
    start : tuple of (coef, intercept), default=None
    monitor : callable, default=None

    Returns
    -------
    result : Result
    intercept : ndarray of shape (n_targets,)
    """
    weights = np.ones((Z.shape[0], 1)) if weights is None else weights
    system = RidgeSystem(Z, None, fit_intercept)
    zero = np.zeros((Z.shape[1], Y.shape[1]), system.dtype), np.zeros(Y.shape[1])
    coef, intercept = zero if start is None else start
    now = _Machines(coef, intercept, np.asarray(Z @ coef) + intercept)
    residuals, n_iter, status = [], 0, "max_iter"
    for _ in range(_NEWTON_STEPS):
        inside = weights * (now.scores * Y < 1)
        system = RidgeSystem(Z, inside, fit_intercept)
        right, diagonal = system.right_side(Y), system.diagonal()
        options = {"tol": tol, "reduction": _INNER_REDUCTION, "max_iter": max_iter - n_iter, "monitor": monitor}
        result = cg.solve(system.apply, right, diagonal, alpha, start=now.coef, **options)
        made = len(result.residuals) - 1
        n_iter += made
        residuals.append(result.residuals[1:] if residuals else result.residuals)
        before, now = now, _search(now, _aim(system, Y, result.solution), Y, weights, alpha)
        if result.status in ("interrupted", "stopped", "breakdown"):
            status = result.status
            break
        loss = _objective(before, Y, weights, alpha)
        settled = loss - _objective(now, Y, weights, alpha) <= loss * max(tol**2, _ROUNDING)
        if (settled & (result.residuals[-1] <= tol)).all():
            status = "converged"
            break
        if n_iter >= max_iter:
            break
    return Result(now.coef, max(n_iter, 1), np.concatenate(residuals), status), now.intercept


def _objective(now, Y, weights, alpha):
    return (weights * np.maximum(0, 1 - Y * now.scores) ** 2).sum(axis=0) + alpha * cg.column_dots(now.coef, now.coef)


def _aim(system, Y, coef):
    """The ridge machine with these coefficients and the best intercepts for them."""
    scores = np.asarray(system.Z @ coef)
    intercept = system.mean(Y - scores)
    return _Machines(coef, intercept, scores + intercept)


def _search(now, aim, Y, weights, alpha):
    """The minimiser on the line through two machines, for each target: the root of a rising, piecewise linear slope."""
    margins, slopes = 1 - Y * now.scores, Y * (aim.scores - now.scores)
    way = aim.coef - now.coef
    bend, tilt = cg.column_dots(way, way), cg.column_dots(now.coef, way)
    step = np.ones(Y.shape[1])
    low, high = np.zeros_like(step), np.full_like(step, _LONGEST_STEP)
    for _ in range(_LINE_STEPS):
        left = margins - step * slopes
        active = weights * (left > 0)
        slope = alpha * (tilt + step * bend) - (active * left * slopes).sum(axis=0)
        curve = alpha * bend + (active * slopes**2).sum(axis=0)
        low, high = np.where(slope < 0, step, low), np.where(slope >= 0, step, high)
        newton = step - np.divide(slope, curve, out=np.zeros_like(slope), where=curve > 0)
        outside = (newton <= low) | (newton >= high)
        before, step = step, np.where(outside & (slope != 0), (low + high) / 2, newton)
        if np.allclose(before, step, rtol=1e-14, atol=0):
            break
    return now.towards(aim, step)
