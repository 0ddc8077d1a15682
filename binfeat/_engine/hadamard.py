"""Fast Walsh-Hadamard transform, in place and in natural (Sylvester's) order.

The stage of stride h replaces each pair (a, b) of elements at distance h by (a + b, a - b). A pass over the data does
three stages for short strides, and two for long ones. Each pass is vectorized because its distances are known at
compile time, or because it works on slices.
"""

from binfeat._engine.policy import jit

_CHUNK = 4096  # elements per chunk; all their strides are done first, because they stay in the first-level cache


@jit
def _mix4(a, b, c, d):
    a, b, c, d = a + b, a - b, c + d, c - d
    return a + c, b + d, a - c, b - d


@jit
def _mix8(a, b, c, d, e, f, g, h):
    a, b, c, d = _mix4(a, b, c, d)
    e, f, g, h = _mix4(e, f, g, h)
    return a + e, b + f, c + g, d + h, a - e, b - f, c - g, d - h


@jit
def _strides_1_2_4(x):
    for k in range(x.shape[0] // 8):
        i = 8 * k
        x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7] = _mix8(
            x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7]
        )


@jit
def _strides_8_16_32(x):
    for k in range(x.shape[0] // 64):
        y = x[64 * k : 64 * k + 64]
        for i in range(8):
            y[i], y[i + 8], y[i + 16], y[i + 24], y[i + 32], y[i + 40], y[i + 48], y[i + 56] = _mix8(
                y[i], y[i + 8], y[i + 16], y[i + 24], y[i + 32], y[i + 40], y[i + 48], y[i + 56]
            )


@jit
def _stride(x, h):
    for start in range(0, x.shape[0], 2 * h):
        a, b = x[start : start + h], x[start + h : start + 2 * h]
        for i in range(h):
            a[i], b[i] = a[i] + b[i], a[i] - b[i]


@jit
def _two_strides(x, h):
    for start in range(0, x.shape[0], 4 * h):
        middle = start + 2 * h
        a, b = x[start : start + h], x[start + h : middle]
        c, d = x[middle : middle + h], x[middle + h : middle + 2 * h]
        for i in range(h):
            a[i], b[i], c[i], d[i] = _mix4(a[i], b[i], c[i], d[i])


@jit
def _strides_from(x, h):
    while 4 * h <= x.shape[0]:
        _two_strides(x, h)
        h *= 4
    if h < x.shape[0]:
        _stride(x, h)


@jit
def _strides_of_chunk(x):
    h = 1
    if x.shape[0] >= 8:
        _strides_1_2_4(x)
        h = 8
    if x.shape[0] >= 64:
        _strides_8_16_32(x)
        h = 64
    _strides_from(x, h)


@jit
def hadamard_row(x):
    """Multiply a vector by the Hadamard matrix ``H[i, j] = (-1)^popcount(i & j)``.

    Parameters
    ----------
    x : (n,) float32 or float64, overwritten by ``H @ x``; n a power of two
    """
    size = min(_CHUNK, x.shape[0])
    for start in range(0, x.shape[0], size):
        _strides_of_chunk(x[start : start + size])
    _strides_from(x, size)
