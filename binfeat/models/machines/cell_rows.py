"""Rows of a problem in cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from binfeat._common.subsets import cached_parts, thinned
from binfeat._threads import side_by_side
from binfeat.length_scales.kernel_sum import KernelSum
from binfeat.length_scales.matrices import Frame
from binfeat.length_scales.search import mean_distances
from binfeat.models.fitted.cell_trees import CellTrees, split_into_cells
from binfeat.models.kernel_algebra.column_rows import CellFunction, ScaledTable
from binfeat.models.kernel_algebra.inverse_diagonal import inverse_diagonals, rows_of_cell
from binfeat.models.machines.cell_search import Cell
from binfeat.models.problem import Problem

_SPREAD_ROWS = 1000  # rows for the spread of inputs in a node
_DISORDER = 0.5  # of the splits of all trees but the first
_LANDMARKS = 200


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
        """Columns, targets and weights of rows with these numbers."""
        problem = self.problem
        return self.columns(rows), problem.Y[rows].astype(np.float32), problem.relative_weights(rows)

    def each_cell(self, function: CellFunction, cells: list[np.ndarray], n_jobs: int | None) -> list[Any]:
        """Results for some cells, which are numbers of rows."""
        return side_by_side(lambda rows: function(*self.part(rows)), cells, n_jobs)

    def split(self, kernel: KernelSum, most: int, seed: int, tree: int) -> tuple[CellTrees, list[np.ndarray]]:
        """Return a tree, and the rows of its cells, up to a maximum unless rows are equal.

        All trees but the first are split at random.
        """
        main, rng = kernel.main, np.random.default_rng([seed, tree])
        counts = np.any([part.gamma > 0 for part in kernel.parts], axis=0)

        def spread(rows: np.ndarray) -> np.ndarray:
            some = self.X[thinned(rows, _SPREAD_ROWS)]
            exponents = main.gamma * mean_distances(some, self.problem.categorical, rng, main.kernel.power)
            if exponents.any():
                return exponents ** (1 / main.kernel.power)
            return (counts & (np.ptp(self.X[rows], axis=0) > 0)).astype(float)

        return split_into_cells(self.X, self.rows, spread, most, rng, _DISORDER if tree else 0.0)

    def samples(self, kernel: KernelSum, most: int, seed: int) -> list[np.ndarray]:
        """Return rows of the cells of a first tree, up to a maximum for each."""
        return [thinned(cell, most) for cell in self.split(kernel, most, seed, 0)[1]]

    def inverse_diagonal(
        self, kernel: KernelSum, weights: np.ndarray | None, n_jobs: int | None
    ) -> tuple[np.ndarray, bool]:
        """Diagonal of ``(K + 1 1' + alpha / v)^-1`` of these rows, (n_rows, 1), by weights of all rows of the table.

        It is that of rows in cells and of landmarks; and whether there is one cell, which makes it exact. NaN where
        rows that do not differ are more than a cell takes.
        """
        values = kernel.values(self.frame, self.problem.categorical, 1)
        cells = self.samples(kernel, rows_of_cell(len(self.rows)), 0)
        known = [(self.columns(rows), None if weights is None else weights[rows]) for rows in cells]
        landmarks = self.columns(thinned(self.rows, _LANDMARKS))
        found = inverse_diagonals(values, known, landmarks, kernel.alpha, n_jobs)
        diagonal = np.full(len(self.X), np.nan)
        diagonal[np.concatenate(cells)] = np.concatenate(found)
        return diagonal[self.rows, np.newaxis], len(cells) == 1
