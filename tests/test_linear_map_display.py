"""The display of a linear map's directions."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import binfeat.display
from binfeat import CGRidge, KernelMachineRegressor, LinearMapDisplay

Figure = pytest.importorskip("matplotlib.figure").Figure


@pytest.fixture(scope="module")
def machine():
    """Without a linear map: a Laplacian machine of two numbers and a category."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)).round(1), columns=["a", "b", "kind"])
    options = {"gamma": [0.1, 0.5, 0.2], "categorical_features": ["kind"], "features": "exact", "random_state": 0}
    return KernelMachineRegressor(**options).fit(X, X["a"])


def mapped(machine, linear_map, relevances, features="exact"):
    other = copy.deepcopy(machine)
    other._rotation, other.feature_relevances_, other.features_ = linear_map, np.array(relevances), features
    return other


def inputs(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_directions_are_those_of_the_squares(rng):
    A = rng.normal(size=(5, 3)) * [[1], [9], [3], [2], [0]]
    display = LinearMapDisplay(1e200 * A, ["a", "b", "c", "d", "e"]).plot(Figure().subplots(), max_features=3)
    values, vectors = np.linalg.eigh(A @ A.T / np.sum(A**2))
    np.testing.assert_allclose(display.shares_, values[:1:-1])
    assert display.directions_.shape == (5, 3)
    for direction, value, vector in zip(display.directions_.T, values[::-1], vectors.T[::-1]):
        np.testing.assert_allclose(np.outer(direction, direction), value * np.outer(vector, vector), atol=1e-12)
        assert direction[np.abs(direction).argmax()] > 0
    order = np.argsort(-np.linalg.norm(A, axis=1))[:3]
    assert inputs(display) == [display.feature_names[j] for j in order]
    np.testing.assert_array_equal(display.image_.get_array(), display.directions_[order])
    low, high = display.image_.get_clim()
    assert -low == high == np.abs(display.directions_[order]).max()


def test_labels_and_options():
    display = LinearMapDisplay(np.diag([1.0, 10.0, 5.0])).plot(max_directions=2, cmap="gray")
    assert inputs(display) == ["x1", "x2", "x0"]
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["79 %", "20 %"]
    assert display.image_.get_array().shape == (3, 2)
    assert display.image_.get_cmap().name == "gray"
    small = LinearMapDisplay(np.diag([1.0, 100.0])).plot(Figure().subplots())
    assert [label.get_text() for label in small.ax_.get_xticklabels()] == ["100 %", "<1 %"]


@pytest.mark.parametrize(("features", "spread"), [("exact", [2.0, 3.0]), ("fourier", [4.0, 9.0])])
def test_a_machines_directions(machine, features, spread):
    """Categories are left out; relevances of exact machines are of squares."""
    linear_map, ax = np.array([[0.6, 0.8, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), Figure().subplots()
    display = LinearMapDisplay.from_estimator(mapped(machine, linear_map, [4.0, 9.0, 1.0], features), ax=ax)
    assert display.ax_ is ax
    assert inputs(display) == ["b", "a"]
    np.testing.assert_allclose(display.linear_map, np.array(spread)[:, np.newaxis] * linear_map[:2])
    names = ["x", "y", "z"]
    renamed = LinearMapDisplay.from_estimator(
        mapped(machine, linear_map, [1, 2, 3]), feature_names=names, max_features=1
    )
    assert inputs(renamed) == ["y"]


def test_bad_machines(machine):
    with pytest.raises(ValueError, match=r"machine must have a linear map, and its linear_map_ is None: .* Relevance"):
        LinearMapDisplay.from_estimator(machine)
    with pytest.raises(TypeError, match=r"machine must be a KernelMachineRegressor or .*; got CGRidge"):
        LinearMapDisplay.from_estimator(CGRidge())
    with pytest.raises(NotFittedError):
        LinearMapDisplay.from_estimator(KernelMachineRegressor())


@pytest.mark.parametrize(
    ("linear_map", "options", "error", "message"),
    [
        (
            [1.0, 2.0],
            {},
            ValueError,
            r"linear_map must be a finite map .* shape \(n_inputs, rank\); got shape \(2,",
        ),
        ([[1.0, np.nan]], {}, ValueError, "linear_map must be a finite map that is not zero"),
        (np.zeros((2, 2)), {}, ValueError, "linear_map must be a finite map that is not zero"),
        ("ab", {}, TypeError, "linear_map must be numbers, got 'ab'"),
        ([[1.0]], {"max_features": 0}, ValueError, "max_features must be at least 1, got 0"),
        ([[1.0]], {"max_directions": 0.5}, TypeError, "max_directions must be an integer"),
    ],
)
def test_bad_input(linear_map, options, error, message):
    with pytest.raises(error, match=message):
        LinearMapDisplay(linear_map).plot(**options)
    with pytest.raises(ValueError, match="feature_names must have one name per input; got 1 for shape"):
        LinearMapDisplay(np.eye(2), ["a"]).plot()


def test_the_old_name_warns():
    for home in (binfeat, binfeat.display):
        with pytest.warns(FutureWarning, match="RotationDisplay is now called LinearMapDisplay") as caught:
            assert home.RotationDisplay is LinearMapDisplay
        assert [warning.filename for warning in caught] == [__file__]
        assert "RotationDisplay" not in home.__all__
    with pytest.warns(FutureWarning, match="RotationDisplay") as caught:
        from binfeat import RotationDisplay
    assert RotationDisplay is LinearMapDisplay
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.raises(AttributeError, match=r"module 'binfeat\.display' has no attribute 'Rotations'"):
        binfeat.display.Rotations  # noqa: B018
