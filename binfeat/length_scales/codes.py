"""Codes in numbers, such as -999 for a missing number, in a search for length scales, and in standard deviations."""

from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.gamma_scale import Moments

_ROWS = 10_000  # rows for the distances
_FARTHEST = 10.0  # distance from the median, in medians of distances, at which values are clipped
_EXCESS = 3.0  # an input is clipped if that divides its root mean squared distance by more than this
_GAP = 3.0  # least ratio of distances from the median: the nearest clipped value over the farthest other value
_MOST_CODES = 3  # different values that are clipped
_MOST_WILD = 0.1  # share of further values that are clipped for a standard deviation; more are a second mode


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


@np.errstate(over="ignore")  # squares of codes beyond 1e154
def std_without_codes(X: Any, categorical: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each input of an ndarray or CSR, (n_inputs,), ignoring NaN.

    Rows must be in random order. In numeric inputs, codes are clipped, and a tenth of the values if they are far from
    all others, because wild values are rarely equal. Inputs with mostly zeros and similar other values have no codes.
    """
    std, columns = Moments.of(X).std, X.tocsc() if sparse.issparse(X) else X
    for j in np.flatnonzero(~categorical & (std > 0)):
        values = _known_values(columns, j)
        sizes = np.abs(values[values != 0])
        if 2 * sizes.size < values.size and sizes.max() <= _FARTHEST * sizes.min():  # a fast exit for sparse inputs
            continue
        bounds = _bounds(values, _MOST_WILD)
        if bounds is not None:
            std[j] = Moments.of(np.clip(values, *bounds)[:, None]).std[0]
    return std


def _known_values(columns: Any, j: np.integer) -> np.ndarray:
    """Return the values of an input of an array or CSC that are not NaN, in the order of their rows."""
    if sparse.issparse(columns):
        own, values = slice(*columns.indptr[j : j + 2]), np.zeros(columns.shape[0])
        values[columns.indices[own]] = columns.data[own]
    else:
        values = columns[:, j]
    return values[~np.isnan(values)]


def _bounds(values: np.ndarray, most_wild: float = 0.0) -> tuple[float, float] | None:
    """Return bounds at which codes are clipped, or a share of at most `most_wild` of other values far from the rest.

    None if there are no such values.
    """
    distances = np.abs(np.diff(values))
    differ = distances[distances > 0]
    if not differ.size:
        return None
    middle, most = np.median(values), _FARTHEST * np.median(differ)
    reach = np.abs(values - middle)
    are_far = reach > most
    if not are_far.any() or are_far.all() or reach[are_far].min() < _GAP * reach[~are_far].max():
        return None
    if are_far.mean() > most_wild and np.unique(values[are_far]).size > _MOST_CODES:
        return None
    if np.mean(distances**2) < _EXCESS**2 * np.mean(np.minimum(distances, most) ** 2):
        return None
    return middle - most, middle + most
