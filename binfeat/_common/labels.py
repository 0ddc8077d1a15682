"""Labels as targets of one class against the rest, and back; class weights."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from scipy.special import expit, logsumexp, softmax
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from binfeat._common.array_types import ArrayLike
from binfeat._common.arrays import quotients
from binfeat._common.calibration import Calibration
from binfeat._common.frames import plain_type, typed_objects
from binfeat._common.random_words import round_significant
from binfeat._common.validation import check_weights, checked_array, is_word

_SIGNIFICANT = 32  # bits of the weight of a class, so that it does not depend on the order of summation


@dataclass(frozen=True, eq=False)
class Labels:
    """One label per row as targets: 1 for its class, -1 for the others; two classes share one target."""

    classes: np.ndarray
    calibration: Calibration | None = None  # None: scores are log-odds

    is_multilabel: ClassVar[bool] = False

    @property
    def n_targets(self) -> int:
        return 1 if self.classes.size == 2 else self.classes.size

    @property
    def n_exclusive(self) -> int:
        """Number of mutually exclusive classes."""
        return self.classes.size

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Return the targets (n_rows, n_targets)."""
        return one_against_rest(np.searchsorted(self.classes, y), self.classes.size)

    def decode(self, scores: np.ndarray) -> np.ndarray:
        return self.classes[self._odds(scores).argmax(axis=1)]

    def decision(self, scores: np.ndarray) -> np.ndarray:
        """Return log-odds of each class minus their mean, (n_rows, n_classes), or of the second of two, (n_rows,)."""
        odds = self._odds(scores)
        return odds[:, 1] - odds[:, 0] if odds.shape[1] == 2 else odds - odds.mean(axis=1, keepdims=True)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, (n_rows, n_classes)."""
        odds = self.decision(scores)
        return np.column_stack([expit(-odds), expit(odds)]) if odds.ndim == 1 else softmax(odds, axis=1)

    def calibrated(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None, has_matrix: bool = True
    ) -> "Labels":
        """Return a copy with a calibration fitted to validation scores."""
        labels = np.searchsorted(self.classes, y)
        return replace(self, calibration=Calibration.fitted(_by_class(scores), labels, weights, has_matrix))

    def log_losses(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the negative log-probability of each label, (n_rows,)."""
        odds = self._odds(scores)
        return logsumexp(odds, axis=1) - odds[np.arange(len(y)), np.searchsorted(self.classes, y)]

    def _odds(self, scores: np.ndarray) -> np.ndarray:
        scores = _by_class(scores)
        return scores if self.calibration is None else self.calibration(scores)


class LabelSets(Labels):
    """Any number of labels per row, as an indicator matrix: each label is one target, 1 or -1."""

    is_multilabel = True
    n_exclusive = 2  # present or absent

    def encode(self, y: np.ndarray) -> np.ndarray:
        return np.where(y, 1.0, -1.0)

    def decode(self, scores: np.ndarray) -> np.ndarray:
        return (self.decision(scores) > 0).astype(int)

    def decision(self, scores: np.ndarray) -> np.ndarray:
        return super().decision(scores.reshape(-1, 1)).reshape(scores.shape)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        return expit(self.decision(scores))

    def calibrated(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None, has_matrix: bool = True
    ) -> Labels:
        """Return a copy with one calibration for all labels."""
        weights = None if weights is None else np.repeat(weights, y.shape[1], axis=0)
        labels = y.ravel().astype(int)
        return replace(
            self, calibration=Calibration.fitted(_by_class(scores.reshape(-1, 1)), labels, weights, has_matrix)
        )


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Several columns of labels; each column has its own classes, targets and calibration."""

    columns: tuple[Labels, ...]

    is_multilabel: ClassVar[bool] = False

    @classmethod
    def of(cls, y: np.ndarray) -> "LabelColumns":
        return cls(tuple(Labels(np.unique(own)) for own in columns_of(y)))

    @property
    def classes(self) -> list[np.ndarray]:
        return [own.classes for own in self.columns]

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Return the concatenated targets of all columns."""
        return np.hstack([own.encode(column) for own, column in zip(self.columns, columns_of(y), strict=True)])

    def decode(self, scores: np.ndarray) -> np.ndarray:
        """Return labels (n_rows, n_columns), as objects if their types differ."""
        labels = [own.decode(part) for own, part in self._with(scores)]
        alike = len({column.dtype.kind for column in labels}) == 1
        return np.column_stack(labels if alike else [column.astype(object) for column in labels])

    def decision(self, scores: np.ndarray) -> list[np.ndarray]:
        return [own.decision(part) for own, part in self._with(scores)]

    def probabilities(self, scores: np.ndarray) -> list[np.ndarray]:
        return [own.probabilities(part) for own, part in self._with(scores)]

    def calibrated(
        self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None, has_matrix: bool = True
    ) -> "LabelColumns":
        parts = zip(self._with(scores), columns_of(y), strict=True)
        return LabelColumns(tuple(own.calibrated(part, column, weights, has_matrix) for (own, part), column in parts))

    @property
    def places(self) -> list[slice]:
        """Return the slice of targets of each column."""
        bounds = np.cumsum([0, *(own.n_targets for own in self.columns)])
        return [slice(begin, end) for begin, end in itertools.pairwise(bounds)]

    def _with(self, scores: np.ndarray) -> list[tuple[Labels, np.ndarray]]:
        """Return the labels of each column with the scores of their targets."""
        return [(own, scores[:, place]) for own, place in zip(self.columns, self.places, strict=True)]


