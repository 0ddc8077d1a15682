"""Cell indices and the keyed hash, which identifies the bin of a row in each grid."""

import numpy as np
from numba import prange

from binfeat._engine.policy import jit, parallel_jit

BLOCK = 512
FLAGS = BLOCK // 4 + 1  # for more than a quarter of the rows, a vectorized column is faster than single flags
STRIDE = BLOCK + 8  # a power of two would map a whole block to one set of the cache

BORDER = 2.0**51 - 1  # odd, because a multiple of a power of two would lose bits of the key
_SAFE = 2.0**50  # below it no cell can exceed the border, with any shift
_FIRST = np.uint64(0xFF51AFD7ED558CCD)  # the multipliers of MurmurHash3's 64-bit finalizer
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(33)
_ONE = np.uint64(1)
_MAGIC = 1.5 * 2.0**52  # added to a whole number below 2^51, it leaves the number in the low bits
_MAGIC_BITS = np.uint64(0x4338000000000000)
_MAGNITUDE = np.uint64(0x7FFFFFFFFFFFFFFF)  # all bits of a float64 except its sign


@jit
def finish(total):
    """Mix the sum of terms so that its top bits depend on all bits. It is a bijection, so it adds no collisions."""
    total = (total ^ (total >> _HALF)) * _FIRST
    total = (total ^ (total >> _HALF)) * _SECOND
    return total ^ (total >> _HALF)


@jit
def add_term(x, scale, shift, key, nan_key):
    """Return the term of one input in the hash: `key * ceil(x * scale - shift)`, saturated; `nan_key` for NaN.

    With an infinite scale, only equal values have equal terms.
    """
    if np.isnan(x):
        return nan_key
    if scale == np.inf:
        return finish(np.float64(x + 0.0).view(np.uint64)) * key  # no negative zero
    cell = min(max(np.ceil(x * scale - shift), -BORDER), BORDER)
    return np.uint64(np.int64(cell)) * key


@jit
def _add_column(columns, j, reach, scale, shift, key, nan_key, total):
    """Add the terms of input j to the sums of a block of rows.

    Cells become integers by their bits, because AVX2 has no instruction that casts several float64 numbers to int64.

    `reach` is the largest magnitude in the column, or NaN if it holds one. A column of zeros adds nothing, because
    `ceil(-shift)` is 0.
    """
    if scale == 0.0 or reach == 0.0:
        return
    if reach * scale < _SAFE:
        for i in range(np.uint64(total.shape[0])):
            cell = np.float64(np.ceil(columns[j, i] * scale - shift) + _MAGIC)
            total[i] += (cell.view(np.uint64) - _MAGIC_BITS) * key
    else:
        for i in range(np.uint64(total.shape[0])):
            total[i] += add_term(columns[j, i], scale, shift, key, nan_key)


@jit
def _largest(magnitudes):
    """Return the largest magnitude of floats given by their bits; NaN is the largest. Integer maxima vectorize."""
    largest = np.uint64(0)
    for i in range(magnitudes.shape[0]):
        largest = max(largest, magnitudes[i] & _MAGNITUDE)
    return largest


@jit
def _list_flags(bits, largest, rows):
    """List the rows with the non-zero value of a column that has only one such value, in at most a quarter of the rows.

    `rows[0]` is their number, or 0 for any other column; the rows follow.
    """
    others = 0
    n_set = 0
    for i in range(bits.shape[0]):
        others += (bits[i] != 0) & (bits[i] != largest)
        n_set += bits[i] == largest
    rows[0] = 0
    if others == 0 and largest != 0 and n_set < rows.shape[0]:
        for i in range(bits.shape[0]):
            if bits[i] == largest:
                rows[0] += 1
                rows[rows[0]] = i


@jit
def _load_block(X, start, n_rows, columns, reach, flags):
    """Transpose a block of rows into `columns` (float64), find each input's largest magnitude, list flags."""
    for i in range(n_rows):
        for j in range(X.shape[1]):
            columns[j, i] = X[start + i, j]
    reach_bits = reach.view(np.uint64)
    for j in range(X.shape[1]):
        bits = columns[j, :n_rows].view(np.uint64)
        reach_bits[j] = _largest(bits)
        _list_flags(bits, reach_bits[j], flags[j])


