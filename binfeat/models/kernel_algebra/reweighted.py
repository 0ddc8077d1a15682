"""The minimum of losses by reweighted squares."""

from collections.abc import Callable

import numpy as np

from binfeat.models.kernel_algebra.solve import factored

Squares = tuple[np.ndarray, np.ndarray]  # quadratic approximation: targets (n_rows, n_targets), weights (n_rows, 1)

_MOST, _SMALL = 8, 0.05  # steps, and root mean square of the scores' moves, after which the next one is the last


def at_minimum(
    K: np.ndarray, penalty: float, squares: Squares, near: Callable[[np.ndarray], Squares]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Quadratic approximation of a loss at its penalized minimum: penalty, weights (n_rows,) with mean 1, targets.

    Leave-one-out predictions of it equal those of the loss to first order (Rad & Maleki 2020).

    Newton's steps begin with the squares, and go on with those that are `near` the scores reached. Where they end, no
    target has a part of predictions that other rows were in, as the first ones may have. The penalty belongs to
    unscaled weights.
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
    Y, weights = squares
    mean = float(weights.mean())
    return penalty / mean, weights[:, 0] / mean, Y
