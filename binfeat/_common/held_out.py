"""Validation sets, and losses on them."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeGuard

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier

from binfeat._common.array_types import ArrayLike
from binfeat._common.frames import is_missing, unmasked, without_long_integers
from binfeat._common.subsets import evenly_spaced, thinned
from binfeat._common.validation import check_share

if TYPE_CHECKING:
    from sklearn.model_selection import BaseShuffleSplit

HELD_OUT_SHARE = 0.1  # for estimators without `validation_fraction`


def less_by(share: float, error: float) -> float:
    """Return an error decreased by a share of its size: minus a score is often negative."""
    return error - share * abs(error)


def splits(
    estimator: BaseEstimator, n_rows: int, y: np.ndarray, groups: ArrayLike | None, share: float = HELD_OUT_SHARE
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training and validation rows for the estimator's `cv`, `random_state` and `validation_fraction`.

    Estimators without the parameter `validation_fraction` use `share`. ValueError if the fraction is not between 0 and
    1, or the splitter fails or returns no rows.
    """
    from sklearn.model_selection import check_cv  # imported late because it is slow

    groups = check_groups(groups, n_rows)
    cv = _random_part(estimator, y, groups, share) if estimator.cv is None else estimator.cv
    given = False
    if not lists_rows(cv):
        cv = check_cv(cv, y, classifier=is_classifier(estimator)).split(np.zeros((n_rows, 1)), y, groups)
    for pair in cv:
        given = True
        yield _row_numbers(pair, n_rows)
    if not given:
        raise ValueError("cv contains no split. Pass a splitter, or [(train_rows, validation_rows)].")


def lists_rows(cv: object) -> TypeGuard[Iterable]:
    """Return True if `cv` contains rows; otherwise `check_cv` makes a splitter from it."""
    return isinstance(cv, Iterable) and not isinstance(cv, str)


def folds(pairs: Iterable[tuple[np.ndarray, np.ndarray]], n_rows: int) -> np.ndarray | None:
    """Return the fold number of each row if each row is validated once, with all others for training; or None."""
    numbers = np.full(n_rows, -1)
    for fold, (train, held_out) in enumerate(pairs):
        others = np.delete(np.arange(n_rows), held_out)
        if (numbers[held_out] >= 0).any() or not np.array_equal(np.sort(train), others):
            return None
        numbers[held_out] = fold
    return None if (numbers < 0).any() else numbers


def even_folds(is_event: np.ndarray, groups: np.ndarray | None, n_folds: int) -> np.ndarray:
    """Return the fold number of each row; folds have about equally many events, and groups are not split."""
    units = np.arange(len(is_event)) if groups is None else np.unique(groups, return_inverse=True)[1]
    counts = np.bincount(units, is_event)
    order = np.lexsort((np.random.default_rng(0).permutation(counts.size), -counts))
    of_units = np.empty(counts.size, dtype=np.intp)
    of_units[order] = np.arange(counts.size) % n_folds
    return of_units[units]


def check_groups(groups: Any, n_rows: int) -> np.ndarray | None:
    """Return the group number of each row, (n_rows,), in the order of names; None without groups.

    TypeError if names cannot be sorted; ValueError if their number differs from the number of rows.
    """
    if groups is None:
        return None
    try:
        names = np.asarray(unmasked(without_long_integers(groups)))
        names = names.ravel() if names.shape == (n_rows, 1) else names
        got = f"shape {names.shape}"
    except ValueError:
        names, got = np.empty(0), "sequences of several lengths"
    if names.shape != (n_rows,):
        raise ValueError(
            f"groups must contain one number or string per row, shape ({n_rows},); got {got}. Join several values of a "
            "row to one string, such as '3-7'."
        )
    n_missing = sum(map(is_missing, names.tolist()))
    if n_missing:
        raise ValueError(
            f"groups must not contain missing values, but {n_missing:,} of {n_rows:,} rows have one. Assign a group to "
            "these rows, or remove them."
        )
    try:
        return np.unique(names, return_inverse=True)[1]
    except TypeError:
        raise TypeError("groups must contain only numbers or only strings. Convert them to one type.") from None


