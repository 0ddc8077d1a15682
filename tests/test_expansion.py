"""Compiled sums of kernel values times coefficients, compared with sums pair by pair in float64."""

import naive
import numpy as np
import pytest

from binfeat import KernelMachineClassifier, KernelMachineRegressor, kernels
from binfeat._engine import expansions
from binfeat.length_scales import kernel_sum, matrices
from binfeat.models.fitted import expansion

CATEGORICAL = np.array([False] * 5 + [True])
PROFILES = {
    "laplacian": (kernels.Laplacian(), lambda t: np.exp(-t)),
    "rbf": (kernels.RBF(), lambda s: np.exp(-s)),
    "once": (kernels.Matern(1.5), lambda s: (1 + np.sqrt(6 * s)) * np.exp(-np.sqrt(6 * s))),
    "twice": (kernels.Matern(2.5), lambda s: (1 + np.sqrt(10 * s) + 10 * s / 3) * np.exp(-np.sqrt(10 * s))),
}


def columns(rng, n):
    return np.vstack([rng.normal(size=(5, n)), rng.integers(3, size=n)]).astype(np.float32)


def of_all_rows(kernel, support, coef, standardizer=None):
    standardizer = matrices.Standardizer(np.zeros(6), np.ones(6)) if standardizer is None else standardizer
    return expansion.Expansion.of_one_cell(kernel, CATEGORICAL, standardizer, support, coef)


@pytest.mark.engine
@pytest.mark.parametrize("n_support", [1, 70])
@pytest.mark.parametrize("name", PROFILES)
def test_one_kernel(rng, name, n_support):
    kernel, profile = PROFILES[name]
    gamma = np.array([0.5, 0.0, 0.3, 0.1, 0.2, 0.4])
    support, X, coef = columns(rng, n_support), columns(rng, 4), rng.normal(size=(2, n_support))
    of_kernel = kernel_sum.KernelValues([matrices.kernel_matrix(kernel, CATEGORICAL)], [0.8], [gamma])
    found = of_all_rows(of_kernel, support, coef)(X.T.astype(float), None)
    radial = name != "laplacian"
    expected = 0.8 * naive.kernel_matrix(X.T, support.T, gamma, profile, categorical={5}, radial=radial) @ coef.T
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(coef).sum())


@pytest.mark.engine
@pytest.mark.parametrize("name", ["laplacian", "once"])
def test_inputs_of_several_blocks(rng, name):
    kernel, profile = PROFILES[name]
    n_inputs = 2 * expansions._BLOCK + 13
    gamma, coef = rng.uniform(0, 2 / n_inputs, size=n_inputs), rng.normal(size=(2, 9))
    support, X = (rng.normal(size=(n_inputs, n)).astype(np.float32) for n in (9, expansions._BATCH + 3))
    numbers, standardizer = np.zeros(n_inputs, bool), matrices.Standardizer(np.zeros(n_inputs), np.ones(n_inputs))
    of_kernel = kernel_sum.KernelValues([matrices.kernel_matrix(kernel, numbers)], [1.0], [gamma])
    values, rows = expansion.Expansion.of_one_cell(of_kernel, numbers, standardizer, support, coef), X.T.astype(float)
    found = values(rows, None)
    expected = naive.kernel_matrix(X.T, support.T, gamma, profile, radial=name != "laplacian") @ coef.T
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(coef).sum())
    np.testing.assert_array_equal(np.vstack([values(row[np.newaxis], None) for row in rows]), found)


