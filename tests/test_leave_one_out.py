"""The leave-one-out error of exact kernel ridge: compared with refits, and for nearly singular kernels."""

import naive
import numpy as np
import pytest

from binfeat import kernels
from binfeat._engine.triangles import clear_below_diagonal
from binfeat.length_scales import leave_one_out, matrices


def columns_of(X, center):
    return matrices.Standardizer(np.broadcast_to(center, X.shape[1:]), np.ones(X.shape[1])).columns(X)


KINDS = [kernels.Laplacian(), kernels.GammaPitch(8.0), kernels.RBF(), kernels.Matern(1.5), kernels.Matern(2.5)]
CONTINUOUS = np.zeros(3, bool)


def rows(rng, n_rows=20, n_targets=2):
    return rng.normal(size=(n_rows, 3)), rng.normal(size=(n_rows, n_targets)).astype(np.float32)


def with_slopes(matrix, X, Y, gamma, alpha):
    return leave_one_out.leave_one_out(matrix, X, Y, None, gamma, alpha, np.random.default_rng(0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [3.0, 0.1, 1e-3])
def test_residuals_are_those_of_refits(rng, alpha, weighted):
    X, Y = rows(rng)
    weights = rng.uniform(0.2, 2.0, size=20) if weighted else None
    K = kernels.Laplacian()(X, gamma=0.7)
    B, used = leave_one_out.inverse_root(K.astype(np.float32), alpha, weights)
    assert used == alpha
    np.testing.assert_array_equal(B, np.triu(B))
    shifts = np.ones(20) if weights is None else 1 / weights
    np.testing.assert_allclose(B @ B.T, np.linalg.inv(K + 1 + alpha * np.diag(shifts)), rtol=1e-3, atol=1e-3 / alpha)
    found = leave_one_out.residuals(K.astype(np.float32), alpha, weights, Y)
    np.testing.assert_allclose(found, naive.left_out_residuals(K, Y, alpha, weights), rtol=1e-3, atol=1e-3)
    columns = columns_of(X, 0.0)
    K32 = matrices.kernel_matrix(kernels.Laplacian(), CONTINUOUS)(columns, columns, np.full(3, 0.7))
    error = leave_one_out.weighted_squares(K32, alpha, weights, Y).mean()
    np.testing.assert_allclose(error, naive.left_out_error(K, Y, alpha, weights), rtol=1e-3)
    of_mean = naive.left_out_error(np.zeros_like(K), Y, alpha, weights)
    assert leave_one_out.constant_squares(alpha, weights, Y).mean() == pytest.approx(of_mean)


def test_the_factor(rng):
    X, _ = rows(rng)
    K, weights = kernels.RBF()(X, gamma=0.7), rng.uniform(0.2, 2.0, size=20)
    U, alpha = leave_one_out.factor(K.astype(np.float32), 0.5, weights)
    assert (U.dtype, U.flags.c_contiguous, alpha) == (np.float32, True, 0.5)
    np.testing.assert_array_equal(U, np.triu(U))
    np.testing.assert_allclose(U.T @ U, K + 1 + np.diag(0.5 / weights), rtol=1e-5, atol=1e-5)


@pytest.fixture
def tiles(monkeypatch):
    """Factorize matrices of 40 columns or more in tiles of 16."""
    monkeypatch.setattr(leave_one_out, "_SIDE", 16)
    monkeypatch.setattr(leave_one_out, "_MANY", 40)


@pytest.mark.engine
@pytest.mark.parametrize("n_rows", [39, 40, 48, 65])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_factor_by_tiles_is_the_same_for_any_number_of_threads(rng, tiles, threads, n_rows, dtype):
    threads(2)
    A = kernels.RBF()(rng.normal(size=(n_rows, 3)), gamma=0.7) + 0.1 * np.eye(n_rows)
    alone, together = A.astype(dtype), A.astype(dtype)
    assert leave_one_out.factorize(alone, 1)
    assert leave_one_out.factorize(together, 2)
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(np.tril(alone, -1), np.tril(A, -1).astype(dtype))
    np.testing.assert_allclose(np.triu(alone), np.linalg.cholesky(A).T, atol=1e-5 if dtype == np.float32 else 1e-13)


def test_tiles_find_what_is_not_positive_definite(rng, tiles):
    for place in (3, 20, 63):
        A = kernels.RBF()(rng.normal(size=(64, 3)), gamma=0.7) + 0.1 * np.eye(64)
        A[place, place] = -1.0
        assert not leave_one_out.factorize(A)


@pytest.mark.engine
@pytest.mark.parametrize("n_rows", [1, 2, 95, 96, 97, 193, 400])
def test_triangles_of_any_size(rng, n_rows):
    """They are inverted in place, within a larger matrix that does not change."""
    whole = rng.normal(size=(n_rows + 2, n_rows + 5)).astype(np.float32)
    before, U = whole.copy(), whole[1 : n_rows + 1, 2 : n_rows + 2]
    clear_below_diagonal(U)
    np.testing.assert_array_equal(U, np.triu(before[1 : n_rows + 1, 2 : n_rows + 2]))
    U[np.diag_indices(n_rows)] = 2 * np.sqrt(n_rows) + rng.random(n_rows)
    expected = np.linalg.inv(U.astype(np.float64))
    leave_one_out.invert_triangle(U)
    np.testing.assert_allclose(U, expected, rtol=0, atol=1e-5)
    whole[1 : n_rows + 1, 2 : n_rows + 2] = before[1 : n_rows + 1, 2 : n_rows + 2]
    np.testing.assert_array_equal(whole, before)


@pytest.mark.engine
@pytest.mark.parametrize("n_rows", [1, 31, 32, 33, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_the_rows_of_a_triangle(rng, n_rows, dtype):
    """Norms are computed in float64; entries below the diagonal are not read."""
    U = rng.normal(size=(n_rows, n_rows)).astype(dtype)
    expected = (np.triu(U).astype(np.float64) ** 2).sum(axis=1)
    U[np.tril_indices(n_rows, -1)] = np.nan
    np.testing.assert_allclose(leave_one_out.squared_row_norms(U), expected, rtol=1e-13)


@pytest.mark.engine
@pytest.mark.parametrize("n_columns", [1, 2, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_with_an_inverse_by_its_root(rng, n_columns, dtype, order):
    B = np.triu(rng.normal(size=(30, 30))).astype(dtype)
    A = np.asarray(rng.normal(size=(30, n_columns)), np.float32, order=order)
    before = A.copy()
    found = leave_one_out.times_square(B, A)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, B @ (B.T @ A), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
def test_rows_that_repeat_at_a_tiny_penalty(rng, kernel):
    """The matrix is singular in float32: the penalty is increased, and results are finite."""
    X, Y = rows(rng)
    X, Y = np.repeat(X, 3, axis=0), np.repeat(Y, 3, axis=0)
    found = with_slopes(matrices.kernel_matrix(kernel, CONTINUOUS), columns_of(X, 0.0), Y, np.full(3, 0.5), 1e-12)
    assert np.isfinite([found.error, found.alpha_slope, *found.slopes]).all()


@pytest.mark.engine
def test_the_penalty_is_raised_in_place_too():
    """The penalty is a power of ten above the magnitude of negative eigenvalues."""
    K = np.ones((60, 60), np.float32) - 5e-4 * np.eye(60, dtype=np.float32)
    before = K.copy()
    U, raised = leave_one_out.factor(K, 1e-12)
    assert raised == pytest.approx(10 * leave_one_out.LEAST_ALPHA * 60)
    np.testing.assert_array_equal(K, before)
    again, as_far = leave_one_out.factor(K, 1e-12, out=K)
    assert (again is K, as_far) == (True, raised)
    np.testing.assert_array_equal(again, U)


@pytest.mark.parametrize("weighted", [False, True])
def test_penalties_below_what_float32_can_tell(rng, weighted):
    """In float64, residuals equal those of refits with the same float32 kernel values."""
    X, Y = rows(rng, 150)
    weights = rng.uniform(0.2, 2.0, size=150) if weighted else None
    K, alpha = kernels.RBF()(X, gamma=0.01).astype(np.float32), 3e-6
    B, used = leave_one_out.precise_inverse_root(K, alpha, weights)
    assert (B.dtype, used) == (np.float64, alpha)
    np.testing.assert_array_equal(B, np.triu(B))
    found = leave_one_out.residuals(K, alpha, weights, Y, leave_one_out.precise_inverse_root)
    np.testing.assert_allclose(found, naive.left_out_residuals(K.astype(np.float64), Y, alpha, weights), rtol=1e-5)
    np.testing.assert_array_equal(
        leave_one_out.precise_inverse_root(K, 0.1, weights)[0], leave_one_out.inverse_root(K, 0.1, weights)[0]
    )
    assert leave_one_out.precise_inverse_root(K, 0.0)[1] == pytest.approx(leave_one_out.LEAST_PRECISE_ALPHA * 150)
    assert leave_one_out.precise_inverse_root(K - np.float32(5e-5) * np.eye(150, dtype=np.float32), 0.0)[1] > 5e-5
    with pytest.raises(leave_one_out.SingularKernelError, match="not positive definite for any penalty"):
        leave_one_out.precise_inverse_root(np.full((3, 3), -5.0, np.float32) * 1e9, 0.0)


def test_penalties_are_raised_above_the_rounding_of_large_values(rng):
    x = 1e7 * rng.normal(size=(60, 1))
    K = (x @ x.T).astype(np.float32)
    B, alpha = leave_one_out.inverse_root(K, 1e-3)
    assert np.isfinite(B).all()
    assert alpha < 1e-3 * K.max()


def test_slopes_are_right_in_the_mean_over_probes(rng, monkeypatch):
    """With few probes they are unbiased; other tests check that they are exact with as many probes as rows."""
    X, Y = rows(rng, 100)
    matrix, gamma = matrices.kernel_matrix(kernels.Laplacian(), CONTINUOUS), np.array([0.2, 0.5, 1.0])
    X, weights = columns_of(X, 0.0), rng.uniform(0.5, 1.5, size=100)
    drawn = [leave_one_out.leave_one_out(matrix, X, Y, weights, gamma, 0.5, rng) for _ in range(100)]
    slopes = np.array([[*each.slopes, each.alpha_slope] for each in drawn])
    assert leave_one_out.random_signs(rng, 100, 3).shape == leave_one_out.random_signs(rng, 100, 99).shape == (100, 32)
    np.testing.assert_array_equal(leave_one_out.random_signs(rng, 100, 100), np.float32(10.0) * np.eye(100))
    monkeypatch.setattr("binfeat.length_scales.leave_one_out._PROBES", 100)
    exact = leave_one_out.leave_one_out(matrix, X, Y, weights, gamma, 0.5, rng)
    assert (slopes.std(axis=0) > 0).all()
    z = (slopes.mean(axis=0) - [*exact.slopes, exact.alpha_slope]) / (slopes.std(axis=0) / np.sqrt(len(drawn)))
    assert np.abs(z).max() < 4.5
    assert {each.error for each in drawn} == {exact.error}


@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_of_groups_left_out_as_a_whole(rng, weighted):
    (X, Y), gamma, groups = rows(rng), np.array([0.2, 0.5, 1.0]), rng.integers(6, size=20)
    matrix, X = matrices.kernel_matrix(kernels.RBF(), CONTINUOUS), columns_of(X, 0.0)
    weights = rng.uniform(0.5, 1.5, size=20) if weighted else None

    def left_out(groups, gamma=gamma, alpha=0.5):
        return leave_one_out.leave_one_out(matrix, X, Y, weights, gamma, alpha, rng, groups=groups)

    def difference(gammas, alpha, step=0.02):
        (low, high) = (left_out(groups, gamma * gammas**own, 0.5 * alpha**own).error for own in (-step, step))
        return (high - low) / (2 * step)

    found, K = left_out(groups), matrix(X, X, gamma)
    errors = leave_one_out.weighted_squares(K, 0.5, weights, Y, groups=groups)
    np.testing.assert_allclose(found.error, errors.mean(), rtol=1e-5)
    expected = [difference(np.exp(own), 1.0) for own in np.eye(3)]
    np.testing.assert_allclose(found.slopes, expected, atol=2e-3 * np.abs(expected).max())
    np.testing.assert_allclose(found.alpha_slope, difference(1.0, np.e), rtol=2e-3)
    for same, plain in ((np.arange(20), None), (np.zeros(20, int), None)):  # a single group is split into rows
        one, two = left_out(same), left_out(plain)
        np.testing.assert_allclose([one.error, *one.slopes], [two.error, *two.slopes], rtol=1e-3, atol=1e-5)


def test_slopes_of_groups_are_right_in_the_mean_over_probes(rng, monkeypatch):
    (X, Y), groups = rows(rng, 100), rng.integers(10, size=100)
    matrix, gamma = matrices.kernel_matrix(kernels.Laplacian(), CONTINUOUS), np.array([0.2, 0.5, 1.0])
    given = matrix, columns_of(X, 0.0), Y, None, gamma, 0.5, rng, None, groups
    slopes = np.array([leave_one_out.leave_one_out(*given).slopes for _ in range(100)])
    monkeypatch.setattr("binfeat.length_scales.leave_one_out._PROBES", 100)
    z = (slopes.mean(axis=0) - leave_one_out.leave_one_out(*given).slopes) / (slopes.std(axis=0) / 10)
    assert np.abs(z).max() < 4.5


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
def test_inputs_that_are_constant(rng, kernel):
    X, Y = rows(rng)
    X[:, 1] = 2.0
    matrix, gamma = matrices.kernel_matrix(kernel, CONTINUOUS), np.full(3, 0.5)
    found = with_slopes(matrix, columns_of(X, X.mean(axis=0)), Y, gamma, 0.1)
    assert found.slopes[1] == 0.0
    assert found.slopes[[0, 2]].all()
    X[:] = 2.0  # the error of the mean of the other rows
    found = with_slopes(matrix, columns_of(X, X.mean(axis=0)), Y, gamma, 1.0)
    np.testing.assert_array_equal(found.slopes, 0.0)
    np.testing.assert_allclose(found.error, naive.left_out_error(np.ones((20, 20)), Y, 1.0), rtol=1e-3)


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
def test_two_rows_and_one(rng, kernel):
    X, Y = rows(rng, 2)
    matrix, gamma = matrices.kernel_matrix(kernel, CONTINUOUS), np.full(3, 0.5)
    found = with_slopes(matrix, columns_of(X, 0.0), Y, gamma, 0.5)
    np.testing.assert_allclose(found.error, naive.left_out_error(kernel(X, gamma=0.5), Y, 0.5), rtol=1e-3)
    alone = with_slopes(matrix, columns_of(X[:1], 0.0), Y[:1], gamma, 0.5)
    np.testing.assert_allclose(alone.error, np.mean(Y[:1] ** 2), rtol=1e-3)  # no other rows
    np.testing.assert_allclose(alone.slopes, 0.0, atol=1e-6)


def test_targets_of_zero(rng):
    X, Y = rows(rng)
    matrix = matrices.kernel_matrix(kernels.Laplacian(), CONTINUOUS)
    found = with_slopes(matrix, columns_of(X, 0.0), 0 * Y, np.full(3, 0.5), 0.5)
    assert (found.error, found.alpha_slope, *found.slopes) == (0.0, 0.0, 0.0, 0.0, 0.0)


def test_a_matrix_of_nothing_but_nan_is_refused(monkeypatch):
    tried, own = [], leave_one_out.factorize

    def factorize(A, n_jobs):
        tried.append(1)
        return own(A, n_jobs)

    monkeypatch.setattr(leave_one_out, "factorize", factorize)
    with pytest.raises(leave_one_out.SingularKernelError, match="not positive definite for any penalty"):
        leave_one_out.factor(np.full((3, 3), -5.0, np.float32) * 1e9, 1e-3)
    assert len(tried) == 8
