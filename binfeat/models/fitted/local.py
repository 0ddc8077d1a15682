"""Functions of local models, with effects of levels that all cells share, and their error bars."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Self, cast

import numpy as np

from binfeat._common.derived import Derived, made_once
from binfeat._common.subsets import slices
from binfeat._threads import side_by_side, threads_to_factorise
from binfeat.length_scales.leave_one_out import precise_inverse_root
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.cell_trees import CellTrees, rows_by_cell
from binfeat.models.fitted.exact import ExactFunction, ExactPosterior
from binfeat.models.fitted.expansion import CellExpansions
from binfeat.models.fitted.kernel_function import HeldOutErrors, KernelFunction
from binfeat.models.kernel_algebra.level_effects import (
    CELL_BATCH,
    NO_COLUMN,
    LevelColumns,
    LevelEquations,
    PresentLevels,
    inverse_times_levels,
)

_KEPT = 64  # factors of cells that a posterior keeps: half a gigabyte
_JITTER = 1e-6  # of the diagonal, which float32 may need


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalFunction(KernelFunction):
    """The mean of several trees with an exact function in every cell."""

    inputs: np.ndarray
    places: np.ndarray
    children: np.ndarray
    roots: np.ndarray
    starts: np.ndarray  # (n_cells + 1,), int64: of the rows and the coefficients of each cell
    rows: np.ndarray  # (n_coefficients,), int32: of the support
    cell_alphas: np.ndarray  # (n_cells,)
    cell_intercepts: np.ndarray  # (n_cells, n_targets)
    # Effects of levels that all cells share: see `LevelColumns`, whose fields these are, and the mean weights of trees.
    level_inputs: np.ndarray = field(default_factory=partial(np.empty, 0, np.int32))
    level_starts: np.ndarray = field(default_factory=partial(np.zeros, 1, np.int64))
    level_columns: np.ndarray = field(default_factory=partial(np.empty, 0, np.int32))
    level_variances: np.ndarray = field(default_factory=partial(np.empty, 0))
    level_weights: np.ndarray = field(default_factory=partial(np.empty, (0, 0)))  # (n_targets, n_columns)

    @cached_property
    def trees(self) -> CellTrees:
        return CellTrees(self.inputs, self.places, self.children, self.roots)

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    def first_tree(self) -> tuple["LocalFunction", list[int]]:
        """The function of the first tree alone, and the numbers of its cells."""
        numbers = self.trees.cells_below(int(self.roots[0]))
        if self.levels is None:
            return replace(self, roots=self.roots[:1]), numbers
        columns = self.levels.columns
        weights = np.zeros((columns.n_columns + 1, len(self.coef)))  # S Z' a
        for number in numbers:
            place = slice(self.starts[number], self.starts[number + 1])
            for own in columns.of_rows(self.support[:, self.rows[place]]):
                np.add.at(weights, own, self.coef[:, place].T)
        own_weights = columns.variances * weights[:-1].T
        return replace(self, roots=self.roots[:1], level_weights=np.ascontiguousarray(own_weights)), numbers

    @cached_property
    def levels(self) -> "LevelEffects | None":
        """The effects of levels that all cells share, if there are any."""
        if not self.level_inputs.size:
            return None
        own = (self.level_inputs, self.level_starts, self.level_columns, self.level_variances)
        return LevelEffects(LevelColumns(*own), self.level_weights)

    def cell(self, number: int) -> ExactFunction:
        """The function of a cell, without its intercept."""
        place = slice(self.starts[number], self.starts[number + 1])
        rows = self.rows[place]
        of_kernel = "nus", "shares", "gammas", "categorical", "center", "unit", "rotation"
        return ExactFunction(
            **{name: getattr(self, name) for name in of_kernel},
            support=np.ascontiguousarray(self.support[:, rows]),
            alpha=self.cell_alphas[number],
            weights=self.weights[rows],
            coef=self.coef[:, place],
        )

    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> "LocalPosterior":
        return LocalPosterior(self, errors, n_jobs)

    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        total = np.zeros((len(X), len(self.coef)))
        self._expansions.add(X, self.trees(X), total, n_jobs)
        total /= self.n_trees
        yield total
        if self.levels is not None:
            yield self.levels(X)

    @made_once
    def _expansions(self) -> CellExpansions:
        places = [slice(*ends) for ends in zip(self.starts, self.starts[1:])]
        cells = [(self.rows[place], self.coef[:, place]) for place in places]
        return CellExpansions(self.kernel(1), self.categorical, self.support, self.frame, cells, self.cell_intercepts)


@dataclass(frozen=True, eq=False)
class LevelEffects:
    """A weight for each level with a column; other levels have the effect 0."""

    columns: LevelColumns
    weights: np.ndarray  # (n_targets, n_columns)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Sums of the effects of the levels of scaled rows (n_rows, n_inputs), an array (n_rows, n_targets)."""
        total = np.zeros((len(X), len(self.weights)))
        for own in self.columns.of_rows(X.T):
            total += self.padded[own]
        return total

    @cached_property
    def padded(self) -> np.ndarray:
        """Weights (n_columns + 1, n_targets); the last row, for levels without a column, is 0."""
        return np.vstack([self.weights.T, np.zeros((1, len(self.weights)))])

    def parts(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """The input of each category, and the effects (n_rows, n_targets) of its levels in scaled rows."""
        found = zip(self.columns.level_inputs.tolist(), self.columns.of_rows(X.T), strict=True)
        return [(j, self.padded[own]) for j, own in found]


class LocalPosterior:
    """Error bars of a local model: deviations of its first tree in closed form, and errors of the mean of all trees.

    The mean varies less than one tree does; by how much depends on how often two rows share cells. As the errors of
    leave-one-out residuals are divided by the same deviations, intervals have the requested coverage.

    All cells share the effects of levels. The inverse of their equations is computed from the cells of the tree, once.
    """

    def __init__(self, function: LocalFunction, errors: HeldOutErrors | None, n_jobs: int | None) -> None:
        self._function, self._n_jobs = function, n_jobs
        self.errors = cast(HeldOutErrors, errors)  # of regressors
        self._known: dict[int, Derived] = {}
        self._joint: JointInverse | None = None
        if function.levels is not None:
            _, numbers = function.first_tree()
            cells = [function.cell(number) for number in numbers]
            self._joint = JointInverse.of(function.levels.columns, cells, n_jobs)

    def variances(self, X: np.ndarray) -> np.ndarray:
        out = np.empty(len(X))

        def fill(group: tuple[int, np.ndarray]) -> None:
            number, rows = group
            out[rows] = self._of_cell(number).variances(X[rows])
            if self._joint is not None:
                out[rows] += self._joint.variances(*self._told(number, X[rows])) / float(self._function.alpha)

        side_by_side(fill, self._groups(X), self._n_jobs)
        return out

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return samples of the prediction error, (n_rows, n_samples), joint for rows of one cell, or of one level."""
        out = np.empty((len(X), n_samples))
        for number, rows in self._groups(X):
            out[rows] = self._of_cell(number).deviations(X[rows], n_samples, rng)
        if self._joint is not None:
            samples = self._joint.samples(n_samples, rng)
            for number, rows in self._groups(X):
                own = self._joint.deviations(*self._told(number, X[rows]), samples, rng)
                out[rows] += own / np.sqrt(float(self._function.alpha))
        return out

    def _groups(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        return rows_by_cell(self._function.trees(X)[0])

    def _of_cell(self, number: int) -> ExactPosterior:
        known = self._known.get(number)
        if known is None and len(self._known) < _KEPT:
            known = self._known.setdefault(number, Derived())
        return self._made(number) if known is None else known.get(self._function, lambda: self._made(number))

    def _made(self, number: int) -> ExactPosterior:
        return ExactPosterior(self._function.cell(number), 1)

    def _told(self, number: int, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns of the levels of rows, the levels of a cell, and V' (k + 1) for these rows."""
        assert self._joint is not None
        columns, cell = self._joint.columns, self._function.cell(number)
        levels = PresentLevels.of(columns.of_rows(cell.support))
        told = levels.Z.T @ self._of_cell(number).solved(X)
        return columns.of_rows(X.T), levels.columns, told


@dataclass(frozen=True, eq=False)
class JointInverse:
    """The inverse of the equations of the levels: the covariance of their weights, as a multiple of noise times alpha.

    A prediction for a row x in a cell with rows X has the variance of the cell's function for given weights, and the
    variance of ``q' w`` with ``q = z - V' (k(X, x) + 1)``, where z has the levels of x.
    """

    columns: LevelColumns
    inverse: np.ndarray  # (n_columns, n_columns)

    @classmethod
    def of(cls, columns: LevelColumns, cells: list[ExactFunction], n_jobs: int | None) -> Self:
        """The inverse for the cells of a tree."""
        equations = LevelEquations(columns.n_columns, 0)

        def product(cell: ExactFunction) -> tuple[PresentLevels, np.ndarray]:
            levels, K = PresentLevels.of(columns.of_rows(cell.support)), cell.kernel(1)(cell.support, cell.support)
            root, _ = precise_inverse_root(K, float(cell.alpha), cell.weights, overwrite=True)
            return levels, levels.Z.T @ inverse_times_levels(root, levels)

        for batch in slices(len(cells), CELL_BATCH):
            for found in side_by_side(product, cells[batch], n_jobs):
                equations.add_product(*found)
        return cls(columns, equations.inverse(columns.variances, n_jobs))

    def variances(self, columns: np.ndarray, present: np.ndarray, told: np.ndarray) -> np.ndarray:
        """Variances of q' w, (n_rows,), of rows with these `columns` of levels, (n_categories, n_rows).

        `told` is V' (k(X, x) + 1), (n_present, n_rows), for the levels `present` in the cell.
        """
        q, own = self._differences(columns, present, told)
        spread = np.einsum("ij,ij->j", q, self.inverse[np.ix_(own, own)] @ q)
        return np.maximum(spread, 0.0) + self.columns.n_new(columns)

    def samples(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Samples (n_columns, n_samples) of the deviations of weights."""
        covariance = self.inverse.astype(np.float64)
        np.einsum("ii->i", covariance)[:] *= 1 + _JITTER
        with threads_to_factorise(len(covariance)):
            return np.linalg.cholesky(covariance) @ rng.standard_normal((len(covariance), n_samples))

    def deviations(
        self,
        columns: np.ndarray,
        present: np.ndarray,
        told: np.ndarray,
        samples: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Samples of the deviations of q' w, (n_rows, n_samples); levels without a column are independent."""
        q, own = self._differences(columns, present, told)
        new = np.sqrt(self.columns.n_new(columns))[:, np.newaxis]
        return q.T @ samples[own] + new * rng.standard_normal((len(new), samples.shape[1]))

    def _differences(self, columns: np.ndarray, present: np.ndarray, told: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors q of rows, (n_own, n_rows), and the numbers of its columns; all other entries are 0."""
        own = np.union1d(present, columns[columns != NO_COLUMN])
        q = np.zeros((own.size, columns.shape[1]))
        q[np.searchsorted(own, present)] = -told
        for levels in columns:
            rows = np.flatnonzero(levels != NO_COLUMN)
            q[np.searchsorted(own, levels[rows]), rows] += 1.0
        return q, own
