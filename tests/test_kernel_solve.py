"""Exact kernel ridge systems: by Cholesky and by iterations, against a dense solve."""

import tracemalloc

import numpy as np
import pytest

from binfeat._machine import kernel_solve
from binfeat._machine.kernel_solve import reads_whole, solve_kernel
from binfeat.kernels import RBF, Laplacian
from tests import naive

N_ROWS = 700


@pytest.fixture
def rows(rng):
    return rng.normal(size=(N_ROWS, 3)), rng.normal(size=(N_ROWS, 2))


@pytest.fixture(params=["cholesky", "iterations"])
def way(request, monkeypatch):
    """Both ways; only iterations are inexact."""
    if request.param == "iterations":
        monkeypatch.setattr(kernel_solve, "cholesky_rows", lambda n_targets: 600)
    return request.param


def relative_error(K, Y, alpha, weights, coef):
    """Of the solution's values at the rows."""
    expected = naive.kernel_ridge(K, Y, alpha, weights)
    assert coef.shape == Y.shape
    assert coef.dtype == np.float32
    values, wanted = (K + 1.0) @ coef.astype(np.float64), (K + 1.0) @ expected
    return np.linalg.norm(values - wanted, axis=0) / np.linalg.norm(wanted, axis=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [10.0, 1.0, 0.1])
@pytest.mark.parametrize("kernel", [Laplacian(), RBF()], ids=repr)
def test_against_a_dense_solve(rows, rng, way, kernel, alpha, weighted):
    X, Y = rows
    K = kernel(X, gamma=0.5)
    weights = rng.uniform(0.2, 3.0, size=N_ROWS) if weighted else None
    coef, _ = solve_kernel(K.astype(np.float32), alpha, weights, Y.astype(np.float32))
    assert relative_error(K, Y, alpha, weights, coef).max() < (1e-3 if way == "cholesky" else 1e-2)


def test_the_factor_takes_the_place_of_the_matrix(rows):
    K, Y = Laplacian()(rows[0], gamma=0.5).astype(np.float32), rows[1].astype(np.float32)
    solve_kernel(K.copy(), 1.0, None, Y)  # compiles
    tracemalloc.start()
    try:
        solve_kernel(K, 1.0, None, Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.2 * K.nbytes


def test_few_targets_and_many(rows, rng, monkeypatch):
    """Of few targets one triangle of the matrix is read, for each alone."""
    monkeypatch.setattr(kernel_solve, "cholesky_rows", lambda n_targets: 600)
    X, Y = rows[0], rng.normal(size=(N_ROWS, 5)).astype(np.float32)
    K = Laplacian()(X, gamma=0.5).astype(np.float32)
    assert reads_whole(*Y.shape)
    assert reads_whole(600, 1)
    assert not reads_whole(N_ROWS, 1)
    upper = K.copy()
    upper[np.tril_indices(N_ROWS, -1)] = np.nan
    together, _ = solve_kernel(K, 1.0, None, Y)
    alone, _ = solve_kernel(upper, 1.0, None, Y[:, :1])
    assert relative_error(K, Y, 1.0, None, together).max() < 1e-2
    assert relative_error(K, Y[:, :1], 1.0, None, alone).max() < 1e-2


def test_the_last_rows_of_cholesky(rows, monkeypatch):
    """As many rows as the limit are solved by Cholesky, one more by iterations."""
    X, Y = rows
    used = []
    monkeypatch.setattr(kernel_solve, "_Nystrom", lambda K, shift: used.append(len(K)))
    monkeypatch.setattr(kernel_solve, "_conjugate_gradients", lambda K, shift, Y, precondition: Y)
    for limit in (N_ROWS, N_ROWS - 1):
        monkeypatch.setattr(kernel_solve, "cholesky_rows", lambda n_targets, limit=limit: limit)
        solve_kernel(Laplacian()(X).astype(np.float32), 1.0, None, Y.astype(np.float32))
        assert used == ([] if limit == N_ROWS else [N_ROWS])


def test_a_singular_kernel_is_solved(rows, way):
    """Of rows that are all alike, without a penalty: the mean."""
    Y = rows[1] + [3.0, 0.0]
    K = np.ones((N_ROWS, N_ROWS), np.float32)
    coef, _ = solve_kernel(K, 0.0, None, Y.astype(np.float32))
    rounding = 2.0 * N_ROWS * np.abs(coef).max() * np.finfo(np.float32).eps  # of the sum that the mean is
    np.testing.assert_allclose(2.0 * coef.sum(axis=0, dtype=np.float64), Y.mean(axis=0), atol=rounding)


def test_targets_of_very_different_size(rows, way):
    X, Y = rows
    Y = np.column_stack([1e4 * Y[:, 0], 1e-4 * Y[:, 1], np.zeros(N_ROWS)])
    K = Laplacian()(X, gamma=0.5)
    coef, _ = solve_kernel(K.astype(np.float32), 1.0, None, Y.astype(np.float32))
    assert relative_error(K, Y[:, :2], 1.0, None, coef[:, :2]).max() < 1e-2
    np.testing.assert_array_equal(coef[:, 2], 0.0)


def test_the_preconditioner_helps(rows, monkeypatch):
    """With it a tenth of the iterations is enough."""
    X, Y = rows
    K, alpha = RBF()(X, gamma=0.1), 0.1
    monkeypatch.setattr(kernel_solve, "cholesky_rows", lambda n_targets: 600)
    errors = {}
    for name in ("with", "without"):
        if name == "without":
            monkeypatch.setattr(kernel_solve._Nystrom, "__call__", lambda self, R: R.copy())
        monkeypatch.setattr(kernel_solve, "_MAX_ITER", 10)
        coef, _ = solve_kernel(K.astype(np.float32), alpha, None, Y.astype(np.float32))
        errors[name] = np.linalg.norm((K + 1) @ coef + alpha * coef - Y) / np.linalg.norm(Y)
    assert errors["with"] < 2e-3
    assert 10 * errors["with"] < errors["without"]


def test_the_preconditioner_stays_definite(rng):
    """However small the penalty: what float32 cannot tell from 0 is left to the iterations."""
    K = RBF()(rng.normal(size=(N_ROWS, 5)), gamma=0.02).astype(np.float32)
    R = ((K + 1.0) @ rng.normal(size=(N_ROWS, 50))).astype(np.float32)
    for shift in (1e-3, 1e-4, 1e-5):
        images = kernel_solve._Nystrom(K, np.full(N_ROWS, shift, np.float32))(R)
        assert np.einsum("ij,ij->j", R, images, dtype=np.float64).min() > 0
