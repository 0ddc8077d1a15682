"""Functions of local models, with effects of levels that all cells share, and their error bars."""

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, cast

import numpy as np

from binfeat._common.derived import Derived, locked_cached_property
from binfeat._common.subsets import slices
from binfeat._threads import side_by_side, threads_to_factorize
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.cell_trees import CellTrees, rows_by_cell
from binfeat.models.fitted.exact import ExactFunction, ExactPosterior
from binfeat.models.fitted.expansion import Expansion
from binfeat.models.fitted.kernel_function import HeldOutErrors, KernelFunction
from binfeat.models.kernel_algebra.level_effects import (
    CELL_BATCH,
    NO_COLUMN,
    LevelColumns,
    LevelEquations,
    inverse_times_levels,
    one_hot,
)

_KEPT = 64  # stored factors of cells: half a gigabyte
_JITTER = 1e-6  # added to the diagonal for float32


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalFunction(KernelFunction):
    """The mean of several trees with an exact function in every cell."""

    inputs: np.ndarray
    places: np.ndarray
    children: np.ndarray
    roots: np.ndarray
    starts: np.ndarray  # (n_cells + 1,), int64: starts of rows and coefficients of each cell
    rows: Annotated[np.ndarray, np.int32, "features"]  # support row of each coefficient
    cell_alphas: Annotated[np.ndarray, np.float64, "cells"]
    cell_intercepts: Annotated[np.ndarray, np.float64, "cells", "targets"]
    # Effects of levels shared by all cells: the fields of `LevelColumns`, and the mean weights of trees.
    level_inputs: np.ndarray = field(default_factory=partial(np.empty, 0, np.int32))
    level_starts: np.ndarray = field(default_factory=partial(np.zeros, 1, np.int64))
    level_columns: np.ndarray = field(default_factory=partial(np.empty, 0, np.int32))
    level_variances: np.ndarray = field(default_factory=partial(np.empty, 0))
    level_weights: Annotated[np.ndarray, np.float64, "targets", "levels"] = field(
        default_factory=partial(np.empty, (0, 0))
    )

    @cached_property
    def trees(self) -> CellTrees:
        return CellTrees(self.inputs, self.places, self.children, self.roots)

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    def first_tree(self) -> tuple["LocalFunction", list[int]]:
        """Return the function of the first tree, and the numbers of its cells."""
        numbers = self.trees.cells_below(int(self.roots[0]))
        if self.levels is None:
            return replace(self, roots=self.roots[:1]), numbers
        weights = np.zeros((self.levels.n_columns + 1, len(self.coef)))  # S Z' a
        for number in numbers:
            place = self._place(number)
            for own in self.levels.of_rows(self.support[:, self.rows[place]]):
                np.add.at(weights, own, self.coef[:, place].T)
        own_weights = self.levels.variances * weights[:-1].T
        return replace(self, roots=self.roots[:1], level_weights=np.ascontiguousarray(own_weights)), numbers

    @cached_property
    def levels(self) -> LevelColumns | None:
        """Return the levels with effects shared by all cells, if there are any."""
        if not self.level_inputs.size:
            return None
        return LevelColumns(self.level_inputs, self.level_starts, self.level_columns, self.level_variances)

    @cached_property
    def effects(self) -> np.ndarray:
        """Return effects of levels (n_columns + 1, n_targets); the last row, for levels without a column, is 0."""
        return np.vstack([self.level_weights.T, np.zeros((1, len(self.level_weights)))])

    def effects_of(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Return the input of each category, and the effects (n_rows, n_targets) of its levels in scaled rows."""
        if self.levels is None:
            return []
        found = zip(self.levels.level_inputs.tolist(), self.levels.of_rows(X.T), strict=True)
        return [(j, self.effects[own]) for j, own in found]

    def cell(self, number: int) -> ExactFunction:
        """Return the function of a cell, without its intercept."""
        place = self._place(number)
        rows = self.rows[place]
        of_kernel = "nus", "shares", "gammas", "categorical", "center", "unit", "rotation"
        return ExactFunction(
            **{name: getattr(self, name) for name in of_kernel},
            support=np.ascontiguousarray(self.support[:, rows]),
            alpha=self.cell_alphas[number],
            weights=self.weights[rows],
            coef=self.coef[:, place],
        )

    def _place(self, number: int) -> slice:
        """Return the slice of rows and coefficients of a cell."""
        return slice(self.starts[number], self.starts[number + 1])

    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> "LocalPosterior":
        return LocalPosterior(self, errors, n_jobs)

    def _values(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        total = self._expansion(X, n_jobs, self.trees(X))
        total /= self.n_trees
        if self.levels is not None:
            total += sum((effects for _, effects in self.effects_of(X)), np.zeros(total.shape))
        return total

    @locked_cached_property
    def _expansion(self) -> Expansion:
        places = map(self._place, range(len(self.starts) - 1))
        cells = [(self.rows[place], self.coef[:, place]) for place in places]
        return Expansion(self.kernel(1), self.categorical, self.standardizer, self.support, cells, self.cell_intercepts)


class LocalPosterior:
    """Error bars of a local model: deviations of its first tree in closed form, and errors of the mean of all trees.

    The mean of several trees varies less than one tree, depending on how often two rows share cells. Leave-one-out
    residuals are divided by the same standard deviations, so intervals have the requested coverage.

    All cells share the effects of levels. A prediction for a row x in a cell with rows X has the variance of the cell's
    function for given effects w, and the variance of ``q' w`` with ``q = z - V' (k(X, x) + 1)``, where z has the levels
    of x.
    """

    def __init__(self, function: LocalFunction, errors: HeldOutErrors | None, n_jobs: int | None) -> None:
        self._function = function
        self.errors = cast(HeldOutErrors, errors)  # for regressors
        self._known: dict[int, Derived] = {}
        if function.levels is not None:
            self._inverse = inverse_of_levels(function, function.first_tree()[1], n_jobs)

    def variances(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        out = np.empty(len(X))

        def fill(group: tuple[int, np.ndarray]) -> None:
            number, rows = group
            cell = self._of_cell(number)
            out[rows] = cell.variances(X[rows], 1)
            if self._function.levels is not None:
                q, own, new = self._differences(self._function.levels, number, cell, X[rows])
                known = np.einsum("ij,ij->j", q, self._inverse[np.ix_(own, own)] @ q)
                out[rows] += (np.maximum(known, 0.0) + new) / float(self._function.alpha)

        side_by_side(fill, self._groups(X), n_jobs)
        return out

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator, n_jobs: int | None) -> np.ndarray:
        """Return samples of the prediction error, (n_rows, n_samples), joint for rows of one cell, or of one level."""
        out = np.empty((len(X), n_samples))
        for number, rows in self._groups(X):
            out[rows] = self._of_cell(number).deviations(X[rows], n_samples, rng, n_jobs)
        if self._function.levels is not None:
            effects = self._samples_of_effects(n_samples, rng)
            for number, rows in self._groups(X):
                q, own, new = self._differences(self._function.levels, number, self._of_cell(number), X[rows])
                fresh = np.sqrt(new)[:, np.newaxis] * rng.standard_normal((len(rows), n_samples))
                out[rows] += (q.T @ effects[own] + fresh) / np.sqrt(float(self._function.alpha))
        return out

    def _groups(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        return rows_by_cell(self._function.trees(X)[0])

    def _of_cell(self, number: int) -> ExactPosterior:
        known = self._known.get(number)
        if known is None:
            known = self._known.setdefault(number, Derived()) if len(self._known) < _KEPT else Derived()
        return known.get(self._function, lambda: ExactPosterior(self._function.cell(number), 1, needs_errors=False))

    def _samples_of_effects(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return samples (n_columns, n_samples) of deviations of effects, in units of the noise times root alpha."""
        covariance = self._inverse.astype(np.float64)
        np.einsum("ii->i", covariance)[:] *= 1 + _JITTER
        with threads_to_factorize(len(covariance)):
            return np.linalg.cholesky(covariance) @ rng.standard_normal((len(covariance), n_samples))

    def _differences(
        self, levels: LevelColumns, number: int, cell: ExactPosterior, X: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return vectors q of rows in a cell, their columns, and the prior variance of levels without a column.

        The arrays have the shapes (n_own, n_rows), (n_own,) and (n_rows,); all other entries of q are 0.
        """
        columns = levels.of_rows(X.T)
        present, Z = one_hot(levels.of_rows(self._function.cell(number).support))
        own = np.union1d(present, columns[columns != NO_COLUMN])
        q = np.zeros((own.size, len(X)))
        q[np.searchsorted(own, present)] = -(Z.T @ cell.solved(X))
        for of_category in columns:
            rows = np.flatnonzero(of_category != NO_COLUMN)
            q[np.searchsorted(own, of_category[rows]), rows] += 1.0
        return q, own, levels.variance_of_new(columns)


def inverse_of_levels(function: LocalFunction, numbers: list[int], n_jobs: int | None) -> np.ndarray:
    """Return the inverse of the equations of levels for the cells with these numbers, (n_columns, n_columns).

    It is the covariance of the effects, as a multiple of noise times alpha.
    """
    levels = cast(LevelColumns, function.levels)
    equations = LevelEquations(levels.n_columns, 0)

    def product(number: int) -> tuple[np.ndarray, np.ndarray]:
        cell = function.cell(number)
        present, Z = one_hot(levels.of_rows(cell.support))
        return present, Z.T @ inverse_times_levels(cell.inverse_root()[0], Z)

    for batch in slices(len(numbers), CELL_BATCH):
        for found in side_by_side(product, numbers[batch], n_jobs):
            equations.add_product(*found)
    return equations.inverse(levels.variances, n_jobs)
