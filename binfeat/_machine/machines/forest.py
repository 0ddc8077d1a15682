"""Trees of cells, each cell with an exact machine of its rows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._engine.policy import side_by_side
from binfeat._machine.fitted.cell_trees import CellTrees
from binfeat._machine.fitted.kernel_function import KernelFunction, Part, kernel_sum
from binfeat._machine.fitted.local import LocalFunction
from binfeat._machine.kernel_algebra.bounded import BoundedLoss, left_out, minimise
from binfeat._machine.kernel_algebra.leave_one_out import (
    left_out_variances,
    precise_inverse_root,
    solver_by,
    squared_row_norms,
)
from binfeat._machine.machines.cell_rows import CellRows
from binfeat._machine.problem import MarginProblem

_NOTHING = np.empty(0)


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """Coefficients of the rows of a cell, and what leaving each of them out tells."""

    rows: np.ndarray
    coef: np.ndarray  # (n_rows, n_targets)
    intercept: np.ndarray  # (n_targets,)
    alpha: float  # that the coefficients took
    scores: np.ndarray  # (n_rows, n_targets), of the rows
    residuals: np.ndarray  # (n_rows, n_targets), leave-one-out
    variances: np.ndarray  # (n_rows,), of the predictions without each row, as multiples of the noise
    gain: float = 0.0  # that one more step promises, of a loss that takes steps


@dataclass(frozen=True, eq=False)
class NextTree:
    """A tree whose cells are being solved."""

    tree: CellTrees
    cells: list[np.ndarray]
    solved: dict[int, SolvedCell]


def is_constant(Y: np.ndarray) -> bool:
    """Whether all rows have the same targets."""
    return bool(np.ptp(Y, axis=0).max() == 0)


class Forest:
    """Trees for the same rows and the same kernel, and the mean of what they say of each row without that row."""

    def __init__(self, rows: CellRows, parts: list[Part], alpha: float, most: int, seed: int, n_jobs: int | None):
        self._rows, self._parts, self._alpha, self._most = rows, parts, alpha, most
        self._seed, self._n_jobs = seed, n_jobs
        self._trees: list[CellTrees] = []
        self._next: NextTree | None = None
        self._function: LocalFunction | None = None  # of the trees so far, once it is asked for
        self._cells: list[SolvedCell] = []
        self._sums = np.zeros(rows.problem.Y.shape)  # of leave-one-out residuals
        self._variances = np.zeros(len(rows.X))
        self._scores = np.zeros(rows.problem.Y.shape)  # sums of what trees make of their rows
        self._counts = np.zeros(len(rows.X))  # of trees that have a row
        self._kernel = kernel_sum(parts, rows.frame, rows.problem.categorical, 1)

    @property
    def n_trees(self) -> int:
        return len(self._trees)

    @property
    def gain(self) -> float:
        """That one more step promises in any of the cells."""
        return max(cell.gain for cell in self._cells)

    @property
    def n_cells(self) -> int:
        """Of all trees."""
        return len(self._cells)

    def ambiguity(self, n_cells: int) -> float:
        """How far the mean of two trees is below their mean loss, by that loss, in some cells of the next tree.

        Half of the variance of what single trees say of a row, if the loss is squared (Krogh & Vedelsby 1995).
        """
        some = evenly_spaced(len(self._started.cells), n_cells).tolist()
        self._solve(some)
        solved = [self._started.solved[number] for number in some]
        rows, more = (np.concatenate([getattr(own, name) for own in solved]) for name in ("rows", "residuals"))
        problem, Y = self._rows.problem, self._rows.problem.Y[rows]
        judge, one, other = problem.own_losses(rows), Y - self._sums[rows] / self.n_trees, Y - more
        apart, both = (judge(one) + judge(other)).mean() / 2, judge((one + other) / 2).mean()
        return float(max(apart - both, 0.0) / max(apart, np.finfo(float).tiny))

    def grow(self) -> None:
        """Add a tree."""
        started = self._started
        self._solve(range(len(started.cells)))
        for number in range(len(started.cells)):
            own = started.solved[number]
            self._sums[own.rows] += own.residuals
            self._scores[own.rows] += own.scores
            self._counts[own.rows] += 1
            if not self._trees:
                self._variances[own.rows] = own.variances
            self._cells.append(replace(own, scores=_NOTHING, residuals=_NOTHING, variances=_NOTHING))
        self._trees.append(started.tree)
        self._next = self._function = None

    @property
    def _started(self) -> NextTree:
        """The tree that comes next, some of whose cells may be solved."""
        if self._next is None:
            self._next = NextTree(*self._rows.split(self._parts, self._most, self._seed, self.n_trees), {})
        return self._next

    def _solve(self, numbers: Iterable[int]) -> None:
        """Solve those cells of the next tree with these numbers that are not solved yet."""
        started = self._started

        def solve(number: int) -> None:
            started.solved[number] = self._solved(started.cells[number])

        side_by_side(solve, [number for number in numbers if number not in started.solved], self._n_jobs)

    def predictions(self, rows: np.ndarray) -> np.ndarray:
        """Leave-one-out predictions of these rows, (len(rows), n_targets)."""
        return self._rows.problem.Y[rows] - self._sums[rows] / self.n_trees

    def known(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of those of these rows that are in a cell of every tree, and what the trees say of them."""
        places = np.flatnonzero(self._counts[rows] == self.n_trees)
        return places, self._scores[rows[places]] / self.n_trees

    def variances(self, rows: np.ndarray) -> np.ndarray:
        """Of the predictions of the first tree for rows that it does without, as multiples of the noise."""
        return self._variances[rows]

    def function(self) -> LocalFunction:
        """What the trees so far say of any row."""
        if self._function is None:
            self._function = self._joined()
        return self._function

    def _joined(self) -> LocalFunction:
        known, cells = self._rows, self._cells
        ordered = np.concatenate([cell.rows for cell in cells[: len(self._trees[0].inputs) + 1]])  # neighbours together
        apart = np.ones(len(known.X), bool)
        apart[ordered] = False
        ordered = np.append(ordered, known.rows[apart[known.rows]])
        X, _, weights = known.part(ordered)
        numbers = np.zeros(len(known.X), np.int32)
        numbers[ordered] = np.arange(len(ordered))
        return LocalFunction(
            **KernelFunction.arrays_of(self._parts, known.problem.categorical, X, known.frame, self._alpha, weights),
            **CellTrees.joined(self._trees).arrays(),
            coef=np.ascontiguousarray(np.concatenate([cell.coef for cell in cells]).T, np.float64),
            starts=np.cumsum([0, *(len(cell.rows) for cell in cells)]),
            rows=np.concatenate([numbers[cell.rows] for cell in cells]),
            cell_alphas=np.array([cell.alpha for cell in cells]),
            cell_intercepts=np.array([cell.intercept for cell in cells]),
        )

    def _solved(self, rows: np.ndarray) -> SolvedCell:
        X, Y, weights = self._rows.part(rows)
        if isinstance(self._rows.problem, MarginProblem):
            return self._minimised(self._rows.problem.loss, rows)
        if is_constant(Y):
            nothing = np.zeros(Y.shape)
            return SolvedCell(rows, nothing, Y[0].astype(np.float64), self._alpha, Y, nothing, np.zeros(len(rows)))
        B, alpha = precise_inverse_root(self._kernel(X, X), self._alpha, weights, overwrite=True)
        coef = B @ (B.T @ Y)
        g = squared_row_norms(B)
        intercept = coef.sum(axis=0, dtype=np.float64)
        scores = Y - alpha * coef / (1.0 if weights is None else weights[:, np.newaxis])
        variances = left_out_variances(g, alpha, weights)
        return SolvedCell(rows, coef, intercept, alpha, scores, coef / g[:, np.newaxis], variances)

    def _minimised(self, loss: BoundedLoss, rows: np.ndarray) -> SolvedCell:
        X, Y, weights = self._rows.part(rows)
        K = self._kernel(X, X)
        found, alpha = minimise(loss, solver_by(precise_inverse_root, K), self._alpha, weights, Y)
        residuals = Y - left_out(loss, K, alpha, weights, Y, found.scores, precise_inverse_root)
        coef, nothing = found.coef, np.zeros(len(rows))
        return SolvedCell(rows, coef, coef.sum(axis=0), alpha, found.scores, residuals, nothing, found.gain)
