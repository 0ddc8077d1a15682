"""Base class of the kernel models: fit to a raw table, predictions of scores, and the summary."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.callbacks import CallbackSupportMixin
from binfeat._common.derived import Derived
from binfeat._common.fit_rollback import fit_method
from binfeat._common.held_out import check_groups
from binfeat._common.labels import AnyLabels
from binfeat._common.persistence import Persistent
from binfeat._common.progress import Progress
from binfeat._common.text_tables import text_table
from binfeat._common.validation import check_weights, require_y
from binfeat._engine.compilation import compilations
from binfeat._rows.sampled import SampledSource
from binfeat._rows.scored import by_block
from binfeat._rows.sources import check_alone, is_source
from binfeat._threads import blas_threads
from binfeat.kernels.parameters import WithKernel
from binfeat.models.fitted.fitted import FEATURE_ARRAYS, Fitted, attributes_of, fitted_of, require_finite
from binfeat.models.fitted.saved import migrate
from binfeat.models.pipeline import fit
from binfeat.models.problem import n_targets_of
from binfeat.models.run import HEADER, Clock, Run, decision_words
from binfeat.models.settings import SOLVER_OPTIONS, Limits, Settings
from binfeat.models.solvers.all_rows import SourceRows, check_beyond_memory
from binfeat.models.solvers.choice import fitted_with
from binfeat.models.solvers.sizes import require_table_bytes
from binfeat.models.table.columns import RawTable
from binfeat.models.table.findings import NoveltyPolicy, Report, warn_of_time_limit
from binfeat.models.table.targets import Targets, ends_of
from binfeat.models.training_data import TrainingTable, problem_of, seen_rows


class KernelMachineBase(WithKernel, Persistent, CallbackSupportMixin, BaseEstimator):
    _migrate = staticmethod(migrate)
    _limits = Limits()
    _solver_options: tuple[str, ...] = SOLVER_OPTIONS  # keys of solver_params

    gamma_: np.ndarray
    feature_relevances_: np.ndarray
    features_: str
    kernel_: str
    scaling_: str
    alpha_: float
    n_grids_: int
    n_trees_: int
    length_scale_errors_: np.ndarray
    length_scale_gammas_: np.ndarray
    held_out_error_: np.ndarray
    learning_curve_: np.ndarray
    decisions_: np.ndarray
    status_: str
    feature_coef_: np.ndarray
    intercept_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray

    def _settings(self) -> Settings:
        return Settings.of(self)

    @abstractmethod
    def _checked(self, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[np.ndarray, ArrayLike | None]:
        """Return targets or labels as an array, and weights (n_rows,) or None."""

    @abstractmethod
    def _targets(self, y: np.ndarray, weights: np.ndarray | None = None) -> Targets | AnyLabels:
        """Encode y for the fit, with weights of shape (n_rows, 1)."""

    @fit_method
    def fit(
        self,
        X: RawTable,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks
            Numbers and categories; NaN is a missing value. See `binfeat.blocks` for sources of blocks of rows.
        y : array-like of shape (n_rows,), (n_rows, n_targets) or (n_rows, n_labels), default=None
            Numbers for a regressor. For a classifier: labels (numbers or strings) of at least two classes, in one or
            several columns, or an indicator matrix of 0 and 1. None for a source, which provides targets and weights.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative weights, not all zero. With given hyperparameters, a weight of two has the same effect as
            repeating the row, except for the medians that replace missing values, the ranks of inputs, and the weights
            of outliers with ``loss="huber"``. Selected hyperparameters can differ, because the leave-one-out prediction
            of a repeated row uses its copies. Exact copies (targets included) are merged into one row with the sum of
            their weights if they are more than a fourth of the rows in memory. They are not merged if rows differ only
            in categories or codes, or if there are few different rows, because such rows are equal by chance. Rows of
            weight 0 are ignored, but `classes_` contains their labels.
        groups : array-like of shape (n_rows,), default=None
            Group of each row. All rows of a group are in the same split, and the search for length scales leaves out
            groups as a whole. Without groups, columns that are constant within groups, such as the age of a patient
            with several visits, seem too relevant. With `cv`, its splits select the validation rows.

        Returns
        -------
        self : KernelMachineRegressor or KernelMachineClassifier

        Raises
        ------
        TypeError, ValueError
            If a parameter, target, weight or column type is invalid, X or y contains numbers beyond 1e100, lengths
            differ, or there are fewer than two classes.
        """
        settings, source = self._settings(), None
        if is_source(X):
            check_alone(y, sample_weight)
            source = SampledSource(self, X, settings.seed)
            y, sample_weight = source.summary.y, source.summary.sample_weight
        checked, weights = self._checked(require_y(type(self).__name__, y), sample_weight)
        groups = check_groups(groups, len(checked))
        own_weights = check_weights(weights, len(checked))
        given = TrainingTable(X, checked, weights, groups, self._targets(checked, own_weights))
        if source is not None:
            given = given.sampled(source)
            if not source.is_whole:
                check_beyond_memory(settings, self.cv)
                rows = partial(SourceRows, estimator=self, source=source, y=checked, weights=own_weights)
                ends = None if isinstance(given.targets, AnyLabels) else ends_of(checked, own_weights)
                given = replace(given, all_rows=rows, y_ends=ends)
        return self._fit_rows(given, settings, Clock(settings.max_seconds))

    def _fit_rows(self, given: TrainingTable, settings: Settings, clock: Clock) -> Self:
        """Fit to all rows, or to a sample of them if they do not fit in memory."""
        n_targets = n_targets_of(given.targets, given.y)
        require_table_bytes(getattr(given.X, "shape", ()), len(given.y), n_targets, settings.max_bytes)
        progress = Progress(self, given.X, given.y)
        run = Run(settings, self._limits, clock, progress)
        problem, previous, rows = problem_of(self, given, run)
        with blas_threads(self.n_jobs), compilations.notifying(progress.compiling, run.compiling):
            fitted = fit(problem, previous, given.all_rows, run)
        seen = None if given.is_sample else seen_rows(problem, rows)
        attributes = attributes_of(replace(fitted, seen=seen))
        if run.interrupt is None:
            require_finite(attributes)
        for name in ("target_transformer_", *FEATURE_ARRAYS):
            self.__dict__.pop(name, None)
        self.__dict__ |= attributes | self._choices()
        self._fitted_with, self._derived = fitted_with(self), Derived()
        if run.interrupt is not None:
            raise run.interrupt
        warn_of_time_limit(settings.max_seconds, clock.used)
        progress.end()
        return self

    def _choices(self) -> dict[str, int]:
        """Return parameters that predictions need, as attributes, because parameters can change after `fit`."""
        return {}

    @property
    def _fitted(self) -> Fitted:
        if not hasattr(self, "feature_coef_"):
            check_is_fitted(self, "feature_coef_")
        return self._derived.get(self.feature_coef_, partial(fitted_of, self))

    def _scores(self, X: RawTable) -> np.ndarray:
        """Return predictions of the targets, (n_rows, n_targets)."""
        return self._of_table(X, lambda part, note: self._rows_and_scores(part, note)[1])

    def _of_table(self, X: RawTable, function: Callable[[RawTable, Report], np.ndarray]) -> np.ndarray:
        """Apply a function to rows in memory, or to each block of a source."""
        with NoveltyPolicy(self) as note:
            if is_source(X):
                check_is_fitted(self, "feature_coef_")
                return by_block(X, lambda part: function(part, note))[0]
            return function(X, note)

    def _rows_and_scores(self, X: RawTable, note: Report) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded rows in memory, and predictions of the targets."""
        fitted = self._fitted
        rows = fitted.rows(self, X, note)
        return rows, fitted.scores(rows, self.n_jobs)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Effect of shuffling each input on the leave-one-out error; see the class docstring."""
        return self._fitted.importances(self.n_jobs)

    @property
    def linear_map_(self) -> np.ndarray | None:
        """Learned linear map of the scaled inputs, or None; see the class docstring."""
        return self._fitted.linear_map

    def summary(self) -> str:
        """Return the selections of `fit`, in order, as a table.

        Returns
        -------
        table : str
            One line per selection: name, choice, the error after it (mean squared leave-one-out or validation error of
            the standardized targets, the mean of another loss, or minus the `scoring`), and the seconds since the
            start.
        """
        check_is_fitted(self, "feature_coef_")
        return text_table([HEADER, *(decision_words(*row) for row in self.decisions_)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags
