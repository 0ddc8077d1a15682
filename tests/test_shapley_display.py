"""The display of Shapley values."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from binfeat import CGRidge, KernelMachineClassifier, KernelMachineRegressor, ShapleyDisplay

VALUES = [[0.5, -2.0, 0.0], [0.1, 1.0, 0.2]]


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_a_swarm_has_a_point_for_each_value():
    display = ShapleyDisplay(VALUES, [3.0, 3.0], data=[[1, 2, 3], [4, np.nan, 6]]).plot(ax=Figure().subplots())
    assert labels(display) == ["x1", "x0", "x2"]
    swarms = display.ax_.collections
    assert [swarm.get_offsets()[:, 0].tolist() for swarm in swarms] == [[-2.0, 1.0], [0.5, 0.1], [0.0, 0.2]]
    for place, swarm in enumerate(swarms):
        assert (np.abs(swarm.get_offsets()[:, 1] - place) < 0.5).all()
    assert swarms[1].get_array().tolist() == [0.5, 1.0]
    assert swarms[0].get_array().tolist() == [1.0, 0.5]  # a missing value is in the middle
    assert labels(ShapleyDisplay(VALUES, [3.0, 3.0]).plot(max_features=1, ax=Figure().subplots())) == ["x1"]


@pytest.mark.parametrize(
    "column", [np.array(["b", None, "a", np.nan], object), np.array(["2001", "NaT", "2000", "NaT"], "M8[D]")]
)
def test_missing_strings_and_dates_are_in_the_middle(column):
    display = ShapleyDisplay(np.zeros((4, 1)), np.zeros(4), data=column[:, np.newaxis]).plot(ax=Figure().subplots())
    assert display.ax_.collections[0].get_array().tolist() == [1.0, 0.5, 0.5, 0.5]


def test_missing_numbers_are_in_the_middle_without_a_look_at_each_number(monkeypatch):
    monkeypatch.setattr("binfeat._common.drawing.is_missing", None)
    display = ShapleyDisplay(np.zeros((3, 1)), np.zeros(3), data=np.array([[2.0], [np.nan], [1.0]]))
    colors = display.plot(ax=Figure().subplots()).ax_.collections[0].get_array()
    assert colors.tolist() == [1.0, 0.5, 0.5]


def test_points_that_are_near_stand_one_above_the_other():
    values = np.zeros((50, 1))
    heights = ShapleyDisplay(values, np.zeros(50)).plot(ax=Figure().subplots()).ax_.collections[0].get_offsets()[:, 1]
    assert len(np.unique(heights)) == 50


def test_a_waterfall_goes_from_the_base_to_the_prediction():
    display = ShapleyDisplay(VALUES, [3.0, 3.0], feature_names=["a", "b", "c"]).plot(
        "waterfall", row=1, max_features=1, ax=Figure().subplots()
    )
    assert labels(display) == ["b", "all others"]
    bars = [(bar.get_x(), bar.get_width()) for bar in display.ax_.patches]
    np.testing.assert_allclose(bars, [(3.0, 1.0), (4.0, 0.3)])
    assert display.ax_.get_xlabel() == "From the average 3\nto the prediction 4.3"
    whole = ShapleyDisplay(VALUES, [3.0, 3.0]).plot("waterfall", ax=Figure().subplots())
    assert labels(whole) == ["x1", "x0", "x2"]


def test_models_and_frames(rng):
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    X["kind"] = rng.choice(["u", "v"], size=120)
    model = KernelMachineRegressor(random_state=0).fit(X, X["a"] + (X["kind"] == "u"))
    display = ShapleyDisplay.from_estimator(model, X, ax=Figure().subplots())
    assert sorted(labels(display)) == ["a", "b", "kind"]
    assert labels(display)[-1] == "b"
    three = KernelMachineClassifier(random_state=0).fit(X, np.digitize(X["a"], [-0.5, 0.5]))
    own = three.shapley_values(X)
    display = ShapleyDisplay.from_estimator(three, X, output=2, kind="waterfall", row=7, ax=Figure().subplots())
    np.testing.assert_allclose(display.values[7], own.values[7, :, 2])
    with pytest.raises(ValueError, match="output must be below 3, got 3"):
        ShapleyDisplay.from_estimator(three, X, output=3)


def test_models_without_rows_need_background_rows(rng):
    X = rng.normal(size=(80, 2))
    given = {"features": "binning", "gamma": "scale", "alpha": 0.1, "solver_params": {"n_grids": 20}, "random_state": 0}
    model = KernelMachineClassifier(**given).fit(X, X[:, 0] > 0)
    display = ShapleyDisplay.from_estimator(model, X[:5], background=X[40:], ax=Figure().subplots())
    np.testing.assert_array_equal(display.values, model.shapley_values(X[:5], X[40:]).values)
    with pytest.raises(ValueError, match="Pass rows as background"):
        ShapleyDisplay.from_estimator(model, X[:5])


def test_bad_values():
    for values, base in ((VALUES, [3.0]), ([1.0, 2.0], [3.0, 3.0]), ([[np.nan]], [1.0])):
        with pytest.raises(ValueError, match="values must be finite"):
            ShapleyDisplay(values, base).plot(ax=Figure().subplots())
    with pytest.raises(ValueError, match="values must have at least one row"):
        ShapleyDisplay(np.empty((0, 3)), []).plot(ax=Figure().subplots())
    with pytest.raises(ValueError, match="feature_names must have one name per input, 3; got 2"):
        ShapleyDisplay(VALUES, [3.0, 3.0], feature_names=["a", "b"]).plot(ax=Figure().subplots())
    for data in (VALUES[:1], [row[:2] for row in VALUES]):
        with pytest.raises(ValueError, match=r"data must have the shape of values, \(2, 3\); got"):
            ShapleyDisplay(VALUES, [3.0, 3.0], data).plot(ax=Figure().subplots())
    with pytest.raises(ValueError, match="row must be below 2, got 2"):
        ShapleyDisplay(VALUES, [3.0, 3.0]).plot("waterfall", row=2)
    with pytest.raises(ValueError, match="kind must be"):
        ShapleyDisplay(VALUES, [3.0, 3.0]).plot("bars")
    with pytest.raises(TypeError):
        ShapleyDisplay.from_estimator(CGRidge(), VALUES)
