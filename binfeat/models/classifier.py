"""`KernelMachineClassifier`."""

from __future__ import annotations  # signatures print as they are written

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from binfeat._common.array_types import ArrayLike
from binfeat._common.labels import (
    AnyLabels,
    check_label_columns,
    columns_of,
    is_indicator,
    labels_in,
    require_two,
    weights_by_class,
)
from binfeat._common.validation import check_choice, is_word
from binfeat._rows.scored import SourceScorer
from binfeat.kernels.base import Kernel
from binfeat.kernels.lookup import exact_kernel
from binfeat.linear.alpha_choice import Splitter
from binfeat.models.fitted.saved import check_classifier
from binfeat.models.kernel_algebra.loss import MARGINS
from binfeat.models.served.estimator import ServedModelBase
from binfeat.models.settings import Settings
from binfeat.models.table.columns import RawTable
from binfeat.models.table.findings import warn_of_rare_classes
from binfeat.report.method import Reporting


class KernelMachineClassifier(SourceScorer, ClassifierMixin, Reporting, ServedModelBase):
    """Kernel classification on raw tables, with automatic selection of kernel, length scales and penalty.

    It minimizes ``sum_i v_i loss(y_i, f(x_i)) + alpha |f|^2`` for each class, with y_i = 1 in the class and -1
    elsewhere, then calibrates probabilities on leave-one-out or validation scores. It accepts several labels per row.

    Parameters
    ----------
    features : {"auto", "exact", "local", "binning", "fourier"}, default="auto"
        How the kernel is represented. "exact": the full kernel matrix. "local": one kernel matrix per cell of a k-d
        tree. "binning", "fourier": random features. "auto": "exact" for up to 10,000 rows, "local" for more; see Notes.
    kernel : "auto", str or object of `binfeat.kernels`, default="auto"
        "auto" selects a kernel or a sum of two. Exact and local models accept "laplacian", "rbf", `Laplacian`, `RBF`
        and `Matern` (nu 1/2, 3/2, 5/2 or infinity). "fourier": radial kernels; "binning": see `RandomBinning`.
    gamma : "learn", "scale", float or array-like of shape (n_inputs,), default="learn"
        Inverse length scales, see `binfeat.kernels`. "learn": one per input, learned from y, see `learn_gamma`.
        "scale": ``1 / (n_columns * std_j)`` per internal column; radial kernels use ``std_j^2`` instead of ``std_j``.
        `gamma_` of a model with the same internal columns is also accepted, or its first n_inputs values.
    alpha : "auto" or float, default="auto"
        Ridge penalty; exact models increase it if rounding errors require it. "auto" minimizes the validation error.
    solver_params : dict, default=None
        Options of the representations, all optional. "n_trees": number of trees of a local model; default: estimated
        after the first tree, so that one more would cut the squared error by less than 0.3 %, or less for weak signals
        (at most 8). "cell_rows": maximum rows in a cell of a local model; default: 1,500, doubled while `max_seconds`
        and accuracy allow it. "n_grids": number of grids; default: double it until the validation error falls by less
        than 2 %, up to "max_grids" (1,600).
    categorical_features : "from_dtype", None or array-like of bool, int or str, default="from_dtype"
        Columns with categories. "from_dtype": categorical and string columns of a data frame; columns of only numbers
        or dates as strings are converted, with a warning.
    loss : {"squared", "log", "squared_hinge"}, default="squared"
        Loss of the scores, before probabilities are calibrated. "log" is logistic regression, "squared_hinge" a support
        vector machine. Both require all rows in memory, no "n_grids", and `features` "auto", "exact" or "local".
        Their steps end when one more would lower the objective by less than 0.01 %, so scores are approximate: with an
        alpha below 0.1, single scores can differ from the minimum by a third of their standard deviation and more.
    class_weight : dict or "balanced", default=None
        Weights of the classes, as in `sklearn.utils.class_weight.compute_class_weight`. Not for indicator matrices.
    max_seconds : float, default=None
        Soft time limit of `fit` in seconds. Optional steps are skipped and large tables subsampled to meet it.
    max_bytes : int, default=None
        Memory limit of `fit` in bytes, plus 300 MB for copies of the table. None: a quarter of the computer's memory.
    cv : int, splitter or list of splits, default=None
        Splits (`sklearn.model_selection.check_cv`). Exact models (up to 1,500 rows) use all if each row is validated
        once, ``refit=True``, and the loss is squared or Huber's; others use the first. None: a random tenth (random
        features: 200 rows if a tenth is fewer, at most a quarter). ``[(train, validation)]`` needs rows in memory.
    scoring : str or callable, default=None
        Unweighted score that selections maximize (`sklearn.metrics.get_scorer`). None: minus the weighted `loss`.
    refit : bool, default=True
        If True, refit on all rows, including the validation rows, once hyperparameters are selected.
    warm_start : bool, default=False
        If True, another `fit` keeps the length scales and kernel, and only updates alpha, grids and coefficients.
    on_unseen : {"warn", "ignore", "error"}, default="warn"
        Action for new categories, missing values in a complete column, or numbers far outside the training range.
        "warn" warns once per fitted model: if there are new categories, or if at least 1 % of rows (and two) differ.
    verbose : int, default=0
        If 1, print the lines of `summary` during `fit`, and report compilation.
    n_jobs : int, default=None
        Number of threads. None is Numba's setting. 1 also limits BLAS to one thread.
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.

    Attributes
    ----------
    gamma_ : ndarray of shape (n_columns,)
        Gamma of the main kernel for each internal column: inputs, parts of dates, missing-value flags, ranks, codes.
    linear_map_ : ndarray of shape (n_columns, rank), or None if no map lowered the error
        The radial kernel uses distances between rows of ``(x * sqrt(gamma_)) @ linear_map_``, for scaled inputs x.
    feature_importances_ : ndarray of shape (n_inputs,)
        Square root of the increase in leave-one-out mean squared error when the input is shuffled, in units of the
        target's standard deviation. Computed on first access.
    feature_relevances_ : ndarray of shape (n_inputs,)
        How fast predictions vary along each input (its share in the kernel's mean exponent), not how important it is.
    features_, kernel_, scaling_ : str
        The selected representation and kernel. `scaling_` is "ranks" if ranks were added as columns, else "standard".
    alpha_, n_grids_, n_trees_ : float, int and int
        Ridge penalty, number of grids, number of trees (0 if the model has none).
    length_scale_errors_, length_scale_gammas_ : ndarray of shape (n_steps,) and (n_steps, n_columns)
        Leave-one-out error and gammas before each step of the search; empty unless ``gamma="learn"``.
    held_out_error_ : ndarray of shape (2,)
        Leave-one-out or validation error, and its standard error. Slightly too low, because selections minimize it.
        With `scoring`: minus the score, and NaN.
    learning_curve_ : ndarray of shape (n_batches, 2)
        Number of grids or trees, and the validation error, after each addition.
    decisions_ : ndarray of shape (n_decisions,), structured
        Fields `what`, `choice`, `error` and `seconds`, as printed by `summary`.
    status_ : {"converged", "budget", "stopped", "interrupted"}
        Why `fit` ended: finished, reached a limit, stopped by a callback, or Ctrl-C.
    feature_coef_ : ndarray of shape (n_targets, n_features)
        Coefficients of the features or training rows. Predictions of a smooth exact model use fewer rows.
    intercept_ : ndarray of shape (n_targets,)
    classes_ : ndarray of shape (n_classes,)
        Sorted labels; 0 to ``n_labels - 1`` for an indicator matrix. For several columns of labels, a list of arrays.
    multilabel_ : bool
        True if y was an indicator matrix.
    calibration_coef_, calibration_intercept_ : ndarray of shape (2, n_classes, n_classes) and (n_classes,)
        A and B, and b, of the calibration; see Notes. An indicator matrix has 2 classes per label.
    n_features_in_, feature_names_in_ : int and ndarray of shape (n_inputs,)

    See Also
    --------
    KernelMachineRegressor : The model for numbers; its Notes also apply here.
    RandomBinning, RandomFourier, CGRidgeClassifier : Features and linear models for your own pipeline.

    Notes
    -----
    Probabilities are ``softmax(A s + B log(p) + b)`` of the scores s, with p = (1 + s) / 2, by regularized matrix
    scaling [1]_. With `scoring`, selections use calibrated predictions. With ``loss="log"`` or "squared_hinge", models
    of up to 10,000 rows (1,500 with `cv` or `groups`) are exact, and models of more rows are local. Algorithms and
    their sources: :doc:`/user_guide/plot_11_mathematics`.

    References
    ----------
    .. [1] C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from binfeat import KernelMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMachineClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    classes_: np.ndarray
    multilabel_: bool
    calibration_coef_: np.ndarray
    calibration_intercept_: np.ndarray

    _check_state = staticmethod(check_classifier)

    def __init__(
        self,
        *,
        features: str = "auto",
        kernel: str | Kernel = "auto",
        gamma: ArrayLike = "learn",
        alpha: float | str = "auto",
        solver_params: Mapping[str, int] | None = None,
        categorical_features: ArrayLike | None = "from_dtype",
        loss: str = "squared",
        class_weight: Mapping | str | None = None,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
        cv: int | Splitter | Iterable | None = None,
        scoring: str | Callable | None = None,
        refit: bool = True,
        warm_start: bool = False,
        on_unseen: str = "warn",
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.features, self.kernel, self.gamma, self.alpha = features, kernel, gamma, alpha
        self.solver_params = solver_params
        self.categorical_features, self.loss, self.class_weight = categorical_features, loss, class_weight
        self.max_seconds, self.max_bytes, self.verbose, self.n_jobs = max_seconds, max_bytes, verbose, n_jobs
        self.cv, self.scoring, self.refit = cv, scoring, refit
        self.on_unseen = on_unseen
        self.warm_start, self.random_state = warm_start, random_state

    def decision_function(self, X: RawTable) -> np.ndarray | list[np.ndarray]:
        """Log-odds of the classes. Their softmax is `predict_proba`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks

        Returns
        -------
        odds : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes one number per row, positive for ``classes_[1]``. For more classes, the mean of each row is
            0. For an indicator matrix, the log-odds of each label, positive if the row has it. A list of arrays for
            several columns of labels.
        """
        return self._labels.decision(self._scores(X))

    def predict(self, X: RawTable) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks

        Returns
        -------
        y : ndarray of shape (n_rows,), (n_rows, n_labels) or (n_rows, n_outputs)
            Most probable class. Two dimensions if y of `fit` was an indicator matrix, or had several columns of labels.
        """
        return self._labels.decode(self._scores(X))

    def predict_proba(self, X: RawTable) -> np.ndarray | list[np.ndarray]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks

        Returns
        -------
        p : ndarray of shape (n_rows, n_classes)
            For an indicator matrix, the probability of each label. A list of arrays for several columns of labels.
        """
        return self._labels.probabilities(self._scores(X))

    @property
    def _labels(self) -> AnyLabels:
        return cast(AnyLabels, self._fitted.targets)

    def _settings(self) -> Settings:
        check_choice(self.loss, "loss", ("squared", *MARGINS))
        settings = super()._settings()
        if self.loss in MARGINS:
            self._check_for_matrix(settings)
        return replace(settings, loss=self.loss)

    def _check_for_matrix(self, settings: Settings) -> None:
        """Raise a ValueError for parameters that require random features."""
        own = f"loss={self.loss!r} requires a kernel matrix"
        if self.features in ("binning", "fourier"):
            raise ValueError(f"{own}: features must be 'exact', 'local' or 'auto', got {self.features!r}.")
        if settings.n_grids is not None:
            raise ValueError(f"{own}: remove 'n_grids' from solver_params, got {settings.n_grids}.")
        if not is_word(self.kernel, "auto"):
            exact_kernel(self.kernel, f"loss={self.loss!r}")

    def _checked(self, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
        y = check_label_columns(y)
        columns = [y] if y.ndim == 1 else [] if is_indicator(y) else columns_of(y)
        weights = weights_by_class(sample_weight, self.class_weight, y)
        weights = None if weights is None else weights.ravel()
        for column in columns:
            classes, places = np.unique(column, return_inverse=True)
            require_two(classes)
            counts = np.bincount(places if weights is None else places[weights > 0], minlength=classes.size)
            warn_of_rare_classes(classes[counts > 0], counts[counts > 0])
        self._check_scoring(columns)
        return y, weights

    def _check_scoring(self, columns: list[np.ndarray]) -> None:
        """Raise a ValueError for named scores that do not support the labels."""
        if len(columns) > 1 and isinstance(self.scoring, str):
            raise ValueError(
                f"scoring={self.scoring!r} accepts one column of labels, got {len(columns)}. Pass a callable."
            )
        if columns and is_word(self.scoring, "roc_auc") and (n_classes := len(np.unique(columns[0]))) > 2:
            raise ValueError(
                f"scoring='roc_auc' accepts two classes, got {n_classes}. Use 'roc_auc_ovr' or 'roc_auc_ovo'."
            )

    def _targets(self, y: np.ndarray, weights: np.ndarray | None = None) -> AnyLabels:
        return labels_in(y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
