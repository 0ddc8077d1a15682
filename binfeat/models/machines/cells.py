"""Cells of rows, and the solver of one cell."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from binfeat._common.subsets import cached_parts, thinned
from binfeat._threads import side_by_side
from binfeat.length_scales.kernel_sum import KernelSum, KernelValues
from binfeat.length_scales.leave_one_out import (
    Solve,
    Weights,
    left_out_variances,
    precise_inverse_root,
    solver_by,
    squared_row_norms,
    times_square,
)
from binfeat.length_scales.matrices import Frame
from binfeat.length_scales.search import mean_distances
from binfeat.models.fitted.cell_trees import CellTrees, ScaledTable, split_into_cells
from binfeat.models.kernel_algebra.loss import Loss
from binfeat.models.kernel_algebra.minimum import left_out, minimise
from binfeat.models.kernel_algebra.solve import inverse_diagonals, rows_of_cell
from binfeat.models.problem import Problem
from binfeat.models.settings import LOCAL

Cell = tuple[np.ndarray, np.ndarray, Weights]  # columns (n_inputs, n), targets (n, n_targets), weights
CellFunction = Callable[[np.ndarray, np.ndarray, Weights], "SolvedCell"]  # of the parts of a `Cell`
EachCell = Callable[[CellFunction, list[np.ndarray]], "list[SolvedCell]"]  # of cells, which are numbers of rows


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows of a problem that trees split into cells, as columns of a kernel."""

    problem: Problem
    X: ScaledTable  # scaled, (n_rows, n_inputs)
    rows: np.ndarray  # numbers of those that are used
    frame: Frame

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """Rows with these numbers, (n_inputs, len(rows))."""
        out = np.empty((self.X.shape[1], len(rows)), np.float32)
        for place in cached_parts(len(rows), len(out)):
            out[:, place] = self.frame.columns(self.X[rows[place]])
        return out

    def part(self, rows: np.ndarray) -> Cell:
        problem = self.problem
        return self.columns(rows), problem.Y[rows].astype(np.float32), problem.relative_weights(rows)

    def each_cell(self, function: CellFunction, cells: list[np.ndarray], n_jobs: int | None) -> "list[SolvedCell]":
        return side_by_side(lambda rows: function(*self.part(rows)), cells, n_jobs)

    def split(self, kernel: KernelSum, most: int, seed: int, tree: int) -> tuple[CellTrees, list[np.ndarray]]:
        """Return a tree, and the rows of its cells, up to a maximum unless rows are equal."""
        main, rng = kernel.main, np.random.default_rng([seed, tree])
        counts = np.any([part.gamma > 0 for part in kernel.parts], axis=0)

        def spread(rows: np.ndarray) -> np.ndarray:
            some = self.X[thinned(rows, LOCAL.spread_rows)]
            exponents = main.gamma * mean_distances(some, self.problem.categorical, rng, main.kernel.power)
            if exponents.any():
                return exponents ** (1 / main.kernel.power)
            return (counts & (np.ptp(self.X[rows], axis=0) > 0)).astype(float)

        return split_into_cells(self.X, self.rows, spread, most, rng, LOCAL.disorder if tree else 0.0)

    def samples(self, kernel: KernelSum, most: int, seed: int) -> list[np.ndarray]:
        """Return rows of the cells of a first tree, up to a maximum for each."""
        return [thinned(cell, most) for cell in self.split(kernel, most, seed, 0)[1]]

    def inverse_diagonal(
        self, kernel: KernelSum, weights: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, bool]:
        """Return the diagonal of ``(K + 1 1' + alpha / v)^-1``, (n_rows, 1), and True if it is exact.

        `weights` are of all rows of the table. The diagonal is exact if there is one cell; otherwise it is approximated
        by rows in cells and landmarks. It is NaN if there are more equal rows than a cell can hold.
        """
        values = kernel.values(self.frame, self.problem.categorical, 1)
        cells = self.samples(kernel, rows_of_cell(len(self.rows)), 0)
        known = [(self.columns(rows), None if weights is None else weights[rows]) for rows in cells]
        landmarks = self.columns(thinned(self.rows, LOCAL.landmarks))
        found = inverse_diagonals(values, known, landmarks, kernel.alpha, n_jobs)
        diagonal = np.full(len(self.X), np.nan)
        diagonal[np.concatenate(cells)] = np.concatenate(found)
        return diagonal[self.rows, np.newaxis], len(cells) == 1


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """Coefficients of the rows of a cell, and what leaving each of them out tells."""

    coef: np.ndarray  # (n_rows, n_targets); or (1, n_targets) if all rows are equal and the first represents them
    intercept: np.ndarray  # (n_targets,)
    alpha: float  # that the coefficients took
    scores: np.ndarray  # (n_rows, n_targets), of the rows
    residuals: np.ndarray  # (n_rows, n_targets), leave-one-out
    variances: np.ndarray  # (n_rows,), of the predictions without each row, as multiples of the noise
    gain: float = 0.0  # that one more step promises, of a loss that takes steps

    @classmethod
    def of(cls, coef: np.ndarray, diagonal: np.ndarray, alpha: float, Y: np.ndarray, weights: Weights) -> "SolvedCell":
        """The solution for squared errors, by the coefficients and the diagonal (n_rows,) of the inverse."""
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
    most: int  # rows of a cell, unless they do not differ

    @classmethod
    def of(cls, rows: CellRows, kernel: KernelSum, most: int) -> "CellSolver":
        problem = rows.problem
        values = kernel.values(rows.frame, problem.categorical, 1)
        return cls(values, kernel.alpha, problem.loss if problem.loss.needs_matrix else None, most)

    def __call__(self, X: np.ndarray, Y: np.ndarray, weights: Weights) -> SolvedCell:
        """Return the model of rows as columns (n_inputs, n_rows), with targets (n_rows, n_targets) and weights."""
        if self.loss is not None:
            one = self._minimised if len(Y) <= self.most else self._minimised_of_equal
            return one(self.loss, X, Y, weights)
        if len(Y) > self.most:
            return self._of_equal(X, Y, weights)
        if is_constant(Y):
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

    def _minimised_of_equal(self, loss: Loss, X: np.ndarray, Y: np.ndarray, weights: Weights) -> SolvedCell:
        """Return the model of equal rows for another loss, by one row per label; leave-one-out scores are equal."""
        labels, label = np.unique(Y, axis=0, return_inverse=True)
        v, c = np.bincount(label.ravel(), _column(weights, Y)[:, 0]), self._value_of_equal(X)

        def inverse(alpha: float, own: np.ndarray) -> tuple[Solve, float]:
            d = own[:, np.newaxis] / alpha  # of a constant plus a diagonal (Sherman & Morrison 1950)
            return lambda Z: d * (Z - c * (d.T @ Z) / (1 + c * d.sum())), alpha

        score = minimise(loss, inverse, self.alpha, v, labels)[0].scores[0]
        return self._by_one_row(score, c, len(Y), Y - score, np.zeros(len(Y)))

    def _value_of_equal(self, X: np.ndarray) -> float:
        """The kernel of a row with itself, and 1 of the intercept."""
        return 1.0 + float(self.kernel(X[:, :1], X[:, :1])[0, 0])

    def _by_one_row(
        self, score: np.ndarray, c: float, n_rows: int, residuals: np.ndarray, variances: np.ndarray
    ) -> SolvedCell:
        scores, coef = np.tile(score, (n_rows, 1)), score / c
        return SolvedCell(coef[np.newaxis], coef, self.alpha, scores, residuals, variances)

    def _minimised(self, loss: Loss, X: np.ndarray, Y: np.ndarray, weights: Weights) -> SolvedCell:
        K = self.kernel(X, X)
        found, alpha = minimise(loss, solver_by(precise_inverse_root, K), self.alpha, weights, Y)
        residuals = Y - left_out(loss, K, alpha, weights, Y, found.scores, precise_inverse_root)
        coef, nothing = found.coef, np.zeros(len(Y))
        return SolvedCell(coef, coef.sum(axis=0), alpha, found.scores, residuals, nothing, found.gain)


def _column(weights: Weights, Y: np.ndarray) -> np.ndarray:
    return np.ones((len(Y), 1)) if weights is None else weights[:, np.newaxis].astype(np.float64)
