"""Products with a binning matrix from its codes alone; every entry of the matrix has one value.

Each target is a row in memory. Four targets are multiplied at a time, then two, then one. Numbers that are looked up at
random are interleaved in scratch that stays in the cache. After the bins of a grid is a bin for "no bin", since
branches for single codes would often be predicted wrongly. Four targets are multiplied by two grids at a time, so that
their rows are visited half as often, and bins of rows ahead are fetched. An odd last grid is combined with a table of
one bin. Each number of a result is a sum in a fixed order, the order of the grids or of the rows, for any number of
threads.
"""

import numpy as np
from numba import prange

from binfeat._engine.policy import jit, parallel_jit
from binfeat._engine.simd import FOUR, add_four, fetch

FEW_BINS = 256  # with so few, each addition would wait for the previous one to the same bin
COPIES = 4
BLOCK_ROWS = 2**11  # rows of a block; a float32 sum of so few rows is accurate enough
SUMS_PER_BIN = 8  # rows of a block per bin, so that adding the sums takes little time
MOST_BLOCK_ROWS = 2**16
AHEAD = np.uint64(32)  # rows until the bins that are fetched are added


@jit
def _copy(values, out):
    """Copy an array of the same length. NumPy's assignment takes long to compile: it has messages for other shapes."""
    for i in range(out.shape[0]):
        out[i] = values[i]


@jit
def _scale(value, out):
    for i in range(out.shape[0]):
        out[i] *= value


@jit
def _gather(codes, weights, out):
    no_bin = np.uint64(weights.shape[0] - 1)
    for i in range(np.uint64(codes.shape[0])):
        out[i] += weights[min(np.uint64(codes[i]), no_bin)]


@jit
def _gather_pair(codes, weights, out_0, out_1):
    no_bin = np.uint64(weights.shape[0] - 1)
    for i in range(np.uint64(codes.shape[0])):
        code = min(np.uint64(codes[i]), no_bin)
        out_0[i] += weights[code, 0]
        out_1[i] += weights[code, 1]


@jit
def _interleave(first, second, out):
    for j in range(first.shape[0]):
        out[j, 0] = first[j]
        out[j, 1] = second[j]


@jit
def _multiply_one(codes, starts, weights, rows, table, out):
    out[:] = 0
    for p in range(codes.shape[0]):
        n_bins = starts[p + 1] - starts[p]
        _copy(weights[starts[p] : starts[p + 1]], table[:n_bins])
        table[n_bins] = 0
        _gather(codes[p, rows], table[: n_bins + 1], out)


@jit
def _multiply_pair(codes, starts, weights, rows, pairs, out_0, out_1):
    out_0[:] = 0
    out_1[:] = 0
    for p in range(codes.shape[0]):
        bins = slice(starts[p], starts[p + 1])
        of_grid = pairs[: starts[p + 1] - starts[p] + 1]
        _interleave(weights[0, bins], weights[1, bins], of_grid)
        of_grid[-1] = 0
        _gather_pair(codes[p, rows], of_grid, out_0, out_1)


@jit
def _gather_four(codes, weights, next_codes, next_weights, sums):
    n_rows = np.uint64(codes.shape[0])
    no_bin, next_no_bin = np.uint64(weights.shape[0] - 1), np.uint64(next_weights.shape[0] - 1)
    for i in range(n_rows):
        ahead = min(i + AHEAD, n_rows - np.uint64(1))
        fetch(weights, min(np.uint64(codes[ahead]), no_bin))
        fetch(next_weights, min(np.uint64(next_codes[ahead]), next_no_bin))
        add_four(sums, i, weights, min(np.uint64(codes[i]), no_bin))
        add_four(sums, i, next_weights, min(np.uint64(next_codes[i]), next_no_bin))


@jit
def _interleave_four(targets, place, out):
    a, b, c, d = targets[0, place], targets[1, place], targets[2, place], targets[3, place]
    for j in range(out.shape[0]):
        out[j, 0] = a[j]
        out[j, 1] = b[j]
        out[j, 2] = c[j]
        out[j, 3] = d[j]


