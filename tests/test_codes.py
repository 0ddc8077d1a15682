"""Numbers that are ids of people, districts or plans: found by the targets, and added as categories."""

import pickle
import warnings

import naive
import numpy as np
import pandas as pd
import pytest
from hard import hard
from sklearn.base import BaseEstimator

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks
from binfeat.models.table import derived, encoder, inputs

EXACT = {"features": "exact", "random_state": 0}


def people(rng):
    """Return ids of people with seven rows each and individual levels, and an uninformative number."""
    level, person = rng.normal(size=60), np.repeat(np.arange(60), 7)
    X = np.column_stack([rng.normal(size=person.size), 10.0 * person, rng.normal(size=person.size)])
    order = rng.permutation(len(X))
    y = level[person] + np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=len(X))
    return X[order], y[order]


@pytest.fixture
def panel(rng):
    return people(rng)


def found(values, y):
    """Return True if values are found to be codes."""
    matrix, Y = np.asarray(values, dtype=float)[:, np.newaxis], np.asarray(y, dtype=float).reshape(len(y), -1)
    return derived.columns_of_codes(matrix, np.arange(len(matrix)), np.array([True]), Y) != []


@pytest.mark.parametrize("n_targets", [1, 3])
def test_beside_the_naive_sums(rng, n_targets):
    """Codes and ordered numbers, with enough noise that both results occur."""
    said = set()
    for seed in range(60):
        own = np.random.default_rng(seed)
        values = own.integers(20, size=200).astype(float)
        level = own.normal(size=(20, n_targets)) if seed % 2 else np.linspace(-1, 1, 20)[:, np.newaxis]
        scores = level[values.astype(int)] + own.uniform(0.2, 5) * own.normal(size=(200, n_targets))
        scores -= scores.mean(axis=0)
        expected = naive.are_codes(values, scores, derived._SURE, derived._SHARE)
        assert derived._are_codes(np.unique(values, return_inverse=True)[1], scores) == expected
        said.add(expected)
    assert said == {True, False}


def test_what_has_an_order_is_no_code(rng):
    """Uninformative values, rarely repeated values, and few levels are not codes either."""
    values = rng.integers(40, size=2000)
    noise = rng.normal(size=2000)
    assert found(values, rng.normal(size=40)[values] + noise)
    assert found(values, np.eye(3)[rng.integers(3, size=40)[values]])
    assert not found(values, 0.2 * values + noise)
    assert not found(values, np.sin(values / 6) + 0.1 * noise)
    assert not found(values % 7, rng.normal(size=7)[values % 7] + noise)
    assert not found(np.arange(2000), noise)
    assert not found(rng.normal(size=2000), noise)
    assert sum(found(np.random.default_rng(seed).integers(40, size=500), noise[:500]) for seed in range(200)) <= 4


def test_amounts_with_many_zeros_are_no_codes(rng):
    """Rows without an amount are similar; means of the other amounts differ as much as rows do."""
    amounts = np.where(rng.random(600) < 0.6, 0.0, rng.lognormal(1.0, 1.0, size=600))
    assert not found(amounts, (amounts > 0) * rng.normal(size=600))


def test_targets_that_are_constant_or_known(rng):
    values = rng.integers(40, size=800)
    assert not found(values, np.ones(800))
    assert found(values, rng.normal(size=40)[values])


def test_measures_that_come_again_together_are_no_codes(rng):
    """Settings of an experiment, or properties of a material, have an order that other columns hide."""
    settings, place = rng.uniform(size=(60, 4)), np.repeat(np.arange(60), 5)
    y = (np.sin(3 * settings[:, 0]) + 2 * settings[:, 1] * settings[:, 2] + settings[:, 3])[place, np.newaxis]
    X, noise = settings[place], 0.05 * rng.normal(size=(300, 1))
    assert derived._are_codes(np.unique(X[:, 1], return_inverse=True)[1], y - y.mean())
    assert derived.columns_of_codes(X, np.arange(len(X)), np.ones(4, bool), y + noise) == []
    named = np.column_stack([X, rng.permutation(60)[place], rng.permutation(60)[place]])
    assert derived.columns_of_codes(named, np.arange(len(named)), np.ones(6, bool), y + noise) == [4]
    alone = np.column_stack([rng.uniform(size=60)[place], rng.normal(size=300)])
    assert derived.columns_of_codes(alone, np.arange(len(alone)), np.ones(2, bool), y + noise) == [0]


