"""Numbers that are the same on every computer: random words by seed, index and purpose, and rounding."""

import numpy as np

# Purposes. Streams of the same seed and index with different purposes are independent.
PITCH, SHIFT, KEYS, FREQUENCIES, RADII, SOBOL, CALLER, PHASES, SIGNS, ORDER, NORMALS = range(11)


def stream(seed, index, purpose):
    """Bit generator for one purpose; `index` is the number of a grid or a block."""
    return np.random.PCG64(np.random.SeedSequence([seed, index, purpose]))


def uniforms(words):
    """Uniform numbers inside (0, 1), both ends excluded, from 64-bit words."""
    return np.minimum(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53, 1.0 - 2.0**-53)


def round_significant(x, bits):
    """Round positive numbers to `bits` significant bits, so that a difference in the last digits is lost."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
