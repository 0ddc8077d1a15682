"""Kernel models: what they learn, and from which tables."""

import pickle
import pkgutil

import numpy as np
import pytest
from hard import easy, hard
from kernel_models import BINS, FIXED, with_options
from scipy import sparse
from scipy.special import softmax
from sklearn.datasets import load_wine, make_friedman1
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss

from binfeat import (
    CGRidgeClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    kernels,
)
from binfeat.linear import cg

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("few_steps")


TARGETS = {
    "smooth": lambda X: np.sin(2 * X[:, 0]) * np.cos(X[:, 1]),
    "piecewise": lambda X: np.where(X[:, 0] > 0, 1.0, -1.0) * (X[:, 1] > -0.5),
    "additive": lambda X: np.abs(X[:, 0]) + X[:, 1] ** 2 + np.sin(3 * X[:, 2]),
    "interacting": lambda X: X[:, 0] * X[:, 1] + X[:, 2],
}


@pytest.mark.parametrize("target", easy(TARGETS, "interacting"))
def test_learns_what_a_linear_model_cannot(target, rng):
    X = rng.uniform(-2, 2, size=(900, 4))
    y = TARGETS[target](X) + 0.05 * rng.normal(size=900)
    model = KernelMachineRegressor(**BINS, solver_params={"n_grids": 200}).fit(X[:600], y[:600])
    score = model.score(X[600:], y[600:])
    assert score > 0.85
    assert 1 - score < (1 - Ridge().fit(X[:600], y[:600]).score(X[600:], y[600:])) / 2


