"""Trees of cells, each cell with an exact machine of its rows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from binfeat._common.held_out import SquaredErrors
from binfeat._common.subsets import evenly_spaced
from binfeat._engine.policy import side_by_side
from binfeat._machine.fitted.cell_trees import CellTrees
from binfeat._machine.fitted.kernel_function import KernelFunction, Part, kernel_sum
from binfeat._machine.fitted.local import LocalFunction
from binfeat._machine.kernel_algebra.leave_one_out import left_out_variances, precise_inverse_root, squared_row_norms
from binfeat._machine.machines.cell_rows import CellRows

_NOTHING = np.empty(0)


@dataclass(frozen=True, eq=False)
class SolvedCell:
    """Coefficients of the rows of a cell, and what leaving each of them out tells."""

    rows: np.ndarray
    coef: np.ndarray  # (n_rows, n_targets)
    intercept: np.ndarray  # (n_targets,)
    alpha: float  # that the coefficients took
    residuals: np.ndarray  # (n_rows, n_targets), leave-one-out
    variances: np.ndarray  # (n_rows,), of the predictions without each row, as multiples of the noise


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
        self._kernel = kernel_sum(parts, rows.frame, rows.problem.categorical, 1)

    @property
    def n_trees(self) -> int:
        return len(self._trees)

    @property
    def n_cells(self) -> int:
        """Of all trees."""
        return len(self._cells)

    def disagreement(self, n_cells: int) -> float:
        """Mean squared difference of the next tree from those before, by their error, in so many cells, or in all."""
        some = evenly_spaced(len(self._started.cells), n_cells).tolist()
        self._solve(some)
        solved = [self._started.solved[number] for number in some]
        rows, more = (np.concatenate([getattr(own, name) for own in solved]) for name in ("rows", "residuals"))
        problem, before = self._rows.problem, self._sums[rows] / self.n_trees
        judge = SquaredErrors(np.zeros(before.shape), problem.weights_of(rows))
        return float(judge(more - before).mean() / max(judge(before).mean(), np.finfo(float).tiny))

    def grow(self) -> None:
        """Add a tree."""
        started = self._started
        self._solve(range(len(started.cells)))
        for number in range(len(started.cells)):
            own = started.solved[number]
            self._sums[own.rows] += own.residuals
            if not self._trees:
                self._variances[own.rows] = own.variances
            self._cells.append(replace(own, residuals=_NOTHING, variances=_NOTHING))
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
        ordered = np.append(ordered, np.setdiff1d(known.rows, ordered))
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
        if is_constant(Y):
            nothing = np.zeros(Y.shape)
            return SolvedCell(rows, nothing, Y[0].astype(np.float64), self._alpha, nothing, np.zeros(len(rows)))
        B, alpha = precise_inverse_root(self._kernel(X, X), self._alpha, weights, overwrite=True)
        coef = B @ (B.T @ Y)
        g = squared_row_norms(B)
        intercept = coef.sum(axis=0, dtype=np.float64)
        return SolvedCell(rows, coef, intercept, alpha, coef / g[:, np.newaxis], left_out_variances(g, alpha, weights))