AnyLabels = Labels | LabelColumns
ClassWeight: TypeAlias = Mapping | str | None


def columns_of(y: np.ndarray) -> list[np.ndarray]:
    """Return columns of labels, each with one dtype, even for an array of objects."""
    return [np.array(own.tolist()) if own.dtype == object else own for own in y.T]


def _by_class(scores: np.ndarray) -> np.ndarray:
    """Return scores (n_rows, n_classes) of two classes, given the score of the second."""
    columns = scores.reshape(len(scores), -1)
    return np.hstack([-columns, columns]) if columns.shape[1] == 1 else columns


def labels_in(y: np.ndarray) -> AnyLabels:
    """Return the label encoder for checked labels of one or several columns, or for an indicator matrix."""
    if y.ndim == 1:
        return Labels(np.unique(y))
    return LabelSets(np.arange(y.shape[1])) if is_indicator(y) else LabelColumns.of(y)


def is_indicator(y: np.ndarray) -> bool:
    """Return True if a two-dimensional array is an indicator matrix of 0 and 1."""
    return y.dtype.kind in "biuf" and bool(np.isin(y, (0, 1)).all())


def labels_of_model(model: BaseEstimator) -> Labels:
    """Return the label encoder of a fitted model with one column of labels, and its calibration if it has one."""
    has_calibration = hasattr(model, "calibration_coef_")
    calibration = Calibration(model.calibration_coef_, model.calibration_intercept_) if has_calibration else None
    return (LabelSets if model.multilabel_ else Labels)(model.classes_, calibration)


def all_labels(y: np.ndarray, classes: ArrayLike | None, known: Labels | None) -> Labels:
    """Return the labels of one of several calls, with the classes of the first call or the `known` ones.

    ValueError if `classes` is missing in the first call or differs later, or y has other labels.
    """
    given: Labels | None = None
    if y.ndim == 2:
        given = cast(Labels, labels_in(y))  # an indicator matrix
    elif classes is not None:
        given = Labels(np.unique(check_labels(classes)))
        require_two(given.classes)
    labels = given if known is None else known
    if labels is None:
        raise ValueError("classes must be passed on the first call to partial_fit, with all labels that can occur.")
    same_kind = labels.is_multilabel == (y.ndim == 2)
    if not same_kind or (given is not None and not np.array_equal(given.classes, labels.classes)):
        raise ValueError(f"classes must be the same as in the first call to partial_fit, {labels.classes.tolist()}.")
    unknown = [] if labels.is_multilabel else np.setdiff1d(y, labels.classes).tolist()
    if unknown:
        raise ValueError(
            f"y contains labels that are not in classes: {unknown[:3]}. Classes: {labels.classes.tolist()}."
        )
    return labels


def label_array(y: Any) -> np.ndarray:
    """Return labels of one or several columns as an array with NumPy's dtype."""
    if getattr(y, "ndim", 0) == 2 and hasattr(y, "dtypes") and hasattr(y, "items"):  # a pandas frame
        plain = {name: kind for name, column in y.items() if (kind := plain_type(column)) is not None}
        y = y.astype(plain) if plain else y
    return typed_objects(checked_array(y, dtype=None, ensure_2d=False, input_name="y"))


def check_labels_or_sets(y: Any) -> np.ndarray:
    """Check labels as `check_labels`, or return an indicator matrix (n_rows, n_labels) unchanged."""
    array = label_array(y)
    if array.ndim == 1 or array.shape[1] == 1:
        return check_labels(array)
    if not is_indicator(array):
        raise ValueError(
            "y must contain one label per row, or be an indicator matrix of 0 and 1 with one column per label; "
            f"got shape {array.shape} and dtype {array.dtype}."
        )
    return array


def check_label_columns(y: Any) -> np.ndarray:
    """Check labels as `check_labels_or_sets`, or labels of several columns."""
    array = label_array(y)
    if array.ndim == 1 or array.shape[1] == 1 or is_indicator(array):
        return check_labels_or_sets(array)
    for own, column in zip(array.T.tolist(), columns_of(array), strict=True):
        if check_labels(column).dtype.kind == "U" and not all(isinstance(label, str) for label in own):
            raise TypeError(_fault_of_types(own))
    return array


def check_labels(y: Any) -> np.ndarray:
    """Return labels as a one-dimensional array with any number of classes.

    ValueError if they are not labels; TypeError if they are not all numbers or all strings.
    """
    y = column_or_1d(label_array(y), warn=True)
    if y.dtype.kind in "mM":
        raise TypeError(f"y must have labels that are numbers or strings, got {y.dtype}. Convert y to strings.")
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        if isinstance(error, TypeError) or "Unknown label type: unknown" in str(error):
            raise TypeError(_fault_of_types(y.tolist())) from error
        raise
    return y