@pytest.mark.engine
def test_a_sum_with_a_linear_map_a_linear_part_and_rows_that_do_not_count(rng):
    gamma, linear_map = rng.uniform(0.1, 0.5, size=(3, 6)), rng.normal(size=(6, 3))
    standardizer = matrices.Standardizer(np.append(rng.normal(size=5), 0), np.append(rng.uniform(1, 2, size=5), 1))
    of_kernels = [
        matrices.kernel_matrix(kernel, CATEGORICAL, 1, linear_map if kernel is PROFILES["once"][0] else None)
        for kernel in (PROFILES["once"][0], kernels.Laplacian(), matrices.Linear())
    ]
    shares, support, coef = [0.5, 0.3, 0.2], columns(rng, 30), rng.normal(size=(3, 30))
    coef[:, ::3] = 0.0
    made = of_all_rows(kernel_sum.KernelValues(of_kernels, shares, gamma), support, coef, standardizer)
    X = columns(rng, 5).T * standardizer.unit + standardizer.center
    rows = ((X - standardizer.center) / standardizer.unit).astype(np.float32)
    numbers = slice(0, 5)
    roots = np.sqrt(gamma[0, numbers])[:, np.newaxis] * linear_map[numbers]
    mapped = [np.column_stack([table[:, numbers] @ roots, table[:, 5]]) for table in (rows, support.T)]
    ones = np.append(np.ones(3), gamma[0, 5])
    expected = 0.5 * naive.kernel_matrix(*mapped, ones, PROFILES["once"][1], categorical={3}, radial=True)
    expected += 0.3 * naive.kernel_matrix(rows, support.T, gamma[1], PROFILES["laplacian"][1], categorical={5})
    expected += 0.2 * (rows[:, numbers] * gamma[2, numbers]) @ support[numbers]
    np.testing.assert_allclose(made(X, None), expected @ coef.T, atol=1e-5)


def models(rng):
    """Yield exact models with a sum of kernels, a linear map, categories, several classes."""
    X = np.column_stack([rng.normal(size=(700, 5)), rng.integers(3, size=700)])
    y = np.sin(X[:, 0] + X[:, 1]) + X[:, 2] + (X[:, 5] == 1)
    given = {"features": "exact", "random_state": 0, "categorical_features": [5]}
    yield KernelMachineRegressor(**given).fit(X, y), X
    yield KernelMachineRegressor(kernel="rbf", gamma="scale", alpha=1e-4, **given).fit(X, np.column_stack([y, -y])), X
    yield KernelMachineClassifier(gamma="scale", kernel=kernels.Matern(2.5), **given).fit(X, X[:, 5]), X


def test_one_row_is_a_row_of_many_for_any_number_of_threads(rng, limits, threads):
    limits(n_steps=4)
    for model, X in models(rng):
        rows = np.concatenate([X, rng.normal(size=(4500, 6))])
        many = model._scores(rows)
        for some in (slice(0, 1), slice(0, 65), slice(100, 4200)):
            np.testing.assert_array_equal(model._scores(rows[some]), many[some])
        for n_jobs in (1, 2):
            np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs)._scores(rows), many)


# Few rows.

N_ROWS = 2050
SMOOTH = {"features": "exact", "kernel": "rbf", "gamma": 0.05, "random_state": 0}


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS + 500, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=len(X))


@pytest.fixture(scope="module")
def smooth_model(noisy):
    X, y = noisy
    return KernelMachineRegressor(alpha=0.3, **SMOOTH).fit(X[:N_ROWS], y[:N_ROWS])


def full_values(model, X):
    """Return predictions from all rows, pair by pair."""
    function = model._fitted.function
    rows = model._fitted.rows(model, X)
    columns = function.standardizer.columns(rows)
    K = naive.kernel_matrix(columns.T, function.support.T, function.gammas[0], lambda s: np.exp(-s), radial=True)
    scores = K @ function.coef.T + model._fitted.intercept
    return scores[:, 0] * model._target_std[0] + model._target_mean[0]


def residual(model):
    function = model._fitted.function
    return float(function.alpha) * np.sqrt((function.coef**2 / function.weights).mean()) * model._target_std[0]


@pytest.mark.hard
def test_new_rows_have_the_predictions_of_all_rows(noisy, smooth_model):
    X = noisy[0][N_ROWS : N_ROWS + 200]
    assert 0 < smooth_model._fitted.function.anchors.size <= N_ROWS / 3
    differences = smooth_model.predict(X) - full_values(smooth_model, X)
    assert np.sqrt((differences**2).mean()) < 0.03 * residual(smooth_model)
    assert np.abs(differences).max() < 0.2 * residual(smooth_model)


