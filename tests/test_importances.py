"""Importances of inputs: increases of the leave-one-out error, compared with refits and with new rows."""

import pickle

import naive
import numpy as np
import pytest
from hard import hard
from kernel_models import moments, with_options
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from binfeat.kernels import Laplacian
from binfeat.models.fitted import importance

pd = pytest.importorskip("pandas")

GIVEN = {"kernel": "laplacian", "gamma": 0.5, "alpha": 0.3, "random_state": 0}


def rows_of(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X, weights = rng.uniform(-2, 2, size=(n_rows, 2)), rng.uniform(0.5, 2.0, size=n_rows)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n_rows), weights


def left_out(X, Y, weights, alpha, i, row):
    """Return the prediction of row i by a model of all other rows with the same mean weight."""
    others = np.arange(len(X)) != i
    coef = naive.kernel_ridge(Laplacian()(X[others], gamma=0.5), Y[others], alpha, weights[others])
    return (Laplacian()(row[np.newaxis], X[others], gamma=0.5) + 1.0) @ coef


def changes(n_rows):
    rng = np.random.default_rng(1)
    for changed in ([True, False], [False, True], [True, True]):
        yield np.array(changed), rng.uniform(-2, 2, size=(sum(changed), n_rows))


def own_columns(function, rows):
    return function.support[:, rows].T * function.unit + function.center


def test_an_exact_model_without_each_row():
    X, y, weights = rows_of(50)
    fitted = KernelMachineRegressor(**GIVEN, features="exact").fit(X, y, sample_weight=weights)._fitted
    ((_, _, residuals),) = importance._of_exact(fitted.function)
    mean, std = moments(y, weights)
    function, Y = fitted.function, (y - mean) / std
    rows = own_columns(function, slice(None))
    order = np.abs(rows[:, np.newaxis] - X).sum(axis=2).argmin(axis=1)
    for changed, values in changes(50):
        moved = np.where(changed, 0.0, rows)
        moved[:, changed] = values.T
        columns = ((moved - function.center) / function.unit).T[changed]
        expected = [
            Y[k] - left_out(X[order], Y[order], function.weights, float(function.alpha), i, moved[i])[0]
            for i, k in enumerate(order)
        ]
        np.testing.assert_allclose(residuals(changed, columns)[:, 0], expected, atol=1e-3)


def test_a_local_model_without_each_row():
    X, y, weights = rows_of(120)
    local = KernelMachineRegressor(**with_options(GIVEN, cell_rows=40, n_trees=1), features="local")
    fitted = local.fit(X, y, sample_weight=weights)._fitted
    mean, std = moments(y, weights)
    function, Y = fitted.function, (y - mean) / std
    (_, numbers), validated = function.first_tree(), list(importance._of_local(function))
    cells = function.trees(X)[0]
    assert len(validated) == 4
    for number, (_, _, residuals) in zip(numbers, validated, strict=True):
        cell = function.cell(number)
        rows = own_columns(cell, slice(None))
        order = np.abs(rows[:, np.newaxis] - X).sum(axis=2).argmin(axis=1)
        for changed, values in changes(len(rows)):
            moved = rows.copy()
            moved[:, changed] = values.T
            columns = ((moved - cell.center) / cell.unit).T[changed]
            where, expected = function.trees(moved)[0], []
            for i, k in enumerate(order):
                mine = np.flatnonzero(cells == where[i])
                place = np.flatnonzero(mine == k)
                near = np.abs(X[mine][:, np.newaxis] - own_columns(function.cell(where[i]), slice(None))).sum(axis=2)
                shares = function.cell(where[i]).weights[near.argmin(axis=1)]
                without = place[0] if place.size else -1
                alpha = float(function.cell_alphas[where[i]])
                expected.append(Y[k] - left_out(X[mine], Y[mine], shares, alpha, without, moved[i])[0])
            np.testing.assert_allclose(residuals(changed, columns)[:, 0], expected, atol=2e-3)


