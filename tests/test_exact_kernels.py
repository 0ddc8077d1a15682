"""Kernel matrices of few rows and their derivatives, compared with slow twins and the kernels."""

import math

import naive
import numpy as np
import pytest
from hard import each_value_once

from binfeat import kernels
from binfeat._common.arrays import Scratch
from binfeat._engine import decays, distances
from binfeat.length_scales import leave_one_out, matrices


def columns_of(X, center):
    return matrices.Standardizer(np.broadcast_to(center, X.shape[1:]), np.ones(X.shape[1])).columns(X)


pytestmark = pytest.mark.engine

GAMMA = np.array([0.6, 0.0, 0.4, 0.5, 0.3])
CATEGORICAL = np.array([False, False, False, True, False])


def wave(t):
    return (1 + t) * math.exp(-2 * t) * math.cos(t)


PROFILES = {
    kernels.Laplacian(): lambda t: math.exp(-t),
    kernels.Hat(): lambda t: max(0.0, 1 - t),
    kernels.Cauchy(): lambda t: 1 / (1 + t * t),
    kernels.RBF(): lambda s: math.exp(-s),
    kernels.Matern(np.inf): lambda s: math.exp(-s),
    kernels.Matern(0.5): lambda s: math.exp(-math.sqrt(2 * s)),
    kernels.Matern(1.5): lambda s: (1 + math.sqrt(6 * s)) * math.exp(-math.sqrt(6 * s)),
    kernels.Matern(2.5): lambda s: (1 + math.sqrt(10 * s) + 10 * s / 3) * math.exp(-math.sqrt(10 * s)),
}
OTHERS = (
    kernels.GammaPitch(8.0),
    kernels.GammaPitch(np.inf),
    kernels.Skip(kernels.GammaPitch(8.0), 0.2),
    kernels.Product(lambda t: 1 / (1 + t)),
)
# Derivatives of the hat's profile jump; derivatives of its products are not tested here.
SMOOTH = [kernel for kernel in (*PROFILES, *OTHERS) if kernel not in (kernels.Hat(), kernels.Cauchy(), OTHERS[-1])]


def is_radial(kernel):
    return isinstance(kernel, kernels.RBF | kernels.Matern)


def table(rng, n_rows):
    X = rng.normal(size=(n_rows, 5))
    X[:, 3] = rng.integers(3, size=n_rows)
    return X


def pairwise(A, B, value):
    """Return a value for each pair of columns in each input, (n_inputs, n, m)."""
    return np.array([[[value(j, a, b) for b in B[j]] for a in A[j]] for j in range(len(A))])


def distance(j, a, b):
    return float(a != b) if CATEGORICAL[j] else abs(float(a) - float(b))


@pytest.fixture(params=[1, 2])
def n_jobs(request, threads):
    threads(2)
    return request.param


@pytest.fixture
def columns(rng):
    """Return rows as columns, twice."""
    return columns_of(table(rng, 9), 0.0), columns_of(table(rng, 7), 0.0)


def test_weighted_distances(columns, n_jobs):
    A, B = columns
    out = np.full((9, 7), np.nan, np.float32)
    distances.weighted_distances(A, B, GAMMA.astype(np.float32), CATEGORICAL, out, n_jobs=n_jobs)
    np.testing.assert_allclose(out, np.tensordot(GAMMA, pairwise(A, B, distance), 1), rtol=1e-6, atol=1e-6)


def test_squared_distances(columns, n_jobs):
    """Distances of nearly equal rows have all digits."""
    A, B = columns
    B[:, 0] = A[:, 0] + np.float32(1e-4)
    out = np.full((9, 7), np.nan, np.float32)
    distances.squared_distances(A, B, out, n_jobs=n_jobs)
    differences = A.astype(np.float64)[:, :, np.newaxis] - B[:, np.newaxis]
    np.testing.assert_allclose(out, (differences**2).sum(axis=0), rtol=1e-6)


def test_inputs_of_gamma_0_are_passed_over(columns):
    A, B = columns
    A[1], out = np.nan, np.full((9, 7), np.nan, np.float32)
    distances.weighted_distances(A, B, GAMMA.astype(np.float32), CATEGORICAL, out)
    assert np.isfinite(out).all()
    distances.weighted_distances(A, B, np.zeros(5, np.float32), CATEGORICAL, out)
    np.testing.assert_array_equal(out, 0.0)


def test_distance_sums(rng, columns, n_jobs):
    X = columns[0]
    weights, out = np.tril(rng.normal(size=(9, 9))).astype(np.float32), np.full((5, 9), np.nan, np.float32)
    distances.distance_sums(X, weights, CATEGORICAL, out, n_jobs=n_jobs)
    np.testing.assert_allclose(out, np.einsum("ab,jab->jb", weights, pairwise(X, X, distance)), rtol=1e-5, atol=1e-5)


