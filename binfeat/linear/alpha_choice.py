"""What ridge machines choose on held-out rows: a penalty from a path, and when a solve may stop."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator
from sklearn.base import clone

from binfeat._common.held_out import scorer_of, splits
from binfeat._common.progress import Progress
from binfeat._rows.products import Features
from binfeat._rows.rows import Rows
from binfeat.linear.result import Iterate, Result, SolverOptions

if TYPE_CHECKING:
    from binfeat.linear.estimator import CGRidgeBase

_PATIENCE = 5  # iterations without a better held-out score before early stopping


def check_alpha(alpha: ArrayLike, n_targets: int) -> np.ndarray:
    """The penalty of each target; ValueError if it is not finite, negative, or of another number of targets."""
    penalties = np.asarray(alpha)
    if penalties.dtype.kind not in "iuf" or penalties.shape not in ((), (n_targets,)):
        raise ValueError(
            f"alpha must be a number or one number per target, {n_targets}; got {alpha!r}. To choose the best of "
            "several, give them as alphas."
        )
    if not (np.isfinite(penalties).all() and (penalties >= 0).all()):
        raise ValueError(f"alpha must be finite and non-negative, got {alpha!r}.")
    return np.array(np.broadcast_to(penalties, n_targets), dtype=np.float64)


def check_alphas(alphas: ArrayLike | None) -> np.ndarray:
    """Penalties to choose from; ValueError if they are no sequence of finite and non-negative numbers."""
    penalties = np.asarray(alphas)
    if penalties.dtype.kind not in "iuf" or penalties.ndim != 1 or penalties.size == 0:
        raise ValueError(f"alphas must be a sequence of at least one number, got {alphas!r}.")
    if not (np.isfinite(penalties).all() and (penalties >= 0).all()):
        raise ValueError(f"alphas must be finite and non-negative, got {alphas!r}.")
    return penalties.astype(np.float64)


class Splitter(Protocol):
    """A splitter of scikit-learn, for pairs of training and held-out rows."""

    def split(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Iterator: ...


class HeldOutScore:
    """Score of coefficients on held-out rows."""

    def __init__(self, estimator: "CGRidgeBase", Z: Features, y: np.ndarray, flat: bool) -> None:
        self._machine = clone(estimator)
        for name in ("n_features_in_", "classes_", "multilabel_"):
            if hasattr(estimator, name):
                setattr(self._machine, name, getattr(estimator, name))
        self._scorer = scorer_of(estimator)
        self._Z, self._y, self._flat = Z, y, flat

    def __call__(self, coef: np.ndarray, intercept: np.ndarray) -> float:
        self._machine._set_linear(coef, intercept, self._flat)
        return self._scorer(self._machine, self._Z, self._y)


HeldOutParts: TypeAlias = Iterator[tuple[Rows, HeldOutScore]]  # rows to train on, and the score on the other rows


def held_out_parts(
    estimator: "CGRidgeBase", rows: Rows, y: np.ndarray, groups: ArrayLike | None, flat: bool
) -> HeldOutParts:
    """Rows to train on and scores on held-out rows, split when they are asked for; `flat` is for one dimension of y."""
    for train, held_out in split_rows(estimator, rows, y, groups):
        yield rows.take(train), HeldOutScore(estimator, rows.take(held_out).design, y[held_out], flat)


def split_rows(
    estimator: "CGRidgeBase", rows: Rows, y: np.ndarray, groups: ArrayLike | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of rising numbers of training rows and of held-out rows; ValueError if X has no rows to pick."""
    if isinstance(rows.design, LinearOperator) and not hasattr(rows.design, "take"):
        raise ValueError(
            "alphas, early_stopping and probability hold out rows, and X is a bare LinearOperator, which has none to "
            "pick. Pass a BinMatrix, CSR or an array, or set a single alpha."
        )
    for train, held_out in splits(estimator, rows.shape[0], y, groups):
        yield np.sort(train), np.sort(held_out)


def choose_alpha(estimator: "CGRidgeBase", parts: HeldOutParts, options: SolverOptions, progress: Progress) -> float:
    """The penalty among the estimator's `alphas` with the best mean score on held-out rows; sets `path_scores_`."""
    estimator.alphas_ = alphas = check_alphas(estimator.alphas)
    falling, scores = np.argsort(-alphas, kind="stable"), []
    for train, score in parts:
        scores.append(np.full(alphas.size, np.nan))
        path = estimator._solve_path(train, alphas[falling], options)
        for place in falling:
            estimator.alpha_ = float(alphas[place])  # kept if Ctrl-C ends this solve
            with progress.stage(f"penalty {alphas[place]:g}"):
                result = next(path, None)
            if result is None:  # a callback stopped the solve before
                break
            scores[-1][place] = score(result.solution, result.intercept)
    estimator.path_scores_ = np.array(scores)
    means = estimator.path_scores_.mean(axis=0)
    if np.isnan(means).all():
        split = int(np.isnan(estimator.path_scores_).all(axis=1).argmax())
        raise ValueError(f"scoring gave no number for the rows held out in split {split}; R^2 needs two rows, say.")
    return alphas[np.nanargmax(means)]


class EarlyStop:
    """Callback of a solve that also stops it when the score on held-out rows no longer rises."""

    def __init__(self, score: HeldOutScore, callback: Callable[[Iterate], bool] | None) -> None:
        self._score, self._callback = score, callback
        self._best_score, self._since = -np.inf, 0
        self._best: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, state: Iterate) -> bool:
        coef, intercept = state.solution, state.intercept
        score = self._score(coef, intercept)
        self._since += 1
        if np.isnan(score):
            raise ValueError("scoring gave no number for the rows held out, so that early_stopping has none to go by.")
        if score > self._best_score:
            self._best_score, self._best, self._since = score, (coef.copy(), intercept), 0
        stopped = self._callback is not None and self._callback(state)
        return stopped or self._since >= _PATIENCE

    def best(self, result: Result) -> Result:
        """The result with the best iterate in it."""
        if self._since >= _PATIENCE and result.status == "stopped":
            result = replace(result, status="early_stopped")
        if self._best is None:
            return result
        return replace(result, solution=self._best[0], intercept=self._best[1])
