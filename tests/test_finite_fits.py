"""Fits with infinite or missing errors, coefficients or predictions raise an error that names the cause."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hard import each_value_once

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks
from binfeat.models import pipeline

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=60)
FEATURES = "exact", "local", "binning", "fourier"
pytestmark = pytest.mark.usefixtures("few_grids")


def models(**parameters):
    yield KernelMachineRegressor(random_state=0, **parameters), Y
    yield KernelMachineClassifier(random_state=0, **parameters), (Y > 0).astype(int)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize(
    ("parameters", "weight", "message"),
    [
        ({"alpha": 1e300}, 1.0, r"alpha must be at most 1e\+30 times the mean weight of a row, got 1e\+300"),
        ({"alpha": 1.0}, 1e-300, r"alpha must be at most 1e\+30 times the mean weight of a row, got 1"),
        ({"gamma": 1e300}, 1.0, r"gamma must be at most 1e\+30 over the spread of an input; got 1e\+300 for input 0"),
    ],
)
def test_parameters_beyond_float32_are_refused(features, parameters, weight, message):
    for model, y in models(features=features, **parameters):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize(("one", "others"), [(1e300, 1.0), (1.0, 1e-300), (1e-290, 1e290)])
def test_weights_that_differ_beyond_float32_are_refused(features, one, others):
    weights = np.where(np.arange(60) == 3, one, others)
    for model, y in models(features=features):
        with pytest.raises(ValueError, match=r"sample_weight must differ by at most a factor of 1e\+30, but ranges"):
            model.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("features", "change"),
    each_value_once(
        ["exact", "binning"], [{"alpha": 1e29}, {"gamma": 1e29}, {"weight": 1e29}, {"weight": 1e-29}, {"weight": 0.0}]
    ),
    ids=str,
)
def test_numbers_within_float32_give_finite_fits(features, change):
    parameters = {name: value for name, value in change.items() if name != "weight"}
    weights = np.where(np.arange(60) == 3, change.get("weight", 1.0), 1.0)
    for model, y in models(features=features, **parameters):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model.fit(X, y, sample_weight=weights)
        assert np.isfinite(model.held_out_error_[0])
        assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("wrong", ["error", "coef", "intercept"])
@pytest.mark.parametrize("rows", ["table", "blocks"])
def test_any_other_fit_that_is_not_finite_is_refused(monkeypatch, wrong, rows):
    known = pipeline.Fitted

    def damaged(**fields):
        if wrong == "error":
            fields["held_out_error"] = np.full(2, np.nan)
        elif wrong == "coef":
            own = fields["function"]
            fields["function"] = replace(own, coef=np.full_like(own.coef, np.inf))
        else:
            fields["intercept"] = fields["intercept"] + np.inf
        return known(**fields)

    monkeypatch.setattr(pipeline, "Fitted", damaged)
    model = KernelMachineRegressor(random_state=0)
    given = (X, Y) if rows == "table" else (blocks(X, Y), None)
    with pytest.raises(ValueError, match=r"The fit is not finite: the validation error is .* Scale X, y"):
        model.fit(*given)
    assert not hasattr(model, "feature_coef_")
