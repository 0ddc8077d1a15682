"""Additive effects of the levels of categories in a fitted function."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from binfeat._machine.kernel_algebra.levels import LevelColumns


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