@pytest.mark.parametrize("features", ["exact", "local"])
def test_rows_of_small_cells_count_as_others(features, monkeypatch):
    """A flag of 5 % of the rows, in a small cell, had 1.2 times its importance, and up to 1.9 times in other tables."""
    monkeypatch.setattr(importance, "_CELL_ROWS", 300)
    n_rows, rng = 1600, np.random.default_rng(1)
    flag, x = np.where(np.arange(n_rows) < 0.05 * n_rows, 1.0, 0.0), rng.uniform(-1, 1, size=n_rows)
    options = {"solver_params": {"cell_rows": 300, "n_trees": 1}} if features == "local" else {}
    given = {**GIVEN, **options, "kernel": "rbf", "gamma": [10.0, 1.0], "alpha": 0.01}
    model = KernelMachineRegressor(**given, features=features).fit(np.column_stack([flag, x]), 4 * flag + x)
    expected = 4 * np.sqrt(2 * 0.05 * 0.95) / np.std(4 * flag + x)
    np.testing.assert_allclose(model.feature_importances_[0], expected, rtol=0.1)


@pytest.mark.parametrize("features", ["exact", "local", "binning"])
def test_shuffled_values_are_of_rows_with_their_weights(features):
    """A flag of 5 % of the weights, and of half the rows, had more than twice its importance."""
    rng = np.random.default_rng(0)
    flag, x = np.arange(500) % 2, rng.uniform(-1, 1, size=500)
    y, weights = 3 * flag + x + 0.1 * rng.normal(size=500), np.where(flag, 1.0, 19.0)
    options = {"exact": {}, "local": {"cell_rows": 400, "n_trees": 1}, "binning": {"n_grids": 200}}[features]
    model = KernelMachineRegressor(**{**GIVEN, "alpha": 0.01}, features=features, solver_params=options or None)
    found = model.fit(np.column_stack([flag, x]), y, sample_weight=weights).feature_importances_
    np.testing.assert_allclose(found[0], 3 * np.sqrt(2 * 0.05 * 0.95) / moments(y, weights)[1], rtol=0.15)


