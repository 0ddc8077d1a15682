"""Ridge models that receive their rows in parts: the same as one fit, for all kinds of features."""

import pickle

import numpy as np
import pytest
from hard import each_value_once
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone

from binfeat import CGRidge, CGRidgeClassifier, RandomBinning, RandomFourier, blocks

EXACT = {"alpha": 0.1, "tol": 1e-10, "max_iter": 5000}
PARTS = [slice(0, 50), slice(50, 51), slice(51, 300)]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, y, np.digitize(y, [-0.5, 0.5]), rng.uniform(0, 2, size=300)


def codes(X, n_features=None):
    return RandomBinning(gamma=0.5, n_grids=20, n_features=n_features, output="codes", random_state=0).fit(X).encode(X)


FEATURES = {
    "codes": codes,
    "hashed": lambda X: codes(X, 400),
    "csr": lambda X: codes(X, 400).tocsr(),
    "csr_array": lambda X: sparse.csr_array(codes(X).tocsr()),
    "rows": lambda X: RandomFourier(n_components=400, random_state=0).fit_transform(X),
    "sums": lambda X: RandomFourier(n_components=40, random_state=0).fit_transform(X),
}


def in_parts(model, Z, y, weights=None, **first):
    for part in PARTS:
        model.partial_fit(Z[part], y[part], sample_weight=None if weights is None else weights[part], **first)
        first = {}
    return model


@pytest.mark.parametrize(("kind", "weighted"), each_value_once(FEATURES, [False, True]))
def test_parts_are_one_fit(table, kind, weighted):
    X, y, labels, weights = table
    Z, weights = FEATURES[kind](X), weights if weighted else None
    targets = np.stack([y, y**2], axis=1)
    models = [(CGRidge(**EXACT), y, {}), (CGRidge(**{**EXACT, "alpha": [0.1, 1.0]}), targets, {})]
    models += [(CGRidgeClassifier(**EXACT, class_weight={0: 2.0}), labels, {"classes": [0, 1, 2]})]
    for model, own, first in models:
        parts, whole = in_parts(clone(model), Z, own, weights, **first), model.fit(Z, own, weights)
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-6)
        np.testing.assert_allclose(parts.intercept_, whole.intercept_, atol=1e-6)
        assert parts.coef_.shape == whole.coef_.shape
        assert ("matrix" in parts._kept) == (kind == "sums")


def test_hinge_and_indicators(table):
    X, y, labels, _ = table
    Z = FEATURES["sums"](X)
    hinge = CGRidgeClassifier(**EXACT, loss="squared_hinge")
    parts, whole = in_parts(clone(hinge), Z, labels, classes=[0, 1, 2]), hinge.fit(Z, labels)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-4)
    sets = np.stack([y > 0, X[:, 0] > 1], axis=1)
    parts, whole = in_parts(CGRidgeClassifier(**EXACT), Z, sets), CGRidgeClassifier(**EXACT).fit(Z, sets)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)


def test_a_class_that_comes_late(table):
    X, _, labels, _ = table
    Z, order = codes(X), np.argsort(labels, kind="stable")
    model = CGRidgeClassifier(**EXACT)
    for part in np.array_split(order, 3):
        model.partial_fit(Z[part], np.array(["a", "b", "c"])[labels[part]], classes=["c", "b", "a"])
    whole = CGRidgeClassifier(**EXACT).fit(Z, labels)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-6)
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("kind", FEATURES)
def test_parts_are_one_fit_however_early_the_solver_stops(table, kind):
    """A solve from the last coefficients would differ by 0.16 standard deviations with the default tol."""
    X, y, labels, _ = table
    Z = FEATURES[kind](X)
    for model, own, first in ((CGRidge(1e-3), y, {}), (CGRidgeClassifier(1e-3), labels, {"classes": [0, 1, 2]})):
        parts, whole = in_parts(clone(model), Z, own, **first), model.fit(Z, own)
        np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6 * abs(whole.coef_).max())
        assert parts.n_iter_ == whole.n_iter_


@pytest.mark.parametrize("kind", ["codes", "csr", "rows", "sums"])
def test_files_go_on_and_the_callers_rows_stay_free(table, kind):
    X, y, _, _ = table
    Z = FEATURES[kind](X)
    whole = CGRidge(**EXACT).fit(Z, y)
    first, own_y = Z[:100].copy() if kind == "rows" else Z[:100], y[:100].copy()
    model = CGRidge(**EXACT).partial_fit(first, own_y)
    own_y[:] = 0
    if kind == "rows":
        first[:] = 0
    model = pickle.loads(pickle.dumps(model)).partial_fit(Z[100:], y[100:])
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-6)
    assert all(isinstance(value, np.ndarray) for value in model._kept.values())
    assert not hasattr(model.fit(Z, y), "_kept")


@pytest.mark.parametrize("kind", ["codes", "csr", "rows", "sums"])
def test_damaged_rows_are_refused(table, kind):
    X, y, _, _ = table
    model = CGRidge(**EXACT).partial_fit(FEATURES[kind](X), y)
    for name, array in model._kept.items():
        if array.ndim:
            state = model.__getstate__()
            state["_kept"] = {**model._kept, name: array[:-1]}
            with pytest.raises(ValueError, match="damaged"):
                pickle.loads(pickle.dumps(model)).__setstate__(state)
    if kind in ("codes", "csr"):  # invalid indices are found before use
        name = {"codes": "codes", "csr": "indices"}[kind]
        model._kept = {**model._kept, name: np.full_like(model._kept[name], 60_000)}
        with pytest.raises(ValueError, match=r"codes of grid|indices must be <"):
            model.partial_fit(FEATURES[kind](X), y)


