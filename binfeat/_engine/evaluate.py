"""Value of a linear function of binning features, row by row: for a few rows, without memory for codes."""

import numpy as np

from binfeat._engine.bin_tables import EMPTY, _probe
from binfeat._engine.hashing import add_term, finish
from binfeat._engine.policy import jit


@jit
def sum_terms(x, scale, shift, keys, nan_keys):
    """The hash of one row in one grid, not yet finished."""
    total = np.uint64(0)
    for j in range(x.shape[0]):
        if scale[j] > 0.0:
            total += add_term(x[j], scale[j], shift[j], keys[j], nan_keys[j])
    return total


@jit
def find_bin(total, slots, keys):
    """Number of the bin with this sum of terms, or EMPTY."""
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
def evaluate_known(
    X, scale, shift, keys, nan_keys, slots, slot_starts, bin_keys, starts, f_scale, f_shift, f_keys, f_nan_keys,
    f_slots, f_slot_starts, f_bin_keys, f_starts, weights, out
):  # fmt: skip
    """``out[i]``: sum of the weights of row i's bins; of the second weights if the row has a bin in one more grid.

    Parameters
    ----------
    X, scale, shift, keys, nan_keys, slots, slot_starts, bin_keys, starts : as in `evaluate`
    f_scale, f_shift, f_keys, f_nan_keys, f_slots, f_slot_starts, f_bin_keys, f_starts : the same for the one more grid
    weights : (2, n_bins) float64
    out : (n_rows,) float64, written
    """
    for i in range(X.shape[0]):
        total = sum_terms(X[i], f_scale[0], f_shift[0], f_keys[0], f_nan_keys[0])
        own = weights[np.int64(find_bin(total, f_slots, f_bin_keys) != EMPTY)]
        out[i] = 0.0
        for p in range(scale.shape[0]):
            total = sum_terms(X[i], scale[p], shift[p], keys[p], nan_keys[p])
            table = slots[slot_starts[p] : slot_starts[p + 1]]
            code = find_bin(total, table, bin_keys[starts[p] : starts[p + 1]])
            if code != EMPTY:
                out[i] += own[starts[p] + code]
