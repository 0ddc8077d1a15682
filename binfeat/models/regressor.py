"""`KernelMachineRegressor`."""

from __future__ import annotations  # signatures print as they are written

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal, overload

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from binfeat._common.array_types import ArrayLike
from binfeat._common.validation import check_choice, check_flag, check_weights, checked_targets
from binfeat._rows.scored import SourceScorer
from binfeat.kernels.base import Kernel
from binfeat.linear.alpha_choice import Splitter
from binfeat.models.kernel_algebra.loss import LOSSES
from binfeat.models.number_estimator import NumbersModelBase
from binfeat.models.settings import Settings
from binfeat.models.table.columns import RawTable
from binfeat.models.table.targets import (
    Targets,
    as_columns,
    check_transform,
    first_transform,
    of_positive_weight,
    replace_ignored,
)
from binfeat.report.method import Reporting


class KernelMachineRegressor(SourceScorer, MultiOutputMixin, RegressorMixin, Reporting, NumbersModelBase):
    """Kernel ridge regression on raw tables, with automatic selection of kernel, length scales and penalty.

    It minimizes ``sum_i v_i |y_i - f(x_i)|^2 + alpha |f|^2`` over functions f of the kernel's space and an intercept,
    for standardized targets y_i and sample weights v_i [1]_. All targets share one kernel and its length scales.

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
        than 2 %, up to "max_grids" (1,600). "n_posterior_samples": posterior samples, for example 32. Models on random
        features require them for `sample_y` and ``predict(X, return_std=True)``, and use them in `predict_interval`.
    categorical_features : "from_dtype", None or array-like of bool, int or str, default="from_dtype"
        Columns with categories. "from_dtype": categorical and string columns of a data frame; columns of only numbers
        or dates as strings are converted, with a warning.
    loss : {"squared", "huber", "poisson", "gamma", "tweedie"}, default="squared"
        "huber" is robust to outliers in y: quadratic up to 1.345 robust standard deviations, linear beyond. "poisson"
        (counts), "gamma" (amounts above 0), "tweedie" (amounts with zeros, power 1.5): deviances, positive predictions.
        Several targets: the penalty depends on all their means. Below 100 positive targets, errors use five folds.
    target_transform : "auto", None or transformer, default="auto"
        Transformation of y. "auto" tries log and arcsinh if y is skewed or has extreme values. A transformer needs
        `inverse_transform`; it is cloned and fitted to y as columns. Predictions stay near the range of y.
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
    target_transform_, target_transformer_ : str and object
        Name of the transformation of y; the fitted transformer, only if `target_transform` is a transformer.
    n_features_in_, feature_names_in_ : int and ndarray of shape (n_inputs,)

    See Also
    --------
    learn_gamma : Length scales only.
    RandomBinning, RandomFourier, CGRidge : Features and linear models for your own pipeline.

    Notes
    -----
    Numbers are standardized. A missing number is replaced by the median, with a 0/1 indicator column. Dates become
    days, day of year, day of week and hour. With ``features="auto"`` and `cv` or `groups`, exact models have up to
    1,500 rows; more rows use binning features, or a local model if `kernel` is radial. Blocks of files with more rows
    than fit in memory use binning features. Effects of category levels are added, in a local model, if these reduce the
    leave-one-out error: :doc:`/user_guide/plot_16_panels`. Algorithms: :doc:`/user_guide/plot_11_mathematics`.
    Selections: :doc:`/user_guide/plot_03_decisions`. Limits: :doc:`/user_guide/plot_06_limits`.

    References
    ----------
    .. [1] C. Rasmussen and C. Williams, "Gaussian Processes for Machine Learning", 2006, sections 2.2 and 5.4.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import KernelMachineRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(600, 4))
    >>> y = np.sin(3 * X[:, 0]) + (X[:, 1] > 0)
    >>> model = KernelMachineRegressor(random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.9)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    _solver_options = (*NumbersModelBase._solver_options, "n_posterior_samples")

    target_transform_: str
    target_transformer_: BaseEstimator

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
        target_transform: BaseEstimator | str | None = "auto",
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
        self.categorical_features, self.target_transform = categorical_features, target_transform
        self.loss = loss
        self.max_seconds, self.max_bytes, self.verbose, self.n_jobs = max_seconds, max_bytes, verbose, n_jobs
        self.cv, self.scoring, self.refit = cv, scoring, refit
        self.on_unseen = on_unseen
        self.warm_start, self.random_state = warm_start, random_state

    def __setstate__(self, state: dict) -> None:
        loss = state.get("loss")
        if isinstance(loss, str) and loss == "quantile":
            raise ValueError(
                "This KernelMachineRegressor was saved with loss='quantile', which binfeat no longer has. "
                "Fit it again with loss='squared', and call predict_quantiles."
            )
        super().__setstate__(state)

    @overload
    def predict(self, X: RawTable, return_std: Literal[False] = False) -> np.ndarray: ...
    @overload
    def predict(self, X: RawTable, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(self, X: RawTable, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict targets.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks
        return_std : bool, default=False
            If True, also return the standard deviations of the predictions.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        std : ndarray like y
            Only with ``return_std=True``: standard deviations of the Gaussian process with the prediction as its mean,
            without noise, as in scikit-learn's `GaussianProcessRegressor`. Weights count as inverse noise variances up
            to a common factor, which is estimated; with ``loss="huber"``, residuals above three robust standard
            deviations do not count for it. For an exact model of up to 4,000 rows, the first call factorizes the kernel
            matrix in 8 bytes per pair of rows, and keeps a factor of 4 bytes per pair. For more rows, cells and 400
            landmarks approximate them, with factors of about 100 MB. On 12 tables, their mean was within 5 % of the
            exact one, and single values differed by 1 to 10 %. Threads share the factors.
            Models on random features require "n_posterior_samples" in `solver_params`.

        Raises
        ------
        ValueError, MemoryError
            If `return_std` requires posterior samples that `fit` did not draw, or a factor does not fit in memory.
        """
        if check_flag(return_std, "return_std"):
            return self._with_std(X)
        return self._own_targets.decode(self._scores(X))

    def _settings(self) -> Settings:
        check_choice(self.loss, "loss", tuple(LOSSES))
        check_transform(self.target_transform)
        settings = super()._settings()
        if LOSSES[self.loss].has_link:
            self._check_for_deviance(settings)
        if settings.n_posterior_samples is not None and self.alpha == 0:
            raise ValueError("solver_params['n_posterior_samples'] requires a positive alpha or 'auto', got alpha=0.")
        return replace(settings, loss=self.loss, chooses_transform=isinstance(self.target_transform, str))

    def _checked(self, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[np.ndarray, ArrayLike | None]:
        y = checked_targets(y)
        weights = check_weights(sample_weight, len(y))
        return (y if weights is None else replace_ignored(y, weights, y[np.argmax(weights)])), sample_weight

    def _check_for_deviance(self, settings: Settings) -> None:
        """Raise a ValueError for parameters that models with a log link do not support."""
        if not (self.target_transform is None or isinstance(self.target_transform, str)):
            raise ValueError(f"loss={self.loss!r} models the logarithm of y: target_transform must be None or 'auto'.")
        if settings.n_posterior_samples is not None:
            raise ValueError(
                f"solver_params['n_posterior_samples'] is not available with loss={self.loss!r}; remove it."
            )

    def _targets(self, y: np.ndarray, weights: np.ndarray | None = None) -> Targets:
        y, weights = of_positive_weight(y, weights)
        loss = LOSSES[self.loss]
        loss.check(y, self.loss)
        return Targets.of(first_transform(self.target_transform, as_columns(y), loss.is_robust), y, weights)
