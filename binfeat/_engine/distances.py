"""Kernel matrices of few rows, and sums over all pairs of rows, for exact kernel models.

All arrays are float32. Rows are columns here, so that the loop over one side of the pairs is contiguous.
"""

import numpy as np
from numba import prange

from binfeat._engine.decays import decays_of
from binfeat._engine.policy import jit, parallel_jit
from binfeat._engine.triangles import mirror_below_diagonal

_ZERO = np.float32(0)
_WHOLE = 32  # numbers per vector step; half a row ends a little beyond the diagonal


@jit
def _add_differences(x, others, gamma, categorical, out):
    if categorical:
        for b in range(out.shape[0]):
            out[b] += gamma if others[b] != x else _ZERO
    else:
        for b in range(out.shape[0]):
            out[b] += gamma * abs(others[b] - x)


@jit
def _add_differences_of_four(A, a, B, gamma, j, out):
    """Do `_add_differences` for four inputs, with one pass over `out`."""
    first, second, third, fourth = B[j], B[j + 1], B[j + 2], B[j + 3]
    x, y, z, w = A[j, a], A[j + 1, a], A[j + 2, a], A[j + 3, a]
    for b in range(out.shape[0]):
        total = out[b] + gamma[j] * abs(first[b] - x)
        total += gamma[j + 1] * abs(second[b] - y)
        total += gamma[j + 2] * abs(third[b] - z)
        out[b] = total + gamma[j + 3] * abs(fourth[b] - w)


@jit
def _are_four_numbers(categorical, j):
    return j + 4 <= categorical.shape[0] and not categorical[j : j + 4].any()


