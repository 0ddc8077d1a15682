"""Piecewise linear maps of columns."""

import numpy as np
from numba import prange

from binfeat._engine.policy import driver, jit

_ROWS = 512  # done together: their lines stay in the second-level cache, one column's knots in the first
_ONE = np.uint64(1)


@jit
def _interpolate(x, first, last, knots, values):
    """The value at x between knots number `first` and `last`, and the outermost ones' beyond."""
    low, size = first, last - first
    while size > _ONE:
        half = size >> _ONE
        low += half * np.uint64(knots[low + half] <= x)  # a branch here would be guessed wrong half of the time
        size -= half
    a, b = knots[low], knots[low + _ONE]
    share = (x - a) / (b - a)
    share = share if share < 1.0 else 1.0  # the differences may overflow
    share = 1.0 if x >= b else share
    share = 0.0 if x <= a else share
    return min(values[low] + share * (values[low + _ONE] - values[low]), values[low + _ONE])


@driver(work="X")
def interpolate_columns(X, columns, starts, knots, values, out):
    """Map some columns by linear interpolation and copy the others.

    Parameters
    ----------
    X : (n_rows, n_inputs) float64, no NaN
    columns : (n_mapped,) uint64
    starts : (n_mapped + 1,) uint64; where each of those columns' knots begin, at least two of them
    knots : (n_knots,) float64, strictly rising within a column
    values : (n_knots,) float64; at the knots, not falling
    out : (n_rows, n_inputs) float64, written
    """
    for block in prange(-(-X.shape[0] // _ROWS)):
        start, stop = block * _ROWS, min(X.shape[0], (block + 1) * _ROWS)
        out[start:stop] = X[start:stop]
        for k in range(columns.shape[0]):
            j, first, last = columns[k], starts[k], starts[k + 1] - _ONE
            for i in range(start, stop):
                out[i, j] = _interpolate(X[i, j], first, last, knots, values)
