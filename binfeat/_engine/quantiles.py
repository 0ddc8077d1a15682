"""Piecewise linear maps of columns."""

import numpy as np
from numba import prange

from binfeat._engine.policy import jit, parallel_jit

ROWS = 512  # rows of a block: their values and the knots of one column stay in the first-level cache

_ONE = np.uint64(1)


@jit
def _between(x, a, b, value_a, value_b):
    """Return the value at x on the line between two knots; outside, the value of the nearer knot."""
    share = (x - a) / (b - a)
    share = share if share < 1.0 else 1.0  # rounding can exceed 1, and NaN occurs if both differences overflow
    share = 1.0 if x >= b else share
    share = 0.0 if x <= a else share
    value = value_a + share * (value_b - value_a)
    return value if value < value_b else value_b


@jit
def _interpolate(x, places, knots, values):
    """Replace each x by its value. All binary searches do each step together, so steps are vectorized."""
    for i in range(x.shape[0]):
        places[i] = np.uint64(0)
    size = np.uint64(knots.shape[0]) - _ONE
    while size > _ONE:
        half = size >> _ONE
        for i in range(x.shape[0]):
            places[i] += half * np.uint64(knots[places[i] + half] <= x[i])
        size -= half
    for i in range(x.shape[0]):
        low, high = places[i], places[i] + _ONE
        x[i] = _between(x[i], knots[low], knots[high], values[low], values[high])


@parallel_jit(work="X")
def interpolate_columns(X, starts, knots, values, column, places, out):
    """Map columns by linear interpolation between knots, constant outside of them.

    Parameters
    ----------
    X : (n_rows, n_inputs) float64, no NaN
    starts : (n_inputs + 1,) int64; first knot of each column, at least two knots per column
    knots : (n_knots,) float64, strictly increasing within a column
    values : (n_knots,) float64; values at the knots, not decreasing within a column
    column : (n_tasks, ROWS) float64, scratch
    places : (n_tasks, ROWS) uint64, scratch
    out : (n_rows, n_inputs) float64, written
    """
    n_rows, n_tasks = X.shape[0], column.shape[0]
    n_blocks = (n_rows + ROWS - 1) // ROWS
    for task in prange(n_tasks):
        for block in range(task, n_blocks, n_tasks):
            start = block * ROWS
            x = column[task, : min(ROWS, n_rows - start)]
            for j in range(X.shape[1]):
                its_knots = slice(starts[j], starts[j + 1])
                for i in range(x.shape[0]):
                    x[i] = X[start + i, j]
                _interpolate(x, places[task], knots[its_knots], values[its_knots])
                for i in range(x.shape[0]):
                    out[start + i, j] = x[i]
