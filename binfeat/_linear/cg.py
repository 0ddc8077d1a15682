"""Conjugate gradients with a diagonal preconditioner, all right-hand sides through every product together."""

import numpy as np

from binfeat._engine.vectors import BLOCK, advance, curvature, partial_dots, partial_squares, redirect
from binfeat._linear.result import Result, refuse_overflow

_REFRESH = 50  # iterations between recomputations of the true residual (lineax's CG does likewise)


def _sums(kernel, a, b):
    """Sum over the blocks of `kernel`'s partial sums, for each column of `a`."""
    a, b = np.asfortranarray(a).T, np.asfortranarray(b).T
    partial = np.empty((a.shape[0], -(-a.shape[1] // BLOCK)))
    kernel(a, b, partial)
    return partial.sum(axis=1)


def column_dots(a, b):
    """Dot product of each column of `a` with that of `b`, in float64 and a fixed order of summation."""
    return _sums(partial_dots, a, b)


def _inverse(diagonal, shift, dtype):
    """Inverse of the preconditioner, with one column where all shifts are equal; 0 where it has none."""
    sums = diagonal + (shift[:1] if (shift == shift[0]).all() else shift)
    inverse = np.zeros(sums.shape, dtype, order="F")
    return np.divide(1.0, sums, out=inverse, where=sums > np.finfo(dtype).tiny, casting="same_kind")


class State:
    """A solve under way: the columns still active, and what is known of all of them.

    All arrays are in Fortran order: each column's numbers lie side by side.

    Attributes
    ----------
    n_iter : int
    active : ndarray of int
        Columns that are not done.
    solution : ndarray of shape (n, n_columns)
        Current iterate, updated in place.
    residuals : list of ndarray of shape (n_columns,)
        Relative residual norms, one array for each iteration and one before the first.
    broken : bool
        Whether some column broke down.
    """

    def __init__(self, apply, rhs, diagonal, shift, tol, reduction, start, start_image):
        self._apply = apply
        self._rhs, self._shift = np.asfortranarray(rhs), shift
        self._inverse = _inverse(diagonal, shift, rhs.dtype)
        self._norms = np.sqrt(_sums(partial_squares, self._rhs, self._inverse))
        refuse_overflow(rhs.dtype, diagonal, self._norms)
        self._image, self._direction = np.empty_like(self._rhs), np.zeros_like(self._rhs)
        self.n_iter, self.active, self.residuals, self.broken = 0, np.arange(rhs.shape[1]), [], False
        if start is None:
            self.solution, self._residual = np.zeros_like(self._rhs), self._rhs.copy(order="F")
        else:  # the answer to a right-hand side of 0 is 0
            self.solution = np.asfortranarray(np.where(self._norms > 0, start, 0.0), dtype=rhs.dtype)
            self._residual = np.empty_like(self._rhs)
            self._set_true_residual(start_image)
        self._square = _sums(partial_squares, self._residual, self._inverse)
        self._enough = np.maximum(tol * self._norms, reduction * np.sqrt(self._square))
        self._redirect(np.zeros(rhs.shape[1]))
        self._settle(np.zeros(rhs.shape[1], dtype=bool))

    def _set_true_residual(self, images=None):
        if images is None:
            images = self._image[:, : self.active.size]
            self._apply(np.asfortranarray(self.solution[:, self.active]), self.active, images)
        for k, column in enumerate(self.active):
            own = self._residual[:, column]
            np.multiply(self.solution[:, column], -self._shift[k].astype(own.dtype), out=own)
            own += self._rhs[:, column]
            own -= images[:, k]

    def _redirect(self, ratio):
        direction = self._direction[:, : self.active.size].T
        redirect(ratio, self.active, self._residual.T, self._inverse.T, direction)

    def step(self):
        """One iteration of every active column."""
        direction, image = self._direction[:, : self.active.size], self._image[:, : self.active.size]
        self._apply(direction, self.active, image)
        partial = np.empty((self.active.size, -(-direction.shape[0] // BLOCK)))
        curvature(direction.T, image.T, self._shift, partial)
        curved = partial.sum(axis=1)
        step = np.divide(self._square, curved, out=np.zeros_like(curved), where=curved > 0)
        stuck = ~(curved > 0) & (self._square > 0)
        vectors = direction.T, image.T, self._inverse.T, self.solution.T, self._residual.T
        advance(step, self._shift, self.active, *vectors, partial)
        square = partial.sum(axis=1)
        self._redirect(np.divide(square, self._square, out=np.zeros_like(square), where=self._square > 0))
        self._square = square
        self.n_iter += 1
        if self.n_iter % _REFRESH == 0:
            self._set_true_residual()
            self._square = _sums(partial_squares, self._residual, self._inverse)[self.active]
        self._settle(stuck | ~np.isfinite(square))

    def _settle(self, broken):
        """Note the residuals, and retire the columns that are done or broke down."""
        norms, residuals = self._norms[self.active], np.sqrt(self._square)
        relative = np.divide(residuals, norms, out=np.zeros_like(norms), where=norms > 0)
        self.residuals.append(self.residuals[-1].copy() if self.residuals else np.empty(norms.size))
        self.residuals[-1][self.active] = relative
        self.broken |= bool(broken.any())
        going = ~((residuals <= self._enough[self.active]) | (norms == 0) | broken)
        for place, earlier in enumerate(np.flatnonzero(going)):
            if place != earlier:
                self._direction[:, place] = self._direction[:, earlier]
        self.active, self._square, self._shift = self.active[going], self._square[going], self._shift[going]


def solve(apply, rhs, diagonal, shift, *, tol, max_iter, reduction=0.0, start=None, start_image=None, monitor=None):
    """Solve ``(A + shift_k) x_k = b_k`` for symmetric positive semidefinite A and each column k.

    Parameters
    ----------
    apply : callable
        ``apply(X, columns, out)`` writes ``A @ X`` for X in Fortran order; `columns` says which columns of
        `rhs` these belong to.
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
    start_image : ndarray of shape (n, n_columns), default=None
        ``A @ start``, where it is known.
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
