"""Copies of rows equal one row with a weight, and the reverse."""

import numpy as np
import pandas as pd
import pytest
from hard import each_value_once, easy
from scipy import sparse
from sklearn.metrics import roc_auc_score

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks
from binfeat.models.table.unique_rows import TableRows, row_hashes, unique_rows

OPTIONS = {
    "exact": {},
    "binning": {"features": "binning", "solver_params": {"max_grids": 20}},
    "local": {"features": "local", "solver_params": {"cell_rows": 60, "n_trees": 1}},
    "huber": {"loss": "huber"},
    "poisson": {"loss": "poisson"},
    "cv": {},
}


@pytest.fixture
def table(rng):
    X = rng.uniform(-1, 1, size=(150, 3))
    return X, np.round(9 * (1.3 + np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=150)).clip(0))


def given_rows(X, y, weights=None):
    return TableRows(X, y, y.astype(float).reshape(len(y), -1), weights)


@pytest.mark.parametrize("name", easy(OPTIONS, "exact", "binning", "cv"))
def test_a_weight_is_as_many_copies(table, rng, few_steps, name):
    X, y = table
    weights = rng.integers(0, 5, size=150)
    order = rng.permutation(weights.sum())
    places = np.repeat(np.arange(150), weights)[order]
    options = {**OPTIONS[name], "random_state": 0}
    cv, cv_of_copies = ([(part != k, part == k) for k in range(3)] for part in (np.arange(150) % 3, places % 3))
    weighted = KernelMachineRegressor(**{**options, "cv": cv} if name == "cv" else options)
    repeated = KernelMachineRegressor(**{**options, "cv": cv_of_copies} if name == "cv" else options)
    weighted.fit(X, y, sample_weight=weights)
    repeated.fit(X[places], y[places])
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    np.testing.assert_array_equal(weighted.held_out_error_, repeated.held_out_error_)
    words = f"of {places.size}, without duplicates and weights of 0"
    assert words in repeated.summary()
    assert words not in weighted.summary()


FORMS = {"array": np.array, "pandas": pd.DataFrame, "list": np.ndarray.tolist, "csr": sparse.csr_array}