def test_classes_that_no_line_parts(rng):
    X = rng.normal(size=(800, 3))
    labels = np.where(X[:, 0] * X[:, 1] > 0, 5, -2)
    model = KernelMachineClassifier(**BINS).fit(X[:500], labels[:500])
    assert model.score(X[500:], labels[500:]) > 0.85
    assert LogisticRegression().fit(X[:500], labels[:500]).score(X[500:], labels[500:]) < 0.6
    X, y = load_wine(return_X_y=True)
    assert KernelMachineClassifier(random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


@pytest.mark.parametrize("features", ["binning", "fourier", "exact", *hard("auto")])
def test_features_of_each_kind(table, features):
    X, y, labels = table
    model = KernelMachineRegressor(features=features, random_state=0).fit(X[:300], y[:300])
    assert model.features_ == features or features == "auto"
    assert model.score(X[300:], y[300:]) > 0.9
    assert (model.n_grids_ == 0) == (model.features_ in ("fourier", "exact"))
    model = KernelMachineClassifier(features=features, random_state=0).fit(X[:300], labels[:300])
    assert model.score(X[300:], labels[300:]) > 0.85


def test_a_given_kernel_and_gamma(table):
    X, y, _ = table
    for kernel, shown in (("laplacian", "Laplacian()"), (kernels.GammaPitch(4), "GammaPitch(shape=4.0)")):
        model = KernelMachineRegressor(**{**FIXED, "gamma": "scale", "kernel": kernel}).fit(X, y)
        assert model.kernel_ == shown
        np.testing.assert_allclose(model.gamma_, 1 / (4 * X.std(axis=0)))
    gamma = [0.5, 0.5, 0.0, 0.0]
    model = KernelMachineRegressor(**{**FIXED, "gamma": gamma}).fit(X, y)
    np.testing.assert_array_equal(model.gamma_, gamma)
    assert model.alpha_ == 0.1
    other = X.copy()
    other[:, 2:] += 100.0
    np.testing.assert_array_equal(model.predict(other), model.predict(X))


def test_fourier_features_do_not_replace_a_kernel_that_only_grids_support(rng):
    """They would predict a smooth function better."""
    X = rng.uniform(size=(300, 1))
    model = KernelMachineRegressor(kernel="hat", solver_params={"max_grids": 40}, random_state=0)
    model.fit(X, np.sin(6 * X[:, 0]))
    assert (model.features_, model.kernel_) == ("binning", "Hat()")


@pytest.mark.hard
def test_numbers_far_from_normal_enter_by_their_ranks_too(rng, limits):
    """The kernel learns the relevance of each."""
    amounts = np.where(rng.random(600) < 0.6, 0.0, rng.lognormal(1.0, 1.0, size=600))
    X = np.column_stack([amounts, rng.normal(size=600)])
    y = (amounts > 0) * X[:, 1] + 0.1 * rng.normal(size=600)
    model = KernelMachineRegressor(random_state=0).fit(X[:400], y[:400])
    assert model.scaling_ == "ranks"
    assert model.gamma_.size == 3
    assert model.feature_relevances_.size == 2
    others = {"gamma": "scale"}, {"features": "binning"}
    rest = [KernelMachineRegressor(**other, random_state=0).fit(X[:400], y[:400]) for other in others]
    limits(without=["ranks"])
    plain = KernelMachineRegressor(random_state=0).fit(X[:400], y[:400])
    assert all(other.gamma_.size == 2 for other in (plain, *rest))
    assert np.abs(model.predict(X[400:]) - y[400:]).mean() < np.abs(plain.predict(X[400:]) - y[400:]).mean()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    refitted = KernelMachineRegressor(gamma=model.gamma_[:2], random_state=0).fit(X, y)
    assert refitted.gamma_.size == 2


def test_widths_of_another_model_may_be_given(table):
    X, y, _ = table
    X = np.where(np.arange(400)[:, None] % 7 == np.arange(4), np.nan, X)
    learned = KernelMachineRegressor(**BINS).fit(X, y)
    assert learned.gamma_.size == 8  # 8 one-hot inputs
    given = KernelMachineRegressor(**{**FIXED, "gamma": learned.gamma_}).fit(X, y)
    np.testing.assert_array_equal(given.gamma_, learned.gamma_)


def test_a_given_penalty_is_the_only_one(table, monkeypatch):
    X, y, _ = table
    real, seen = cg.solve, set()

    def spy(system, alpha, *args, **options):
        seen.update(alpha)
        return real(system, alpha, *args, **options)

    monkeypatch.setattr(cg, "solve", spy)
    model = KernelMachineRegressor(**BINS, alpha=0.3).fit(X, y)
    assert seen == {model.alpha_} == {0.3}


def test_a_refit_that_fails_leaves_the_model(table):
    X, y, labels = table
    for model, target, other in (
        (KernelMachineRegressor(**FIXED), y, 1000 + y),
        (KernelMachineClassifier(**FIXED), labels, np.where(labels == "yes", "a", "b")),
    ):
        before = model.fit(X, target).predict(X)
        with pytest.raises(ValueError, match="infinity"):
            model.fit(np.where(X > 3, np.inf, X), other)
        np.testing.assert_array_equal(model.predict(X), before)


# Types of columns.


def test_inputs_that_do_not_matter_get_small_gammas(rng):
    X = rng.normal(size=(1000, 8))
    X[:, 6] *= 1000
    model = KernelMachineRegressor(**BINS).fit(X, np.sin(2 * X[:, 1]) + X[:, 4])
    shares = model.feature_relevances_
    np.testing.assert_allclose(shares.sum(), 1.0)
    assert set(np.argsort(shares)[-2:]) == {1, 4}
    assert np.delete(shares, [1, 4]).max() < 0.15 * shares[[1, 4]].min()
    assert model.gamma_[6] < 1e-3 * model.gamma_[4]
    assert len(model.length_scale_gammas_) == len(model.length_scale_errors_)
    assert model.length_scale_errors_.min() < model.length_scale_errors_[0] / 2


@pytest.mark.parametrize("features", ["auto", "exact", "binning", "fourier"])
def test_inputs_that_are_all_constant(features):
    """Predictions are the mean of the targets, for all features."""
    model = KernelMachineRegressor(features=features, random_state=0).fit(np.ones((60, 3)), np.arange(60.0))
    np.testing.assert_allclose(model.predict(np.ones((2, 3))), 29.5)


def test_constant_and_duplicate_columns_are_harmless(table):
    X, y, _ = table
    plain = KernelMachineRegressor(**BINS).fit(X[:300], y[:300]).score(X[300:], y[300:])
    wide = np.column_stack([X, np.full(400, 7.0), np.zeros(400), X[:, 0]])
    model = KernelMachineRegressor(**BINS).fit(wide[:300], y[:300])
    assert model.score(wide[300:], y[300:]) > plain - 0.03
    np.testing.assert_array_equal(model.feature_relevances_[4:6], 0.0)


@pytest.mark.hard
@pytest.mark.parametrize("features", ["exact", "binning"])
def test_categories_of_noise_cost_little(rng, features):
    """On average over some tables, because results of the search differ between draws."""
    losses = []
    for seed in range(6):
        X, y = make_friedman1(1400, noise=1.0, random_state=seed)
        frame = pd.DataFrame(X).rename(columns=str)
        model = KernelMachineRegressor(features=features, random_state=0)
        plain = model.fit(frame[:600], y[:600]).score(frame[600:], y[600:])
        noisy = frame.assign(noise=rng.integers(0, 100, 1400).astype(str))
        losses.append(plain - model.fit(noisy[:600], y[:600]).score(noisy[600:], y[600:]))
    standard_error = np.std(losses, ddof=1) / np.sqrt(len(losses))
    assert np.mean(losses) < 0.01 + 2 * standard_error


@pytest.mark.parametrize("features", hard("exact", "binning"))
def test_ids_cost_little(features):
    X, y = make_friedman1(1400, noise=1.0, random_state=2)
    frame = pd.DataFrame(X).rename(columns=str)
    model = KernelMachineRegressor(features=features, random_state=0)
    plain = model.fit(frame[:600], y[:600]).score(frame[600:], y[600:])
    ids = frame.assign(id=[f"id{k}" for k in range(1400)])
    with pytest.warns(UserWarning, match="Column 'id' of X has .* different values in .* rows, too many to generalize"):
        model.fit(ids[:600], y[:600])
    assert model.feature_relevances_[-1] == 0
    assert model.score(ids[600:], y[600:]) > plain - 0.01


@pytest.mark.parametrize("features", ["exact", "binning"])
def test_a_table_of_ids_alone(rng, features):
    ids, y = pd.DataFrame({"id": [f"id{k}" for k in range(100)]}), rng.normal(size=100)
    with pytest.warns(UserWarning, match="too many to generalize, so it is ignored"):
        model = KernelMachineRegressor(features=features, random_state=0).fit(ids, y)
    np.testing.assert_allclose(model.predict(ids), y.mean(), atol=0.01)


@pytest.mark.parametrize("features", ["exact", *hard("binning")])
def test_dates(rng, features):
    """A season, a weekday and an hour; only the first days of the next year are predicted."""
    when = pd.Series(pd.date_range("2021-01-01", periods=1500, freq="17h"))
    frame = pd.DataFrame({"x": rng.normal(size=1500), "when": when})
    y = (
        np.sin(when.dt.dayofyear / 58)
        + (when.dt.dayofweek > 4)
        + 0.5 * (when.dt.hour > 12)
        + 0.1 * rng.normal(size=1500)
    )
    model = KernelMachineRegressor(features=features, random_state=0).fit(frame[:1200], y[:1200])
    assert model.score(frame[1200:], y[1200:]) > 0.7
    assert model.feature_relevances_[1] > 0.9
    assert model.gamma_.size == 5


def test_missing_numbers(table, rng):
    X, y, _ = table
    holes = X.copy()
    holes[rng.random(X.shape) < 0.05] = np.nan
    model = KernelMachineRegressor(**BINS).fit(holes[:300], y[:300])
    assert model.score(holes[300:], y[300:]) > 0.6
    assert model.gamma_.size == 8
    assert model.feature_relevances_.size == 4
    # Missing values are informative here.
    told = KernelMachineRegressor(**BINS).fit(holes, np.isnan(holes[:, 2]) * 1.0)
    assert told.score(holes, np.isnan(holes[:, 2]) * 1.0) > 0.9
    # In a column without missing values in fit, they are replaced by the median.
    model = KernelMachineRegressor(**FIXED).fit(X, y)
    filled, gap = X[:3].copy(), X[:3].copy()
    gap[:, 1], filled[:, 1] = np.nan, np.median(X[:, 1])
    np.testing.assert_array_equal(model.predict(gap), model.predict(filled))


def test_a_column_that_is_all_missing_is_ignored(table):
    X, y, _ = table
    empty = np.column_stack([X, np.full(400, np.nan)])
    model = KernelMachineRegressor(**BINS).fit(empty, y)
    assert model.feature_relevances_[4] == 0.0
    assert model.score(empty, y) > 0.9
    np.testing.assert_array_equal(model.predict(np.column_stack([X, np.ones(400)])), model.predict(empty))


@pytest.mark.parametrize("kind", ["polars", *hard("pandas", "arrow")])
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

    model = KernelMachineRegressor(**BINS).fit(convert(frame[:350]), y[:350])
    assert list(model.feature_names_in_) == ["x", "city", "size"]
    assert model.score(convert(frame[350:]), y[350:]) > 0.9
    assert model.feature_relevances_[2] < 0.1
    unseen = frame[350:].assign(city="Atlantis")
    assert np.isfinite(model.predict(convert(unseen))).all()
    for wrong in (frame.rename(columns={"city": "town"}), frame[["city", "x", "size"]]):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(convert(wrong))
    with pytest.raises(ValueError, match="feature"):
        model.predict(convert(frame[["x", "city"]]))


def test_categories_that_are_numbers(rng):
    X = np.column_stack([rng.integers(12, size=600), rng.normal(size=600)])
    effect = rng.normal(size=12)
    y = effect[X[:, 0].astype(int)] + 0.05 * rng.normal(size=600)
    model = KernelMachineRegressor(**BINS, categorical_features=[0]).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9
    with pytest.raises(ValueError, match="features='fourier' requires numeric inputs, and X has categories"):
        KernelMachineRegressor(features="fourier", categorical_features=[0]).fit(X, y)


def test_layouts_of_the_same_table_give_the_same_model(table):
    X, y, _ = table
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
    expected = KernelMachineRegressor(**FIXED).fit(X, y).predict(X)
    for other in (X.astype(np.float64), np.asfortranarray(X), sparse.csr_array(X), pd.DataFrame(X)):
        model = KernelMachineRegressor(**FIXED).fit(other, y)
        np.testing.assert_array_equal(model.predict(other), expected)


# Targets and weights.


def test_several_targets(table):
    X, y, _ = table
    Y = np.column_stack([y, 1000 * X[:, 2] + 5, np.ones(400)])
    model = KernelMachineRegressor(**BINS).fit(X[:300], Y[:300])
    predictions = model.predict(X[300:])
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
    model = KernelMachineRegressor(**FIXED)
    expected = model.fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(X, factor * (y + 3)).predict(X) / factor - 3, expected, atol=1e-6)


