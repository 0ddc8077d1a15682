"""Warm starts of kernel models: what is kept, what is searched again, and errors."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hard import hard
from interrupts import interrupted
from kernel_models import assert_same_state, with_options
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks, kernels
from binfeat.models.solvers import exact, growth

WARM = {"warm_start": True, "random_state": 0}
FIXED = {"features": "binning", "kernel": "laplacian", "gamma": 0.5, "alpha": 0.1, "solver_params": {"n_grids": 20}}


def first_line(model):
    return re.split(r"\s{2,}", model.summary().splitlines()[1])


@pytest.mark.parametrize("features", ["exact", "binning", *hard("fourier")])
def test_more_rows(few_steps, table, features):
    X, y, labels = table
    for model, own in ((KernelMachineRegressor, y), (KernelMachineClassifier, labels)):
        warm = model(features=features, **with_options(WARM, max_grids=40)).fit(X[:150], own[:150])
        before, score = clone(warm), warm.score(X[300:], own[300:])
        vars(before).update(vars(warm))
        warm.fit(X[:300], own[:300])
        np.testing.assert_allclose(warm.gamma_, before.gamma_, rtol=1e-12)
        np.testing.assert_array_equal(warm.length_scale_gammas_, before.length_scale_gammas_)
        for name in ("kernel_", "scaling_", "features_"):
            assert getattr(warm, name) == getattr(before, name)
        assert warm.n_grids_ >= before.n_grids_
        assert warm.score(X[300:], own[300:]) > score - 0.03
        assert first_line(warm)[:2] == ["warm start", "scaling, length scales and kernel"]
        assert "length scales" not in warm.decisions_["what"]


def test_the_same_as_a_fit_of_all_rows_with_the_same_settings(table):
    X, _, labels = table
    warm = KernelMachineClassifier(**FIXED, **WARM).fit(X[:200], labels[:200]).fit(X, labels)
    cold = KernelMachineClassifier(**FIXED, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(warm.decision_function(X), cold.decision_function(X))


def test_rows_farther_outside_than_before(table):
    X, _, labels = table
    X = X.copy()
    X[200:, 0] += 100.0
    warm = KernelMachineClassifier(**FIXED, **WARM).fit(X[:200], labels[:200]).fit(X, labels)
    cold = KernelMachineClassifier(**FIXED, random_state=0, on_unseen="error").fit(X, labels)
    np.testing.assert_array_equal(warm.decision_function(X), cold.decision_function(X))
    assert not warm.check(X)


def test_more_grids(few_grids, table):
    X, y, _ = table
    model = KernelMachineRegressor(features="binning", gamma="scale", **with_options(WARM, max_grids=20)).fit(X, y)
    before = model.held_out_error_[0]
    model.set_params(solver_params={"max_grids": 80}).fit(X, y)
    assert model.learning_curve_[0, 0] == 20
    assert model.n_grids_ > 20
    assert model.held_out_error_[0] < 1.02 * before


def test_a_sum_of_kernels_and_its_penalty_go_on(few_steps, rng):
    X = rng.normal(size=(400, 2))
    y = np.sin(3 * X[:, 0]) + (X[:, 1] > 0)
    model = KernelMachineRegressor(**WARM, features="exact", gamma=[3.0, 0.3]).fit(X, y)
    kernel, alpha, expected = model.kernel_, model.alpha_, model.predict(X)
    assert "+" in kernel
    model.fit(X, y)
    assert (model.kernel_, model.alpha_) == (kernel, pytest.approx(alpha))
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-3)


def test_noise_in_as_few_rows_raises_the_penalty(few_steps, rng):
    X = rng.normal(size=(200, 2))
    y = np.sin(2 * X[:, 0])
    model = KernelMachineRegressor(**WARM, features="exact", target_transform=None).fit(X, y)
    alpha = model.alpha_
    assert model.fit(X, y + rng.normal(size=200)).alpha_ > 100 * alpha


def test_linear_kernels_of_older_files_are_searched_anew(few_steps, table):
    X, y, _ = table
    model = KernelMachineRegressor(features="exact", kernel="laplacian", **WARM).fit(X[:100], y[:100])
    model._exact = model._exact | {"nus": np.array([-1.0])}
    model.fit(X[:100], y[:100])
    assert first_line(model)[1].startswith("none: linear kernels")


@pytest.mark.parametrize(("name", "value"), [("gamma", np.arange(1, 5) / 10), *hard(("kernel", "hat"))])
def test_other_parameters_are_searched_anew(table, name, value):
    (X, y, _), change = table, {name: value}
    model = KernelMachineRegressor(**FIXED, **WARM).fit(X, y).set_params(**change).fit(X, y)
    assert first_line(model)[:2] == ["warm start", f"none: {name} changed"]
    cold = KernelMachineRegressor(**{**FIXED, **change}, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), cold.predict(X))


def test_rows_that_take_another_kind_of_model(table, limits):
    X, y, _ = table
    few = {"n_steps": 3, "sample_grids": (5, 20), "n_fourier": 64}
    limits(**few, exact_rows=250)
    model = KernelMachineRegressor(**with_options(WARM, max_grids=20)).fit(X[:200], y[:200])
    assert model.fit(X, y).features_ != "exact"
    assert first_line(model)[:2] == ["warm start", "none: too many rows for an exact model"]
    model.fit(X[:200], y[:200])
    assert first_line(model)[1] == "none: the rows are few enough for an exact model"
    model.set_params(features="fourier").fit(X, y)
    limits(**few, fourier_bytes=1000)
    assert first_line(model.fit(X, y))[1] == "none: too many rows for Fourier features"


@pytest.mark.parametrize("transform", ["auto", StandardScaler()])
def test_targets_in_other_units(table, transform):
    X, y, _ = table
    model = KernelMachineRegressor(**FIXED, **WARM, target_transform=transform).fit(X, y)
    expected, error = model.predict(X), model.held_out_error_
    model.fit(X, 1000 * y + 5e5)
    assert first_line(model)[1] == "scaling, length scales and kernel"
    np.testing.assert_allclose((model.predict(X) - 5e5) / 1000, expected, rtol=1e-5)
    np.testing.assert_allclose(model.held_out_error_, error, rtol=1e-5)


@pytest.mark.parametrize("kind", ["log", "arcsinh"])
def test_a_chosen_transformation_in_other_units(few_steps, monkeypatch, rng, kind):
    monkeypatch.setattr("binfeat.models.pipeline.transforms_to_try", lambda Y: [kind])
    X = rng.normal(size=(200, 2))
    y = np.exp(2 * X[:, 0])
    model = KernelMachineRegressor(**WARM).fit(X, y)
    assert model.target_transform_ == kind
    expected = model.predict(X)
    assert model.fit(X, 1000 * y).target_transform_ == kind
    np.testing.assert_allclose(model.predict(X) / 1000, expected, rtol=0.05)


@pytest.mark.parametrize("transform", [None, *hard("log")])
def test_predictions_have_the_shape_of_the_new_targets(few_steps, monkeypatch, table, transform):
    monkeypatch.setattr("binfeat.models.pipeline.transforms_to_try", lambda Y: ["log"])
    X, y, _ = table
    y = np.exp(y)
    model = KernelMachineRegressor(**FIXED, **WARM, target_transform=transform and "auto").fit(X, y)
    expected = model.predict(X)
    for own in (y[:, np.newaxis], y):
        found = model.fit(X, own).predict(X)
        assert found.shape == own.shape
        np.testing.assert_allclose(found.ravel(), expected, rtol=1e-4)


def test_columns_classes_and_targets_are_refused(table):
    X, y, labels = table
    model = KernelMachineRegressor(**FIXED, **WARM).fit(X, y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="X has 3 features, but KernelMachineRegressor is expecting 4"):
        model.fit(X[:, :3], y)
    with pytest.raises(ValueError, match="warm_start=True requires the columns of the earlier fit, columns 4"):
        model.fit(blocks(X[:, :3], y))
    with pytest.raises(ValueError, match="warm_start=True requires the number of targets of the earlier fit, 1; got 2"):
        model.fit(X, np.stack([y, y], axis=1))
    np.testing.assert_array_equal(model.predict(X), expected)
    model = KernelMachineClassifier(**FIXED, **WARM).fit(X, labels)
    for other in (np.digitize(y, [0, 1]), np.stack([y > 0, y > 1], axis=1)):
        with pytest.raises(ValueError, match=r"requires the classes of the earlier fit, \['no', 'yes'\]; got"):
            model.fit(X, other)
    with pytest.raises(TypeError, match="warm_start must be True or False"):
        KernelMachineRegressor(warm_start=1).fit(X, y)


def test_frames_files_and_transforms(few_steps, table):
    X, y, _ = table
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))
    frame["e"] = np.where(X[:, 1] > 0, "u", "v")
    frame.loc[::7, "c"] = np.nan
    skewed = np.exp(2 * y)
    model = KernelMachineRegressor(**WARM).fit(frame[:200], skewed[:200])
    assert model.target_transform_ == "log"
    gamma, model = model.gamma_, pickle.loads(pickle.dumps(model))
    frame = frame.replace({"e": {"v": "w"}})  # a new category
    model.fit(frame, skewed)
    np.testing.assert_allclose(model.gamma_, gamma, rtol=1e-12)  # converted to units of the rows and back
    assert model.target_transform_ == "log"
    assert model.predict(frame).min() > 0
    own = KernelMachineRegressor(target_transform=FunctionTransformer(np.log, np.exp), **WARM, **FIXED)
    own.fit(X[:200], skewed[:200]).fit(X, skewed)
    assert own.target_transform_ == "FunctionTransformer"
    assert not hasattr(own.set_params(target_transform=None).fit(X, y), "target_transformer_")


def test_enormous_numbers_are_an_error_as_in_a_first_fit(few_steps, table):
    X, y, _ = table
    warm = KernelMachineRegressor(**WARM, features="exact").fit(X, y)
    X = X.copy()
    X[0, 0] = 1e200
    with pytest.raises(ValueError, match=r"X must be at most 1e\+?100 in magnitude, got 1e\+200"):
        warm.fit(X, y)


def test_categories_are_those_of_the_new_rows(table):
    X, _, labels = table
    levels = np.char.add("s", np.digitize(X[:, 1], np.linspace(-1, 1, 6)).astype(str))
    frame = pd.DataFrame({"level": levels, "x": X[:, 0]})
    few = frame["level"].isin(["s1", "s3", "s5"])
    frame.loc[~few & (X[:, 2] > 1), "level"] = None
    warm = KernelMachineClassifier(**FIXED, **WARM, on_unseen="error").fit(frame[few], labels[few]).fit(frame, labels)
    assert first_line(warm)[1] == "scaling, length scales and kernel"
    cold = KernelMachineClassifier(**FIXED, random_state=0).fit(frame, labels)
    np.testing.assert_array_equal(warm.decision_function(frame), cold.decision_function(frame))
    findings = warm.fit(frame[few], labels[few]).check(frame)
    assert [finding.found for finding in findings] == ["missing values", "unseen categories"]


@pytest.mark.parametrize("features", ["exact", *hard("local", "binning")])
def test_missing_values_for_the_first_time_are_searched_anew(few_steps, table, features):
    X, y, _ = table
    gaps = np.where(np.arange(len(X))[:, np.newaxis] % 2 == [0, 2, 2, 2], np.nan, X)
    model = KernelMachineRegressor(features=features, **WARM).fit(X, y).fit(gaps, np.isnan(gaps[:, 0]))
    assert first_line(model)[1] == "none: other columns have missing values"
    assert model.score(gaps, np.isnan(gaps[:, 0])) > 0.9
    assert not model.check(gaps)
    assert first_line(pickle.loads(pickle.dumps(model)).fit(X, y))[1] == "scaling, length scales and kernel"


def test_a_column_of_names_that_becomes_categories_is_searched_anew(few_steps, table):
    X, y, _ = table
    names = pd.DataFrame({"level": [f"s{row}" for row in range(len(X))], "x": X[:, 0]})
    levels = names.assign(level=np.where(X[:, 1] > 0, "u", "v"))
    with pytest.warns(UserWarning, match="too many to generalize"):
        model = KernelMachineRegressor(features="exact", **WARM).fit(names, y)
    assert first_line(model.fit(levels, X[:, 1] > 0))[1] == "none: a column is not constant for the first time"
    assert model.score(levels, X[:, 1] > 0) > 0.9
    with pytest.warns(UserWarning, match="too many to generalize"):
        model.fit(names, y)
    assert first_line(model)[1] == "scaling, length scales and kernel"


def test_blocks(few_steps, table):
    X, y, _ = table
    model = KernelMachineRegressor(features="binning", **with_options(WARM, max_grids=20)).fit(X[:200], y[:200])
    gamma = model.gamma_
    model.fit(blocks(X, y, block_rows=150))
    np.testing.assert_array_equal(model.gamma_, gamma)
    assert first_line(model)[0] == "warm start"


def test_ctrl_c_leaves_the_earlier_model(table):
    X, y, _ = table
    model = KernelMachineRegressor(**FIXED, **WARM).fit(X, y)
    before = clone(model)
    vars(before).update(vars(model))
    with interrupted(growth.Growth, "grow"), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert_same_state(model, before)


@pytest.mark.parametrize("lowest", [0.0, *hard(-2.0)])
def test_targets_that_the_transformation_does_not_support(rng, lowest):
    X = rng.normal(size=(200, 2))
    y = np.exp(2 * X[:, 0])
    model = KernelMachineRegressor(**WARM).fit(X, y)
    assert model.target_transform_ == "log"
    with pytest.raises(ValueError, match=f"transformation of y of the earlier fit, log; got y with minimum {lowest:g}"):
        model.fit(X, np.append(y[:-1], lowest))
    assert model.fit(X, 2 * y).target_transform_ == "log"


def test_columns_that_were_constant(rng):
    """Their gammas are 0, so a search starts."""
    X = rng.normal(size=(200, 2))
    constant = np.column_stack([X[:, 0], np.full(200, 3.0)])
    model = KernelMachineRegressor(warm_start=True, random_state=0).fit(constant, X[:, 0])
    y = X[:, 0] + 3 * X[:, 1]
    assert model.fit(X, y).score(X, y) > 0.95
    assert "none: a column is not constant for the first time" in model.summary()


@pytest.mark.parametrize(
    ("features", "kernel", "is_constant"),
    [("local", "rbf", True), ("fourier", kernels.Matern(2.5), False), *hard(("local", kernels.Matern(2.5), True))],
)
@pytest.mark.filterwarnings("ignore:All rows of X are equal")
def test_given_kernels_are_kept(few_steps, table, features, kernel, is_constant):
    X, y, _ = table
    X = np.ones((400, 1)) if is_constant else X
    model = KernelMachineRegressor(features=features, kernel=kernel, **WARM)
    before = model.fit(X, y).kernel_
    assert model.fit(X, y).kernel_ == before
    assert "warm start" in model.summary()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_earlier_scores_are_no_squared_errors(table, monkeypatch):
    """They are not used for the tolerance of a solution for more rows than the hyperparameters are learned from."""
    monkeypatch.setattr(exact, "TUNING_ROWS", 200)
    X, y, _ = table
    given = {"features": "exact", "kernel": "laplacian", "gamma": 0.5, "alpha": 0.1}
    model = KernelMachineRegressor(**given, **WARM, scoring="r2").fit(X, y)
    before = model.predict(X)
    np.testing.assert_allclose(model.fit(X, y).predict(X), before, atol=1e-3)
