"""Values of kernels that decay with the distance, written over the distances.

An exponential is reduced by the nearest multiple of log 2, whose product with the number of halvings is exact (Cody &
Waite 1980, "Software Manual for the Elementary Functions", chapter 6), to a Taylor polynomial. No branch depends on an
argument, so the loops are vectorized. Values are at least exp(-87), so that no number is subnormal.
"""

import numpy as np
from numba.extending import register_jitable

from binfeat._engine.fma import multiply_add
from binfeat._engine.policy import jit

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)
_NEAREST = np.float32(1e-4)  # nearer rows count as equal
_MOST, _HALVINGS = np.float32(87), np.float32(-1 / np.log(2))
_HIGH, _LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # log 2 as 355 / 512 plus the rest
_C2, _C3, _C4, _C5, _C6, _C7 = (np.float32(1 / n) for n in (2, 6, 24, 120, 720, 5040))
_MANTISSA_BITS = np.int32(23)


def _decay_by(multiply_add):
    """Return ``exp(-z)`` of a non-negative float32, by products and sums."""

    @register_jitable
    def decay(z):
        z = min(z, _MOST)
        n = np.floor(multiply_add(z, _HALVINGS, _HALF))
        r = multiply_add(n, -_LOW, multiply_add(n, -_HIGH, -z))
        series = multiply_add(r, _C7, _C6)
        for c in (_C5, _C4, _C3, _C2, _ONE, _ONE):
            series = multiply_add(r, series, c)
        return np.int32(np.float32(series).view(np.int32) + (np.int32(n) << _MANTISSA_BITS)).view(np.float32)

    return decay


@register_jitable
def _two_roundings(a, b, c):
    return a * b + c


decay = _decay_by(_two_roundings)
fused_decay = _decay_by(multiply_add)  # twice as fast; its last bit depends on the processor


@jit
def decays_of(row):
    """Replace distances t, (n,) float32, by ``exp(-t)``."""
    for j in range(row.shape[0]):
        row[j] = decay(row[j])


@jit
def decays(distances):
    """``exp(-t)`` of distances t.

    Parameters
    ----------
    distances : (n, m) float32, updated
    """
    for i in range(distances.shape[0]):
        decays_of(distances[i])


@jit
def gaussian_values(products, A_squares, B_squares):
    """``exp(-s)`` of squared distances s.

    Parameters
    ----------
    products : (n, m) float32, updated; -2 times the inner products of rows
    A_squares, B_squares : (n,) and (m,) float32; squared norms of the rows. A squared distance is the product plus both
        norms
    """
    for i in range(products.shape[0]):
        row, square = products[i], A_squares[i]
        for j in range(row.shape[0]):
            row[j] = decay(max(row[j] + square + B_squares[j], _ZERO))


@jit
def _exponential(row, square, squares, falls):
    for j in range(row.shape[0]):
        z = np.sqrt(np.float32(2) * max(row[j] + square + squares[j], _ZERO))
        fall = decay(z)
        row[j] = fall
        falls[j] = fall / z if z > _NEAREST else _ZERO


@jit
def _matern_once(row, square, squares, falls):
    for j in range(row.shape[0]):
        z = np.sqrt(np.float32(6) * max(row[j] + square + squares[j], _ZERO))
        fall = decay(z)
        row[j] = (_ONE + z) * fall
        falls[j] = np.float32(3) * fall


@jit
def _matern_twice(row, square, squares, falls):
    for j in range(row.shape[0]):
        z = np.sqrt(np.float32(10) * max(row[j] + square + squares[j], _ZERO))
        fall = decay(z)
        row[j] = (_ONE + z + z * z / np.float32(3)) * fall
        falls[j] = np.float32(5 / 3) * (_ONE + z) * fall


@jit
def matern_values(products, A_squares, B_squares, smoothness, falls):
    """Values of Matern's kernel at squared distances, and minus their derivatives by these.

    For nu 1/2 the derivative at distance 0 is infinite; 0 is written, because its factor is 0.

    Parameters
    ----------
    products, A_squares, B_squares : as of `gaussian_values`
    smoothness : 0, 1 or 2; nu is a half more
    falls : (n, m) float32, written; or (0, 0) if they are not wanted
    """
    unwanted = np.empty(products.shape[1], np.float32)
    for i in range(products.shape[0]):
        row_of_falls = falls[i] if falls.shape[0] else unwanted
        if smoothness == 2:
            _matern_twice(products[i], A_squares[i], B_squares, row_of_falls)
        elif smoothness == 1:
            _matern_once(products[i], A_squares[i], B_squares, row_of_falls)
        else:
            _exponential(products[i], A_squares[i], B_squares, row_of_falls)