def test_a_constant_target(table):
    X = table[0]
    model = KernelMachineRegressor(**BINS).fit(X, np.full(400, 3.0))
    np.testing.assert_array_equal(model.predict(X), 3.0)


def test_sample_weights(table):
    """Rows of weight zero have no influence, and heavy rows prevail over contradicting ones."""
    X, y, labels = table
    weights = np.tile([0.0, 1.0], 200)
    contradicted = np.where(weights > 0, y, -y)
    model = KernelMachineRegressor(**BINS).fit(X, contradicted, sample_weight=weights)
    assert model.score(X[::2], y[::2]) > 0.7
    assert KernelMachineRegressor(**BINS).fit(X, contradicted).score(X[::2], y[::2]) < 0.3
    alike = [KernelMachineRegressor(**FIXED).fit(X, y, sample_weight=w).predict(X) for w in (None, np.ones(400), 1.0)]
    np.testing.assert_array_equal(alike[1], alike[2])
    np.testing.assert_allclose(alike[0], alike[1], rtol=1e-9)
    flipped = np.where(weights > 0, labels, np.where(labels == "yes", "no", "yes"))
    model = KernelMachineClassifier(**BINS).fit(X, flipped, sample_weight=weights)
    assert model.score(X[::2], labels[::2]) > 0.8


