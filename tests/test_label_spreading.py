"""Label spreading: a dense solve, shapes, new rows, scikit-learn's conventions, errors."""

import naive
import numpy as np
import pandas as pd
import pytest
from callbacks import Callback
from graphs import assert_simple_attributes
from scipy import sparse
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading as Peer
from sklearn.svm import SVC

from binfeat import LabelSpreading, RandomBinning, RandomFourier, blocks
from binfeat.graph import neighbors, scale

MAP = RandomBinning(n_grids=20, gamma=1.0, output="codes", random_state=0)
X = np.random.default_rng(0).normal(size=(60, 2))
Y = np.where(X[:, 0] > 0, 1, 0)
FEW = np.where(np.arange(60) < 12, Y, -1)


def one_hot(labels):
    return np.stack([labels == 0, labels == 1], axis=1).astype(float)


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 0.99])
def test_scores_are_those_of_a_dense_solve(alpha, clamp, rows_met_in_a_bin):
    rows_met_in_a_bin(60)
    rows = X[neighbors.alike_together(MAP.fit_transform(X))]  # the first of equally similar rows are used
    labels = np.where(rows[:, 0] > 0, 1, 0)
    few = np.where(np.arange(60) < 12, labels, -1)
    W = naive.similarities(naive.codes(rows, "laplacian", np.full(2, 1.0), 20, 0)[0])
    W = naive.nearest_by_distance(W, rows, np.ones(2), [False, False])
    expected = naive.label_spreading(W, one_hot(few), alpha, np.flatnonzero(few >= 0) if clamp else ())
    expected /= expected.sum(axis=1, keepdims=True)
    spread = LabelSpreading(alpha, clamp=clamp, features=MAP, gamma=1.0, tol=1e-10).fit(rows, few)
    np.testing.assert_allclose(spread.label_distributions_, expected, atol=1e-7)
    np.testing.assert_array_equal(spread.transduction_, expected.argmax(axis=1))
    if clamp:
        np.testing.assert_array_equal(spread.transduction_[:12], labels[:12])


def test_features_that_are_no_bins_keep_all_similarities():
    spread = LabelSpreading(0.9, features=RandomFourier(n_components=64, random_state=0), gamma=0.1, tol=1e-10)
    spread.fit(X, FEW)
    Z = spread.features_.transform(X)
    expected = naive.label_spreading(Z @ Z.T, one_hot(FEW), 0.9).clip(min=0)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(spread.label_distributions_, expected, atol=1e-7)


def test_new_rows_take_the_mean_of_the_most_similar_ones(rows_met_in_a_bin):
    rows_met_in_a_bin(60)
    spread = LabelSpreading(features=MAP, gamma=1.0).fit(X, FEW)
    new = np.random.default_rng(1).normal(size=(10, 2))
    codes = naive.codes(np.concatenate([X, new]), "laplacian", np.full(2, 1.0), 20, 0)[0]
    similarities = naive.similarities_of_new_rows([of_grid[:60] for of_grid in codes], [row[60:] for row in codes])
    expected = naive.means_of_largest(similarities, spread.label_distributions_, 16)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(spread.predict_proba(new), expected, atol=1e-12)
    np.testing.assert_array_equal(spread.predict(new), spread.classes_[expected.argmax(axis=1)])
    far = spread.predict_proba([[1e9, 1e9]])
    np.testing.assert_allclose(far[0], spread.label_distributions_.mean(axis=0))


def test_digits_of_new_rows_are_right_as_often(rng):
    rows, digit = load_digits(return_X_y=True)
    few = np.where(rng.random(len(digit)) < 0.1, digit, -1)
    spread = LabelSpreading(random_state=0).fit(rows[:1200], few[:1200])
    assert spread.score(rows[:1200], digit[:1200]) > (spread.transduction_ == digit[:1200]).mean() - 0.01
    assert spread.score(rows[1200:], digit[1200:]) > 0.85


@pytest.mark.parametrize("make", [make_moons, make_circles])
def test_two_labels_are_enough_for_two_shapes(make):
    options = {"factor": 0.5} if make is make_circles else {}
    rows, shape = make(1000, noise=0.04, random_state=0, **options)
    few = np.full(1000, -1)
    for label in (0, 1):
        few[np.flatnonzero(shape == label)[:3]] = label
    spread = LabelSpreading(0.99, random_state=0).fit(rows, few)
    assert (spread.transduction_ == shape).mean() > 0.95
    assert (spread.predict(rows) == shape).mean() > 0.95


def test_digits_beside_the_peer(rng):
    rows, digit = load_digits(return_X_y=True)
    labeled = np.concatenate([rng.permutation(np.flatnonzero(digit == k))[:10] for k in range(10)])
    few = np.full(len(digit), -1)
    few[labeled] = digit[labeled]
    models = LabelSpreading(random_state=0), Peer(kernel="knn", n_neighbors=7, max_iter=200), SVC()
    ours, theirs = ((own.fit(rows, few).transduction_ == digit)[few < 0].mean() for own in models[:2])
    alone = models[2].fit(rows[labeled], digit[labeled]).score(rows[few < 0], digit[few < 0])
    assert ours > max(theirs - 0.02, alone + 0.02)


