"""`CGRidgeClassifier`."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, Self, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.availability import unavailable_if
from binfeat._common.calibration import Calibration
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.labels import (
    Labels,
    all_labels,
    check_labels_or_sets,
    labels_in,
    labels_of_model,
    require_two,
    weights_by_class,
    weights_of_known,
)
from binfeat._common.validation import check_choice, check_flag, require_y
from binfeat._rows.products import Design, Features
from binfeat._rows.rows import ProcessRows
from binfeat._rows.scored import SourceScorer
from binfeat.linear.alpha_choice import Splitter, Validation, check_alpha
from binfeat.linear.estimator import CGRidgeBase, holds_rows_out
from binfeat.linear.incremental import check_next
from binfeat.linear.result import SolverOptions
from binfeat.linear.saved import check_ridge_classifier
from binfeat.linear.solve import solve_once


def lacks_probabilities(estimator: Any) -> str | None:
    """The reason `predict_proba` is unavailable, or None."""
    if estimator.probability:
        return None
    return "predict_proba requires calibrated scores: set probability=True and fit again, or use decision_function."


class CGRidgeClassifier(SourceScorer, ClassifierMixin, CGRidgeBase):
    """Ridge classification on random features, by preconditioned conjugate gradients.

    Each class is a target of `CGRidge`: 1 for the rows of the class and -1 for all other rows. `predict` returns the
    class with the largest score. Two classes share one target. Each label of an indicator matrix is a target.
    ``loss="squared_hinge"`` fits a linear support vector machine instead.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Ridge penalty, at least 0; an array contains one penalty per target. Increase it if the test error is much
        higher than the training error.
    alphas : array-like of shape (n_alphas,), default=None
        Candidate penalties, instead of `alpha`. The one with the best mean validation score is used to fit all rows.
    fit_intercept : bool, default=True
        If True, fit an intercept, which is not penalized. Sparse features stay sparse.
    tol : float, default=None
        None stops when four iterations have decreased the objective by at most 0.04 %: on 29 tables with four penalties
        each, test errors were then within 1 % of the converged errors. A number is a tolerance for the residual of the
        normal equations, relative to their right-hand side; 1e-6 gives nearly exact coefficients if alpha is not
        small. Their relative error is at most about `tol` times the largest eigenvalue of ``Z'Z`` divided by `alpha`.
        For small `alpha`, use 1e-10 and a larger `max_iter`.
    max_iter : int, default=200
        Maximum number of iterations.
    cv : int, splitter or iterable, default=None
        Cross-validation strategy for `alphas`, as in `sklearn.model_selection.check_cv`; `early_stopping` uses the
        first split. None uses one random validation set.
    validation_fraction : float, default=0.1
        Share of the rows in the random validation set.
    scoring : str or callable, default=None
        Validation score, as in `sklearn.metrics.get_scorer`. None is R^2 for numbers and accuracy for labels. Scores
        that accept weights use `sample_weight`; for all scores, rows of weight 0 are not in validation sets.
    early_stopping : bool, default=False
        If True, stop when the validation score has not improved for 5 iterations, and keep the coefficients with the
        best score. The validation set is not used to fit. Not with `alphas`.
    warm_start : bool, default=False
        If True, `fit` starts from the coefficients of the previous fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the random validation set.
    loss : {"squared_error", "squared_hinge"}, default="squared_error"
        Loss of a row with target y_i and score f_i: ``(y_i - f_i)^2``, or ``max(0, 1 - y_i f_i)^2``, which Newton's
        method minimizes in the primal, with ``tol=None`` as 1e-2.
    class_weight : dict or "balanced", default=None
        Class weights, which multiply the sample weights. "balanced" gives all classes the same total weight.
    probability : bool, default=False
        If True, `fit` also calibrates the scores on validation rows, and `predict_proba` is available. This needs one
        more solve for each split of `cv`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the type of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, in float64; 0 with ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; 0 to ``n_labels - 1`` for an indicator matrix.
    multilabel_ : bool
        True if y was an indicator matrix.
    solver_ : {"cg", "gram", "newton-cg"}
        The solver used: conjugate gradients, the Gram matrix of dense features, or Newton's method.
    alpha_ : float or ndarray of shape (n_targets,)
        The penalty used.
    alphas_ : ndarray of shape (n_alphas,)
        Penalties tried; only with `alphas`.
    path_scores_ : ndarray of shape (n_splits, n_alphas)
        Validation score of each penalty in each split; only with `alphas`.
    calibration_coef_ : ndarray of shape (2, n_classes, n_classes)
        Weights of the scores, and of their logarithms, in the log-odds of the classes; only with `probability`. For an
        indicator matrix n_classes is 2, the absence and presence of a label.
    calibration_intercept_ : ndarray of shape (n_classes,)
        Intercepts of the log-odds; only with `probability`.
    n_iter_ : int
        Number of iterations of the last solve, at least 1.
    status_ : {"converged", "max_iter", "breakdown", "early_stopped", "stopped", "interrupted"}
        Why the solver stopped: "converged" if it reached `tol`, "breakdown" if rounding errors prevented further
        progress, "stopped" by a callback.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names, when X has string column names.

    Warns
    -----
    ConvergenceWarning
        If the solver stopped before it reached `tol`; the coefficients are those of its last iteration.

    See Also
    --------
    CGRidge : The model for numbers; its Notes also apply here.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from binfeat import CGRidgeClassifier, RandomBinning
    >>> X, y = load_digits(return_X_y=True)
    >>> binning = RandomBinning(gamma=0.01, n_grids=100, output="codes", random_state=0)
    >>> model = make_pipeline(binning, CGRidgeClassifier(alpha=0.1)).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    _check_state = staticmethod(check_ridge_classifier)

    classes_: np.ndarray
    multilabel_: bool
    calibration_coef_: np.ndarray
    calibration_intercept_: np.ndarray

    _of_some_fits = (*CGRidgeBase._of_some_fits, "calibration_coef_", "calibration_intercept_")

    def __init__(
        self,
        alpha: float | ArrayLike = 1.0,
        *,
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int = 200,
        cv: int | Splitter | Iterable | None = None,
        validation_fraction: float = 0.1,
        scoring: str | Callable[..., float] | None = None,
        early_stopping: bool = False,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        loss: Literal["squared_error", "squared_hinge"] = "squared_error",
        class_weight: dict | Literal["balanced"] | None = None,
        probability: bool = False,
    ) -> None:
        self.alpha, self.alphas, self.fit_intercept, self.tol = alpha, alphas, fit_intercept, tol
        self.max_iter, self.cv, self.validation_fraction, self.scoring = max_iter, cv, validation_fraction, scoring
        self.early_stopping, self.warm_start, self.random_state = early_stopping, warm_start, random_state
        self.loss, self.class_weight, self.probability = loss, class_weight, probability

    @unavailable_if(holds_rows_out)
    @all_or_nothing
    def partial_fit(
        self,
        X: Design,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the rows of all earlier calls, and fit the model to all of them; see `CGRidge.partial_fit`.

        Parameters
        ----------
        X : ndarray, sparse matrix or BinMatrix of shape (n_rows, n_features)
            The same type in all calls, with the same bins: fit `RandomBinning` once, or set its `n_features`.
        y : array-like of shape (n_rows,), or indicator matrix of shape (n_rows, n_labels), default=None
            Labels of any of the classes. Required.
        classes : array-like of shape (n_classes,), default=None
            All possible labels. Required in the first call, except for an indicator matrix or after `fit`.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero. Coefficients are the same for a row of weight 2 and for two equal rows.

        Returns
        -------
        self : CGRidgeClassifier

        Raises
        ------
        TypeError, ValueError
            If X is not an array, sparse matrix or codes, or differs from earlier calls in type or bins; if labels are
            not in `classes`, or `classes` is missing in the first call; or as in `fit`.
        AttributeError
            If `alphas`, `early_stopping` or `probability` is set, because `partial_fit` has no validation set.

        Notes
        -----
        The squared hinge needs all rows. It does not store a Gram matrix, and `loss` cannot change to it once a Gram
        matrix is stored. A change of `class_weight` applies to new rows only.
        """
        self._options()
        Z, first = check_next(self, X)
        y = check_labels_or_sets(require_y(type(self).__name__, y))
        check_consistent_length(Z, y)
        begins = first and (classes is not None or np.ndim(y) == 2 or not hasattr(self, "classes_"))
        labels = all_labels(y, classes, None if begins else labels_of_model(self))
        self.classes_, self.multilabel_ = labels.classes, labels.is_multilabel
        weights = weights_of_known(sample_weight, self.class_weight, y, labels.classes)
        self._fit_more(ProcessRows(Z, labels.encode(y), weights))
        return self

    def decision_function(self, X: Design) -> np.ndarray:
        """Compute the scores of the classes: predictions of the targets, 1 for a class and -1 for all others.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes), float64
            For two classes one score, positive for ``classes_[1]``. For an indicator matrix a score for each label,
            positive if the row has it. With `probability`, calibrated log-odds.
        """
        scores = self._linear(X)
        if hasattr(self, "calibration_coef_"):
            scores = self._labels.decision(scores)
        return scores.ravel() if scores.ndim == 1 or scores.shape[1] == 1 else scores

    def predict(self, X: Design) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_labels)
            Class with the largest score, or the most probable class with `probability`. An indicator matrix if y of
            `fit` was one.
        """
        scores = self._linear(X)
        return self._labels.decode(scores)

    @unavailable_if(lacks_probabilities)
    def predict_proba(self, X: Design) -> np.ndarray:
        """Predict class probabilities, calibrated on validation scores.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)

        Returns
        -------
        p : ndarray of shape (n_rows, n_classes)
            For an indicator matrix, the probability of each label.

        Raises
        ------
        AttributeError
            If `probability` is False.
        NotFittedError
            If `fit` did not calibrate, because `probability` was False or a callback stopped it.
        """
        check_is_fitted(self, "calibration_coef_")
        return self._labels.probabilities(self._linear(X))

    @property
    def _labels(self) -> Labels:
        return labels_of_model(self)

    def _options(self) -> SolverOptions:
        check_choice(self.loss, "loss", ("squared_error", "squared_hinge"))
        if self.loss == "squared_hinge" and check_flag(self.early_stopping, "early_stopping"):
            raise ValueError("early_stopping=True requires loss='squared_error'; set early_stopping to False.")
        if check_flag(self.probability, "probability") and check_flag(self.early_stopping, "early_stopping"):
            raise ValueError("probability=True does not support early stopping; set early_stopping to False.")
        return super()._options()

    def _encode(self, Z: Features, y: Any, sample_weight: ArrayLike | None) -> tuple[np.ndarray, ProcessRows, bool]:
        y = check_labels_or_sets(require_y(type(self).__name__, y))
        check_consistent_length(Z, y)
        labels = cast(Labels, labels_in(y))  # y is one column, or an indicator matrix
        require_two(labels.classes)
        self.classes_, self.multilabel_ = labels.classes, labels.is_multilabel
        return y, ProcessRows(Z, labels.encode(y), weights_by_class(sample_weight, self.class_weight, y)), False

    def _fit_attributes(self, rows: ProcessRows, y: np.ndarray, validation: Validation, flat: bool) -> None:
        """Fit the calibration to validation scores, from solves on the training rows with the selected penalty."""
        if not self.probability:
            return
        options, alpha = self._options(), check_alpha(self.alpha_, rows.n_targets)
        scores, held_out = list[np.ndarray](), list[np.ndarray]()
        for train, others in validation.splits:
            result = solve_once(rows.take(train), alpha, options)
            scores.append(np.asarray(rows.take(others).design @ result.solution, np.float64) + result.intercept)
            held_out.append(others)
        places = np.concatenate(held_out)
        weights = None if rows.weights is None else rows.weights[places]
        self._calibrate(np.concatenate(scores), y[places], weights)

    def _calibrate(self, scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> None:
        """Fit the calibration to validation scores."""
        calibration = cast(Calibration, self._labels.calibrated(scores, y, weights).calibration)
        self.calibration_coef_, self.calibration_intercept_ = calibration.coef, calibration.intercept

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
