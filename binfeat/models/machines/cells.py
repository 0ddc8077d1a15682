"""Cells of rows: the search for their kernel and penalty, and the solver of one cell.

Rows of a cell are as dense as all rows, so their kernels are narrower than kernels learned from samples.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from binfeat._common.arrays import Scratch
from binfeat._common.subsets import cached_parts, thinned
from binfeat._threads import side_by_side
from binfeat.length_scales.kernel_sum import KernelSum, KernelValues, SumWithSlopes
from binfeat.length_scales.leave_one_out import (
    LeaveOneOut,
    SingularKernelError,
    Solve,
    Weights,
    leave_one_out,
    left_out_variances,
    precise_inverse_root,
    solver_by,
    squared_row_norms,
    times_square,
)
from binfeat.length_scales.matrices import Frame
from binfeat.length_scales.search import MOST_ALPHA, Adam, mean_distances
from binfeat.models.fitted.cell_trees import CellTrees, ScaledTable, split_into_cells
from binfeat.models.kernel_algebra.loss import Loss
from binfeat.models.kernel_algebra.minimum import left_out, minimise
from binfeat.models.kernel_algebra.solve import inverse_diagonals, rows_of_cell
from binfeat.models.problem import Problem
from binfeat.models.settings import LOCAL, TUNING

Cell = tuple[np.ndarray, np.ndarray, Weights]  # columns (n_inputs, n), targets (n, n_targets), weights
CellFunction = Callable[[np.ndarray, np.ndarray, Weights], "SolvedCell"]  # of the parts of a `Cell`
EachCell = Callable[[CellFunction, list[np.ndarray]], "list[SolvedCell]"]  # of cells, which are numbers of rows


class CellSearch:
    """Adam on the logarithms of the gammas of all parts of a kernel, of their shares, and of the penalty.

    A step goes down the mean slope of the logarithms of the leave-one-out errors of some sets of rows. The gammas of a
    kernel have a factor in common, which moves next to them.
    """

    def __init__(
        self,
        kernel: KernelSum,
        frame: Frame,
        categorical: np.ndarray,
        *,
        n_rows: int,
        least_alpha: float,
        learns_gamma: bool,
        learns_alpha: bool,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        parts = kernel.parts
        self._start_kernel, self._frame, self._n_jobs, self._seed = kernel, frame, n_jobs, seed
        self._least_alpha, self._prior = least_alpha, 2 * TUNING.prior / n_rows
        self._matrices, gammas = kernel.matrices(categorical, 1), kernel.gammas(frame)
        self._live = gammas > 0
        self._moves = learns_gamma & self._live
        self._learns_shares, self._learns_alpha = learns_gamma and len(parts) > 1, learns_alpha
        self._logs = np.log(np.where(self._live, gammas, 1.0))  # of gamma, (n_parts, n_inputs)
        self._start = self._logs.copy()
        self._log_shares = np.log([part.share for part in parts])
        self._log_alpha = float(np.log(kernel.alpha))
        shapes = self._logs.shape, (len(parts), 1), (len(parts),), ()
        self._of_gammas, self._of_factors, self._of_shares, self._of_alpha = map(Adam, shapes)
        self._lanes: list[tuple[SumWithSlopes, Scratch]] = []
        self.error = np.nan  # of the rows of the last step

    @property
    def alpha(self) -> float:
        return float(np.exp(self._log_alpha))

    @property
    def _gammas(self) -> np.ndarray:
        return np.exp(self._logs) * self._live

    @property
    def _shares(self) -> np.ndarray:
        shares = np.exp(self._log_shares)
        return shares / shares.sum()

    @property
    def kernel(self) -> KernelSum:
        """The kernel after the steps so far, of the parts that are worth their time."""
        known = self._start_kernel
        parts = [
            replace(part, base=gamma / self._frame.gamma(part.kernel, 1.0), factor=1.0, share=float(share))
            for part, gamma, share in zip(known.parts, self._gammas, self._shares, strict=True)
        ]
        main, worths = replace(known, parts=parts).main, self._worths
        kept = [part for part, own in zip(parts, worths, strict=True) if part is main or own >= TUNING.least_worth]
        total = sum(part.share for part in kept)
        return replace(known, parts=[replace(part, share=part.share / total) for part in kept], alpha=self.alpha)

    @property
    def _worths(self) -> np.ndarray:
        """Return the share of each kernel in the differences of rows."""
        spreads = self._shares * np.sum([matrix.spreads for matrix, _ in self._lanes], axis=0)
        return spreads / spreads.sum() if self._lanes and spreads.sum() > 0 else self._shares

    def step(self, sets: list[Cell], progress: float, number: int) -> None:
        """A step by these sets of rows, when this share of the steps is done."""
        known = [own for own in self._left_out(sets, number) if own.error > 0]
        if not known:
            return
        self.error = float(np.mean([own.error for own in known]))
        rate = TUNING.rate * (1 - (1 - TUNING.last_rate) * progress)
        slopes = np.mean([own.slopes / own.error for own in known], axis=0)
        by_gamma, by_share = slopes[: self._logs.size].reshape(self._logs.shape), slopes[self._logs.size :]
        by_gamma = np.where(self._moves, by_gamma + self._prior_slopes(), 0.0)
        factors = self._of_factors.step(by_gamma.sum(axis=1, keepdims=True))
        self._logs -= rate * (self._of_gammas.step(by_gamma) + factors * self._moves)
        if self._learns_shares:
            self._log_shares -= rate * self._of_shares.step(by_share - self._shares * by_share.sum())
        if self._learns_alpha:
            slope = float(np.mean([own.alpha_slope / own.error for own in known]))
            moved = self._log_alpha - TUNING.alpha_rate * rate * float(self._of_alpha.step(slope))
            self._log_alpha = float(np.clip(moved, np.log(self._least_alpha), np.log(MOST_ALPHA)))

    def _left_out(self, sets: list[Cell], number: int) -> list[LeaveOneOut]:
        """Errors and slopes of each set, side by side."""
        while len(self._lanes) < len(sets):
            self._lanes.append((SumWithSlopes(self._matrices), Scratch()))
        parameters = np.append(self._gammas.ravel(), self._shares)

        def look(lane: int) -> LeaveOneOut | None:
            rng = np.random.default_rng([self._seed, number, lane])
            matrix, scratch = self._lanes[lane]
            try:
                return leave_one_out(matrix, *sets[lane], parameters, self.alpha, rng, scratch)
            except SingularKernelError:
                return None

        found = side_by_side(look, range(len(sets)), self._n_jobs)
        return [left_out for left_out in found if left_out is not None]

    def _prior_slopes(self) -> np.ndarray:
        moved = np.where(self._moves, self._logs - self._start, 0.0)
        means = moved.sum(axis=1, keepdims=True) / np.maximum(1, self._moves.sum(axis=1, keepdims=True))
        return self._prior * (moved - means)


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
