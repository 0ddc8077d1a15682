"""Losses of labels with bounded curvature, minimized over the coefficients of a kernel matrix.

Targets Y are -1 and 1, scores S like them, both (n_rows, n_targets). Minimised is ``sum_i v_i l_i + alpha |w|^2 / 2``,
with l half the loss of a row, so that the derivative of a square would be the residual with the sign changed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_softmax, softmax

from binfeat._common.labels import AnyLabels, LabelColumns
from binfeat.length_scales.leave_one_out import Root, Solve, Weights, residuals_by

_MEMORY = 10  # steps that directions are made of
_FACTORS, _MOST = 8, 20  # and steps with each of them
_ENOUGH = 1e-4  # of the objective, that a step is expected to gain when steps end
_SUFFICIENT = 1e-4  # a line search must reach this share of the linear prediction
_SHORTEST = 1e-6  # part of a step
_MOST_STEP = 4.0  # maximum step of a score; curvatures of distant left-out rows are nearly 0
_LEAST_CURVATURE = 1e-6

Factored = Callable[[float, np.ndarray], tuple[Solve, float]]  # K + 1 1' + alpha / weights, and the alpha that it took


class BoundedLoss(ABC):
    """A convex loss of labels by their scores."""

    bound: ClassVar[float]  # of curvatures

    @abstractmethod
    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the reported loss, (n_rows,): the mean over independent labels."""

    @abstractmethod
    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the minimized loss, (n_rows,)."""

    @abstractmethod
    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Derivatives of the halves by the scores, with the sign changed."""

    @abstractmethod
    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Second derivatives of the halves, (n_rows, n_targets), or (n_rows, 1) about the same of all targets."""


class LogLoss(BoundedLoss):
    """Logistic loss of two classes, or of independent labels; a score s has the log-odds 2 s."""

    bound = 0.5

    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -2.0 * Y * S).mean(axis=1)

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -2.0 * Y * S).sum(axis=1) / 2

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return Y * expit(-2.0 * Y * S)

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return 2 * expit(2.0 * S) * expit(-2.0 * S)


class SoftmaxLoss(BoundedLoss):
    """Softmax loss of three or more classes; scores are log-odds.

    The curvature ``diag(p) - p p'`` is at most ``(I - 1 1' / C) / 2`` (Boehning 1992), which is a half for scores that
    sum to 0, as those of all kernel models do. Its mean, for such scores, represents it where rows are left out.
    """

    bound = 0.5

    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return self.halves(Y, S)

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return -np.where(Y > 0, log_softmax(S, axis=1), 0.0).sum(axis=1)

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return (Y > 0) - softmax(S, axis=1)

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        p = softmax(S, axis=1)
        return (p * (1 - p)).sum(axis=1, keepdims=True) / (Y.shape[1] - 1)


class SquaredHinge(BoundedLoss):
    """The square of what a score lacks to its target, 0 beyond it: of every class against the others."""

    bound = 1.0

    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return (self.pulls(Y, S) ** 2).mean(axis=1)

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return (self.pulls(Y, S) ** 2).sum(axis=1) / 2

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return Y * np.maximum(0.0, 1.0 - Y * S)

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return (Y * S < 1.0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ColumnsLoss(BoundedLoss):
    """The sum of the losses of several columns of labels with concatenated targets."""

    bound = 0.5
    columns: list[tuple[slice, BoundedLoss]]  # targets of each, and their loss

    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.mean([loss(Y[:, own], S[:, own]) for own, loss in self.columns], axis=0)

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.sum([loss.halves(Y[:, own], S[:, own]) for own, loss in self.columns], axis=0)

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.hstack([loss.pulls(Y[:, own], S[:, own]) for own, loss in self.columns])

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        parts = [(S[:, own], loss.curvatures(Y[:, own], S[:, own])) for own, loss in self.columns]
        return np.hstack([np.broadcast_to(curvatures, scores.shape) for scores, curvatures in parts])


BOUNDED_LOSSES = "log", "squared_hinge"


def bounded_loss(name: str, labels: AnyLabels) -> BoundedLoss:
    """The loss of a name, for the targets of labels."""
    if name == "squared_hinge":
        return SquaredHinge()
    if isinstance(labels, LabelColumns):
        losses = [bounded_loss(name, own) for own in labels.columns]
        return ColumnsLoss(list(zip(labels.places, losses, strict=True)))
    return LogLoss() if labels.n_exclusive == 2 else SoftmaxLoss()


@dataclass(frozen=True, eq=False)
class Minimum:
    """Coefficients of the kernel matrix, and scores of its rows, both (n_rows, n_targets)."""

    coef: np.ndarray
    scores: np.ndarray
    gain: float  # that one more step promises, by the objective


def minimise(
    loss: BoundedLoss, factored: Factored, alpha: float, weights: Weights, Y: np.ndarray
) -> tuple[Minimum, float]:
    """The minimum, and the alpha that it took: quasi-Newton steps from the bound of the curvature.

    One factor serves all targets and many steps, those of L-BFGS (Nocedal 1980), in coefficients c: with g those of the
    gradient, ``alpha c - v pulls``, and curvatures h, the step is ``r = (K + 1 1' + alpha / (h v))^-1 g / (h v)`` at
    first, and moves scores by ``(g - alpha r) / (h v)``. So no product with K is needed. Where this many steps are not
    enough, as with small penalties, curvatures are those that have been reached.
    """
    v = np.ones((len(Y), 1)) if weights is None else weights[:, np.newaxis]
    curved, now = np.full((len(Y), 1), loss.bound), Minimum(np.zeros(Y.shape), np.zeros(Y.shape), np.inf)
    for _ in range(_FACTORS):
        # An alpha of the bound's size: what a factor needs at least, is what all of them have.
        solve, raised = factored(alpha / loss.bound, (v * curved / loss.bound)[:, 0])
        alpha = raised * loss.bound
        now = _steps(loss, solve, alpha, v, v * curved, Y, now)
        if now.gain < _ENOUGH:
            break
        curved = working_squares(loss, Y, now.scores)[1].mean(axis=1, keepdims=True)
    return now, alpha


def _steps(
    loss: BoundedLoss, solve: Solve, alpha: float, v: np.ndarray, curved: np.ndarray, Y: np.ndarray, now: Minimum
) -> Minimum:
    """Steps with one factor."""
    coef, scores, gain, known = now.coef, now.scores, now.gain, list[_Change]()
    objective, gradient = _objective(loss, alpha, v, Y, coef, scores), alpha * coef - v * loss.pulls(Y, scores)
    for _ in range(_MOST):
        step, change = _direction(solve, known, gradient, alpha, curved)
        slope, length = float((change * gradient).sum()), 1.0
        gain = slope / max(objective, np.finfo(float).tiny)
        if gain < _ENOUGH:
            break
        while length > _SHORTEST:
            moved = coef - length * step, scores - length * change
            after = _objective(loss, alpha, v, Y, *moved)
            if after <= objective - _SUFFICIENT * length * slope:
                break
            length /= 2
        else:
            break
        before = coef, scores, gradient
        coef, scores, objective = *moved, after
        gradient = alpha * coef - v * loss.pulls(Y, scores)
        known = [*known, _Change(coef - before[0], scores - before[1], gradient - before[2])][-_MEMORY:]
    return Minimum(coef, scores, gain)


@dataclass(frozen=True, eq=False)
class _Change:
    """By one step: of coefficients, scores, and coefficients of the gradient."""

    coef: np.ndarray
    scores: np.ndarray
    gradient: np.ndarray

    @property
    def curve(self) -> float:
        return float((self.scores * self.gradient).sum())


def _direction(
    solve: Solve, known: list[_Change], gradient: np.ndarray, alpha: float, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the step of coefficients and of scores, by two loops over stored steps (Nocedal 1980)."""
    q, parts = gradient, list[float]()
    for one in reversed(known):
        parts.append(float((one.scores * q).sum()) / one.curve)
        q = q - parts[-1] * one.gradient
    step = solve(q / bound)
    change = (q - alpha * step) / bound
    for one, part in zip(known, reversed(parts), strict=True):
        part -= float((one.gradient * change).sum()) / one.curve
        step, change = step + part * one.coef, change + part * one.scores
    return step, change


def _objective(
    loss: BoundedLoss, alpha: float, v: np.ndarray, Y: np.ndarray, coef: np.ndarray, scores: np.ndarray
) -> float:
    return float(v[:, 0] @ loss.halves(Y, scores) + alpha / 2 * (coef * scores).sum())


def working_squares(loss: BoundedLoss, Y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return steps of the scores, and curvatures: the quadratic approximation of the loss near a minimum."""
    pulls = loss.pulls(Y, scores)
    curvatures = loss.curvatures(Y, scores)
    least = np.abs(pulls) if curvatures.shape[1] > 1 else np.abs(pulls).max(axis=1, keepdims=True)
    curvatures = np.maximum(curvatures, np.maximum(least / _MOST_STEP, _LEAST_CURVATURE))
    return pulls / curvatures, curvatures


def left_out(
    loss: BoundedLoss,
    K: np.ndarray,
    alpha: float,
    weights: Weights,
    Y: np.ndarray,
    scores: np.ndarray,
    root: Root,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Return leave-one-out (or leave-one-group-out) scores of the quadratic approximation (Rad & Maleki 2020).

    To first order. Rows that pull at nothing, beyond a margin, tell nothing, but others of their group may.
    """
    steps, curvatures = working_squares(loss, Y, scores)
    known = curvatures if weights is None else weights[:, np.newaxis] * curvatures
    out = scores.copy()
    for columns, own in zip(np.array_split(np.arange(Y.shape[1]), known.shape[1]), known.T, strict=True):
        live = np.arange(len(Y)) if groups is not None else np.flatnonzero(steps[:, columns].any(axis=1))
        if live.size:
            B, _ = root(np.ascontiguousarray(K[np.ix_(live, live)]), alpha, own[live])
            coef = own[live, np.newaxis] * steps[np.ix_(live, columns)] / alpha
            out[np.ix_(live, columns)] += steps[np.ix_(live, columns)] - residuals_by(B, coef, groups)
    return out
