"""Rows of a table that is too large to be kept as it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from binfeat.length_scales.leave_one_out import Weights
from binfeat.length_scales.matrices import Frame


@dataclass(frozen=True, eq=False)
class ColumnRows:
    """Scaled rows, kept in float32 as columns in a frame: half of the memory, as exact as kernels see them."""

    columns: np.ndarray  # (n_inputs, n_rows)
    frame: Frame

    @property
    def shape(self) -> tuple[int, int]:
        n_inputs, n_rows = self.columns.shape
        return n_rows, n_inputs

    def __len__(self) -> int:
        return self.columns.shape[1]

    def __getitem__(self, place: Any) -> np.ndarray:
        """Some rows, or one input of them, in float64; `place` is ``rows`` or ``rows, input``."""
        if not isinstance(place, tuple):
            return self._in_inputs(self.columns[:, place].T)
        rows, j = place
        return self.columns[j][rows].astype(np.float64) * self.frame.unit[j] + self.frame.center[j]

    def min(self, axis: Literal[0]) -> np.ndarray:
        """One value per input, (n_inputs,)."""
        return self._in_inputs(self.columns.min(axis=1 - axis))

    def max(self, axis: Literal[0]) -> np.ndarray:
        """One value per input, (n_inputs,)."""
        return self._in_inputs(self.columns.max(axis=1 - axis))

    def _in_inputs(self, rows: np.ndarray) -> np.ndarray:
        """Rows (..., n_inputs) of the frame as they were, in float64."""
        return rows * self.frame.unit + self.frame.center


ScaledTable = np.ndarray | ColumnRows  # (n_rows, n_inputs)


CellFunction = Callable[[np.ndarray, np.ndarray, Weights], Any]  # of columns (n_inputs, n), targets and weights
EachCell = Callable[[CellFunction, list[np.ndarray]], list[Any]]  # of cells, which are numbers of rows
