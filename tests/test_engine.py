"""Kernels of the engine: values from distances, Walsh-Hadamard transforms, sines and cosines, tables of bins."""

import mpmath
import numpy as np
import pytest
from scipy import linalg

from binfeat._engine import bin_tables, decays, evaluate, hadamard, trig

pytestmark = pytest.mark.engine


# Kernel values from distances, compared with float64.


ULP = np.finfo(np.float32).eps
NO_FALLS = np.empty((0, 0), np.float32)


def test_exponentials():
    """Accurate to two units in the last place, without an error from rounding the argument."""
    t = np.concatenate([np.linspace(0, 87, 3001), np.logspace(-8, 1.9, 1000), [0.0]]).astype(np.float32)[np.newaxis]
    found = t.copy()
    decays.decays(found)
    np.testing.assert_allclose(found, np.exp(-t.astype(np.float64)), rtol=2 * ULP)
    assert found[0, -1] == 1.0


def test_far_away_nothing_is_subnormal_or_infinite():
    found = np.array([[87.0, 88.0, 1e4, 1e30, np.inf]], np.float32)
    decays.decays(found)
    assert (found >= np.finfo(np.float32).tiny).all()
    np.testing.assert_allclose(found, np.exp(-87.0), rtol=2 * ULP)


@pytest.fixture
def squares(rng):
    """Return products and squares of rows, and their squared distances."""
    A, B = rng.normal(size=(5, 3)).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
    of_A, of_B = (rows.astype(np.float64) ** 2 for rows in (A, B))
    parts = -2 * A @ B.T, of_A.sum(axis=1).astype(np.float32), of_B.sum(axis=1).astype(np.float32)
    return parts, ((A[:, np.newaxis].astype(np.float64) - B) ** 2).sum(axis=2)


def test_gaussian(squares):
    parts, s = squares
    decays.gaussian_values(*parts)
    np.testing.assert_allclose(parts[0], np.exp(-s), atol=20 * ULP)


@pytest.mark.parametrize(("smoothness", "series"), [(0, (1, 0, 0)), (1, (1, 1, 0)), (2, (1, 1, 1 / 3))])
def test_matern(squares, smoothness, series):
    parts, s = squares
    factor = 4 * smoothness + 2
    z = np.sqrt(factor * s)
    alone, falls = parts[0].copy(), np.empty(s.shape, np.float32)
    decays.matern_values(alone, *parts[1:], smoothness, NO_FALLS)
    decays.matern_values(*parts, smoothness, falls)
    np.testing.assert_array_equal(parts[0], alone)
    np.testing.assert_allclose(parts[0], np.polyval(series[::-1], z) * np.exp(-z), atol=20 * ULP)
    step = 1e-6

    def values(square):
        z = np.sqrt(factor * square)
        return np.polyval(series[::-1], z) * np.exp(-z)

    np.testing.assert_allclose(falls, (values(s - step) - values(s + step)) / (2 * step), rtol=1e-4, atol=1e-6)


def test_rows_that_do_not_differ_have_no_fall():
    products, falls, squares = (
        np.zeros((1, 2), np.float32),
        np.full((1, 2), np.nan, np.float32),
        np.zeros(2, np.float32),
    )
    decays.matern_values(products, squares[:1], squares, 0, falls)
    np.testing.assert_array_equal(products, 1.0)
    np.testing.assert_array_equal(falls, 0.0)


def test_a_row_and_itself(rng):
    """Its rounded distance is not negative."""
    A = (100 * rng.normal(size=(50, 4))).astype(np.float32)
    products, squares = -2 * A @ A.T, np.einsum("ij,ij->i", A, A)
    decays.matern_values(products, squares, squares, 1, NO_FALLS)
    assert np.isfinite(products).all()
    assert (products <= 1).all()


# The Walsh-Hadamard kernel against SciPy's matrix.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bits", range(11))
def test_hadamard_against_scipy(rng, bits, dtype):
    n = 2**bits
    x = rng.integers(-8, 9, n).astype(dtype)  # integers, so sums are exact in any order
    y = x.copy()
    hadamard.hadamard_row(y)
    np.testing.assert_array_equal(y, linalg.hadamard(n).astype(dtype) @ x)


@pytest.mark.parametrize("bits", [12, 13, 14])
def test_hadamard_longer_than_a_chunk(rng, bits):
    x = rng.integers(-8, 9, 2**bits).astype(np.float64)
    y = x.copy()
    hadamard.hadamard_row(y)
    i = rng.integers(0, x.size, 20)
    signs = 1 - 2 * (np.bitwise_count(i[:, None] & np.arange(x.size)) % 2).astype(np.int64)
    np.testing.assert_array_equal(y[i], signs @ x)


