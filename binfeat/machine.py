"""Kernel machines that choose their settings: `KernelMachineRegressor` and `KernelMachineClassifier`."""

from dataclasses import replace

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.callback import with_callbacks

from binfeat._common.docstrings import filled
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.labels import check_labels_or_sets, labels_in, labels_of_machine, require_two, weights_by_class
from binfeat._common.validation import check_choice, check_flag, check_integer, check_moderate, checked_array
from binfeat._machine.docs import TEXTS
from binfeat._machine.estimator import KernelMachineBase
from binfeat._machine.fitted.error_bars import ErrorBars
from binfeat._machine.table.doubts import doubt_classes
from binfeat._machine.target.robust_weights import about_medians, robust
from binfeat._machine.target.targets import Targets, as_columns
from binfeat._machine.target.transform_choice import choose_targets
from binfeat._machine.target.transforms import check_transform, first_transform
from binfeat._report.method import Reporting
from binfeat._rows.scored import SourceScorer

__all__ = ["KernelMachineClassifier", "KernelMachineRegressor"]


@filled(TEXTS)
class KernelMachineRegressor(SourceScorer, MultiOutputMixin, RegressorMixin, ErrorBars, Reporting, KernelMachineBase):
    """Kernel ridge regression that chooses its settings: a raw table in, predictions out.

    Minimises ``sum_i v_i |y_i - f(x_i)|^2 + alpha |w|^2`` over w and b, with ``f(x) = w @ z(x) + b``, standardised
    targets y, sample weights v, and random features z of a kernel. Where rows are few, it solves that for the kernel
    itself, with weights of mean 1 and ``b^2`` added to ``|w|^2``. It learns one length scale per input (ARD), and
    chooses scaling, kernel, kind and number of features, and alpha, on held-out rows or by leave-one-out predictions.

    Parameters
    ----------
    $choices
    $targets
    $effort
    n_posterior_samples : int, default=None
        Number of samples of the coefficients' posterior that `fit` draws for a machine of random features, 32 say; None
        draws none. `predict` with ``return_std=True`` and `sample_y` need them, and `predict_interval` follows them.
        They are drawn once, given the rows that are not held out, and are solved for like more targets, 8 at a time,
        which may take longer than all else in `fit`. They take as many times 4 bytes as there are features; Fourier
        features without grids have exact standard deviations instead, which take 4 bytes for each pair of features. An
        exact machine needs none.

    Attributes
    ----------
    $attributes
    $target_attributes
    $inputs

    See Also
    --------
    learn_gamma : Learns the length scales only.
    RandomBinning, RandomFourier, CGRidge : The parts of the machine.

    $notes

    $target_references

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import KernelMachineRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(600, 4))
    >>> y = np.sin(3 * X[:, 0]) + (X[:, 1] > 0)
    >>> machine = KernelMachineRegressor(random_state=0).fit(X[:400], y[:400])
    >>> bool(machine.score(X[400:], y[400:]) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        features="auto",
        kernel="auto",
        gamma="learn",
        alpha="auto",
        n_grids="auto",
        scaling="auto",
        categorical_features="from_dtype",
        loss="squared",
        target_transform="auto",
        max_grids=1600,
        max_seconds=None,
        max_bytes=None,
        cv=None,
        validation_fraction=0.1,
        scoring=None,
        refit=True,
        warm_start=False,
        verbose=0,
        n_jobs=None,
        random_state=None,
        n_posterior_samples=None,
    ):
        self.features = features
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.n_grids = n_grids
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.loss = loss
        self.target_transform = target_transform
        self.max_grids = max_grids
        self.max_seconds = max_seconds
        self.max_bytes = max_bytes
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.n_posterior_samples = n_posterior_samples

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Fit the machine.

        Parameters
        ----------
        $X
            Numbers and categories; NaN is a missing value. Or a source of blocks of its rows, see `binfeat.blocks`.
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            None for a source, which has targets and weights.
        $rest_of_fit
        """
        X, y, sample_weight = self._read(X, y, sample_weight)
        y = checked_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        check_moderate(y, "y")
        self._fit(X, y, sample_weight, groups)
        return self

    def predict(self, X, return_std=False):
        """Predict targets.

        Parameters
        ----------
        $X
        return_std : bool, default=False
            Whether to return the standard deviations of the predictions, too.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        std : ndarray like y
            Only with ``return_std=True``: of the Gaussian process whose mean is the prediction, without noise, as
            scikit-learn's `GaussianProcessRegressor` gives it. An exact machine has it in closed form, by a factor of
            its kernel matrix that the first call makes and the machine holds in memory (4 bytes for each pair of rows);
            one of random features by samples that `fit` draws with `n_posterior_samples`.

        Raises
        ------
        ValueError
            If standard deviations are asked for of a machine of random features, and `fit` drew no samples.
        """
        if check_flag(return_std, "return_std"):
            return self._with_std(X)
        scores = self._scores(X)
        return Targets.of_machine(self).decode(scores)

    def _targets(self, y):
        return Targets.of(first_transform(self.target_transform, as_columns(y)), y)

    def _prepared(self, problem, in_memory):
        if self.loss == "huber" and not in_memory:
            raise ValueError("loss='huber' needs all rows in memory; use loss='squared' for rows beyond it.")
        if isinstance(self.target_transform, str) and problem.earlier is None:
            known = about_medians(problem) if problem.is_robust else problem
            problem = replace(problem, targets=choose_targets(known))
        return robust(problem) if problem.is_robust else problem

    def _check_parameters(self):
        super()._check_parameters()
        check_choice(self.loss, "loss", ("squared", "huber"))
        check_transform(self.target_transform)
        if self.n_posterior_samples is not None:
            check_integer(self.n_posterior_samples, "n_posterior_samples", 1)
            if self.alpha == 0:
                raise ValueError("n_posterior_samples needs an alpha above 0; got alpha=0.")


