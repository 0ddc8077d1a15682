"""What the ridge machines share: checks, the choice of a penalty, stopping, and the linear function."""

import warnings

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from binfeat._common.held_out import scorer_of, splits
from binfeat._common.persistence import Persistent
from binfeat._common.validation import (
    callers_level,
    check_flag,
    check_integer,
    check_moderate,
    check_real,
    checked_array,
    checked_rows,
)
from binfeat._linear import cg
from binfeat._linear.gram import gram_pays, gram_system
from binfeat._linear.path import solve_path
from binfeat._linear.result import refuse_overflow
from binfeat._rows.products import RidgeSystem
from binfeat._rows.sources import Survey, is_source
from binfeat._rows.streamed import StreamedRows

_PATIENCE = 5  # iterations without a better held-out score before early stopping


class CGRidgeBase(Persistent, CallbackSupportMixin, BaseEstimator):
    """Base of `CGRidge` and `CGRidgeClassifier`."""

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

    def _read(self, X, y, sample_weight):
        """A source as the operator of its rows; targets and weights that came with it, or those that are given."""
        if is_source(X):
            if y is not None or sample_weight is not None:
                raise ValueError("y and sample_weight must be None for a source of blocks, which brings its own.")
            survey = Survey(X, self._check_design)
            X = StreamedRows.of(survey, lambda rows: rows, survey.n_inputs, dense=not survey.sparse)
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

    def _require(self, y):
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        return y

    def _check_numbers(self, y):
        y = checked_array(self._require(y), dtype=np.float64, ensure_2d=False, input_name="y")
        check_moderate(y, "y")
        return y

    def _check_alpha(self, n_targets):
        alpha = np.asarray(self.alpha)
        if alpha.dtype.kind not in "iuf" or alpha.ndim > 1 or (alpha.ndim == 1 and alpha.shape != (n_targets,)):
            raise ValueError(f"alpha must be a number or one number per target, {n_targets}; got {self.alpha!r}.")
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
    def _fit_linear(self, X, Z, y, Y, weights, groups):
        """Fit the coefficients to targets Y (n_rows, n_targets) that stand for y, and raise a delayed interrupt."""
        self._tol = min(check_real(self.tol, "tol", minimum=0.0), 1.0)
        self._max_iter = check_integer(self.max_iter, "max_iter", 1)
        for name in ("fit_intercept", "early_stopping", "warm_start"):
            check_flag(getattr(self, name), name)
        if self.alphas is not None and self.early_stopping:
            raise ValueError("early_stopping=True stops a single solve; with alphas set it to False.")
        start = self._earlier_coefficients(Z, Y)
        context = self._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=self, X=X, y=y)
        watch = _Watch(self, context)
        if self.alphas is None:
            alpha = self._check_alpha(Y.shape[1])
        else:
            alpha = np.full(Y.shape[1], self._choose_alpha(Z, y, Y, weights, groups, watch))
        self.alpha_ = alpha if np.ndim(self.alpha) and self.alphas is None else float(alpha[0])
        rows = slice(None)
        if self.early_stopping:
            rows, held_out = next(self._splits(Z, y, groups))
            watch.hold_out(Z[held_out], y[held_out])
            Z = Z[rows]
        weights = weights if weights is None else weights[rows]
        result, intercept = self._solve(Z, Y[rows], weights, alpha, watch.over(Z, Y[rows], weights), start)
        coef, intercept = watch.best(result.solution, intercept)
        refuse_overflow(coef.dtype, coef, intercept)
        self._set_linear(coef, intercept, y)
        self.n_iter_ = result.n_iter
        self.status_ = "early_stopped" if watch.stopped_early else result.status
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        self._warn_unless_done(result)

    def _earlier_coefficients(self, Z, Y):
        """Coefficients of an earlier fit to start from, or None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coef = np.atleast_2d(self.coef_).T
        if coef.shape != (Z.shape[1], Y.shape[1]):
            raise ValueError(
                f"warm_start=True needs the features and targets of the earlier fit, {coef.shape}; "
                f"got {(Z.shape[1], Y.shape[1])}."
            )
        return coef, np.atleast_1d(self.intercept_).astype(np.float64)

    def _solve(self, Z, Y, weights, alpha, monitor, start):
        """One solve of the ridge system: its result, and the intercepts."""
        if not self.early_stopping and gram_pays(Z, Y.shape[1], 1, self._tol):
            self.solver_ = "gram"
            return next(self._solve_by_gram(Z, Y, weights, [alpha]))
        self.solver_ = "cg"
        system = self._system(Z, weights)
        result = cg.solve(
            system.apply,
            system.right_side(Y),
            system.diagonal(),
            alpha,
            tol=self._tol,
            max_iter=self._max_iter,
            start=None if start is None else start[0],
            monitor=monitor,
        )
        return result, system.intercept(result.solution, Y)

    def _system(self, Z, weights):
        """The normal equations of these rows."""
        return RidgeSystem(Z, weights, self.fit_intercept)

    def _solve_path(self, Z, Y, weights, alphas, monitor):
        """Results and intercepts for falling penalties."""
        if gram_pays(Z, Y.shape[1], len(alphas), self._tol):
            yield from self._solve_by_gram(Z, Y, weights, [np.full(Y.shape[1], alpha) for alpha in alphas])
            return
        system = self._system(Z, weights)
        for result in solve_path(system, Y, alphas, tol=self._tol, max_iter=self._max_iter, monitor=monitor):
            yield result, system.intercept(result.solution, Y)

    def _solve_by_gram(self, Z, Y, weights, alphas):
        system = self._gram_system(Z, Y, weights)
        for result in system.solve(alphas):
            yield result, system.intercept(result.solution)

    def _gram_system(self, Z, Y, weights):
        """The same from the Gram matrix."""
        return gram_system(Z, Y, weights, self.fit_intercept)

    def _choose_alpha(self, Z, y, Y, weights, groups, watch):
        """The penalty with the best mean score on held-out rows."""
        self.alphas_ = self._check_alphas()
        falling = np.argsort(-self.alphas_, kind="stable")
        scores = []
        for rows, held_out in self._splits(Z, y, groups):
            Z_rows, own = Z[rows], None if weights is None else weights[rows]
            scorer = _Scorer(self, Z[held_out], y[held_out])
            path = self._solve_path(Z_rows, Y[rows], own, self.alphas_[falling], watch.progress)
            scores.append(np.full(self.alphas_.size, np.nan))
            for place, (result, intercept) in zip(falling, path, strict=False):
                scores[-1][place] = scorer(result.solution, intercept)
                if result.status == "interrupted":
                    self._set_linear(result.solution, intercept, y)
                    self.n_iter_, self.alpha_, self.status_ = result.n_iter, self.alphas_[place], result.status
                    raise KeyboardInterrupt
        self.path_scores_ = np.array(scores)
        return self.alphas_[np.nanargmax(self.path_scores_.mean(axis=0))]

    def _splits(self, Z, y, groups):
        """Pairs of training and held-out rows."""
        if isinstance(Z, LinearOperator) and not hasattr(Z, "take"):
            raise ValueError(
                "alphas and early_stopping hold out rows, and a bare LinearOperator has none to pick; "
                "give a BinMatrix, CSR or an array, or set a single alpha."
            )
        parts = splits(self, Z.shape[0], y, groups)
        if not isinstance(Z, StreamedRows):
            return parts
        return (tuple(map(np.sort, pair)) for pair in parts)

    def _warn_unless_done(self, result):
        if result.advice:
            warnings.warn(
                f"Conjugate gradients stopped after {result.n_iter} iterations with status {result.status!r} and a "
                f"relative residual of {result.residuals[-1].max():.2g}, above tol={self._tol:.2g}. {result.advice}",
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


def _require_transpose(Z):
    """Refuse an operator that cannot multiply from the left, which shows only when it is asked to."""
    if hasattr(Z, "gram_diagonal"):
        return
    try:
        Z.rmatvec(np.zeros(Z.shape[0]))
    except NotImplementedError as error:
        raise ValueError("X must be a LinearOperator with rmatvec: the solver needs products with X.T.") from error


class _Scorer:
    """Score of coefficients on held-out rows."""

    def __init__(self, estimator, Z, y):
        self._machine = clone(estimator)
        for name in ("n_features_in_", "classes_"):
            if hasattr(estimator, name):
                setattr(self._machine, name, getattr(estimator, name))
        self._scorer = scorer_of(estimator)
        self._Z, self._y = Z, y

    def __call__(self, coef, intercept):
        self._machine._set_linear(coef, intercept, self._y)
        return self._scorer(self._machine, self._Z, self._y)


class _Watch:
    """Follows a fit: tells callbacks of every iteration, and stops it when held-out rows say so."""

    def __init__(self, estimator, context):
        self._estimator, self._context = estimator, context
        self._scorer = None
        self._best_score, self._best, self._since = -np.inf, None, 0
        self.stopped_early = False

    def hold_out(self, Z, y):
        self._scorer = _Scorer(self._estimator, Z, y)

    def progress(self, state):
        """Monitor that only tells callbacks; True when one of them asks to stop."""
        task = self._context.subcontext(task_name="iteration").call_on_fit_task_begin(estimator=self._estimator)
        return task.call_on_fit_task_end(estimator=self._estimator)

    def over(self, Z, Y, weights):
        """Monitor of a solve on these rows."""
        if self._scorer is None:
            return self.progress
        system = self._estimator._system(Z, weights)

        def monitor(state):
            coef = state.solution
            self._note(coef, system.intercept(coef, Y))
            self.stopped_early = self._since >= _PATIENCE
            return self.progress(state) or self.stopped_early

        return monitor

    def _note(self, coef, intercept):
        score = self._scorer(coef, intercept)
        self._since += 1
        if score > self._best_score:
            self._best_score, self._best, self._since = score, (coef.copy(), intercept), 0

    def best(self, coef, intercept):
        """The best iterate on held-out rows, or the given one where none were held out."""
        return (coef, intercept) if self._best is None else self._best