@pytest.mark.parametrize("gamma", [None, "scale"])
@pytest.mark.parametrize("features", ["exact", "local", "binning", "fourier"])
def test_a_common_factor_of_the_weights_scales_only_the_penalty(table, features, gamma):
    X, y, _ = table
    weights = np.linspace(0.5, 1.5, 400)
    one, other = (
        KernelMachineRegressor(features=features, gamma=gamma, random_state=0).fit(X, y, sample_weight=weights * factor)
        for factor in (1.0, 2.0**-30)
    )
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-6, atol=1e-6)
    assert other.alpha_ == pytest.approx(one.alpha_ * 2.0**-30)


def test_class_weights(three):
    X, labels = three
    rare = (labels != "blue") | (np.arange(900) % 10 == 0)
    X, labels = X[rare], labels[rare]
    fits = {w: KernelMachineClassifier(**FIXED, class_weight=w).fit(X, labels) for w in (None, "balanced")}
    found = {w: np.mean(model.predict(X[labels == "blue"]) == "blue") for w, model in fits.items()}
    assert found["balanced"] > found[None] + 0.1
    weights = np.where(labels == "blue", 4.0, 1.0)
    by_class = KernelMachineClassifier(**FIXED, class_weight={"blue": 4.0, "red": 1.0, "green": 1.0})
    by_row = KernelMachineClassifier(**FIXED).fit(X, labels, sample_weight=weights)
    np.testing.assert_array_equal(by_class.fit(X, labels).predict_proba(X), by_row.predict_proba(X))
    np.testing.assert_allclose(
        by_class.fit(X, labels, sample_weight=np.full(len(X), 0.5)).decision_function(X),
        KernelMachineClassifier(**FIXED).fit(X, labels, sample_weight=0.5 * weights).decision_function(X),
    )


