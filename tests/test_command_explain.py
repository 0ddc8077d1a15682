"""`binfeat explain` and `binfeat predict`: each value has its own column, for any names of inputs and labels."""

import numpy as np
import pytest

import binfeat
from binfeat.cli.commands import _explained, _predictions

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SETTINGS = {"gamma": "scale", "alpha": 0.1, "random_state": 0}


@pytest.fixture
def table(rng):
    return rng.normal(size=(60, 2))


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["base", "other"], ["base", "base_2", "other"]),
        (["base", "base_2"], ["base", "base_3", "base_2"]),
        (["base_2", "base"], ["base", "base_2", "base_3"]),
    ],
)
def test_inputs_named_as_the_base_value(table, names, columns):
    X = pd.DataFrame(table, columns=names)
    model = binfeat.KernelMachineRegressor(**SETTINGS).fit(X, 100 + table[:, 0])
    found = _explained(model, X, None)
    assert found.column_names == columns
    sums = np.sum([column.to_numpy() for column in found.columns], axis=0)
    np.testing.assert_allclose(sums, model.predict(X), rtol=1e-6)


def test_inputs_and_labels_whose_joined_names_are_equal(table):
    X, y = pd.DataFrame(table, columns=["a", "a_x"]), np.array(["x_y", "y", "z"])[np.arange(60) % 3]
    model = binfeat.KernelMachineClassifier(**SETTINGS).fit(X, y)
    found = _explained(model, X, None)
    assert found.column_names == [
        *("base_x_y", "a_x_y", "a_x_x_y", "base_y", "a_y", "a_x_y_2", "base_z", "a_z", "a_x_z"),
    ]
    values = np.array([column.to_numpy() for column in found.columns]).reshape(3, 3, 60)
    np.testing.assert_allclose(values.sum(axis=1).T, model._scores(X), atol=1e-6)


def test_several_targets(table):
    X = pd.DataFrame(table, columns=["a", "base_0"])
    model = binfeat.KernelMachineRegressor(**SETTINGS).fit(X, np.column_stack([table[:, 0], 5 - table[:, 1]]))
    found = _explained(model, X, None)
    assert len(set(found.column_names)) == 6
    values = np.array([column.to_numpy() for column in found.columns]).reshape(2, 3, 60)
    np.testing.assert_allclose(values.sum(axis=1).T, model.predict(X), atol=1e-6)


def test_several_columns_of_labels(table):
    X = pd.DataFrame(table, columns=["a", "b"])
    y = np.column_stack([np.where(X["a"] > 0, "u", "v"), np.array(["x", "y", "z"])[np.arange(60) % 3]])
    model = binfeat.KernelMachineClassifier(**SETTINGS).fit(X, y)
    predicted = next(_predictions(model, iter([X])))
    labels = ["0_u", "0_v", "1_x", "1_y", "1_z"]
    assert predicted.column_names == ["prediction_0", "prediction_1", *(f"probability_{label}" for label in labels)]
    probabilities = np.column_stack([column.to_numpy() for column in predicted.columns[2:]])
    np.testing.assert_array_equal(probabilities, np.hstack(model.predict_proba(X)))
    found = _explained(model, X, None)
    assert found.column_names == [f"{name}_{label}" for label in labels[1:] for name in ("base", "a", "b")]
    values = np.array([column.to_numpy() for column in found.columns]).reshape(4, 3, 60)
    np.testing.assert_allclose(values.sum(axis=1).T, model._scores(X), atol=1e-6)
