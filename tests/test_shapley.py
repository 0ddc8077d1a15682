"""Shapley values of kernel models: the sum over all subsets, properties, samples, units, errors."""

import math

import naive
import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks
from binfeat._engine import shapley as engine
from binfeat.kernels import Matern
from binfeat.models.served.shapley import gaussian_mixture

GIVEN = {"features": "exact", "kernel": "laplacian", "random_state": 0, "target_transform": None}


def drawn(rng, n_rows=300):
    X = rng.uniform(-1, 1, size=(n_rows, 4))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def smooth():
    """Return a model with a sum of kernels."""
    X, y = drawn(np.random.default_rng(2))
    return X, y, KernelMachineRegressor(random_state=0).fit(X, y)


@pytest.mark.engine
@pytest.mark.parametrize("squares", [False, True])
def test_products_are_those_of_all_subsets(squares, rng):
    d, n = 4, 9
    support, background = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(5, d)).astype(np.float32)
    support[:, 3], background[:, 3] = rng.integers(3, size=n), rng.integers(3, size=5)
    x, gamma = np.array([0.3, -0.2, 0.9, 1.0], np.float32), np.array([0.5, 0.0, 1.5, 0.8], np.float32)
    coef = rng.normal(size=(2, n))

    def factor(j, a, b):
        apart = float(a != b) if j == 3 else abs(float(a) - float(b)) ** (2 if squares else 1)
        return math.exp(-gamma[j] * apart)

    terms = np.ascontiguousarray(support.T), gamma, squares, np.arange(d) == 3, np.arange(d)
    means, values = np.empty((d, n), np.float32), np.zeros((d, 2))
    engine.mean_factors(background, *terms, means)
    nodes, weights = (part.astype(np.float32) for part in np.polynomial.legendre.leggauss(2))
    engine.product_values(x, *terms, means, coef, (nodes + 1) / 2, weights / 2, values)
    pairs = np.zeros((d, d, 2))
    engine.product_interactions(x, *terms, means, coef, (nodes + 1) / 2, weights / 2, pairs)
    for k in range(2):
        game = naive.product_game(x, support, coef[k], background, factor)
        np.testing.assert_allclose(values[:, k], naive.shapley_values(game, d), atol=2e-6)
        np.testing.assert_allclose(pairs[:, :, k], np.triu(naive.shapley_interactions(game, d)), atol=2e-6)


@pytest.mark.parametrize(("nu", "bound"), [(0.5, 1e-3), (1.5, 3e-4), (2.5, 3e-4)])
def test_matern_is_a_mixture(nu, bound):
    distances = np.append(np.linspace(0, 30, 3000), np.geomspace(1e-5, 0.1, 500))
    rates, shares = gaussian_mixture(Matern(nu))
    found = np.exp(-np.outer(distances**2, rates)) @ shares
    expected = Matern(nu)(distances[:, np.newaxis], np.zeros((1, 1)), gamma=1.0)[:, 0]
    np.testing.assert_allclose(found, expected, atol=bound)
    assert shares.sum() == pytest.approx(1)
    assert shares.min() > 0


def test_a_model_by_hand(rng):
    X, y = drawn(rng, 60)
    model = KernelMachineRegressor(**GIVEN, gamma=[0.5, 0.7, 0.4, 0.0], alpha=0.1).fit(X, y)
    background = X[:6]
    found = model.shapley_values(X[:3], background)
    function = model._fitted.function
    support = function.support.T * function.unit + function.center

    def factor(j, a, b):
        return math.exp(-model.gamma_[j] * abs(a - b))

    for row, values in zip(X[:3], found.values):
        game = naive.product_game(row, support, function.coef[0] * y.std(), background, factor)
        np.testing.assert_allclose(values, naive.shapley_values(game, 4), atol=1e-4)
        base = game(set()) + model.intercept_[0] * y.std() + y.mean()
        assert found.base_values[0] == pytest.approx(base, abs=1e-4)
    assert (found.values[:, 3] == 0).all()
    assert (found.standard_errors == 0).all()


@pytest.mark.parametrize(
    "given", [{"features": "exact"}, {"features": "local", "solver_params": {"cell_rows": 60, "n_trees": 2}}]
)
def test_interactions_of_models(given, rng):
    """Rows add up to the values; additive inputs have no interactions, multiplied inputs have the largest."""
    X = rng.uniform(-1, 1, size=(150, 3))
    given = {**GIVEN, **given, "gamma": 0.5, "alpha": 0.01}
    model = KernelMachineRegressor(**given).fit(X, 2 * X[:, 0] * X[:, 1] + X[:, 2])
    found = model.shapley_values(X[:20], X, interactions=True)
    np.testing.assert_allclose(found.interactions.sum(axis=2), found.values, atol=1e-9)
    np.testing.assert_allclose(found.interactions, found.interactions.transpose(0, 2, 1), atol=1e-12)
    sizes = np.abs(found.interactions).mean(axis=0)
    assert sizes[0, 1] > 3 * max(sizes[0, 2], sizes[1, 2])
    assert model.shapley_values(X[:2], X).interactions is None
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 2], [-0.3, 0.3])]
    of_classes = {name: value for name, value in given.items() if name != "target_transform"}
    found = KernelMachineClassifier(**of_classes).fit(X, labels).shapley_values(X[:4], X, interactions=True)
    assert found.interactions.shape == (4, 3, 3, 3)
    np.testing.assert_allclose(found.interactions.sum(axis=2), found.values, atol=1e-9)


