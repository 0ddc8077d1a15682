"""The first step of a fit: a table becomes unique training and validation rows of numbers."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_consistent_length

from binfeat._common.array_types import ArrayLike
from binfeat._common.held_out import HELD_OUT_SHARE, check_groups, folds, scored_losses, splits
from binfeat._common.labels import AnyLabels
from binfeat._common.validation import check_comparable, check_penalty, check_weights
from binfeat._rows.sampled import SampledSource, take_rows
from binfeat.features.binning.input_checks import require_binning_memory
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.kernel_algebra.loss import SQUARES
from binfeat.models.problem import Problem, answers_of, rows_of, with_codes
from binfeat.models.run import FEWER_ROWS, Run
from binfeat.models.solvers.all_rows import AllRows, RowsOf
from binfeat.models.solvers.choice import known_targets, previous_fit
from binfeat.models.solvers.sizes import TUNING_ROWS, rows_in_time
from binfeat.models.table.columns import RawTable
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.findings import warn_of_training_rows, warn_of_unequal_weights
from binfeat.models.table.targets import Targets
from binfeat.models.table.unique_rows import TableRows, kept_hashes, row_hashes, unique_rows

_NEITHER, _TRAIN, _HELD_OUT = range(3)
# Validation rows for random features, which have no leave-one-out errors, and their largest share. With a tenth of 400
# rows, the log-loss of six tables is 7 to 70 % higher: too few rows select hyperparameters and calibrate probabilities.
_ENOUGH_HELD_OUT, _MOST_HELD_OUT = 200, 0.25
# Numbers of training and validation rows; the group or the validation fold of each row, and its group, if any.
_Split = tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Checked arguments of `fit`: all rows, or a sample of rows that do not fit in memory."""

    X: RawTable
    y: np.ndarray  # (n_rows,) or (n_rows, n_targets)
    weights: ArrayLike | None
    groups: ArrayLike | None
    targets: Targets | AnyLabels  # encoding of the targets of all rows
    all_rows: RowsOf = AllRows
    y_ends: np.ndarray | None = None  # `ends_of` all targets that are numbers, for a sample

    @property
    def is_sample(self) -> bool:
        return self.all_rows is not AllRows

    def sampled(self, source: SampledSource) -> Self:
        weights, groups = source.sampled(self.weights, self.groups)
        return replace(self, X=source.sample, y=self.y[source.rows], weights=weights, groups=groups)


def problem_of(model: BaseEstimator, given: TrainingTable, run: Run) -> tuple[Problem, Fitted | None, TableRows]:
    """Encode, clean and split the rows: the problem of a fit, the earlier fit of a warm start, and unique rows.

    Sets `n_features_in_` and `feature_names_in_` of the model. ValueError if there are too few rows, or X or
    targets differ from the earlier fit of a warm start; MemoryError if `n_grids` grids need too much memory.
    """
    settings, previous = run.settings, previous_fit(model, run)
    if given.weights is not None:
        check_consistent_length(given.X, given.y)
    weights = check_weights(given.weights, len(given.y))
    check_comparable(weights)
    encoder, table = _encoded(model, given, weights, run, previous)
    rows = TableRows(table, given.y, answers_of(given.targets, given.y), weights)
    own, (train, held_out, numbers, related) = _cleaned(model, rows, given, run)
    is_split = settings.has_cv or given.groups is not None
    warn_of_training_rows(own, apart=is_split)
    warn_of_unequal_weights(weights)
    targets = given.targets
    if own is not rows and not isinstance(targets, AnyLabels):
        targets = model._targets(own.y, own.weights)
    targets = targets if previous is None else known_targets(previous, targets, own.y, own.weights, given.y_ends)
    train, held_out = map(np.random.default_rng(settings.seed).permutation, (train, held_out))
    scoring = None if settings.scorer is None else partial(scored_losses, settings.scorer, is_classifier(model))
    learned = own.table, own.y, targets, own.weights
    problem = Problem(*learned, train, held_out, encoder, scoring, numbers, related=related, y_ends=given.y_ends)
    check_penalty(settings.alpha, problem.mean_weight)
    if previous is None and settings.may_take_ranks and run.limits.mechanisms.codes and not is_split:
        problem = with_codes(problem)
    _note_codes(model, problem.encoder.coded, run)
    return problem, previous, own


def seen_rows(problem: Problem, rows: TableRows) -> np.ndarray:
    """Return hashes of the training rows for reports; `rows` are the rows of the problem, without codes."""
    table = problem.table
    hashes = rows.hashes if table is rows.table else row_hashes(table, rows.answers)
    return kept_hashes(hashes[np.append(problem.train, problem.held_out)])