def _row_numbers(pair: Iterable[Any], n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    try:
        train, held_out = (np.arange(n_rows)[rows if np.size(rows) else []] for rows in map(unmasked, pair))
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"cv must yield pairs of row numbers, or of masks for the {n_rows} rows: {error}") from error
    if train.ndim != 1 or held_out.ndim != 1 or not (train.size and held_out.size):
        raise ValueError("cv must contain at least one training row and one validation row.")
    is_known, is_out = np.zeros((2, n_rows), bool)
    is_known[train], is_out[held_out] = True, True
    n_both = np.count_nonzero(is_known & is_out)
    if n_both:
        raise ValueError(f"Training and validation rows of cv must not overlap, but {n_both:,} rows are in both.")
    return train, held_out


def _random_part(
    estimator: BaseEstimator, y: np.ndarray, groups: np.ndarray | None, share: float
) -> "BaseShuffleSplit":
    """Return a splitter with one random validation set.

    It contains whole groups, or at least two rows. These are stratified by class if each class has two rows, and enough
    rows are left for training.
    """
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

    share = check_share(estimator.get_params(deep=False).get("validation_fraction", share), "validation_fraction")
    seed = estimator.random_state
    if groups is not None:
        if groups.max() == 0:
            raise ValueError("groups must contain at least 2 groups, got 1. Pass more groups, or omit groups.")
        return GroupShuffleSplit(n_splits=1, test_size=share, random_state=seed)
    has_classes = is_classifier(estimator) and y.ndim == 1
    n_classes = np.unique(y).size if has_classes else 2
    size = min(max(2, n_classes, round(share * len(y))), len(y) - 1)
    if has_classes and len(y) - size >= n_classes and np.unique(y, return_counts=True)[1].min() >= 2:
        return StratifiedShuffleSplit(n_splits=1, test_size=size, random_state=seed)
    return ShuffleSplit(n_splits=1, test_size=size, random_state=seed)


def scorer_of(estimator: BaseEstimator) -> Callable[..., float]:
    """Return the scorer for `scoring`; accuracy or R^2 for None. ValueError if `scoring` is invalid."""
    from sklearn.metrics import check_scoring

    scoring = estimator.scoring
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be a name, a callable or None, got {scoring!r}.")
    default = "accuracy" if is_classifier(estimator) else "r2"
    return check_scoring(estimator, scoring=default if scoring is None else scoring)


def is_significantly_less(losses: np.ndarray, others: np.ndarray, n_deviations: float = 1.0) -> bool:
    """Return True if mean losses are lower than others on the same rows by this number of paired standard errors."""
    gain = others - losses
    return bool(gain.mean() > n_deviations * gain.std() / np.sqrt(gain.size))