def test_interactions_are_in_closed_form_only(rng):
    X, y = drawn(rng, 60)
    model = KernelMachineRegressor(
        features="binning", solver_params={"n_grids": 4}, gamma="scale", alpha=0.1, random_state=0
    ).fit(X, y)
    with pytest.raises(ValueError, match="Interactions require features_"):
        model.shapley_values(X[:3], X, interactions=True)


def test_values_add_up_to_predictions(smooth):
    X, _, model = smooth
    found = model.shapley_values(X[:40])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(X[:40]), atol=1e-8)
    assert found.feature_names == ["x0", "x1", "x2", "x3"]
    np.testing.assert_array_equal(found.data, X[:40])


def test_inputs_of_equal_parts_have_equal_values(rng):
    """Symmetry: swapping the first two inputs does not change y, and rows are pairs of this kind."""
    half = rng.uniform(-1, 1, size=(60, 3))
    X = np.vstack([half, half[:, [1, 0, 2]]])
    model = KernelMachineRegressor(**GIVEN, gamma=0.5, alpha=0.1).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    row = np.array([[0.4, 0.4, -0.3]])
    values = model.shapley_values(row, X).values[0]
    assert values[0] == pytest.approx(values[1], abs=1e-4)


def test_values_are_linear_in_the_targets(rng):
    X, y = drawn(rng, 100)
    given = {**GIVEN, "gamma": 0.5, "alpha": 0.1}
    other = X[:, 3] ** 2
    of_both, of_y, of_other = (
        KernelMachineRegressor(**given).fit(X, target).shapley_values(X[:9], X[:20]).values
        for target in (np.column_stack([2 * y + other, y]), y, other)
    )
    assert of_both.shape == (9, 4, 2)
    np.testing.assert_allclose(of_both[:, :, 0], 2 * of_y + of_other, atol=1e-4)
    np.testing.assert_allclose(of_both[:, :, 1], of_y, atol=1e-4)


def test_samples_are_near_the_closed_form(smooth, monkeypatch):
    X, _, model = smooth
    exact = model.shapley_values(X[:30])
    monkeypatch.setattr("binfeat.models.served.shapley.is_closed", lambda function: False)
    sampled = model.shapley_values(X[:30], n_permutations=60)
    away = (sampled.values - exact.values) / np.maximum(sampled.standard_errors, 1e-6)
    # 120 Student variates with 59 degrees of freedom have a mean square of 1.035; rows share permutations.
    assert 0.6 < np.mean(away**2) < 1.6
    np.testing.assert_allclose(sampled.values.sum(axis=1) + sampled.base_values, model.predict(X[:30]))
    assert np.isnan(model.shapley_values(X[:3], n_permutations=1).standard_errors).all()


@pytest.mark.parametrize(
    "given",
    [
        {"features": "local", "solver_params": {"cell_rows": 80}},
        {"solver_params": {"n_grids": 40}},
        {"features": "fourier"},
    ],
)
def test_all_kinds_of_models_add_up(given, rng, few_steps):
    X, y = drawn(rng)
    model = KernelMachineRegressor(random_state=0, **given).fit(X, y)
    found = model.shapley_values(X[:20], n_permutations=4)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(X[:20]), atol=1e-6)
    assert (found.standard_errors > 0).any() == (given.get("features") != "local")


def test_a_linear_map_is_sampled(rng):
    X = rng.normal(size=(500, 3))
    y = np.sin(2 * (X[:, 0] + X[:, 1])) + 0.05 * rng.normal(size=500)
    model = KernelMachineRegressor(random_state=0).fit(X, y)
    assert model.linear_map_ is not None
    found = model.shapley_values(X[:20])
    assert found.standard_errors.max() > 0
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(X[:20]))


def test_a_column_of_the_table_is_one_input(rng):
    X, y = drawn(rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, size=300), unit="D")
    frame["kind"] = pd.Categorical(rng.choice(["u", "v"], size=300))
    frame.loc[::7, "a"] = np.nan
    model = KernelMachineRegressor(random_state=0).fit(frame, y + (frame["kind"] == "u"))
    found = model.shapley_values(frame[:25])
    assert found.values.shape == (25, 6)
    assert found.feature_names == [*"abcd", "when", "kind"]
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(frame[:25]), atol=1e-6)
    means = np.abs(found.values).mean(axis=0)
    assert means[5] > 5 * means[4]