def _encoded(
    model: BaseEstimator, given: TrainingTable, weights: np.ndarray | None, run: Run, previous: Fitted | None
) -> tuple[TableEncoder, np.ndarray]:
    """Return the table as numbers; ValueError if it has too few rows or grids need too much memory.

    Rows of weight 0 (except in samples) become rows of 0, because they are dropped later.
    """
    settings, X, n_rows, rows = run.settings, given.X, len(given.y), None
    if weights is not None and not given.is_sample and 1 < np.count_nonzero(weights) < n_rows:
        rows = np.flatnonzero(weights)
        X = take_rows(X, rows)
    if previous is None:
        takes_ranks = settings.may_take_ranks and run.limits.mechanisms.ranks
        encoder, known = TableEncoder.fit(model, X, settings.categorical_features, takes_ranks)
    else:
        encoder, known = previous.encoder.renewed(model, X)
    check_consistent_length(known, given.y if rows is None else rows)
    if n_rows < 2:
        raise ValueError(f"{type(model).__name__} requires at least 2 rows, got n_samples=1.")
    if settings.n_grids is not None:
        require_binning_memory((n_rows, known.shape[1]), settings.n_grids, 0)
    if rows is None:
        return encoder, known
    table = np.zeros((n_rows, known.shape[1]))
    table[rows] = known
    return encoder, table


def _cleaned(model: BaseEstimator, rows: TableRows, given: TrainingTable, run: Run) -> tuple[TableRows, _Split]:
    """Return unique rows and their split; a sample keeps all rows.

    With `cv` or `groups` rows are split before copies are merged, and otherwise afterwards.
    """
    if given.is_sample or run.settings.has_cv or given.groups is not None:
        train, held_out, numbers, related = split = _split(model, rows.y, given.groups, run)
        if rows.weights is not None and not (rows.weights[train].any() and rows.weights[held_out].any()):
            raise ValueError("sample_weight is zero for all training rows or for all validation rows. Change it or cv.")
        if given.is_sample:
            return rows, split
        parts = np.full(len(rows), _NEITHER)
        parts[train], parts[held_out] = _TRAIN, _HELD_OUT
        separate = parts
        for known in (numbers, related):
            separate = separate if known is None else separate * (known.max() + 1) + known
        own, kept = unique_rows(rows, separate)
        _note_copies(rows, own, run)
        train, held_out = (np.flatnonzero(parts[kept] == part) for part in (_TRAIN, _HELD_OUT))
        return own, (train, held_out, rows_of(numbers, kept), rows_of(related, kept))
    if run.limits.mechanisms.duplicates:
        own, _ = unique_rows(rows)
        _note_copies(rows, own, run)
        rows = own
    rows = _within_time_limit(rows, run)
    return rows, _split(model, rows.y, None, run)


def _split(model: BaseEstimator, y: np.ndarray, groups: ArrayLike | None, run: Run) -> _Split:
    """Split rows by `cv` and `random_state` of the model; use all folds up to a number of rows."""
    share = HELD_OUT_SHARE
    if run.settings.names_features and run.settings.features not in ("exact", "local"):
        share = float(np.clip(_ENOUGH_HELD_OUT / len(y), share, _MOST_HELD_OUT))
    pairs, related, numbers = splits(model, len(y), y, groups, share), check_groups(groups, len(y)), None
    first_two = list(islice(pairs, 2))
    train, held_out = first_two[0]
    may_use_folds = run.settings.has_cv and run.settings.refits and run.settings.loss in SQUARES
    if may_use_folds and len(y) <= TUNING_ROWS:
        numbers = folds(chain(first_two, pairs), len(y))
    elif model.cv is None:
        numbers = related
    if len(first_two) > 1 and numbers is None:
        run.note("validation set", "only the first split of cv", np.nan)
    return train, held_out, numbers, related


def _within_time_limit(rows: TableRows, run: Run) -> TableRows:
    """Subsample rows at random so that cells can be solved for within the time limit."""
    n_rows, n_inputs = rows.table.shape
    least = run.limits.hurried_rows
    if n_rows <= least or run.settings.names_features:
        return rows
    most = int(min(n_rows, max(least, rows_in_time(n_inputs, run))))
    if most == n_rows:
        return rows
    run.cut_short = FEWER_ROWS
    run.note("rows", f"{most:,} of {n_rows:,}, to meet max_seconds", np.nan)
    return rows.at(np.sort(np.random.default_rng(run.settings.seed).permutation(n_rows)[:most]))


def _note_copies(rows: TableRows, own: TableRows, run: Run) -> None:
    if len(own) < len(rows):
        run.note("rows", f"{len(own):,} of {len(rows):,}, without duplicates and weights of 0", np.nan)


def _note_codes(model: BaseEstimator, coded: np.ndarray, run: Run) -> None:
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    known = [str(names[j]) for j in coded]
    if known:
        run.note("codes", ", ".join(known[:5]) + ", ..." * (len(known) > 5), np.nan)
