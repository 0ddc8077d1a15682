"""Kernel machines: what they learn, from which tables, on which rows, at which size, and what is refused."""

import pickle
import re

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from binfeat import (
    KernelMachineClassifier,
    KernelMachineRegressor,
    _budget,
    _growth,
    _sizing,
    _training,
    kernels,
    relevance,
)
from binfeat._held_out import probabilities
from binfeat._solver import pcg

pd = pytest.importorskip("pandas")

# Nothing left to choose: a fit takes milliseconds.
FIXED = {"features": "binning", "gamma": 0.5, "alpha": 0.1, "n_grids": 20, "random_state": 0}
# Grids are added.
GROWING = {"gamma": "scale", "features": "binning", "max_grids": 160, "random_state": 0}
# Widths are learned, from bins alone.
BINS = {"features": "binning", "random_state": 0}


@pytest.fixture(autouse=True)
def few_grids(monkeypatch):
    monkeypatch.setattr(_training, "_SAMPLE_GRIDS", (5, 40))
    monkeypatch.setattr(_training, "_N_WAVES", 128)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)
    return X, y, np.where(y > 0.3, "yes", "no")


@pytest.fixture(scope="module")
def three():
    """Three classes that overlap."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=900)
    X = rng.normal(size=(900, 2)) + np.array([[0, 0], [1.5, 0], [0, 1.5]])[labels]
    return X, np.array(["red", "green", "blue"])[labels]


TARGETS = {
    "smooth": lambda X: np.sin(2 * X[:, 0]) * np.cos(X[:, 1]),
    "piecewise": lambda X: np.where(X[:, 0] > 0, 1.0, -1.0) * (X[:, 1] > -0.5),
    "additive": lambda X: np.abs(X[:, 0]) + X[:, 1] ** 2 + np.sin(3 * X[:, 2]),
    "interacting": lambda X: X[:, 0] * X[:, 1] + X[:, 2],
}


@pytest.mark.parametrize("target", TARGETS)
def test_learns_what_a_linear_model_cannot(target, rng):
    X = rng.uniform(-2, 2, size=(900, 4))
    y = TARGETS[target](X) + 0.05 * rng.normal(size=900)
    machine = KernelMachineRegressor(**BINS).fit(X[:600], y[:600])
    score = machine.score(X[600:], y[600:])
    assert score > 0.85
    assert 1 - score < (1 - Ridge().fit(X[:600], y[:600]).score(X[600:], y[600:])) / 2


def test_classes_that_no_line_parts(rng):
    X = rng.normal(size=(800, 3))
    labels = np.where(X[:, 0] * X[:, 1] > 0, 5, -2)
    machine = KernelMachineClassifier(**BINS).fit(X[:500], labels[:500])
    assert machine.score(X[500:], labels[500:]) > 0.85
    assert LogisticRegression().fit(X[:500], labels[:500]).score(X[500:], labels[500:]) < 0.6
    X, y = load_wine(return_X_y=True)
    assert KernelMachineClassifier(random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


@pytest.mark.parametrize("features", ["binning", "fourier", "hybrid", "auto"])
def test_features_of_each_kind(table, features):
    X, y, labels = table
    machine = KernelMachineRegressor(features=features, random_state=0).fit(X[:300], y[:300])
    assert machine.features_ == features or features == "auto"
    assert machine.score(X[300:], y[300:]) > 0.9
    assert (machine.n_grids_ == 0) == (machine.features_ == "fourier")
    machine = KernelMachineClassifier(features=features, random_state=0).fit(X[:300], labels[:300])
    assert machine.score(X[300:], labels[300:]) > 0.85


def test_a_given_kernel_gamma_and_scaling(table):
    X, y, _ = table
    for kernel, shown in (("laplacian", "Laplacian()"), (kernels.GammaPitch(4), "GammaPitch(shape=4)")):
        machine = KernelMachineRegressor(**{**FIXED, "gamma": "scale", "kernel": kernel}).fit(X, y)
        assert machine.kernel_ == shown
        np.testing.assert_allclose(machine.gamma_, 1 / (4 * X.std(axis=0)))
    gamma = [0.5, 0.5, 0.0, 0.0]
    machine = KernelMachineRegressor(**{**FIXED, "gamma": gamma}).fit(X, y)
    np.testing.assert_array_equal(machine.gamma_, gamma)
    assert machine.alpha_ == 0.1
    other = X.copy()
    other[:, 2:] += 100.0
    np.testing.assert_array_equal(machine.predict(other), machine.predict(X))
    ranked = KernelMachineRegressor(**{**BINS, "scaling": "quantile"}).fit(np.exp(5 * X), y)
    assert ranked.scaling_ == "quantile"
    assert ranked.score(np.exp(5 * X), y) > 0.9
    assert KernelMachineRegressor(**BINS).fit(np.exp(5 * X), y).scaling_ == "quantile"
    plain = KernelMachineRegressor(**BINS, scaling=None).fit(X, y)
    assert plain.scaling_ == "none"
    assert plain.score(X, y) > 0.9


def test_long_tails_are_drawn_in(rng):
    X = np.sinh(3 * rng.normal(size=(1500, 3)))
    y = np.sin(np.arcsinh(X[:, 0])) + np.tanh(np.arcsinh(X[:, 1])) + 0.1 * rng.normal(size=1500)
    given, chosen = (
        KernelMachineRegressor(**BINS, scaling=name).fit(X[:1000], y[:1000]) for name in ("arcsinh", "auto")
    )
    assert given.scaling_ == "arcsinh"
    assert chosen.scaling_ in ("arcsinh", "quantile")
    standard = KernelMachineRegressor(**BINS, scaling="standard").fit(X[:1000], y[:1000])
    assert given.score(X[1000:], y[1000:]) > standard.score(X[1000:], y[1000:])
    loaded = pickle.loads(pickle.dumps(given))
    np.testing.assert_array_equal(loaded.predict(X), given.predict(X))


def test_widths_of_another_machine_may_be_given(table):
    X, y, _ = table
    X = np.where(np.arange(400)[:, None] % 7 == np.arange(4), np.nan, X)
    learned = KernelMachineRegressor(**BINS).fit(X, y)
    assert learned.gamma_.size == 8  # a flag for each input
    given = KernelMachineRegressor(**{**FIXED, "gamma": learned.gamma_, "scaling": "standard"}).fit(X, y)
    np.testing.assert_array_equal(given.gamma_, learned.gamma_)


def test_a_given_penalty_is_the_only_one(table, monkeypatch):
    X, y, _ = table
    real, seen = pcg.solve, set()

    def spy(apply, rhs, diagonal, shift, **options):
        seen.update(shift)
        return real(apply, rhs, diagonal, shift, **options)

    monkeypatch.setattr(pcg, "solve", spy)
    machine = KernelMachineRegressor(**BINS, alpha=0.3).fit(X, y)
    assert seen == {machine.alpha_} == {0.3}


def test_a_refit_that_fails_leaves_the_machine(table):
    X, y, labels = table
    for machine, target, other in (
        (KernelMachineRegressor(**FIXED), y, 1000 + y),
        (KernelMachineClassifier(**FIXED), labels, np.where(labels == "yes", "a", "b")),
    ):
        before = machine.fit(X, target).predict(X)
        with pytest.raises(ValueError, match="infinity"):
            machine.fit(np.where(X > 3, np.inf, X), other)
        np.testing.assert_array_equal(machine.predict(X), before)


# Columns.


def test_inputs_that_do_not_matter_get_small_gammas(rng):
    X = rng.normal(size=(1000, 8))
    X[:, 6] *= 1000
    machine = KernelMachineRegressor(**BINS, scaling="standard").fit(X, np.sin(2 * X[:, 1]) + X[:, 4])
    shares = machine.feature_relevances_
    np.testing.assert_allclose(shares.sum(), 1.0)
    assert set(np.argsort(shares)[-2:]) == {1, 4}
    assert np.delete(shares, [1, 4]).max() < 0.15 * shares[[1, 4]].min()
    assert machine.gamma_[6] < 1e-3 * machine.gamma_[4]
    assert len(machine.width_gammas_) == len(machine.width_errors_)
    assert machine.width_errors_.min() < machine.width_errors_[0] / 2


def test_constant_and_duplicate_columns_are_harmless(table):
    X, y, _ = table
    plain = KernelMachineRegressor(**BINS).fit(X[:300], y[:300]).score(X[300:], y[300:])
    wide = np.column_stack([X, np.full(400, 7.0), np.zeros(400), X[:, 0]])
    machine = KernelMachineRegressor(**BINS).fit(wide[:300], y[:300])
    assert machine.score(wide[300:], y[300:]) > plain - 0.03
    np.testing.assert_array_equal(machine.feature_relevances_[4:6], 0.0)


def test_missing_numbers(table, rng):
    X, y, _ = table
    holes = X.copy()
    holes[rng.random(X.shape) < 0.05] = np.nan
    machine = KernelMachineRegressor(**BINS).fit(holes[:300], y[:300])
    assert machine.score(holes[300:], y[300:]) > 0.6
    assert machine.gamma_.size == 8
    assert machine.feature_relevances_.size == 4
    # A hole is worth knowing of where the target says so.
    told = KernelMachineRegressor(**BINS).fit(holes, np.isnan(holes[:, 2]) * 1.0)
    assert told.score(holes, np.isnan(holes[:, 2]) * 1.0) > 0.9
    # In a column that had none in fit, the median stands for it.
    machine = KernelMachineRegressor(**FIXED).fit(X, y)
    filled, gap = X[:3].copy(), X[:3].copy()
    gap[:, 1], filled[:, 1] = np.nan, np.median(X[:, 1])
    np.testing.assert_array_equal(machine.predict(gap), machine.predict(filled))


def test_a_column_that_is_all_missing_is_ignored(table):
    X, y, _ = table
    empty = np.column_stack([X, np.full(400, np.nan)])
    machine = KernelMachineRegressor(**BINS).fit(empty, y)
    assert machine.feature_relevances_[4] == 0.0
    assert machine.score(empty, y) > 0.9
    np.testing.assert_array_equal(machine.predict(np.column_stack([X, np.ones(400)])), machine.predict(empty))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_with_categories(kind, rng):
    city = rng.choice(["Rome", "Oslo", "Bonn"], size=500)
    frame = pd.DataFrame({"x": rng.normal(size=500), "city": city, "size": pd.Categorical(rng.choice(["s", "m"], 500))})
    y = frame["x"] * (city == "Rome") + 2.0 * (city == "Oslo") + 0.05 * rng.normal(size=500)
    if kind == "polars":
        convert = pytest.importorskip("polars").from_pandas
    elif kind == "arrow":
        pa = pytest.importorskip("pyarrow")

        def convert(frame):
            return pa.Table.from_pandas(frame, preserve_index=False)
    else:

        def convert(frame):
            return frame

    machine = KernelMachineRegressor(**BINS).fit(convert(frame[:350]), y[:350])
    assert list(machine.feature_names_in_) == ["x", "city", "size"]
    assert machine.score(convert(frame[350:]), y[350:]) > 0.9
    assert machine.feature_relevances_[2] < 0.1
    unseen = frame[350:].assign(city="Atlantis")
    assert np.isfinite(machine.predict(convert(unseen))).all()
    for wrong in (frame.rename(columns={"city": "town"}), frame[["city", "x", "size"]]):
        with pytest.raises(ValueError, match="feature names"):
            machine.predict(convert(wrong))
    with pytest.raises(ValueError, match="feature"):
        machine.predict(convert(frame[["x", "city"]]))


def test_categories_that_are_numbers(rng):
    X = np.column_stack([rng.integers(12, size=600), rng.normal(size=600)])
    effect = rng.normal(size=12)
    y = effect[X[:, 0].astype(int)] + 0.05 * rng.normal(size=600)
    machine = KernelMachineRegressor(**BINS, categorical_features=[0]).fit(X[:400], y[:400])
    assert machine.score(X[400:], y[400:]) > 0.9
    for features in ("fourier", "hybrid"):
        with pytest.raises(ValueError, match=f"features='{features}' needs numbers only, and X has categorical inputs"):
            KernelMachineRegressor(features=features, categorical_features=[0]).fit(X, y)


def test_layouts_of_the_same_table_give_the_same_machine(table):
    X, y, _ = table
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
    expected = KernelMachineRegressor(**FIXED).fit(X, y).predict(X)
    for other in (X.astype(np.float64), np.asfortranarray(X), sparse.csr_array(X), pd.DataFrame(X)):
        machine = KernelMachineRegressor(**FIXED).fit(other, y)
        np.testing.assert_array_equal(machine.predict(other), expected)


# Targets and weights.


def test_several_targets(table):
    X, y, _ = table
    Y = np.column_stack([y, 1000 * X[:, 2] + 5, np.ones(400)])
    machine = KernelMachineRegressor(**BINS).fit(X[:300], Y[:300])
    predictions = machine.predict(X[300:])
    assert predictions.shape == (100, 3)
    for k in (0, 1):
        assert np.corrcoef(predictions[:, k], Y[300:, k])[0, 1] ** 2 > 0.85
    np.testing.assert_allclose(predictions[:, 2], 1.0)
    one = KernelMachineRegressor(**FIXED).fit(X, y[:, None])
    assert one.predict(X).shape == (400, 1)
    np.testing.assert_array_equal(one.predict(X)[:, 0], KernelMachineRegressor(**FIXED).fit(X, y).predict(X))


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_of_the_target_do_not_matter(table, factor):
    X, y, _ = table
    machine = KernelMachineRegressor(**FIXED)
    expected = machine.fit(X, y).predict(X)
    np.testing.assert_allclose(machine.fit(X, factor * (y + 3)).predict(X) / factor - 3, expected, atol=1e-6)


def test_a_constant_target(table):
    X = table[0]
    machine = KernelMachineRegressor(**BINS).fit(X, np.full(400, 3.0))
    np.testing.assert_array_equal(machine.predict(X), 3.0)


def test_sample_weights(table):
    """Rows of weight zero have no say, and heavy rows win where others contradict them."""
    X, y, labels = table
    weights = np.tile([0.0, 1.0], 200)
    contradicted = np.where(weights > 0, y, -y)
    machine = KernelMachineRegressor(**BINS).fit(X, contradicted, sample_weight=weights)
    assert machine.score(X[::2], y[::2]) > 0.7
    assert KernelMachineRegressor(**BINS).fit(X, contradicted).score(X[::2], y[::2]) < 0.3
    alike = [KernelMachineRegressor(**FIXED).fit(X, y, sample_weight=w).predict(X) for w in (None, np.ones(400), 1.0)]
    np.testing.assert_array_equal(alike[1], alike[2])
    np.testing.assert_allclose(alike[0], alike[1], rtol=1e-9)
    flipped = np.where(weights > 0, labels, np.where(labels == "yes", "no", "yes"))
    machine = KernelMachineClassifier(**BINS).fit(X, flipped, sample_weight=weights)
    assert machine.score(X[::2], labels[::2]) > 0.8


def test_class_weights(three):
    X, labels = three
    rare = (labels != "blue") | (np.arange(900) % 10 == 0)
    X, labels = X[rare], labels[rare]
    fits = {w: KernelMachineClassifier(**FIXED, class_weight=w).fit(X, labels) for w in (None, "balanced")}
    found = {w: np.mean(machine.predict(X[labels == "blue"]) == "blue") for w, machine in fits.items()}
    assert found["balanced"] > found[None] + 0.1
    weights = np.where(labels == "blue", 4.0, 1.0)
    by_class = KernelMachineClassifier(**FIXED, class_weight={"blue": 4.0, "red": 1.0, "green": 1.0})
    by_row = KernelMachineClassifier(**FIXED).fit(X, labels, sample_weight=weights)
    np.testing.assert_array_equal(by_class.fit(X, labels).predict_proba(X), by_row.predict_proba(X))
    np.testing.assert_allclose(
        by_class.fit(X, labels, sample_weight=np.full(len(X), 0.5)).decision_function(X),
        KernelMachineClassifier(**FIXED).fit(X, labels, sample_weight=0.5 * weights).decision_function(X),
    )


def test_probabilities(three, table):
    for X, labels in (three, table[::2]):
        machine = KernelMachineClassifier(**BINS).fit(X[:300], labels[:300])
        p = machine.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert p.min() >= 0
        np.testing.assert_array_equal(machine.classes_, np.unique(labels))
        np.testing.assert_array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(X))
        scores = machine.decision_function(X)
        assert scores.shape == ((len(X), 3) if p.shape[1] == 3 else (len(X),))
        raw = probabilities(scores.reshape(len(X), -1), 1.0)
        assert log_loss(labels[300:], p[300:]) < log_loss(labels[300:], raw[300:]) - 0.02
    np.testing.assert_array_equal(scores > 0, machine.predict(X) == "yes")


@pytest.mark.parametrize("kind", [list, pd.Series, lambda labels: labels.astype(object)])
def test_labels_of_any_kind(table, kind):
    X, _, labels = table
    expected = KernelMachineClassifier(**FIXED).fit(X, labels).predict(X)
    np.testing.assert_array_equal(KernelMachineClassifier(**FIXED).fit(X, kind(labels)).predict(X), expected)
    numbers = KernelMachineClassifier(**FIXED).fit(X, labels == "yes")
    np.testing.assert_array_equal(numbers.predict(X), expected == "yes")


# Rows held out.


def test_scores_choose(table, monkeypatch):
    X, y, labels = table
    for scoring in ("r2", "neg_mean_absolute_error", lambda machine, X, y: -np.abs(machine.predict(X) - y).max()):
        machine = KernelMachineRegressor(**BINS, scoring=scoring, max_grids=160).fit(X, y)
        assert machine.score(X, y) > 0.9
    assert machine.learning_curve_[0, 1] > 0.1  # the largest error, in the units of y
    for scoring in ("accuracy", "roc_auc", "neg_log_loss"):
        machine = KernelMachineClassifier(**BINS, scoring=scoring, max_grids=160).fit(X, labels)
        assert machine.score(X, labels) > 0.9
    machine = KernelMachineClassifier(**FIXED, scoring="accuracy", refit=False, cv=[(range(300), range(300, 400))])
    machine.fit(X, labels)
    assert machine.learning_curve_[-1, 1] == -machine.score(X[300:], labels[300:])


def held_out_of(machine, monkeypatch, X, y, groups=None):
    seen = []
    real = _training.Training.__init__

    def spy(self, machine, X, Y, weights, train, held_out, *rest):
        seen.append((np.sort(train), np.sort(held_out)))
        real(self, machine, X, Y, weights, train, held_out, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(_training.Training, "__init__", spy)
        machine.fit(X, y, groups=groups)
    return seen[0]


def test_which_rows_are_held_out(table, monkeypatch):
    X, y, labels = table
    groups = np.arange(400) // 20
    regressor, classifier = KernelMachineRegressor(**FIXED), KernelMachineClassifier(**FIXED)

    train, held_out = held_out_of(regressor, monkeypatch, X, y)
    assert (len(train), len(held_out)) == (360, 40)
    np.testing.assert_array_equal(np.union1d(train, held_out), np.arange(400))
    other = held_out_of(clone(regressor).set_params(random_state=1), monkeypatch, X, y)[1]
    assert not np.array_equal(held_out, other)
    held_out = held_out_of(clone(classifier).set_params(validation_fraction=0.25), monkeypatch, X, labels)[1]
    assert len(held_out) == 100
    assert abs(np.mean(labels[held_out] == "yes") - np.mean(labels == "yes")) < 0.01

    for machine in (regressor, clone(regressor).set_params(cv=GroupKFold(4))):
        train, held_out = held_out_of(machine, monkeypatch, X, y, groups)
        assert not set(groups[train]) & set(groups[held_out])
    machine = clone(regressor).set_params(cv=GroupShuffleSplit(1, test_size=0.3, random_state=0))
    assert len(set(groups[held_out_of(machine, monkeypatch, X, y, groups)[1]])) == 6

    train, held_out = held_out_of(clone(regressor).set_params(cv=TimeSeriesSplit(3)), monkeypatch, X, y)
    assert train.max() < held_out.min()
    held_out = held_out_of(clone(regressor).set_params(cv=KFold(5)), monkeypatch, X, y)[1]
    np.testing.assert_array_equal(held_out, np.arange(80))
    assert len(held_out_of(clone(classifier).set_params(cv=4), monkeypatch, X, labels)[1]) == 100

    rows = np.arange(400)
    for given in ([(rows[:300], rows[350:])], [(rows < 300, rows >= 350)], [(range(300), list(range(350, 400)))]):
        train, held_out = held_out_of(clone(regressor).set_params(cv=given), monkeypatch, X, y)
        np.testing.assert_array_equal(train, rows[:300])
        np.testing.assert_array_equal(held_out, rows[350:])


def state(machine):
    """All that `fit` learned, but for the clock."""
    kept = {k: v for k, v in vars(machine).items() if (k.endswith("_") or k.startswith("_")) and k != "decisions_"}
    kept.pop("_skl_callbacks", None)
    return {**kept, "decisions": machine.decisions_[["what", "choice", "error"]].tolist()}


def assert_same_state(one, other):
    one, other = state(one), state(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_equal(other[name], value, err_msg=name)


def test_the_search_never_looks_at_rows_that_it_is_not_given(table, rng):
    X, _, labels = table
    cv = [(np.arange(250), np.arange(250, 320))]
    machine = KernelMachineClassifier(random_state=0, cv=cv)
    changed = labels.copy()
    changed[320:] = rng.permutation(changed[320:])
    assert (changed != labels).any()
    assert_same_state(machine.fit(X, labels), clone(machine).fit(X, changed))


def test_without_refit_the_rows_held_out_only_choose(table, rng):
    X, _, labels = table
    cv = [(np.arange(300), np.arange(300, 400))]
    machine = KernelMachineClassifier(**FIXED, cv=cv, refit=False)
    changed = labels.copy()
    changed[300:] = rng.permutation(changed[300:])
    kept = machine.fit(X, labels).decision_function(X)
    np.testing.assert_array_equal(clone(machine).fit(X, changed).decision_function(X), kept)
    with_all = clone(machine).set_params(refit=True)
    n_bins = with_all.fit(X, labels).coef_.shape[1]
    assert n_bins > machine.coef_.shape[1]
    assert not np.array_equal(with_all.decision_function(X), kept)
    assert not np.array_equal(clone(with_all).fit(X, changed).decision_function(X), with_all.decision_function(X))


# Repetition.


@pytest.mark.parametrize("features", ["binning", "hybrid", "auto"])
def test_the_same_bits_again_and_for_any_number_of_threads(table, threads, features):
    threads(2)
    X, y, _ = table
    machine = KernelMachineRegressor(features=features, random_state=3, n_jobs=1).fit(X, y)
    for n_jobs in (1, 2, None):
        other = KernelMachineRegressor(features=features, random_state=3, n_jobs=n_jobs).fit(X, y)
        assert_same_state(machine, other)
        np.testing.assert_array_equal(other.predict(X), machine.predict(X))
    assert not np.array_equal(machine.set_params(random_state=4).fit(X, y).predict(X), other.predict(X))


def test_random_states(table):
    X, y, _ = table
    options = {**FIXED, "random_state": np.random.RandomState(0)}
    first = KernelMachineRegressor(**options).fit(X, y).predict(X)
    assert not np.array_equal(first, KernelMachineRegressor(**options).fit(X, y).predict(X))
    options["random_state"] = np.random.RandomState(0)
    np.testing.assert_array_equal(KernelMachineRegressor(**options).fit(X, y).predict(X), first)
    assert KernelMachineRegressor(**{**FIXED, "random_state": None}).fit(X, y).score(X, y) > 0.5


def test_fit_again_forgets(table):
    X, y, _ = table
    machine = KernelMachineRegressor(**FIXED).fit(X, y)
    expected = machine.predict(X)
    machine.fit(X[:50, :2], -y[:50]).predict(X[:, :2])
    np.testing.assert_array_equal(machine.fit(X, y).predict(X), expected)


# Size, budgets, interruption.


def test_grids_are_added_until_they_gain_little(table):
    X, y, _ = table
    y = y + np.random.default_rng(2).normal(size=y.size)
    machine = KernelMachineRegressor(**{**GROWING, "max_grids": 5000}).fit(X, y)
    n_grids, errors = machine.learning_curve_.T
    assert n_grids.size > 1
    assert (np.diff(n_grids) > 0).all()
    assert errors[-1] < errors[0]
    assert machine.n_grids_ == n_grids[-1] < 5000
    assert machine.status_ == "converged"


def test_budgets_of_grids_and_of_bytes(table):
    X, y, _ = table
    machine = KernelMachineRegressor(**BINS, max_grids=7).fit(X, y)
    assert machine.n_grids_ == 7
    assert machine.score(X, y) > 0.5
    machine = KernelMachineRegressor(**BINS, max_bytes=8 * 400 * 11 + 5, max_grids=2000).fit(X, y)
    assert machine.n_grids_ == 11
    assert KernelMachineRegressor(**BINS, max_bytes=1).fit(X, y).n_grids_ == 1


class Clock:
    """Ticks whenever it is read."""

    def __init__(self, tick):
        self.tick, self.now = tick, 0.0

    def __call__(self):
        self.now += self.tick
        return self.now


@pytest.mark.parametrize("max_seconds", [0, 100, 500, 1000])
def test_budget_of_seconds(table, monkeypatch, max_seconds):
    """Of a second for each new grid, and half a second for each grid in a solve."""
    X, y, _ = table
    clock = Clock(0.0)
    monkeypatch.setattr(_budget, "_clock", clock)
    grow, solve = _growth.Growth.grow, _growth.Growth.solve

    def slow_grow(self, n_grids):
        clock.now += n_grids - self.n_grids
        grow(self, n_grids)

    def slow_solve(self, *args):
        clock.now += 0.5 * self.n_grids
        return solve(self, *args)

    monkeypatch.setattr(_growth.Growth, "grow", slow_grow)
    monkeypatch.setattr(_growth.Growth, "solve", slow_solve)
    machine = KernelMachineRegressor(**{**GROWING, "max_grids": 50_000}, max_seconds=max_seconds).fit(X, y)
    assert machine.status_ == "budget"
    if max_seconds <= 100:  # with fewer grids there is no machine
        assert machine.n_grids_ == 40
    else:
        assert max_seconds / 2 < clock.now <= max_seconds
    assert machine.score(X, y) > 0.5
    assert machine.decisions_["seconds"].max() <= clock.now


def test_an_ample_budget_changes_nothing(table):
    X, y, _ = table
    ample, free = (KernelMachineRegressor(**GROWING, max_seconds=seconds).fit(X, y) for seconds in (1e6, None))
    assert_same_state(ample, free)


def test_a_third_of_the_seconds_at_most_goes_to_the_widths(table, monkeypatch):
    X, y, _ = table
    rounds = {}
    for seconds in (6, 12, 1000):
        monkeypatch.setattr(_budget, "_clock", Clock(1.0))
        machine = KernelMachineRegressor(**BINS, max_seconds=seconds, scaling="standard").fit(X, y)
        rounds[seconds] = len(machine.width_errors_) - 1
    assert rounds[6] <= 2
    assert rounds[12] <= 4
    assert rounds[6] < rounds[12] < rounds[1000]


def test_large_tables_take_late_rounds_and_finer_grids(table, monkeypatch):
    X, y, _ = table
    monkeypatch.setattr(_training, "_SAMPLE_ROWS", 100)
    machine = KernelMachineRegressor(**BINS, scaling="standard").fit(X, y)
    assert "widths of all rows" in machine.decisions_["what"]
    assert machine.score(X, y) > 0.9


def interrupt_at(monkeypatch, home, name, call):
    """Raise KeyboardInterrupt at a call of a function, counted from 1."""
    real, calls = getattr(home, name), [0]

    def wrapped(*args, **kwargs):
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(home, name, wrapped)


@pytest.mark.parametrize(
    ("home", "name", "call"),
    [
        (_growth, "count_bins", 2),  # in the second batch
        (_growth, "find_codes", 2),
        (_growth.Growth, "solve", 4),
        (_sizing.Sizing, "refit", 1),
        (_growth.Growth, "add_held_out_rows", 1),
    ],
)
def test_ctrl_c_keeps_the_machine_so_far(table, monkeypatch, home, name, call):
    X, _, labels = table
    machine = KernelMachineClassifier(**GROWING)
    with monkeypatch.context() as patch:
        interrupt_at(patch, home, name, call)
        with pytest.raises(KeyboardInterrupt):
            machine.fit(X, labels)
    assert machine.status_ == "interrupted"
    assert machine.n_grids_ == machine.learning_curve_[-1, 0]
    assert machine.score(X, labels) > 0.8
    np.testing.assert_allclose(machine.predict_proba(X).sum(axis=1), 1.0)
    assert machine.predict(X[:1]) in ("yes", "no")
    assert machine.fit(X, labels).status_ == "converged"


def interrupted(solve, call):
    """The solver, one of whose calls meets Ctrl-C after an iteration."""
    left = [call]

    def stop(state):
        raise KeyboardInterrupt

    def wrapped(*args, **options):
        left[0] -= 1
        return solve(*args, **({**options, "monitor": stop} if left[0] == 0 else options))

    return wrapped


def test_ctrl_c_in_a_solve(table, monkeypatch):
    """In the search there is no machine yet; later the solver's iterate is one."""
    X, y, _ = table
    real, machine = pcg.solve, KernelMachineRegressor(**GROWING)
    seen = []
    for call in range(1, 40, 4):
        monkeypatch.setattr(pcg, "solve", interrupted(real, call))
        machine = KernelMachineRegressor(**GROWING)
        try:
            machine.fit(X, y)
        except KeyboardInterrupt:
            seen.append(getattr(machine, "status_", "nothing"))
            assert seen[-1] == "nothing" or machine.score(X, y) > 0.3
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {"nothing", "interrupted"}
    assert machine.status_ == "budget"


