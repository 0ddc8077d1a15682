"""Products with a binning matrix from its codes alone; every entry of the matrix counts as 1 here."""

import numpy as np
from numba import prange

from binfeat._engine.policy import driver

ROWS = 8192  # rows of a product formed together: a grid's weights are read once per so many rows


@driver(work="codes")
def multiply(codes, none, starts, weights, out):
    """``out = Z @ weights``, each row's grids added in order.

    Parameters
    ----------
    codes : (n_grids, n_rows) uint16 or uint32
    none : uint32; the code that says "no bin"
    starts : (n_grids + 1,) int64; first column of each grid
    weights : (n_columns, n_targets) float32 or float64
    out : (n_rows, n_targets) float32 or float64, written
    """
    n_rows = codes.shape[1]
    for block in prange((n_rows + ROWS - 1) // ROWS):
        first, last = block * ROWS, min(n_rows, block * ROWS + ROWS)
        out[first:last] = 0
        for p in range(codes.shape[0]):
            own = weights[starts[p] : starts[p + 1]]
            for i in range(np.uint64(first), np.uint64(last)):
                code = codes[p, i]
                if code != none:
                    for k in range(out.shape[1]):
                        out[i, k] += own[code, k]


@driver(work="codes")
def multiply_transposed(codes, none, starts, values, out):
    """``out = Z.T @ values``, each bin's rows added in order.

    Parameters
    ----------
    codes, none, starts : as in `multiply`
    values : (n_rows, n_targets) float32 or float64
    out : (n_columns, n_targets) float32 or float64, written
    """
    for p in prange(codes.shape[0]):
        own = out[starts[p] : starts[p + 1]]
        own[:] = 0
        for i in range(np.uint64(codes.shape[1])):
            code = codes[p, i]
            if code != none:
                for k in range(values.shape[1]):
                    own[code, k] += values[i, k]


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
