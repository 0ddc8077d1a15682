"""Kernel models with a linear map of the inputs of their radial kernel: predictions, and files."""

import pickle

import naive
import numpy as np
import pytest
from hard import hard
from kernel_models import assert_same_state

from binfeat import KernelMachineClassifier, KernelMachineRegressor, RandomFourier, kernels

EXACT = {"features": "exact", "kernel": "rbf", "random_state": 0}


def diagonal(rng, n_rows):
    """Return rows with a sine along the diagonal of two inputs, and an irrelevant input."""
    X = rng.uniform(-2, 2, size=(n_rows, 3))
    return X, np.sin(3 * X[:, 0] + 3 * X[:, 1]) + 0.05 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def fitted():
    X, y = diagonal(np.random.default_rng(1), 600)
    return KernelMachineRegressor(**EXACT).fit(X[:400], y[:400]), X, y


def test_predictions_are_a_kernel_expansion(fitted):
    """Predictions follow from the public attributes: gammas, linear map and penalty."""
    model, X, y = fitted
    kernel = kernels.RBF()
    mapped = (X * np.sqrt(model.gamma_)) @ model.linear_map_
    train, mean, std = mapped[:400], y[:400].mean(), y[:400].std()
    coef = naive.kernel_ridge(kernel(train, gamma=1.0), (y[:400] - mean) / std, model.alpha_)
    expected = mean + std * ((kernel(mapped, train, gamma=1.0) + 1.0) @ coef)
    np.testing.assert_allclose(model.predict(X), expected, atol=2e-3)
    assert model.score(X[400:], y[400:]) > 0.97


def test_public_attributes(fitted):
    model, _, _ = fitted
    assert model.linear_map_.shape == (3, 3)
    np.testing.assert_allclose(np.linalg.norm(model.linear_map_, axis=1), 1.0)
    assert abs(model.linear_map_[0] @ model.linear_map_[1]) > 0.9  # both inputs have the same direction
    np.testing.assert_array_less(model.feature_relevances_[2], 0.1)
    assert "linear map" in model.decisions_["what"]


def test_both_inputs_of_a_diagonal_are_as_relevant(fitted):
    """On average over four seeds; a single fit has 0.39 to 0.61."""
    model, X, y = fitted
    others = [KernelMachineRegressor(**EXACT | {"random_state": s}).fit(X[:400], y[:400]) for s in (1, 2, 3)]
    mean = np.mean([own.feature_relevances_ for own in (model, *others)], axis=0)
    np.testing.assert_allclose(mean[:2], 0.5, atol=0.1)


def test_round_trips_and_files_of_older_versions(fitted):
    sio = pytest.importorskip("skops.io")
    model, X, _ = fitted
    data = sio.dumps(model)
    trusted = ["binfeat.KernelMachineRegressor"]
    for loaded in (pickle.loads(pickle.dumps(model)), sio.loads(data, trusted=trusted)):
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert_same_state(loaded, model)
    plain = KernelMachineRegressor(**EXACT, gamma="scale").fit(X[:50], X[:50, 0])
    state = plain.__getstate__()
    state["_exact"] = {name: array for name, array in state["_exact"].items() if name != "rotation"}
    del state["_rotation"], state["_binfeat_format"]
    older = KernelMachineRegressor()
    older.__setstate__(state)
    np.testing.assert_array_equal(older.predict(X), plain.predict(X))
    assert older.set_params(warm_start=True).fit(X[:60], X[:60, 0]).linear_map_ is None


def test_error_bars(fitted):
    model, X, _ = fitted
    far = [[2.0, -2.0, 0.0], [20.0, 20.0, 0.0]]  # only the second one is far in the relevant direction
    _, near = model.predict(X[400:], return_std=True)
    _, std = model.predict(far, return_std=True)
    assert std[1] > 3 * near.mean()


@pytest.mark.parametrize("features", ["exact", *hard("fourier")])
def test_a_warm_start_keeps_the_linear_map(features):
    X, y = diagonal(np.random.default_rng(2), 900)
    model = KernelMachineRegressor(**EXACT | {"features": features}, warm_start=True).fit(X[:400], y[:400])
    before = model.linear_map_
    assert before is not None
    model.fit(X[:700], y[:700])
    np.testing.assert_array_equal(model.linear_map_, before)
    assert model.score(X[700:], y[700:]) > 0.97


def test_fourier_features_have_the_mapped_kernel():
    X, y = diagonal(np.random.default_rng(2), 400)
    model = KernelMachineRegressor(**EXACT | {"features": "fourier"}).fit(X, y)
    kernel = kernels.RBF()
    Z = model._fitted.function.fourier(X[:60])
    mapped = (X[:60] * np.sqrt(model.gamma_)) @ model.linear_map_
    n_frequencies, apart = Z.shape[1] / 2, Z @ Z.T - kernel(mapped, gamma=1.0)
    assert np.sqrt((apart**2).mean()) < 1 / np.sqrt(n_frequencies)
    own = {"kernel": kernel, "gamma": model.gamma_, "rotation": model.linear_map_, "n_components": Z.shape[1]}
    own_Z = RandomFourier(**own, random_state=0).fit_transform(X[:60])
    np.testing.assert_allclose(own_Z @ own_Z.T, Z @ Z.T, atol=6 / np.sqrt(n_frequencies))


@pytest.mark.parametrize("n_jobs", [2, *hard(1)])
def test_the_same_for_any_number_of_threads(fitted, threads, n_jobs):
    model, X, y = fitted
    threads(n_jobs)
    other = KernelMachineRegressor(**EXACT, n_jobs=n_jobs).fit(X[:400], y[:400])
    np.testing.assert_array_equal(other.linear_map_, model.linear_map_)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_classes_categories_and_several_targets(rng):
    X, y = diagonal(rng, 600)
    X[:, 2] = rng.integers(3, size=600)
    labels = np.where((y > 0) ^ (X[:, 2] == 1), "yes", "no")
    model = KernelMachineClassifier(features="exact", categorical_features=[2], random_state=0)
    model.fit(X[:400], labels[:400])
    assert model.score(X[400:], labels[400:]) > 0.85
    np.testing.assert_array_equal(model.linear_map_[2], [0, 0, 1])
    Y = np.column_stack([y, X[:, 0] + X[:, 1]])
    both = KernelMachineRegressor(features="exact", random_state=0).fit(X[:400], Y[:400])
    assert both.score(X[400:], Y[400:]) > 0.9
    assert both.linear_map_ is not None


@pytest.mark.hard
def test_given_length_scales_get_no_linear_map(fitted):
    _, X, y = fitted
    assert KernelMachineRegressor(**EXACT, gamma=[1.0, 1.0, 0.0]).fit(X, y).linear_map_ is None
    assert (
        KernelMachineRegressor(features="binning", solver_params={"n_grids": 50}, random_state=0).fit(X, y).linear_map_
        is None
    )