@filled(TEXTS)
class KernelMachineClassifier(SourceScorer, ClassifierMixin, Reporting, KernelMachineBase):
    """Kernel ridge classification that chooses its settings: a raw table in, labels out.

    Each class is a target of `KernelMachineRegressor`, 1 for its rows and -1 for the others, and the class of the
    largest prediction is the answer; two classes share one target. Of an indicator matrix each label is a target of its
    own, with 0 between its two answers. Probabilities are the softmax of the predictions
    times a factor that is fitted on held-out rows, or to leave-one-out predictions of an exact machine.

    Parameters
    ----------
    $choices
    class_weight : dict or "balanced", default=None
        Weights of the classes, as in `sklearn.utils.class_weight.compute_class_weight`.
    $effort

    Attributes
    ----------
    $attributes
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; 0 to ``n_labels - 1`` for an indicator matrix.
    multilabel_ : bool
        Whether y was an indicator matrix.
    sharpness_ : float
        Factor of the predictions before the softmax that gives probabilities.
    $inputs

    See Also
    --------
    learn_gamma : Learns the length scales only.
    RandomBinning, RandomFourier, CGRidgeClassifier : The parts of the machine.

    $notes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from binfeat import KernelMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = KernelMachineClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(machine.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        features="auto",
        kernel="auto",
        gamma="learn",
        alpha="auto",
        n_grids="auto",
        scaling="auto",
        categorical_features="from_dtype",
        class_weight=None,
        max_grids=1600,
        max_seconds=None,
        max_bytes=None,
        cv=None,
        validation_fraction=0.1,
        scoring=None,
        refit=True,
        warm_start=False,
        verbose=0,
        n_jobs=None,
        random_state=None,
    ):
        self.features = features
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.n_grids = n_grids
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.max_grids = max_grids
        self.max_seconds = max_seconds
        self.max_bytes = max_bytes
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Fit the machine.

        Parameters
        ----------
        $X
            Numbers and categories; NaN is a missing value. Or a source of blocks of its rows, see `binfeat.blocks`.
        y : array-like of shape (n_rows,), or indicator matrix of shape (n_rows, n_labels), default=None
            Labels, numbers or strings, of at least two classes; or 0 and 1, which say which rows have which labels.
            None for a source, which has targets and weights.
        $rest_of_fit
        """
        X, y, sample_weight = self._read(X, y, sample_weight)
        y = check_labels_or_sets(y)
        if y.ndim == 1:
            classes, counts = np.unique(y, return_counts=True)
            require_two(classes)
            doubt_classes(classes, counts)
        weights = weights_by_class(sample_weight, self.class_weight, y)
        self._fit(X, y, None if weights is None else weights.ravel(), groups)
        return self

    def _targets(self, y):
        return labels_in(y)

    def decision_function(self, X):
        """$decision_function"""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """$predict_labels"""
        scores = self._scores(X)
        return labels_of_machine(self).decode(scores)

    def predict_proba(self, X):
        """Class probabilities, calibrated by temperature scaling (Guo et al. 2017) on predictions for rows left out.

        Parameters
        ----------
        $X

        Returns
        -------
        p : ndarray of shape (n_rows, n_classes)
            Of an indicator matrix the probability of each label.
        """
        scores = self._scores(X)
        return labels_of_machine(self).probabilities(scores, self.sharpness_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
