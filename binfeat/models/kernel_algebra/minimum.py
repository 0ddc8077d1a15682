"""Minimum of a loss over the coefficients of a kernel matrix, and its leave-one-out scores."""

from collections.abc import Callable

import numpy as np

from binfeat._common.held_out import even_folds
from binfeat.length_scales.leave_one_out import (
    Root,
    Solve,
    Weights,
    residuals,
    residuals_by,
    solver_by,
    times_square,
)
from binfeat.models.kernel_algebra.loss import Loss

_MEMORY = 10  # steps that directions are made of
_FACTORS, _MOST = 8, 20  # and steps with each of them
_ENOUGH = 1e-4  # of the objective, that a step is expected to gain when steps end
_SUFFICIENT = 1e-4  # a line search must reach this share of the linear prediction
_SHORTEST = 1e-6  # part of a step
_FEW_EVENTS, _FOLDS = 100, 5

_Change = tuple[np.ndarray, np.ndarray, np.ndarray]  # by a step: of coefficients, scores, and of the gradient's


def minimise(
    loss: Loss,
    factored: Callable[[float, np.ndarray], tuple[Solve, float]],  # K + 1 1' + alpha / weights, and the alpha it took
    alpha: float,
    weights: Weights,
    Y: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return the minimum by quasi-Newton steps from scores of 0.

    It consists of coefficients and scores of the rows, (n_rows, n_targets), the share of the objective that one more
    step promises to gain, and the alpha that the coefficients took.

    One factor serves all targets and many steps of L-BFGS (Nocedal 1980), in coefficients c. With the gradient
    ``g = alpha c - v pulls`` and curvatures h, the first step is ``r = (K + 1 1' + alpha / (h v))^-1 g / (h v)``. It
    moves scores by ``(g - alpha r) / (h v)``, so no product with K is needed. If these steps are not enough, as with
    small penalties, more follow with a factor for the curvatures at the current scores.
    """
    v = np.ones((len(Y), 1)) if weights is None else weights[:, np.newaxis]
    coef, scores, gain, scale = np.zeros(Y.shape), np.zeros(Y.shape), np.inf, 0.0
    for _ in range(_FACTORS):
        curved = v * loss.steps(Y, scores)[1].mean(axis=1, keepdims=True)
        scale = scale or float(curved.mean())  # the smallest alpha of a factor is for weights of mean 1
        solve, raised = factored(alpha / scale, curved[:, 0] / scale)
        alpha = raised * scale
        coef, scores, gain = _steps(loss, solve, alpha, v, curved, Y, coef, scores)
        if gain < _ENOUGH:
            break
    return coef, scores, gain, alpha


def _steps(
    loss: Loss,
    solve: Solve,
    alpha: float,
    v: np.ndarray,
    curved: np.ndarray,
    Y: np.ndarray,
    coef: np.ndarray,
    scores: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return coefficients, scores and gain after the steps with one factor."""
    known, gain = list[_Change](), np.inf
    objective, gradient = _objective(loss, alpha, v, Y, coef, scores), alpha * coef - v * loss.pulls(Y, scores)
    for _ in range(_MOST):
        step, change = _direction(solve, known, gradient, alpha, curved)
        slope, length = float((change * gradient).sum()), 1.0
        gain = slope / max(objective, np.finfo(float).eps * v.sum())
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
        known = [*known, (coef - before[0], scores - before[1], gradient - before[2])][-_MEMORY:]
    return coef, scores, gain


def _direction(
    solve: Solve, known: list[_Change], slopes: np.ndarray, alpha: float, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the step of coefficients and of scores, by two loops over stored steps (Nocedal 1980)."""
    q, parts = slopes, list[float]()
    curves = [float((scores * gradient).sum()) for _, scores, gradient in known]
    for (_, scores, gradient), curve in zip(reversed(known), reversed(curves)):
        parts.append(float((scores * q).sum()) / curve)
        q = q - parts[-1] * gradient
    step = solve(q / bound)
    change = (q - alpha * step) / bound
    for (coef, scores, gradient), curve, part in zip(known, curves, reversed(parts)):
        part -= float((gradient * change).sum()) / curve
        step, change = step + part * coef, change + part * scores
    return step, change


def _objective(loss: Loss, alpha: float, v: np.ndarray, Y: np.ndarray, coef: np.ndarray, scores: np.ndarray) -> float:
    return float(v[:, 0] @ loss.halves(Y, scores) + alpha / 2 * (coef * scores).sum())


def left_out(
    loss: Loss,
    K: np.ndarray,
    alpha: float,
    weights: Weights,
    Y: np.ndarray,
    scores: np.ndarray,
    root: Root,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Return leave-one-out (or leave-one-group-out) scores of the quadratic approximation near scores of all rows.

    They equal the scores of the loss to first order (Rad & Maleki 2020). Rows without a pull, beyond a margin, change
    nothing when they are excluded, but other rows of their group may.
    """
    steps, curvatures = loss.steps(Y, scores)
    known = curvatures if weights is None else weights[:, np.newaxis] * curvatures
    out = scores.copy()
    for columns, own in zip(np.array_split(np.arange(Y.shape[1]), known.shape[1]), known.T, strict=True):
        live = np.arange(len(Y)) if groups is not None else np.flatnonzero(steps[:, columns].any(axis=1))
        if live.size:
            B, _ = root(np.ascontiguousarray(K[np.ix_(live, live)]), alpha, own[live])
            place = np.ix_(live, columns)
            near = scores[place] + steps[place]
            out[place] = near - residuals_by(B, times_square(B, near), groups)
    return out


def minimum_left_out(
    loss: Loss, K: np.ndarray, alpha: float, weights: Weights, Y: np.ndarray, root: Root, groups: np.ndarray | None
) -> np.ndarray:
    """Return `left_out` at the minimum of the loss.

    If few rows are events, one of them may contribute nearly all of the local curvature, and the minimum without it is
    far away. Folds are then excluded instead of rows, each with a model of the others.
    """
    if loss.is_squares:
        return Y - residuals(K, alpha, weights, Y.astype(np.float32), root, groups)
    is_event = loss.events(Y)
    if is_event is None or is_event.sum(axis=0).min() >= _FEW_EVENTS:
        _, scores, _, alpha = minimise(loss, solver_by(root, K), alpha, weights, Y)
        return left_out(loss, K, alpha, weights, Y, scores, root, groups)
    folds, out = even_folds(np.asarray(is_event.any(axis=1)), groups, _FOLDS), np.empty(Y.shape)
    for fold in np.unique(folds):
        own, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        some = None if weights is None else weights[others]
        coef = coefficients(loss, K[np.ix_(others, others)], alpha, some, Y[others], root)
        out[own] = (K[np.ix_(own, others)] + np.float32(1.0)) @ coef
    return out


def coefficients(loss: Loss, K: np.ndarray, alpha: float, weights: Weights, Y: np.ndarray, root: Root) -> np.ndarray:
    if not loss.is_squares:
        return minimise(loss, solver_by(root, K), alpha, weights, Y)[0]
    solve, _ = solver_by(root, K)(alpha, weights)
    return solve(Y)
