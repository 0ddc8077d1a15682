"""Sums of kernel values of rows with the rows of a model, times coefficients, without storing a kernel matrix.

The sums of a row have a fixed order, which depends neither on other rows nor on threads.
"""

import numpy as np

from binfeat._engine.decays import fused_decay
from binfeat._engine.fma import multiply_add
from binfeat._engine.policy import jit

LAPLACIAN, GAUSSIAN, EXPONENTIAL, MATERN_ONCE, MATERN_TWICE = range(5)
LANES = 4  # coordinates that are summed in parallel
SUMS = 64  # parallel sums, which are added at the end
_TILE = 8 * SUMS  # rows of the model per tile; their coordinates stay in a near cache
_BLOCK = 128  # coordinates per tile, a multiple of twice `LANES`
_BATCH = 32  # rows that share each block
_ZERO, _ONE, _TWO, _THREE, _SIX, _TEN = (np.float32(value) for value in (0, 1, 2, 3, 6, 10))


@jit
def _add_distances(q, k, S, first, last, out):
    """Add absolute differences of four coordinates from the k-th on."""
    x, y, z, w = q[k], q[k + 1], q[k + 2], q[k + 3]
    A, B, C, D = S[k, first:last], S[k + 1, first:last], S[k + 2, first:last], S[k + 3, first:last]
    for m in range(out.shape[0]):
        out[m] += (abs(A[m] - x) + abs(B[m] - y)) + (abs(C[m] - z) + abs(D[m] - w))


@jit
def _add_squares(q, k, S, first, last, out):
    """Add squared differences, like `_add_distances`."""
    x, y, z, w = q[k], q[k + 1], q[k + 2], q[k + 3]
    A, B, C, D = S[k, first:last], S[k + 1, first:last], S[k + 2, first:last], S[k + 3, first:last]
    for m in range(out.shape[0]):
        a, b, c, d = A[m] - x, B[m] - y, C[m] - z, D[m] - w
        out[m] += multiply_add(a, a, b * b) + multiply_add(c, c, d * d)


@jit
def _add_more_distances(q, k, S, first, last, out):
    """Add differences of eight coordinates; faster than two calls of `_add_distances`."""
    x, y, z, w = q[k], q[k + 1], q[k + 2], q[k + 3]
    s, t, u, v = q[k + 4], q[k + 5], q[k + 6], q[k + 7]
    A, B, C, D = S[k, first:last], S[k + 1, first:last], S[k + 2, first:last], S[k + 3, first:last]
    E, F, G, H = S[k + 4, first:last], S[k + 5, first:last], S[k + 6, first:last], S[k + 7, first:last]
    for m in range(out.shape[0]):
        sums = (abs(A[m] - x) + abs(B[m] - y)) + (abs(C[m] - z) + abs(D[m] - w))
        out[m] += sums + ((abs(E[m] - s) + abs(F[m] - t)) + (abs(G[m] - u) + abs(H[m] - v)))


@jit
def _add_more_squares(q, k, S, first, last, out):
    """Add squared differences, like `_add_more_distances`."""
    x, y, z, w = q[k], q[k + 1], q[k + 2], q[k + 3]
    s, t, u, v = q[k + 4], q[k + 5], q[k + 6], q[k + 7]
    A, B, C, D = S[k, first:last], S[k + 1, first:last], S[k + 2, first:last], S[k + 3, first:last]
    E, F, G, H = S[k + 4, first:last], S[k + 5, first:last], S[k + 6, first:last], S[k + 7, first:last]
    for m in range(out.shape[0]):
        a, b, c, d = A[m] - x, B[m] - y, C[m] - z, D[m] - w
        e, f, g, h = E[m] - s, F[m] - t, G[m] - u, H[m] - v
        sums = multiply_add(a, a, b * b) + multiply_add(c, c, d * d)
        out[m] += sums + (multiply_add(e, e, f * f) + multiply_add(g, g, h * h))


@jit
def _add_coordinates(kind, q, begin, end, S, first, last, out):
    """Add (squared) distances in some coordinates; their number is a multiple of `LANES`."""
    k = begin
    while k < end:
        if k + 2 * LANES <= end:
            if kind == LAPLACIAN:
                _add_more_distances(q, k, S, first, last, out)
            else:
                _add_more_squares(q, k, S, first, last, out)
            k += 2 * LANES
        else:
            if kind == LAPLACIAN:
                _add_distances(q, k, S, first, last, out)
            else:
                _add_squares(q, k, S, first, last, out)
            k += LANES


@jit
def _add_mismatches(codes, S_codes, first, last, jumps, out):
    for j in range(codes.shape[0]):
        code, others, jump = codes[j], S_codes[j, first:last], jumps[j]
        for m in range(out.shape[0]):
            out[m] += jump if others[m] != code else _ZERO


@jit
def _decline(kind, values):
    """Replace distances, or squared distances, by values of a kernel."""
    if kind in (LAPLACIAN, GAUSSIAN):
        for m in range(values.size):
            values[m] = fused_decay(values[m])
    elif kind == EXPONENTIAL:
        for m in range(values.size):
            values[m] = fused_decay(np.sqrt(_TWO * values[m]))
    elif kind == MATERN_ONCE:
        for m in range(values.size):
            z = np.sqrt(_SIX * values[m])
            values[m] = (_ONE + z) * fused_decay(z)
    else:
        for m in range(values.size):
            z = np.sqrt(_TEN * values[m])
            values[m] = (_ONE + z + z * z / _THREE) * fused_decay(z)