def test_many_numbers_are_not_looked_at(rng):
    values = rng.integers(40, size=(500, derived._MOST_COLUMNS + 1)).astype(float)
    y = rng.normal(size=40)[values[:, :1].astype(int)]
    for n_columns, expected in ((2, [0]), (values.shape[1], [])):
        own = values[:, :n_columns]
        assert derived.columns_of_codes(own, np.arange(len(own)), np.ones(n_columns, bool), y) == expected


def test_codes_come_last_and_unknown_numbers_have_the_next_one():
    X = np.array([[3.0, 1.0, 0.5], [1.0, np.nan, 0.5], [3.0, 2.0, 1.5]])
    owner = BaseEstimator()
    plain, matrix = encoder.TableEncoder.fit(owner, X, None)
    coded, matrix = plain.with_codes(matrix, [0, 1])
    expected = [[3, 1, 0.5, 0, 1, 0], [1, 1.5, 0.5, 1, 0, 2], [3, 2, 1.5, 0, 1, 1]]
    np.testing.assert_array_equal(matrix, expected)
    np.testing.assert_array_equal(coded.transform(owner, X), expected)
    np.testing.assert_array_equal(coded.categorical, [False] * 4 + [True] * 2)
    np.testing.assert_array_equal(coded.source, [0, 1, 2, 1, 0, 1])
    assert coded.coded.tolist() == [0, 1]
    np.testing.assert_array_equal(coded.transform(owner, [[2.0, 9.0, 0.5], [np.nan] * 3])[:, 4:], [[3, 3], [2, 2]])
    np.testing.assert_array_equal(coded.with_value(matrix, 0, 1.0)[:, 4], [0, 0, 0])


@pytest.mark.parametrize("features", ["auto", *hard("exact", "local")])
def test_people_have_levels_of_their_own(few_steps, limits, panel, rng, features):
    X, y = panel
    draws = [panel, people(rng), people(rng)]
    given = {"features": features, "random_state": 0}
    model = KernelMachineRegressor(**given).fit(X[:300], y[:300])
    assert model._fitted.encoder.coded.tolist() == [1]
    assert model.gamma_.size == 4
    assert model.feature_importances_.argmax() == 1
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.predict(X[:1]), model.predict(X)[:1])
    limits(n_steps=15)
    left = sum(1 - KernelMachineRegressor(**given).fit(X[:300], y[:300]).score(X[300:], y[300:]) for X, y in draws)
    limits(n_steps=15, without=["codes"])
    plain = [KernelMachineRegressor(**given).fit(X[:300], y[:300]) for X, y in draws]
    assert {own.gamma_.size for own in plain} == {3}
    assert left < 0.9 * sum(1 - own.score(X[300:], y[300:]) for own, (X, y) in zip(plain, draws))


@pytest.mark.hard
def test_labels_frames_and_other_ways_to_fit(few_steps, panel):
    X, y = panel
    frame, labels = pd.DataFrame(X, columns=["x", "person", "z"]), np.where(y > 0, "high", "low")
    model = KernelMachineClassifier(random_state=0).fit(frame, labels)
    assert model._fitted.encoder.coded.tolist() == [1]
    assert model.summary().splitlines()[1].split()[:2] == ["codes", "person"]
    names = frame.assign(person=frame["person"].map("no. {}".format))
    strings = KernelMachineClassifier(random_state=0).fit(names, labels)
    assert strings._fitted.encoder.coded.size == 0
    for other in ({"gamma": "scale"}, {"features": "binning", "solver_params": {"max_grids": 10}}):
        assert KernelMachineRegressor(**other, random_state=0).fit(X, y)._fitted.encoder.coded.size == 0
    of_groups = KernelMachineRegressor(random_state=0).fit(X, y, groups=X[:, 1])
    assert of_groups._fitted.encoder.coded.size == 0


