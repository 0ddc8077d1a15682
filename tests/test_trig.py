"""The trig kernels against mpmath."""

import mpmath
import numpy as np
import pytest

from binfeat._engine.trig import WRITERS

pytestmark = pytest.mark.engine

TOLERANCE = {np.float32: 2e-7, np.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)


def exact(function, x):
    with mpmath.workprec(1200):  # the largest float64 needs 1,024 bits before its fraction
        return np.array([float(function(mpmath.mpf(float(value)))) for value in x])


def pairs(x, scale=1):
    x = np.atleast_2d(np.asarray(x))
    out = np.full((x.shape[0], 2 * x.shape[1]), np.nan, x.dtype)
    assert WRITERS[x.dtype][0](x, x.dtype.type(scale), out) == np.count_nonzero(~np.isfinite(x))
    return out


def shifted(x, shift, scale=1):
    x = np.atleast_2d(np.asarray(x))
    out = np.full(x.shape, np.nan, x.dtype)
    assert WRITERS[x.dtype][1](x, shift, x.dtype.type(scale), out) == np.count_nonzero(~np.isfinite(x))
    return out


def assert_exact(x, tolerance):
    """Both kernels, sign by sign, row by row of 53: whole vectors and a remainder."""
    x = np.concatenate([x, -x])
    x = np.resize(x, (-(-x.size // 53), 53))
    cos, sin = exact(mpmath.cos, x.ravel()).reshape(x.shape), exact(mpmath.sin, x.ravel()).reshape(x.shape)
    np.testing.assert_allclose(pairs(x), np.hstack([cos, sin]), rtol=0, atol=tolerance)
    np.testing.assert_allclose(shifted(x, np.zeros(53, x.dtype)), cos, rtol=0, atol=tolerance)


def near_quarter_turns(dtype, most):
    """The floats nearest to multiples of pi/2, and their neighbours."""
    with mpmath.workprec(200):
        k = np.concatenate([np.arange(1, 30), np.geomspace(30, most, 60).astype(int)])
        x = np.array([float(mpmath.pi / 2 * int(i)) for i in k]).astype(dtype)
    return np.concatenate([x, np.nextafter(x, dtype(0)), np.nextafter(x, dtype(np.inf))])


@DTYPES
def test_arguments_up_to_ten_thousand(dtype, rng):
    uniform = rng.uniform(0, 1e4, 300)
    few_turns = rng.uniform(0, 10, 200)
    all_sizes = np.geomspace(1e-30, 1e4, 200)
    assert_exact(np.concatenate([uniform, few_turns, all_sizes]).astype(dtype), TOLERANCE[dtype])


@DTYPES
def test_near_quarter_and_eighth_turns(dtype):
    quarters = near_quarter_turns(dtype, 6366)
    assert_exact(np.concatenate([quarters, quarters / 2]), TOLERANCE[dtype])


def test_hardest_arguments_of_float64():
    """Nearest of all float64 to a multiple of pi/2, within reach and at all."""
    assert_exact(np.array([2.0**-1022 * 1.5, 6381956970095103.0 * 2.0**797, 884279719003555.0]), 1e-12)


@DTYPES
def test_tiny_and_denormal(dtype):
    info = np.finfo(dtype)
    x = np.array([0.0, info.smallest_subnormal, info.smallest_subnormal * 77, info.tiny, info.eps / 3], dtype)
    assert_exact(x, TOLERANCE[dtype])
    out = pairs(np.concatenate([x, -x]))[0]
    np.testing.assert_array_equal(out[:10], 1)
    np.testing.assert_array_equal(out[10:], np.concatenate([x, -x]))  # the sine of what is tiny is itself


@DTYPES
def test_beyond_reach(dtype):
    reach = {np.float32: 12_000, np.float64: 3e6}[dtype]
    around = np.nextafter(dtype(reach), np.array([0, np.inf], dtype))
    largest = np.finfo(dtype).max
    far = np.geomspace(reach, largest / 2, 60).astype(dtype)
    assert_exact(np.concatenate([around, far, [largest], near_quarter_turns(dtype, 10**9)]), TOLERANCE[dtype])


@DTYPES
def test_not_a_number(dtype):
    x = np.linspace(-3, 3, 53).astype(dtype)
    x[[3, 40, 52]] = np.nan
    out = pairs(x)[0]
    np.testing.assert_array_equal(np.isnan(out), np.tile(np.isnan(x), 2))
    np.testing.assert_allclose(out[~np.isnan(out)], pairs(x[~np.isnan(x)])[0], rtol=0, atol=0)
    np.testing.assert_array_equal(np.isnan(shifted(x, np.ones(53, dtype))[0]), np.isnan(x))
    with np.errstate(invalid="ignore"):
        assert np.isnan(pairs(np.array([np.inf, -np.inf], dtype))).all()
        assert np.isnan(shifted(np.array([np.inf, -np.inf], dtype), np.ones(2, dtype))).all()


@DTYPES
def test_a_far_argument_leaves_the_others_as_they_were(dtype, rng):
    x = rng.normal(size=(3, 20)).astype(dtype)
    before = pairs(x)
    x[1, 7] = 1e30
    changed = np.argwhere(pairs(x) != before)
    np.testing.assert_array_equal(changed, [[1, 7], [1, 27]])


@DTYPES
def test_scale_and_shift(dtype, rng):
    x, shift = rng.normal(size=(4, 37)).astype(dtype), rng.uniform(0, 6, 37).astype(dtype)
    np.testing.assert_allclose(pairs(x, 0.25), 0.25 * pairs(x), rtol=0, atol=0)
    expected = exact(mpmath.cos, (x + shift).ravel()).reshape(x.shape)
    np.testing.assert_allclose(shifted(x, shift, 0.5), 0.5 * expected, rtol=0, atol=TOLERANCE[dtype])


@DTYPES
def test_no_rows_and_no_columns(dtype):
    assert pairs(np.empty((0, 4), dtype)).shape == (0, 8)
    assert pairs(np.empty((2, 0), dtype)).shape == (2, 0)