def test_ctrl_c_before_there_is_a_machine(table, monkeypatch):
    X, y, labels = table
    for machine, target in ((KernelMachineRegressor(**BINS), y), (KernelMachineClassifier(**BINS), labels)):
        with monkeypatch.context() as patch:
            interrupt_at(patch, relevance.Sample, "relevances", 2)
            with pytest.raises(KeyboardInterrupt):
                machine.fit(X, target)
        with pytest.raises(NotFittedError):
            machine.predict(X)
        with pytest.raises(NotFittedError):
            machine.summary()


class Callback:
    """Counts steps and stops at one."""

    def __init__(self, stop_at=None):
        self.stop_at, self.steps, self.ended = stop_at, 0, False

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.ended = True

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.steps += context.task_name == "step"
        return self.stop_at is not None and self.steps >= self.stop_at


def test_callbacks_stop_a_fit(table):
    X, y, _ = table
    watcher = Callback()
    machine = KernelMachineRegressor(**BINS).set_callbacks(watcher).fit(X, y)
    assert watcher.ended
    assert watcher.steps > len(machine.learning_curve_)
    for stop_at in (1, watcher.steps - 1):
        stopper = Callback(stop_at)
        stopped = KernelMachineRegressor(**BINS).set_callbacks(stopper).fit(X, y)
        assert stopped.status_ == "stopped"
        assert stopper.ended
        assert stopped.score(X, y) > 0.5


