"""Products with a binning matrix from its codes alone; every entry of the matrix has one value.

Each target is a row in memory. Two targets are multiplied at a time; their numbers that are looked up at random are
interleaved in pairs, which stay in the cache. Behind the pairs of a grid is one for "no bin", since branches for single
codes would often be predicted wrongly. Each number of a result is a sum in a fixed order, that of grids or of rows, for
any number of threads.
"""

import numpy as np
from numba import prange

from binfeat._engine.policy import driver, jit

FEW_BINS = 256  # with so few, each addition would wait for the previous one to the same bin
COPIES = 4


@jit
def _scale(value, out):
    for i in range(out.shape[0]):
        out[i] *= value


@jit
def _gather(codes, none, weights, out):
    for i in range(out.shape[0]):
        code = codes[i]
        if code != none:
            out[i] += weights[code]


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
def _multiply_one(codes, none, starts, weights, rows, out):
    out[:] = 0
    for p in range(codes.shape[0]):
        _gather(codes[p, rows], none, weights[starts[p] : starts[p + 1]], out)


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


@driver(work="codes")
def multiply(codes, none, starts, first_row, weights, value, n_blocks, pairs, out):
    """``out = weights @ Z.T``, with the grids of each row added in order.

    Parameters
    ----------
    codes : (n_grids, n_all_rows) uint16 or uint32
    none : uint32; code for "no bin"
    starts : (n_grids + 1,) int64; first column of each grid
    first_row : int; of the rows of Z among those of `codes`
    weights : (n_targets, n_columns) float32 or float64
    value : of the type of `weights`; value of every entry of Z
    n_blocks : int; number of blocks of rows, for each of which a grid's weights are read once
    pairs : (n_workers, largest grid + 1, 2) of the type of `weights`, scratch
    out : (n_targets, n_rows) of the type of `weights`, written
    """
    n_targets, n_rows = out.shape
    n_tasks = (n_targets + 1) // 2 * n_blocks
    for worker in prange(pairs.shape[0]):
        for task in range(worker, n_tasks, pairs.shape[0]):
            first, block = 2 * (task // n_blocks), task % n_blocks
            rows = slice(block * n_rows // n_blocks, (block + 1) * n_rows // n_blocks)
            place = slice(first_row + rows.start, first_row + rows.stop)
            last = min(first + 2, n_targets)
            if last - first == 1:
                _multiply_one(codes, none, starts, weights[first], place, out[first, rows])
            else:
                two = weights[first:last]
                _multiply_pair(codes, starts, two, place, pairs[worker], out[first, rows], out[first + 1, rows])
            for k in range(first, last):
                _scale(value, out[k, rows])


@jit
def _scatter(codes, none, values, out):
    for i in range(codes.shape[0]):
        code = codes[i]
        if code != none:
            out[code] += values[i]


@jit
def _scatter_to_copies(codes, none, values, copies):
    for i in range(codes.shape[0]):
        code = codes[i]
        if code != none:
            copies[i % COPIES, code] += values[i]


@jit
def _scatter_one(codes, none, values, value, copies, out):
    if out.shape[0] > FEW_BINS:
        out[:] = 0
        _scatter(codes, none, values, out)
        _scale(value, out)
        return
    copies[:] = 0
    _scatter_to_copies(codes, none, values, copies)
    for code in range(out.shape[0]):
        out[code] = value * ((copies[0, code] + copies[1, code]) + (copies[2, code] + copies[3, code]))


@jit
def _scatter_pair(codes, values_0, values_1, pairs):
    no_bin = np.uint64(pairs.shape[0] - 1)
    for i in range(np.uint64(codes.shape[0])):
        code = min(np.uint64(codes[i]), no_bin)
        pairs[code, 0] += values_0[i]
        pairs[code, 1] += values_1[i]


@jit
def _multiply_transposed_pair(codes, values, value, pairs, out_0, out_1):
    pairs[:] = 0
    _scatter_pair(codes, values[0], values[1], pairs)
    for code in range(out_0.shape[0]):
        out_0[code] = value * pairs[code, 0]
        out_1[code] = value * pairs[code, 1]


@driver(work="codes")
def multiply_transposed(codes, none, starts, first_row, values, value, copies, pairs, out):
    """``out = values @ Z``, with the rows of each bin added in order.

    For a target without a second one beside it, and a grid of few bins, they are added in four interleaved sums.

    Parameters
    ----------
    codes, none, starts, first_row, value, pairs : as in `multiply`
    values : (n_targets, n_rows) float32 or float64
    copies : (n_workers, 4, 256) of the type of `values`, scratch
    out : (n_targets, n_columns) of the type of `values`, written
    """
    n_workers = pairs.shape[0]
    for worker in prange(n_workers):
        for p in range(worker, codes.shape[0], n_workers):
            bins, of_grid = slice(starts[p], starts[p + 1]), codes[p, first_row : first_row + values.shape[1]]
            for k in range(0, out.shape[0] - 1, 2):
                two = values[k : k + 2]
                sums = pairs[worker, : starts[p + 1] - starts[p] + 1]
                _multiply_transposed_pair(of_grid, two, value, sums, out[k, bins], out[k + 1, bins])
            if out.shape[0] % 2:
                _scatter_one(of_grid, none, values[-1], value, copies[worker], out[-1, bins])


@driver(work="codes")
def count(codes, none, starts, out):
    """Number of rows in each bin.

    Parameters
    ----------
    codes, none, starts : as in `multiply`
    out : (n_columns,) int64, written
    """
    for p in prange(codes.shape[0]):
        counts = out[starts[p] : starts[p + 1]]
        counts[:] = 0
        for i in range(np.uint64(codes.shape[1])):
            if codes[p, i] != none:
                counts[codes[p, i]] += 1