def test_classifiers_are_explained_by_raw_scores(rng):
    X, y = drawn(rng)
    three = KernelMachineClassifier(random_state=0).fit(X, np.digitize(y, [-0.3, 0.3]))
    found = three.shapley_values(X[:10])
    assert found.values.shape == (10, 4, 3)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, three._scores(X[:10]), atol=1e-6)
    two = KernelMachineClassifier(random_state=0).fit(X, y > 0)
    values = two.shapley_values(X[:100]).values
    assert values.shape == (100, 4)
    assert stats.spearmanr(values[:, 0], np.sin(3 * X[:100, 0]))[0] > 0.8


def test_logarithms_are_explained_as_such(rng):
    X, y = drawn(rng)
    model = KernelMachineRegressor(random_state=0, loss="gamma").fit(X, np.exp(y))
    found = model.shapley_values(X[:10])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, np.log(model.predict(X[:10])), atol=1e-6)


def test_sparse_rows_and_threads_give_the_same(smooth):
    X, y, model = smooth
    expected = model.shapley_values(X[:20])
    np.testing.assert_array_equal(model.shapley_values(sparse.csr_array(X[:20])).values, expected.values)
    alone = KernelMachineRegressor(random_state=0, n_jobs=1).fit(X, y)
    np.testing.assert_allclose(alone.shapley_values(X[:20]).values, expected.values, atol=1e-5)


def test_explanations_of_the_shap_package(smooth):
    shap, plt = pytest.importorskip("shap"), pytest.importorskip("matplotlib.pyplot")
    X, _, model = smooth
    own = model.shapley_values(X[:10])
    explanation = shap.Explanation(own.values, own.base_values, own.data, feature_names=own.feature_names)
    assert explanation.shape == (10, 4)
    np.testing.assert_allclose(explanation.abs.mean(0).values, np.abs(own.values).mean(axis=0))
    swarm = shap.plots.beeswarm(explanation, show=False, plot_size=None)
    assert sorted(label.get_text() for label in swarm.get_yticklabels()) == sorted(own.feature_names)
    plt.close("all")
    waterfall = shap.plots.waterfall(explanation[0], show=False)
    shown = " ".join(text.get_text() for text in waterfall.figure.findobj(plt.Text))
    for value in (model.predict(X[:1])[0], own.base_values[0]):
        assert f"{value:.3f}".rstrip("0").replace("-", "\N{MINUS SIGN}") in shown
    plt.close("all")


def test_explanations_of_dates_and_categories(rng):
    shap, plt, pd = (pytest.importorskip(name) for name in ("shap", "matplotlib.pyplot", "pandas"))
    frame = pd.DataFrame({"miles": rng.normal(size=200), "carrier": pd.Categorical(rng.choice(list("abc"), size=200))})
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(700, size=200), unit="D")
    y = frame["miles"] + (frame["carrier"] == "b") + frame["day"].dt.month / 12
    own = KernelMachineRegressor(random_state=0).fit(frame, y).shapley_values(frame[:20])
    explanation = shap.Explanation(own.values, own.base_values, own.data, feature_names=own.feature_names)
    swarm = shap.plots.beeswarm(explanation, show=False, plot_size=None)
    assert sorted(label.get_text() for label in swarm.get_yticklabels()) == ["carrier", "day", "miles"]
    shap.plots.waterfall(explanation[0], show=False)
    plt.close("all")


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_data_with_dates_keep_dates_and_numbers(package, rng):
    module = pytest.importorskip(package)
    days = np.datetime64("2026-01-01", "us") + 10**6 * rng.integers(10**6, size=60)
    columns = {"when": days, "count": rng.integers(9, size=60), "size": rng.normal(size=60)}
    X = getattr(module, "table" if package == "pyarrow" else "DataFrame")(columns)
    found = KernelMachineRegressor(max_seconds=1, random_state=0).fit(X, columns["size"]).shapley_values(X)
    assert found.data.tolist() == [list(row) for row in zip(*(column.tolist() for column in columns.values()))]


@pytest.mark.parametrize("others", [[], ["number"]])
def test_missing_values_of_arrow_dictionaries_are_shown_as_missing(others):
    pa = pytest.importorskip("pyarrow")
    words = pa.array([None if i % 5 == 0 else "ab"[i % 2] for i in range(60)]).dictionary_encode()
    table = pa.table({"word": words, "again": words, "number": np.arange(60.0)}).select(["word", "again", *others])
    found = KernelMachineRegressor(random_state=0).fit(table, np.arange(60) % 7).shapley_values(table)
    assert found.data.tolist() == [list(row.values()) for row in table.to_pylist()]


def test_bad_arguments(smooth, rng, few_steps):
    X, y, model = smooth
    with pytest.raises(ValueError, match="must be rows in memory; got a source"):
        model.shapley_values(blocks(X, y))
    with pytest.raises(ValueError, match="n_permutations must be at least 1"):
        model.shapley_values(X, n_permutations=0)
    with pytest.raises(ValueError, match="features"):
        model.shapley_values(X, X[:, :2])
    bins = KernelMachineClassifier(solver_params={"n_grids": 20}, random_state=0).fit(X, y > 0)
    with pytest.raises(ValueError, match=r"stores no training rows. Pass rows as background"):
        bins.shapley_values(X[:2])
    assert bins.shapley_values(X[:2], X[:50], n_permutations=2).values.shape == (2, 4)