# What is kept.


@pytest.fixture(scope="module", params=["binning", "hybrid", "fourier", "categories"])
def fitted(request, table):
    X, y, labels = table
    X = X.copy()
    X[::7, 3] = np.nan
    options = {**FIXED, "features": request.param}
    if request.param == "categories":
        options["features"] = "binning"
        X = pd.DataFrame(X, columns=list("abcd")).assign(e=np.where(X[:, 0] > 0, "p", "q"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_training, "_SAMPLE_GRIDS", (5, 40))
        patch.setattr(_training, "_N_WAVES", 128)
        regressor = KernelMachineRegressor(**options, scaling="quantile").fit(X, y)
        return X, [regressor, KernelMachineClassifier(**options).fit(X, labels)]


def outputs(machine, X):
    found = [machine.predict(X), machine.predict(X[:1])]
    return [*found, machine.predict_proba(X)] if hasattr(machine, "predict_proba") else found


def assert_same_outputs(one, other, X):
    for a, b in zip(outputs(one, X), outputs(other, X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_round_trips(fitted, tmp_path):
    X, machines = fitted
    for machine in machines:
        assert_same_outputs(pickle.loads(pickle.dumps(machine)), machine, X)
        joblib.dump(machine, tmp_path / "machine.joblib")
        assert_same_outputs(joblib.load(tmp_path / "machine.joblib"), machine, X)


TRUSTED = {
    KernelMachineRegressor: ["binfeat.machine.KernelMachineRegressor"],
    KernelMachineClassifier: ["binfeat.machine.KernelMachineClassifier"],
}


def test_skops_round_trip(fitted):
    sio = pytest.importorskip("skops.io")
    X, machines = fitted
    for machine in machines:
        data = sio.dumps(machine)
        assert sio.get_untrusted_types(data=data) == TRUSTED[type(machine)]
        assert_same_outputs(sio.loads(data, trusted=TRUSTED[type(machine)]), machine, X)


def test_attributes_hold_arrays_numbers_and_strings(fitted):
    for machine in fitted[1]:
        for name, value in state(machine).items():
            if name in ("_columns", "_scaler"):
                assert all(isinstance(part, np.ndarray) for part in value.values())
            elif name != "decisions":
                assert isinstance(value, np.ndarray | str | int | float | np.number | bool), name
            if isinstance(value, np.ndarray) and not name.startswith("feature_names"):
                assert value.dtype.kind in "biufU" or value.dtype.names, name


def test_memory(rng):
    """16 bytes per occupied bin, the grids, and little else."""
    X = rng.normal(size=(5000, 6))
    machine = KernelMachineRegressor(**{**FIXED, "gamma": 2.0}).fit(X, X[:, 0])
    grids = sum(a.nbytes for a in (machine._scale, machine._shift, machine._keys, machine._nan_keys))
    n_bins = machine.coef_.shape[1]
    assert n_bins > 20_000
    assert len(pickle.dumps(machine)) <= 16 * n_bins + grids + 8 * (20 + 1) + 5000


def test_one_row_is_as_in_a_batch(fitted):
    X, machines = fitted
    for machine in machines:
        name = "predict_proba" if hasattr(machine, "predict_proba") else "predict"
        own = np.concatenate([getattr(machine, name)(X[i : i + 1]) for i in range(80)])
        np.testing.assert_allclose(own, getattr(machine, name)(X)[:80], rtol=1e-9, atol=1e-12)


def test_many_rows_in_blocks(table, monkeypatch):
    X, y, _ = table
    machine = KernelMachineRegressor(features="hybrid", random_state=0).fit(X, y)
    expected = machine.predict(X)
    monkeypatch.setattr(_growth, "_BLOCK_BYTES", 2**12)
    np.testing.assert_allclose(machine.predict(X), expected, rtol=1e-12, atol=1e-12)


def test_summary_and_html(table):
    X, y, _ = table
    machine = KernelMachineRegressor(random_state=0)
    assert "KernelMachineRegressor" in machine._repr_html_()
    with pytest.raises(NotFittedError):
        machine.summary()
    machine.fit(X, y)
    lines = machine.summary().splitlines()
    assert lines[0].split() == ["decision", "choice", "held-out", "error", "seconds"]
    assert [line.split("  ")[0] for line in lines[1:]] == list(machine.decisions_["what"])
    for what in ("scaling", "widths", "kernel", "features", "grids", "penalty"):
        assert what in machine.decisions_["what"]
    assert "KernelMachineRegressor" in machine._repr_html_()


def test_the_log_says_what_was_decided(table, caplog):
    X, y, _ = table
    with caplog.at_level("INFO", logger="binfeat"):
        KernelMachineRegressor(**BINS).fit(X, y)
    text = caplog.text
    for words in ("widths, round 1: held-out error", "scaling: ", "kernel: ", "grids: held-out error", "penalty: "):
        assert words in text


def test_in_a_pipeline(table):
    X, _, labels = table
    pipeline = make_pipeline(StandardScaler(), KernelMachineClassifier(**FIXED)).fit(X, labels)
    assert pipeline.score(X, labels) > 0.8


# Bad input.


@pytest.mark.parametrize(
    ("parameter", "value", "error", "message"),
    [
        ("features", "both", ValueError, "features must be 'auto', 'binning', 'fourier' or 'hybrid', got 'both'"),
        ("kernel", "rbf", ValueError, "kernel='rbf' cannot be approximated by random binning"),
        ("kernel", "nonsense", ValueError, "kernel must be 'laplacian', 'hat'"),
        ("kernel", np.ones(2), ValueError, "kernel must be 'laplacian', 'hat'"),
        ("gamma", "auto", ValueError, "gamma must be 'learn' or 'scale', or a number, got 'auto'"),
        ("gamma", -1.0, ValueError, "gamma must be finite and non-negative, got -1.0"),
        ("gamma", [1.0, 2.0], ValueError, r"gamma must be a number or have one value per input, 4 of them"),
        ("gamma", 0.0, ValueError, "gamma is 0 for every input"),
        ("alpha", "learn", ValueError, "alpha must be 'auto', or a number, got 'learn'"),
        ("alpha", -1, ValueError, "alpha must be finite and at least 0.0, got -1"),
        ("alpha", None, TypeError, "alpha must be a number of at least 0.0, got None"),
        ("alpha", np.ones(2), TypeError, "alpha must be a number of at least 0.0, got array"),
        ("n_grids", "many", ValueError, "n_grids must be 'auto', or a number, got 'many'"),
        ("n_grids", 0, ValueError, "n_grids must be at least 1, got 0"),
        ("n_grids", 1.5, TypeError, "n_grids must be an integer of at least 1, got 1.5"),
        (
            "scaling",
            "minmax",
            ValueError,
            "scaling must be 'auto', 'standard', 'arcsinh', 'quantile' or None, got 'minmax'",
        ),
        ("categorical_features", [9], ValueError, "categorical_features must be a mask of length 4"),
        ("categorical_features", ["a"], ValueError, "categorical_features has .*'a'.*, which are no column names"),
        ("max_grids", 0, ValueError, "max_grids must be at least 1, got 0"),
        ("max_grids", None, TypeError, "max_grids must be an integer of at least 1, got None"),
        ("max_seconds", -1, ValueError, "max_seconds must be finite and at least 0.0, got -1"),
        ("max_seconds", "1", TypeError, "max_seconds must be a number of at least 0.0, got '1'"),
        ("max_bytes", 0, ValueError, "max_bytes must be at least 1, got 0"),
        ("max_bytes", 1e9, TypeError, "max_bytes must be an integer of at least 1"),
        ("cv", "all", ValueError, "Expected `cv` as an integer"),
        ("cv", [(range(10), [])], ValueError, "cv gives no rows to train on or none to hold out"),
        ("cv", [([], range(10))], ValueError, "cv gives no rows to train on or none to hold out"),
        ("cv", [(range(10), [400])], IndexError, "out of bounds"),
        ("validation_fraction", 1.0, ValueError, "validation_fraction must be between 0 and 1, got 1.0"),
        ("validation_fraction", 0, ValueError, "validation_fraction must be between 0 and 1, got 0.0"),
        ("validation_fraction", None, TypeError, "validation_fraction must be a number"),
        ("scoring", "nonsense", ValueError, "'nonsense' is not a valid scoring value"),
        ("n_jobs", 0, ValueError, "n_jobs must be None, a positive integer"),
        ("random_state", -1, ValueError, "Seed must be between 0"),
        ("random_state", "a", ValueError, "'a' cannot be used to seed"),
    ],
)
def test_bad_parameters(table, parameter, value, error, message):
    X, y, labels = table
    for kind, target in ((KernelMachineRegressor, y), (KernelMachineClassifier, labels)):
        machine = kind(**{**FIXED, parameter: value})
        with pytest.raises(error, match=message):
            machine.fit(X, target)
        with pytest.raises(NotFittedError):
            machine.predict(X)


ONES, Y5 = np.ones((5, 2)), np.arange(5.0)


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "message"),
    [
        (ONES[:1], Y5[:1], {}, ValueError, "KernelMachineRegressor needs at least 2 rows, to hold some out"),
        (ONES[:0], Y5[:0], {}, ValueError, "Found array with 0 sample"),
        (ONES, None, {}, ValueError, "requires y to be passed"),
        (ONES, Y5[:4], {}, ValueError, "inconsistent numbers of samples"),
        (ONES, np.where(Y5 > 3, np.nan, Y5), {}, ValueError, "Input y contains NaN"),
        (ONES, np.where(Y5 > 3, np.inf, Y5), {}, ValueError, "Input y contains infinity"),
        (ONES, np.ones((5, 1, 1)), {}, ValueError, "dim"),
        (np.where(ONES > 0, np.inf, 0), Y5, {}, ValueError, "Input X contains infinity"),
        (ONES[0], Y5, {}, ValueError, "Expected 2D array, got 1D array"),
        (np.full((5, 2), "a"), Y5, {"categorical_features": None}, ValueError, "must hold numbers"),
        (ONES, Y5, {"sample_weight": np.ones(4)}, ValueError, "sample_weight must have one value per row"),
        (ONES, Y5, {"sample_weight": -np.ones(5)}, ValueError, "sample_weight must be finite and non-negative"),
        (ONES, Y5, {"sample_weight": np.zeros(5)}, ValueError, "sample_weight is zero for every row"),
        (ONES, Y5, {"sample_weight": np.eye(5)[0]}, ValueError, "sample_weight is zero for all training rows or for"),
        (ONES, Y5, {"groups": np.ones(4)}, ValueError, "inconsistent numbers of samples"),
    ],
)
def test_bad_tables(X, y, options, error, message):
    machine = KernelMachineRegressor(categorical_features=options.pop("categorical_features", "from_dtype"))
    with pytest.raises(error, match=message):
        machine.fit(X, y, **options)


def test_bad_labels(table):
    X, y, labels = table
    with pytest.raises(ValueError, match=re.escape("y must have at least two classes, got one class: ")):
        KernelMachineClassifier().fit(X, np.full(400, "yes"))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        KernelMachineClassifier().fit(X, y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        KernelMachineClassifier().fit(X, None)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        KernelMachineClassifier().fit(X, np.column_stack([labels, labels]))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        KernelMachineClassifier().fit(X, np.where(y > 0, 1.0, np.nan))
    with pytest.raises(ValueError, match="class_weight"):
        KernelMachineClassifier(class_weight="unbalanced").fit(X, labels)
    with pytest.raises(ValueError, match="sample_weight must have one value per row"):
        KernelMachineClassifier(class_weight="balanced").fit(X, labels, sample_weight=np.ones(3))


def test_bad_rows_in_predict(table):
    X, y, _ = table
    machine = KernelMachineRegressor(**FIXED)
    with pytest.raises(NotFittedError):
        machine.predict(X)
    machine.fit(X, y)
    for rows, message in (
        (X[:, :3], "X has 3 features, but KernelMachineRegressor is expecting 4"),
        (np.full((1, 4), np.inf), "Input X contains infinity"),
        (X[:0], "Found array with 0 sample"),
        (X[0], "Expected 2D array, got 1D array"),
    ):
        with pytest.raises(ValueError, match=message):
            machine.predict(rows)


def test_the_smallest_tables():
    X = np.array([[0.0], [1.0]])
    assert np.isfinite(KernelMachineRegressor(random_state=0).fit(X, [1.0, 2.0]).predict(X)).all()
    machine = KernelMachineClassifier(random_state=0).fit(X, ["a", "b"])
    assert set(machine.predict(X)) <= {"a", "b"}
    flat = KernelMachineRegressor(random_state=0).fit(np.ones((10, 2)), np.arange(10.0))
    np.testing.assert_allclose(flat.predict(np.ones((1, 2))), 4.5, atol=1e-9)
