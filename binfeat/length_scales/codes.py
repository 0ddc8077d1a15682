"""Codes in numbers, such as -999 for a missing number, in a search for length scales."""

import numpy as np

_ROWS = 10_000  # rows for the distances
_FARTHEST = 10.0  # distance from the median, in medians of distances, at which values are clipped
_EXCESS = 3.0  # an input is clipped if that divides its root mean squared distance by more than this
_GAP = 3.0  # least ratio of distances from the median: the nearest clipped value over the farthest other value
_MOST_CODES = 3  # different values that are clipped


def clip_codes(X: np.ndarray, categorical: np.ndarray, seed: int) -> np.ndarray:
    """Return rows X (n_rows, n_inputs), with clipped codes in numeric inputs: few values that are far from all others.

    Codes would determine the standard deviation and the mean distance of an input, from which a search starts, so that
    its kernel could not resolve the other values. Clipped codes are still far from the others. Long tails are not
    clipped: they have many values, and no gap.
    """
    some = np.random.default_rng(seed).permutation(len(X))[:_ROWS]
    clipped = X
    for j in np.flatnonzero(~categorical):
        bounds = _bounds(X[some, j])
        if bounds is not None:
            clipped = X.copy() if clipped is X else clipped
            np.clip(X[:, j], *bounds, out=clipped[:, j])
    return clipped


def _bounds(values: np.ndarray) -> tuple[float, float] | None:
    """Return bounds at which codes are clipped; None if there are no codes."""
    distances = np.abs(np.diff(values))
    differ = distances[distances > 0]
    if not differ.size:
        return None
    middle, most = np.median(values), _FARTHEST * np.median(differ)
    reach = np.abs(values - middle)
    are_far = reach > most
    if not are_far.any() or are_far.all() or reach[are_far].min() < _GAP * reach[~are_far].max():
        return None
    if np.unique(values[are_far]).size > _MOST_CODES:
        return None
    if np.mean(distances**2) < _EXCESS**2 * np.mean(np.minimum(distances, most) ** 2):
        return None
    return middle - most, middle + most