@jit
def _half(a):
    """Return the end of a part of row a that contains all entries before the diagonal."""
    return (a // _WHOLE + 1) * _WHOLE


@jit
def _set_distances(A, a, B, gamma, categorical, out):
    """Write the distances of column a of A from the first columns of B."""
    out[:] = _ZERO
    j = np.int64(0)  # a literal would compile the functions below once more
    while j < A.shape[0]:
        if _are_four_numbers(categorical, j):
            _add_differences_of_four(A, a, B, gamma, j, out)
            j += 4
        else:
            if gamma[j] > _ZERO:
                _add_differences(A[j, a], B[j], gamma[j], categorical[j], out)
            j += 1


@parallel_jit(work="out")
def weighted_distances(A, B, gamma, categorical, out):
    """Distances ``sum_j gamma_j |a_j - b_j|`` of all pairs; a categorical input adds gamma_j where values differ.

    Parameters
    ----------
    A : (n_inputs, n) float32
    B : (n_inputs, m) float32
    gamma : (n_inputs,) float32
    categorical : (n_inputs,) bool
    out : (n, m) float32, written
    """
    for a in prange(out.shape[0]):
        _set_distances(A, a, B, gamma, categorical, out[a])


@parallel_jit(work="out")
def laplacian_values(X, gamma, categorical, out):
    """``exp(-t)`` of the distances t of all pairs of rows, as in `weighted_distances`; each pair is computed once.

    Parameters
    ----------
    X : (n_inputs, n) float32
    gamma, categorical : as in `weighted_distances`
    out : (n, n) float32, written
    """
    for a in prange(out.shape[0]):
        row = out[a, : _half(a)]
        _set_distances(X, a, X, gamma, categorical, row)
        decays_of(row)
    mirror_below_diagonal(out)


@parallel_jit(work="out")
def squared_distances(A, B, out):
    """Squared distances of all pairs, from differences, so that distances of nearly equal rows are accurate.

    Parameters
    ----------
    A : (n_inputs, n) float32
    B : (n_inputs, m) float32
    out : (n, m) float32, written
    """
    for a in prange(out.shape[0]):
        row = out[a]
        row[:] = _ZERO
        for j in range(A.shape[0]):
            x, others = A[j, a], B[j]
            for b in range(row.shape[0]):
                row[b] += (others[b] - x) * (others[b] - x)


@jit
def _add_weighted(x, others, weights, categorical, out):
    if categorical:
        for b in range(weights.shape[0]):
            out[b] += weights[b] if others[b] != x else _ZERO
    else:
        for b in range(weights.shape[0]):
            out[b] += weights[b] * abs(others[b] - x)


@jit
def _add_weighted_of_four(X, a, j, weights, out):
    """Add the sums of four inputs, with one pass over `weights`."""
    x, y, z, w = X[j, a], X[j + 1, a], X[j + 2, a], X[j + 3, a]
    first, second, third, fourth = out[j], out[j + 1], out[j + 2], out[j + 3]
    for b in range(weights.shape[0]):
        first[b] += weights[b] * abs(X[j, b] - x)
        second[b] += weights[b] * abs(X[j + 1, b] - y)
        third[b] += weights[b] * abs(X[j + 2, b] - z)
        fourth[b] += weights[b] * abs(X[j + 3, b] - w)


@parallel_jit(work="weights")
def distance_sums(X, weights, categorical, out):
    """Sums ``sum_a weights_ab |x_aj - x_bj|`` for each input j and row b.

    Parameters
    ----------
    X : (n_inputs, m) float32
    weights : (m, m) float32, 0 above the diagonal
    categorical : (n_inputs,) bool; |x_aj - x_bj| is 1 there where values differ
    out : (n_inputs, m) float32, written
    """
    for part in prange((X.shape[0] + 3) // 4):
        first, last = 4 * part, min(4 * part + 4, X.shape[0])
        out[first:last] = _ZERO
        together = _are_four_numbers(categorical, first)
        for a in range(X.shape[1]):
            if together:
                _add_weighted_of_four(X, a, first, weights[a, : _half(a)], out)
            else:
                for j in range(first, last):
                    _add_weighted(X[j, a], X[j], weights[a, : _half(a)], categorical[j], out[j])


@jit
def _between(table, place):
    """Interpolate a table between two of its entries."""
    low = np.uint32(place)
    return table[low] + (place - np.float32(low)) * (table[low + np.uint32(1)] - table[low])


@jit
def _last_place(table):
    return np.float32(table.shape[0] - 1) * np.float32(0.9999)


@jit
def _multiply_profile(x, others, steps, table, out):
    last = _last_place(table)
    for b in range(others.shape[0]):
        out[b] *= _between(table, min(steps * abs(others[b] - x), last))


@parallel_jit(work="out")
def profile_products(A, B, steps, table, out):
    """Multiply by products over inputs of a profile of ``|a_j - b_j|``, for all pairs.

    Parameters
    ----------
    A : (n_inputs, n) float32
    B : (n_inputs, m) float32
    steps : (n_inputs,) float32; number of table entries per unit of distance; inputs with 0 are skipped
    table : (n_entries,) float32; the profile at evenly spaced distances from 0 on, constant beyond the last
    out : (n, m) float32, updated
    """
    for a in prange(out.shape[0]):
        for j in range(A.shape[0]):
            if steps[j] > _ZERO:
                _multiply_profile(A[j, a], B[j], steps[j], table, out[a])


@jit
def _add_profile(x, others, steps, table, weights, out):
    last = _last_place(table)
    for b in range(others.shape[0]):
        out[b] += weights[b] * _between(table, min(steps * abs(others[b] - x), last))


@parallel_jit(work="weights")
def profile_sums(X, steps, table, weights, out):
    """Sums ``sum_a weights_ab f(|x_aj - x_bj|)`` for each input j and row b, of a tabulated function f.

    Parameters
    ----------
    X : (n_inputs, m) float32
    steps, table : as in `profile_products`
    weights : (m, m) float32
    out : (n_inputs, m) float32, written
    """
    for j in prange(X.shape[0]):
        out[j] = _ZERO
        if steps[j] > _ZERO:
            for a in range(X.shape[1]):
                _add_profile(X[j, a], X[j], steps[j], table, weights[a], out[j])
