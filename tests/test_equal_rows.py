"""Cells of equal rows, which no tree can split, also with more rows than a cell can have."""

import numpy as np
import pytest
from hard import hard

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks, kernels
from binfeat.length_scales import kernel_sum, matrices
from binfeat.models.kernel_algebra.loss import LogLoss, SquaredHinge
from binfeat.models.solvers.cells import CellSolver

LOCAL = {"features": "local", "solver_params": {"cell_rows": 100}, "random_state": 0}
N_ROWS, ALPHA = 60, 0.3


@pytest.fixture
def kernel():
    of_kernels = [
        matrices.kernel_matrix(kernel, np.zeros(2, bool), 1) for kernel in (kernels.Laplacian(), kernels.RBF())
    ]
    return kernel_sum.KernelValues(of_kernels, [0.7, 0.3], np.ones((2, 2)), 1)


@pytest.fixture
def equal(rng):
    """Return columns, targets and weights of equal rows."""
    X = np.tile(np.float32([[0.4], [-1.3]]), N_ROWS)
    return X, rng.normal(size=(N_ROWS, 2)).astype(np.float32), rng.uniform(0.5, 2, size=N_ROWS)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_one_row_stands_for_all(kernel, equal, is_weighted):
    X, Y, weights = equal
    weights = weights if is_weighted else None
    whole, one = (CellSolver(kernel, ALPHA, None, most)(X, Y, weights) for most in (N_ROWS, 10))
    assert one.coef.shape == (1, 2)
    np.testing.assert_allclose(one.coef, whole.coef.sum(axis=0, keepdims=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.intercept, whole.intercept, rtol=1e-4, atol=1e-5)
    for what in ("scores", "residuals", "variances"):
        np.testing.assert_allclose(getattr(one, what), getattr(whole, what), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", [LogLoss(), SquaredHinge()])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_one_row_stands_for_labels(kernel, equal, loss, is_weighted):
    X, weights = equal[0], equal[2] if is_weighted else None
    Y = np.where(np.arange(N_ROWS) % 3 == 0, 1.0, -1.0)[:, np.newaxis]
    whole, few = (CellSolver(kernel, ALPHA, loss, most)(X, Y, weights) for most in (N_ROWS, 30))
    assert few.coef.shape == (1, 1)
    np.testing.assert_allclose(few.scores, whole.scores, atol=2e-3)
    np.testing.assert_allclose(few.intercept, whole.intercept, atol=2e-3)
    np.testing.assert_array_equal(few.residuals, Y - few.scores)
    np.testing.assert_allclose(few.residuals, whole.residuals, atol=0.1)  # with 59 other rows


def places(n_of_each, counts):
    """Return inputs 0 and 1, and labels with this number of ones at the end."""
    labels = [np.arange(n_of_each) >= n_of_each - count for count in counts]
    return np.repeat([[0.0], [1.0]], n_of_each, axis=0), np.concatenate(labels).astype(int)


@pytest.mark.parametrize("loss", ["log", *hard("squared", "squared_hinge")])
def test_shares_of_labels_are_those_of_all_rows(loss, few_steps):
    X, y = places(300, [100, 200])
    model = KernelMachineClassifier(**LOCAL, loss=loss).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]])[:, 1], [1 / 3, 2 / 3], atol=0.01)


@pytest.mark.hard
def test_means_and_deviations_are_those_of_all_rows(rng, few_steps):
    X = np.repeat(np.arange(3.0), 400)[:, np.newaxis]
    y = np.concatenate([np.sort(rng.normal(mean, 1, 400)) for mean in (0, 2, 1)])
    model = KernelMachineRegressor(**LOCAL).fit(X, y)
    mean, std = model.predict(np.arange(3.0)[:, np.newaxis], return_std=True)
    np.testing.assert_allclose(mean, y.reshape(3, -1).mean(axis=1), atol=0.02)
    np.testing.assert_allclose(std, 1 / np.sqrt(400), rtol=0.2)
    assert model.held_out_error_[0] * y.var() == pytest.approx(1, rel=0.1)
    low, high = model.predict_interval([[1.0]], coverage=0.8)[0]
    assert np.mean((low < y[400:800]) & (y[400:800] < high)) == pytest.approx(0.8, abs=0.05)
    source = blocks(X, y, block_rows=500)
    np.testing.assert_array_equal(
        KernelMachineRegressor(**LOCAL).fit(source).predict(X[::400]), model.predict(X[::400])
    )


def test_weights_are_rows(rng):
    X, y = np.repeat([0.0, 1.0], 300)[:, np.newaxis], rng.normal(size=600)
    weights = rng.integers(1, 4, size=600)
    given = LOCAL | {"kernel": "laplacian", "gamma": 1.0}
    model = KernelMachineRegressor(**given, alpha=2.0).fit(X, y, sample_weight=weights)
    again = KernelMachineRegressor(**given, alpha=2.0).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    new = [[0.0], [0.3], [1.0]]
    np.testing.assert_allclose(model.predict(new), again.predict(new), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", *hard("log", "squared_hinge")])
def test_cells_of_many_equal_rows_without_penalty(loss):
    X, y = places(300, [100, 200])
    model = KernelMachineClassifier(**LOCAL, loss=loss, kernel="laplacian", gamma=1.0, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]])[:, 1], [1 / 3, 2 / 3], atol=0.01)


def test_few_rows_that_differ_from_very_many_are_cells_of_their_own(rng, few_steps):
    X, y = np.zeros((1000, 2)), 0.1 * rng.normal(size=1000)
    X[[7, 501, 723]], y[[7, 501, 723]] = 5.0, 10.0
    model = KernelMachineRegressor(**LOCAL).fit(X, y)
    np.testing.assert_allclose(model.predict([[0.0, 0.0], [5.0, 5.0]]), [0, 10], atol=1.5)