def test_rows_that_come_later_and_blocks(few_steps, panel):
    X, y = panel
    warm = KernelMachineRegressor(**EXACT, warm_start=True).fit(X[:300], y[:300])
    score = warm.score(X[300:], y[300:])
    warm.fit(X, y)
    np.testing.assert_array_equal(warm._fitted.encoder.inputs.categories[1][0], np.unique(X[:, 1]))
    assert warm.score(X[300:], y[300:]) > score
    source = blocks(X, y, block_rows=100)
    model = KernelMachineRegressor(features="local", solver_params={"cell_rows": 200}, random_state=0).fit(source)
    assert model._fitted.encoder.coded.tolist() == [1]
    assert model.score(X, y) > 0.8


def test_a_warm_start_where_all_people_are_missing(few_steps, panel):
    X, y = panel
    X[::7, 1] = np.nan
    warm = KernelMachineRegressor(**EXACT, warm_start=True).fit(X, y)
    assert warm._fitted.encoder.coded.tolist() == [1]
    unknown = X.copy()
    unknown[:, 1] = np.nan
    predictions = warm.fit(unknown, y).predict(unknown)
    loaded = pickle.loads(pickle.dumps(warm))
    assert loaded._fitted.encoder.coded.tolist() == [1]
    np.testing.assert_array_equal(loaded.predict(unknown), predictions)


@pytest.mark.parametrize("damage", ["again", "categories"])
def test_a_damaged_file_with_codes_of_other_columns(few_steps, panel, damage):
    X, y = panel
    state = KernelMachineRegressor(**EXACT).fit(X, y).__getstate__()
    columns = state["_columns"]
    if damage == "again":
        columns |= {name: np.append(columns[name], columns[name][-1]) for name in ("source", "categorical")}
    else:
        columns["categorical"][1] = True
    with pytest.raises(ValueError, match="source should name numeric columns for codes, in order"):
        KernelMachineRegressor().__setstate__(state)


def test_rows_of_numbers_need_no_look_at_each_column(few_steps, panel, monkeypatch):
    """That would take longer than a prediction of one row."""
    X, y = panel
    model = KernelMachineRegressor(**EXACT).fit(X, y)
    expected = model.predict(X)
    monkeypatch.setattr(inputs, "read_table", None)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_people_who_are_missing_or_new(few_steps, panel):
    """They have no level; `check` lists new people, and predictions do not warn of them."""
    X, y = panel
    model = KernelMachineRegressor(**EXACT).fit(X, y)
    rows = np.array([[0.0, np.nan, 0.0], [0.0, np.median(X[:, 1]), 0.0], [0.0, 15.0, 0.0], [0.0, 0.0, 0.0]])
    codes_of = model._fitted.encoder.transform(model, rows)[:, -1]
    np.testing.assert_array_equal(codes_of, [60, codes_of[1], 61, 0])
    assert model.check(np.array([[0.0, 1234567.0, 0.0]]))[0].examples == ("1234567",)
    (found,) = model.check(rows[1:])
    assert (found.column, found.found, found.n_rows) == ("Column 1", "unseen codes", 1 + (codes_of[1] == 61))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(rows[1:])
    with pytest.warns(UserWarning, match="missing values"):
        model.predict(rows[[0, 0, 1]])


def test_many_rows_of_which_some_tell(rng, monkeypatch):
    """Codes with few rows each keep all rows in some ranges of values."""
    monkeypatch.setattr(derived, "_ROWS", 2000)
    person = rng.permutation(np.repeat(np.arange(4000), 5))
    smooth = np.round(rng.normal(size=20_000), 3)
    y = rng.normal(size=4000)[person] + np.sin(smooth) + 0.3 * rng.normal(size=20_000)
    X = np.column_stack([rng.normal(size=20_000), person, smooth])
    assert derived.columns_of_codes(X, np.arange(len(X)), np.ones(3, bool), y[:, np.newaxis]) == [1]


@pytest.mark.hard
def test_a_code_and_its_number_are_one_input(few_steps, panel):
    X, y = panel
    model = KernelMachineRegressor(**EXACT).fit(X, y)
    values = model.shapley_values(X[:5])
    assert values.values.shape == (5, 3)
    np.testing.assert_allclose(values.values.sum(axis=1) + values.base_values, model.predict(X[:5]), rtol=1e-6)
    assert np.abs(values.values[:, 1]).mean() > np.abs(values.values[:, 2]).mean()
