"""`score` of estimators that accept a source of blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, is_classifier

from binfeat._common.array_types import ArrayLike
from binfeat._common.frames import typed_objects, unmasked
from binfeat._common.validation import require_y
from binfeat._rows.sources import Source, SourceSummary, Table, check_alone, is_source


class SourceScorer:
    """Mixin that replaces `score` of the scikit-learn mixin to its right."""

    predict: Callable[..., Any]

    def score(self, X: Table | Source, y: "ArrayLike | None" = None, sample_weight: "ArrayLike | None" = None) -> float:
        """Accuracy of a classifier, R^2 of a regressor.

        For several columns of labels, accuracy is the share of rows with all labels right.

        Parameters
        ----------
        X : table as in `predict`, or source of blocks of its rows
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            True labels or targets. None for a source, which contains them (and optionally weights), and for the
            features of its rows inside a pipeline.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        score : float

        Raises
        ------
        ValueError
            If y is missing, or is given in addition to a source.
        """
        name = f"{type(self).__name__}.score"
        if is_source(X):
            check_alone(y, sample_weight)
            predicted, summary = by_block(X, self.predict)
            return score_of(self, typed_objects(require_y(name, summary.y)), predicted, summary.sample_weight)
        if y is None and sample_weight is None and isinstance(X, LinearOperator):
            y, sample_weight = getattr(X, "y", None), getattr(X, "sample_weight", None)
        require_y(name, y)
        return score_of(self, typed_objects(unmasked(y)), self.predict(X), unmasked(sample_weight))


def by_block(source: Source, function: Callable[[Table], np.ndarray]) -> tuple[np.ndarray, SourceSummary]:
    """Apply a function to the rows of each block; return the joined results and the `SourceSummary` of the source."""
    summary = SourceSummary(source, lambda X, _: X, lambda X, *_: [function(X)])
    return np.concatenate(summary.sum), summary


def score_of(estimator: BaseEstimator, y: ArrayLike, predicted: np.ndarray, sample_weight: ArrayLike | None) -> float:
    from sklearn.metrics import accuracy_score, r2_score  # imported late because it is slow

    if not is_classifier(estimator):
        return r2_score(y, predicted, sample_weight=sample_weight)
    labels = np.asarray(y)
    if predicted.ndim == 2 and labels.shape == predicted.shape:  # scikit-learn supports only columns of 0 and 1
        y, predicted = np.ones(len(labels), dtype=bool), (labels == predicted).all(axis=1)
    return accuracy_score(y, predicted, sample_weight=sample_weight)
