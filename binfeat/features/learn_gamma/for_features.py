"""Length scales for a linear model on random features: learned on few rows, and shortened for all rows."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from binfeat._common.validation import check_moderate
from binfeat._rows.products import Features
from binfeat._rows.rows import ProcessRows
from binfeat._threads import blas_threads, thread_count, with_threads
from binfeat.features.learn_gamma.learning import encoded_targets, learnable_kernel, learned_gamma
from binfeat.kernels.base import Kernel
from binfeat.linear.result import SolverOptions
from binfeat.linear.solve import solve_ridge

Featurize: TypeAlias = Callable[[np.ndarray, Any, Any], tuple[Features, Features]]

_MOST_ROWS = 20_000  # rows for the choice of the common factor
_FOLDS, _FOLD_ROWS = 4, 1000  # validation folds, and total number of validation rows
_PENALTIES = 4.0, 1.0, 0.25, 0.0625  # factors of the learned penalty
_LARGEST, _SMALLEST = 5, -3  # candidates: powers of 2 of the inverse length scale
_LOWER = 0.99  # a factor other than 1 must lower the validation error to this share
_TOL = 1e-2


def gamma_for_features(
    kernel: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    categorical: np.ndarray,
    seed: int,
    featurize: Featurize,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return gamma of each input for ridge regression on random features of checked rows X.

    `learned_gamma` finds the ratios of the length scales on few rows. More rows need shorter length scales, and more
    features can represent them, so one common factor, a power of 2, is chosen by the validation error of ridge
    regression. ``featurize(gamma, X_train, X_validation)`` computes the features of two parts of the rows.
    """
    if y is None:
        raise ValueError("gamma='learn' needs targets: call fit(X, y), pass y to blocks(), or use gamma='scale'.")
    law = _with_search(kernel)
    check_moderate(X.data if sparse.issparse(X) else X, "X")
    Y, weights = encoded_targets(y, sample_weight)
    if len(Y) != X.shape[0]:
        raise ValueError(f"y must have one value per row of X, {X.shape[0]}; got {len(Y)}.")
    learned = learned_gamma(law, X, Y, weights, categorical, seed, n_jobs=n_jobs)
    known = np.arange(len(Y)) if weights is None else np.flatnonzero(weights)
    rows = np.sort(np.random.default_rng(seed).permutation(known)[:_MOST_ROWS])
    if rows.size < 2 * _FOLDS:
        return learned.gamma
    alphas = np.array(_PENALTIES) * learned.alpha
    X, Y, weights = X[rows], Y[rows], None if weights is None else weights[rows]

    def error(power: int) -> float:
        gamma = np.where(categorical, learned.gamma, learned.gamma * 2.0 ** (power * law.power))
        given = (lambda *parts: featurize(gamma, *parts), X, Y, weights, alphas, seed)
        with blas_threads(n_jobs):
            return with_threads(thread_count(n_jobs), _validation_error, given)

    power = _best_power(error)
    return np.where(categorical, learned.gamma, learned.gamma * 2.0 ** (power * law.power))


def _with_search(kernel: Any) -> Kernel:
    """Return the kernel; ValueError that names `gamma` if its length scales cannot be learned."""
    try:
        return learnable_kernel(kernel)
    except ValueError as error:
        raise ValueError(f"gamma='learn' has no search for kernel={kernel!r}; pass gamma='scale'. {error}") from error


def _best_power(error: Callable[[int], float]) -> int:
    """Return the power with the lowest error, searched from 0 upwards or downwards while the error falls."""
    errors = {0: error(0)}
    for step, last in ((1, _LARGEST), (-1, _SMALLEST)):
        for power in range(step, last + step, step):
            errors[power] = error(power)
            if errors[power] > errors[power - step] * _LOWER:
                break
        if errors[step] <= errors[0] * _LOWER:
            break
    best = min(errors, key=errors.__getitem__)
    return best if errors[best] <= errors[0] * _LOWER else 0


def _validation_error(
    featurize: Callable[[Any, Any], tuple[Features, Features]],
    X: Any,
    Y: np.ndarray,
    weights: np.ndarray | None,
    alphas: np.ndarray,
    seed: int,
) -> float:
    """Return the mean squared error in validation folds, with the best of the penalties."""
    sums, total = np.zeros(alphas.size), 0
    folds = np.random.default_rng(seed).permutation(len(Y)) % _FOLDS
    for fold in range(_FOLDS):
        train, validation = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        Z, Z_validation = featurize(X[train], X[validation])
        own = None if weights is None else weights[validation]
        path = solve_ridge(
            ProcessRows(Z, Y[train], None if weights is None else weights[train]), alphas, SolverOptions(tol=_TOL)
        )
        for k, result in enumerate(path):
            residuals = Y[validation] - (np.asarray(Z_validation @ result.solution) + result.intercept)
            squares = residuals**2 if own is None else own * residuals**2
            sums[k] += squares.sum()
        total += len(validation)
        if total >= _FOLD_ROWS:
            break
    return float(sums.min() / total)
