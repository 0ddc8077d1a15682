"""Kernel machines that set themselves up: `KernelMachineRegressor` and `KernelMachineClassifier`."""

from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from binfeat._columns import Columns
from binfeat._grids import Grids
from binfeat._growth import BinFunction
from binfeat._held_out import Loss, SquaredErrors, calibrate, probabilities, splits
from binfeat._scaling import Quantiles
from binfeat._training import Training
from binfeat._validation import check_integer, check_real, check_weights, seed_of
from binfeat.kernels import binning_kernel

__all__ = ["KernelMachineClassifier", "KernelMachineRegressor"]

_functions = WeakKeyDictionary()  # what predicts, made of the attributes when it is first needed


class _KernelMachine(CallbackSupportMixin, BaseEstimator):
    """Base of the kernel machines."""

    def __init__(
        self,
        *,
        kernel="auto",
        gamma="learn",
        alpha="auto",
        n_grids="auto",
        scaling="auto",
        categorical_features="from_dtype",
        max_grids=400,
        max_seconds=None,
        max_bytes=None,
        cv=None,
        validation_fraction=0.1,
        scoring=None,
        refit=True,
        n_jobs=None,
        random_state=None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.n_grids = n_grids
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.max_grids = max_grids
        self.max_seconds = max_seconds
        self.max_bytes = max_bytes
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X, y, Y, sample_weight, groups, finish, labels=None):
        """Fit to targets Y (n_rows, n_targets) that stand for y."""
        self._check_parameters()
        columns, table = Columns.fit(self, X, self.categorical_features)
        check_consistent_length(table, Y)
        if len(table) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 rows, to hold some out; got n_samples=1.")
        weights = check_weights(sample_weight, len(table))
        train, held_out = self._split(table, y, groups)
        if weights is not None and not (weights[train].any() and weights[held_out].any()):
            raise ValueError("sample_weight is zero for all training rows or for all rows held out.")
        context = self._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=self, X=X, y=y)

        def judge_of(rows):
            if self.scoring is not None:
                return Loss(self, table[rows], y[rows], finish)
            return SquaredErrors(Y[rows], None if weights is None else weights[rows])

        def going():
            task = context.subcontext(task_name="step").call_on_fit_task_begin(estimator=self)
            return not task.call_on_fit_task_end(estimator=self)

        training = Training(
            self, table, Y, weights, train, held_out, judge_of, columns, seed_of(self.random_state), going
        )
        try:
            training.run()
        except KeyboardInterrupt:
            if training.growth is None or not training.curve:
                raise
            training.status = "interrupted"
            self._keep(training, columns)
            raise
        if labels is not None:
            own = None if weights is None else weights[held_out]
            self.sharpness_ = calibrate(training.held_out_predictions, labels[held_out], own)
        self._keep(training, columns)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)

    def _check_parameters(self):
        for name, words in (("gamma", ("learn", "scale")), ("alpha", ("auto",)), ("n_grids", ("auto",))):
            value = getattr(self, name)
            if isinstance(value, str) and value not in words:
                known = " or ".join(repr(word) for word in words)
                raise ValueError(f"{name} must be {known}, or a number, got {value!r}.")
        if self.scaling not in ("auto", "standard", "quantile", None):
            raise ValueError(f"scaling must be 'auto', 'standard', 'quantile' or None, got {self.scaling!r}.")
        if self.kernel != "auto":
            binning_kernel(self.kernel)
        if self.alpha != "auto":
            check_real(self.alpha, "alpha", minimum=0.0)
        if self.n_grids != "auto":
            check_integer(self.n_grids, "n_grids", 1)
        check_integer(self.max_grids, "max_grids", 1)
        if self.max_seconds is not None:
            check_real(self.max_seconds, "max_seconds", minimum=0.0)
        if self.max_bytes is not None:
            check_integer(self.max_bytes, "max_bytes", 1)

    def _split(self, table, y, groups):
        train, held_out = (np.asarray(rows) for rows in next(iter(splits(self, len(table), y, groups))))
        if train.size == 0 or held_out.size == 0:
            raise ValueError("cv gives no rows to train on or none to hold out.")
        rng = np.random.default_rng(seed_of(self.random_state))
        return rng.permutation(train), rng.permutation(held_out)

    def _keep(self, training, columns):
        """Set the attributes, which are arrays, numbers and strings."""
        function = training.growth.function()
        self._columns = columns.arrays()
        self._quantiles = {} if training.quantiles is None else training.quantiles.arrays()
        self._scale, self._shift, self._keys, self._nan_keys = function.grids.arrays
        self._bin_keys, self._bin_starts = function.keys, function.starts
        self.coef_, self.intercept_ = function.coef, function.intercept
        self.gamma_, self.alpha_, self.n_grids_ = training.gamma, training.alpha, len(function.grids)
        self.kernel_ = repr(training.kernel)
        self.scaling_ = "quantile" if self._quantiles else "standard"
        self.feature_relevances_ = np.bincount(columns.source, training.relevances, minlength=self.n_features_in_)
        self.width_errors_, self.width_gammas_ = training.width_errors, training.width_gammas
        self.learning_curve_ = np.array(training.curve)
        self.decisions_ = training.decisions.table()
        self.status_ = training.status
        _functions.pop(self, None)

    def _scores(self, X):
        """Predictions of the targets."""
        parts = _functions.get(self)
        if parts is None:
            check_is_fitted(self)
            grids = Grids(self._scale, self._shift, self._keys, self._nan_keys)
            function = BinFunction(grids, self._bin_keys, self._bin_starts, self.coef_, self.intercept_)
            quantiles = Quantiles.from_arrays(self._quantiles) if self._quantiles else None
            parts = _functions[self] = Columns.from_arrays(self._columns), quantiles, function
        columns, quantiles, function = parts
        table = columns.transform(self, X)
        return function(table if quantiles is None else quantiles.transform(table), self.n_jobs)

    def summary(self):
        """What was decided in `fit`, in order.

        Returns
        -------
        table : str
            A line for each decision: what, the choice, the held-out error after it (mean squared error of the
            standardised targets, or minus the `scoring`) and the seconds since the start.
        """
        check_is_fitted(self)
        rows = [("decision", "choice", "held-out error", "seconds")]
        rows += [(what, choice, f"{error:.4g}", f"{seconds:.1f}") for what, choice, error, seconds in self.decisions_]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags


