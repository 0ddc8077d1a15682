"""The minimum of losses by reweighted squares, and predictions of rows without them."""

from collections.abc import Callable

import numpy as np

from binfeat._machine.kernel_algebra.leave_one_out import Root, residuals
from binfeat._machine.kernel_algebra.solve import factored

Squares = tuple[np.ndarray, np.ndarray]  # that stand for a loss: targets (n_rows, n_targets), weights (n_rows, 1)

_MOST, _SMALL = 8, 0.05  # steps, and root mean square of the scores' moves, after which the next one is the last


def at_minimum(K: np.ndarray, penalty: float, squares: Squares, near: Callable[[np.ndarray], Squares]) -> Squares:
    """Squares that stand for a loss at its penalised minimum.

    Newton's steps begin with the squares, and go on with those that are `near` the scores reached. Where they end, no
    target has a part of predictions that other rows were in, as the first ones may have. The penalty belongs to
    weights as they are, whatever their mean.
    """
    scores = np.full(squares[0].shape, np.inf)
    for _ in range(_MOST):
        Y, weights = squares
        mean = float(weights.mean())
        solve, alpha = factored(K.copy(), penalty / mean, weights[:, 0] / mean)
        before, scores = scores, Y - alpha * mean / weights * solve(Y)
        squares = near(scores)
        if np.average((scores - before) ** 2, axis=0, weights=weights[:, 0]).mean() < _SMALL**2:
            break
    return squares


def left_out_of(K: np.ndarray, penalty: float, squares: Squares, root: Root, groups: np.ndarray | None) -> np.ndarray:
    """Predictions (n_rows, n_targets) of each row without its group, or alone, by squares.

    Those at the minimum of another loss stand for it to first order (Rad & Maleki 2020).
    """
    Y, weights = squares
    mean = float(weights.mean())
    return Y - residuals(K, penalty / mean, weights[:, 0] / mean, Y, root, groups)


def coefficients_of(K: np.ndarray, penalty: float, squares: Squares, root: Root) -> np.ndarray:
    """Coefficients (n_rows, n_targets) of rows by squares, with a penalty of weights as they are."""
    Y, weights = squares
    mean = float(weights.mean())
    B, _ = root(K, penalty / mean, weights[:, 0] / mean)
    return B @ (B.T @ Y)
