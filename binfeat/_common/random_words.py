"""Random streams: 64-bit words for a seed, an index and a purpose, the same on every machine."""

import numpy as np

# Purposes. Streams of the same seed and index with different purposes are independent.
PITCH, SHIFT, KEYS, FREQUENCIES, RADII, SOBOL, CALLER, PHASES, SIGNS, ORDER, NORMALS = range(11)


def stream(seed, index, purpose):
    """Bit generator for one purpose; `index` is the number of a grid or a block."""
    return np.random.PCG64(np.random.SeedSequence([seed, index, purpose]))


def uniforms(words):
    """Uniform numbers inside (0, 1), both ends excluded, from 64-bit words."""
    return np.minimum(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53, 1.0 - 2.0**-53)
