"""`CGRidge` and `CGRidgeClassifier` on Dask collections."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeAlias, cast

import dask.array as da
import numpy as np
from dask import delayed
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, is_classifier

from binfeat._common.array_types import ArrayLike
from binfeat._common.availability import unavailable_if
from binfeat._common.fit_rollback import fit_method
from binfeat._common.labels import check_labels, one_against_rest, unite_classes, weights_of_classes
from binfeat._common.validation import check_flag, checked_targets, require_y
from binfeat._rows.products import Design
from binfeat._rows.rows import Part
from binfeat.distributed._chunks import (
    compute,
    inputs_of,
    is_chunked,
    on_worker,
    persist,
    releasing_data,
    values_beside,
    weights_of_chunk,
)
from binfeat.distributed._rows import DaskRows
from binfeat.distributed._scorer import DaskScorer
from binfeat.distributed._table import Facts, places_of_rows, require_targets
from binfeat.linear import classifier, regressor
from binfeat.linear.alpha_choice import check_alpha, check_alphas
from binfeat.linear.classifier import lacks_probabilities
from binfeat.linear.design import check_design
from binfeat.linear.estimator import CGRidgeBase, holds_rows_out, is_set

# A function that encodes the targets of a part; their number; True if y is one-dimensional.
Encoder: TypeAlias = tuple[Callable[[Part], Part], int, bool]


class _OnDask(DaskScorer, CGRidgeBase):
    traffic_: np.ndarray
    _needs = "coef_"
    _encoder: Callable[[Sequence[Facts]], Encoder]

    @fit_method
    def fit(  # type: ignore[override]
        self, X: Design, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or dataframe, BinBlocks, or X of the class in `binfeat`, of shape (n_rows, n_features)
            Chunks of arrays may be dense or CSR.
        y : Dask array, series or dataframe, or array-like, of shape (n_rows,) or, of numbers, (n_rows, n_targets)
            If its chunks differ from the chunks of X and lengths are unknown, rows are counted first, with one more
            pass over X.
        sample_weight : float, Dask array or series, or array-like of shape (n_rows,), default=None
            Non-negative weights, not all zero.
        groups : Dask array or series, or array-like of shape (n_rows,), default=None
            Group of each row. All rows of a group are in the same split. A Dask collection is fetched to this process.

        Returns
        -------
        self : CGRidge or CGRidgeClassifier

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range or a chunk is invalid; the error names the chunk.
        RuntimeError
            If X belongs to a closed client.
        """
        if not is_chunked(X):
            return self._in_memory.fit(self, X, y, sample_weight, groups)
        self._check_parameters()
        groups = compute([groups])[0] if is_chunked(groups) else groups
        with releasing_data():
            rows, y, weights, flat = self._rows_of(X, y, sample_weight)
            try:
                self._fit_linear(X, rows, y, groups, weights, flat)
            finally:
                self.traffic_ = np.array(rows.traffic, dtype=np.int64).reshape(-1, 2)
        return self

    @unavailable_if(holds_rows_out)
    def partial_fit(self, X: Design, y: ArrayLike | None = None, *arguments: Any, **options: Any) -> Self:
        """Add rows in memory to the rows of all earlier calls and fit to all of them, as in `binfeat`."""
        if is_chunked(X):
            raise TypeError(
                "partial_fit requires rows in memory, got a Dask collection. Pass X.compute(), or call fit."
            )
        return self._in_memory.partial_fit(self, X, y, *arguments, **options)

    def _check_parameters(self) -> None:
        """Raise an error for parameters that are out of range, or that require rows in memory."""
        self._options()
        if self.alphas is None:
            check_alpha(self.alpha, np.size(self.alpha))
        else:
            check_alphas(self.alphas)
        if self.loss == "squared_hinge":
            raise ValueError("loss must be 'squared_error' for a Dask collection, got 'squared_hinge'.")
        for name, neutral in (("n_posterior_samples", None), ("probability", False)):
            if is_set(value := getattr(self, name)):
                raise ValueError(
                    f"{name}={value!r} needs rows in memory or a source of blocks; set it to {neutral} on Dask."
                )

    def _rows_of(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[DaskRows, np.ndarray | None, np.ndarray | None, bool]:
        """Return rows on workers; y and weights if there is a validation set; and True if y is one-dimensional."""
        require_y(type(self).__name__, y)
        held_out = self.early_stopping or self.alphas is not None
        chunks = inputs_of(self, X, reset=True)
        own = values_beside(chunks, y, sample_weight)
        parts = persist(chunks.each(_part, on_worker(self, self._in_memory), chunks.dtype, own=own))
        facts = compute([delayed(_facts)(part, is_classifier(self)) for part in parts])
        filled = places_of_rows(facts)
        parts, facts = [parts[place] for place in filled], [facts[place] for place in filled]
        require_targets(facts)
        encode, n_targets, flat = self._encoder(facts)
        y = np.concatenate(compute([part.Y for part in parts])) if held_out else None
        has_weights = held_out and sample_weight is not None
        weights = np.concatenate(compute([part.weights for part in parts])) if has_weights else None
        parts = persist([delayed(encode)(part) for part in parts])
        lengths = [fact.n_rows for fact in facts]
        return DaskRows(parts, lengths, chunks.width, n_targets, chunks.dtype, facts[0].kind), y, weights, flat


class CGRidge(_OnDask, regressor.CGRidge):
    """`binfeat.CGRidge` on the features of the rows of a Dask array or dataframe.

    For the same features and targets, coefficients equal the coefficients of `binfeat.CGRidge` up to the solver's
    tolerance, for any chunks. A fitted model accepts Dask collections and rows in memory; predictions for Dask
    collections are Dask arrays. Parameters and all other attributes are described in `binfeat.CGRidge`.

    Attributes
    ----------
    traffic_ : ndarray of shape (n_products, 2), int64
        Bytes of coefficients sent and of sums received, for each product with the normal equations (one per
        iteration). For the Gram matrix, a single row with the total.

    See Also
    --------
    binfeat.CGRidge : Parameters, attributes, and the model for rows in memory.

    Notes
    -----
    Features, targets and weights stay on the workers. An iteration sends the search direction to each worker, one
    number per column and target, and receives a sum of the same size. `traffic_` contains these bytes. Use a few large
    chunks per worker. If a worker is lost, Dask recomputes its results and the fit continues, provided that the
    collection can be computed again from its source. `alphas` and `early_stopping` use the same validation set as in
    memory. They fetch y to this process, and predictions of the validation set for each score.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.pipeline import make_pipeline
    >>> from binfeat.distributed import CGRidge, RandomBinning
    >>> X = da.random.default_rng(0).uniform(-3, 3, size=(2000, 1), chunks=(500, 1))
    >>> binning = RandomBinning(gamma=1.0, n_grids=200, output="codes", random_state=0)
    >>> model = make_pipeline(binning, CGRidge(alpha=0.1)).fit(X, da.sin(X[:, 0]))
    >>> model.predict([[-1.5], [1.5]]).round(1)
    array([-1.,  1.])
    """

    __module__ = "binfeat.distributed"  # as saved files name it

    _in_memory = regressor.CGRidge
    _of_some_fits = (*_in_memory._of_some_fits, "traffic_")

    def _encoder(self, facts: Sequence[Facts]) -> Encoder:
        """Return a function that encodes the targets of a part, their number, and True if y is one-dimensional."""
        return _numbers, (*facts[0].y_shape, 1)[0], not facts[0].y_shape

    def predict(self, X: Design, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray] | da.Array:  # type: ignore[override]
        """Predict targets, as `binfeat.CGRidge` does; for a Dask collection, a lazy Dask array."""
        if not is_chunked(X):
            return super().predict(X, return_std)
        if check_flag(return_std, "return_std"):
            raise ValueError("return_std=True needs X in memory; got a Dask collection.")
        return self._by_chunk("predict", X, lambda: (self.coef_.shape[:-1], np.float64))


class CGRidgeClassifier(_OnDask, classifier.CGRidgeClassifier):
    """`binfeat.CGRidgeClassifier` on the features of the rows of a Dask array or dataframe.

    For the same features and labels, coefficients equal the coefficients of `binfeat.CGRidgeClassifier` up to the
    solver's tolerance; the Notes of `binfeat.distributed.CGRidge` also apply here. ``loss="squared_hinge"`` requires
    rows in memory. Parameters and all other attributes are described in `binfeat.CGRidgeClassifier`.

    Attributes
    ----------
    traffic_ : ndarray of shape (n_products, 2), int64
        As in `binfeat.distributed.CGRidge`.

    See Also
    --------
    binfeat.CGRidgeClassifier : Parameters, attributes, and the model for rows in memory.
    """

    __module__ = "binfeat.distributed"  # as saved files name it

    _in_memory = classifier.CGRidgeClassifier
    _of_some_fits = (*_in_memory._of_some_fits, "traffic_")

    def _encoder(self, facts: Sequence[Facts]) -> Encoder:
        self.multilabel_ = False
        self.classes_, totals = unite_classes([(fact.classes, fact.totals) for fact in facts])
        of_class = weights_of_classes(self.class_weight, self.classes_, totals)
        encode = partial(_signs, classes=self.classes_, of_class=of_class)
        return encode, 1 if totals.size == 2 else totals.size, False

    def decision_function(self, X: Design) -> np.ndarray | da.Array:  # type: ignore[override]
        """Return scores, as in `binfeat.CGRidgeClassifier`; for a Dask collection, a lazy Dask array."""
        return self._by_chunk(
            "decision_function", X, lambda: (() if len(self.coef_) == 1 else (len(self.coef_),), np.float64)
        )

    def predict(self, X: Design) -> np.ndarray | da.Array:  # type: ignore[override]
        """Predict labels, as in `binfeat.CGRidgeClassifier`; for a Dask collection, a lazy Dask array."""
        return self._by_chunk(
            "predict", X, lambda: (self.classes_.shape if self.multilabel_ else (), self.classes_.dtype)
        )

    @unavailable_if(lacks_probabilities)
    def predict_proba(self, X: Design) -> np.ndarray | da.Array:  # type: ignore[override]
        """Return class probabilities, as in `binfeat.CGRidgeClassifier`; for a Dask collection, a lazy Dask array."""
        return self._by_chunk("predict_proba", X, lambda: (self.classes_.shape, np.float64), "calibration_coef_")


def _part(Z: Any, y: Any, weights: Any, twin: BaseEstimator, dtype: np.dtype) -> Part:
    n_rows = Z.shape[0]
    weights = weights_of_chunk(weights, y, n_rows)
    if n_rows == 0:
        return Part(None, np.empty(0), weights)
    Z = check_design(twin, Z)
    Z = Z if isinstance(Z, LinearOperator) else Z.astype(dtype, copy=False)
    y = check_labels(y) if is_classifier(twin) else checked_targets(y)
    return Part(Z, y, weights, n_jobs=1)


def _facts(part: Part, has_classes: bool) -> Facts:
    return Facts.of(part.Y, cast(np.ndarray, part.weights), isinstance(part.Z, np.ndarray), has_classes)


def _numbers(part: Part) -> Part:
    return replace(part, Y=part.Y.reshape(len(part.Y), -1))


def _signs(part: Part, classes: np.ndarray, of_class: np.ndarray) -> Part:
    """Return the part with one target per class, or one target for the second of two classes."""
    labels = np.searchsorted(classes, part.Y)
    weights = cast(np.ndarray, part.weights) * of_class[labels][:, None]
    return replace(part, Y=one_against_rest(labels, classes.size), weights=weights)
