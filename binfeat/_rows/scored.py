"""`score` of estimators whose rows may come from a source of blocks."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from binfeat._rows.sources import Survey, check_alone, is_source


class SourceScorer:
    """Mixin to the left of scikit-learn's, whose `score` it extends."""

    predict: Any

    def score(self, X, y=None, sample_weight=None):
        """Accuracy of a classifier, R^2 of a regressor.

        Parameters
        ----------
        X : table as in `predict`, or source of blocks of its rows
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            True labels or targets. None for a source, which has them, and maybe weights; and for the features of its
            rows that a map makes in a pipeline.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        score : float

        Raises
        ------
        ValueError
            If y is missing, or is given beside a source.
        """
        if is_source(X):
            return self._score_of_blocks(X, y, sample_weight)
        if y is None:
            y, sample_weight = getattr(X, "y", None), getattr(X, "sample_weight", None)
        if y is None:
            raise ValueError(f"{type(self).__name__}.score requires y to be passed, but the target y is None")
        return super().score(X, y, sample_weight)  # type: ignore[misc]

    def _score_of_blocks(self, source, y, sample_weight):
        from sklearn.metrics import accuracy_score, r2_score  # late: slow to import

        check_alone(y, sample_weight)
        survey = Survey(source, lambda X, _: X, lambda X: [self.predict(X)])
        metric = accuracy_score if is_classifier(self) else r2_score
        return metric(survey.y, np.concatenate(survey.sum), sample_weight=survey.sample_weight)