def test_values_of_the_laplacian_by_pairs_are_those_of_two_sides(columns, n_jobs):
    X, gamma = columns[0], GAMMA.astype(np.float32)
    out, expected = np.full((9, 9), np.nan, np.float32), np.empty((9, 9), np.float32)
    distances.laplacian_values(X, gamma, CATEGORICAL, out, n_jobs=n_jobs)
    distances.weighted_distances(X, X, gamma, CATEGORICAL, expected)
    decays.decays(expected)
    np.testing.assert_array_equal(out, expected)


TABLE = np.array([wave(t) for t in np.linspace(0, 4, 1025)], np.float32)
STEPS = GAMMA.astype(np.float32) * np.float32(256)


def of_profile(j, a, b):
    return wave(min(GAMMA[j] * abs(float(a) - float(b)), 4.0))


def test_profile_products(rng, columns, n_jobs):
    A, B = columns
    A[0, 0], B[0, 0] = -9.0, 9.0  # beyond the table
    before = rng.normal(size=(9, 7)).astype(np.float32)
    out = before.copy()
    distances.profile_products(A, B, STEPS, TABLE, out, n_jobs=n_jobs)
    expected = before * pairwise(A, B, of_profile)[GAMMA > 0].prod(axis=0)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_profile_sums(rng, columns, n_jobs):
    X = columns[0]
    weights, out = rng.normal(size=(9, 9)).astype(np.float32), np.full((5, 9), np.nan, np.float32)
    distances.profile_sums(X, STEPS, TABLE, weights, out, n_jobs=n_jobs)
    expected = np.einsum("ab,jab->jb", weights, pairwise(X, X, of_profile)) * (GAMMA > 0)[:, None]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel", [*PROFILES, *OTHERS], ids=lambda kernel: repr(kernel).split(" at ")[0])
def test_values_are_those_of_the_kernel(kernel, rng, n_jobs):
    A, B = table(rng, 8), table(rng, 6)
    center = A.mean(axis=0)
    matrix = matrices.kernel_matrix(kernel, np.zeros(5, bool), n_jobs)
    found = matrix(columns_of(A, center), columns_of(B, center), GAMMA)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, kernel(A, B, gamma=GAMMA), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kernel", [*PROFILES, *OTHERS], ids=lambda kernel: repr(kernel).split(" at ")[0])
def test_values_with_categories(kernel, rng, n_jobs):
    A, B = table(rng, 8), table(rng, 6)
    profile = PROFILES.get(kernel, kernel.profile)
    expected = naive.kernel_matrix(A, B, GAMMA, profile, categorical={3}, radial=is_radial(kernel))
    matrix = matrices.kernel_matrix(kernel, CATEGORICAL, n_jobs)
    np.testing.assert_allclose(matrix(columns_of(A, 0.0), columns_of(B, 0.0), GAMMA), expected, rtol=2e-5, atol=2e-5)


def test_each_kernel_has_its_kind():
    for kernel in (*PROFILES, *OTHERS):
        kind = matrices.RadialMatrix if is_radial(kernel) else matrices.ProfileMatrix
        kind = matrices.LaplacianMatrix if kernel == kernels.Laplacian() else kind
        assert type(matrices.kernel_matrix(kernel, CATEGORICAL)) is kind


