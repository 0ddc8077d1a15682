"""Products with a binning matrix from its codes alone; every entry of the matrix has one value.

Targets lie side by side in memory, each one's numbers in a row. Two at a time go through the codes, with
what is looked up at random kept as pairs that stay in cache. Each number of a result is a sum in one order,
that of grids or of rows, whatever the number of threads.
"""

import numpy as np
from numba import prange

from binfeat._engine.policy import driver, jit

FEW_BINS = 256  # where rows meet so often that each addition would wait for the last one to the same bin
COPIES = 4


@jit
def _gather(codes, none, weights, out):
    for i in range(out.shape[0]):
        code = codes[i]
        if code != none:
            out[i] += weights[code]


@jit
def _gather_pair(codes, none, weights, out_0, out_1):
    for i in range(np.uint64(codes.shape[0])):
        code = codes[i]
        if code != none:
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
def _multiply_pair(codes, none, starts, weights, rows, pairs, out_0, out_1):
    out_0[:] = 0
    out_1[:] = 0
    for p in range(codes.shape[0]):
        own = slice(starts[p], starts[p + 1])
        _interleave(weights[0, own], weights[1, own], pairs)
        _gather_pair(codes[p, rows], none, pairs, out_0, out_1)


@driver(work="codes")
def multiply(codes, none, starts, weights, value, n_blocks, pairs, out):
    """``out = weights @ Z.T``, each row's grids added in order.

    Parameters
    ----------
    codes : (n_grids, n_rows) uint16 or uint32
    none : uint32; the code that says "no bin"
    starts : (n_grids + 1,) int64; first column of each grid
    weights : (n_targets, n_columns) float32 or float64
    value : of the type of `weights`; what every entry of Z is
    n_blocks : int; blocks of rows: a grid's weights are read once for each
    pairs : (n_workers, largest grid, 2) of the type of `weights`, scratch
    out : (n_targets, n_rows) of the type of `weights`, written
    """
    n_targets, n_rows = out.shape
    n_tasks = (n_targets + 1) // 2 * n_blocks
    for worker in prange(pairs.shape[0]):
        for task in range(worker, n_tasks, pairs.shape[0]):
            first, block = 2 * (task // n_blocks), task % n_blocks
            rows = slice(block * n_rows // n_blocks, (block + 1) * n_rows // n_blocks)
            last = min(first + 2, n_targets)
            if last - first == 1:
                _multiply_one(codes, none, starts, weights[first], rows, out[first, rows])
            else:
                own = weights[first:last]
                _multiply_pair(codes, none, starts, own, rows, pairs[worker], out[first, rows], out[first + 1, rows])
            for k in range(first, last):
                out[k, rows] *= value


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
        out *= value
        return
    copies[:] = 0
    _scatter_to_copies(codes, none, values, copies)
    for code in range(out.shape[0]):
        out[code] = value * ((copies[0, code] + copies[1, code]) + (copies[2, code] + copies[3, code]))


@jit
def _scatter_pair(codes, none, values_0, values_1, pairs):
    for i in range(np.uint64(codes.shape[0])):
        code = codes[i]
        if code != none:
            pairs[code, 0] += values_0[i]
            pairs[code, 1] += values_1[i]


@jit
def _multiply_transposed_pair(codes, none, values, value, pairs, out_0, out_1):
    pairs[: out_0.shape[0]] = 0
    _scatter_pair(codes, none, values[0], values[1], pairs)
    for code in range(out_0.shape[0]):
        out_0[code] = value * pairs[code, 0]
        out_1[code] = value * pairs[code, 1]


@driver(work="codes")
def multiply_transposed(codes, none, starts, values, value, copies, pairs, out):
    """``out = values @ Z``, each bin's rows added in order; one target's in a grid of few bins in four sums.

    Parameters
    ----------
    codes, none, starts, value, pairs : as in `multiply`
    values : (n_targets, n_rows) float32 or float64
    copies : (n_workers, 4, 256) of the type of `values`, scratch
    out : (n_targets, n_columns) of the type of `values`, written
    """
    n_workers = pairs.shape[0]
    for worker in prange(n_workers):
        for p in range(worker, codes.shape[0], n_workers):
            own = slice(starts[p], starts[p + 1])
            for k in range(0, out.shape[0] - 1, 2):
                two = values[k : k + 2]
                _multiply_transposed_pair(codes[p], none, two, value, pairs[worker], out[k, own], out[k + 1, own])
            if out.shape[0] % 2:
                _scatter_one(codes[p], none, values[-1], value, copies[worker], out[-1, own])


@driver(work="codes")
def count(codes, none, starts, out):
    """Rows in each bin.

    Parameters
    ----------
    codes, none, starts : as in `multiply`
    out : (n_columns,) int64, written
    """
    for p in prange(codes.shape[0]):
        own = out[starts[p] : starts[p + 1]]
        own[:] = 0
        for i in range(np.uint64(codes.shape[1])):
            if codes[p, i] != none:
                own[codes[p, i]] += 1