def test_labels_of_any_kind():
    numbers = LabelSpreading(gamma=1.0, random_state=0).fit(X, FEW)
    words = np.array(["no", "yes"], dtype=object)[Y]
    words[12:] = -1
    spread = LabelSpreading(gamma=1.0, random_state=0).fit(X, words)
    np.testing.assert_array_equal(spread.classes_, ["no", "yes"])
    np.testing.assert_array_equal(spread.transduction_, np.array(["no", "yes"])[numbers.transduction_])
    whole = LabelSpreading(gamma=1.0, random_state=0).fit(X, np.array(["no", "yes"])[Y])
    assert whole.score(X, np.array(["no", "yes"])[Y]) > 0.8


def test_sparse_and_missing():
    spread = LabelSpreading(random_state=0).fit(X, FEW)
    same = LabelSpreading(random_state=0).fit(sparse.csr_array(X), FEW)
    np.testing.assert_array_equal(same.label_distributions_, spread.label_distributions_)
    holes = X.copy()
    holes[::7, 0] = np.nan
    assert np.isfinite(LabelSpreading(random_state=0).fit(holes, FEW).predict_proba(holes)).all()


def test_rows_that_no_label_reaches():
    apart = np.concatenate([X, X + 1e6])
    few = np.concatenate([FEW, np.full(60, -1)])
    spread = LabelSpreading(gamma=1.0, random_state=0).fit(apart, few)
    assert (spread.label_distributions_[60:] == 0).all()
    shares = spread.predict_proba(apart)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares[60:], np.broadcast_to(shares[60], (60, 2)))


def test_rows_that_are_all_alike_are_reached():
    alike = np.zeros((300, 2))
    few = np.where(np.arange(300) < 10, np.arange(300) % 5 // 2, -1)
    spread = LabelSpreading(features=MAP, gamma=1.0, tol=1e-6).fit(alike, few)
    shares = spread.label_distributions_
    assert (shares > 0).all()
    np.testing.assert_allclose(shares[few < 0], np.broadcast_to(shares[-1], (290, 3)), rtol=0.2)


def test_same_for_any_number_of_threads(threads):
    found = []
    for n in (1, 2):
        threads(n)
        found.append(LabelSpreading(random_state=0).fit(X, FEW).label_distributions_)
    np.testing.assert_array_equal(*found)


def test_unfinished_solve_is_said_and_callbacks_stop():
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 iterations .* above tol=1e-12. Increase max_iter"):
        assert LabelSpreading(0.99, tol=1e-12, max_iter=2, random_state=0).fit(X, FEW).n_iter_ == 2
    callback = Callback("iteration", stop_at=3)
    spread = LabelSpreading(0.99, tol=1e-12, random_state=0)
    spread.set_callbacks(callback)
    assert spread.fit(X, FEW).n_iter_ == 3
    assert callback.ended


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"alpha": 1.0}, ValueError, "alpha must be between 0 and 1, got 1.0"),
        ({"alpha": "a"}, TypeError, "alpha must be a number"),
        ({"clamp": 1}, TypeError, "clamp must be True or False, got 1"),
        ({"tol": -1}, ValueError, "tol must be finite and at least 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1, got 0"),
        ({"features": "binning"}, TypeError, r"features must be a map, such as RandomBinning\(\), or None"),
        ({"gamma": -1.0}, ValueError, "gamma must be finite and non-negative"),
    ],
)
def test_bad_parameters(parameters, error, message):
    spread = LabelSpreading(random_state=0).fit(X, FEW)
    expected = spread.predict(X)
    with pytest.raises(error, match=message):
        spread.set_params(**parameters).fit(X, FEW)
    np.testing.assert_array_equal(spread.predict(X), expected)


def test_bad_labels_and_rows():
    spread = LabelSpreading()
    with pytest.raises(ValueError, match="y must have labels of at least two classes, but all rows are unlabeled"):
        spread.fit(X, np.full(60, -1))
    with pytest.raises(ValueError, match="y must have at least two classes, got one class: 0"):
        spread.fit(X, np.where(FEW == 1, -1, FEW))
    with pytest.raises(ValueError, match="requires y to be passed"):
        spread.fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        spread.fit(X, FEW[:-1])
    with pytest.raises(ValueError, match="Input X contains infinity"):
        spread.fit(np.where(X > 2, np.inf, X), FEW)
    with pytest.raises(TypeError, match="X must be a table in memory, got a source of blocks"):
        spread.fit(blocks(X, Y), FEW)
    with pytest.raises(ValueError, match="X has 3 features, but LabelSpreading is expecting 2"):
        spread.fit(X, FEW).predict(np.ones((2, 3)))