@jit
def _add_share(share, values, total):
    for m in range(values.shape[0]):
        total[m] = multiply_add(share, np.float64(values[m]), total[m])


@jit
def _product(values, coef, sums):
    """Return the inner product in a fixed order; `sums`, (SUMS,) float64, is overwritten."""
    sums[:] = 0.0
    for begin in range(0, values.shape[0], SUMS):
        for m in range(SUMS):
            sums[m] = multiply_add(values[begin + m], coef[begin + m], sums[m])
    width = SUMS // 2
    while width > 0:
        for m in range(width):
            sums[m] += sums[width + m]
        width //= 2
    return sums[0]


@jit
def add_expansions(kinds, shares, bounds, jumps, Q, Q_codes, S, S_codes, coef, out):
    """Add kernel values with all rows of S times coefficients.

    Parameters
    ----------
    kinds : (n_kernels,) int64
        Constants of this module.
    shares : (n_kernels,) float64
    bounds : (n_kernels + 1,) int64
        Where the coordinates of each kernel begin and end: multiples of `LANES`.
    jumps : (n_kernels, n_categories) float32
        Distance that a mismatch in each category adds.
    Q : (n, n_coordinates) float32
    Q_codes : (n, n_categories) float32
    S : (n_coordinates, n_support) float32; n_support is a multiple of `SUMS`
    S_codes : (n_categories, n_support) float32
    coef : (n_targets, n_support) float64
    out : (n, n_targets) float64, updated
    """
    batch = min(_BATCH, Q.shape[0]) if S.shape[0] > _BLOCK else 1
    space, whole, sums = np.empty((batch, _TILE), np.float32), np.empty((batch, _TILE)), np.empty(SUMS)
    for first in range(0, S.shape[1], _TILE):
        last = min(first + _TILE, S.shape[1])
        for row in range(0, Q.shape[0], batch):
            n = min(batch, Q.shape[0] - row)
            whole[:] = 0.0
            for p in range(kinds.size):
                space[:] = _ZERO
                for begin in range(bounds[p], bounds[p + 1], _BLOCK):
                    end = min(begin + _BLOCK, bounds[p + 1])
                    for i in range(n):
                        values = space[i, : last - first]
                        _add_coordinates(kinds[p], Q[row + i], begin, end, S, first, last, values)
                for i in range(n):
                    values = space[i, : last - first]
                    _add_mismatches(Q_codes[row + i], S_codes, first, last, jumps[p], values)
                    _decline(kinds[p], values)
                    _add_share(shares[p], values, whole[i, : last - first])
            for i in range(n):
                for t in range(coef.shape[0]):
                    out[row + i, t] += _product(whole[i, : last - first], coef[t, first:last], sums)


@jit
def _table(values, start, stop, n_rows):
    """Return some columns of consecutive tables (n_rows, n_columns), without a copy."""
    return values[start * n_rows : stop * n_rows].reshape(n_rows, stop - start)


@jit
def add_cells(kinds, shares, bounds, jumps, Q, Q_codes, X, cells, starts, S, S_codes, coef, slopes, intercepts, out):
    """Add the predictions of each row's cells: an intercept, a linear function, and kernel values times coefficients.

    Consecutive rows of one cell are computed together. The sum of a row does not depend on the other rows.

    Parameters
    ----------
    kinds, shares, bounds, jumps, Q, Q_codes : as of `add_expansions`
    X : (n, n_inputs) float64; or (n, 0) if no cell has a linear function
    cells : (n_trees, n) int32
    starts : (n_cells + 1,) int64
        Of the rows of each cell in S: multiples of `SUMS`.
    S, S_codes : (n_coordinates * n_support,) and (n_categories * n_support,) float32
        Tables of `add_expansions`, of one cell after the other.
    coef : (n_targets * n_support,) float64
        As S.
    slopes : (n_cells, n_inputs, n_targets) float64; or (n_cells, 0, n_targets)
    intercepts : (n_cells, n_targets) float64
    out : (n, n_targets) float64, updated
    """
    for t in range(cells.shape[0]):
        end = 0
        while end < Q.shape[0]:
            begin, c = end, cells[t, end]
            while end < Q.shape[0] and cells[t, end] == c:
                end += 1
            start, stop, own = starts[c], starts[c + 1], out[begin:end]
            for i in range(begin, end):
                for k in range(out.shape[1]):
                    out[i, k] += intercepts[c, k]
            _add_linear(X[begin:end], slopes[c], own)
            if stop > start:
                rows = _table(S, start, stop, Q.shape[1])
                codes = _table(S_codes, start, stop, Q_codes.shape[1])
                weights = _table(coef, start, stop, out.shape[1])
                add_expansions(
                    kinds, shares, bounds, jumps, Q[begin:end], Q_codes[begin:end], rows, codes, weights, own
                )


@jit
def _add_linear(X, linear_map, out):
    for i in range(X.shape[0]):
        image = out[i]
        for j in range(X.shape[1]):
            x, row = X[i, j], linear_map[j]
            for k in range(image.shape[0]):
                image[k] += x * row[k]


@jit
def map_rows(X, linear_map, out):
    """Linear images of rows, each in the same order of additions whatever the number of rows.

    Parameters
    ----------
    X : (n, n_inputs) float64
    linear_map : (n_inputs, n_images) float64
    out : (n, n_images) float64, written
    """
    out[:] = 0.0
    _add_linear(X, linear_map, out)
