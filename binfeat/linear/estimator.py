"""Base class of the ridge models: checks, selection of a penalty, stopping, and the linear function."""

import numbers
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.callbacks import CallbackSupportMixin
from binfeat._common.fit_rollback import fit_method
from binfeat._common.persistence import Persistent
from binfeat._common.progress import Progress
from binfeat._common.validation import (
    check_flag,
    check_integer,
    check_real,
    checked_rows,
    checked_targets,
    require_y,
    seed_of,
)
from binfeat._common.warned import warn
from binfeat._rows.products import Design, Features
from binfeat._rows.rows import LocalRows, Rows
from binfeat._rows.sources import Source, Survey, check_alone, is_source
from binfeat._rows.streamed import StreamedFeatures
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.linear.alpha_choice import EarlyStop, HeldOutParts, check_alpha, choose_alpha, held_out_parts
from binfeat.linear.compact_coef import compact
from binfeat.linear.gram import GramSystem
from binfeat.linear.incremental import KeptRows, KeptSums, kept_of
from binfeat.linear.posterior import RidgePosterior, noise_variance, ridge_posterior
from binfeat.linear.result import Penalties, Result, SolveInterrupted, SolverOptions
from binfeat.linear.saved import check_ridge
from binfeat.linear.solve import solve_ridge