def test_attributes_hold_arrays_numbers_and_a_map():
    assert_simple_attributes(LabelSpreading(random_state=0).fit(X, FEW), X, "predict_proba")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("begins", 1, "begins should increase from 0"),
        ("rows", 1, "rows should be from 0 to 59"),
        ("weights", -1.0, "weights should be from 0.0"),
    ],
)
def test_lists_that_do_not_fit_are_refused(name, change, message):
    state = LabelSpreading(features=MAP, gamma=1.0).fit(X, FEW).__getstate__()
    state["_means"] = state["_means"] | {name: state["_means"][name] + type(state["_means"][name][0])(change)}
    with pytest.raises(ValueError, match=f"damaged: ValueError: {message}"):
        LabelSpreading().__setstate__(state)


@pytest.mark.parametrize(
    "container", [np.array, lambda words: np.array(words, dtype=object), pd.Series, pd.Categorical]
)
def test_minus_one_among_strings_is_refused(rng, container):
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="y contains the string '-1'"):
        LabelSpreading().fit(X, container(["left", "right", *["-1"] * 18]))


def test_labels_reach_rows_that_are_rounded_and_rows_that_are_far(rng):
    X, labels = make_moons(4000, noise=0.05, random_state=0)
    y = np.full(4000, -1)
    for k in (0, 1):
        y[np.flatnonzero(labels == k)[:3]] = k
    for rows in (X, np.round(X, 2)):  # with a residual of 1e-3, a third of the rows had no label
        spread = LabelSpreading(random_state=0).fit(rows, y)
        assert (spread.transduction_ == labels).mean() > 0.98
        assert (spread.label_distributions_.sum(axis=1) == 0).mean() < 0.01


def test_rows_that_no_label_reaches_have_the_label_that_predict_gives(rng):
    X = np.vstack([rng.normal(size=(60, 2)), 1e6 + rng.normal(size=(20, 2))])
    y = np.full(80, -1)
    y[:50] = np.where(np.arange(50) < 10, 0, 1)
    spread = LabelSpreading(random_state=0, gamma=0.3).fit(X, y)
    apart = spread.label_distributions_.sum(axis=1) == 0
    assert apart[60:].all()
    assert (spread.transduction_[apart] == spread.predict(X[apart])).all()


@pytest.mark.parametrize("clamp", [False, True])
def test_copies_of_a_row_are_one_row_with_the_shares_of_their_labels(rng, clamp):
    places = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 40, size=60)))
    order = np.unique(places, return_index=True)[1]
    distinct = X[places[np.sort(order)]]
    rows_of_distinct = np.argsort(places[np.sort(order)])[places]
    labels = np.where(rng.random(places.size) < 0.05, rng.integers(0, 2, size=places.size), -1)
    spread = LabelSpreading(clamp=clamp, random_state=0).fit(X[places], labels)
    known = labels >= 0
    shares = np.zeros((60, 2))
    np.add.at(shares, (rows_of_distinct[known], labels[known]), 1.0)
    labeled = shares.any(axis=1)
    shares[labeled] /= shares[labeled].sum(axis=1, keepdims=True)
    assert ((shares > 0).sum(axis=1) == 2).any()  # copies with different labels
    made, _, graph = spread._graph(distinct, distinct, "scale")
    np.testing.assert_array_equal(spread.gamma_, made.gamma_)
    W = np.column_stack([graph._product(unit[:, None])[:, 0] for unit in np.eye(60)])
    expected = naive.label_spreading(W, shares, 0.98, np.flatnonzero(labeled) if clamp else ())
    expected /= expected.sum(axis=1, keepdims=True)
    free = ~known if clamp else slice(None)
    np.testing.assert_allclose(spread.label_distributions_[free], expected[rows_of_distinct][free], atol=1e-6)
    np.testing.assert_array_equal(spread.predict(X[places]), spread.predict(X)[places])


def test_clamped_copies_keep_their_own_labels(rng):
    places = np.r_[:60, :10]
    labels = np.where(np.arange(70) < 10, Y[places], np.where(np.arange(70) < 60, -1, 1 - Y[places]))
    spread = LabelSpreading(clamp=True, random_state=0).fit(X[places], labels)
    known = labels >= 0
    np.testing.assert_array_equal(spread.transduction_[known], labels[known])
    np.testing.assert_array_equal(spread.label_distributions_[known], one_hot(labels)[known])


@pytest.mark.hard
def test_rows_of_signs_are_different_rows():
    rows = np.random.default_rng(0).choice([-1.0, 1.0], size=(200_000, 40))
    assert scale.distinct_rows(rows)[0].size == len(np.unique(np.packbits(rows > 0, axis=1), axis=0))


def test_many_copies_do_not_separate_rows():
    rows, shape = make_moons(4000, noise=0.05, random_state=0)
    few = np.full(4000, -1)
    for label in (0, 1):
        few[np.flatnonzero(shape == label)[:3]] = label
    spread = LabelSpreading(random_state=0).fit(np.round(rows, 1), few)  # about 18 copies of each row
    assert (spread.transduction_ == shape).mean() > 0.99
