"""Decisions of ridge models on a validation set: the penalty of a path, and early stopping."""

import numbers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from scipy.sparse.linalg import LinearOperator

from binfeat._common.array_types import ArrayLike
from binfeat._common.held_out import scorer_of, splits
from binfeat._common.progress import Progress
from binfeat._rows.rows import ProcessRows, Rows
from binfeat.linear.result import Iterate, Result, SolveInterrupted, SolverOptions, coefficients
from binfeat.linear.solve import solve_linear, solve_once

_PATIENCE = 5  # iterations without a better validation score before early stopping


def check_alpha(alpha: ArrayLike, n_targets: int) -> np.ndarray:
    """Return the penalty of each target; ValueError if it is not finite, negative, or of the wrong length."""
    penalties = np.asarray(alpha)
    if penalties.dtype.kind not in "iuf" or penalties.shape not in ((), (n_targets,)):
        raise ValueError(
            f"alpha must be a number or one number per target, {n_targets}; got {alpha!r}. To select the best of "
            "several, pass them as alphas."
        )
    if not (np.isfinite(penalties).all() and (penalties >= 0).all()):
        raise ValueError(f"alpha must be finite and non-negative, got {alpha!r}.")
    return np.array(np.broadcast_to(penalties, n_targets), dtype=np.float64)


def check_alphas(alphas: ArrayLike | None) -> np.ndarray:
    """Check the penalties of a path; ValueError unless they are finite, non-negative numbers."""
    penalties = np.asarray(alphas)
    if penalties.dtype.kind not in "iuf" or penalties.ndim != 1 or penalties.size == 0:
        raise ValueError(f"alphas must be a sequence of at least one number, got {alphas!r}.")
    if not (np.isfinite(penalties).all() and (penalties >= 0).all()):
        raise ValueError(f"alphas must be finite and non-negative, got {alphas!r}.")
    return penalties.astype(np.float64)


