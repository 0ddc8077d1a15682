"""Huber weights, from leave-one-out residuals."""

import numpy as np

_TUNING = 1.345  # standard deviations, up to which the loss is a square: 95 % efficiency (Holland & Welsch 1977)
_NORMAL = 1.4826  # standard deviation of a normal law over its median absolute deviation


def scales(residuals: np.ndarray) -> np.ndarray:
    """Robust standard deviation of every column, by the median of magnitudes; 1 if all are 0."""
    sizes = np.abs(residuals)
    middle = _NORMAL * np.median(sizes, axis=0)
    middle = np.where(middle > 0, middle, sizes.mean(axis=0))
    return np.where(middle > 0, middle, 1.0)


def weights_by(residuals: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Weights of rows, of shape (n_rows, 1), that make squares of residuals Huber's loss.

    With r a row's residual in robust standard deviations (n_targets,), the root of the mean square if there are several
    targets, the weight is ``min(1, 1.345 / |r|)``.
    """
    sizes = np.sqrt(((residuals / deviations) ** 2).mean(axis=1, keepdims=True))
    return _TUNING / np.maximum(sizes, _TUNING)


def winsorised(residuals: np.ndarray) -> np.ndarray:
    """Residuals (n_rows, n_targets), clipped at 1.345 robust standard deviations."""
    limits = _TUNING * scales(residuals)
    return np.clip(residuals, -limits, limits)
