"""A fitted kernel model as a value."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.derived import Derived
from binfeat._common.labels import AnyLabels
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.importance import rises_of_kernels
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.score_function import HeldOutErrors, Posterior
from binfeat.models.fitted.spread import Spread
from binfeat.models.search.kernel_search import History
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.findings import Report
from binfeat.models.table.scalers import InputScaler
from binfeat.models.table.unique_rows import SeenRows
from binfeat.models.target.targets import Targets


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model: from a raw table to predictions, with all decisions."""

    features: str  # "exact", "local", "binning" or "fourier"; in older files also "hybrid", both of them
    kernel: str
    scaling: str
    alpha: float
    encoder: TableEncoder
    scaler: InputScaler
    targets: Targets | AnyLabels
    function: KernelFunction | FeatureFunction
    intercept: np.ndarray  # (n_targets,)
    gamma: np.ndarray  # (n_columns,): of each encoded column, as the kernel with the larger share defines it
    linear_map: np.ndarray | None  # (n_columns, rank), of the scaled columns
    relevances: np.ndarray  # (n_inputs,)
    history: History
    held_out_error: np.ndarray  # (2,): mean and standard error
    learning_curve: np.ndarray  # (n_batches, 2): number of grids or trees, and error
    decisions: np.ndarray  # structured
    status: str
    samples: RidgePosterior | None = None  # of the coefficients
    errors: HeldOutErrors | None = None
    spread: Spread | None = None  # of numbers
    seen: SeenRows | None = None  # rows of `fit`, of a table in memory
    rises: np.ndarray | None = None  # (n_inputs,): of the loss when an input is shuffled, where no rows are kept
    _derived: Derived = field(default_factory=Derived, repr=False)
    _derived_rises: Derived = field(default_factory=Derived, repr=False)

    @property
    def inverse_lengths(self) -> np.ndarray:
        """One over the length scale of each encoded column."""
        function = self.function
        power = function.main_power if isinstance(function, KernelFunction) else 1 + (self.features == "fourier")
        return self.gamma ** (1 / power)

    def rows(self, estimator: BaseEstimator, X: object, note: Report = None) -> np.ndarray:
        """Rows of a raw table as the kernels see them; names and number of the columns are the estimator's."""
        return self.scaled(self.encoder.transform(estimator, X, note))

    def scaled(self, table: np.ndarray) -> np.ndarray:
        """Encoded rows as the kernels see them."""
        return self.scaler.transform(table)

    def scores(self, rows: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Predictions of the targets, (n_rows, n_targets), for scaled rows."""
        return self.function.scores(rows, self.intercept, n_jobs)

    def importances(self, n_jobs: int | None) -> np.ndarray:
        """Roots of the rises of the loss, (n_inputs,), in units of the targets; of an older file maybe relevances."""
        rises = self._derived_rises.get(self, lambda: self._rises(n_jobs))
        return self.relevances if rises is None else np.sqrt(np.maximum(rises, 0.0))

    def _rises(self, n_jobs: int | None) -> np.ndarray | None:
        if isinstance(self.function, KernelFunction):
            return rises_of_kernels(self.function, self.encoder.source, n_jobs)
        return self.rises

    def posterior(self, n_jobs: int | None) -> Posterior:
        """Error bars; an exact model factorizes its kernel matrix once."""
        return self._derived.get(self, lambda: self.function.posterior(self.samples, self.errors, n_jobs))
