"""Exact kernel ridge systems: by Cholesky factors and by iterations, compared with a dense solve."""

import naive
import numpy as np
import pytest
from hard import each_value_once, hard
from memory import peak_bytes

from binfeat.kernels import RBF, Laplacian
from binfeat.length_scales import kernel_sum, matrices
from binfeat.models.kernel_algebra import solve

N_ROWS = 700


@pytest.fixture
def rows(rng):
    return rng.normal(size=(N_ROWS, 3)), rng.normal(size=(N_ROWS, 2))


def packed_of(K):
    K = K.astype(np.float32)
    return kernel_sum.PackedKernel(lambda rows, columns: K[rows, columns].copy(), 384, len(K))


@pytest.fixture(params=["cholesky", "iterations"])
def way(request):
    """Use both methods; only iterations are inexact."""
    return request.param


def given(K, way):
    return K.astype(np.float32) if way == "cholesky" else packed_of(K)


def relative_error(K, Y, alpha, weights, coef):
    """Return the relative error of the solution's values at the rows."""
    expected = naive.kernel_ridge(K, Y, alpha, weights)
    assert coef.shape == Y.shape
    assert coef.dtype == np.float32
    values, wanted = (K + 1.0) @ coef.astype(np.float64), (K + 1.0) @ expected
    return np.linalg.norm(values - wanted, axis=0) / np.linalg.norm(wanted, axis=0)


@pytest.mark.parametrize(
    ("kernel", "alpha", "weighted"), each_value_once([Laplacian(), RBF()], [10.0, 1.0, 0.1], [False, True]), ids=repr
)
def test_against_a_dense_solve(rows, rng, way, kernel, alpha, weighted):
    X, Y = rows
    K = kernel(X, gamma=0.5)
    weights = rng.uniform(0.2, 3.0, size=N_ROWS) if weighted else None
    coef, _ = solve.solve_kernel(given(K, way), alpha, weights, Y.astype(np.float32), 0.1)
    assert relative_error(K, Y, alpha, weights, coef).max() < (1e-3 if way == "cholesky" else 1e-2)


def test_the_factor_takes_the_place_of_the_matrix(rows):
    K, Y = Laplacian()(rows[0], gamma=0.5).astype(np.float32), rows[1].astype(np.float32)
    solve.solve_kernel(K.copy(), 1.0, None, Y, 0.1)  # compiles
    assert peak_bytes(lambda: solve.solve_kernel(K, 1.0, None, Y, 0.1))[0] < 0.2 * K.nbytes


@pytest.mark.parametrize(("n_rows", "n_targets"), [(2500, 1), (6500, 4), *hard((4500, 1), (11_500, 12))])
def test_memory_is_known_first(rng, n_rows, n_targets):
    """Estimates are within a fifth, for factors and for iterations."""
    X, Y = rng.normal(size=(1, n_rows)).astype(np.float32), rng.normal(size=(n_rows, n_targets)).astype(np.float32)
    kernel = kernel_sum.KernelValues(
        [matrices.kernel_matrix(Laplacian(), np.zeros(1, bool), 2)], [1.0], [np.ones(1)], 2
    )
    taken, _ = peak_bytes(lambda: solve.solve_kernel(solve.matrix_to_solve(kernel, X, n_targets), 1.0, None, Y, 0.1))
    assert taken == pytest.approx(solve.solve_bytes(n_rows, n_targets), rel=0.2)


def test_few_targets_and_many(rows, rng):
    X, Y = rows[0], rng.normal(size=(N_ROWS, 5)).astype(np.float32)
    K = Laplacian()(X, gamma=0.5)
    together, _ = solve.solve_kernel(packed_of(K), 1.0, None, Y, 0.1)
    alone, _ = solve.solve_kernel(packed_of(K), 1.0, None, Y[:, :1], 0.1)
    assert relative_error(K, Y, 1.0, None, together).max() < 1e-2
    assert relative_error(K, Y[:, :1], 1.0, None, alone).max() < 1e-2


def test_a_singular_kernel_is_solved(rows, way):
    """Equal rows without a penalty have the mean as solution."""
    Y = rows[1] + [3.0, 0.0]
    K = np.ones((N_ROWS, N_ROWS), np.float32)
    coef, _ = solve.solve_kernel(given(K, way), 0.0, None, Y.astype(np.float32), 0.1)
    rounding = 2.0 * N_ROWS * np.abs(coef).max() * np.finfo(np.float32).eps  # rounding of the sum
    np.testing.assert_allclose(2.0 * coef.sum(axis=0, dtype=np.float64), Y.mean(axis=0), atol=rounding)


