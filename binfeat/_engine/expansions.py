"""Sums of a kernel's values with the rows of cells, for a few rows at a time."""

import numpy as np

from binfeat._engine.decays import decay
from binfeat._engine.policy import jit

LAPLACIAN, GAUSSIAN, MATERN_ONCE, MATERN_TWICE, LINEAR = range(5)
LANES = 4  # coordinates that are summed side by side
_ZERO, _ONE, _THREE, _SIX, _TEN = (np.float32(value) for value in (0, 1, 3, 6, 10))


@jit
def _products(Q, i, S, begin, end, rows, out):
    """Inner products of row i of Q with some rows of S."""
    for m in range(rows.size):
        r = rows[m]
        a = b = c = d = _ZERO
        for k in range(begin, end, LANES):
            a += Q[i, k] * S[r, k]
            b += Q[i, k + 1] * S[r, k + 1]
            c += Q[i, k + 2] * S[r, k + 2]
            d += Q[i, k + 3] * S[r, k + 3]
        out[m] = (a + b) + (c + d)


@jit
def _distances(Q, i, S, begin, end, rows, out):
    """Sums of absolute differences, as `_products`."""
    for m in range(rows.size):
        r = rows[m]
        a = b = c = d = _ZERO
        for k in range(begin, end, LANES):
            a += abs(Q[i, k] - S[r, k])
            b += abs(Q[i, k + 1] - S[r, k + 1])
            c += abs(Q[i, k + 2] - S[r, k + 2])
            d += abs(Q[i, k + 3] - S[r, k + 3])
        out[m] = (a + b) + (c + d)


@jit
def _squares(Q, i, S, begin, end, rows, out):
    """Sums of squared differences, as `_products`."""
    for m in range(rows.size):
        r = rows[m]
        a = b = c = d = _ZERO
        for k in range(begin, end, LANES):
            e, f = Q[i, k] - S[r, k], Q[i, k + 1] - S[r, k + 1]
            g, h = Q[i, k + 2] - S[r, k + 2], Q[i, k + 3] - S[r, k + 3]
            a += e * e
            b += f * f
            c += g * g
            d += h * h
        out[m] = (a + b) + (c + d)


@jit
def _add_mismatches(Q, i, S, jumps, p, rows, out):
    for k in range(jumps.shape[1]):
        for m in range(rows.size):
            if Q[i, k] != S[rows[m], k]:
                out[m] += jumps[p, k]


@jit
def decline(kind, values):
    """Values of a kernel, in place of distances or squared distances."""
    if kind in (LAPLACIAN, GAUSSIAN):
        for m in range(values.size):
            values[m] = decay(values[m])
    elif kind == MATERN_ONCE:
        for m in range(values.size):
            z = np.sqrt(_SIX * values[m])
            values[m] = (_ONE + z) * decay(z)
    else:
        for m in range(values.size):
            z = np.sqrt(_TEN * values[m])
            values[m] = (_ONE + z + z * z / _THREE) * decay(z)


@jit
def add_expansions(kinds, shares, bounds, jumps, Q, S, Q_codes, S_codes, cells, starts, rows, coef, intercepts, out):
    """Add what the cells of each row say of it: an intercept, and kernel values times coefficients.

    Parameters
    ----------
    kinds : (n_kernels,) int64
        One of the constants of this module.
    shares : (n_kernels,) float64
    bounds : (n_kernels + 1,) int64
        Where the coordinates of each kernel begin and end: multiples of `LANES`.
    jumps : (n_kernels, n_categories) float32
        What rows that differ in a category are further apart by.
    Q, S : (n, n_coordinates) and (n_support, n_coordinates) float32
    Q_codes, S_codes : (n, n_categories) and (n_support, n_categories) float32
    cells : (n_trees, n) int32
    starts : (n_cells + 1,) int64
    rows : (n_places,) int32
        Rows of S in each cell.
    coef : (n_places, n_targets) float64
    intercepts : (n_cells, n_targets) float64
    out : (n, n_targets) float64, updated
    """
    most = 0
    for c in range(starts.size - 1):
        most = max(most, starts[c + 1] - starts[c])
    space, sums = np.empty(most, np.float32), np.empty(most)
    for i in range(Q.shape[0]):
        for t in range(cells.shape[0]):
            c = cells[t, i]
            own = rows[starts[c] : starts[c + 1]]
            values, total = space[: own.size], sums[: own.size]
            total[:] = 0.0
            for p in range(kinds.size):
                if kinds[p] == LINEAR:
                    _products(Q, i, S, bounds[p], bounds[p + 1], own, values)
                else:
                    if kinds[p] == LAPLACIAN:
                        _distances(Q, i, S, bounds[p], bounds[p + 1], own, values)
                    else:
                        _squares(Q, i, S, bounds[p], bounds[p + 1], own, values)
                    _add_mismatches(Q_codes, i, S_codes, jumps, p, own, values)
                    decline(kinds[p], values)
                for m in range(own.size):
                    total[m] += shares[p] * values[m]
            for k in range(out.shape[1]):
                out[i, k] += intercepts[c, k]
            for m in range(own.size):
                place, value = starts[c] + m, total[m]
                for k in range(out.shape[1]):
                    out[i, k] += value * coef[place, k]
