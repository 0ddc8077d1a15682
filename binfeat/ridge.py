"""Ridge machines by conjugate gradients: `CGRidge` and `CGRidgeClassifier`."""

from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_consistent_length

from binfeat._common.availability import unavailable_if
from binfeat._common.docstrings import filled
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.labels import (
    all_labels,
    check_labels_or_sets,
    labels_in,
    labels_of_machine,
    require_two,
    weights_by_class,
    weights_of_known,
)
from binfeat._common.validation import check_choice, check_flag, check_weights
from binfeat._linear.docs import TEXTS
from binfeat._linear.estimator import CGRidgeBase, holds_rows_out
from binfeat._linear.hinge import solve_hinge_path
from binfeat._rows.rows import LocalRows
from binfeat._rows.scored import SourceScorer

__all__ = ["CGRidge", "CGRidgeClassifier"]


@filled(TEXTS)
class CGRidge(SourceScorer, MultiOutputMixin, RegressorMixin, CGRidgeBase):
    """Ridge regression by preconditioned conjugate gradients, for sparse random features.

    Minimises ``sum_i v_i |y_i - w' z_i - b|^2 + alpha |w|^2`` over w and the intercept b, with sample weights v. The
    centred normal equations are solved in the primal, preconditioned by their diagonal. Each product with the
    features serves all targets at once.

    Parameters
    ----------
    $parameters
    n_posterior_samples : int, default=None
        Number of samples of the posterior of w and b that `fit` draws for standard deviations, 32 say; None draws none.
        They take as many times 4 bytes as there are features, and are solved for like further targets, 8 at a time. A
        machine of 32 samples knows a standard deviation to one part in eight. Where the Gram matrix is formed
        (`solver_`), standard deviations are exact, whatever the number, and take 4 bytes for each pair of features.
        Not for penalties that differ between targets, nor on Dask.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        w, in the type of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        b; 0 with ``fit_intercept=False``.
    noise_variance_ : float or ndarray of shape (n_targets,)
        Variance of y about ``w' z + b``, for a row of weight 1, by the residuals of the rows: their weighted squares by
        the number of rows less the trace of the hat matrix. Only with `n_posterior_samples`.
    solver_ : {"cg", "gram"}
        $solver
    $attributes

    $warns

    References
    ----------
    J. Wilson, V. Borovitskiy, A. Terenin, P. Mostowsky and M. Deisenroth, "Pathwise Conditioning of Gaussian
    Processes", JMLR 22, 2021 (samples of the posterior).

    See Also
    --------
    RandomBinning : Features to train on; ``output="codes"`` makes the solve faster than CSR.
    CGRidgeClassifier : The same machine for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import CGRidge, RandomBinning
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> y = np.sin(X[:, 0])
    >>> binning = RandomBinning(gamma=1.0, n_grids=200, random_state=0)
    >>> machine = CGRidge(alpha=0.1).fit(binning.fit_transform(X), y)
    >>> bool(machine.score(binning.transform(X), y) > 0.99)
    True
    """

    def __init__(
        self,
        alpha=1.0,
        *,
        alphas=None,
        fit_intercept=True,
        tol=1e-2,
        max_iter=200,
        cv=None,
        validation_fraction=0.1,
        scoring=None,
        early_stopping=False,
        warm_start=False,
        random_state=None,
        n_posterior_samples=None,
    ):
        self.alpha = alpha
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_posterior_samples = n_posterior_samples

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Fit the machine.

        Parameters
        ----------
        $X
            Or a source of blocks of its rows, see `binfeat.blocks`.
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            None uses the targets and weights stored with X: a source of blocks, or its features.
        $rest_of_fit
        """
        X, y, sample_weight = self._read(X, y, sample_weight)
        Z = self._check_design(X, reset=True)
        Y = self._check_numbers(y)
        check_consistent_length(Z, Y)
        weights = check_weights(sample_weight, Z.shape[0])
        rows = LocalRows(Z, Y.reshape(Y.shape[0], -1), weights)
        self._fit_linear(X, rows, Y, groups, flat=Y.ndim == 1)
        return self

    @unavailable_if(holds_rows_out)
    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """Fit the machine to these rows and those of all earlier calls.

        $partial_fit

        Parameters
        ----------
        $X_in_memory
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
        $rest_of_partial_fit
        """
        Z, first = self._check_next(X)
        Y = self._check_numbers(y)
        check_consistent_length(Z, Y)
        weights = check_weights(sample_weight, Z.shape[0])
        self._fit_more(Z, Y.reshape(Y.shape[0], -1), weights, first, flat=Y.ndim == 1)
        return self

    def predict(self, X, return_std=False):
        """Predict targets.

        Parameters
        ----------
        $X
        return_std : bool, default=False
            Whether to return the standard deviations of the predictions, too; `fit` needs `n_posterior_samples`.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
            $on_dask
        std : ndarray like y
            Only with ``return_std=True``: of ``w' z + b``, without noise, in the posterior for the prior
            ``w ~ N(0, s2 / alpha)`` with s2 = `noise_variance_`. Codes of a `RandomBinning` tell of bins that `fit` has
            not seen, whose w have their prior variance; in CSR these bins count for nothing.

        Raises
        ------
        ValueError
            If standard deviations are asked for, and `fit` drew no samples.
        """
        if check_flag(return_std, "return_std"):
            return self._linear(X), self._std(X)
        return self._linear(X)


@filled(TEXTS)
class CGRidgeClassifier(SourceScorer, ClassifierMixin, CGRidgeBase):
    """Ridge classification by preconditioned conjugate gradients, for sparse random features.

    Each class is a target of `CGRidge`, 1 for its rows and -1 for the others, and the class of the largest
    prediction is the answer; two classes share one target. Of an indicator matrix each label is a target of its own.
    With ``loss="squared_hinge"`` it is the L2 support vector machine in the primal.

    Parameters
    ----------
    $parameters
    loss : {"squared_error", "squared_hinge"}, default="squared_error"
        "squared_hinge" is the L2 support vector machine, ``sum_i v_i max(0, 1 - y_i f_i)^2 + alpha |w|^2``, solved
        by Newton's method on the same systems.
    class_weight : dict or "balanced", default=None
        Weights of the classes, which multiply the sample weights; "balanced" gives all classes the same total.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the type of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; 0 with ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; 0 to ``n_labels - 1`` for an indicator matrix.
    multilabel_ : bool
        Whether y was an indicator matrix.
    solver_ : {"cg", "gram", "newton-cg"}
        $solver
        For the squared hinge it is Newton's method with conjugate gradients.
    $attributes

    $warns

    See Also
    --------
    CGRidge : The same machine for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from binfeat import CGRidgeClassifier, RandomBinning
    >>> X, y = load_digits(return_X_y=True)
    >>> binning = RandomBinning(gamma=0.01, n_grids=100, output="codes", random_state=0)
    >>> machine = make_pipeline(binning, CGRidgeClassifier(alpha=0.1)).fit(X[:1000], y[:1000])
    >>> bool(machine.score(X[1000:], y[1000:]) > 0.9)
    True
    """

    def __init__(
        self,
        alpha=1.0,
        *,
        alphas=None,
        fit_intercept=True,
        tol=1e-2,
        max_iter=200,
        cv=None,
        validation_fraction=0.1,
        scoring=None,
        early_stopping=False,
        warm_start=False,
        random_state=None,
        loss="squared_error",
        class_weight=None,
    ):
        self.alpha = alpha
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.random_state = random_state
        self.loss = loss
        self.class_weight = class_weight

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Fit the machine.

        Parameters
        ----------
        $X
            Or a source of blocks of its rows, see `binfeat.blocks`.
        y : array-like of shape (n_rows,), or indicator matrix of shape (n_rows, n_labels), default=None
            Labels, numbers or strings, of at least two classes; or 0 and 1, which say which rows have which labels.
            None uses the targets and weights stored with X: a source of blocks, or its features.
        $rest_of_fit
        """
        check_choice(self.loss, "loss", ("squared_error", "squared_hinge"))
        if self.loss == "squared_hinge" and check_flag(self.early_stopping, "early_stopping"):
            raise ValueError("early_stopping=True stops a solve for loss='squared_error' only; set it to False.")
        X, y, sample_weight = self._read(X, y, sample_weight)
        Z = self._check_design(X, reset=True)
        y = check_labels_or_sets(self._require(y))
        check_consistent_length(Z, y)
        labels = labels_in(y)
        require_two(labels.classes)
        self.classes_, self.multilabel_ = labels.classes, labels.is_multilabel
        weights = weights_by_class(sample_weight, self.class_weight, y)
        self._fit_linear(X, LocalRows(Z, labels.encode(y), weights), y, groups)
        return self

    @unavailable_if(holds_rows_out)
    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Fit the machine to these rows and those of all earlier calls.

        $partial_fit

        Parameters
        ----------
        $X_in_memory
        y : array-like of shape (n_rows,), or indicator matrix of shape (n_rows, n_labels)
            Labels, of any of the classes.
        classes : array-like of shape (n_classes,), default=None
            All labels that will come. Needed in the first call, but for an indicator matrix or after `fit`.
        $rest_of_partial_fit
        """
        check_choice(self.loss, "loss", ("squared_error", "squared_hinge"))
        Z, first = self._check_next(X)
        y = check_labels_or_sets(self._require(y))
        check_consistent_length(Z, y)
        begins = first and (classes is not None or y.ndim == 2 or not hasattr(self, "classes_"))
        labels = all_labels(y, classes, None if begins else labels_of_machine(self))
        self.classes_, self.multilabel_ = labels.classes, labels.is_multilabel
        weights = weights_of_known(sample_weight, self.class_weight, y, labels.classes)
        self._fit_more(Z, labels.encode(y), weights, first)
        return self

    @property
    def _needs_rows(self):
        return self.loss == "squared_hinge"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _solve_path(self, rows, alphas, options, start=None):
        if self.loss == "squared_hinge":
            return solve_hinge_path(rows, alphas, options, start)
        return super()._solve_path(rows, alphas, options, start)

    def decision_function(self, X):
        """$decision_function"""
        scores = self._linear(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X):
        """$predict_labels"""
        scores = self.decision_function(X)
        return labels_of_machine(self).decode(scores)
