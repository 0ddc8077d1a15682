"""Values of a linear function of binning features, row by row: for a few rows, without memory for codes."""

import numpy as np
from numba import prange

from binfeat._engine.bin_tables import AHEAD, EMPTY, FEW_SLOTS, _probe, first_slot
from binfeat._engine.hashing import add_term, finish
from binfeat._engine.policy import jit, parallel_jit
from binfeat._engine.simd import fetch

_TILE = 1 << 14  # rows whose sums stay in a core's cache from grid to grid


@jit
def sum_terms(x, scale, shift, keys, nan_keys):
    """Return the hash of one row in one grid before `finish`."""
    total = np.uint64(0)
    for j in range(x.shape[0]):
        if scale[j] > 0.0:
            total += add_term(x[j], scale[j], shift[j], keys[j], nan_keys[j])
    return total


@jit
def find_bin(total, slots, keys):
    """Return the number of the bin with this sum of terms, or EMPTY."""
    return slots[_probe(finish(total), slots, keys)]


@jit
def evaluate(X, scale, shift, keys, nan_keys, slots, slot_starts, bin_keys, starts, weights, out):
    """``out[i, k]``: sum over grids of the weights of row i's bins.

    Parameters
    ----------
    X, scale, shift, keys, nan_keys : as in `hash_dense`
    slots, slot_starts, bin_keys, starts : tables, as `index` builds them
    weights : (n_targets, n_bins) float32 or float64; coefficients of the bins
    out : (n_rows, n_targets) float64, written
    """
    for i in range(X.shape[0]):
        out[i] = 0.0
        for p in range(scale.shape[0]):
            total = sum_terms(X[i], scale[p], shift[p], keys[p], nan_keys[p])
            table = slots[slot_starts[p] : slot_starts[p + 1]]
            code = find_bin(total, table, bin_keys[starts[p] : starts[p + 1]])
            if code != EMPTY:
                for k in range(out.shape[1]):
                    out[i, k] += weights[k, starts[p] + code]


@jit
def score_rows(
    X, scale, shift, keys, nan_keys, slots, slot_starts, bin_keys, starts, row_slots, row_keys, row_orders, turns, last,
    weights, out
):  # fmt: skip
    """``out[i]``: sum of the weights of row i's bins. Returns False if a row has an infinite value.

    Parameters
    ----------
    X, keys, nan_keys : as in `hash_dense`
    scale, shift : as in `hash_dense`; the last grid distinguishes rows that are not equal, and has no bins
    slots, slot_starts, bin_keys, starts : tables, as `index` builds them
    row_slots, row_keys : the table of training rows, by their bins in the last grid
    row_orders, turns, last, weights : as in `add_weights`, for each training row
    out : (n_rows,) float64, written
    """
    n_grids = starts.shape[0] - 1
    hashes = np.empty(n_grids + 1, np.uint64)
    first = np.empty(n_grids, np.uint32)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if np.isinf(X[i, j]):
                return False
        for p in range(n_grids + 1):
            hashes[p] = finish(sum_terms(X[i], scale[p], shift[p], keys[p], nan_keys[p]))
        for p in range(n_grids):  # a separate loop, so that cache misses of several grids overlap
            table = slots[slot_starts[p] : slot_starts[p + 1]]
            first[p] = table[first_slot(hashes[p], table.shape[0])]
        row = row_slots[_probe(hashes[n_grids], row_slots, row_keys)]
        known = row != EMPTY
        order = row_orders[row] if known else np.uint64(0)
        value = 0.0
        for p in range(n_grids):
            if first[p] != EMPTY:
                table = slots[slot_starts[p] : slot_starts[p + 1]]
                code = table[_probe(hashes[p], table, bin_keys[starts[p] : starts[p + 1]])]
                if code != EMPTY:
                    own = np.int64(known and order - turns[p] <= last)
                    value += weights[own, starts[p] + code]
        out[i] = value
    return True


@jit
def _add_weights_of_grid(hashes, slots, keys, known, turn, last, weights, out):
    n_rows, is_large = np.uint64(hashes.shape[0]), slots.shape[0] > FEW_SLOTS
    for i in range(n_rows):
        if is_large:
            fetch(slots, first_slot(hashes[min(i + AHEAD, n_rows - np.uint64(1))], slots.shape[0]))
        code = slots[_probe(hashes[i], slots, keys)]
        if code != EMPTY:
            out[i] += weights[np.int64(known[i] and turn[i] <= last), code]


@parallel_jit(work="hashes")
def add_weights(hashes, slots, slot_starts, bin_keys, starts, known, orders, turns, last, weights, out):
    """Add the weights of the rows' bins to `out`; the second weights in grids that count the row itself.

    Parameters
    ----------
    hashes : (n_grids, n_rows) uint64
    slots, slot_starts, bin_keys, starts : tables, as `index` builds them
    known : (n_rows,) bool; whether the row is a training row
    orders : (n_rows,) uint64; a grid counts the training rows with orders from its turn to its turn + `last`, cyclic
    turns : (n_grids,) uint64
    last : uint64
    weights : (2, n_bins) float64
    out : (n_rows,) float64, updated
    """
    n_rows = hashes.shape[1]
    for tile in prange((n_rows + _TILE - 1) // _TILE):
        rows = slice(tile * _TILE, min(n_rows, tile * _TILE + _TILE))
        for p in range(hashes.shape[0]):
            bins = slice(starts[p], starts[p + 1])
            table, table_keys = slots[slot_starts[p] : slot_starts[p + 1]], bin_keys[bins]
            _add_weights_of_grid(
                hashes[p, rows],
                table,
                table_keys,
                known[rows],
                orders[rows] - turns[p],
                last,
                weights[:, bins],
                out[rows],
            )
