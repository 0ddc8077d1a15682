"""`CGRidge`."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_consistent_length

from binfeat._common.array_types import ArrayLike
from binfeat._common.availability import unavailable_if
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.validation import check_flag, check_integer, check_weights, checked_targets, require_y, seed_of
from binfeat._rows.products import Design, Features
from binfeat._rows.rows import ProcessRows, Rows
from binfeat._rows.scored import SourceScorer
from binfeat.linear.alpha_choice import Splitter, Validation, check_alpha
from binfeat.linear.design import check_design
from binfeat.linear.estimator import CGRidgeBase, holds_rows_out
from binfeat.linear.incremental import check_next
from binfeat.linear.posterior import RidgePosterior, noise_variance, ridge_posterior
from binfeat.linear.result import Result


class CGRidge(SourceScorer, MultiOutputMixin, RegressorMixin, CGRidgeBase):
    """Ridge regression on random features, by preconditioned conjugate gradients.

    It minimizes ``sum_i v_i |y_i - w' z_i - b|^2 + alpha |w|^2`` over the coefficients w and the intercept b, for rows
    z_i of features with targets y_i and sample weights v_i: the objective of scikit-learn's `Ridge`. It is faster than
    `Ridge` on sparse features and on codes (`BinMatrix`).

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
    n_posterior_samples : int, default=None
        Number of posterior samples [1]_ that `fit` draws for ``predict(X, return_std=True)``. With 32 samples, the
        standard error of a standard deviation is 1/8 of its value. Solves of samples stop early, which adds less than
        2 % to most standard deviations. With very small penalties it adds more: 6 % in the median, and at most 50 %, in
        an example with ``alpha=0.001`` and weights up to 50. `fit` warns if the solves reach `max_iter` much earlier.
        A sample takes as long as 4 to 8 targets if `alpha` is small. With few dense features, standard deviations
        are exact. Not available for penalties that differ between targets, or on Dask.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients w, in the type of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept b, in float64; 0 with ``fit_intercept=False``.
    noise_variance_ : float or ndarray of shape (n_targets,)
        Estimated noise variance of y, for a row of weight 1. Only with `n_posterior_samples`.
    solver_ : {"cg", "gram"}
        The solver used: conjugate gradients, or the Gram matrix of dense features.
    alpha_ : float or ndarray of shape (n_targets,)
        The penalty used.
    alphas_ : ndarray of shape (n_alphas,)
        Penalties tried; only with `alphas`.
    path_scores_ : ndarray of shape (n_splits, n_alphas)
        Validation score of each penalty in each split; only with `alphas`.
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
    RandomBinning : Features to train on; ``output="codes"`` makes the solve faster than CSR.
    CGRidgeClassifier : The model for classes.

    Notes
    -----
    The normal equations are centered implicitly and solved in the primal, with a Jacobi preconditioner. All targets
    share each product with the features. For few dense features, the Gram matrix is computed and solved exactly, in one
    iteration; standard deviations are then exact for any number of samples. `noise_variance_` is the weighted sum of
    squared residuals, divided by the number of rows minus the trace of the hat matrix. The guide describes the stopping
    rule, the choice of alpha and error bars: :doc:`/user_guide/plot_15_linear_models`.

    References
    ----------
    .. [1] J. Wilson et al., "Pathwise Conditioning of Gaussian Processes", JMLR 22, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import CGRidge, RandomBinning
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> y = np.sin(X[:, 0])
    >>> binning = RandomBinning(gamma=1.0, n_grids=200, random_state=0)
    >>> model = CGRidge(alpha=0.1).fit(binning.fit_transform(X), y)
    >>> bool(model.score(binning.transform(X), y) > 0.99)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    noise_variance_: float | np.ndarray
    _posterior: dict[str, np.ndarray]

    _of_some_fits = (*CGRidgeBase._of_some_fits, "noise_variance_", "_posterior")

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
        n_posterior_samples: int | None = None,
    ) -> None:
        self.alpha, self.alphas, self.fit_intercept, self.tol = alpha, alphas, fit_intercept, tol
        self.max_iter, self.cv, self.validation_fraction, self.scoring = max_iter, cv, validation_fraction, scoring
        self.early_stopping, self.warm_start, self.random_state = early_stopping, warm_start, random_state
        self.n_posterior_samples = n_posterior_samples

    @unavailable_if(holds_rows_out)
    @all_or_nothing
    def partial_fit(self, X: Design, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to the rows of all earlier calls, and fit the model to all of them.

        Coefficients equal the result of `fit` on all rows so far; for an array with more rows than features, they equal
        the exact solution, even if `fit` would stop earlier by `tol`. After `fit`, which stores no rows, `partial_fit`
        starts again, with a warning.

        Parameters
        ----------
        X : ndarray, sparse matrix or BinMatrix of shape (n_rows, n_features)
            The same type in all calls, with the same bins: fit `RandomBinning` once, or set its `n_features`.
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets. Required.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero. Coefficients are the same for a row of weight 2 and for two equal rows.

        Returns
        -------
        self : CGRidge

        Raises
        ------
        TypeError, ValueError
            If X is not an array, sparse matrix or codes, or differs from earlier calls in type or bins; or as in `fit`.
        AttributeError
            If `alphas`, `early_stopping` or `n_posterior_samples` is set, because `partial_fit` has no validation set
            and draws no samples.

        Notes
        -----
        Each call solves for all rows, from 0. The model and its files contain a copy of the rows, or, for an array with
        more rows than features, only their Gram matrix (if it fits into an eighth of the memory). Parameters can change
        between calls, and apply to all rows. Only with a Gram matrix, `fit_intercept` must stay the same.
        """
        Z, _ = check_next(self, X)
        _, rows, flat = self._encode(Z, y, sample_weight)
        self._fit_more(rows, flat)
        return self

    def predict(self, X: Design, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict targets.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)
        return_std : bool, default=False
            If True, also return the standard deviations of the predictions. Requires `n_posterior_samples` in `fit`.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets), float64
        std : ndarray like y
            Only with ``return_std=True``: posterior standard deviations of ``w' z + b``, without noise. With codes of
            `RandomBinning`, bins without training rows add their prior variance; with CSR they add nothing.

        Raises
        ------
        ValueError
            If `return_std` is True, and `fit` drew no samples.
        """
        if check_flag(return_std, "return_std"):
            return self._linear(X), self._std(X)
        return self._linear(X)

    def _encode(self, Z: Features, y: Any, sample_weight: ArrayLike | None) -> tuple[np.ndarray, ProcessRows, bool]:
        Y = checked_targets(require_y(type(self).__name__, y))
        check_consistent_length(Z, Y)
        rows = ProcessRows(Z, Y.reshape(Y.shape[0], -1), check_weights(sample_weight, Z.shape[0]))
        return Y, rows, Y.ndim == 1

    def _check_rows(self, rows: Rows) -> None:
        if self.n_posterior_samples is None:
            return
        check_integer(self.n_posterior_samples, "n_posterior_samples", 1)
        if self.alphas is None and (
            np.unique(check_alpha(self.alpha, rows.n_targets)).size > 1 or not np.all(self.alpha)
        ):
            raise ValueError(f"n_posterior_samples requires one positive alpha for all targets, got {self.alpha!r}.")

    def _fit_attributes(self, rows: ProcessRows, y: np.ndarray, validation: Validation, flat: bool) -> None:
        """Draw samples of the posterior, and estimate the variance of the noise."""
        if self.n_posterior_samples is None:
            return
        alpha, n_samples = float(np.max(self.alpha_)), int(self.n_posterior_samples)
        if not alpha:
            raise ValueError("n_posterior_samples requires a positive alpha, but alphas selected 0; remove it.")
        rng = np.random.default_rng([seed_of(self.random_state), n_samples])
        posterior = ridge_posterior(rows, alpha, n_samples, self._options(), rng, warns=True)
        fit = Result.of_attributes(self.coef_, self.intercept_)
        noise = noise_variance(rows, posterior, fit.solution, fit.intercept)
        self._posterior, self.noise_variance_ = posterior.arrays(), noise[0] if flat else noise

    def _std(self, X: Design) -> np.ndarray:
        """Return the standard deviations of predictions, with the same shape."""
        if not hasattr(self, "_posterior"):
            raise ValueError(
                "return_std=True requires posterior samples. Set n_posterior_samples, for example to 32, and fit again."
            )
        variances = RidgePosterior.from_arrays(self._posterior).variances(check_design(self, X))
        return np.sqrt(np.multiply.outer(variances, self.noise_variance_))
