"""Labels as targets of one class against the rest, and back; class weights."""

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from binfeat._common.validation import check_weights, checked_array


def check_labels(y):
    """Labels as a one-dimensional array; there may be any number of classes.

    ValueError if they are not labels; TypeError if they cannot be sorted, such as strings together with None.
    """
    y = column_or_1d(checked_array(y, dtype=None, ensure_2d=False, input_name="y"), warn=True)
    try:
        check_classification_targets(y)
    except TypeError as error:
        raise TypeError("y must have labels of one kind, all numbers or all strings.") from error
    return y


def require_two(classes):
    """Refuse fewer than two classes with a ValueError."""
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {np.asarray(classes).tolist()[0]!r}.")


def one_against_rest(labels, n_classes):
    """Targets of numbered labels: 1 for a class, -1 for the others. For two classes, one target for the second."""
    return np.where(labels[:, None] == ([1] if n_classes == 2 else np.arange(n_classes)), 1.0, -1.0)


def labels_of(classes, scores):
    """The class of each row's largest score; a single score is for the second of two classes."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return classes[(scores.ravel() > 0).astype(int)]
    return classes[scores.argmax(axis=1)]


def class_weights(class_weight, y):
    """Weight of each row's class, or None.

    ValueError if `class_weight` is not a dict, "balanced" or None, or a weight is negative or not finite.
    """
    if class_weight is None:
        return None
    if not isinstance(class_weight, dict) and not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}.")
    weights = compute_sample_weight(class_weight, y)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(f"class_weight must be finite, non-negative and not all 0, got {class_weight!r}.")
    return weights


def weights_of_classes(class_weight, classes, counts):
    """Weight of each class, (n_classes,), where its rows are counted; ValueError as of `class_weights`."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return counts.sum() / (counts.size * counts)
    weights = class_weights(class_weight, classes)
    return np.ones(counts.size) if weights is None else weights


def weights_by_class(sample_weight, class_weight, y):
    """Sample weights times class weights, of shape (n_rows, 1), or None; errors as of the two functions for them."""
    weights = check_weights(sample_weight, len(y))
    of_class = class_weights(class_weight, y)
    if of_class is None:
        return weights
    return of_class[:, None] if weights is None else check_weights((weights * of_class[:, None]).ravel(), len(y))
