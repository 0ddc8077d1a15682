"""Change of a linear function of binning features when one input of a row is replaced by another value."""

from numba import prange

from binfeat._engine.bin_tables import EMPTY
from binfeat._engine.evaluate import find_bin, sum_terms
from binfeat._engine.hashing import add_term
from binfeat._engine.policy import driver, jit


@jit
def _add_weights(code, sign, weights, first, out):
    if code != EMPTY:
        for k in range(out.shape[0]):
            out[k] += sign * weights[k, first + code]


@jit
def _row_in_grid(x, low, high, scale, shift, keys, nan_keys, slots, bin_keys, weights, first, out):
    """One row in one grid. An input whose cell does not change is not looked up."""
    total = sum_terms(x, scale, shift, keys, nan_keys)
    base, known = EMPTY, False
    for j in range(x.shape[0]):
        if scale[j] == 0.0:
            continue
        present = add_term(x[j], scale[j], shift[j], keys[j], nan_keys[j])
        lower = add_term(low[j], scale[j], shift[j], keys[j], nan_keys[j])
        upper = add_term(high[j], scale[j], shift[j], keys[j], nan_keys[j])
        if lower == upper:
            continue
        if not known and (lower == present or upper == present):
            base, known = find_bin(total, slots, bin_keys), True
        code = base if upper == present else find_bin(total - present + upper, slots, bin_keys)
        _add_weights(code, 1.0, weights, first, out[j])
        code = base if lower == present else find_bin(total - present + lower, slots, bin_keys)
        _add_weights(code, -1.0, weights, first, out[j])


@driver(work="out")
def differences(
    X, low, high, scale, shift, keys, nan_keys, slots, slot_starts, bin_keys, starts, weights, n_blocks, out
):
    """``out[i, j] = sqrt(n_grids) * (f(X[i] with high[i, j] at j) - f(X[i] with low[i, j] at j))``.

    The hash is a sum of one term per input, so the row is not hashed again: one term is exchanged.

    Parameters
    ----------
    X, low, high : (n_rows, n_inputs) float64
    scale, shift, keys, nan_keys : (n_grids, n_inputs); as in `hash_dense`
    slots, slot_starts, bin_keys, starts : tables, as `index` builds them
    weights : (n_targets, n_bins) float32 or float64; coefficients of f
    n_blocks : int; number of blocks of rows
    out : (n_rows, n_inputs, n_targets) float64, written
    """
    n_rows = X.shape[0]
    for block in prange(n_blocks):
        rows = slice(block * n_rows // n_blocks, (block + 1) * n_rows // n_blocks)
        out[rows] = 0.0
        for p in range(scale.shape[0]):
            table = slots[slot_starts[p] : slot_starts[p + 1]]
            grid_keys = bin_keys[starts[p] : starts[p + 1]]
            grid = scale[p], shift[p], keys[p], nan_keys[p]
            for i in range(rows.start, rows.stop):
                _row_in_grid(X[i], low[i], high[i], *grid, table, grid_keys, weights, starts[p], out[i])
