"""Rows of a model with a kernel."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from binfeat._common.subsets import thinned
from binfeat.length_scales.matrices import Frame
from binfeat.length_scales.search import MOST_INPUTS
from binfeat.models.kernel_algebra.column_rows import ScaledTable
from binfeat.models.machines.cell_rows import CellRows
from binfeat.models.machines.exact_size import TUNING_ROWS
from binfeat.models.problem import Problem
from binfeat.models.run import Run

_FRAME_ROWS = 1500


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Numbers of rows with positive weight: all rows of a model, rows for decisions, and their frame.

    Decisions use validation rows, or leave-one-out predictions if there are none.
    """

    problem: Problem
    X: ScaledTable  # scaled, (n_rows, n_inputs)
    all: np.ndarray
    known: np.ndarray
    held_out: np.ndarray
    frame: Frame

    @classmethod
    def of(
        cls,
        problem: Problem,
        run: Run,
        X: ScaledTable,
        frame: Frame | None = None,
        unseen: np.ndarray | None = None,
    ) -> Self:
        """Return the rows of a model, given the settings: validation rows are used at the end, or not at all.

        Rows `unseen` by the search are the validation set for decisions, unless there are validation rows or groups.
        """
        train, held_out = (rows[problem.weighty(rows)] for rows in (problem.train, problem.held_out))
        every = np.append(train, held_out) if run.settings.refits else train
        is_apart = run.settings.has_cv and not problem.is_grouped  # from the validation rows
        known = train if is_apart else every
        judges = held_out[:0]
        if is_apart and len(train) + len(held_out) <= TUNING_ROWS:
            judges = held_out
        elif unseen is not None and not problem.is_grouped:
            known, judges = np.setdiff1d(known, unseen), unseen
        if frame is None:
            frame = Frame.of(X[thinned(known, _FRAME_ROWS)], problem.categorical)
        return cls(problem, X, every, known, judges, frame)

    @property
    def judged(self) -> np.ndarray:
        """Rows that choices are judged by."""
        return self.held_out if self.held_out.size else self.known

    @property
    def is_wide(self) -> bool:
        """Return True for this many inputs that models start from a linear model, which must not be better."""
        return self.X.shape[1] > MOST_INPUTS

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """Rows with these numbers, as columns of the kernels."""
        return self.cells(rows).columns(rows)

    def cells(self, rows: np.ndarray) -> CellRows:
        """Rows with these numbers, to be split into cells."""
        return CellRows(self.problem, self.X, rows, self.frame)