@jit
def _hash_block(X, start, stop, first_row, scale, shift, keys, nan_keys, columns, reach, flags, out):
    n_rows = stop - start
    _load_block(X, start, n_rows, columns, reach, flags)
    for p in range(scale.shape[0]):
        total = out[p, first_row + start : first_row + stop]
        total[:] = np.uint64(0)
        for j in range(np.uint64(X.shape[1])):  # no slices of inputs, because Numba would count references to them
            parameters, n_set = (scale[p, j], shift[p, j], keys[p, j], nan_keys[p, j]), np.uint64(flags[j, 0])
            if n_set == 0:
                _add_column(columns, j, reach[j], *parameters, total)
            elif scale[p, j] > 0.0:
                term = add_term(reach[j], *parameters)
                for k in range(_ONE, n_set + _ONE):
                    total[flags[j, k]] += term
        for i in range(n_rows):
            total[i] = finish(total[i])


@parallel_jit(work="out")
def hash_dense(X, first_row, scale, shift, keys, nan_keys, columns, reach, flags, out):
    """Hash every row of a dense block in every grid.

    A flag, which is a column whose few non-zeros are all equal, costs one addition for each of them and each grid.

    Parameters
    ----------
    X : (n_rows, n_inputs) float64, C order; finite or NaN
    first_row : int; column of the block's first row in `out`
    scale, shift : (n_grids, n_inputs) float64; one over the pitch (infinity for grids in which only equal values share
        a bin), and the shift in [0, 1)
    keys, nan_keys : (n_grids, n_inputs) uint64
    columns : (n_tasks, n_inputs, STRIDE) float64, scratch
    reach : (n_tasks, n_inputs) float64, scratch
    flags : (n_tasks, n_inputs, FLAGS) uint32, scratch
    out : (n_grids, n_all_rows) uint64, written from column `first_row`
    """
    n_rows, n_tasks = X.shape[0], columns.shape[0]
    n_blocks = (n_rows + BLOCK - 1) // BLOCK
    for task in prange(n_tasks):
        scratch = columns[task], reach[task], flags[task]
        for block in range(task, n_blocks, n_tasks):
            start = block * BLOCK
            stop = min(n_rows, start + BLOCK)
            _hash_block(X, start, stop, first_row, scale, shift, keys, nan_keys, *scratch, out)


@jit
def _hash_sparse_row(values, inputs, scale, shift, keys, nan_keys, total):
    total[:] = np.uint64(0)
    for k in range(values.shape[0]):
        x, j = values[k], inputs[k]
        for p in range(total.shape[0]):
            if scale[j, p] > 0.0:
                total[p] += add_term(x, scale[j, p], shift[j, p], keys[j, p], nan_keys[j, p])
    for p in range(total.shape[0]):
        total[p] = finish(total[p])


@parallel_jit(work="out")
def hash_sparse(values, inputs, row_starts, scale, shift, keys, nan_keys, totals, out):
    """Hash every row of a CSR block in every grid, in a time proportional to the stored entries.

    Parameters
    ----------
    values : (n_stored,) float64; finite or NaN
    inputs : (n_stored,) int64, each below n_inputs, none twice in a row
    row_starts : (n_rows + 1,) int64
    scale, shift, keys, nan_keys : (n_inputs, n_grids); as in `hash_dense`, transposed
    totals : (n_tasks, n_grids) uint64, scratch
    out : (n_grids, n_rows) uint64, written
    """
    n_rows, n_tasks = row_starts.shape[0] - 1, totals.shape[0]
    for task in prange(n_tasks):
        total = totals[task]
        for i in range(task * n_rows // n_tasks, (task + 1) * n_rows // n_tasks):
            row = slice(row_starts[i], row_starts[i + 1])
            _hash_sparse_row(values[row], inputs[row], scale, shift, keys, nan_keys, total)
            for p in range(total.shape[0]):
                out[p, i] = total[p]