def _fault_of_types(labels: list[Any]) -> str:
    """Describe labels that are neither all numbers nor all strings."""
    other = next((label for label in labels if not isinstance(label, str | Real | None)), None)
    if other is not None:
        remedy = "Decode y." if isinstance(other, bytes) else "Convert y to strings."
        return f"y must have labels that are numbers or strings, got {other!r}. {remedy}"
    types = " and ".join(sorted({type(label).__name__ for label in labels}))
    return (
        f"y must have labels of one kind, all numbers or all strings, got objects of type {types}. Convert y to an "
        "array of numbers or of strings."
    )


def require_two(classes: np.ndarray) -> None:
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {np.asarray(classes).tolist()[0]!r}.")


def one_against_rest(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Return targets of numbered labels: 1 for a class, -1 for others; one target (the second) for two classes."""
    return np.where(labels[:, None] == ([1] if n_classes == 2 else np.arange(n_classes)), 1.0, -1.0)


def class_weights(
    class_weight: ClassWeight, y: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the class weight of each row, or None; "balanced" uses the sample weights (n_rows, 1), if any.

    ValueError if `class_weight` is not a dict, "balanced" or None, or a weight is negative or not finite.
    """
    if class_weight is None:
        return None
    if not isinstance(class_weight, dict) and not is_word(class_weight, "balanced"):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}.")
    classes, places = np.unique(y, return_inverse=True)
    if isinstance(class_weight, dict):
        weights = _given_weights(class_weight, classes.tolist())[places]
    else:
        totals = np.bincount(places, None if sample_weight is None else sample_weight[:, 0])
        weights = weights_of_classes(class_weight, classes, totals)[places]
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(f"class_weight must be finite, non-negative and not all 0, got {class_weight!r}.")
    return weights


def _given_weights(class_weight: dict, classes: list[Any]) -> np.ndarray:
    """Return the weight of each class, 1 for classes without an entry; ValueError if there are also wrong entries."""
    known = set(classes)
    missing = [label for label in classes if label not in class_weight]
    wrong = [label for label in class_weight if label not in known]
    if missing and wrong:
        raise ValueError(
            f"class_weight contains labels that are not classes: {wrong[:3]}. Classes without a weight: {missing[:3]}. "
            "Correct the labels."
        )
    return np.array([class_weight.get(label, 1.0) for label in classes], dtype=np.float64)


def unite_classes(counted: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Merge classes and counts (or weights) of the chunks of y.

    TypeError if only some chunks have numbers as labels; ValueError if there is only one class.
    """
    parts, counts_of_parts = zip(*counted, strict=True)
    if len({part.dtype.kind in "biuf" for part in parts}) > 1:  # NumPy would convert the numbers to strings
        raise TypeError(
            "y must have labels of one kind, all numbers or all strings, but some chunks have numbers and others have "
            "strings. Convert y to numbers or to strings."
        )
    classes, places = np.unique(np.concatenate(parts), return_inverse=True)
    require_two(classes)
    counts = np.concatenate(counts_of_parts)
    sums = np.zeros(classes.size, counts.dtype)
    np.add.at(sums, places, counts)
    return classes, sums


def weights_of_classes(class_weight: ClassWeight, classes: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the weight of each class, (n_classes,), given total weights of rows; ValueError as in `class_weights`."""
    if is_word(class_weight, "balanced"):
        totals = round_significant(totals.astype(np.float64), _SIGNIFICANT)
        return quotients(totals.sum(), np.count_nonzero(totals) * totals)
    weights = class_weights(class_weight, classes)
    return np.ones(totals.size) if weights is None else weights


def weights_of_known(
    sample_weight: ArrayLike | None, class_weight: ClassWeight, y: np.ndarray, classes: np.ndarray
) -> np.ndarray | None:
    """Return class weights for a part of the rows; ValueError if `class_weight` is "balanced"."""
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight must be a dict or None in partial_fit, because later rows are unknown; got {class_weight!r}."
        )
    if class_weight is None or y.ndim == 2:
        return weights_by_class(sample_weight, class_weight, y)
    of_class = cast(np.ndarray, class_weights(class_weight, classes))[np.searchsorted(classes, y)]
    weights = check_weights(sample_weight, len(y))
    return of_class[:, np.newaxis] if weights is None else weights * of_class[:, np.newaxis]


def weights_by_class(sample_weight: ArrayLike | None, class_weight: ClassWeight, y: np.ndarray) -> np.ndarray | None:
    """Return sample weights times class weights, of shape (n_rows, 1), or None; with the errors of both checks."""
    weights = check_weights(sample_weight, len(y))
    if y.ndim == 2 and class_weight is not None:
        raise ValueError("class_weight requires one label per row, but y has several. Pass sample_weight instead.")
    of_class = class_weights(class_weight, y, weights)
    if of_class is None:
        return weights
    return of_class[:, None] if weights is None else check_weights((weights * of_class[:, None]).ravel(), len(y))