def test_a_table_of_the_laplacian_is_the_laplacian(rng):
    """Values and slopes agree."""
    X, M = columns_of(table(rng, 12), 0.0), np.tril(rng.normal(size=(12, 12))).astype(np.float32)
    kinds = matrices.LaplacianMatrix, matrices.ProfileMatrix
    found = [kind(kernels.Laplacian(), CATEGORICAL).with_slopes(X, GAMMA, Scratch()) for kind in kinds]
    (K, slopes), (other, other_slopes) = found
    np.testing.assert_allclose(K, other, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(slopes(M.copy()), other_slopes(M), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("categorical", "weighted"), each_value_once([set(), {3}], [False, True]))
@pytest.mark.parametrize("kernel", SMOOTH, ids=lambda kernel: repr(kernel).split(" at ")[0])
def test_gradient_of_the_leave_one_out_error(kernel, categorical, weighted, rng):
    """It equals differences of the error of models that are refitted without each row."""
    X, Y = table(rng, 14), rng.normal(size=(14, 2))
    X -= 0 if categorical else X.mean(axis=0)
    weights = rng.uniform(0.3, 2, size=14) if weighted else None
    weights = None if weights is None else weights / weights.mean()
    alpha, profile = 0.3, PROFILES.get(kernel, kernel.profile)

    def slow(X, gamma):
        return naive.kernel_matrix(X, X, gamma, profile, categorical=categorical, radial=is_radial(kernel))

    matrix = matrices.kernel_matrix(kernel, np.isin(np.arange(5), list(categorical)))
    found = leave_one_out.leave_one_out(matrix, columns_of(X, 0.0), Y.astype(np.float32), weights, GAMMA, alpha, rng)
    np.testing.assert_allclose(found.error, naive.left_out_error(slow(X, GAMMA), Y, alpha, weights), rtol=1e-4)
    slopes = naive.left_out_slopes(slow, X, Y, GAMMA, alpha, weights)
    close = {"rtol": 2e-3, "atol": 2e-3 * np.abs(slopes).max()}
    np.testing.assert_allclose(found.slopes, slopes[:-1], **close)
    np.testing.assert_allclose(found.alpha_slope, slopes[-1], **close)
    assert found.slopes[1] == 0.0


@pytest.mark.parametrize(
    ("kernel", "categorical", "weighted"),
    each_value_once(
        [kernels.RBF(), kernels.Matern(0.5), kernels.Matern(1.5), kernels.Matern(2.5)], [set(), {3}], [False, True]
    ),
    ids=repr,
)
def test_gradient_in_a_linear_map(kernel, categorical, weighted, rng):
    """It equals differences of leave-one-out errors for each entry of the map."""
    X, Y, linear_map = table(rng, 12), rng.normal(size=(12, 2)), rng.normal(size=(5, 4))
    weights, alpha = (rng.uniform(0.3, 2, size=12) if weighted else None), 0.3
    weights = None if weights is None else weights / weights.mean()
    gamma = np.append(np.ones(4), GAMMA[sorted(categorical)])
    places = {4} if categorical else set()

    def slow(linear_map):
        mapped = naive.rotated(X, GAMMA, linear_map, categorical)
        return naive.kernel_matrix(mapped, mapped, gamma, PROFILES[kernel], categorical=places, radial=True)

    def error(linear_map):
        return naive.left_out_error(slow(linear_map), Y, alpha, weights)

    matrix = matrices.kernel_matrix(kernel, np.isin(np.arange(5), list(categorical)), None, linear_map)
    columns = columns_of(X, 0.0)
    np.testing.assert_allclose(matrix(columns, columns, GAMMA), slow(linear_map), rtol=2e-5, atol=2e-5)
    found = leave_one_out.leave_one_out(matrix, columns, Y.astype(np.float32), weights, GAMMA, alpha, rng)
    np.testing.assert_allclose(found.error, error(linear_map), rtol=1e-4)
    slopes = naive.slopes_by_entries(error, linear_map)
    np.testing.assert_allclose(found.slopes, slopes, rtol=2e-3, atol=2e-3 * np.abs(slopes).max())
    assert (found.slopes[[1, *categorical]] == 0.0).all()  # they do not affect distances of numbers


def test_only_radial_kernels_have_a_linear_map(rng):
    X = columns_of(table(rng, 6), 0.0)
    for kernel in (kernels.Laplacian(), kernels.GammaPitch(8.0), matrices.Linear()):
        K = matrices.kernel_matrix(kernel, CATEGORICAL)(X, X, GAMMA)
        np.testing.assert_array_equal(
            matrices.kernel_matrix(kernel, CATEGORICAL, None, np.ones((5, 1)))(X, X, GAMMA), K
        )


@pytest.mark.parametrize("has_map", [False, True])
@pytest.mark.parametrize(
    "kernel", [kernels.Laplacian(), kernels.RBF(), *map(kernels.Matern, (0.5, 1.5, 2.5)), matrices.Linear()]
)
def test_values_in_float64_are_those_in_float32(rng, kernel, has_map):
    A, B = columns_of(table(rng, 30), 0.0), columns_of(table(rng, 20), 0.0)
    linear_map = rng.normal(size=(5, 2)) if has_map and is_radial(kernel) else None
    expected = matrices.kernel_matrix(kernel, CATEGORICAL, None, linear_map)(A, B, GAMMA)
    precise = matrices.precise_values(kernel, A, B, GAMMA, CATEGORICAL, linear_map)
    assert precise.dtype == np.float64
    np.testing.assert_allclose(precise, expected, rtol=1e-5, atol=2e-6)


def test_linear_kernel_is_a_weighted_product(rng):
    A, B = rng.normal(size=(6, 5)), rng.normal(size=(4, 5))
    K = matrices.kernel_matrix(matrices.Linear(), CATEGORICAL)(columns_of(A, 0.0), columns_of(B, 0.0), GAMMA)
    expected = [[sum(GAMMA[j] * a[j] * b[j] for j in range(5) if not CATEGORICAL[j]) for b in B] for a in A]
    np.testing.assert_allclose(K, expected, atol=1e-5)