@jit
def _separate_four(value, fours, place, out):
    a, b, c, d = out[0, place], out[1, place], out[2, place], out[3, place]
    for j in range(fours.shape[0]):
        a[j] = value * fours[j, 0]
        b[j] = value * fours[j, 1]
        c[j] = value * fours[j, 2]
        d[j] = value * fours[j, 3]


@jit
def _sizes_of_two(starts, p, following):
    """Number of bins of grid p, and of the following grid or, without one, 0."""
    return starts[p + 1] - starts[p], starts[following + 1] - starts[following] if following < len(starts) - 1 else 0


@jit
def _fours_of_grid(weights, starts, p, n_bins, out):
    _interleave_four(weights, slice(starts[p], starts[p] + n_bins), out[:n_bins])
    out[n_bins] = 0
    return out[: n_bins + 1]


@jit
def _multiply_four(codes, starts, place, weights, fours, sums):
    sums[:] = 0
    n_grids = codes.shape[0]
    for p in range(0, n_grids, 2):
        n_bins, n_next = _sizes_of_two(starts, p, p + 1)
        following = min(p + 1, n_grids - 1)
        first = _fours_of_grid(weights, starts, p, n_bins, fours[0])
        second = _fours_of_grid(weights, starts, following, n_next, fours[1])
        _gather_four(codes[p, place], first, codes[following, place], second, sums)


@jit
def _multiply_few(codes, starts, place, weights, value, pairs, rows, out):
    """Multiply up to three targets: a pair, and a single target."""
    n_targets = out.shape[0]
    if n_targets > 1:
        _multiply_pair(codes, starts, weights[:2], place, pairs, out[0, rows], out[1, rows])
    if n_targets != 2:
        _multiply_one(codes, starts, weights[n_targets - 1], place, pairs.reshape(-1), out[n_targets - 1, rows])
    for k in range(n_targets):
        _scale(value, out[k, rows])