@pytest.mark.hard
def test_a_function_with_details_keeps_all_rows(noisy):
    X, y = noisy
    model = KernelMachineRegressor(alpha=1e-3, **{**SMOOTH, "gamma": 2.0}).fit(X[:N_ROWS], y[:N_ROWS])
    assert not model._fitted.function.anchors.size
    np.testing.assert_allclose(model.predict(X[:50]), full_values(model, X[:50]), atol=1e-3)


def test_a_function_without_residuals_keeps_all_rows(noisy):
    X = noisy[0][:N_ROWS]
    model = KernelMachineRegressor(alpha=0.0, **SMOOTH).fit(X, X[:, 0])
    assert not model._fitted.function.anchors.size


def test_few_rows_are_all_kept(noisy):
    X, y = noisy
    n_rows = expansion.ANCHORED_ROWS - 1
    model = KernelMachineRegressor(alpha=0.3, **SMOOTH).fit(X[:n_rows], y[:n_rows])
    assert not model._fitted.function.anchors.size


def test_any_threads_and_any_rows(noisy, smooth_model, threads):
    X, y = noisy
    known = smooth_model.predict(X)
    np.testing.assert_array_equal([smooth_model.predict(row[np.newaxis])[0] for row in X[:20]], known[:20])
    for n_jobs in (1, 2):
        again = KernelMachineRegressor(alpha=0.3, n_jobs=n_jobs, **SMOOTH).fit(X[:N_ROWS], y[:N_ROWS])
        np.testing.assert_array_equal(again.predict(X), known)


def test_saved_anchors_are_checked(noisy, smooth_model):
    X, known = noisy[0][:20], smooth_model._exact
    rows, coef = known["anchors"], known["anchor_coef"]
    for changed in (
        {"anchors": rows + np.int32(N_ROWS)},
        {"anchors": -1 - rows},
        {"anchors": rows[:-1]},
        {"anchors": rows[:0]},
        {"anchor_coef": np.full_like(coef, np.nan)},
    ):
        state = smooth_model.__getstate__() | {"_exact": known | changed}
        with pytest.raises(ValueError, match="anchor"):
            KernelMachineRegressor.__new__(KernelMachineRegressor).__setstate__(state)
    copy = KernelMachineRegressor.__new__(KernelMachineRegressor)
    copy.__setstate__(smooth_model.__getstate__())
    np.testing.assert_array_equal(copy.predict(X), smooth_model.predict(X))
    without = {name: array for name, array in known.items() if not name.startswith("anchor")}  # as in older files
    copy.__setstate__(smooth_model.__getstate__() | {"_exact": without})
    np.testing.assert_allclose(copy.predict(X), full_values(smooth_model, X), atol=1e-4)


def test_compact_models_and_graphs_have_the_anchors(noisy, smooth_model):
    X = noisy[0][:20]
    np.testing.assert_allclose(smooth_model.compact().predict(X), smooth_model.predict(X), atol=1e-4)
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(smooth_model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(["predictions"], {"X": X})[0]
    np.testing.assert_allclose(np.ravel(found), smooth_model.predict(X), atol=1e-4)


def test_every_target_decides(rng):
    kernel = kernel_sum.KernelValues([matrices.kernel_matrix(kernels.RBF(), np.zeros(2, bool))], [1.0], [np.ones(2)])
    support, coef = rng.normal(size=(2, 3000)).astype(np.float32), rng.normal(size=(2, 3000))
    of_rows = kernel, np.zeros(2, bool), support, coef
    assert expansion.few_anchors(*of_rows, np.full(2, 10.0), 1) is not None
    assert expansion.few_anchors(*of_rows, np.array([10.0, 1e-9]), 1) is None


def test_parts_of_a_function_have_no_anchors(smooth_model):
    function = smooth_model._fitted.function
    part = function.of_rows(np.arange(300))
    assert not part.anchors.size
    assert part.support.shape[1] == part.coef.shape[1] == part.weights.size == 300
