"""Compact copies of kernel models: smaller files, and predictions within the documented bound."""

import numpy as np
import pytest
from limits import limited

import binfeat
from binfeat import KernelMachineClassifier, KernelMachineRegressor

sio = pytest.importorskip("skops.io")

KINDS = ["exact", "local", "binning", "fourier"]


@pytest.fixture(scope="module")
def made():
    """Return a regressor and a classifier of each kind, with their rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(size=200) * np.exp(X[:, 2]) / 5
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    found = {}
    with limited(n_steps=4, sample_grids=(5, 20), n_fourier=64):
        for kind in KINDS:
            given = {"features": kind, "random_state": 0}
            sampled = {"solver_params": {"n_posterior_samples": 4}} if kind in ("binning", "fourier") else {}
            found[kind] = (
                KernelMachineRegressor(**given, **sampled).fit(X, y, sample_weight=rng.uniform(0.5, 2, size=200)),
                KernelMachineClassifier(**given).fit(X, labels),
            )
    return found, X, y


def bound(model):
    """Return 2^-24 times the sum of the coefficients, plus rounding in float64."""
    return 2.0**-24 * np.abs(model.feature_coef_).sum(axis=1).max() + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_within_the_bound(made, kind):
    found, X, _ = made
    for model in found[kind]:
        small = model.compact()
        assert np.abs(small._scores(X) - model._scores(X)).max() <= bound(model)
        assert small.feature_coef_.dtype == np.float32
        assert model.feature_coef_.dtype == np.float64


@pytest.mark.parametrize("kind", ["exact", "local"])
def test_rounding_keeps_the_sums_of_large_coefficients(kind, limits):
    limits(n_steps=4)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1]]) + 0.1 * rng.normal(size=(600, 2))
    model = KernelMachineRegressor(features=kind, gamma=0.01, kernel="laplacian", alpha=1e-5, random_state=0).fit(X, Y)
    assert np.abs(model.compact().predict(X) - model.predict(X)).max() < 4e-5


@pytest.mark.parametrize("kind", KINDS)
def test_everything_goes_on_working(made, kind):
    found, X, _ = made
    model, classifier = found[kind]
    small = model.compact()
    close = {"rtol": 1e-4, "atol": 1e-4}
    for pair in zip(model.predict(X, return_std=True), small.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(*pair, **close)
    for method in ("deviations", "quantiles"):
        intervals = (each.predict_interval(X, method=method) for each in (model, small))
        np.testing.assert_allclose(*intervals, **close)
    values = (each.shapley_values(X[:5], X[:50], n_permutations=2).values for each in (model, small))
    np.testing.assert_allclose(*values, **close)
    np.testing.assert_allclose(classifier.predict_proba(X), classifier.compact().predict_proba(X), **close)
    assert small.summary() == model.summary()
    assert repr(small.check(X)) == repr(model.check(X))


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_smaller_and_give_the_same(made, kind):
    found, X, _ = made
    for model in found[kind]:
        small = model.compact()
        data = sio.dumps(small)
        assert len(data) < len(sio.dumps(model))
        loaded = sio.loads(data, trusted=binfeat.TRUSTED_TYPES)
        np.testing.assert_array_equal(loaded.predict(X), small.predict(X))
        np.testing.assert_array_equal(loaded.compact().predict(X), small.predict(X))
        assert loaded.length_scale_gammas_.shape == (0, model.gamma_.size)


def test_a_warm_start_from_a_compact_model(made, limits):
    limits(n_steps=4)
    found, X, y = made
    small = found["exact"][0].compact().set_params(warm_start=True)
    again = small.fit(X, y)
    np.testing.assert_array_equal(again.gamma_, found["exact"][0].gamma_)
    assert again.feature_coef_.dtype == np.float64
