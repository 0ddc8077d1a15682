"""Rows that a machine with a kernel has."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._machine.kernel_algebra.column_rows import Table
from binfeat._machine.kernel_algebra.matrices import Frame
from binfeat._machine.machines.cell_rows import CellRows
from binfeat._machine.problem import Problem
from binfeat._machine.run import Run

_FRAME_ROWS = 1500


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Numbers of the rows with weight, all of them and those that choices may be made by, and their frame."""

    problem: Problem
    X: Table  # scaled, (n_rows, n_inputs)
    all: np.ndarray
    known: np.ndarray
    frame: Frame

    @classmethod
    def of(cls, problem: Problem, run: Run, X: Table, frame: Frame | None = None) -> Self:
        """What settings let a machine have: rows that are held out are learned from in the end, or not at all."""
        train = _weighty(problem, problem.train)
        every = np.append(train, _weighty(problem, problem.held_out)) if run.settings.refits else train
        known = train if run.settings.has_cv else every
        if frame is None:
            frame = Frame.of(X[known[evenly_spaced(len(known), _FRAME_ROWS)]], problem.categorical)
        return cls(problem, X, every, known, frame)

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """Rows with these numbers, as columns of the kernels."""
        return self.cells(rows).columns(rows)

    def cells(self, rows: np.ndarray) -> CellRows:
        """Rows with these numbers, to be split into cells."""
        return CellRows(self.problem, self.X, rows, self.frame)


def _weighty(problem: Problem, rows: np.ndarray) -> np.ndarray:
    weights = problem.weights_of(rows)
    return rows if weights is None else rows[weights[:, 0] > 0]