def test_hadamard_twice_is_the_length_times_the_identity(rng):
    x = rng.normal(size=256)
    y = x.copy()
    hadamard.hadamard_row(y)
    hadamard.hadamard_row(y)
    np.testing.assert_allclose(y, 256 * x, rtol=1e-13, atol=1e-12)


# The trig kernels against mpmath.


TOLERANCE = {np.float32: 2e-7, np.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)


def exact(function, x):
    with mpmath.workprec(1200):  # the largest float64 needs 1,024 bits before its fraction
        return np.array([float(function(mpmath.mpf(float(value)))) for value in x])


def pairs(x, scale=1):
    x = np.atleast_2d(np.asarray(x))
    out = np.full((x.shape[0], 2 * x.shape[1]), np.nan, x.dtype)
    assert trig.WRITERS[x.dtype][0](x, x.dtype.type(scale), out) == np.count_nonzero(~np.isfinite(x))
    return out


def shifted(x, shift, scale=1):
    x = np.atleast_2d(np.asarray(x))
    out = np.full(x.shape, np.nan, x.dtype)
    assert trig.WRITERS[x.dtype][1](x, shift, x.dtype.type(scale), out) == np.count_nonzero(~np.isfinite(x))
    return out


def assert_exact(x, tolerance):
    """Check both kernels for each sign and rows of 53 numbers: whole vectors and a remainder."""
    x = np.concatenate([x, -x])
    x = np.resize(x, (-(-x.size // 53), 53))
    cos, sin = exact(mpmath.cos, x.ravel()).reshape(x.shape), exact(mpmath.sin, x.ravel()).reshape(x.shape)
    np.testing.assert_allclose(pairs(x), np.hstack([cos, sin]), rtol=0, atol=tolerance)
    np.testing.assert_allclose(shifted(x, np.zeros(53, x.dtype)), cos, rtol=0, atol=tolerance)


def near_quarter_turns(dtype, most):
    """Return the floats nearest to multiples of pi/2, and their neighbors."""
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
    """The float64 numbers nearest to a multiple of pi/2, within the range of the kernel and in general."""
    assert_exact(np.array([2.0**-1022 * 1.5, 6381956970095103.0 * 2.0**797, 884279719003555.0]), 1e-12)


@DTYPES
def test_tiny_and_denormal(dtype):
    info = np.finfo(dtype)
    x = np.array([0.0, info.smallest_subnormal, info.smallest_subnormal * 77, info.tiny, info.eps / 3], dtype)
    assert_exact(x, TOLERANCE[dtype])
    out = pairs(np.concatenate([x, -x]))[0]
    np.testing.assert_array_equal(out[:10], 1)
    np.testing.assert_array_equal(out[10:], np.concatenate([x, -x]))  # the sine of a tiny number is the number


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


# Tables of bins.


def test_slots_of_large_tables_are_fetched_ahead(rng):
    """Bins are numbered in order of appearance and found again, and their weights are added, as in small tables."""
    hashes = rng.integers(2**64, size=40, dtype=np.uint64)[rng.integers(40, size=(2, 300))]
    slot_starts = np.arange(3) * 2 * bin_tables.FEW_SLOTS
    slots, starts = np.full(slot_starts[-1], bin_tables.EMPTY), slot_starts // bin_tables.LOAD
    keys, counts = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.int64)
    n_bins, codes = np.zeros(2, np.uint64), np.empty((2, 300), np.uint32)
    first, tables = np.zeros(2, np.int64), (slots, slot_starts, keys)
    bin_tables.insert(hashes, 0, 2**32 - 1, first, *tables, counts, n_bins, codes, n_jobs=1)
    for p in range(2):
        distinct, first, numbers = np.unique(hashes[p], return_index=True, return_inverse=True)
        np.testing.assert_array_equal(codes[p], np.argsort(np.argsort(first))[numbers])
        assert n_bins[p] == distinct.size
        np.testing.assert_array_equal(counts[starts[p] :][: distinct.size], np.bincount(codes[p]))
    found, tables = np.empty_like(codes), (*tables, starts)
    bin_tables.find(np.roll(hashes, 1, axis=1), 0, *tables, bin_tables.EMPTY, found, n_jobs=1)
    np.testing.assert_array_equal(found, np.roll(codes, 1, axis=1))
    weights, out = rng.normal(size=(2, starts[-1])), np.zeros(300)
    counted = np.zeros(300, bool), np.zeros(300, np.uint64), np.zeros(2, np.uint64), np.uint64(0)
    evaluate.add_weights(hashes, *tables, *counted, weights, out, n_jobs=1)
    np.testing.assert_allclose(out, weights[0, codes[0]] + weights[0, starts[1] + codes[1]])
