"""Predictions and `score` of estimators with rows on workers."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import DTypeLike
from binfeat._common.frames import typed_objects, unmasked
from binfeat._common.validation import require_y
from binfeat._rows.scored import score_of
from binfeat.distributed._chunks import compute, inputs_of, is_chunked, on_worker, results_of

Kind: TypeAlias = tuple[tuple[int, ...], DTypeLike]  # shape and dtype of the result for a row


class DaskScorer:
    """Mixin to the left of the in-memory estimator `_in_memory`."""

    _in_memory: ClassVar[type[BaseEstimator]]
    _needs: ClassVar[str]  # attribute of a fitted model
    predict: Callable[..., Any]

    def _by_chunk(self, method: str, X: Any, kind: Callable[[], Kind], needs: str = "") -> Any:
        """Call a method of the fitted model for rows in memory, or for each chunk."""
        if not is_chunked(X):
            return getattr(self._in_memory, method)(self, X)
        check_is_fitted(self, needs or self._needs)
        return results_of(inputs_of(self, X, reset=False), on_worker(self, self._in_memory), method, *kind())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of predicted numbers, or accuracy of predicted labels.

        For several columns of labels, accuracy is the share of rows with all labels right.

        Parameters
        ----------
        X : as in `predict`, or a source of blocks of its rows
        y : Dask array, series or dataframe, or array-like, of shape (n_rows,) or (n_rows, n_targets)
            Targets or labels. They and the predictions are fetched to this process. None is accepted only for a source
            of blocks.
        sample_weight : Dask array or series, or array-like of shape (n_rows,), default=None

        Returns
        -------
        score : float
        """
        if not is_chunked(X):
            return self._in_memory.score(self, X, y, sample_weight)
        require_y(f"{type(self).__name__}.score", y)
        predicted, y, sample_weight = (compute([values])[0] for values in (self.predict(X), y, sample_weight))
        return float(score_of(self, typed_objects(unmasked(y)), predicted, unmasked(sample_weight)))
