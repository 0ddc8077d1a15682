"""Interface of the kinds of kernel models for the choice among them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.warned import warn
from binfeat.length_scales.kernel_sum import KernelSum
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.features.all_rows import AllRows
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.score_function import HeldOutErrors
from binfeat.models.run import Run
from binfeat.models.table.scalers import InputScaler

_LARGE = 0.01  # relative decrease by a further step, above which a loss has not converged


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved model, and its validation or leave-one-out predictions."""

    features: str
    kernel: KernelSum  # with the penalty for the weights of the caller
    function: KernelFunction | FeatureFunction
    intercept: np.ndarray  # (n_targets,)
    rows: np.ndarray  # numbers of rows used for decisions
    predictions: np.ndarray  # (len(rows), n_targets), validation or leave-one-out predictions
    curve: list[tuple[int, float]]  # number of grids or trees, and the error, each time that some were added
    status: str
    errors: HeldOutErrors | None = None  # None where the function itself tells
    samples: RidgePosterior | None = None
    known: tuple[np.ndarray, np.ndarray] | None = None  # rows of the model, and predictions for them, if available

    @property
    def error(self) -> float:
        return self.curve[-1][1]

    def scores(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Predictions of the targets, (n_rows, n_targets), for scaled rows."""
        return self.function.scores(X, self.intercept, n_jobs)

    def predictor(self, scaler: InputScaler, n_jobs: int | None) -> "Predictor":
        return Predictor(scaler, self.function, self.intercept, n_jobs)

    def scores_of_all(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return predictions for all rows of the table; for a kernel matrix they follow from the coefficients."""
        if self.known is None:
            return self.scores(X, n_jobs)
        rows, own = self.known
        out, others = np.empty((len(X), own.shape[1])), np.ones(len(X), bool)
        out[rows], others[rows] = own, False
        out[others] = self.scores(X[others], n_jobs)
        return out


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictions of the targets for encoded rows, wherever they are."""

    scaler: InputScaler
    function: KernelFunction | FeatureFunction
    intercept: np.ndarray
    n_jobs: int | None

    def __call__(self, table: np.ndarray) -> np.ndarray:
        X = self.scaler.transform(table)
        return self.function.scores(X, self.intercept, self.n_jobs)


class Candidate(ABC):
    """A kind of model for one problem."""

    features: ClassVar[str]

    @abstractmethod
    def solve(self, rows: AllRows, run: Run) -> Solution:
        """Return the model of all rows, or of the maximum number of rows."""

    def so_far(self) -> Solution | None:
        """Return the current model after Ctrl-C, if any."""
        return None


def warn_of_steps(gain: float, loss: str) -> None:
    """A ConvergenceWarning where steps have ended far from the minimum of a loss."""
    if gain > _LARGE:
        message = f"the last step of loss={loss!r} still promised {gain:.1%} less of what is minimised; raise alpha."
        warn(message, ConvergenceWarning)
