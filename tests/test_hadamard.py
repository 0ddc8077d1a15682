"""The Walsh-Hadamard kernel against SciPy's matrix."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from binfeat._engine.hadamard import hadamard_row

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bits", range(11))
def test_against_scipy(rng, bits, dtype):
    n = 2**bits
    x = rng.integers(-8, 9, n).astype(dtype)  # integers, so that sums are exact in any order
    y = x.copy()
    hadamard_row(y)
    np.testing.assert_array_equal(y, hadamard(n).astype(dtype) @ x)


@pytest.mark.parametrize("bits", [12, 13, 14])
def test_longer_than_a_chunk(rng, bits):
    x = rng.integers(-8, 9, 2**bits).astype(np.float64)
    y = x.copy()
    hadamard_row(y)
    i = rng.integers(0, x.size, 20)
    signs = 1 - 2 * (np.bitwise_count(i[:, None] & np.arange(x.size)) % 2).astype(np.int64)
    np.testing.assert_array_equal(y[i], signs @ x)


def test_twice_is_the_length_times_the_identity(rng):
    x = rng.normal(size=256)
    y = x.copy()
    hadamard_row(y)
    hadamard_row(y)
    np.testing.assert_allclose(y, 256 * x, rtol=1e-13, atol=1e-12)
