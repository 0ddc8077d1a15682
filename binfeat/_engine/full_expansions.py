"""Sums of a kernel's values with all rows of a machine, times coefficients; the values of a tile are never written.

Each row has its sums in an order of its own: they do not depend on which rows stand beside it, nor on threads.
"""

import numpy as np

from binfeat._engine.expansions import LANES, LAPLACIAN, decline
from binfeat._engine.policy import jit

SUMS = 64  # sums side by side, which are added in the end
_TILE = 8 * SUMS  # rows of the machine at a time, whose coordinates stay in the nearest cache
_ZERO = np.float32(0)


@jit
def _add_distances(q, k, S, first, last, out):
    """Absolute differences of four coordinates from the k-th on."""
    x, y, z, w = q[k], q[k + 1], q[k + 2], q[k + 3]
    A, B, C, D = S[k, first:last], S[k + 1, first:last], S[k + 2, first:last], S[k + 3, first:last]
    for m in range(out.shape[0]):
        out[m] += (abs(A[m] - x) + abs(B[m] - y)) + (abs(C[m] - z) + abs(D[m] - w))


@jit
def _add_squares(q, k, S, first, last, out):
    """Squared differences, as `_add_distances`."""
    x, y, z, w = q[k], q[k + 1], q[k + 2], q[k + 3]
    A, B, C, D = S[k, first:last], S[k + 1, first:last], S[k + 2, first:last], S[k + 3, first:last]
    for m in range(out.shape[0]):
        a, b, c, d = A[m] - x, B[m] - y, C[m] - z, D[m] - w
        out[m] += (a * a + b * b) + (c * c + d * d)


@jit
def _add_mismatches(codes, S_codes, first, last, jumps, out):
    for j in range(codes.shape[0]):
        code, others, jump = codes[j], S_codes[j, first:last], jumps[j]
        for m in range(out.shape[0]):
            out[m] += jump if others[m] != code else _ZERO


@jit
def _add_share(share, values, total):
    for m in range(values.shape[0]):
        total[m] += share * values[m]


@jit
def _product(values, coef, sums):
    """Inner product, in a fixed order; `sums`, (SUMS,) float64, is overwritten."""
    sums[:] = 0.0
    for begin in range(0, values.shape[0], SUMS):
        for m in range(SUMS):
            sums[m] += values[begin + m] * coef[begin + m]
    width = SUMS // 2
    while width > 0:
        for m in range(width):
            sums[m] += sums[width + m]
        width //= 2
    return sums[0]


@jit
def add_full_expansions(kinds, shares, bounds, jumps, Q, S, Q_codes, S_codes, coef, out):
    """Add kernel values with all rows of S times coefficients.

    Parameters
    ----------
    kinds : (n_kernels,) int64
        Constants of `expansions`, but not ``LINEAR``.
    shares : (n_kernels,) float64
    bounds : (n_kernels + 1,) int64
        Where the coordinates of each kernel begin and end: multiples of `LANES`.
    jumps : (n_kernels, n_categories) float32
        What rows that differ in a category are further apart by.
    Q : (n, n_coordinates) float32
    S : (n_coordinates, n_support) float32; n_support is a multiple of `SUMS`
    Q_codes : (n, n_categories) float32
    S_codes : (n_categories, n_support) float32
    coef : (n_targets, n_support) float64
    out : (n, n_targets) float64, updated
    """
    space, whole, sums = np.empty(_TILE, np.float32), np.empty(_TILE), np.empty(SUMS)
    for first in range(0, S.shape[1], _TILE):
        last = min(first + _TILE, S.shape[1])
        values, total = space[: last - first], whole[: last - first]
        for i in range(Q.shape[0]):
            total[:] = 0.0
            for p in range(kinds.size):
                values[:] = _ZERO
                for k in range(bounds[p], bounds[p + 1], LANES):
                    if kinds[p] == LAPLACIAN:
                        _add_distances(Q[i], k, S, first, last, values)
                    else:
                        _add_squares(Q[i], k, S, first, last, values)
                _add_mismatches(Q_codes[i], S_codes, first, last, jumps[p], values)
                decline(kinds[p], values)
                _add_share(shares[p], values, total)
            for t in range(coef.shape[0]):
                out[i, t] += _product(total, coef[t, first:last], sums)


@jit
def map_rows(X, linear_map, out):
    """Linear images of rows, each in the same order of additions whatever the number of rows.

    Parameters
    ----------
    X : (n, n_inputs) float64
    linear_map : (n_inputs, n_images) float64
    out : (n, n_images) float64, written
    """
    for i in range(X.shape[0]):
        image = out[i]
        image[:] = 0.0
        for j in range(X.shape[1]):
            x, row = X[i, j], linear_map[j]
            for k in range(image.shape[0]):
                image[k] += x * row[k]
