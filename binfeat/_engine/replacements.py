"""Sums over grids of weights of bins, after one input of a row is replaced by its value in other rows."""

import numpy as np
from numba import prange

from binfeat._engine.bin_tables import EMPTY
from binfeat._engine.evaluate import find_bin, sum_terms
from binfeat._engine.hashing import add_term
from binfeat._engine.policy import jit, parallel_jit


@jit
def _weight(total, slots, keys, weights):
    code = find_bin(total, slots, keys)
    return 0.0 if code == EMPTY else weights[code]


@jit
def _replace_in_grid(x, values, scale, shift, keys, nan_keys, slots, bin_keys, weights, own, out):
    """Add the increase of one grid's weight, summed over the rows of `values`, to `out` (n_inputs,).

    `own` contains the weights if the row stays in its bin.
    """
    total = sum_terms(x, scale, shift, keys, nan_keys)
    before = _weight(total, slots, bin_keys, own)
    for j in range(x.shape[0]):
        if scale[j] > 0.0:
            others = total - add_term(x[j], scale[j], shift[j], keys[j], nan_keys[j])
            for r in range(values.shape[0]):
                replaced = others + add_term(values[r, j], scale[j], shift[j], keys[j], nan_keys[j])
                if replaced != total:
                    out[j] += _weight(replaced, slots, bin_keys, weights) - before


@parallel_jit(work="out")
def replace_inputs(
    X, values, scale, shift, keys, nan_keys, slots, slot_starts, bin_keys, starts, weights, counted, out
):
    """``out[i, j]``: rise of the sum over grids of row i's weights when input j is replaced, summed over replacements.

    Parameters
    ----------
    X : (n_rows, n_inputs) float64
    values : (n_replacements, n_inputs) float64; rows whose values replace those of X, one input at a time
    scale, shift, keys, nan_keys : as in `hash_dense`
    slots, slot_starts, bin_keys, starts : tables, as `index` builds them
    weights : (2, n_bins) float64; weights of bins for a row that is not, or is, counted in its bin
    counted : (n_rows, n_grids) bool; whether the grid counts the row
    out : (n_rows, n_inputs) float64, written
    """
    for i in prange(X.shape[0]):
        out[i] = 0.0
        for p in range(scale.shape[0]):
            bins = slice(starts[p], starts[p + 1])
            own = weights[np.int64(counted[i, p]), bins]
            table = slots[slot_starts[p] : slot_starts[p + 1]]
            parameters = scale[p], shift[p], keys[p], nan_keys[p]
            _replace_in_grid(X[i], values, *parameters, table, bin_keys[bins], weights[0, bins], own, out[i])
