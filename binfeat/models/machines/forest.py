"""Trees of cells, each cell with an exact machine of its rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.kernel_function import KernelFunction, KernelPart
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.kernel_algebra.column_rows import EachCell
from binfeat.models.machines.cell_rows import CellRows
from binfeat.models.machines.cell_solver import CellSolver, SolvedCell


@dataclass(frozen=True, eq=False)
class NextTree:
    """A tree whose cells are being solved."""

    tree: CellTrees
    cells: list[np.ndarray]
    solved: dict[int, SolvedCell]


class Forest:
    """Trees for the same rows and the same kernel, and the mean of what they say of each row without that row."""

    def __init__(
        self,
        rows: CellRows,
        parts: list[KernelPart],
        alpha: float,
        most: int,
        seed: int,
        n_jobs: int | None,
        each_cell: EachCell | None,  # None works on cells in this process
    ) -> None:
        self._rows, self._parts, self._alpha, self._seed = rows, parts, alpha, seed
        self.most = most  # rows of a cell
        self._each_cell = partial(rows.each_cell, n_jobs=n_jobs) if each_cell is None else each_cell
        self._trees: list[CellTrees] = []
        self._next: NextTree | None = None
        self._function: LocalFunction | None = None  # of the trees so far, once it is asked for
        self._cells: list[SolvedCell] = []  # of all trees
        self._cell_rows: list[np.ndarray] = []  # and their rows that have coefficients
        self._totals: dict[int, float] = {}  # weights of rows that stand for others, too, with theirs
        self._sums = np.zeros(rows.problem.Y.shape)  # of leave-one-out residuals
        self._variances = np.zeros(len(rows.X))
        self._scores = np.zeros(rows.problem.Y.shape)  # sums of what trees make of their rows
        self._counts = np.zeros(len(rows.X))  # of trees that have a row
        self._solver = CellSolver.of(rows, parts, alpha, most)

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
        rows = np.concatenate([self._started.cells[number] for number in some])
        more = np.concatenate([self._started.solved[number].residuals for number in some])
        problem, Y = self._rows.problem, self._rows.problem.Y[rows]
        judge, one, other = problem.own_losses(rows), Y - self._sums[rows] / self.n_trees, Y - more
        apart, both = (judge(one) + judge(other)).mean() / 2, judge((one + other) / 2).mean()
        return float(max(apart - both, 0.0) / max(apart, np.finfo(float).tiny))

    def grow(self) -> None:
        """Add a tree."""
        started = self._started
        self._solve(range(len(started.cells)))
        for number, rows in enumerate(started.cells):
            own = started.solved[number]
            self._sums[rows] += own.residuals
            self._scores[rows] += own.scores
            self._counts[rows] += 1
            if not self._trees:
                self._variances[rows] = own.variances
            self._cells.append(own.kept())
            self._cell_rows.append(rows[: len(own.coef)])
            if len(own.coef) == 1 < len(rows):
                weights = self._rows.problem.relative_weights(rows)
                self._totals[int(rows[0])] = float(len(rows) if weights is None else weights.sum())
        self._trees.append(started.tree)
        self._next = self._function = None

    @property
    def _started(self) -> NextTree:
        """The tree that comes next, some of whose cells may be solved."""
        if self._next is None:
            self._next = NextTree(*self._rows.split(self._parts, self.most, self._seed, self.n_trees), {})
        return self._next

    def _solve(self, numbers: Iterable[int]) -> None:
        """Solve those cells of the next tree with these numbers that are not solved yet."""
        started = self._started
        left = [number for number in numbers if number not in started.solved]
        solved = self._each_cell(self._solver, [started.cells[number] for number in left])
        started.solved.update(zip(left, solved, strict=True))

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
        known, cells, cell_rows = self._rows, self._cells, self._cell_rows
        ordered = np.concatenate(cell_rows[: len(self._trees[0].inputs) + 1])  # neighbours together
        apart = np.ones(len(known.X), bool)
        apart[ordered] = False
        ordered = np.append(ordered, known.rows[apart[known.rows]])
        X, _, weights = known.part(ordered)
        numbers = np.zeros(len(known.X), np.int32)
        numbers[ordered] = np.arange(len(ordered))
        if self._totals:
            weights = np.ones(len(ordered)) if weights is None else weights.copy()
            weights[numbers[list(self._totals)]] = list(self._totals.values())
        return LocalFunction(
            **KernelFunction.arrays_of(self._parts, known.problem.categorical, X, known.frame, self._alpha, weights),
            **CellTrees.joined(self._trees).arrays(),
            coef=np.ascontiguousarray(np.concatenate([cell.coef for cell in cells]).T, np.float64),
            starts=np.cumsum([0, *map(len, cell_rows)]),
            rows=np.concatenate([numbers[rows] for rows in cell_rows]),
            cell_alphas=np.array([cell.alpha for cell in cells]),
            cell_intercepts=np.array([cell.intercept for cell in cells]),
        )
