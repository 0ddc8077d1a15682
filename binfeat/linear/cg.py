"""Conjugate gradients with a diagonal preconditioner, for all targets in one product per iteration.

One-against-rest targets of classes have centered right-hand sides with sum 0, so their solutions also sum to 0. The
solution of one target is therefore minus the sum of the others, and needs no products. Further iterations start from
there if its residual is too large at the end.
"""

from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from binfeat._common.arrays import quotients
from binfeat._engine.vectors import BLOCK, advance, curvature, redirect
from binfeat._rows.vectors import column_dots, weighted_squares
from binfeat.linear.objective_rule import ObjectiveRule
from binfeat.linear.result import Result, SolveInterrupted, SolverOptions, refuse_overflow

Start: TypeAlias = np.ndarray | None  # (n, n_targets); None for 0, or if unknown

_REFRESH = 50  # iterations between recomputations of the true residual, as in lineax's CG
_ROUNDED = 4.0  # ratio of the true to the computed squared residual, from which rounding errors dominate
# Columns with at least this share of the largest norm are candidates. The last one is used, so rounding does not
# decide.
_NEAR = 0.9


class System(Protocol):
    """A symmetric positive semidefinite matrix A, its right-hand sides, and the intercepts of solutions.

    The default stopping rule also requires `at_zero`, the objective of each target for coefficients 0, float64 of shape
    (n_targets,).
    """

    right: np.ndarray  # (n, n_targets)
    diagonal: np.ndarray  # diagonal of A or a substitute, (n, 1) or (n, n_targets), float64

    def apply(self, W: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return ``A @ W``; column k of W belongs to ``targets[k]``. The next call can overwrite it."""

    def intercept(self, W: np.ndarray) -> np.ndarray: ...


def _inverse(diagonal: np.ndarray, shift: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the inverse of the preconditioner (one column if all shifts are equal), and 0 for entries 0.

    Positive entries are at least the smallest normal number, so that their inverse is finite.
    """
    sums = diagonal + (shift[:1] if (shift == shift[0]).all() else shift)
    inverse = np.zeros(sums.shape, dtype, order="F")
    return np.divide(1.0, np.maximum(sums, np.finfo(dtype).tiny), out=inverse, where=sums > 0, casting="same_kind")


class State:
    """State of a solve: the active columns, and arrays in Fortran order for all columns."""

    def __init__(
        self, system: System, alpha: np.ndarray, tol: float | None, reduction: float, start: Start, start_image: Start
    ) -> None:
        self._system, self._alpha, self._shift = system, alpha, alpha
        self._implied: int | None = None
        self._rhs = rhs = np.asfortranarray(system.right)
        self._inverse = _inverse(system.diagonal, alpha, rhs.dtype)
        self._norms = np.sqrt(weighted_squares(rhs, self._inverse))
        refuse_overflow(rhs.dtype, system.diagonal, self._norms)
        self._direction = np.zeros_like(rhs)
        self.n_iter, self.active, self.broken = 0, np.arange(rhs.shape[1]), False  # products use active columns only
        # Relative norms before the first iteration and after each; an upper bound for the implied column.
        self.residuals: list[np.ndarray] = []
        if start is None:
            self._solution, self._residual = np.zeros_like(self._rhs), self._rhs.copy(order="F")
        else:  # the solution for a right-hand side of 0 is 0
            self._solution = np.asfortranarray(np.where(self._norms > 0, start, 0.0), dtype=rhs.dtype)
            self._residual = np.empty_like(self._rhs)
            self._set_true_residual(start_image)
        self._square = weighted_squares(self._residual, self._inverse)
        self._refreshed = np.full(rhs.shape[1], np.inf)  # squared residuals at the last refresh
        self._enough = np.maximum((tol or 0.0) * self._norms, reduction * np.sqrt(self._square))
        self._rule = ObjectiveRule(cast(Any, system).at_zero) if tol is None else None
        if start is not None:
            self._begin_rule(self.active)
        self._redirect(np.zeros(rhs.shape[1]))
        self._settle(np.zeros(rhs.shape[1], dtype=bool))
        self._implied = self._implied_column()
        self._keep(self.active != self._implied)

    def _implied_column(self) -> int | None:
        """Return an active column of large norm that is minus the sum of the others; None if they do not sum to 0."""
        if self.active.size < 3 or self._inverse.shape[1] > 1:
            return None
        norms = self._norms[self.active]
        rest = np.sqrt(weighted_squares(self._rhs.sum(axis=1)[:, np.newaxis], self._inverse)[0])
        if rest > np.sqrt(np.finfo(self._rhs.dtype).eps) * norms.min():
            return None
        return self.active[norms >= _NEAR * norms.max()][-1]

    def _set_true_residual(self, images: np.ndarray | None = None) -> None:
        if images is None:
            images = self._system.apply(np.asfortranarray(self._solution[:, self.active]), self.active)
        for k, column in enumerate(self.active):
            residual = self._residual[:, column]
            np.multiply(self._solution[:, column], -self._shift[k].astype(residual.dtype), out=residual)
            residual += self._rhs[:, column]
            residual -= images[:, k]

    def _begin_rule(self, targets: np.ndarray) -> None:
        if self._rule is not None:
            x, both = self._solution[:, targets], self._rhs[:, targets] + self._residual[:, targets]
            self._rule.begin(targets, column_dots(np.asfortranarray(x), np.asfortranarray(both)))

    def _redirect(self, ratio: np.ndarray) -> None:
        direction = self._direction[:, : self.active.size].T
        redirect(ratio, self.active, self._residual.T, self._inverse.T, direction)

    def step(self) -> None:
        """Run one iteration for every active column."""
        direction = self._direction[:, : self.active.size]
        image = self._system.apply(direction, self.active)
        partial = np.empty((self.active.size, -(-direction.shape[0] // BLOCK)))
        curvature(direction.T, image.T, self._shift, partial)
        curved = partial.sum(axis=1)
        step = quotients(self._square, curved)
        stuck = ~(curved > 0) & (self._square > 0)
        vectors = direction.T, image.T, self._inverse.T, self._solution.T, self._residual.T
        advance(step, self._shift, self.active, *vectors, partial)
        square = partial.sum(axis=1)
        ratio = quotients(square, self._square)
        if self._rule is not None:
            self._rule.note(self.active, step * self._square)
        self._square = square
        self.n_iter += 1
        if self.n_iter % _REFRESH == 0:
            stuck |= self._refresh(ratio)
        self._redirect(ratio)
        self._settle(stuck | ~np.isfinite(square))

    def _refresh(self, ratio: np.ndarray) -> np.ndarray:
        """Compute the true residuals; return a mask of the targets that rounding errors keep from further progress.

        Where rounding errors dominate, the direction belongs to another residual, and the next step would be far too
        long. So the directions of these targets begin anew: their `ratio` is set to 0.
        """
        self._set_true_residual()
        square, before = weighted_squares(self._residual, self._inverse)[self.active], self._refreshed[self.active]
        rounded = square > _ROUNDED * self._square
        ratio[rounded] = 0.0
        self._square = self._refreshed[self.active] = square
        return rounded & (square > before / _ROUNDED)

    @property
    def solution(self) -> np.ndarray:
        """Return the current iterate, of shape (n, n_columns), which the next iteration overwrites."""
        if self._implied is not None:
            self._solution[:, self._implied] = 0
            np.subtract(0.0, self._solution.sum(axis=1), out=self._solution[:, self._implied])  # no -0.0
        return self._solution

    @property
    def intercept(self) -> np.ndarray:
        """Return the intercepts of the solution."""
        return self._system.intercept(self.solution)

    def result(self, status: str) -> Result:
        """Return the result."""
        return Result(self.solution, self.intercept, max(self.n_iter, 1), np.array(self.residuals), status)

    def _settle(self, broken: np.ndarray) -> None:
        """Record the residuals, and deactivate columns that have converged or broken down."""
        self.residuals.append(self.residuals[-1].copy() if self.residuals else np.empty(self._norms.size))
        self._retire(broken)
        if self._implied is not None:
            self.residuals[-1][self._implied] = 0.0
            most = self.residuals[-1] @ self._norms
            self.residuals[-1][self._implied] = most / self._norms[self._implied]
            if not self.active.size:
                self._take_implied(self._implied)

    def _retire(self, broken: np.ndarray) -> None:
        norms, residuals = self._norms[self.active], np.sqrt(self._square)
        relative = quotients(residuals, norms)
        self.residuals[-1][self.active] = relative
        self.broken |= bool(broken.any())
        done = (residuals <= self._enough[self.active]) | (norms == 0) | broken
        self._keep(~(done if self._rule is None else done | self._rule.holds(self.active)))

    def _keep(self, going: np.ndarray) -> None:
        for place, earlier in enumerate(np.flatnonzero(going)):
            if place != earlier:
                self._direction[:, place] = self._direction[:, earlier]
        self.active, self._square, self._shift = self.active[going], self._square[going], self._shift[going]

    def _take_implied(self, column: int) -> None:
        """Continue with the implied column, from minus the sum of the others."""
        residual = self._residual[:, column]
        self._solution, self._implied = self.solution, None
        residual[:] = 0
        np.subtract(self._rhs.sum(axis=1), self._residual.sum(axis=1), out=residual)
        self.active, self._shift = np.array([column]), self._alpha[[column]]
        self._square = weighted_squares(residual[:, np.newaxis], self._inverse)
        self._begin_rule(self.active)
        self._direction[:, 0] = 0
        self._redirect(np.zeros(1))
        self._retire(np.zeros(1, dtype=bool))


def solve(
    system: System,
    alpha: np.ndarray,
    options: SolverOptions,
    *,
    reduction: float = 0.0,
    start: Start = None,
    start_image: Start = None,
) -> Result:
    """Solve ``(A + alpha_k) x_k = b_k`` for symmetric positive semidefinite A and each target k.

    The preconditioner is ``diagonal + alpha``; an unknown with entry 0 stays at its start. The `tol` of the options
    is for residuals in the norm of the preconditioner's inverse; None selects `ObjectiveRule`. A target is
    also solved when its residual is at most `reduction` times its first residual. `start` is the first iterate, by
    default 0, and `start_image` is ``A @ start``, if known. Ctrl-C raises SolveInterrupted, with the result so
    far.
    """
    state, status = State(system, alpha, options.tol, reduction, start, start_image), None
    try:
        while state.active.size and state.n_iter < options.max_iter and status is None:
            state.step()
            if options.callback is not None and options.callback(state):
                status = "stopped"
    except KeyboardInterrupt as error:
        raise SolveInterrupted(state.result("interrupted")) from error
    if state.broken:
        status = "breakdown"
    elif status is None:
        status = "max_iter" if state.active.size else "converged"
    return state.result(status)
