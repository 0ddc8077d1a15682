"""Additive effects of the levels of categories in a fitted function, and how far they may be off."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from binfeat._common.subsets import slices
from binfeat._threads import side_by_side, threads_to_factorise
from binfeat.length_scales.leave_one_out import precise_inverse_root
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.kernel_algebra.level_effects import LevelEquations, inverse_times_levels
from binfeat.models.kernel_algebra.levels import NO_COLUMN, LevelColumns, PresentLevels

_BATCH = 16  # cells; their products are in memory together
_JITTER = 1e-6  # of the diagonal, which float32 may need


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
        """Weights (n_columns + 1, n_targets), of which the last ones, for levels without a column, are 0."""
        return np.vstack([self.weights.T, np.zeros((1, len(self.weights)))])

    def parts(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """The input of each category, and the effects (n_rows, n_targets) of its levels in scaled rows."""
        found = zip(self.columns.level_inputs.tolist(), self.columns.of_rows(X.T), strict=True)
        return [(j, self.padded[own]) for j, own in found]


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

        for batch in slices(len(cells), _BATCH):
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
