"""Base class of the kernel models: fit to a raw table, predictions of scores, and the summary."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.callbacks import CallbackSupportMixin
from binfeat._common.derived import Derived
from binfeat._common.fit_rollback import fit_method
from binfeat._common.held_out import Scoring, check_groups
from binfeat._common.labels import AnyLabels
from binfeat._common.persistence import Persistent
from binfeat._common.progress import Progress
from binfeat._common.text_tables import text_table
from binfeat._common.validation import check_comparable, check_penalty, check_weights, require_y
from binfeat._engine.compilation import compilations
from binfeat._rows.sampled import SampledSource
from binfeat._rows.scored import by_block
from binfeat._rows.sources import check_alone, is_source
from binfeat._threads import blas_threads
from binfeat.features.binning.input_checks import require_binning_memory
from binfeat.kernels.parameters import WithKernel
from binfeat.models.features.all_rows import AllRows, MemoryRows, SourceRows, check_beyond_memory
from binfeat.models.features.feature_bytes import require_table_bytes
from binfeat.models.fitted.attributes import attributes_of, fitted_of, require_finite
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.fitted.saved import migrate
from binfeat.models.limits import Limits
from binfeat.models.machines.exact_size import TUNING_ROWS
from binfeat.models.machines.local_size import rows_in_time
from binfeat.models.pipeline import fit
from binfeat.models.problem import Problem, answers_of, n_targets_of
from binfeat.models.run import FEWER_ROWS, HEADER, Clock, Decisions, Run, decision_words
from binfeat.models.settings import SOLVER_OPTIONS, Settings
from binfeat.models.table.columns import RawTable
from binfeat.models.table.copies import GivenRows
from binfeat.models.table.doubts import doubt_limit, doubt_rows
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.findings import NoveltyPolicy, Report
from binfeat.models.table.partition import Partition
from binfeat.models.table.row_hashes import SeenRows, row_hashes
from binfeat.models.target.targets import Targets
from binfeat.models.warm_start import fitted_with, known_targets, previous_fit

_NAMED = 5  # columns of codes in the summary
_FEWEST = 3000  # rows that a time limit keeps


def _without_copies(rows: GivenRows, cells: np.ndarray, run: Run) -> tuple[GivenRows, np.ndarray]:
    """Merge copies, see `GivenRows.without_copies`, and record the number of merged rows."""
    own, numbers = rows.without_copies(cells)
    if len(own) < len(rows):
        run.note("rows", f"{len(own):,} of {len(rows):,}, without duplicates and weights of 0", np.nan)
    return own, numbers


def _in_time(rows: GivenRows, run: Run) -> GivenRows:
    """Subsample rows at random so that cells can be solved for within the time limit."""
    n_rows, n_inputs = rows.table.shape
    if n_rows <= _FEWEST or run.settings.names_features:
        return rows
    most = int(min(n_rows, max(_FEWEST, rows_in_time(n_inputs, run))))
    if most == n_rows:
        return rows
    run.cut_short = FEWER_ROWS
    run.note("rows", f"{most:,} of {n_rows:,}, to meet max_seconds", np.nan)
    return rows.at(np.sort(np.random.default_rng(run.settings.seed).permutation(n_rows)[:most]))


class KernelMachineBase(WithKernel, Persistent, CallbackSupportMixin, BaseEstimator):
    """Base class of the kernel models."""

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
    def _checked(self, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets or labels as an array, and weights of shape (n_rows,) or None."""

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
            Non-negative weights, not all zero. A weight of two has the same effect as repeating the row. Rows of weight
            0 are ignored. If more than a fourth of the rows in memory are exact copies, targets included, and not equal
            by chance, copies are merged into one row with the sum of their weights.
        groups : array-like of shape (n_rows,), default=None
            Group of each row. All rows of a group are in the same split.

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
            y, sample_weight = source.survey.y, source.survey.sample_weight
        checked, weights = self._checked(require_y(type(self).__name__, y), sample_weight)
        groups = check_groups(groups, len(checked))
        own_weights, all_rows = check_weights(weights, len(checked)), None
        targets = self._targets(checked, own_weights)
        if source is not None:
            if not source.is_whole:
                check_beyond_memory(settings)
                all_rows = partial(SourceRows, estimator=self, source=source, y=checked, weights=own_weights)
            weights, groups = source.sampled(weights, groups)
            X, checked = source.sample, checked[source.rows]
        return self._fit_table(X, checked, weights, groups, settings, Clock(settings.max_seconds), targets, all_rows)

    def _fit_table(
        self,
        X: RawTable,
        y: np.ndarray,
        sample_weight: np.ndarray | None,
        groups: ArrayLike | None,
        settings: Settings,
        clock: Clock,
        targets: Targets | AnyLabels,
        all_rows: Callable[[Problem, Run], AllRows] | None,
    ) -> Self:
        """Fit to a table in memory, or to a sample of all rows if they do not fit in memory."""
        require_table_bytes(getattr(X, "shape", ()), len(y), n_targets_of(targets, y), settings.max_bytes)
        progress, decisions = Progress(self, X, y), Decisions(clock, settings.verbose)
        run = Run(settings, self._limits, clock, progress, decisions)
        previous = previous_fit(self, run)
        encoder, table = self._encoded(X, y, settings, previous)
        weights = check_weights(sample_weight, len(table))
        check_comparable(weights)
        given = GivenRows(table, y, answers_of(targets, y), weights)
        rows, partition = self._partition(given, groups, run, is_sample=all_rows is not None)
        doubt_rows(rows, apart=groups is not None or settings.has_cv)
        if rows is not given and not isinstance(targets, AnyLabels):
            targets = self._targets(rows.y, rows.weights)
        targets = targets if previous is None else known_targets(previous, targets)
        train, held_out = partition.shuffled(settings.seed)
        scoring = None if settings.scorer is None else Scoring(settings.scorer, is_classifier(self))
        learned = rows.table, rows.y, targets, rows.weights
        problem = Problem(*learned, train, held_out, encoder, scoring, partition.numbers)
        check_penalty(settings.alpha, problem.mean_weight)
        if previous is None and settings.may_take_ranks and not (settings.has_cv or groups is not None):
            problem = problem.with_codes() if run.limits.mechanisms.codes else problem
        self._note_codes(problem.encoder.codes.source, run)
        with blas_threads(self.n_jobs), compilations.told_to(progress.compiling, decisions.compiling):
            fitted = fit(problem, MemoryRows if all_rows is None else all_rows, run, previous)
        if all_rows is None:
            hashes = rows.hashes if problem.table is rows.table else row_hashes(problem.table, rows.answers)
            fitted = replace(fitted, seen=SeenRows.of(hashes[np.append(train, held_out)]))
        attributes = attributes_of(fitted)
        if run.interrupt is None:
            require_finite(attributes)
        self.__dict__.pop("target_transformer_", None)
        self.__dict__ |= attributes | self._choices()
        self._fitted_with, self._derived = fitted_with(self), Derived()
        if run.interrupt is not None:
            raise run.interrupt
        doubt_limit(settings.max_seconds, clock.used)
        progress.end()
        return self

    def _encoded(
        self, X: RawTable, y: np.ndarray, settings: Settings, previous: Fitted | None
    ) -> tuple[TableEncoder, np.ndarray]:
        """The table as numbers; ValueError if it has too few rows or grids need too much memory."""
        if previous is None:
            takes_ranks = settings.may_take_ranks and self._limits.mechanisms.ranks
            encoder, table = TableEncoder.fit(self, X, settings.categorical_features, takes_ranks)
        else:
            encoder, table = previous.encoder.renewed(self, X)
        check_consistent_length(table, y)
        if len(table) < 2:
            raise ValueError(f"{type(self).__name__} requires at least 2 rows, got n_samples=1.")
        if settings.n_grids is not None:
            require_binning_memory(table.shape, settings.n_grids, 0)
        return encoder, table

    def _note_codes(self, coded: np.ndarray, run: Run) -> None:
        """Record the numeric columns that are also encoded as categories."""
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        known = [str(names[j]) for j in coded]
        if known:
            run.note("codes", ", ".join(known[:_NAMED]) + ", ..." * (len(known) > _NAMED), np.nan)

    def _partition(
        self, rows: GivenRows, groups: ArrayLike | None, run: Run, is_sample: bool
    ) -> tuple[GivenRows, Partition]:
        """The rows to learn from and the validation set; all rows of a sample are kept."""
        settings = run.settings
        most = TUNING_ROWS if settings.may_judge_by_folds else 0
        if not (is_sample or settings.has_cv or groups is not None):
            if run.limits.mechanisms.duplicates:
                rows, _ = _without_copies(rows, np.zeros(len(rows)), run)
            rows = _in_time(rows, run)
            return rows, Partition.of(self, rows.y, None, most)
        partition = Partition.of(self, rows.y, groups, most)
        partition.require_weight(rows.weights)
        if is_sample:
            return rows, partition
        own, numbers = _without_copies(rows, partition.cells(len(rows)), run)
        return own, partition.of_rows(numbers, len(rows))

    def _choices(self) -> dict[str, Any]:
        """Attributes that predictions need of parameters, which can change after `fit`."""
        return {}

    def _of_fit(self, name: str) -> Any:
        """A value of `_choices` at the time of `fit`; files of version 0.2.0 contain only parameters."""
        known = vars(self)
        return known[name] if name in known else self._choices().get(name)

    @property
    def _fitted(self) -> Fitted:
        """The fitted model as a value."""
        if not hasattr(self, "feature_coef_"):
            check_is_fitted(self, "feature_coef_")
        return self._derived.get(self.feature_coef_, partial(fitted_of, self))

    def _scores(self, X: RawTable) -> np.ndarray:
        """Predictions of the targets, (n_rows, n_targets)."""
        return self._of_table(X, lambda part, note: self._rows_and_scores(part, note)[1])

    def _of_table(self, X: RawTable, function: Callable[[RawTable, Report], np.ndarray]) -> np.ndarray:
        """Apply a function to rows in memory, or to each block of a source."""
        with NoveltyPolicy(self) as note:
            if is_source(X):
                check_is_fitted(self, "feature_coef_")
                return by_block(X, lambda part: function(part, note))[0]
            return function(X, note)

    def _rows_and_scores(self, X: RawTable, note: Report) -> tuple[np.ndarray, np.ndarray]:
        """Encoded rows in memory, and predictions of the targets."""
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
            the standardised targets, the mean of another loss, or minus the `scoring`), and the seconds since the
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