class CGRidgeBase(Persistent, CallbackSupportMixin, BaseEstimator):
    """Base of `CGRidge` and `CGRidgeClassifier`."""

    alpha: ArrayLike
    alphas: ArrayLike | None
    fit_intercept: bool
    tol: float | None
    max_iter: int
    early_stopping: bool
    warm_start: bool
    n_posterior_samples: int | None = None  # a parameter of regressors
    probability: bool = False  # a parameter of classifiers

    alpha_: float | np.ndarray
    noise_variance_: float | np.ndarray
    status_: str
    solver_: str
    alphas_: np.ndarray
    path_scores_: np.ndarray
    n_iter_: int
    coef_: np.ndarray
    intercept_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray
    _kept: dict[str, np.ndarray]
    _posterior: dict[str, np.ndarray]

    _check_state = staticmethod(check_ridge)

    def __getstate__(self) -> dict[str, Any]:
        return compact(super().__getstate__())

    @fit_method
    def fit(
        self,
        X: Design | Source,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)
            Or a source of blocks of its rows, see `binfeat.blocks`.
        y : array-like of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets of `CGRidge`. For `CGRidgeClassifier` labels (numbers or strings) of at least two classes, or an
            indicator matrix of 0 and 1. None uses the targets and weights stored with X, a source of blocks or its
            features.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero. A row of weight 2 counts as two rows.
        groups : array-like of shape (n_rows,), default=None
            Group of each row. All rows of a group are in the same split.

        Returns
        -------
        self : CGRidge or CGRidgeClassifier

        Raises
        ------
        ValueError
            If a parameter, a target or a weight is out of range, lengths differ, sums of products overflow, or there
            are fewer than two classes.
        """
        self._check_settings()
        X, y, sample_weight = self._read(X, y, sample_weight)
        y, rows, flat = self._encode(self._check_design(X, reset=True), y, sample_weight)
        self._fit_linear(X, rows, y, groups, flat=flat)
        return self

    def _check_settings(self) -> None:
        """Raise an error for inconsistent parameters, before rows are read."""

    def _encode(self, Z: Features, y: Any, sample_weight: ArrayLike | None) -> tuple[np.ndarray, LocalRows, bool]:
        """Return the checked targets or labels, rows with numeric targets, and True for one-dimensional predictions."""
        raise NotImplementedError

    def _read(
        self, X: Design | Source, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Design, ArrayLike | None, ArrayLike | None]:
        """Replace a source by the operator of its rows; return targets and weights, given or stored with X."""
        if is_source(X):
            check_alone(y, sample_weight)
            survey = Survey(X, self._check_design)
            X = StreamedFeatures.of(survey, lambda rows: rows, survey.n_inputs, dense=not survey.sparse)
        if y is None and sample_weight is None and isinstance(X, LinearOperator):
            return X, getattr(X, "y", None), getattr(X, "sample_weight", None)
        return X, y, sample_weight

    def _check_design(self, Z: Design, reset: bool = False) -> Features:
        """Return an operator unchanged, and anything else as a checked array or CSR matrix."""
        if not isinstance(Z, LinearOperator):
            return checked_rows(self, Z, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        if reset:
            _require_transpose(Z)
            self.n_features_in_ = Z.shape[1]
        elif Z.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {Z.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input."
            )
        return Z

    def _require(self, y: ArrayLike | None) -> ArrayLike:
        return require_y(type(self).__name__, y)

    def _check_numbers(self, y: ArrayLike | None) -> np.ndarray:
        return checked_targets(self._require(y))

    def _fit_linear(
        self, X: Design, rows: Rows, y: np.ndarray | Any, groups: ArrayLike | None = None, *, flat: bool = False
    ) -> None:
        """Fit to the targets of rows, which encode y; `flat` is for one-dimensional predictions."""
        n_samples = self._check_samples(rows)
        self._forget_errors()
        self._fit_coefficients(rows, held_out_parts(self, rows, y, groups, flat), Progress(self, X, y), flat)
        if isinstance(rows, LocalRows) and n_samples and self.status_ != "stopped":
            try:
                self._learn_errors(rows, n_samples, flat)
            except KeyboardInterrupt:
                self.status_ = "interrupted"
                raise

    @np.errstate(over="ignore", invalid="ignore")  # an overflow raises an error at the end
    def _fit_coefficients(self, rows: Rows, parts: HeldOutParts, progress: Progress, flat: bool) -> None:
        options = self._options()
        start = self._earlier_fit(rows)
        self.__dict__.pop("_kept", None)
        progress.begin(self._n_stages())
        options = replace(options, callback=lambda state: not progress.step("iteration"))
        try:
            if self.alphas is None:
                alpha = check_alpha(self.alpha, rows.n_targets)
            else:
                alpha = np.full(rows.n_targets, choose_alpha(self, parts, options, progress))
            self.alpha_ = alpha if np.ndim(self.alpha) and self.alphas is None else float(alpha[0])
            with nullcontext() if self.alphas is None else progress.stage("solution"):
                if self.early_stopping:
                    result = self._solve_until_no_better(parts, alpha, options, start)
                else:
                    result = self._solve(rows, alpha, options, start)
        except SolveInterrupted as error:
            self._keep(error.result, flat)
            raise
        self._keep(result, flat)
        progress.end()
        self._warn_unless_done(result, options.tol)

    def _check_samples(self, rows: Rows) -> int:
        """Return the number of posterior samples, 0 for None; ValueError if they are not available."""
        if self.n_posterior_samples is None:
            return 0
        n_samples = check_integer(self.n_posterior_samples, "n_posterior_samples", 1)
        if not isinstance(rows, LocalRows):
            raise ValueError("n_posterior_samples needs rows in memory or a source of blocks; set it to None on Dask.")
        if self.alphas is not None:
            return n_samples
        if np.unique(check_alpha(self.alpha, rows.n_targets)).size > 1 or not np.all(self.alpha):
            raise ValueError(f"n_posterior_samples requires one positive alpha for all targets, got {self.alpha!r}.")
        return n_samples

    def _learn_errors(self, rows: LocalRows, n_samples: int, flat: bool) -> None:
        alpha, fit = float(np.max(self.alpha_)), self._last_result()
        if not alpha:
            raise ValueError("n_posterior_samples requires a positive alpha, but alphas selected 0; remove it.")
        rng = np.random.default_rng([seed_of(self.random_state), n_samples])
        posterior = ridge_posterior(rows, alpha, n_samples, self._options(), rng)
        noise = noise_variance(rows, posterior, fit.solution, fit.intercept)
        self._posterior, self.noise_variance_ = posterior.arrays(), noise[0] if flat else noise

    def _forget_errors(self) -> None:
        self.__dict__.pop("_posterior", None)
        self.__dict__.pop("noise_variance_", None)

    def _std(self, X: Design) -> np.ndarray:
        """Return the standard deviations of predictions, with the same shape."""
        if not hasattr(self, "_posterior"):
            raise ValueError(
                "return_std=True requires posterior samples. Set n_posterior_samples, for example to 32, and fit again."
            )
        variances = RidgePosterior.from_arrays(self._posterior).variances(self._check_design(X))
        return np.sqrt(np.multiply.outer(variances, self.noise_variance_)).astype(self.coef_.dtype)

    def _n_stages(self) -> int | None:
        """Return the number of solves (paths on all splits, and the last solve); None without paths or if unknown."""
        n_parts = 1 if self.cv is None else self.cv
        if self.alphas is None or not isinstance(n_parts, numbers.Integral):
            return None
        return int(n_parts) * np.size(self.alphas) + 1

    def _options(self) -> SolverOptions:
        """Return the checked options of the solver."""
        for name in ("fit_intercept", "early_stopping", "warm_start"):
            check_flag(getattr(self, name), name)
        if self.alphas is not None and self.early_stopping:
            raise ValueError("early_stopping=True does not support alphas; set early_stopping to False.")
        return SolverOptions(
            tol=None if self.tol is None else min(check_real(self.tol, "tol", minimum=0.0), 1.0),
            max_iter=check_integer(self.max_iter, "max_iter", 1),
            fit_intercept=self.fit_intercept,
        )

    def _earlier_fit(self, rows: Rows) -> Result | None:
        """Return the result of an earlier fit as start, or None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        last, wanted = self._last_result(), (rows.shape[1], rows.n_targets)
        if last.solution.shape != wanted:
            raise ValueError(
                f"warm_start=True requires the features and targets of the earlier fit, {last.solution.shape}; "
                f"got {wanted}."
            )
        return last

    def _last_result(self) -> Result:
        """Return the result of the last solve as start."""
        coef, intercept = np.atleast_2d(self.coef_).T, np.atleast_1d(self.intercept_).astype(np.float64)
        return Result(coef, intercept, 1, np.empty((0, 0)), "converged")

    def _check_next(self, X: Design) -> tuple[Features, bool]:
        """Return checked features of additional rows in memory, and True if these are the first rows."""
        first = not hasattr(self, "_kept")
        if is_source(X) or (isinstance(X, LinearOperator) and not isinstance(X, BinMatrix)):
            raise TypeError(
                f"partial_fit requires an array, a sparse matrix or a BinMatrix in memory; got {type(X).__name__}."
            )
        if first and hasattr(self, "coef_"):
            warn(
                "fit stores no rows, so partial_fit starts again with these rows. To accumulate rows, pass all of them "
                "to partial_fit.",
            )
        return self._check_design(X, reset=first), first

    @np.errstate(over="ignore", invalid="ignore")
    def _fit_more(self, rows: LocalRows, first: bool, flat: bool = False, needs_rows: bool = False) -> None:
        """Solve for these rows and the rows of all earlier calls.

        The solver starts from 0, so that early stopping by `tol` gives the same result as `fit`. Only sums are kept for
        dense rows, unless the solver `needs_rows`.
        """
        self._forget_errors()
        options = self._options()
        if first:
            kept: KeptRows | KeptSums = KeptRows.first(rows)
        else:
            kept = kept_of(self._kept, self.n_features_in_, self.coef_.dtype, getattr(rows.Z, "n_jobs", None))
            if flat != (self.coef_.ndim == 1) or rows.n_targets != kept.to_solve.n_targets:
                raise ValueError("y must have the same number of targets in all calls of partial_fit.")
            kept = kept.joined(rows)
        kept = kept.settled(options.fit_intercept, needs_rows)
        alpha = check_alpha(self.alpha, rows.n_targets)
        try:
            result = self._solve(kept.to_solve, alpha, options, None)
        except SolveInterrupted as error:
            self._keep_all(kept, alpha, error.result, flat)
            raise
        self._keep_all(kept, alpha, result, flat)
        self._warn_unless_done(result, options.tol)

    def _keep_all(self, kept: KeptRows | KeptSums, alpha: np.ndarray, result: Result, flat: bool) -> None:
        self._kept = kept.arrays()
        self.alpha_ = alpha if np.ndim(self.alpha) else float(alpha[0])
        self._keep(result, flat)

    def _solve(
        self, rows: Rows | GramSystem, alpha: np.ndarray, options: SolverOptions, start: Result | None
    ) -> Result:
        """Solve once for given penalties, one per target."""
        return next(self._solve_path(rows, [alpha], options, start))

    def _solve_path(
        self, rows: Rows | GramSystem, alphas: Penalties, options: SolverOptions, start: Result | None = None
    ) -> Iterator[Result]:
        """Yield results for descending penalties; the first solve begins at `start`."""
        return solve_ridge(rows, alphas, options, None if start is None else start.solution)

    def _solve_until_no_better(
        self, parts: HeldOutParts, alpha: np.ndarray, options: SolverOptions, start: Result | None
    ) -> Result:
        """Return the best iterate of a solve on training rows that stops when the validation score no longer rises."""
        train, score = next(parts)
        watch = EarlyStop(score, options.callback)
        try:
            result = self._solve(train, alpha, replace(options, callback=watch, solver="cg"), start)
        except SolveInterrupted as error:
            raise SolveInterrupted(watch.best(error.result)) from error
        return watch.best(result)

    def _keep(self, result: Result, flat: bool) -> None:
        """Set the attributes that describe a solve."""
        self._set_linear(result.solution, result.intercept, flat)
        self.n_iter_, self.solver_, self.status_ = result.n_iter, result.solver, result.status

    def _set_linear(self, coef: np.ndarray, intercept: np.ndarray, flat: bool) -> None:
        intercept = intercept.astype(coef.dtype)
        self.coef_ = coef[:, 0] if flat else np.ascontiguousarray(coef.T)
        self.intercept_ = intercept[0] if flat else intercept

    def _warn_unless_done(self, result: Result, tol: float | None) -> None:
        if result.advice:
            above = "before the objective settled" if tol is None else f"above tol={tol:.2g}"
            warn(
                f"Conjugate gradients stopped after {result.n_iter} iterations with status {result.status!r} and a "
                f"relative residual of {result.residuals[-1].max():.2g}, {above}. {result.advice}",
                ConvergenceWarning,
            )

    def _linear(self, X: Design) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(self._check_design(X) @ self.coef_.T) + self.intercept_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def holds_rows_out(estimator: CGRidgeBase) -> str | None:
    """Return the reason why `partial_fit` is unavailable, or None."""
    for name, neutral in (("alphas", None), ("early_stopping", False), ("probability", False)):
        if getattr(estimator, name) is not neutral:
            return f"{name} needs a validation set, which partial_fit does not have; set it to {neutral}."
    if estimator.n_posterior_samples is not None:
        return "partial_fit does not support n_posterior_samples; set it to None."
    return None


def _require_transpose(Z: LinearOperator) -> None:
    """Raise a ValueError for an operator without products with its transpose, which shows only in a call."""
    if hasattr(Z, "gram_diagonal"):
        return
    try:
        Z.rmatvec(np.zeros(Z.shape[0]))
    except NotImplementedError as error:
        raise ValueError("X must be a LinearOperator with rmatvec: the solver needs products with X.T.") from error