class Splitter(Protocol):
    """A splitter of scikit-learn, which yields pairs of training and validation rows."""

    def split(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Iterator: ...


class HeldOutScore:
    """The score of coefficients on validation rows, with their weights if the scorer accepts weights."""

    def __init__(self, estimator: Any, rows: Rows, y: np.ndarray, weights: np.ndarray | None, flat: bool) -> None:
        self._estimator = type(estimator)(**{**estimator.get_params(deep=False), "cv": None})
        for name in ("n_features_in_", "classes_", "multilabel_"):
            if hasattr(estimator, name):
                setattr(self._estimator, name, getattr(estimator, name))
        self._scorer = scorer_of(estimator)
        self._weights = {} if weights is None or not _takes_weights(self._scorer) else {"sample_weight": weights}
        self._rows, self._y, self.flat = rows, y, flat

    def __call__(self, coef: np.ndarray, intercept: np.ndarray) -> float:
        self._estimator.__dict__.update(coefficients(coef, intercept, self.flat))
        Z = self._rows.design
        if self._estimator.probability:
            weights = cast(ProcessRows, self._rows).weights
            self._estimator._calibrate(np.asarray(Z @ coef, np.float64) + intercept, self._y, weights)
        return self._scorer(self._estimator, Z, self._y, **self._weights)


def _takes_weights(scorer: Callable[..., float]) -> bool:
    """Return True if a scorer, or the metric of a scorer of scikit-learn, accepts `sample_weight`."""
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters


HeldOutParts: TypeAlias = Iterator[tuple[Rows, HeldOutScore]]  # training rows, and the score on the validation rows


@dataclass(eq=False)
class Validation:
    """The validation sets of a fit, split on demand by the estimator's `cv`."""

    estimator: Any
    rows: Rows
    y: np.ndarray
    groups: ArrayLike | None
    weights: np.ndarray | None  # (n_rows, 1), given by the caller
    flat: bool  # True for one-dimensional predictions

    @cached_property
    def splits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Increasing numbers of training rows and of validation rows with positive weight, of each split.

        ValueError if rows of X cannot be selected, X has a single row, or all weights of a validation set are 0.
        """
        if self.rows.shape[0] == 1:
            name = type(self.estimator).__name__
            raise ValueError(f"{name} with alphas or early_stopping needs at least 2 rows, got n_samples=1.")
        if isinstance(self.rows.design, LinearOperator) and not hasattr(self.rows.design, "take"):
            raise ValueError(
                "alphas, early_stopping and probability need a validation set, but rows of a LinearOperator cannot be "
                "selected. Pass a BinMatrix, CSR or an array, or set alphas=None, early_stopping=False and "
                "probability=False."
            )
        found = []
        for train, held_out in splits(self.estimator, self.rows.shape[0], self.y, self.groups):
            if self.weights is not None:
                held_out = held_out[self.weights[held_out, 0] > 0]
            if not held_out.size:
                raise ValueError("sample_weight is zero for all validation rows. Change it or cv.")
            found.append((np.sort(train), np.sort(held_out)))
        return found

    def parts(self) -> HeldOutParts:
        for train, held_out in self.splits:
            own = None if self.weights is None else self.weights[held_out, 0]
            score = HeldOutScore(self.estimator, self.rows.take(held_out), self.y[held_out], own, self.flat)
            yield self.rows.take(train), score


def n_solves(estimator: Any) -> int | None:
    """Return the number of solves (paths on all splits, and the last solve); None without paths or if unknown."""
    n_parts = 1 if estimator.cv is None else estimator.cv
    if estimator.alphas is None or not isinstance(n_parts, numbers.Integral):
        return None
    return int(n_parts) * np.size(estimator.alphas) + 1


def keep(estimator: Any, result: Result, alpha: float | np.ndarray, flat: bool) -> None:
    """Set the attributes of a solve, and its penalty."""
    estimator.__dict__.update(result.attributes(flat), alpha_=alpha)


@contextmanager
def kept_if_interrupted(estimator: Any, alpha: float | np.ndarray, flat: bool) -> Iterator[None]:
    """Set the attributes of a solve that Ctrl-C interrupts."""
    try:
        yield
    except SolveInterrupted as error:
        keep(estimator, error.result, alpha, flat)
        raise


def choose_alpha(estimator: Any, parts: HeldOutParts, options: SolverOptions, progress: Progress) -> float:
    """Return the penalty in `alphas` with the best mean validation score, and set `path_scores_`.

    The estimator keeps the latest result until the next one, in case of Ctrl-C.
    """
    estimator.alphas_ = alphas = check_alphas(estimator.alphas)
    falling, scores = np.argsort(-alphas, kind="stable"), []
    for train, score in parts:
        scores.append(np.full(alphas.size, np.nan))
        path = solve_linear(train, alphas[falling], options)
        for place in falling:
            alpha = float(alphas[place])
            with progress.stage(f"penalty {alpha:g}"), kept_if_interrupted(estimator, alpha, score.flat):
                result = next(path, None)
            if result is None:  # a callback has stopped an earlier solve
                break
            keep(estimator, replace(result, status="interrupted"), alpha, score.flat)
            scores[-1][place] = score(result.solution, result.intercept)
    estimator.path_scores_ = np.array(scores)
    means = estimator.path_scores_.mean(axis=0)
    if np.isnan(means).all():
        split = int(np.isnan(estimator.path_scores_).all(axis=1).argmax())
        raise ValueError(
            f"scoring returned no number for the validation rows of split {split}. R^2, for example, needs two rows."
        )
    return alphas[np.nanargmax(means)]


class EarlyStop:
    """Callback that stops a solve when the validation score no longer rises."""

    def __init__(self, score: HeldOutScore, callback: Callable[[Iterate], bool] | None) -> None:
        self._score, self._callback = score, callback
        self._best_score, self._since = -np.inf, 0
        self._best: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, state: Iterate) -> bool:
        coef, intercept = state.solution, state.intercept
        score = self._score(coef, intercept)
        self._since += 1
        if np.isnan(score):
            raise ValueError("scoring returned no number for the validation rows, so early_stopping is impossible.")
        if score > self._best_score:
            self._best_score, self._best, self._since = score, (coef.copy(), intercept), 0
        stopped = self._callback is not None and self._callback(state)
        return stopped or self._since >= _PATIENCE

    def best(self, result: Result) -> Result:
        if self._since >= _PATIENCE and result.status == "stopped":
            result = replace(result, status="early_stopped")
        if self._best is None:
            return result
        return replace(result, solution=self._best[0], intercept=self._best[1])


def solve_until_no_better(
    parts: HeldOutParts, alpha: np.ndarray, options: SolverOptions, start: Result | None
) -> Result:
    """Return the best iterate of a solve on training rows that stops when the validation score no longer rises."""
    train, score = next(parts)
    watch = EarlyStop(score, options.callback)
    options = replace(options, callback=watch, solver="cg", targets_at_a_time=train.n_targets)
    try:
        result = solve_once(train, alpha, options, start)
    except SolveInterrupted as error:
        raise SolveInterrupted(watch.best(error.result)) from error
    return watch.best(result)