def table_of(n_rows):
    """Return rows with two nonlinear, one linear and two irrelevant inputs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 5))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 1] + 0.2 * rng.normal(size=n_rows)


@pytest.mark.parametrize(
    ("n_rows", "options"),
    [
        (600, {"features": "exact"}),
        *hard(
            (1200, {"features": "exact"}),
            (5000, {"features": "binning", "solver_params": {"n_grids": 200}}),
            (1200, {"features": "local", "solver_params": {"cell_rows": 150}}),
            (5000, {"features": "fourier"}),
        ),
    ],
    ids=["exact", "more rows", "binning", "local", "fourier"],
)
def test_importances_are_rises_on_new_rows(n_rows, options, monkeypatch):
    """RMS importances are within a tenth of the largest; a few hundred rows and two shuffles allow no more."""
    monkeypatch.setattr(importance, "_CELL_ROWS", 300)  # use several cells for an exact model
    monkeypatch.setattr(importance, "_SHUFFLES", 6)
    X, y = table_of(n_rows + 1000)
    model = KernelMachineRegressor(**options, random_state=0).fit(X[:-1000], y[:-1000])
    found = pickle.loads(pickle.dumps(model)).feature_importances_
    options = {"scoring": "neg_mean_squared_error", "n_repeats": 3, "random_state": 0}
    rises = permutation_importance(model, X[-1000:], y[-1000:], **options).importances_mean / y.var()
    np.testing.assert_allclose(found, np.sqrt(np.maximum(rises, 0.0)), atol=0.1 * np.sqrt(rises.max()))
    np.testing.assert_array_equal(model.feature_importances_, found)


@pytest.mark.hard
def test_selection_keeps_what_is_of_use():
    """An input with a long length scale was missed that has a third of the importance."""
    X, y = table_of(900)
    model = KernelMachineRegressor(random_state=0)
    kept = SelectFromModel(model).fit(X[:600], y[:600]).get_support()
    assert kept.tolist() == [True, True, True, False, False]
    masks = [True] * 5, kept
    whole, part = (model.fit(X[:600, some], y[:600]).score(X[600:, some], y[600:]) for some in masks)
    assert part > whole - 0.01


def test_one_for_each_input_of_the_table(rng):
    n_rows = 200
    frame = pd.DataFrame(
        {
            "group": pd.Categorical(rng.choice(["a", "b", "c"], size=n_rows)),
            "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(3000, size=n_rows), unit="h"),
            "x": rng.normal(size=n_rows),
            "same": 1.0,
        }
    )
    labels = (frame["group"] == "a") | (frame["x"] > 1)
    frame.loc[::9, "x"] = np.nan
    model = KernelMachineClassifier(random_state=0).fit(frame, labels)
    assert model.gamma_.size > 4
    found = model.feature_importances_
    assert found.shape == (4,)
    assert found[0] == found.max()
    assert found[3] == 0


@pytest.mark.parametrize("features", ["exact", "local"])
@pytest.mark.parametrize("loss", ["log", "squared_hinge"])
def test_losses_of_labels(loss, features):
    X, y = table_of(400)
    options = {"solver_params": {"cell_rows": 100, "n_trees": 2}} if features == "local" else {}
    given = {**GIVEN, **options, "features": features, "gamma": [1.0, 0.5, 0.5, 0.1, 0.1]}
    model = KernelMachineClassifier(**given, loss=loss).fit(X, y > 0)
    found = model.feature_importances_
    assert found[:3].min() > 2 * found[3:].max()
    np.testing.assert_allclose(model.compact().feature_importances_, found, rtol=1e-3, atol=1e-3)


@pytest.mark.hard
def test_labels_of_several_columns(monkeypatch):
    """The mean includes the squared errors of all targets."""
    monkeypatch.setattr(importance, "_SHUFFLES", 30)
    X, y = table_of(400)
    labels = np.column_stack([np.digitize(y, [-0.5, 0.5]), 2 + (X[:, 3] > 0)])
    given = {**GIVEN, "features": "exact"}
    both = KernelMachineClassifier(**given).fit(X, labels).feature_importances_
    each = [KernelMachineClassifier(**given).fit(X, own).feature_importances_ for own in labels.T]
    np.testing.assert_allclose(both**2, (each[0] ** 2 * 3 + each[1] ** 2) / 4, atol=0.015)


def test_files_without_importances_have_relevances():
    X, y = table_of(300)
    model = KernelMachineRegressor(features="binning", solver_params={"n_grids": 20}, random_state=0).fit(X, y)
    state = model.__getstate__()
    state.pop("_rises")
    older = KernelMachineRegressor()
    older.__setstate__(state)
    np.testing.assert_array_equal(older.feature_importances_, model.feature_relevances_)
    state["_rises"] = {"of_inputs": np.zeros(4)}
    with pytest.raises(ValueError, match="damaged"):
        KernelMachineRegressor().__setstate__(state)


def test_wide_tables_of_random_features_take_no_time_for_them(monkeypatch, few_steps):
    """`fit` shuffled each of 10,000 inputs, for a minute with `max_seconds=5`."""
    X, y = table_of(300)
    shuffled = []
    monkeypatch.setattr(importance, "_rises", lambda *args: shuffled.append(args))
    for n_terms in (importance._TERMS, 20 * 25 * 30 - 1):
        monkeypatch.setattr(importance, "_TERMS", n_terms)
        model = KernelMachineRegressor(features="binning", solver_params={"n_grids": 20}, random_state=0).fit(X, y)
        assert model.feature_importances_.shape == (5,)
    assert len(shuffled) == 1
