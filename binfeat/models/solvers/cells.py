"""The solver of one cell, and its solution."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from binfeat.length_scales.kernel_sum import KernelValues
from binfeat.length_scales.leave_one_out import (
    Solve,
    Weights,
    left_out_variances,
    precise_inverse_root,
    solver_by,
    squared_row_norms,
    times_square,
)
from binfeat.models.kernel_algebra.loss import Loss
from binfeat.models.kernel_algebra.solve import left_out, minimize

Cell = tuple[np.ndarray, np.ndarray, Weights]  # columns (n_inputs, n), targets (n, n_targets), weights
CellFunction = Callable[[np.ndarray, np.ndarray, Weights], "SolvedCell"]  # from the parts of a `Cell`
EachCell = Callable[[CellFunction, list[np.ndarray]], "list[SolvedCell]"]  # for cells, given as row numbers


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """Coefficients of the rows of a cell, and leave-one-out results."""

    coef: np.ndarray  # (n_rows, n_targets); or (1, n_targets) if all rows are equal and the first represents them
    intercept: np.ndarray  # (n_targets,)
    alpha: float  # penalty of the coefficients
    scores: np.ndarray  # (n_rows, n_targets), predictions for the rows
    residuals: np.ndarray  # (n_rows, n_targets), leave-one-out
    variances: np.ndarray  # (n_rows,), of leave-one-out predictions, relative to the noise
    gain: float = 0.0  # expected gain of one more step, for losses with steps

    @classmethod
    def of(cls, coef: np.ndarray, diagonal: np.ndarray, alpha: float, Y: np.ndarray, weights: Weights) -> "SolvedCell":
        """Create the solution for squared errors from the coefficients and the diagonal (n_rows,) of the inverse."""
        scores = Y - alpha * coef / (1.0 if weights is None else weights[:, np.newaxis])
        residuals, variances = coef / diagonal[:, np.newaxis], left_out_variances(diagonal, alpha, weights)
        return cls(coef, coef.sum(axis=0, dtype=np.float64), alpha, scores, residuals, variances)

    def kept(self) -> "SolvedCell":
        """Return the part of the solution that a model stores."""
        nothing = np.empty(0)
        return replace(self, scores=nothing, residuals=nothing, variances=nothing)


def is_constant(Y: np.ndarray) -> bool:
    return bool(np.ptp(Y, axis=0).max() == 0)


@dataclass(frozen=True, eq=False)
class CellSolver:
    """A kernel, a penalty and a loss; it can be sent to workers."""

    kernel: KernelValues
    alpha: float
    loss: Loss | None  # None is the squared error
    most: int  # maximum rows of a cell, unless all are equal

    def __call__(self, X: np.ndarray, Y: np.ndarray, weights: Weights) -> SolvedCell:
        """Return the model of rows as columns (n_inputs, n_rows), with targets (n_rows, n_targets) and weights."""
        if self.loss is not None:
            one = self._minimized if len(Y) <= self.most else self._minimized_of_equal
            return one(self.loss, X, Y, weights)
        if len(Y) > self.most:
            return self._of_equal(X, Y, weights)
        if len(Y) > 1 and is_constant(Y):
            nothing = np.zeros(Y.shape)
            return SolvedCell(nothing, Y[0].astype(np.float64), self.alpha, Y, nothing, np.zeros(len(Y)))
        B, alpha = precise_inverse_root(self.kernel(X, X), self.alpha, weights, overwrite=True)
        return SolvedCell.of(times_square(B, Y), squared_row_norms(B), alpha, Y, weights)

    def _of_equal(self, X: np.ndarray, Y: np.ndarray, weights: Weights) -> SolvedCell:
        """Return the model of equal rows: the first row represents all, with the sum of their weights.

        Each value of the matrix, 1 1' included, is c, except for the penalty: with weights v, scores are
        ``c v'Y / (alpha + c sum(v))``.
        """
        v, alpha, c = _column(weights, Y), self.alpha, self._value_of_equal(X)
        score = c * (v.T @ Y)[0] / (alpha + c * v.sum())
        g = v / alpha * (1 - c * v / (alpha + c * v.sum()))
        variances = left_out_variances(g[:, 0], alpha, weights)
        return self._by_one_row(score, c, len(Y), v / alpha * (Y - score) / g, variances)

    def _minimized_of_equal(self, loss: Loss, X: np.ndarray, Y: np.ndarray, weights: Weights) -> SolvedCell:
        """Return the model of equal rows for another loss, from one row per label.

        Leaving out one of so many rows hardly changes the score, so it is also the leave-one-out score.
        """
        labels, label = np.unique(Y, axis=0, return_inverse=True)
        v, c = np.bincount(label.ravel(), _column(weights, Y)[:, 0]), self._value_of_equal(X)

        def inverse(alpha: float, own: np.ndarray) -> tuple[Solve, float]:
            d = own[:, np.newaxis] / alpha  # a constant plus a diagonal (Sherman & Morrison 1950)
            return lambda Z: d * (Z - c * (d.T @ Z) / (1 + c * d.sum())), alpha

        _, scores, _, _ = minimize(loss, inverse, self.alpha, v, labels)
        return self._by_one_row(scores[0], c, len(Y), Y - scores[0], np.zeros(len(Y)))

    def _value_of_equal(self, X: np.ndarray) -> float:
        """Return the kernel of a row with itself, plus 1 for the intercept."""
        return 1.0 + float(self.kernel(X[:, :1], X[:, :1])[0, 0])

    def _by_one_row(
        self, score: np.ndarray, c: float, n_rows: int, residuals: np.ndarray, variances: np.ndarray
    ) -> SolvedCell:
        scores, coef = np.tile(score, (n_rows, 1)), score / c
        return SolvedCell(coef[np.newaxis], coef, self.alpha, scores, residuals, variances)

    def _minimized(self, loss: Loss, X: np.ndarray, Y: np.ndarray, weights: Weights) -> SolvedCell:
        K = self.kernel(X, X)
        coef, scores, gain, alpha = minimize(loss, solver_by(precise_inverse_root, K), self.alpha, weights, Y)
        residuals = Y - left_out(loss, K, alpha, weights, Y, scores, precise_inverse_root)
        return SolvedCell(coef, coef.sum(axis=0), alpha, scores, residuals, np.zeros(len(Y)), gain)


def _column(weights: Weights, Y: np.ndarray) -> np.ndarray:
    return np.ones((len(Y), 1)) if weights is None else weights[:, np.newaxis].astype(np.float64)
