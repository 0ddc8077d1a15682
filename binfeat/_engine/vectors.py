"""Vector work of an iterative solver, many columns at once, with a fixed order of summation.

Sums run over blocks of BLOCK rows, in float64 whatever the vectors' type; the caller adds the blocks'
partial sums in order, so that no result depends on the number of threads.
"""

import numpy as np
from numba import prange

from binfeat._engine.policy import driver

BLOCK = 4096


@driver(work="a")
def partial_dots(a, b, out):
    """Partial sums of ``a * b`` over rows, block by block.

    Parameters
    ----------
    a, b : (n, n_columns) float32 or float64
    out : (n_blocks, n_columns) float64, written
    """
    n = a.shape[0]
    for block in prange(out.shape[0]):
        out[block] = 0.0
        for i in range(block * BLOCK, min(n, block * BLOCK + BLOCK)):
            for k in range(a.shape[1]):
                out[block, k] += np.float64(a[i, k]) * np.float64(b[i, k])


@driver(work="direction")
def curvature(direction, image, shift, out):
    """Partial sums of ``direction * (image + shift * direction)`` over rows, block by block.

    Parameters
    ----------
    direction, image : (n, n_columns); the search direction and what the system makes of it
    shift : (n_columns,) float64; what the system has on its diagonal beside
    out : (n_blocks, n_columns) float64, written
    """
    n = direction.shape[0]
    for block in prange(out.shape[0]):
        out[block] = 0.0
        for i in range(block * BLOCK, min(n, block * BLOCK + BLOCK)):
            for k in range(direction.shape[1]):
                d = np.float64(direction[i, k])
                out[block, k] += d * (np.float64(image[i, k]) + shift[k] * d)


@driver(work="direction")
def advance(step, shift, direction, image, inverse, solution, residual, out):
    """Take a step of conjugate gradients: solution, residual, and the residual's preconditioned square.

    Parameters
    ----------
    step, shift : (n_columns,) float64
    direction, image : as in `curvature`
    inverse : (n, 1) or (n, n_columns); the inverse of the preconditioner's diagonal
    solution, residual : (n, n_columns), updated
    out : (n_blocks, n_columns) float64, written: partial sums of ``residual**2 * inverse``
    """
    n, last = direction.shape[0], inverse.shape[1] - 1
    for block in prange(out.shape[0]):
        out[block] = 0.0
        for i in range(block * BLOCK, min(n, block * BLOCK + BLOCK)):
            for k in range(direction.shape[1]):
                d = np.float64(direction[i, k])
                solution[i, k] += step[k] * d
                residual[i, k] -= step[k] * (image[i, k] + shift[k] * d)
                out[block, k] += np.float64(residual[i, k]) ** 2 * np.float64(inverse[i, min(k, last)])


@driver(work="direction")
def redirect(ratio, residual, inverse, direction):
    """Next search direction: ``inverse * residual + ratio * direction``.

    Parameters
    ----------
    ratio : (n_columns,) float64
    residual : (n, n_columns)
    inverse : (n, 1) or (n, n_columns)
    direction : (n, n_columns), updated
    """
    n, last = direction.shape[0], inverse.shape[1] - 1
    for block in prange((n + BLOCK - 1) // BLOCK):
        for i in range(block * BLOCK, min(n, block * BLOCK + BLOCK)):
            for k in range(direction.shape[1]):
                direction[i, k] = inverse[i, min(k, last)] * residual[i, k] + ratio[k] * direction[i, k]
