"""Trees of cells, with an exact model of the rows of each cell."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from binfeat._common.held_out import is_significantly_less
from binfeat._common.subsets import evenly_spaced
from binfeat.length_scales.kernel_sum import KernelSum
from binfeat.length_scales.leave_one_out import LEAST_PRECISE_ALPHA
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.kernel_algebra.level_effects import LevelColumns
from binfeat.models.problem import weights_are_counts, without_scoring
from binfeat.models.solvers.candidate import KernelRows
from binfeat.models.solvers.cells import CellSolver, EachCell, SolvedCell
from binfeat.models.solvers.levels import LevelSolver


class CellEnsemble:
    """Trees for the known rows and a kernel, and the means of their leave-one-out predictions."""

    error = np.nan  # of the trees so far, after their evaluation
    seconds = 0.0  # seconds of the first tree

    def __init__(
        self,
        rows: KernelRows,
        kernel: KernelSum,
        most: int,
        seed: int,
        n_jobs: int | None,
        each_cell: EachCell | None,  # None solves cells in this process
        columns: LevelColumns | None = None,  # levels with effects shared by all cells
    ) -> None:
        kernel = replace(kernel, alpha=max(kernel.alpha, LEAST_PRECISE_ALPHA))
        self._rows, self.kernel, self._seed = rows, kernel, seed
        self.most = most  # rows of a cell
        self._each_cell = partial(rows.each_cell, n_jobs=n_jobs) if each_cell is None else each_cell
        self._trees: list[CellTrees] = []
        self._next: tuple[CellTrees, list[np.ndarray]] | None = None  # the next tree, and rows of its cells
        self._ahead: dict[int, SolvedCell] = {}  # solved cells of the next tree
        self._function: LocalFunction | None = None  # of the trees so far, created on demand
        self._cells: list[SolvedCell] = []  # cells of all trees
        self._cell_rows: list[np.ndarray] = []  # their rows with coefficients
        self._totals: dict[int, float] = {}  # total weights of rows that represent equal rows
        self._sums = np.zeros(rows.problem.Y.shape)  # sums of leave-one-out residuals
        # Variances of leave-one-out predictions of the first tree, relative to the noise.
        self.variances = np.zeros(len(rows.problem.table))
        self._scores = np.zeros(rows.problem.Y.shape)  # sums of predictions of trees for their rows
        self._counts = np.zeros(len(rows.problem.table))  # number of trees with the row
        values, loss = kernel.values(rows.standardizer, rows.problem.categorical, 1), rows.problem.loss
        self._solver = CellSolver(values, kernel.alpha, loss if loss.needs_matrix else None, most)
        self._levels = None if columns is None else LevelSolver(rows, values, kernel.alpha, columns, n_jobs)

    @property
    def n_trees(self) -> int:
        return len(self._trees)

    @property
    def gain(self) -> float:
        """Largest expected gain of one more step in any cell."""
        return max(cell.gain for cell in self._cells)

    @property
    def n_cells(self) -> int:
        return len(self._cells)

    def ambiguity(self, n_cells: int) -> float:
        """Estimate the relative gain of the mean of two trees over a single tree, in some cells of the next tree.

        For squared errors, it is half of the variance of predictions of single trees (Krogh & Vedelsby 1995). It is 0
        if the mean is significantly worse than the first tree: cells of one tree can contain whole levels of a category
        that others split.
        """
        _, cells = self._started()
        some = evenly_spaced(len(cells), n_cells).tolist()
        cells = [cells[number] for number in some]
        solved = self._solved(some)
        rows = np.concatenate(cells)
        more = np.concatenate([own.residuals for own in solved])
        problem, Y = self._rows.problem, self._rows.problem.Y[rows]
        losses_of, one, other = without_scoring(problem).losses(rows), Y - self._sums[rows] / self.n_trees, Y - more
        alone, both = losses_of(one), losses_of((one + other) / 2)
        if self._levels is None and is_significantly_less(alone, both):  # effects of levels from some cells are worse
            return 0.0
        apart = (alone.mean() + losses_of(other).mean()) / 2
        return float(max(apart - both.mean(), 0.0) / max(apart, np.finfo(float).tiny))

    def grow(self) -> None:
        tree, cells = self._started()
        solved = self._solved(range(len(cells)))
        for rows, own in zip(cells, solved, strict=True):
            self._sums[rows] += own.residuals
            self._scores[rows] += own.scores
            self._counts[rows] += 1
            if not self._trees:
                self.variances[rows] = own.variances
            self._cells.append(own.kept())
            self._cell_rows.append(rows[: len(own.coef)])
            if len(own.coef) == 1 < len(rows):
                weights = self._rows.problem.relative_weights(rows)
                self._totals[int(rows[0])] = float(len(rows) if weights is None else weights.sum())
        self._trees.append(tree)
        self._next = self._function = None
        self._ahead.clear()

    def _started(self) -> tuple[CellTrees, list[np.ndarray]]:
        if self._next is None:
            self._next = self._rows.split(self.kernel, self.most, self._seed, self.n_trees)
        return self._next

    def _solved(self, numbers: Sequence[int]) -> list[SolvedCell]:
        """Return the solved cells of the next tree with these numbers; some may be solved already."""
        _, cells = self._started()
        left = [number for number in numbers if number not in self._ahead]
        solved = self._solve([cells[number] for number in left])
        self._ahead.update(zip(left, solved, strict=True))
        return [self._ahead[number] for number in numbers]

    def _solve(self, cells: list[np.ndarray]) -> list[SolvedCell]:
        if self._levels is None:
            return self._each_cell(self._solver, cells)
        return self._levels.later(cells) if self._trees else self._levels.first(cells)

    def predictions(self, rows: np.ndarray) -> np.ndarray:
        """Return leave-one-out predictions of these rows, (len(rows), n_targets)."""
        return self._rows.problem.Y[rows] - self._sums[rows] / self.n_trees

    def known(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions among `rows` of the rows in a cell of every tree, and the predictions for them."""
        places = np.flatnonzero(self._counts[rows] == self.n_trees)
        return places, self._scores[rows[places]] / self.n_trees

    def function(self) -> LocalFunction:
        if self._function is None:
            self._function = self._joined()
        return self._function

    def _joined(self) -> LocalFunction:
        rows, cells, cell_rows = self._rows, self._cells, self._cell_rows
        ordered = np.concatenate(cell_rows[: len(self._trees[0].inputs) + 1])  # neighboring rows are adjacent
        apart = np.ones(len(rows.problem.table), bool)
        apart[ordered] = False
        ordered = np.append(ordered, rows.known[apart[rows.known]])
        X, _, weights = rows.part(ordered)
        numbers = np.zeros(len(rows.problem.table), np.int32)
        numbers[ordered] = np.arange(len(ordered))
        if self._totals:
            weights = np.ones(len(ordered)) if weights is None else weights.copy()
            weights[numbers[list(self._totals)]] = list(self._totals.values())
        return LocalFunction(
            **KernelFunction.arrays_of(self.kernel, rows.problem.categorical, X, rows.standardizer, weights),
            weights_are_counts=weights_are_counts(rows.problem),
            **CellTrees.joined(self._trees).arrays(),
            coef=np.ascontiguousarray(np.concatenate([cell.coef for cell in cells]).T, np.float64),
            starts=np.cumsum([0, *map(len, cell_rows)]),
            rows=np.concatenate([numbers[own] for own in cell_rows]),
            cell_alphas=np.array([cell.alpha for cell in cells]),
            cell_intercepts=np.array([cell.intercept for cell in cells]),
            **self._level_effects(),
        )

    def _level_effects(self) -> dict[str, np.ndarray]:
        if self._levels is None:
            return {}
        return {**self._levels.columns.arrays(), "level_weights": np.ascontiguousarray(self._levels.weights.T)}