def test_targets_of_very_different_size(rows, way):
    X, Y = rows
    Y = np.column_stack([1e4 * Y[:, 0], 1e-4 * Y[:, 1], np.zeros(N_ROWS)])
    K = Laplacian()(X, gamma=0.5)
    coef, _ = solve.solve_kernel(given(K, way), 1.0, None, Y.astype(np.float32), 0.1)
    assert relative_error(K, Y[:, :2], 1.0, None, coef[:, :2]).max() < 1e-2
    np.testing.assert_array_equal(coef[:, 2], 0.0)


def test_the_preconditioner_helps(rows, monkeypatch):
    """It reduces the iterations to a tenth."""
    X, Y = rows
    K, alpha = RBF()(X, gamma=0.1), 0.1
    errors = {}
    for name in ("with", "without"):
        if name == "without":
            monkeypatch.setattr(solve, "_nystroem_inverse", lambda K, shift: np.copy)
        monkeypatch.setattr(solve, "_MAX_ITER", 10)
        coef, _ = solve.solve_kernel(packed_of(K), alpha, None, Y.astype(np.float32), 0.1)
        errors[name] = np.linalg.norm((K + 1) @ coef + alpha * coef - Y) / np.linalg.norm(Y)
    assert errors["with"] < 2e-3
    assert 10 * errors["with"] < errors["without"]


def test_the_preconditioner_stays_definite(rng):
    """For any penalty: eigenvalues that float32 cannot distinguish from 0 are left to the iterations."""
    K = RBF()(rng.normal(size=(N_ROWS, 5)), gamma=0.02).astype(np.float32)
    R = ((K + 1.0) @ rng.normal(size=(N_ROWS, 50))).astype(np.float32)
    for shift in (1e-3, 1e-4, 1e-5):
        images = solve._nystroem_inverse(packed_of(K), np.full(N_ROWS, shift, np.float32))(R)
        assert np.einsum("ij,ij->j", R, images, dtype=np.float64).min() > 0


@pytest.mark.parametrize(("side", "part"), [(1152, 384), (64, 24), (700, 700), (701, 24)])
def test_packed_beside_whole(rows, rng, threads, monkeypatch, side, part):
    """Products and first rows equal those of the matrix up to half a step of 16 bits and float32 rounding."""
    monkeypatch.setattr(kernel_sum, "_PACKED_SIDE", side)
    K = Laplacian()(rows[0], gamma=0.5).astype(np.float32)
    V = rng.normal(size=(N_ROWS, 3)).astype(np.float32)
    images = []
    for n in (1, 2):
        threads(n)
        matrix = kernel_sum.PackedKernel(lambda rows, columns: K[rows, columns].copy(), part, N_ROWS)
        images.append(matrix @ V)
    step = 0.501 / 65535
    for n_first in (1, 65, N_ROWS):
        np.testing.assert_allclose(matrix.first_rows(n_first), K[:n_first], rtol=1e-6, atol=step)
    np.testing.assert_array_equal(*images)
    rounding = np.sqrt(N_ROWS) * np.linalg.norm(V, axis=0).max() * (step + np.abs(K).max() * np.finfo(np.float32).eps)
    np.testing.assert_allclose(images[0], K.astype(np.float64) @ V, atol=rounding)


def test_packed_products_if_another_thread_takes_the_last_scratch_array(rows):
    class Taken(list):
        def __bool__(self):
            return True  # another thread takes the last array after this check

    K = packed_of(Laplacian()(rows[0], gamma=0.5))
    expected = K @ rows[1]
    K._scratch = Taken()
    np.testing.assert_array_equal(K @ rows[1], expected)


def test_iterations_go_on_to_a_part_of_what_the_model_leaves(rows):
    """Targets without noise are solved more accurately than the error requires, for correct leave-one-out residuals."""
    K, Y = packed_of(RBF()(rows[0], gamma=0.1)), np.sin(rows[0][:, :2]).astype(np.float32)
    coef, alpha = solve.solve_kernel(K, 0.02, None, Y, 1.0)
    left = np.linalg.norm(K @ coef + coef.sum(axis=0) + alpha * coef - Y, axis=0)
    of_model = np.linalg.norm(alpha * coef, axis=0)
    assert (of_model < 0.05 * np.linalg.norm(Y, axis=0)).all()
    assert (left < 0.04 * of_model).all()
