"""How far targets scatter around predictions, row by row."""

from dataclasses import dataclass

import numpy as np

from binfeat._machine.fitted.exact import ExactFunction


@dataclass(frozen=True, eq=False, kw_only=True)
class Spread(ExactFunction):
    """Logarithms of the sizes of residuals, and residuals in units of these sizes.

    Residuals are those of rows that a machine had not seen, of standardised targets; sizes are of rows that this
    function had not seen either.
    """

    intercept: np.ndarray  # (n_targets,)
    differ: np.ndarray  # (), bool: whether sizes clearly differ from row to row
    residuals: np.ndarray  # (n_rows, n_targets), by their sizes, sorted

    def sizes(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Of the residuals of scaled rows, (n_rows, n_targets)."""
        return np.exp(self.scores(X, self.intercept, n_jobs))

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Of residuals by their sizes, (n_levels, n_targets), on the safe side of a finite sample.

        Among n + 1 residuals, the last of which is new, it has a rank below ``level (n + 1)`` where the level is below
        1/2, and above where it is above (Lei et al. 2018). ValueError if the rows are too few for a level.
        """
        n_rows, ranks = len(self.residuals), self._ranks(levels)
        if not self.tells(levels):
            least = 1 / (n_rows + 1)
            raise ValueError(
                f"{n_rows} rows left out tell quantiles from {least:.3g} to {1 - least:.3g} only; got "
                f"{levels[(ranks < 1) | (ranks > n_rows)].tolist()}. Give fit more rows."
            )
        return self.residuals[ranks.astype(np.int64) - 1]

    def tells(self, levels: np.ndarray) -> bool:
        """Whether there are rows enough for these levels."""
        ranks = self._ranks(levels)
        return bool(ranks.min() >= 1 and ranks.max() <= len(self.residuals))

    def _ranks(self, levels: np.ndarray) -> np.ndarray:
        places = levels * (len(self.residuals) + 1)
        return np.where(levels < 0.5, np.floor(places), np.ceil(places))
