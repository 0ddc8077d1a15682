"""What the ridge machines share: checks, the choice of a penalty, stopping, and the linear function."""

import numbers
import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from binfeat._binning.bin_matrix import BinMatrix
from binfeat._common.persistence import Persistent
from binfeat._common.progress import Progress
from binfeat._common.validation import (
    callers_level,
    check_flag,
    check_integer,
    check_moderate,
    check_real,
    checked_array,
    checked_rows,
    require_y,
)
from binfeat._linear.alpha_choice import EarlyStop, choose_alpha, held_out_parts
from binfeat._linear.incremental import KeptRows, kept_of
from binfeat._linear.result import Result, SolveInterrupted, SolverOptions
from binfeat._linear.saved import check_ridge
from binfeat._linear.solve import ridge_system, solve_ridge
from binfeat._rows.sources import Survey, check_alone, is_source
from binfeat._rows.streamed import StreamedFeatures


class CGRidgeBase(Persistent, CallbackSupportMixin, BaseEstimator):
    """Base of `CGRidge` and `CGRidgeClassifier`."""

    _check_state = staticmethod(check_ridge)

    def _read(self, X, y, sample_weight):
        """A source as the operator of its rows; targets and weights that are given, or that came with X."""
        if is_source(X):
            check_alone(y, sample_weight)
            survey = Survey(X, self._check_design)
            X = StreamedFeatures.of(survey, lambda rows: rows, survey.n_inputs, dense=not survey.sparse)
        if y is None and sample_weight is None and isinstance(X, LinearOperator):
            return X, getattr(X, "y", None), getattr(X, "sample_weight", None)
        return X, y, sample_weight

    def _check_design(self, Z, reset=False):
        """Z as it is when it is an operator, else as a checked array."""
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

    @property
    def _needs_rows(self):
        """Whether a solve takes the rows, not only sums of them."""
        return False

    def _require(self, y):
        return require_y(type(self).__name__, y)

    def _check_numbers(self, y):
        y = checked_array(self._require(y), dtype=np.float64, ensure_2d=False, input_name="y")
        check_moderate(y, "y")
        return y

    def _check_alpha(self, n_targets):
        alpha = np.asarray(self.alpha)
        if alpha.dtype.kind not in "iuf" or alpha.ndim > 1 or (alpha.ndim == 1 and alpha.shape != (n_targets,)):
            raise ValueError(
                f"alpha must be a number or one number per target, {n_targets}; got {self.alpha!r}. To choose the best "
                "of several, give them as alphas."
            )
        if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
            raise ValueError(f"alpha must be finite and non-negative, got {self.alpha!r}.")
        return np.array(np.broadcast_to(alpha, n_targets), dtype=np.float64)

    def _check_alphas(self):
        alphas = np.asarray(self.alphas)
        if alphas.dtype.kind not in "iuf" or alphas.ndim != 1 or alphas.size == 0:
            raise ValueError(f"alphas must be a sequence of at least one number, got {self.alphas!r}.")
        if not (np.isfinite(alphas).all() and (alphas >= 0).all()):
            raise ValueError(f"alphas must be finite and non-negative, got {self.alphas!r}.")
        return alphas.astype(np.float64)

    @np.errstate(over="ignore", invalid="ignore")  # what overflows is refused in the end
    def _fit_linear(self, X, rows, y, groups=None, *, flat=False):
        """Fit the coefficients to the targets of rows that stand for y; `flat` is for y of one dimension."""
        options = self._options()
        start = self._earlier_fit(rows)
        self.__dict__.pop("_kept", None)
        progress = Progress(self, X, y)
        progress.begin(self._n_stages())
        options = replace(options, callback=lambda state: not progress.step("iteration"))
        try:
            if self.alphas is None:
                alpha = self._check_alpha(rows.n_targets)
            else:
                alpha = np.full(rows.n_targets, choose_alpha(self, rows, y, groups, options, flat, progress))
            self.alpha_ = alpha if np.ndim(self.alpha) and self.alphas is None else float(alpha[0])
            with nullcontext() if self.alphas is None else progress.stage("solution"):
                if self.early_stopping:
                    result = self._solve_until_no_better(rows, y, groups, alpha, options, start, flat)
                else:
                    result = self._solve(rows, alpha, options, start)
        except SolveInterrupted as error:
            self._keep(error.result, flat)
            raise
        self._keep(result, flat)
        progress.end()
        self._warn_unless_done(result, options.tol)

    def _n_stages(self):
        """Solves of a path on each part of the rows, and one more; None if there are no stages, or it is not known."""
        n_parts = 1 if self.cv is None else self.cv
        if self.alphas is None or not isinstance(n_parts, numbers.Integral):
            return None
        return int(n_parts) * np.size(self.alphas) + 1

    def _options(self):
        """Checked options of the solver."""
        for name in ("fit_intercept", "early_stopping", "warm_start"):
            check_flag(getattr(self, name), name)
        if self.alphas is not None and self.early_stopping:
            raise ValueError("early_stopping=True stops a single solve; with alphas set it to False.")
        return SolverOptions(
            tol=min(check_real(self.tol, "tol", minimum=0.0), 1.0),
            max_iter=check_integer(self.max_iter, "max_iter", 1),
            fit_intercept=self.fit_intercept,
        )

    def _earlier_fit(self, rows):
        """The machine of an earlier fit to start from, or None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        last, wanted = self._last_result(), (rows.shape[1], rows.n_targets)
        if last.solution.shape != wanted:
            raise ValueError(
                f"warm_start=True needs the features and targets of the earlier fit, {last.solution.shape}; "
                f"got {wanted}."
            )
        return last

    def _last_result(self):
        """What the last solve found, to start from."""
        coef, intercept = np.atleast_2d(self.coef_).T, np.atleast_1d(self.intercept_).astype(np.float64)
        return Result(coef, intercept, 1, np.empty((0, 0)), "converged")

    def _check_next(self, X):
        """Features of some more rows in memory, and whether they are the first."""
        first = not hasattr(self, "_kept")
        if is_source(X) or (isinstance(X, LinearOperator) and not isinstance(X, BinMatrix)):
            raise TypeError(
                f"partial_fit takes rows in memory, as an array, a sparse matrix or codes; got {type(X).__name__}."
            )
        if first and hasattr(self, "coef_"):
            warnings.warn(
                "fit keeps no rows, so that partial_fit begins anew with these rows. To add rows to others, give them "
                "to partial_fit too.",
                UserWarning,
                stacklevel=callers_level(),
            )
        return self._check_design(X, reset=first), first

    @np.errstate(over="ignore", invalid="ignore")
    def _fit_more(self, Z, Y, weights, first, flat=False):
        """Solve for these rows and all of the earlier calls, from where the last solve ended."""
        options, start = self._options(), None
        if first:
            kept: Any = KeptRows.first(Z, Y, weights)
        else:
            start = self._last_result()
            kept = kept_of(self._kept, self.n_features_in_, self.coef_.dtype, getattr(Z, "n_jobs", None))
            if flat != (self.coef_.ndim == 1) or Y.shape[1] != kept.to_solve.n_targets:
                raise ValueError("y must have the targets of the earlier calls of partial_fit, and has others.")
            kept = kept.joined(Z, Y, weights)
        kept = kept.settled(options.fit_intercept, self._needs_rows)
        alpha = self._check_alpha(Y.shape[1])
        try:
            result = self._solve(kept.to_solve, alpha, options, start)
        except SolveInterrupted as error:
            self._keep_all(kept, alpha, error.result, flat)
            raise
        self._keep_all(kept, alpha, result, flat)
        self._warn_unless_done(result, options.tol)

    def _keep_all(self, kept, alpha, result, flat):
        self._kept = kept.arrays()
        self.alpha_ = alpha if np.ndim(self.alpha) else float(alpha[0])
        self._keep(result, flat)

    def _solve(self, rows, alpha, options, start):
        """One solve for given penalties, one for each target."""
        system = ridge_system(rows, 1, options)
        return next(system.solve([alpha], options, None if start is None else start.solution))

    def _solve_path(self, rows, alphas, options):
        """Results for falling penalties."""
        return solve_ridge(rows, alphas, options)

    def _solve_until_no_better(self, rows, y, groups, alpha, options, start, flat):
        """A solve on some of the rows that ends when the others' score no longer rises; the best iterate."""
        train, score = next(held_out_parts(self, rows, y, groups, flat))
        watch = EarlyStop(score, options.callback)
        try:
            result = self._solve(train, alpha, replace(options, callback=watch, solver="cg"), start)
        except SolveInterrupted as error:
            raise SolveInterrupted(watch.best(error.result)) from error
        return watch.best(result)

    def _keep(self, result, flat):
        """Set the attributes that tell of a solve."""
        self._set_linear(result.solution, result.intercept, flat)
        self.n_iter_, self.solver_, self.status_ = result.n_iter, result.solver, result.status

    def _set_linear(self, coef, intercept, flat):
        intercept = intercept.astype(coef.dtype)
        self.coef_ = coef[:, 0] if flat else np.ascontiguousarray(coef.T)
        self.intercept_ = intercept[0] if flat else intercept

    def _warn_unless_done(self, result, tol):
        if result.advice:
            warnings.warn(
                f"Conjugate gradients stopped after {result.n_iter} iterations with status {result.status!r} and a "
                f"relative residual of {result.residuals[-1].max():.2g}, above tol={tol:.2g}. {result.advice}",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )

    def _linear(self, X):
        check_is_fitted(self)
        X = self._check_design(X)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def holds_rows_out(estimator):
    """Why `partial_fit` is not to be had, or None."""
    for name, neutral in (("alphas", None), ("early_stopping", False)):
        if getattr(estimator, name) is not neutral:
            return f"{name} holds rows out, which partial_fit cannot; set it to {neutral}."
    if getattr(estimator, "n_posterior_samples", None) is not None:
        return "n_posterior_samples are drawn by fit, and not by partial_fit; set it to None."
    return None


def _require_transpose(Z):
    """Refuse an operator that cannot multiply from the left, which shows only when it is asked to."""
    if hasattr(Z, "gram_diagonal"):
        return
    try:
        Z.rmatvec(np.zeros(Z.shape[0]))
    except NotImplementedError as error:
        raise ValueError("X must be a LinearOperator with rmatvec: the solver needs products with X.T.") from error
