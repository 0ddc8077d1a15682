"""Cosines and sines of a projection, written straight into the features.

An argument is reduced by the nearest multiple of pi/2, which is stored in parts with so few bits that their products
with the number of quarter turns are exact (Cody & Waite 1980, "Software Manual for the Elementary Functions", chapter
8). The rest, at most pi/4, is put into minimax polynomials in its square, found by the Remez algorithm in 60 digits for
the absolute error, with the constant term fixed at 1. No branch depends on an argument, so the loops are vectorized.
Arguments too large for this, which heavy-tailed frequencies give in every row, are computed again by the C library.
"""

import numpy as np
from numba.extending import register_jitable

from binfeat._engine.policy import jit

_SIGN32, _MAGNITUDE32 = np.int32(-(2**31)), np.int32(2**31 - 1)  # the sign bit of a float, and the other bits, whose
_SIGN64, _MAGNITUDE64 = np.int64(-(2**63)), np.int64(2**63 - 1)  # order as integers is that of magnitudes, NaN last

_ROUND32 = np.float32(1.5 * 2**23)  # added to a smaller number, it leaves the nearest integer in the low bits
_TURNS32 = np.float32(2 / np.pi)
_REACH32 = np.float32(12_000).view(np.int32)  # up to 2^13 quarter turns, 11 bits of pi/2 times their number are exact
_HIGH32, _MIDDLE32, _LOW32 = np.float32(1.5703125), np.float32(4.8375129699707e-4), np.float32(7.5497901264e-8)
# Errors of the polynomials: 3.2e-8 and 1.8e-9.
_C2, _C4, _C6 = np.float32(-0.49999894166), np.float32(0.041656254267), np.float32(-1.3597259795e-3)
_S3, _S5, _S7 = np.float32(-0.16666650576), np.float32(8.3319733932e-3), np.float32(-1.9494966390e-4)

_ROUND64 = 1.5 * 2.0**52
_TURNS64 = 2 / np.pi
_REACH64 = np.float64(3e6).view(np.int64)  # up to 2^21 quarter turns, 32 bits of pi/2 times their number are exact
_HIGH64, _LOW64 = 1.5707963267341256, 6.077100506506192e-11
# Errors of the polynomials: 5.2e-17 and 1.6e-18.
_D2, _D4, _D6 = -0.499999999999994755, 0.0416666666665016157, -1.38888888715934387e-3
_D8, _D10, _D12 = 2.4801578968057639e-5, -2.75552884961813887e-7, 2.06331177826704656e-9
_T3, _T5, _T7 = -0.166666666666665996, 8.33333333331631668e-3, -1.98412698258141425e-4
_T9, _T11, _T13 = 2.75573125056425089e-6, -2.50505943587336916e-8, 1.58882545317029032e-10


@register_jitable
def _cos_sin32(x, scale):
    """Return `scale` times cosine and sine of a float32 within reach, and its magnitude as an integer for any."""
    rounded = x * _TURNS32 + _ROUND32
    turns = rounded - _ROUND32
    r = ((x - turns * _HIGH32) - turns * _MIDDLE32) - turns * _LOW32
    z = r * r
    cos = np.float32(1) + z * (_C2 + z * (_C4 + z * _C6))
    sin = r + r * z * (_S3 + z * (_S5 + z * _S7))
    quadrant = np.float32(rounded).view(np.int32)
    odd = (quadrant & np.int32(1)) != 0
    flip = np.int32(np.int32(quadrant << np.int32(30)) & _SIGN32)
    signed = np.int32(np.float32(scale).view(np.int32) ^ flip).view(np.float32)
    magnitude = np.int32(np.float32(x).view(np.int32) & _MAGNITUDE32)
    return signed * (-sin if odd else cos), signed * (cos if odd else sin), magnitude


@register_jitable
def _cos_sin64(x, scale):
    """Do `_cos_sin32` for a float64."""
    rounded = x * _TURNS64 + _ROUND64
    turns = rounded - _ROUND64
    r = (x - turns * _HIGH64) - turns * _LOW64
    z = r * r
    cos = 1.0 + z * (_D2 + z * (_D4 + z * (_D6 + z * (_D8 + z * (_D10 + z * _D12)))))
    sin = r + r * z * (_T3 + z * (_T5 + z * (_T7 + z * (_T9 + z * (_T11 + z * _T13)))))
    quadrant = np.float64(rounded).view(np.int64)
    odd = (quadrant & np.int64(1)) != 0
    flip = (quadrant << np.int64(62)) & _SIGN64
    signed = np.int64(np.float64(scale).view(np.int64) ^ flip).view(np.float64)
    magnitude = np.int64(np.float64(x).view(np.int64) & _MAGNITUDE64)
    return signed * (-sin if odd else cos), signed * (cos if odd else sin), magnitude


def _pairs_writer(cos_sin, reach):
    """Make `write_pairs` for one type.

    `cos_sin` itself is not compiled by `jit`: Numba's cache identifies a closure by the objects in it, and a compiled
    function is a different object in each process.
    """

    @jit
    def write_pairs(projection, scale, out):
        """Cosines of each row, then its sines, times `scale`.

        Given its argument, a cosine or a sine is wrong by at most 1.3e-7 (float32) or 1e-15 (float64).

        Parameters
        ----------
        projection : (n_rows, n) of the type; NaN and infinity give NaN
        scale : float of the same type
        out : (n_rows, 2 * n) of the same type, written

        Returns
        -------
        lost : int
            How many arguments are not finite.
        """
        n, lost = projection.shape[1], 0
        for i in range(projection.shape[0]):
            x, cos, sin, largest = projection[i], out[i, :n], out[i, n:], reach
            for j in range(n):
                cos[j], sin[j], magnitude = cos_sin(x[j], scale)
                largest = max(largest, magnitude)
            if largest > reach:
                for j in range(n):
                    if cos_sin(x[j], scale)[2] > reach:
                        cos[j], sin[j] = scale * np.cos(x[j]), scale * np.sin(x[j])
                        lost += not np.isfinite(x[j])
        return lost

    return write_pairs


def _shifted_writer(cos_sin, reach):
    """Make `write_shifted` for one type, as `_pairs_writer` makes `write_pairs`."""

    @jit
    def write_shifted(projection, shift, scale, out):
        """Cosines of each row after a shift, times `scale`; as exact as `write_pairs`, with the same return value.

        Parameters
        ----------
        projection, scale : as of `write_pairs`
        shift : (n,) of the same type
        out : (n_rows, n) of the same type, written
        """
        n, lost = projection.shape[1], 0
        for i in range(projection.shape[0]):
            x, cos, largest = projection[i], out[i], reach
            for j in range(n):
                cos[j], _, magnitude = cos_sin(x[j] + shift[j], scale)
                largest = max(largest, magnitude)
            if largest > reach:
                for j in range(n):
                    shifted = x[j] + shift[j]
                    if cos_sin(shifted, scale)[2] > reach:
                        cos[j] = scale * np.cos(shifted)
                        lost += not np.isfinite(shifted)
        return lost

    return write_shifted


# Both writers for both types; compiling one type compiles nothing for the other.
WRITERS = {
    np.dtype(np.float32): (_pairs_writer(_cos_sin32, _REACH32), _shifted_writer(_cos_sin32, _REACH32)),
    np.dtype(np.float64): (_pairs_writer(_cos_sin64, _REACH64), _shifted_writer(_cos_sin64, _REACH64)),
}