@pytest.mark.parametrize(("form", "has_cv"), each_value_once(FORMS, [False, True]))
def test_rows_without_weight_are_ignored(rng, few_steps, form, has_cv):
    """Also their values: for the medians that replace missing values, ranges of inputs, and ranks."""
    X = rng.normal(size=(150, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    X[::7, 1] = np.nan
    weights = np.append(rng.uniform(0.5, 2, size=100), np.zeros(50))
    other, target, make = X.copy(), y.copy(), FORMS[form]
    other[100:, 1:], target[100:] = 100 + rng.normal(size=(50, 2)), 1e3
    cv = [(np.arange(80), np.arange(80, 100))] if has_cv else None
    few = KernelMachineRegressor(cv=cv, random_state=0).fit(make(X[:100]), y[:100], sample_weight=weights[:100])
    cv = [(np.r_[:80, 100:120], np.r_[80:100, 120:150])] if has_cv else None
    model = KernelMachineRegressor(cv=cv, random_state=0).fit(make(other), target, sample_weight=weights)
    np.testing.assert_array_equal(model.predict(X), few.predict(X))
    assert str(model.check(make(X + 50))) == str(few.check(make(X + 50)))


def test_a_class_that_is_drawn_again_and_again(rng):
    X = rng.uniform(-1, 1, size=(2600, 5))
    labels = X[:, 0] + np.sin(3 * X[:, 1]) + 0.4 * rng.normal(size=2600) > 1.7
    train, test = np.arange(600), np.arange(600, 2600)
    rare = np.flatnonzero(labels[train])
    again = np.concatenate([train, rng.choice(rare, size=600 - 2 * rare.size)])
    model = KernelMachineClassifier(random_state=0).fit(X[again], labels[again])
    assert roc_auc_score(labels[test], model.predict_proba(X[test])[:, 1]) > 0.85  # 0.75 without weights
    assert model.predict(X[test])[labels[test]].mean() > 0.6  # none without weights


@pytest.mark.parametrize("name", ["exact", "binning"])
def test_rows_without_weight_are_not_there(table, few_steps, name):
    X, y = table
    options, some = {**OPTIONS[name], "random_state": 0}, np.arange(150) % 3 > 0
    weighted = KernelMachineRegressor(**options).fit(X, y, sample_weight=some)
    alone = KernelMachineRegressor(**options).fit(X[some], y[some])
    np.testing.assert_array_equal(weighted.predict(X), alone.predict(X))
    hidden = KernelMachineRegressor(**options).fit(X, np.where(some, y, 1e6), sample_weight=some)
    np.testing.assert_array_equal(hidden.predict(X), alone.predict(X))
    with pytest.raises(ValueError, match=r"sample_weight must be above 0 for at least 2 rows.*got 1"):
        KernelMachineRegressor(**options).fit(X, y, sample_weight=np.arange(150) == 7)


def test_a_class_without_weight_stays_a_class(table, few_steps):
    X, _ = table
    labels = np.arange(150) % 3
    model = KernelMachineClassifier(random_state=0).fit(X, labels, sample_weight=labels < 2)
    assert model.classes_.tolist() == [0, 1, 2]
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p[:, 2].max() < 0.1


def test_rows_in_any_order_have_one_order_if_they_have_weights(table, rng):
    X, y = table
    weights, order = rng.uniform(1, 2, size=(150, 1)), rng.permutation(150)
    cells = np.zeros(150)
    one, rows = unique_rows(given_rows(X, y, weights), cells)
    other, _ = unique_rows(given_rows(X[order], y[order], weights[order]), cells)
    for name in ("table", "y", "weights"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.table, X[rows])


def test_copies_are_told_from_rows_that_are_equal_by_chance(rng):
    X, cells = rng.uniform(size=(300, 2)), np.zeros(600)
    numbers, labels = rng.normal(size=300), rng.integers(2, size=300)
    for y in (numbers, labels):
        twice = given_rows(np.vstack([X, X]), np.append(y, y))
        assert len(unique_rows(twice, cells)[0]) == 300
        assert len(unique_rows(twice, np.arange(600))[0]) == 600  # copies in different groups are not merged
        again = given_rows(np.vstack([X, X]), np.append(y, y[::-1]))  # repeated measurements
        assert len(unique_rows(again, cells)[0]) == 600
    coarse = np.round(9 * X)
    by_chance = given_rows(np.vstack([coarse, coarse]), np.append(labels, labels))
    assert len(unique_rows(by_chance, cells)[0]) == 600
    some = given_rows(np.vstack([X, X[:90]]), np.append(numbers, numbers[:90]))
    assert len(unique_rows(some, cells[:390])[0]) == 390


def test_zeros_of_both_signs_are_equal(rng):
    X, y = rng.normal(size=(60, 2)) * [1, 0], rng.integers(-1, 2, size=60).astype(float)
    twice = given_rows(np.vstack([X, -0.0 - X * [-1, 1]]), np.append(y, np.where(y == 0, -0.0, y)))
    assert len(unique_rows(twice)[0]) == 60


def product_table(kind, rng):
    """Return inputs that occur many times each, a target that depends on them without noise, and their numbers."""
    product = rng.integers(120 if kind == "many" else 2000 if kind == "few" else 5, size=1200)
    columns = {"name": np.char.add("p", product.astype(str)), "kind": product % 7}
    if kind in ("doses", "numbers"):
        columns = {"dose": product if kind == "numbers" else np.array([0.1, 0.35, 1.25, 2.5, 7])[product]}
    return pd.DataFrame(columns), rng.permutation(2000)[product] % 29.0, product


@pytest.mark.parametrize("kind", easy(["many", "few", "doses", "numbers"], "numbers"))
def test_a_list_of_products_has_known_validation_rows(kind, rng):
    """New rows are products of the training rows, so validation rows should be known products, too."""
    X, y, product = product_table(kind, rng)
    train, test = np.arange(800), 800 + np.flatnonzero(np.isin(product[800:], product[:800]))
    model = KernelMachineRegressor(random_state=0, on_unseen="ignore").fit(X.iloc[train], y[train])
    assert model.score(X.iloc[test], y[test]) > 0.99
    labels = y > 14
    classifier = KernelMachineClassifier(random_state=0, on_unseen="ignore").fit(X.iloc[train], labels[train])
    assert classifier.score(X.iloc[test], labels[test]) > 0.95


@pytest.mark.parametrize("copies", [2, 3, 10])
@pytest.mark.parametrize("kind", ["floats", "integers"])
def test_a_table_that_is_repeated_is_one_table(kind, copies, rng):
    X = rng.normal(size=(300, 3))
    X = np.round(100 * X) if kind == "integers" else X
    whole = given_rows(np.tile(X, (copies, 1)), np.tile(X[:, 0], copies))
    assert len(unique_rows(whole)[0]) == 300
    kept = np.sort(rng.permutation(300 * copies)[: 150 * copies])
    some = given_rows(np.tile(X, (copies, 1))[kept], np.tile(X[:, 0], copies)[kept])
    assert len(unique_rows(some)[0]) == np.unique(kept % 300).size


def test_share_of_copies_counts_equal_rows(rng):
    table, y = rng.integers(3, size=(9000, 4)).astype(float), rng.integers(2, size=9000)
    different = len(np.unique(np.column_stack([table, y]), axis=0))
    assert given_rows(table, y).share_of_copies == 1 - different / 9000
    for scale in (1e-9, 1.0, 1e9):  # numbers with few bits
        column = scale * np.arange(5000.0)[:, np.newaxis]
        assert given_rows(column, np.zeros(5000)).share_of_copies == 0
        assert np.unique(row_hashes(column, column[:, :0])).size == 5000


def test_targets_of_rows_with_hardly_any_weight_say_nothing(table, sampled_rows):
    X, y = table
    sampled_rows(120)
    some = np.arange(150) % 3 > 0
    model = KernelMachineRegressor(random_state=0).fit(X, np.where(some, y, -9999.0), np.where(some, 1.0, 1e-9))
    assert model.score(X[some], y[some]) > 0.7
    source = blocks(X, np.where(some, y, -9999.0), np.where(some, 1.0, 1e-9), block_rows=60)
    assert KernelMachineRegressor(random_state=0).fit(source).score(X[some], y[some]) > 0.7
