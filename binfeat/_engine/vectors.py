"""Vector operations of an iterative solver, for many targets at once, with a fixed order of summation.

Each target is a row. Sums are over blocks of BLOCK numbers, in float64 for any type of the vectors; the caller adds the
partial sums of the blocks in order, so that no result depends on the number of threads.
"""

import numpy as np
from numba import prange

from binfeat._engine.policy import jit, parallel_jit

BLOCK = 4096
LANES = 32  # parallel sums of a block, for vector instructions


@jit
def _block(task, n_blocks, n):
    """Return target and range of a task."""
    start = task % n_blocks * BLOCK
    return task // n_blocks, slice(start, min(n, start + BLOCK))


@jit
def _total(sums):
    total = 0.0
    for k in range(sums.shape[0]):
        total += sums[k]
    return total


@jit
def dot(a, b):
    """Return the inner product by interleaved sums; in a single sum each addition would wait for the previous one."""
    sums = np.zeros(LANES)
    for start in range(0, a.shape[0], LANES):
        lane_a, lane_b = a[start : start + LANES], b[start : start + LANES]
        for k in range(lane_a.shape[0]):
            sums[k] += np.float64(lane_a[k]) * np.float64(lane_b[k])
    return _total(sums)


@jit
def _weighted_square(a, weights):
    sums = np.zeros(LANES)
    for start in range(0, a.shape[0], LANES):
        lane, lane_weights = a[start : start + LANES], weights[start : start + LANES]
        for k in range(lane.shape[0]):
            sums[k] += np.float64(lane[k]) ** 2 * np.float64(lane_weights[k])
    return _total(sums)


@jit
def _curvature(direction, image, shift):
    sums = np.zeros(LANES)
    for start in range(0, direction.shape[0], LANES):
        lane, lane_image = direction[start : start + LANES], image[start : start + LANES]
        for k in range(lane.shape[0]):
            d = np.float64(lane[k])
            sums[k] += d * (np.float64(lane_image[k]) + shift * d)
    return _total(sums)


@parallel_jit(work="a")
def partial_dots(a, b, out):
    """Partial sums of ``a * b``, block by block.

    Parameters
    ----------
    a : (n_targets, n) float32 or float64
    b : (n_targets, n) or (1, n)
    out : (n_targets, n_blocks) float64, written
    """
    for task in prange(out.size):
        k, block = _block(task, out.shape[1], a.shape[1])
        out[k, task % out.shape[1]] = dot(a[k, block], b[min(k, b.shape[0] - 1), block])


@parallel_jit(work="a")
def partial_squares(a, weights, out):
    """Compute partial sums of ``a**2 * weights`` per block; parameters as in `partial_dots`."""
    for task in prange(out.size):
        k, block = _block(task, out.shape[1], a.shape[1])
        out[k, task % out.shape[1]] = _weighted_square(a[k, block], weights[min(k, weights.shape[0] - 1), block])


@parallel_jit(work="values")
def center(means, weights, values):
    """Subtract the mean of each target, and multiply by the weights.

    Parameters
    ----------
    means : (n_targets,) float64
    weights : (n_targets, n) or (1, n)
    values : (n_targets, n) float32 or float64, updated
    """
    n_blocks = (values.shape[1] + BLOCK - 1) // BLOCK
    for task in prange(values.shape[0] * n_blocks):
        k, block = _block(task, n_blocks, values.shape[1])
        _center(means[k], weights[min(k, weights.shape[0] - 1), block], values[k, block])


@jit
def _center(mean, weights, values):
    for i in range(values.shape[0]):
        values[i] = (values[i] - mean) * weights[i]


@parallel_jit(work="direction")
def curvature(direction, image, shift, out):
    """Partial sums of ``direction * (image + shift * direction)``, block by block.

    Parameters
    ----------
    direction, image : (n_active, n); the search directions and their products with the system
    shift : (n_active,) float64; added to the diagonal of the system
    out : (n_active, n_blocks) float64, written
    """
    for task in prange(out.size):
        k, block = _block(task, out.shape[1], direction.shape[1])
        out[k, task % out.shape[1]] = _curvature(direction[k, block], image[k, block], shift[k])


@jit
def _advance(step, shift, direction, image, solution, residual):
    for i in range(direction.shape[0]):
        d = np.float64(direction[i])
        solution[i] += step * d
        residual[i] -= step * (image[i] + shift * d)


@parallel_jit(work="direction")
def advance(step, shift, targets, direction, image, inverse, solution, residual, out):
    """Take a step of conjugate gradients: solution, residual, and the residual's preconditioned square.

    Parameters
    ----------
    step, shift : (n_active,) float64
    targets : (n_active,) int64; target of each direction
    direction, image : as in `curvature`
    inverse : (1, n) or (n_targets, n); the inverse of the preconditioner's diagonal
    solution, residual : (n_targets, n), updated where a target is active
    out : (n_active, n_blocks) float64, written: partial sums of ``residual**2 * inverse``
    """
    for task in prange(out.size):
        k, block = _block(task, out.shape[1], direction.shape[1])
        t = targets[k]
        _advance(step[k], shift[k], direction[k, block], image[k, block], solution[t, block], residual[t, block])
        out[k, task % out.shape[1]] = _weighted_square(residual[t, block], inverse[min(t, inverse.shape[0] - 1), block])


@jit
def _redirect(ratio, residual, inverse, direction):
    for i in range(direction.shape[0]):
        direction[i] = inverse[i] * residual[i] + ratio * direction[i]


@parallel_jit(work="direction")
def redirect(ratio, targets, residual, inverse, direction):
    """Next search directions: ``inverse * residual + ratio * direction``.

    Parameters
    ----------
    ratio : (n_active,) float64
    targets, residual, inverse : as in `advance`
    direction : (n_active, n), updated
    """
    n = direction.shape[1]
    n_blocks = (n + BLOCK - 1) // BLOCK
    for task in prange(direction.shape[0] * n_blocks):
        k, block = _block(task, n_blocks, n)
        t = targets[k]
        _redirect(ratio[k], residual[t, block], inverse[min(t, inverse.shape[0] - 1), block], direction[k, block])
