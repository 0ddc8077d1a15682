"""Conjugate gradients with a diagonal preconditioner, all right-hand sides through every product together."""

import numpy as np

from binfeat._engine.vectors import BLOCK, advance, curvature, partial_dots, redirect
from binfeat._solver.result import Result

_REFRESH = 50  # iterations between recomputations of the true residual (lineax's CG does likewise)


def column_dots(a, b):
    """Dot product of each column of `a` with that of `b`, in float64 and a fixed order of summation."""
    partial = _partial(a)
    partial_dots(a, b, partial)
    return partial.sum(axis=0)


def _partial(a):
    return np.empty((-(-a.shape[0] // BLOCK), a.shape[1]))


def _inverse(diagonal, shift, dtype):
    """Inverse of the preconditioner, with one column where all shifts are equal; 0 where it has none."""
    sums = diagonal + (shift[:1] if (shift == shift[0]).all() else shift)
    return np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0).astype(dtype)


class State:
    """A solve under way: the columns still active, and what is known of all of them.

    Attributes
    ----------
    n_iter : int
    active : ndarray of int
        Columns that are not done.
    residuals : list of ndarray of shape (n_columns,)
        Relative residual norms, one array for each iteration and one before the first.
    broken : bool
        Whether some column broke down.
    """

    def __init__(self, apply, rhs, diagonal, shift, tol, reduction, start, start_image):
        self._apply = apply
        self._rhs, self._shift = rhs, shift
        self._inverse = _inverse(diagonal, shift, rhs.dtype)
        self._norms = np.sqrt(column_dots(rhs, rhs * self._inverse))
        self._done = np.zeros_like(rhs)
        self.n_iter, self.active, self.residuals, self.broken = 0, np.arange(rhs.shape[1]), [], False
        if start is None:
            self._solution, self._residual = np.zeros_like(rhs), rhs.copy()
        else:  # the answer to a right-hand side of 0 is 0
            self._solution = np.where(self._norms > 0, start, 0.0).astype(rhs.dtype)
            self._residual = self._true_residual(start_image)
        self._direction = self._residual * self._inverse
        self._square = column_dots(self._residual, self._direction)
        self._enough = np.maximum(tol * self._norms, reduction * np.sqrt(self._square))
        self._settle(np.zeros(rhs.shape[1], dtype=bool))

    @property
    def solution(self):
        """Current iterate of every column."""
        out = self._done.copy()
        out[:, self.active] = self._solution
        return out

    def _true_residual(self, images=None):
        images = self._apply(self._solution, self.active) if images is None else images
        return self._rhs - images - self._solution * self._shift.astype(self._rhs.dtype)

    def step(self):
        """One iteration of every active column."""
        image = self._apply(self._direction, self.active)
        partial = _partial(image)
        curvature(self._direction, image, self._shift, partial)
        curved = partial.sum(axis=0)
        step = np.divide(self._square, curved, out=np.zeros_like(curved), where=curved > 0)
        stuck = ~(curved > 0) & (self._square > 0)
        vectors = self._direction, image, self._inverse, self._solution, self._residual
        advance(step, self._shift, *vectors, partial)
        square = partial.sum(axis=0)
        ratio = np.divide(square, self._square, out=np.zeros_like(square), where=self._square > 0)
        redirect(ratio, self._residual, self._inverse, self._direction)
        self._square = square
        self.n_iter += 1
        if self.n_iter % _REFRESH == 0:
            self._residual = self._true_residual()
            self._square = column_dots(self._residual, self._residual * self._inverse)
        self._settle(stuck | ~np.isfinite(square))

    def _settle(self, broken):
        """Note the residuals, and retire the columns that are done or broke down."""
        norms, residuals = self._norms[self.active], np.sqrt(self._square)
        relative = np.divide(residuals, norms, out=np.zeros_like(norms), where=norms > 0)
        self.residuals.append(self.residuals[-1].copy() if self.residuals else np.empty(norms.size))
        self.residuals[-1][self.active] = relative
        self.broken |= bool(broken.any())
        done = (residuals <= self._enough[self.active]) | (norms == 0) | broken
        if not done.any():
            return
        self._done[:, self.active[done]] = self._solution[:, done]
        self.active = self.active[~done]
        self._square, self._shift = self._square[~done], self._shift[~done]
        for name in ("_solution", "_rhs", "_residual", "_direction"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[:, ~done]))
        if self._inverse.shape[1] > 1:
            self._inverse = np.ascontiguousarray(self._inverse[:, ~done])


def solve(apply, rhs, diagonal, shift, *, tol, max_iter, reduction=0.0, start=None, start_image=None, monitor=None):
    """Solve ``(A + shift_k) x_k = b_k`` for symmetric positive semidefinite A and each column k.

    Parameters
    ----------
    apply : callable
        ``apply(X, columns)`` gives ``A @ X``; `columns` says which columns of `rhs` these belong to.
    rhs : ndarray of shape (n, n_columns), float32 or float64
    diagonal : ndarray of shape (n, 1) or (n, n_columns)
        Diagonal of A, or what stands for it; the preconditioner is ``diagonal + shift``. Where that is 0
        the unknown stays at its start.
    shift : ndarray of shape (n_columns,)
    tol : float
        A column is done when its residual, in the norm of the preconditioner's inverse, is at most `tol`
        times that of `rhs`.
    max_iter : int
    reduction : float, default=0.0
        A column is also done when its residual is at most this share of its first one.
    start : ndarray of shape (n, n_columns), default=None
        First guess; None is 0.
    monitor : callable, default=None
        ``monitor(state)`` is called after each iteration and stops the solve when it gives True.

    Returns
    -------
    result : Result
        Of a `KeyboardInterrupt` it tells by its status; the caller has to raise it again.
    """
    status = None
    state = State(apply, rhs, diagonal, shift, tol, reduction, start, start_image)
    try:
        while state.active.size and state.n_iter < max_iter and status is None:
            state.step()
            if monitor is not None and monitor(state):
                status = "stopped"
    except KeyboardInterrupt:
        status = "interrupted"
    if state.broken:
        status = "breakdown"
    elif status is None:
        status = "max_iter" if state.active.size else "converged"
    return Result(state.solution, max(state.n_iter, 1), np.array(state.residuals), status)