def test_bad_parts(table):
    X, y, _, _ = table
    Z, dense = codes(X), FEATURES["sums"](X)
    model = CGRidge().partial_fit(Z, y)
    before = model.coef_
    for wrong, error, message in [
        (Z.tocsr(), ValueError, "X must be codes, as in the earlier calls of partial_fit"),
        (codes(X, 400), ValueError, "X has 400 features, but CGRidge is expecting"),
        (aslinearoperator(dense), TypeError, "requires an array, a sparse matrix or a BinMatrix in memory; got"),
        (blocks(dense, y), TypeError, "requires an array, a sparse matrix"),
    ]:
        with pytest.raises(error, match=message):
            model.partial_fit(wrong, y)
    with pytest.raises(ValueError, match="y must have the same number of targets in all calls"):
        model.partial_fit(Z, np.stack([y, y], axis=1))
    np.testing.assert_array_equal(model.coef_, before)
    assert len(model._kept["Y"]) == 300
    for options in ({"alphas": [1.0]}, {"early_stopping": True}):
        with pytest.raises(AttributeError, match=f"{next(iter(options))} needs a validation set"):
            CGRidge(**options).partial_fit(Z, y)
    assert hasattr(CGRidge(early_stopping=np.False_), "partial_fit")
    sums = CGRidge().partial_fit(dense, y)
    with pytest.raises(ValueError, match="fit_intercept must be True"):
        sums.set_params(fit_intercept=False).partial_fit(dense, y)
    with pytest.raises(ValueError, match="X must be an array"):
        CGRidge().partial_fit(dense, y).partial_fit(sparse.csr_matrix(dense), y)
    other = RandomBinning(gamma=0.5, n_grids=20, n_features=400, output="codes").fit(X).encode(X)
    other.offsets = other.offsets + (np.arange(21) % 20 > 9)
    with pytest.raises(ValueError, match="X must have the same bins as in earlier calls"):
        CGRidge().partial_fit(codes(X, 400), y).partial_fit(other, y)


def test_bad_classes(table):
    X, _, labels, _ = table
    Z = FEATURES["sums"](X)
    for y, first, message in [
        (labels, {}, "classes must be passed on the first call"),
        (labels, {"classes": [0, 1]}, "y contains labels that are not in classes: \\[2\\]"),
        (labels, {"classes": [0]}, "at least two classes"),
    ]:
        with pytest.raises(ValueError, match=message):
            CGRidgeClassifier().partial_fit(Z, y, **first)
    model = CGRidgeClassifier().partial_fit(Z, labels, classes=[0, 1, 2])
    for y, classes in [(labels, [0, 1, 2, 3]), (np.stack([labels > 0, labels > 1], axis=1), None)]:
        with pytest.raises(ValueError, match="classes must be the same as in the first call"):
            model.partial_fit(Z, y, classes=classes)
    with pytest.raises(ValueError, match="class_weight must be a dict or None in partial_fit"):
        CGRidgeClassifier(class_weight="balanced").partial_fit(Z, labels, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="loss must be 'squared_error', as in earlier calls"):
        model.set_params(loss="squared_hinge").partial_fit(Z, labels)


@pytest.mark.parametrize("model", [CGRidge(**EXACT), CGRidgeClassifier(**EXACT)])
def test_after_fit_it_begins_anew(table, model):
    X, _, labels, _ = table
    Z, expected = codes(X), clone(model).fit(codes(X)[:100], labels[:100]).coef_
    with pytest.warns(UserWarning, match="fit stores no rows, so partial_fit starts again"):
        model.fit(Z, labels).partial_fit(Z[:100], labels[:100])
    np.testing.assert_allclose(model.coef_, expected, atol=1e-6)


@pytest.mark.parametrize("n_rows", [3, 50])
def test_rows_in_float64_after_rows_in_float32(rng, n_rows):
    """Few rows are kept as rows, and more than columns as sums."""
    X, y = rng.normal(size=(100, 4)), rng.normal(size=100)
    model = CGRidge().partial_fit(X[:n_rows].astype(np.float32), y[:n_rows])
    assert model.coef_.dtype == np.float32
    assert model.partial_fit(X[n_rows:], y[n_rows:]).coef_.dtype == np.float64


def test_sums_are_solved_exactly_where_fit_stops_early(rng):
    Z = rng.normal(size=(800, 700)) * np.linspace(1, 0.01, 700)
    y = Z[:, 0] + rng.normal(size=800)
    early, exact = CGRidge(tol=0.1).fit(Z, y), CGRidge(tol=1e-12).fit(Z, y)
    parts = CGRidge(tol=0.1).partial_fit(Z[:400], y[:400]).partial_fit(Z[400:], y[400:])
    np.testing.assert_allclose(parts.predict(Z), exact.predict(Z), atol=1e-8)
    assert abs(early.predict(Z) - exact.predict(Z)).max() > 0.1


@pytest.mark.parametrize("kind", FEATURES)
def test_parameters_can_change_between_calls_unless_only_sums_are_stored(table, kind):
    X, _, labels, _ = table
    Z, y = FEATURES[kind](X), labels > 0
    model = CGRidgeClassifier(**EXACT).partial_fit(Z[:100], y[:100], classes=[False, True])
    for change in ({"alpha": 1.0}, {"fit_intercept": False}, {"loss": "squared_hinge"}):
        again = clone(model).set_params(**change)
        vars(again).update({k: v for k, v in vars(model).items() if k.endswith("_") or k == "_kept"})
        if kind == "sums" and "alpha" not in change:
            with pytest.raises(ValueError, match="as in earlier calls of partial_fit, because only their sums"):
                again.partial_fit(Z[100:], y[100:])
        else:
            whole = clone(again).fit(Z, y)
            np.testing.assert_allclose(again.partial_fit(Z[100:], y[100:]).coef_, whole.coef_, atol=1e-4)
