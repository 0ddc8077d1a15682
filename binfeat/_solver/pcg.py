"""Conjugate gradients with a diagonal preconditioner, all right-hand sides through every product together."""

import numpy as np

from binfeat._engine.vectors import BLOCK, advance, partial_dots, redirect
from binfeat._solver.result import Result

_REFRESH = 50  # iterations between recomputations of the true residual (lineax's CG does likewise)


def column_dots(a, b):
    """Dot product of each column of `a` with that of `b`, in float64 and a fixed order of summation."""
    partial = np.empty((-(-a.shape[0] // BLOCK), a.shape[1]))
    partial_dots(a, b, partial)
    return partial.sum(axis=0)


class _State:
    """The columns still being solved."""

    def __init__(self, apply, rhs, inverse, start):
        self.solution = np.zeros_like(rhs) if start is None else start.astype(rhs.dtype)
        self.rhs, self.inverse = rhs, inverse
        self.residual = rhs.copy() if start is None else rhs - apply(self.solution, slice(None))
        self.direction = self.residual * inverse
        self.square = column_dots(self.residual, self.direction)

    def step(self, apply, columns):
        """One iteration; which columns broke down."""
        image = apply(self.direction, columns)
        curvature = column_dots(self.direction, image)
        broken = ~(curvature > 0) & (self.square > 0)
        step = np.divide(self.square, curvature, out=np.zeros_like(curvature), where=curvature > 0)
        partial = np.empty((-(-self.rhs.shape[0] // BLOCK), step.size))
        advance(step, self.direction, image, self.inverse, self.solution, self.residual, partial)
        self._turn(partial.sum(axis=0))
        return broken | ~np.isfinite(self.square)

    def _turn(self, square):
        ratio = np.divide(square, self.square, out=np.zeros_like(square), where=self.square > 0)
        self.square = square
        redirect(ratio, self.residual, self.inverse, self.direction)

    def refresh(self, apply, columns):
        """Replace the recurrence's residual by the true one."""
        self.residual = self.rhs - apply(self.solution, columns)
        self.square = column_dots(self.residual, self.residual * self.inverse)

    def keep(self, columns):
        """Drop the other columns."""
        self.square = self.square[columns]
        for name in ("solution", "rhs", "residual", "direction"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[:, columns]))
        if self.inverse.shape[1] > 1:
            self.inverse = np.ascontiguousarray(self.inverse[:, columns])


def solve(apply, rhs, diagonal, *, tol, max_iter, start=None):
    """Solve ``A x = b`` for symmetric positive definite A and each column b.

    Parameters
    ----------
    apply : callable
        ``apply(X, columns)`` gives ``A @ X``; `columns` says which columns of `rhs` these are, since A may
        differ between columns.
    rhs : ndarray of shape (n, n_columns), float32 or float64
    diagonal : ndarray of shape (n, 1) or (n, n_columns)
        The preconditioner's diagonal; an entry of 0 leaves its unknown at its start.
    tol : float
        A column is done when its residual, in the norm of the preconditioner's inverse, is at most `tol`
        times that of `rhs`.
    max_iter : int
    start : ndarray of shape (n, n_columns), default=None
        First guess; None is 0.

    Returns
    -------
    result : Result
    """
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0).astype(rhs.dtype)
    norms = np.sqrt(column_dots(rhs, rhs * inverse))
    if start is not None:
        start = np.where(norms > 0, start, 0.0)  # the answer to a right-hand side of 0
    state = _State(apply, rhs, inverse, start)
    solution, residuals = state.solution.copy(), [_relative(state.square, norms)]
    active, status, n_iter = np.arange(rhs.shape[1]), "converged", 0
    done = residuals[0] <= tol
    while True:
        if done.any():
            solution[:, active[done]] = state.solution[:, done]
            active = active[~done]
            state.keep(~done)
        if not active.size or n_iter == max_iter:
            break
        broken = state.step(apply, active)
        n_iter += 1
        if n_iter % _REFRESH == 0:
            state.refresh(apply, active)
        residuals.append(residuals[-1].copy())
        residuals[-1][active] = _relative(state.square, norms[active])
        done = (residuals[-1][active] <= tol) | broken
        status = "breakdown" if broken.any() else status
    solution[:, active] = state.solution
    status = "max_iter" if active.size and status == "converged" else status
    return Result(solution, max(n_iter, 1), np.array(residuals), status)


def _relative(square, norms):
    return np.divide(np.sqrt(square), norms, out=np.zeros_like(norms), where=norms > 0)