def test_balanced_classes_use_sample_weights(three):
    """Rows of weight 0 do not count, and a factor of the weights of a class cancels."""
    X, labels = three
    model = KernelMachineClassifier(**FIXED, class_weight="balanced")
    kept = (labels != "blue") | (np.arange(900) % 10 == 0)
    few = model.fit(X[kept], labels[kept]).decision_function(X)
    np.testing.assert_allclose(model.fit(X, labels, sample_weight=kept).decision_function(X), few, atol=5e-3)
    ridge = CGRidgeClassifier(class_weight="balanced", tol=1e-8)
    plain = ridge.fit(X, labels).decision_function(X)
    weights = np.where(labels == "red", 10.0, 1.0)
    weighted = ridge.fit(X, labels, sample_weight=weights / weights.mean()).decision_function(X)
    np.testing.assert_allclose(weighted, plain, atol=1e-6)


def test_probabilities(three, table, limits):
    limits(sample_grids=(5, 40), n_fourier=128)  # all steps
    for X, labels in (three, table[::2]):
        model = KernelMachineClassifier(**BINS).fit(X[:300], labels[:300])
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert p.min() >= 0
        np.testing.assert_array_equal(model.classes_, np.unique(labels))
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
        scores = model.decision_function(X)
        assert scores.shape == ((len(X), 3) if p.shape[1] == 3 else (len(X),))
        odds = scores if scores.ndim == 2 else np.column_stack([-scores, scores]) / 2
        np.testing.assert_allclose(softmax(odds, axis=1), p)
        np.testing.assert_allclose(odds.sum(axis=1), 0.0, atol=1e-12)
        raw = model._scores(X)
        raw = softmax(raw if raw.shape[1] == 3 else np.column_stack([-raw, raw]), axis=1)  # without calibration
        assert log_loss(labels[300:], p[300:]) < log_loss(labels[300:], raw[300:]) - 0.02
    np.testing.assert_array_equal(scores > 0, model.predict(X) == "yes")


@pytest.mark.parametrize("kind", [list, pd.Series, lambda labels: labels.astype(object)])
def test_labels_of_any_kind(table, kind):
    X, _, labels = table
    expected = KernelMachineClassifier(**FIXED).fit(X, labels).predict(X)
    np.testing.assert_array_equal(KernelMachineClassifier(**FIXED).fit(X, kind(labels)).predict(X), expected)
    numbers = KernelMachineClassifier(**FIXED).fit(X, labels == "yes")
    np.testing.assert_array_equal(numbers.predict(X), expected == "yes")


# Validation rows.


