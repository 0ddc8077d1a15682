"""Additive effects of levels shared by the cells of a local model: search for variances, and solver."""

from dataclasses import replace

import numpy as np

from binfeat._common.subsets import evenly_spaced, slices, thinned
from binfeat._threads import side_by_side
from binfeat.length_scales.kernel_sum import KernelSum, KernelValues
from binfeat.length_scales.leave_one_out import precise_inverse_root, squared_row_norms, times_square
from binfeat.length_scales.search import MOST_ALPHA
from binfeat.models.kernel_algebra.level_effects import (
    CELL_BATCH,
    NO_COLUMN,
    CellPart,
    LevelColumns,
    LevelEquations,
)
from binfeat.models.run import Phase, Run
from binfeat.models.settings import PENALTY_FACTOR
from binfeat.models.solvers.candidate import KernelRows
from binfeat.models.solvers.cells import SolvedCell
from binfeat.models.solvers.sizes import fit_bytes

_CellParts = tuple[list[CellPart], LevelEquations]  # of all cells of a tree
KernelAndLevels = tuple[KernelSum, LevelColumns]


class LevelSearch:
    """The search for additive effects of levels, their variances, and the penalty.

    Leave-one-out errors of some rows in the cells of the first tree decide: all rows of some levels of the category
    with most levels, because the accuracy of an effect depends on the rows of its level.
    """

    most_columns = 4000  # maximum of levels with an effect: p levels need p^3 operations and p^2 numbers
    pair_bytes = 40  # bytes of a pair of levels: equations, matrix, inverse and parts of cells
    memory_ratio = 4  # memory of a fit, relative to the equations of levels
    tried_columns = 1000  # levels for selecting variances and penalty
    tried_rows = 10_000  # rows for selecting variances and penalty
    tried_cell_rows = 750  # rows of a cell in this selection
    first_variances = 0.3, 0.03  # initial variances; effects that do not help with either are dropped
    variance_factors = 1.0, 10.0  # if the kernel fits badly, the likelihood selects too small variances
    worth_instead = 0.05  # share of the leave-one-out error that effects instead of categories must remove

    def __init__(self, rows: KernelRows, run: Run, most: int, fewest_levels: int) -> None:
        self._rows, self._run = rows, run
        self._most, self._fewest_levels = most, fewest_levels  # of a cell, and of a category
        self._columns = self._all_columns()

    def instead(self, start: KernelSum) -> KernelAndLevels | None:
        """Return effects of categories with many levels, instead of these categories in a kernel before learning.

        None if they are not clearly better than the categories in the kernel.
        """
        if self._columns is None:
            return None
        numbers = self._columns.level_inputs[self._columns.n_levels >= self._fewest_levels]
        is_kept = np.ones(self._rows.problem.table.shape[1])
        is_kept[numbers] = 0.0
        kernel = replace(start, parts=[replace(part, gamma=part.gamma * is_kept) for part in start.parts])
        return self._better(kernel, start, self.worth_instead, 0.0)

    def run(
        self,
        start: KernelSum,
        is_known: bool,
        earlier: LevelColumns | None,  # of the fit with the known kernel
        seconds: float,
        worth: float = 0.0,
    ) -> KernelAndLevels | None:
        """Return effects next to a learned kernel; None if they remove too little of the error, or time is short.

        The first tree of all rows decides, because a sample of levels underestimates the gain. A known kernel has the
        variances of its fit, or no effects if that fit had none.
        """
        if not is_known:
            return self._better(start, start, worth, seconds)
        columns = self._columns
        if earlier is None or columns is None or not np.array_equal(columns.level_inputs, earlier.level_inputs):
            return None
        return (start, replace(columns, level_variances=earlier.level_variances)) if self._split(start) else None

    def _better(self, kernel: KernelSum, plain: KernelSum, worth: float, seconds: float) -> KernelAndLevels | None:
        """Return a kernel with its penalty, and levels with variances, if they remove a share of another's error."""
        if self._columns is None or not self._run.may_continue(Phase.CELLS, seconds):
            return None
        tried = self._tried(self._columns)
        some = self._some(kernel, tried)
        others = some if kernel is plain else self._some(plain, tried)
        if not (some and others):
            return None
        known = self._parts(plain, tried, others)
        plain_error = self._error(known, others, None)
        known = known if kernel is plain else self._parts(kernel, tried, some)
        starts = [replace(tried, level_variances=np.full(tried.level_inputs.size, own)) for own in self.first_variances]
        if min(self._error(known, some, own) for own in starts) > plain_error:
            return None
        error, best = self._found(known, starts[0], some)
        if error > (1 - worth) * plain_error:
            return None
        # The best penalty is larger than without effects, because the kernel explains less.
        while self._run.settings.alpha is None and self._run.may_continue(Phase.CELLS, seconds):
            larger = replace(kernel, alpha=kernel.alpha * PENALTY_FACTOR)
            if larger.alpha > MOST_ALPHA:
                break
            other_error, other = self._found(self._parts(larger, tried, some), best, some)
            if other_error >= error:
                break
            kernel, error, best = larger, other_error, other
        return kernel, replace(self._columns, level_variances=best.level_variances)

    def _split(self, kernel: KernelSum) -> list[np.ndarray]:
        """Return the rows of the cells of the first tree; none if equal rows exceed the size of a cell."""
        cells = self._rows.split(kernel, self._most, self._run.settings.seed, 0)[1]
        return cells if max(map(len, cells)) <= self._most else []

    def _all_columns(self) -> LevelColumns | None:
        """Return columns for the levels of all categories; None if no category has many levels."""
        inputs = np.flatnonzero(self._rows.problem.categorical)
        if not inputs.size:
            return None
        known, X = self._rows.known, self._rows.problem.table
        counts = [np.bincount(np.asarray(X[known, j]).astype(np.int64)) for j in inputs.tolist()]
        n_bytes = fit_bytes(self._run.settings.max_bytes) / self.memory_ratio
        most = min(self.most_columns, int(np.sqrt(n_bytes / self.pair_bytes)))
        n_levels = [np.count_nonzero(own) for own in counts]
        if max(n_levels) < self._fewest_levels or most < self._fewest_levels:
            return None
        return LevelColumns.of_counts(inputs, counts, most)

    def _tried(self, columns: LevelColumns) -> LevelColumns:
        """Return columns of all levels, or of some random levels of the largest category if there are too many."""
        groups, too_many = columns.groups, columns.n_columns - self.tried_columns
        if too_many <= 0:
            return columns
        largest = np.flatnonzero(groups == np.argmax(np.bincount(groups)))
        rng = np.random.default_rng(self._run.settings.seed)
        dropped = rng.permutation(largest)[: min(too_many, largest.size - largest.size // 10)]
        kept = np.ones(columns.n_columns + 1, bool)
        kept[dropped] = False
        places = np.where(kept, np.cumsum(kept) - 1, NO_COLUMN)
        places[NO_COLUMN] = NO_COLUMN
        return replace(columns, level_columns=places[columns.level_columns].astype(np.int32))

    def _some(self, kernel: KernelSum, tried: LevelColumns) -> list[np.ndarray]:
        """Return rows of cells, without rows of levels that are not tried."""
        cells = self._split(kernel)
        own = [rows[(tried.of_rows(self._rows.columns(rows)) != NO_COLUMN).all(axis=0)] for rows in cells]
        some = [thinned(rows, self.tried_cell_rows) for rows in own if len(rows) > 1]
        mean = max(1, int(np.mean([len(rows) for rows in some]))) if some else 1
        return [some[number] for number in evenly_spaced(len(some), max(1, self.tried_rows // mean))]

    def _parts(self, kernel: KernelSum, tried: LevelColumns, some: list[np.ndarray]) -> _CellParts:
        values = kernel.values(self._rows.standardizer, self._rows.problem.categorical, 1)
        return LevelSolver(self._rows, values, kernel.alpha, tried, self._run.settings.n_jobs).parts(some)

    def _found(self, known: _CellParts, start: LevelColumns, some: list[np.ndarray]) -> tuple[float, LevelColumns]:
        """Return the error with the best variances, and the levels with these."""
        likely = known[1].likeliest_variances(start.groups, start.level_variances)
        trials = [replace(start, level_variances=likely * factor) for factor in self.variance_factors]
        errors = [self._error(known, some, own) for own in trials]
        best = int(np.argmin(errors))
        return errors[best], trials[best]

    def _error(self, known: _CellParts, some: list[np.ndarray], columns: LevelColumns | None) -> float:
        """Return the leave-one-out error of some rows, with or without effects of levels."""
        parts, equations = known
        effects = None if columns is None else equations.solved(columns.variances)
        problem, total = self._rows.problem, 0.0
        for rows, part in zip(some, parts, strict=True):
            coef, diagonal = (part.coef, part.diagonal) if effects is None else part.joint(effects)
            weights = problem.relative_weights(rows)
            squares = (coef / diagonal[:, np.newaxis]) ** 2
            total += float((squares if weights is None else weights[:, np.newaxis] * squares).sum())
        return total / (sum(map(len, some)) * problem.n_targets)


class LevelSolver:
    """Solver for the cells of a first tree and the shared effects of levels, as one linear system.

    Cells of later trees are solved given these effects, and effects have the same share of the diagonal of the inverse
    as in the first tree.
    """

    kept_bytes = 2**28  # bytes of the matrices V of cells; further cells are factorized again

    def __init__(
        self, rows: KernelRows, kernel: KernelValues, alpha: float, columns: LevelColumns, n_jobs: int | None
    ) -> None:
        self._rows, self._kernel, self._alpha, self.columns, self._n_jobs = rows, kernel, alpha, columns, n_jobs
        self._left = np.ones(len(rows.problem.table))  # share of the diagonal of the inverse that remains with effects
        self.weights = np.zeros((columns.n_columns, rows.problem.n_targets))

    def first(self, cells: list[np.ndarray]) -> list[SolvedCell]:
        """Return solved cells of a tree, given as row numbers."""
        parts, equations = self.parts(cells, self.kept_bytes)
        effects = equations.solved(self.columns.variances, self._n_jobs)
        self.weights, _ = effects

        def finish(known: tuple[np.ndarray, CellPart]) -> SolvedCell:
            rows, part = known
            part = self._part(rows) if part.V is None else part
            coef, diagonal = part.joint(effects)
            self._left[rows] = diagonal / part.diagonal
            problem = self._rows.problem
            Y, weights = problem.Y[rows].astype(np.float32), problem.relative_weights(rows)
            return SolvedCell.of(coef, diagonal, part.alpha, Y, weights)

        return side_by_side(finish, list(zip(cells, parts, strict=True)), self._n_jobs)

    def later(self, cells: list[np.ndarray]) -> list[SolvedCell]:
        """Return solved cells of another tree, given the effects of the first tree."""
        padded = np.vstack([self.weights, np.zeros((1, self._rows.problem.n_targets))])

        def solve(rows: np.ndarray) -> SolvedCell:
            X, Y, weights = self._rows.part(rows)
            B, alpha = precise_inverse_root(self._kernel(X, X), self._alpha, weights, overwrite=True)
            effects = padded[self.columns.of_rows(X)].sum(axis=0)
            coef = times_square(B, Y - effects)
            return SolvedCell.of(coef, self._left[rows] * squared_row_norms(B), alpha, Y, weights)

        return side_by_side(solve, cells, self._n_jobs)

    def parts(self, cells: list[np.ndarray], kept_bytes: float = np.inf) -> _CellParts:
        equations, parts = LevelEquations(self.columns.n_columns, self._rows.problem.n_targets), list[CellPart]()
        for batch in slices(len(cells), CELL_BATCH):
            for part in side_by_side(self._part, cells[batch], self._n_jobs):
                equations.add(part)
                assert part.V is not None
                kept_bytes -= part.V.nbytes
                parts.append(replace(part, V=part.V if kept_bytes >= 0 else None, product=part.product[:0]))
        return parts, equations

    def _part(self, rows: np.ndarray) -> CellPart:
        X, Y, weights = self._rows.part(rows)
        return CellPart.of(self._kernel(X, X), self._alpha, weights, Y, self.columns.of_rows(X))
