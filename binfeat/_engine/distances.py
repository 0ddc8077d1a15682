"""Kernel matrices of few rows, and sums over all pairs of rows: what exact kernel machines are made of.

All arrays are float32. Rows are columns here, so that the loop over one side of the pairs is contiguous.
"""

import numpy as np
from numba import prange

from binfeat._engine.policy import driver, jit

_ZERO = np.float32(0)


@jit
def _add_differences(x, others, gamma, categorical, out):
    if categorical:
        for b in range(others.shape[0]):
            out[b] += gamma if others[b] != x else _ZERO
    else:
        for b in range(others.shape[0]):
            out[b] += gamma * abs(others[b] - x)


@driver(work="out")
def weighted_distances(A, B, gamma, categorical, out):
    """Distances ``sum_j gamma_j |a_j - b_j|`` of all pairs; a categorical input adds gamma_j where values differ.

    Parameters
    ----------
    A : (n_inputs, n) float32
    B : (n_inputs, m) float32
    gamma : (n_inputs,) float32; inputs where it is 0 are passed over
    categorical : (n_inputs,) bool
    out : (n, m) float32, written
    """
    for a in prange(out.shape[0]):
        out[a] = _ZERO
        for j in range(A.shape[0]):
            if gamma[j] > _ZERO:
                _add_differences(A[j, a], B[j], gamma[j], categorical[j], out[a])


@jit
def _add_weighted(x, others, weights, categorical, out):
    if categorical:
        for b in range(others.shape[0]):
            out[b] += weights[b] if others[b] != x else _ZERO
    else:
        for b in range(others.shape[0]):
            out[b] += weights[b] * abs(others[b] - x)


@driver(work="weights")
def distance_sums(X, weights, categorical, out):
    """Sums ``sum_a weights_ab |x_aj - x_bj|`` for each input j and row b.

    Parameters
    ----------
    X : (n_inputs, m) float32
    weights : (m, m) float32
    categorical : (n_inputs,) bool; |x_aj - x_bj| is 1 there where values differ
    out : (n_inputs, m) float32, written
    """
    for j in prange(X.shape[0]):
        out[j] = _ZERO
        for a in range(X.shape[1]):
            _add_weighted(X[j, a], X[j], weights[a], categorical[j], out[j])


@jit
def _between(table, place):
    """Value of a table between two of its entries."""
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


@driver(work="out")
def profile_products(A, B, steps, table, out):
    """Multiply by products over inputs of a profile of ``|a_j - b_j|``, for all pairs.

    Parameters
    ----------
    A : (n_inputs, n) float32
    B : (n_inputs, m) float32
    steps : (n_inputs,) float32; entries of the table for a distance of 1; inputs where it is 0 are passed over
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


@driver(work="weights")
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
