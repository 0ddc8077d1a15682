"""The primal L2 support vector machine, by Newton's method on the ridge system."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from binfeat._common.arrays import quotients
from binfeat._rows.rows import ProcessRows
from binfeat._rows.vectors import column_dots
from binfeat.linear import cg
from binfeat.linear.normal_equations import NormalEquations
from binfeat.linear.result import Penalties, Result, SolveInterrupted, SolverOptions

_TOL = 1e-2  # default; losses of new rows are within 0.5 % of converged losses (ten tables, four penalties)
_INNER_REDUCTION = 0.1  # relative reduction of the residual in each Newton system
_LINE_STEPS = 30
_ROUNDING = 1e-13  # relative differences of objectives below this are rounding
_LONGEST_STEP = 2.0  # against long steps along rounding errors, if both models nearly coincide
_NEWTON_STEPS = 100  # far more than a piecewise quadratic objective needs


@dataclass
class _Models:
    """One model per target: coefficients, intercepts, and scores of the training rows."""

    coef: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, rows: ProcessRows, start: Result | None) -> "_Models":
        """Return the model with these coefficients and intercepts (or 0), and its scores of the rows."""
        if start is None:
            zero = np.zeros((rows.shape[1], rows.n_targets), rows.dtype)
            return cls(zero, np.zeros(rows.n_targets), np.zeros(rows.Y.shape, rows.dtype))
        return cls(start.solution, start.intercept, np.asarray(rows.design @ start.solution) + start.intercept)

    def towards(self, other: "_Models", step: np.ndarray) -> "_Models":
        parts = ((a + (b - a) * step).astype(a.dtype) for a, b in zip(vars(self).values(), vars(other).values()))
        return _Models(*parts)


def solve_hinge(rows: ProcessRows, alpha: np.ndarray, options: SolverOptions, start: Result | None = None) -> Result:
    """Minimize ``sum_i v_i max(0, 1 - y_i f_i)^2 + alpha |w|^2`` with ``f = Z w + b`` for each target, -1 or 1.

    The loss is quadratic between kinks, and its Newton step is a ridge model of the rows inside the
    margin (Keerthi & DeCoste, JMLR 2005); a line search along it is exact. All targets share the products.

    Newton's method ends when its ridge system is solved to the relative residual `tol`, by default 1e-2, and the
    objective falls by less than the square of `tol`, or after `max_iter` iterations of conjugate gradients in
    total. It begins at the model `start`, or at 0. Ctrl-C raises SolveInterrupted, with the result so far.
    """
    tol = _TOL if options.tol is None else options.tol
    Y, weights = rows.Y, np.ones((rows.shape[0], 1)) if rows.weights is None else rows.weights
    now = _Models.of(rows, start)
    residuals, n_iter, status = list[np.ndarray](), 0, "max_iter"
    try:
        for _ in range(_NEWTON_STEPS):
            system = NormalEquations(rows.weighted(weights * (now.scores * Y < 1)), options.fit_intercept)
            inner = replace(options, tol=tol, max_iter=options.max_iter - n_iter)
            try:
                result = cg.solve(system, alpha, inner, reduction=_INNER_REDUCTION, start=now.coef)
            except SolveInterrupted as error:
                result = error.result
            n_iter += len(result.residuals) - 1
            residuals.append(result.residuals[1:] if residuals else result.residuals)
            before, now = now, _search(now, _Models.of(rows, result), Y, weights, alpha)
            if result.status in ("interrupted", "stopped", "breakdown"):
                status = result.status
                break
            loss = _objective(before, Y, weights, alpha)
            settled = loss - _objective(now, Y, weights, alpha) <= loss * max(tol**2, _ROUNDING)
            if (settled & (result.residuals[-1] <= tol)).all():
                status = "converged"
                break
            if n_iter >= options.max_iter:
                break
    except KeyboardInterrupt:  # between the solves
        status = "interrupted"
    history = np.concatenate(residuals or [np.ones((1, rows.n_targets))])
    result = Result(now.coef, now.intercept, max(n_iter, 1), history, status, "newton-cg")
    if status == "interrupted":
        raise SolveInterrupted(result)
    return result


def solve_hinge_path(
    rows: ProcessRows, alphas: Penalties, options: SolverOptions, start: Result | None = None
) -> Iterator[Result]:
    """Yield a result for each penalty; each solve starts from the last solution; see `solve_hinge`."""
    for alpha in alphas:
        start = solve_hinge(rows, np.array(np.broadcast_to(alpha, rows.n_targets), np.float64), options, start)
        yield start
        if start.status == "stopped":
            return


def _objective(now: _Models, Y: np.ndarray, weights: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    return (weights * np.maximum(0, 1 - Y * now.scores) ** 2).sum(axis=0) + alpha * column_dots(now.coef, now.coef)


def _search(now: _Models, aim: _Models, Y: np.ndarray, weights: np.ndarray, alpha: np.ndarray) -> _Models:
    """Minimize along the line through two models, per target: find the root of an increasing piecewise linear slope."""
    margins, slopes = 1 - Y * now.scores, Y * (aim.scores - now.scores)
    way = aim.coef - now.coef
    bend, tilt = column_dots(way, way), column_dots(now.coef, way)
    step = np.ones(Y.shape[1])
    low, high = np.zeros_like(step), np.full_like(step, _LONGEST_STEP)
    for _ in range(_LINE_STEPS):
        left = margins - step * slopes
        active = weights * (left > 0)
        slope = alpha * (tilt + step * bend) - (active * left * slopes).sum(axis=0)
        curve = alpha * bend + (active * slopes**2).sum(axis=0)
        low, high = np.where(slope < 0, step, low), np.where(slope >= 0, step, high)
        newton = step - quotients(slope, curve)
        outside = (newton <= low) | (newton >= high)
        before, step = step, np.where(outside & (slope != 0), (low + high) / 2, newton)
        if np.allclose(before, step, rtol=1e-14, atol=0):
            break
    return now.towards(aim, step)
