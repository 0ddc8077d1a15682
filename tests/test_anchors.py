"""Predictions of exact models by few of their rows."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from binfeat import KernelMachineRegressor, kernels
from binfeat.length_scales import kernel_sum, matrices
from binfeat.models.fitted import anchors
from binfeat.models.fitted.exact import ExactFunction

N_ROWS = 2400
GIVEN = {"features": "exact", "kernel": "rbf", "gamma": 0.05, "random_state": 0}


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS + 500, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=len(X))


@pytest.fixture(scope="module")
def smooth_model(noisy):
    X, y = noisy
    return KernelMachineRegressor(alpha=0.3, **GIVEN).fit(X[:N_ROWS], y[:N_ROWS])


def full_values(machine, X):
    """Predictions by all rows, pair by pair."""
    function = machine._fitted.function
    rows = machine._fitted.rows(machine, X)
    columns = function.frame.columns(rows)
    K = naive.kernel_matrix(columns.T, function.support.T, function.gammas[0], lambda s: np.exp(-s), radial=True)
    scores = K @ function.coef.T + machine._fitted.intercept
    return scores[:, 0] * machine._target_std[0] + machine._target_mean[0]


def residual(machine):
    function = machine._fitted.function
    return float(function.alpha) * np.sqrt((function.coef**2 / function.weights).mean()) * machine._target_std[0]


def test_new_rows_have_the_predictions_of_all_rows(noisy, smooth_model):
    X = noisy[0][N_ROWS : N_ROWS + 200]
    assert 0 < smooth_model._fitted.function.anchors.size <= N_ROWS / 3
    differences = smooth_model.predict(X) - full_values(smooth_model, X)
    assert np.sqrt((differences**2).mean()) < 0.03 * residual(smooth_model)
    assert np.abs(differences).max() < 0.2 * residual(smooth_model)


def test_a_function_with_details_keeps_all_rows(noisy):
    X, y = noisy
    machine = KernelMachineRegressor(alpha=1e-3, **{**GIVEN, "gamma": 2.0}).fit(X[:N_ROWS], y[:N_ROWS])
    assert not machine._fitted.function.anchors.size
    assert_allclose(machine.predict(X[:50]), full_values(machine, X[:50]), atol=1e-3)


def test_a_function_without_residuals_keeps_all_rows(noisy):
    X = noisy[0][:N_ROWS]
    machine = KernelMachineRegressor(alpha=0.0, **GIVEN).fit(X, X[:, 0])
    assert not machine._fitted.function.anchors.size


def test_few_rows_are_all_kept(noisy):
    X, y = noisy
    n_rows = anchors.LEAST_ROWS - 1
    machine = KernelMachineRegressor(alpha=0.3, **GIVEN).fit(X[:n_rows], y[:n_rows])
    assert not machine._fitted.function.anchors.size


def test_any_threads_and_any_rows(noisy, smooth_model, threads):
    X, y = noisy
    known = smooth_model.predict(X)
    assert_array_equal([smooth_model.predict(row[np.newaxis])[0] for row in X[:20]], known[:20])
    for n_jobs in (1, 2):
        again = KernelMachineRegressor(alpha=0.3, n_jobs=n_jobs, **GIVEN).fit(X[:N_ROWS], y[:N_ROWS])
        assert_array_equal(again.predict(X), known)


def test_saved_anchors_are_checked(noisy, smooth_model):
    X, known = noisy[0][:20], smooth_model._exact
    anchors, coef = known["anchors"], known["anchor_coef"]
    for changed in (
        {"anchors": anchors + np.int32(N_ROWS)},
        {"anchors": -1 - anchors},
        {"anchors": anchors[:-1]},
        {"anchors": anchors[:0]},
        {"anchor_coef": np.full_like(coef, np.nan)},
    ):
        state = smooth_model.__getstate__() | {"_exact": known | changed}
        with pytest.raises(ValueError, match="anchor"):
            KernelMachineRegressor.__new__(KernelMachineRegressor).__setstate__(state)
    copy = KernelMachineRegressor.__new__(KernelMachineRegressor)
    copy.__setstate__(smooth_model.__getstate__())
    assert_array_equal(copy.predict(X), smooth_model.predict(X))
    without = {name: array for name, array in known.items() if not name.startswith("anchor")}  # as in older files
    copy.__setstate__(smooth_model.__getstate__() | {"_exact": without})
    assert_allclose(copy.predict(X), full_values(smooth_model, X), atol=1e-4)


def test_compact_models_and_graphs_have_the_anchors(noisy, smooth_model):
    X = noisy[0][:20]
    assert_allclose(smooth_model.compact().predict(X), smooth_model.predict(X), atol=1e-4)
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(smooth_model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(["predictions"], {"X": X})[0]
    assert_allclose(np.ravel(found), smooth_model.predict(X), atol=1e-4)


def function_of(rng, n_rows, n_targets=2):
    kernel = kernel_sum.KernelValues([matrices.kernel_matrix(kernels.RBF(), np.zeros(2, bool))], [1.0], [np.ones(2)])
    return kernel, rng.normal(size=(2, n_rows)).astype(np.float32), rng.normal(size=(n_targets, n_rows))


def test_every_target_decides(rng):
    kernel, support, coef = function_of(rng, 3000)
    of_rows = kernel, np.zeros(2, bool), support, coef
    assert anchors.few_anchors(*of_rows, np.full(2, 10.0), 1) is not None
    assert anchors.few_anchors(*of_rows, np.array([10.0, 1e-9]), 1) is None


def test_parts_of_a_function_have_no_anchors(smooth_model):
    function = smooth_model._fitted.function
    part = function.of_rows(np.arange(300))
    assert isinstance(part, ExactFunction)
    assert not part.anchors.size
    assert part.support.shape[1] == part.coef.shape[1] == part.weights.size == 300
