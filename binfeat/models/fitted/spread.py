"""The size of residuals as a function of the row."""

from dataclasses import dataclass

import numpy as np

from binfeat.models.fitted.exact import ExactFunction

_ROUNDING = 1e-9  # of a rank: (1 - 0.9) / 2 is less than 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class Spread(ExactFunction):
    """Logarithms of the sizes of residuals, and residuals in units of these sizes.

    Residuals are leave-one-out or validation residuals of standardized targets; sizes are of rows that this
    function had not seen either.
    """

    intercept: np.ndarray  # (n_targets,)
    differ: np.ndarray  # (), bool: whether sizes clearly differ from row to row
    residuals: np.ndarray  # (n_rows, n_targets), by their sizes, sorted

    def sizes(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return the sizes of the residuals of scaled rows, (n_rows, n_targets)."""
        return np.exp(self.scores(X, self.intercept, n_jobs))

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Return conservative quantiles of residuals divided by their sizes, (n_levels, n_targets).

        Among n + 1 residuals, the last of which is new, it has a rank below ``level (n + 1)`` where the level is below
        1/2, and above where it is above (Lei et al. 2018). ValueError if the rows are too few for a level.
        """
        untold, n_rows = levels[~self._told(levels)], len(self.residuals)
        if untold.size:
            least = 1 / (n_rows + 1)
            raise ValueError(
                f"{n_rows} residuals determine quantiles from {least:.3g} to {1 - least:.3g}, got "
                f"{np.round(untold, 9).tolist()}. Fit the model to more rows."
            )
        return self.residuals[self._ranks(levels) - 1]

    def tells(self, levels: np.ndarray) -> bool:
        """Return True if there are enough rows for quantiles of these levels."""
        return bool(self._told(levels).all())

    def _told(self, levels: np.ndarray) -> np.ndarray:
        ranks = self._ranks(levels)
        return (ranks >= 1) & (ranks <= len(self.residuals))

    def _ranks(self, levels: np.ndarray) -> np.ndarray:
        """Return ranks among sorted residuals from 1 on, out of range if there is none."""
        places = levels * (len(self.residuals) + 1)
        return np.where(levels < 0.5, np.floor(places + _ROUNDING), np.ceil(places - _ROUNDING)).astype(np.int64)
