"""Products with a binning matrix from its codes alone; every entry of the matrix counts as 1 here.

Each number of a result is a sum in one order, that of grids or of rows, whatever the number of threads.
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
def _gather_many(codes, none, weights, out):
    for i in range(np.uint64(out.shape[0])):
        code = codes[i]
        if code != none:
            for k in range(out.shape[1]):
                out[i, k] += weights[code, k]


@driver(work="codes")
def multiply(codes, none, starts, weights, n_blocks, out):
    """``out = Z @ weights``, each row's grids added in order.

    Parameters
    ----------
    codes : (n_grids, n_rows) uint16 or uint32
    none : uint32; the code that says "no bin"
    starts : (n_grids + 1,) int64; first column of each grid
    weights : (n_columns, n_targets) float32 or float64
    n_blocks : int; blocks of rows, best one per thread: a grid's weights are read once for each
    out : (n_rows, n_targets) float32 or float64, written
    """
    n_rows = codes.shape[1]
    for block in prange(n_blocks):
        rows = slice(block * n_rows // n_blocks, (block + 1) * n_rows // n_blocks)
        sums = out[rows]
        sums[:] = 0
        for p in range(codes.shape[0]):
            own = weights[starts[p] : starts[p + 1]]
            if out.shape[1] == 1:
                _gather(codes[p, rows], none, own.ravel(), sums.ravel())
            else:
                _gather_many(codes[p, rows], none, own, sums)


@jit
def _scatter(codes, none, values, out):
    out[:] = 0
    for i in range(codes.shape[0]):
        code = codes[i]
        if code != none:
            out[code] += values[i]


@jit
def _scatter_to_copies(codes, none, values, copies, out):
    copies[:] = 0
    for i in range(codes.shape[0]):
        code = codes[i]
        if code != none:
            copies[i % COPIES, code] += values[i]
    for code in range(out.shape[0]):
        out[code] = (copies[0, code] + copies[1, code]) + (copies[2, code] + copies[3, code])


@jit
def _scatter_many(codes, none, values, out):
    out[:] = 0
    for i in range(np.uint64(codes.shape[0])):
        code = codes[i]
        if code != none:
            for k in range(values.shape[1]):
                out[code, k] += values[i, k]


@driver(work="codes")
def multiply_transposed(codes, none, starts, values, copies, out):
    """``out = Z.T @ values``, each bin's rows added in order; in a grid of few bins in four interleaved sums.

    Parameters
    ----------
    codes, none, starts : as in `multiply`
    values : (n_rows, n_targets) float32 or float64
    copies : (n_grids, 4, 256) of the type of `out`, scratch
    out : (n_columns, n_targets) float32 or float64, written
    """
    for p in prange(codes.shape[0]):
        own = out[starts[p] : starts[p + 1]]
        if out.shape[1] > 1:
            _scatter_many(codes[p], none, values, own)
        elif own.shape[0] > FEW_BINS:
            _scatter(codes[p], none, values.ravel(), own.ravel())
        else:
            _scatter_to_copies(codes[p], none, values.ravel(), copies[p], own.ravel())


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
