"""The rows that a search for length scales learns from."""

from dataclasses import dataclass

import numpy as np

from binfeat._machine.kernel_algebra.leave_one_out import Weights
from binfeat._machine.kernel_algebra.matrices import Frame


@dataclass(frozen=True, eq=False)
class SearchRows:
    """Scaled inputs, targets and weights of rows; searches use the rows whose weight is above 0."""

    X: np.ndarray  # (n_rows, n_inputs)
    Y: np.ndarray  # (n_rows, n_targets), of unit scale
    weights: Weights
    used: np.ndarray  # numbers of the rows whose weight is above 0
    frame: Frame

    def part(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, Weights]:
        """Columns, targets and weights of the rows with these numbers."""
        weights = None if self.weights is None else self.weights[rows]
        return self.frame.columns(self.X[rows]), self.Y[rows].astype(np.float32), weights

    def spread(self, most: int) -> np.ndarray:
        """Numbers of at most `most` used rows, evenly spaced: the same for all searches."""
        return self.used[np.linspace(0, len(self.used) - 1, min(most, len(self.used))).astype(np.intp)]