@parallel_jit(work="codes")
def multiply(codes, starts, first_row, weights, value, n_blocks, pairs, fours, sums, out):
    """``out = weights @ Z.T``, with the grids of each row added in order.

    Parameters
    ----------
    codes : (n_grids, n_all_rows) uint16 or uint32; codes beyond a grid's columns are "no bin"
    starts : (n_grids + 1,) int64; first column of each grid
    first_row : int; first row of Z among the rows of `codes`
    weights : (n_targets, at least n_columns) float32 or float64
    value : of the type of `weights`; value of every entry of Z
    n_blocks : int; number of blocks of rows, for each of which a grid's weights are read once
    pairs : (n_workers, largest grid + 1, 2) of the type of `weights`, scratch
    fours : (n_workers, 2, largest grid + 1, 4) of the type of `weights`, scratch
    sums : (n_workers, largest block, 4) of the type of `weights`, scratch
    out : (n_targets, n_rows) of the type of `weights`, written
    """
    n_targets, n_rows = out.shape
    n_tasks = (n_targets + FOUR - 1) // FOUR * n_blocks
    for worker in prange(pairs.shape[0]):
        for task in range(worker, n_tasks, pairs.shape[0]):
            first, block = FOUR * (task // n_blocks), task % n_blocks
            rows = slice(block * n_rows // n_blocks, (block + 1) * n_rows // n_blocks)
            place = slice(first_row + rows.start, first_row + rows.stop)
            some, into = weights[first : first + FOUR], out[first : first + FOUR]
            if some.shape[0] == FOUR:
                of_block = sums[worker, : rows.stop - rows.start]
                _multiply_four(codes, starts, place, some, fours[worker], of_block)
                _separate_four(value, of_block, rows, into)
            else:
                _multiply_few(codes, starts, place, some, value, pairs[worker], rows, into)


@jit
def _block_rows(least, n_bins):
    """Number of rows with sums that are added to the totals at once."""
    return max(least, min(SUMS_PER_BIN * n_bins, MOST_BLOCK_ROWS))


@jit
def _add(sums, totals):
    for j in range(totals.shape[0]):
        totals[j] += sums[j]


@jit
def _write(value, sums, out):
    for j in range(out.shape[0]):
        out[j] = value * sums[j]


@jit
def _scatter(codes, values, out):
    no_bin = np.uint64(out.shape[0] - 1)
    for i in range(np.uint64(codes.shape[0])):
        out[min(np.uint64(codes[i]), no_bin)] += values[i]


@jit
def _scatter_to_copies(codes, values, copies):
    no_bin = np.uint64(copies.shape[1] - 1)
    for i in range(np.uint64(codes.shape[0])):
        copies[i % np.uint64(COPIES), min(np.uint64(codes[i]), no_bin)] += values[i]


@jit
def _sum_one(codes, values, few, sums):
    if sums.shape[0] > FEW_BINS + 1:
        sums[:] = 0
        _scatter(codes, values, sums)
        return
    copies = few[:, : sums.shape[0]]
    copies[:] = 0
    _scatter_to_copies(codes, values, copies)
    for code in range(sums.shape[0]):
        sums[code] = (copies[0, code] + copies[1, code]) + (copies[2, code] + copies[3, code])


@jit
def _multiply_transposed_one(codes, values, value, block, copies, sums, totals, out):
    n_rows = codes.shape[0]
    step = _block_rows(block if sums.shape[0] > FEW_BINS + 1 else COPIES * block, sums.shape[0])
    if step >= n_rows:
        _sum_one(codes, values, copies, sums)
        _write(value, sums, out)
        return
    totals[:] = 0
    for first in range(0, n_rows, step):
        rows = slice(first, min(first + step, n_rows))
        _sum_one(codes[rows], values[rows], copies, sums)
        _add(sums, totals)
    _write(value, totals, out)


@jit
def _sum_pair(codes, values_0, values_1, pairs):
    pairs[:] = 0
    no_bin = np.uint64(pairs.shape[0] - 1)
    for i in range(np.uint64(codes.shape[0])):
        code = min(np.uint64(codes[i]), no_bin)
        pairs[code, 0] += values_0[i]
        pairs[code, 1] += values_1[i]


@jit
def _multiply_transposed_pair(codes, values, value, block, pairs, totals, out_0, out_1):
    n_rows, step = codes.shape[0], _block_rows(block, pairs.shape[0])
    if step >= n_rows:
        _sum_pair(codes, values[0], values[1], pairs)
        _write(value, pairs[:, 0], out_0)
        _write(value, pairs[:, 1], out_1)
        return
    totals[:] = 0
    for first in range(0, n_rows, step):
        rows = slice(first, min(first + step, n_rows))
        _sum_pair(codes[rows], values[0, rows], values[1, rows], pairs)
        _add(pairs.reshape(-1), totals.reshape(-1))
    _write(value, totals[:, 0], out_0)
    _write(value, totals[:, 1], out_1)


@jit
def _sum_four(codes, next_codes, rows, sums, next_sums):
    sums[:] = 0
    next_sums[:] = 0
    n_rows = np.uint64(codes.shape[0])
    no_bin, next_no_bin = np.uint64(sums.shape[0] - 1), np.uint64(next_sums.shape[0] - 1)
    for i in range(n_rows):
        ahead = min(i + AHEAD, n_rows - np.uint64(1))
        fetch(sums, min(np.uint64(codes[ahead]), no_bin))
        fetch(next_sums, min(np.uint64(next_codes[ahead]), next_no_bin))
        add_four(sums, min(np.uint64(codes[i]), no_bin), rows, i)
        add_four(next_sums, min(np.uint64(next_codes[i]), next_no_bin), rows, i)


@jit
def _multiply_transposed_four(codes, starts, first_row, value, block, p, following, rows, fours, totals, out):
    n_bins, n_next = _sizes_of_two(starts, p, following)
    following = min(following, codes.shape[0] - 1)
    bins, next_bins = slice(starts[p], starts[p] + n_bins), slice(starts[following], starts[following] + n_next)
    sums, next_sums = fours[0, : n_bins + 1], fours[1, : n_next + 1]
    n_rows = rows.shape[0]
    step = _block_rows(block, fours.shape[1])  # of the largest grid: pairs of grids depend on the number of threads
    if step >= n_rows:
        place = slice(first_row, first_row + n_rows)
        _sum_four(codes[p, place], codes[following, place], rows, sums, next_sums)
        _separate_four(value, sums[:n_bins], bins, out)
        _separate_four(value, next_sums[:n_next], next_bins, out)
        return
    own, of_next = totals[0, : n_bins + 1], totals[1, : n_next + 1]
    own[:] = 0
    of_next[:] = 0
    for first in range(0, n_rows, step):
        last = min(first + step, n_rows)
        place = slice(first_row + first, first_row + last)
        _sum_four(codes[p, place], codes[following, place], rows[first:last], sums, next_sums)
        _add(sums.reshape(-1), own.reshape(-1))
        _add(next_sums.reshape(-1), of_next.reshape(-1))
    _separate_four(value, own[:n_bins], bins, out)
    _separate_four(value, of_next[:n_next], next_bins, out)


@jit
def _multiply_transposed_few(codes, values, value, block, copies, pairs, totals, bins, out):
    n_targets, n_sums = out.shape[0], pairs.shape[0]
    if n_targets > 1:
        of_pairs = totals.reshape(-1)[: 2 * n_sums].reshape(-1, 2)
        _multiply_transposed_pair(codes, values[:2], value, block, pairs, of_pairs, out[0, bins], out[1, bins])
    if n_targets != 2:
        of_one = pairs.reshape(-1)[:n_sums], totals.reshape(-1)[:n_sums], out[n_targets - 1, bins]
        _multiply_transposed_one(codes, values[n_targets - 1], value, block, copies, *of_one)


@parallel_jit(work="codes")
def multiply_transposed(codes, starts, first_row, values, value, block, copies, pairs, fours, totals, rows, out):
    """``out = values @ Z`` for up to four targets, with the rows of each bin added in order.

    A float32 sum of very many rows would lose small terms, so sums of blocks of rows are added in float64. Rows of a
    grid of few bins are added in four interleaved sums, for a single target that is not part of a pair.

    Parameters
    ----------
    codes, starts, first_row, value, pairs, fours : as in `multiply`
    values : (n_targets, n_rows) float32 or float64
    block : int; least number of rows of a block; blocks are longer for grids of many bins, up to 65,536 rows
    copies : (n_workers, 4, 257) of the type of `values`, scratch
    totals : (n_workers, 2, largest grid + 1, 4) float64, scratch
    rows : (n_rows, 4) of the type of `values`, scratch; not used for less than four targets
    out : (n_targets, at least n_columns) of the type of `values`, written up to there
    """
    n_workers, n_rows = pairs.shape[0], values.shape[1]
    for worker in prange(n_workers):
        place = slice(worker * n_rows // n_workers, (worker + 1) * n_rows // n_workers)
        if out.shape[0] == FOUR:
            _interleave_four(values, place, rows[place])
    for worker in prange(n_workers):
        own, sums = fours[worker], totals[worker]
        if out.shape[0] == FOUR:
            for p in range(worker, codes.shape[0], 2 * n_workers):
                two = p, p + n_workers
                _multiply_transposed_four(codes, starts, first_row, value, block, *two, rows, own, sums, out)
        else:
            for p in range(worker, codes.shape[0], n_workers):
                bins, own_pairs = slice(starts[p], starts[p + 1]), pairs[worker, : starts[p + 1] - starts[p] + 1]
                of_grid = codes[p, first_row : first_row + n_rows]
                _multiply_transposed_few(of_grid, values, value, block, copies[worker], own_pairs, sums, bins, out)


@parallel_jit(work="codes")
def count(codes, starts, out):
    """Number of rows in each bin; codes beyond the bins of a grid are no bin.

    Parameters
    ----------
    codes, starts : as in `multiply`
    out : (n_columns,) int64, written
    """
    for p in prange(codes.shape[0]):
        counts = out[starts[p] : starts[p + 1]]
        counts[:] = 0
        for i in range(np.uint64(codes.shape[1])):
            if codes[p, i] < counts.size:
                counts[codes[p, i]] += 1
