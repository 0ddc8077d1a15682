"""Solves the cells of a tree and the effects of levels together."""

from dataclasses import dataclass

import numpy as np

from binfeat._common.subsets import slices
from binfeat._threads import side_by_side
from binfeat.length_scales.leave_one_out import left_out_variances
from binfeat.length_scales.sums import KernelValues
from binfeat.models.kernel_algebra.level_effects import CellPart, LevelEquations, LevelWeights
from binfeat.models.kernel_algebra.levels import LevelColumns, PresentLevels
from binfeat.models.machines.cell_rows import CellRows
from binfeat.models.machines.cell_solver import SolvedCell

_KEPT_BYTES = 2**28  # of V; cells beyond it are factorised again
_BATCH = 16  # cells; their products are in memory together


@dataclass(frozen=True, eq=False)
class CellParts:
    """Parts of all cells of a tree, and their equations."""

    parts: list[CellPart]
    equations: LevelEquations


class LevelSolver:
    """Solves the cells of a tree and the effects of levels, which the cells share, as one linear system."""

    def __init__(
        self, rows: CellRows, kernel: KernelValues, alpha: float, columns: LevelColumns, n_jobs: int | None
    ) -> None:
        self._rows, self._kernel, self._alpha, self.columns, self._n_jobs = rows, kernel, alpha, columns, n_jobs
        self.effects: LevelWeights | None = None  # of the last tree

    def __call__(self, cells: list[np.ndarray]) -> list[SolvedCell]:
        """Solutions of all cells of a tree, which are numbers of rows."""
        known = self.parts(cells)
        self.effects = known.equations.solved(self.columns.variances, self._n_jobs)
        return self._finished(cells, known.parts)

    @property
    def weights(self) -> np.ndarray:
        """The weights of the levels in the last tree, (n_columns, n_targets)."""
        if self.effects is None:
            raise RuntimeError("effects of levels are known once a tree is solved")
        return self.effects.weights

    def some(self, cells: list[np.ndarray]) -> list[SolvedCell]:
        """Solutions of some cells, given the effects of the last tree."""
        return self._finished(cells, [None] * len(cells))

    def parts(self, cells: list[np.ndarray], kept_bytes: int = _KEPT_BYTES) -> CellParts:
        """The parts of cells, of which the first keep V."""
        equations, parts = LevelEquations(self.columns.n_columns, self._rows.problem.n_targets), list[CellPart]()
        for batch in slices(len(cells), _BATCH):
            for part in side_by_side(self._part, cells[batch], self._n_jobs):
                equations.add(part)
                assert part.V is not None
                kept_bytes -= part.V.nbytes
                parts.append(part.without_product(keeps_V=kept_bytes >= 0))
        return CellParts(parts, equations)

    def _part(self, rows: np.ndarray) -> CellPart:
        X, Y, weights = self._rows.part(rows)
        levels = PresentLevels.of(self.columns.of_rows(X))
        return CellPart.of(self._kernel(X, X), self._alpha, weights, Y, levels)

    def _finished(self, cells: list[np.ndarray], parts: list[CellPart] | list[None]) -> list[SolvedCell]:
        def finish(known: tuple[np.ndarray, CellPart | None]) -> SolvedCell:
            rows, part = known
            return self._solved(rows, self._part(rows) if part is None or part.V is None else part)

        return side_by_side(finish, list(zip(cells, parts, strict=True)), self._n_jobs)

    def _solved(self, rows: np.ndarray, part: CellPart) -> SolvedCell:
        problem, effects = self._rows.problem, self.effects
        assert effects is not None
        Y, weights = problem.Y[rows].astype(np.float32), problem.relative_weights(rows)
        coef, diagonal = part.joint(effects)
        scores = Y - part.alpha * coef / (1.0 if weights is None else weights[:, np.newaxis])
        return SolvedCell(
            coef,
            coef.sum(axis=0, dtype=np.float64),
            part.alpha,
            scores,
            coef / diagonal[:, np.newaxis],
            left_out_variances(diagonal, part.alpha, weights),
        )
