"""Base class of the ridge models: the steps of a fit, and the linear function."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.callbacks import CallbackSupportMixin
from binfeat._common.fit_rollback import fit_method
from binfeat._common.persistence import Persistent
from binfeat._common.progress import Progress
from binfeat._common.validation import check_flag, check_integer, check_real, check_weights, float_dtype
from binfeat._rows.products import Design, Features
from binfeat._rows.rows import ProcessRows, Rows
from binfeat._rows.sources import Source
from binfeat.linear.alpha_choice import (
    Validation,
    check_alpha,
    choose_alpha,
    keep,
    kept_if_interrupted,
    n_solves,
    solve_until_no_better,
)
from binfeat.linear.compact_coef import compact
from binfeat.linear.design import check_design, read_design
from binfeat.linear.incremental import kept_with
from binfeat.linear.result import Result, SolverOptions
from binfeat.linear.saved import check_ridge
from binfeat.linear.solve import solve_once


class CGRidgeBase(Persistent, CallbackSupportMixin, BaseEstimator):
    alpha: ArrayLike
    alphas: ArrayLike | None
    fit_intercept: bool
    tol: float | None
    max_iter: int
    early_stopping: bool
    warm_start: bool
    n_posterior_samples: int | None = None  # a parameter of regressors
    loss: str = "squared_error"  # a parameter of classifiers
    probability: bool = False  # a parameter of classifiers

    alpha_: float | np.ndarray
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

    _of_some_fits: tuple[str, ...] = ("alphas_", "path_scores_")  # depend on parameters; the next fit removes them

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
            Non-negative, not all zero. Coefficients are the same for a row of weight 2 and for two equal rows. For
            `noise_variance_` of `CGRidge`, a weight is an inverse variance of the noise.
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
        self._options()
        Z, y, sample_weight = read_design(self, X, y, sample_weight)
        y, rows, flat = self._encode(Z, y, sample_weight)
        self._fit_linear(Z, rows, y, groups, check_weights(sample_weight, Z.shape[0]), flat)
        return self

    def _encode(self, Z: Features, y: Any, sample_weight: ArrayLike | None) -> tuple[np.ndarray, ProcessRows, bool]:
        """Return the checked targets or labels, rows with numeric targets, and True for one-dimensional predictions."""
        raise NotImplementedError

    def _check_rows(self, rows: Rows) -> None:
        """Raise ValueError if a parameter does not support these rows."""

    def _fit_attributes(self, rows: ProcessRows, y: np.ndarray, validation: Validation, flat: bool) -> None:
        """Learn attributes that depend on the coefficients, from rows of this process."""

    def _options(self) -> SolverOptions:
        """Return the options of the solver; an error for parameters that are out of range or inconsistent."""
        for name in ("fit_intercept", "early_stopping", "warm_start"):
            check_flag(getattr(self, name), name)
        if self.alphas is not None and self.early_stopping:
            raise ValueError("early_stopping=True does not support alphas; set early_stopping to False.")
        return SolverOptions(
            tol=None if self.tol is None else min(check_real(self.tol, "tol", minimum=0.0), 1.0),
            max_iter=check_integer(self.max_iter, "max_iter", 1),
            fit_intercept=self.fit_intercept,
            loss=self.loss,
        )

    def _fit_linear(
        self,
        X: Design,
        rows: Rows,
        y: np.ndarray | Any,
        groups: ArrayLike | None,
        weights: np.ndarray | None,
        flat: bool,
    ) -> None:
        """Fit the model to `rows` with targets that encode y.

        `weights` (n_rows, 1) are the `sample_weight` of the caller, without class weights; `Validation` uses them.
        """
        self._check_rows(rows)
        self._forget(*self._of_some_fits, "_kept")
        validation = Validation(self, rows, y, groups, weights, flat)
        self._fit_coefficients(rows, validation, Progress(self, X, y), flat)
        if isinstance(rows, ProcessRows) and self.status_ != "stopped":
            try:
                self._fit_attributes(rows, y, validation, flat)
            except KeyboardInterrupt:
                self.status_ = "interrupted"
                raise

    def _forget(self, *names: str) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    @np.errstate(over="ignore", invalid="ignore")  # an overflow raises an error at the end
    def _fit_coefficients(self, rows: Rows, validation: Validation, progress: Progress, flat: bool) -> None:
        options, start = self._options(), self._earlier_fit(rows)
        progress.begin(n_solves(self))
        options = replace(options, callback=lambda state: not progress.step("iteration"))
        if self.alphas is None:
            alpha = check_alpha(self.alpha, rows.n_targets)
        else:
            alpha = np.full(rows.n_targets, choose_alpha(self, validation.parts(), options, progress))
        stored = alpha if np.ndim(self.alpha) and self.alphas is None else float(alpha[0])
        stage = nullcontext() if self.alphas is None else progress.stage("solution")
        with stage, kept_if_interrupted(self, stored, flat):
            if self.early_stopping:
                result = solve_until_no_better(validation.parts(), alpha, options, start)
            else:
                result = solve_once(rows, alpha, options, start)
        keep(self, result, stored, flat)
        progress.end()
        result.warn_unless_done(options.tol)

    def _earlier_fit(self, rows: Rows) -> Result | None:
        """Return the result of an earlier fit as start, or None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        intercept = self.intercept_ if self.fit_intercept else np.zeros_like(self.intercept_)
        last, wanted = Result.of_attributes(self.coef_, intercept), (rows.shape[1], rows.n_targets)
        if last.solution.shape != wanted:
            raise ValueError(
                f"warm_start=True requires the features and targets of the earlier fit, {last.solution.shape}; "
                f"got {wanted}."
            )
        return replace(last, solution=last.solution.astype(float_dtype(rows.dtype), copy=False))

    @np.errstate(over="ignore", invalid="ignore")
    def _fit_more(self, rows: ProcessRows, flat: bool = False) -> None:
        """Solve for these rows and the rows of all earlier calls of `partial_fit`.

        The solver starts from 0, so that early stopping by `tol` gives the same result as `fit`. For more dense rows
        than columns, only sums are kept, unless the loss needs rows; their solution is exact.
        """
        options = self._options()
        self._forget(*self._of_some_fits)
        kept = kept_with(self, rows, flat).settled(options.fit_intercept, needs_rows=options.loss != "squared_error")
        alpha = check_alpha(self.alpha, rows.n_targets)
        self._kept, stored = kept.arrays(), alpha if np.ndim(self.alpha) else float(alpha[0])
        with kept_if_interrupted(self, stored, flat):
            result = solve_once(kept.to_solve, alpha, options)
        keep(self, result, stored, flat)
        result.warn_unless_done(options.tol)

    def _linear(self, X: Design) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(check_design(self, X) @ self.coef_.T) + self.intercept_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def is_set(value: object) -> bool:
    """Return True if a parameter, which may be an array, is neither None nor False."""
    return value is not None and not (isinstance(value, bool | np.bool_) and not value)


def holds_rows_out(estimator: CGRidgeBase) -> str | None:
    """Return the reason why `partial_fit` is unavailable, or None."""
    for name, neutral in (("alphas", None), ("early_stopping", False), ("probability", False)):
        if is_set(getattr(estimator, name)):
            return f"{name} needs a validation set, which partial_fit does not have; set it to {neutral}."
    if estimator.n_posterior_samples is not None:
        return "partial_fit does not support n_posterior_samples; set it to None."
    return None