class KernelMachineRegressor(MultiOutputMixin, RegressorMixin, _KernelMachine):
    """DOC"""

    @with_callbacks
    def fit(self, X, y, sample_weight=None, groups=None):
        """Fit the machine.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
            Numbers and categories; NaN is a missing value.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero.
        groups : array-like of shape (n_rows,), default=None
            Groups of rows that are held out together.

        Returns
        -------
        self : KernelMachineRegressor

        Raises
        ------
        ValueError
            If a parameter, a target or a weight is out of range, X holds infinity, or lengths differ.
        """
        if y is None:
            raise ValueError("KernelMachineRegressor requires y to be passed, but the target y is None")
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if y.ndim > 2:
            raise ValueError(f"y must be 1-d or 2-d, got {y.ndim} dimensions.")
        Y = y.reshape(len(y), -1)
        mean, std = Y.mean(axis=0), Y.std(axis=0)
        std = np.where(std > 0, std, 1.0)

        def finish(predictions):
            own = predictions * std + mean
            return own[:, 0] if y.ndim == 1 else own

        self._target_mean, self._target_std, self._one_target = mean, std, y.ndim == 1
        self._fit(X, y, (Y - mean) / std, sample_weight, groups, finish)
        return self

    def predict(self, X):
        """Predict targets.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        """
        scores = self._scores(X)
        scores *= self._target_std
        scores += self._target_mean
        return scores[:, 0] if self._one_target else scores


class KernelMachineClassifier(ClassifierMixin, _KernelMachine):
    """DOC"""

    def __init__(
        self,
        *,
        kernel="auto",
        gamma="learn",
        alpha="auto",
        n_grids="auto",
        scaling="auto",
        categorical_features="from_dtype",
        class_weight=None,
        max_grids=400,
        max_seconds=None,
        max_bytes=None,
        cv=None,
        validation_fraction=0.1,
        scoring=None,
        refit=True,
        n_jobs=None,
        random_state=None,
    ):
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            alpha=alpha,
            n_grids=n_grids,
            scaling=scaling,
            categorical_features=categorical_features,
            max_grids=max_grids,
            max_seconds=max_seconds,
            max_bytes=max_bytes,
            cv=cv,
            validation_fraction=validation_fraction,
            scoring=scoring,
            refit=refit,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X, y, sample_weight=None, groups=None):
        """Fit the machine.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
            Numbers and categories; NaN is a missing value.
        y : array-like of shape (n_rows,)
            Labels, numbers or strings, of at least two classes.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero.
        groups : array-like of shape (n_rows,), default=None
            Groups of rows that are held out together.

        Returns
        -------
        self : KernelMachineClassifier

        Raises
        ------
        ValueError
            If a parameter or a weight is out of range, X holds infinity, lengths differ, or y has fewer than
            two classes.
        """
        if y is None:
            raise ValueError("KernelMachineClassifier requires y to be passed, but the target y is None")
        y = column_or_1d(check_array(y, dtype=None, ensure_2d=False, input_name="y"), warn=True)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = self.classes_.size
        if n_classes < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_[0]!r}.")
        Y = np.where(labels[:, None] == ([1] if n_classes == 2 else np.arange(n_classes)), 1.0, -1.0)
        if self.class_weight is not None:
            of_class = compute_sample_weight(self.class_weight, y)
            sample_weight = of_class if sample_weight is None else of_class * np.asarray(sample_weight)
        self._fit(X, y, Y, sample_weight, groups, self._labels, labels)
        return self

    def _labels(self, scores):
        return self.classes_[(scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)]

    def decision_function(self, X):
        """Predictions of the targets, 1 for a class and -1 for the others.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            With two classes one score, above 0 for ``classes_[1]``.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        return self._labels(self._scores(X))

    def predict_proba(self, X):
        """Class probabilities, calibrated on the held-out rows by one temperature (Guo et al. 2017).

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        p : ndarray of shape (n_rows, n_classes)
        """
        return probabilities(self._scores(X), self.sharpness_)