def test_scores_choose(table, monkeypatch):
    X, y, labels = table
    for scoring in ("neg_mean_absolute_error", lambda model, X, y: -np.abs(model.predict(X) - y).max()):
        model = KernelMachineRegressor(**with_options(BINS, max_grids=80), scoring=scoring).fit(X, y)
        assert model.score(X, y) > 0.9
    assert model.learning_curve_[0, 1] > 0.1  # the first and largest error, in units of y
    for scoring in ("roc_auc", "neg_log_loss"):
        model = KernelMachineClassifier(**with_options(BINS, max_grids=160), scoring=scoring).fit(X, labels)
        assert model.score(X, labels) > 0.9
    model = KernelMachineClassifier(**FIXED, scoring="accuracy", refit=False, cv=[(range(300), range(300, 400))])
    model.fit(X, labels)
    assert model.learning_curve_[-1, 1] == -model.score(X[300:], labels[300:])


@pytest.mark.parametrize(("features", "kernel"), [("exact", "rbf"), ("fourier", "auto"), *hard(("local", "laplacian"))])
def test_a_constant_in_a_score_changes_no_penalty(table, rng, features, kernel):
    X, y = table[0], table[1] + rng.normal(size=400)
    options = {"features": features, "kernel": kernel, "gamma": "scale", "random_state": 0}
    alphas = [
        KernelMachineRegressor(**options, scoring=lambda model, X, y, c=c: model.score(X, y) - c).fit(X, y).alpha_
        for c in (0.0, 10.0)
    ]
    assert alphas[0] == alphas[1]


def test_few_fourier_features_are_enough_for_a_positive_score(rng, limits, monkeypatch):
    limits(n_fourier=32)
    sizes, solver = [], "binfeat.models.solvers.random_features.FourierSolver._sized"
    sized = pkgutil.resolve_name(solver)
    monkeypatch.setattr(
        solver, lambda own, fourier, *given: sizes.append(fourier.n_components) or sized(own, fourier, *given)
    )
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=400)
    model = KernelMachineRegressor(features="fourier", gamma=0.05, scoring="r2", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert sizes == [32, 64]


@pytest.mark.parametrize("features", ["exact", *hard("local", "binning", "fourier")])
def test_scores_that_are_no_number(table, few_steps, features):
    X, y, labels = table
    first, last = np.arange(399), np.array([399])
    options = {"features": features, "random_state": 0}
    with pytest.raises(ValueError, match=r"scoring returned NaN for (1|399) validation rows, .* several classes"):
        KernelMachineRegressor(scoring=lambda model, X, y: np.nan, cv=[(first, last)], **options).fit(X, y)
    own = np.flatnonzero(labels == labels[0])[:20]
    with pytest.raises(ValueError, match="scoring returned NaN for 20 validation rows"):
        KernelMachineClassifier(scoring="roc_auc", cv=[(np.delete(np.arange(400), own), own)], **options).fit(X, labels)


@pytest.mark.parametrize("features", ["exact", *hard("local", "binning", "fourier")])
def test_scores_of_groups(table, few_steps, features):
    X, y, labels = table
    for model, own in (
        (KernelMachineRegressor(scoring="r2", features=features, random_state=0), y),
        (KernelMachineClassifier(scoring="roc_auc", features=features, random_state=0), labels),
    ):
        model.fit(X, own, groups=np.arange(400) // 8)
        error, standard_error = model.held_out_error_
        assert error < -0.5
        assert np.isnan(standard_error)


@pytest.mark.parametrize("kernel", [kernels.RBF(), kernels.Matern(2.5)], ids=repr)
def test_fourier_features_of_a_given_kernel(rng, kernel):
    """The model is near the exact one with the same kernel and length scales."""
    X = rng.normal(size=(500, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    options = {"kernel": kernel, "gamma": 0.5, "random_state": 0}
    waves, exact = (
        KernelMachineRegressor(features=kind, **options).fit(X[:400], y[:400]) for kind in ("fourier", "exact")
    )
    assert waves.kernel_ == exact.kernel_ == repr(kernel)
    np.testing.assert_allclose(waves.predict(X[400:]), exact.predict(X[400:]), atol=0.1 * y.std())
    assert waves.score(X[400:], y[400:]) > 0.98