def sums_by_group(losses: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Sum losses over the rows of each group; return the losses without groups."""
    return losses if groups is None else np.bincount(np.unique(groups, return_inverse=True)[1], losses)


def n_independent(rows: np.ndarray, groups: np.ndarray | None) -> int:
    """Return the number of rows, or of their groups, because rows of a group have similar errors."""
    return len(rows) if groups is None else np.unique(groups[rows]).size


def of_random_groups(
    rows: np.ndarray, groups: np.ndarray, share: float, rng: np.random.Generator, least: int = 2
) -> np.ndarray:
    """Return the rows in a random share of their groups, but in at least `least` groups if there are more."""
    every = rng.permutation(np.unique(groups[rows]))
    return rows[np.isin(groups[rows], every[: max(least, int(share * every.size))])]


def seen_and_unseen(
    rows: np.ndarray, n_unseen: int, groups: np.ndarray | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Split rows into rows for the steps of a search and rows for its validation, of other groups if there are more."""
    if groups is None or np.ptp(groups[rows]) == 0:
        places = evenly_spaced(len(rows), n_unseen)
        return np.delete(rows, places), rows[places]
    seen = of_random_groups(rows, groups, 1 - n_unseen / len(rows), rng, least=1)
    return seen, thinned(rows[~np.isin(rows, seen)], n_unseen)


def of_mean_one(weights: np.ndarray | None) -> np.ndarray | float:
    """Return weights (n_rows, 1) as (n_rows,), divided by their mean; 1 for None."""
    return 1.0 if weights is None else weights.ravel() / weights.mean()


def sorted_residuals(residuals: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Sort the columns of residuals (n_rows, n_targets) so that their ranks count rows as often as their weights.

    With weights (n_rows,), the result has quantiles at ranks from 1 to n_rows. A rank that is conformal among n rows,
    ``level (n + 1)``, becomes conformal among the effective number of rows, ``sum(v)^2 / sum(v^2)`` (Kish 1965). For
    equal weights, the result is the sorted residuals.
    """
    if weights is None:
        return np.sort(residuals, axis=0)
    n_rows, n_effective = len(residuals), weights.sum() ** 2 / (weights**2).sum()
    levels = 0.5 + (np.arange(1, n_rows + 1) / (n_rows + 1) - 0.5) * (1 + 1 / n_effective)
    levels = np.clip(levels, 0.5 / n_rows, 1 - 0.5 / n_rows)
    order = np.argsort(residuals, axis=0, kind="stable")
    totals = np.cumsum(weights[order], axis=0)
    ranks = np.column_stack([np.searchsorted(own, levels * own[-1]) for own in totals.T])
    return np.take_along_axis(residuals, np.take_along_axis(order, ranks, axis=0), axis=0)


def squared_errors(Y: np.ndarray, weights: np.ndarray | None) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of predictions: the weighted mean squared error of each validation row."""
    own = of_mean_one(weights)
    return lambda predictions: own * ((predictions - Y) ** 2).mean(axis=1)


def scored_losses(
    scorer: Callable[..., float], classifies: bool, X: np.ndarray, y: np.ndarray, targets: Any
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of predictions for rows X: their negative score, as an array of one number.

    `targets` converts predictions of targets to predictions of y, and contains the classes. ValueError if the score is
    NaN.
    """

    def loss(predictions: np.ndarray) -> np.ndarray:
        model = (_HeldOutClassifier if classifies else _HeldOutRegressor)(targets).fit(predictions, y)
        score = float(scorer(model, X, y))
        if np.isnan(score):
            raise ValueError(
                f"scoring returned NaN for {len(y):,} validation rows, for example because it requires several "
                "classes or rows. Pass another scoring or cv."
            )
        return np.array([-score])

    return loss


class _HeldOut(BaseEstimator):
    """A stand-in estimator for the scorer, with known predictions for the validation rows."""

    def __init__(self, targets: Any = None) -> None:
        self.targets, self.n_features_in_ = targets, None

    def fit(self, predictions: np.ndarray, y: np.ndarray) -> Self:
        self.predictions_ = predictions
        return self

    def predict(self, X: object) -> np.ndarray:
        return self.targets.decode(self.predictions_)


class _HeldOutRegressor(RegressorMixin, _HeldOut):
    """Stand-in for regression scores."""


class _HeldOutClassifier(ClassifierMixin, _HeldOut):
    """Stand-in for classification scores, with calibrated predictions."""

    def fit(self, predictions: np.ndarray, y: np.ndarray) -> Self:
        self.targets = self.targets.calibrated(predictions, y, None)
        return super().fit(predictions, y)

    @property
    def classes_(self) -> np.ndarray | list[np.ndarray]:
        return self.targets.classes

    def decision_function(self, X: object) -> np.ndarray | list[np.ndarray]:
        return self.targets.decision(self.predictions_)

    def predict_proba(self, X: object) -> np.ndarray | list[np.ndarray]:
        return self.targets.probabilities(self.predictions_)
