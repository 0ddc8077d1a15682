"""Effects of levels shared by all cells of a local model."""

import pickle

import naive
import numpy as np
import pytest
from kernel_models import assert_same_state, with_options
from panels import EFFECTS, GAMMA, TOLERANCE, laplacian, panel, splits_of, table, twin

import binfeat
from binfeat import KernelMachineClassifier, KernelMachineRegressor
from binfeat.length_scales import leave_one_out
from binfeat.models.kernel_algebra import level_effects
from binfeat.models.solvers import levels

pd = pytest.importorskip("pandas")
sio = pytest.importorskip("skops.io")

GIVEN = {
    "features": "local",
    "solver_params": {"cell_rows": 60, "n_trees": 2},
    "kernel": "laplacian",
    "gamma": GAMMA,
    "random_state": 0,
}


@pytest.fixture(autouse=True)
def short(limits):
    """Shorten searches for penalties."""
    limits(n_steps=6)


@pytest.fixture(scope="module")
def fitted():
    """Return a model with effects, and rows with new levels."""
    numbers, codes, y = panel(420)
    codes[400:410, 0] = 100  # not in fit
    rows = table(numbers, codes)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3, on_unseen="ignore").fit(rows[:400], y[:400])
    assert model._local["level_inputs"].tolist() == [2, 3]
    return model, rows, np.column_stack([numbers, codes]), y


def test_the_model_is_that_of_dense_matrices(fitted):
    model, rows, X, y = fitted
    mean, std, predictions, residuals, _ = twin(model, X, y, 400)
    np.testing.assert_allclose(model.predict(rows), mean + std * predictions[:, 0], atol=TOLERANCE)
    np.testing.assert_allclose(model.held_out_error_[0], np.mean(residuals**2), rtol=1e-3)


def test_weights_of_rows(fitted):
    _, rows, X, y = fitted
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=400)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3, on_unseen="ignore")
    model.fit(rows[:400], y[:400], sample_weight=weights)
    mean, std, predictions, residuals, _ = twin(model, X, y, 400, weights)
    np.testing.assert_allclose(model.predict(rows), mean + std * predictions[:, 0], atol=TOLERANCE)
    own = np.average(residuals[:, 0] ** 2, weights=weights)
    np.testing.assert_allclose(model.held_out_error_[0], own, rtol=1e-3)


def test_leave_one_out_residuals_of_the_first_tree_are_those_of_refits(fitted):
    model, _, X, y = fitted
    first = splits_of(model)[:1]
    mean, std, _, residuals, _ = twin(model, X, y, 400, trees=first)
    Y, scaled = ((y[:400] - mean) / std).reshape(-1, 1), model._fitted.rows(model, fitted[1])[:400]
    own = first, model._local["level_variances"], float(model._local["alpha"])
    for i in (0, 17, 399):
        others = np.arange(400) != i
        known = scaled[others], Y[others], scaled[[i]], laplacian, own[2], own[0]
        left, *_ = naive.local_model_with_levels(*known, X[:400, 2:][others], X[[i], 2:], own[1])
        np.testing.assert_allclose(Y[i] - left[0], residuals[i], atol=1e-6)


def test_standard_deviations_are_exact_and_larger_for_new_levels(fitted):
    model, rows, X, y = fitted
    _, std, _, _, variances = twin(model, X, y, 400)
    _, deviations = model.predict(rows, return_std=True)
    noise = model._held_out["noise"][0]
    np.testing.assert_allclose(deviations, np.sqrt(noise * variances) * std, rtol=1e-3)
    assert deviations[400:410].min() > 1.2 * deviations[:400].max()


def test_each_cell_is_factorized_once_even_if_its_factor_is_not_kept(fitted, monkeypatch):
    model, rows, _, _ = fitted
    kind = type(model._fitted.function.cell(0))
    made, real = [], kind.inverse_root
    monkeypatch.setattr("binfeat.models.fitted.local._KEPT", 0)
    monkeypatch.setattr(kind, "inverse_root", lambda *arguments: made.append(arguments) or real(*arguments))
    pickle.loads(pickle.dumps(model)).predict(rows, return_std=True)
    assert len(made) == 2 * len(np.unique(model.apply(rows)[:, 0]))  # also for the covariance of the effects


def test_samples_have_the_standard_deviations(fitted):
    model, rows, X, y = fitted
    _, std, _, _, variances = twin(model, X, y, 400)
    samples = model.sample_y(rows[390:], 4000)
    expected = np.sqrt(model._held_out["noise"][0] * variances[390:]) * std
    np.testing.assert_allclose(samples.std(axis=1), expected, rtol=0.08)
    same = X[390:, 2:3] == X[390:, 2]
    correlations = np.corrcoef(samples)
    known = same & (X[390:, 2] != 100)
    assert correlations[known & ~np.eye(30, dtype=bool)].mean() > correlations[~same].mean() + 0.1


def test_shapley_values_add_up_and_have_the_effects(fitted):
    """The model has one cell, because base values of a local model are means over the row's cells."""
    _, rows, _, y = fitted
    options = {**with_options(GIVEN, cell_rows=400, n_trees=1), "alpha": 0.3, "on_unseen": "ignore"}
    model = KernelMachineRegressor(**options).fit(rows[:400], y[:400])
    assert model._local["level_inputs"].size
    values = model.shapley_values(rows[395:405], background=rows[:50], interactions=True)
    np.testing.assert_allclose(values.values.sum(axis=1) + values.base_values, model.predict(rows[395:405]))
    np.testing.assert_allclose(values.interactions.sum(axis=2), values.values, atol=1e-6)
    sampled = sampled_values(model, rows[395:405], rows[:50])
    np.testing.assert_allclose(values.values, sampled, atol=0.1)


def sampled_values(model, rows, background):
    """Return Shapley values by permutations."""
    from binfeat.models.served import shapley

    fitted = model._fitted
    X, known = (fitted.rows(model, part) for part in (rows, background))
    values, *_ = shapley.in_units_of(fitted.targets, shapley._sampled(fitted, X, known, 400, 0, 1))
    return values[:, :, 0]


def test_importances_are_rises_on_new_rows():
    numbers, codes, y = panel(1400)
    rows = table(numbers, codes)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows[:700], y[:700])
    assert model._local["level_inputs"].size
    from sklearn.inspection import permutation_importance

    rises = permutation_importance(model, rows[700:], y[700:], scoring="neg_mean_squared_error", n_repeats=20)
    expected = np.sqrt(np.maximum(rises.importances_mean, 0)) / y[:700].std()
    np.testing.assert_allclose(model.feature_importances_, expected, atol=0.12)


@pytest.mark.parametrize("compact", [False, True])
def test_files_and_compact_models_predict_the_same(fitted, tmp_path, compact):
    model, rows, _, _ = fitted
    model = model.compact() if compact else model
    sio.dump(model, tmp_path / "model.skops")
    loaded = binfeat.load(tmp_path / "model.skops")
    for one, other in zip(model.predict(rows, return_std=True), loaded.predict(rows, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_onnx_model_predicts_the_same():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    numbers, codes, y = panel(420)
    codes[400:410, 0] = 100  # not in fit
    X = np.column_stack([numbers, codes])
    options = {**GIVEN, "alpha": 0.3, "categorical_features": [2, 3], "on_unseen": "ignore"}
    model = KernelMachineRegressor(**options).fit(X[:400], y[:400])
    assert model._local["level_inputs"].tolist() == [2, 3]
    session = runtime.InferenceSession(model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(["predictions"], {"X": X.astype(float)})
    np.testing.assert_allclose(found, model.predict(X), atol=1e-4)


def test_one_row_alone_is_predicted_as_in_a_batch(fitted):
    model, rows, _, _ = fitted
    alone = np.concatenate([model.predict(rows[k : k + 1]) for k in range(395, 405)])
    np.testing.assert_array_equal(alone, model.predict(rows)[395:405])


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("level_inputs", lambda a: a - 1, "level_inputs should be numbers of categorical inputs"),
        ("level_starts", lambda a: a[::-1].copy(), "level_starts should increase"),
        ("level_columns", lambda a: np.zeros_like(a), "level_columns should be -1, or each number below"),
        ("level_variances", lambda a: -a, "level_variances"),
        ("level_weights", lambda a: a[:, :-1].copy(), "level_columns should be -1, or each number below"),
        ("level_weights", lambda a: None, "lacks"),
    ],
)
def test_damaged_effects_are_refused(fitted, name, change, words):
    model, state = fitted[0], fitted[0].__getstate__()
    arrays = dict(model._local)
    arrays[name] = change(arrays[name])
    if arrays[name] is None:
        del arrays[name]
    with pytest.raises(ValueError, match=words):
        type(model).__new__(type(model)).__setstate__({**state, "_local": arrays})


@pytest.mark.parametrize("value", [[], np.empty(0), np.empty((0, 1), np.int32)])
def test_damaged_empty_effects_are_refused(fitted, value):
    _, rows, _, y = fitted
    plain = KernelMachineRegressor(**{**GIVEN, "gamma": GAMMA[:2]}, alpha=0.3).fit(rows[["x", "z"]][:400], y[:400])
    state = {**plain.__getstate__(), "_local": {**plain._local, "level_inputs": value}}
    with pytest.raises(ValueError, match="level_inputs should be"):
        type(plain).__new__(type(plain)).__setstate__(state)


def test_files_without_effects_load(fitted):
    _, rows, _, y = fitted
    plain = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows[["x", "z"]].assign(a=0.0, b=1.0)[:400], y[:400])
    state = plain.__getstate__()
    arrays = {name: array for name, array in plain._local.items() if not name.startswith("level_")}
    older = type(plain).__new__(type(plain))
    older.__setstate__({**state, "_local": arrays})
    new = rows[["x", "z"]].assign(a=0.0, b=1.0)
    np.testing.assert_array_equal(older.predict(new), plain.predict(new))


def test_threads_and_repeats_change_nothing():
    numbers, codes, y = panel(400)
    rows = table(numbers, codes)
    one, two, again = (KernelMachineRegressor(**GIVEN, n_jobs=n).fit(rows, y) for n in (1, 2, 2))
    assert one._local["level_inputs"].size
    assert_same_state(one, two)
    assert_same_state(two, again)


def test_cells_that_are_not_kept_are_computed_again(monkeypatch):
    numbers, codes, y = panel(400)
    rows = table(numbers, codes)
    kept = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows, y)
    monkeypatch.setattr(levels.LevelSolver, "kept_bytes", 30_000)
    assert_same_state(kept, KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows, y))


# When effects are used.


@pytest.mark.hard
def test_additive_levels_in_many_cells_are_learned(limits):
    """Kernels and penalty are learned, too; the error is relative to the standard deviation of noise-free targets."""
    limits(n_steps=15)
    sizes = (150,)
    numbers, codes, y = panel(2400, sizes=sizes)
    rows, exact = table(numbers, codes), noise_free(2400, sizes)
    options = {
        "features": "local",
        "kernel": "rbf",
        "solver_params": {"cell_rows": 200, "n_trees": 1},
        "random_state": 0,
    }
    options |= {"on_unseen": "ignore"}
    model = KernelMachineRegressor(**options).fit(rows[:1200], y[:1200])
    limits(n_steps=15, without=EFFECTS)
    plain = KernelMachineRegressor(**options).fit(rows[:1200], y[:1200])
    assert "additive effects, share" in model.summary()
    assert "additive effects, share" not in plain.summary()
    errors = [np.std(own.predict(rows[1200:]) - exact[1200:]) / exact.std() for own in (model, plain)]
    assert errors[0] < min(0.2, errors[1])
    assert model.held_out_error_[0] < plain.held_out_error_[0]


def test_effects_replace_categories_with_many_levels_in_the_kernel(limits):
    """Categories with few levels stay in the kernel; cells can be smaller."""
    limits(n_steps=6, cell_rows=400)
    numbers, codes, y = panel(1500, sizes=(60, 4))
    options = {"features": "local", "kernel": "laplacian", "random_state": 0}
    model = KernelMachineRegressor(**options).fit(table(numbers, codes), y)
    assert model._local["level_inputs"].tolist() == [2, 3]
    gammas = model._local["gammas"]
    assert (gammas[:, 2] == 0).all()
    assert (gammas[:, [0, 1, 3]] > 0).any(axis=0).all()
    assert np.diff(model._local["starts"]).max() <= 200


def noise_free(n_rows, sizes, seed=0):
    """Return the targets of `panel` without noise."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-1, 1, (n_rows, 2))
    codes = np.column_stack([rng.integers(n, size=n_rows) for n in sizes])
    f = np.sin(3 * numbers[:, 0])
    rng.normal(size=(n_rows, 1))
    for n, own in zip(sizes, codes.T, strict=True):
        f = f + rng.normal(size=(n, 1))[own, 0]
    return f


@pytest.mark.parametrize("kind", ["numbers", "irrelevant levels", "few levels"])
def test_models_that_gain_nothing_are_as_without_effects(limits, kind):
    """Models are bitwise equal: the search has no side effects."""
    numbers, codes, y = panel(400, sizes=(40,))
    rng = np.random.default_rng(5)
    labels = {"numbers": codes[:, 0], "irrelevant levels": rng.integers(40, size=400), "few levels": codes[:, 0] % 4}
    rows = table(numbers, labels[kind][:, np.newaxis])
    rows = rows[["x", "z"]].assign(c=codes[:, 0] + 0.5) if kind == "numbers" else rows
    y = np.sin(3 * numbers[:, 0]) + 0.3 * rng.normal(size=400) if kind == "irrelevant levels" else y
    options = {**GIVEN, "gamma": GAMMA[:3], "alpha": 0.3}
    model = KernelMachineRegressor(**options).fit(rows, y)
    limits(without=EFFECTS)
    assert_same_state(model, KernelMachineRegressor(**options).fit(rows, y))
    assert not model._local["level_inputs"].size


def test_effects_that_the_first_tree_does_not_gain_by_are_left_out(limits, monkeypatch):
    numbers, codes, y = panel(400)
    rows = table(numbers, codes)
    monkeypatch.setattr("binfeat.models.solvers.local.LocalSolver.gain", 1.0)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows, y)
    limits(without=EFFECTS)
    plain = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows, y)
    assert not model._local["level_inputs"].size
    np.testing.assert_array_equal(model.predict(rows), plain.predict(rows))


def test_classes_and_several_targets():
    numbers, codes, Y = panel(500, n_targets=3)
    rows = table(numbers, codes)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows, Y)
    assert model._local["level_weights"].shape == (3, 45)
    labels = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    classifier = KernelMachineClassifier(**GIVEN, alpha=0.3).fit(rows, labels)
    assert classifier._local["level_weights"].shape == (3, 45)
    assert classifier.score(rows, labels) > 0.7


def test_losses_groups_and_validation_sets_go_without():
    numbers, codes, y = panel(400)
    rows, groups = table(numbers, codes), codes[:, 1]
    options = {**GIVEN, "alpha": 0.3}
    models = [
        KernelMachineRegressor(**options).fit(rows, y, groups=groups),
        KernelMachineRegressor(**options, cv=[(np.arange(300), np.arange(300, 400))]).fit(rows, y),
        KernelMachineRegressor(**options, loss="poisson").fit(rows, np.exp(y / 2).round()),
        KernelMachineClassifier(**options, loss="log").fit(rows, y > 0),
    ]
    assert not any(own._local["level_inputs"].size for own in models)


def test_a_warm_start_keeps_the_variances():
    numbers, codes, y = panel(800)
    rows = table(numbers, codes)
    model = KernelMachineRegressor(**{**GIVEN, "warm_start": True}).fit(rows[:600], y[:600])
    variances = model._local["level_variances"]
    assert variances.size == 2
    model.fit(rows, y)
    np.testing.assert_array_equal(model._local["level_variances"], variances)


def test_a_warm_start_has_effects_of_new_levels():
    numbers, codes, y = panel(800)
    rows, few = table(numbers, codes), codes[:, 0] % 3 > 0
    model = KernelMachineRegressor(**{**GIVEN, "warm_start": True}).fit(rows[few], y[few])
    n_columns = model._local["level_columns"].size
    assert not model.fit(rows, y).check(rows)
    assert model._local["level_columns"].size == n_columns + np.unique(codes[~few, 0]).size


def test_blocks_are_as_rows_in_memory():
    numbers, codes, y = panel(400)
    rows = table(numbers, codes)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows, y)
    blocks = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(
        binfeat.blocks([(rows[:150], y[:150]), (rows[150:], y[150:])])
    )
    assert blocks._local["level_inputs"].size
    np.testing.assert_allclose(blocks.predict(rows), model.predict(rows), atol=1e-3)


def test_too_many_levels_keep_the_most_frequent(monkeypatch):
    monkeypatch.setattr(levels.LevelSearch, "most_columns", 30)
    numbers, codes, y = panel(600)
    rows = table(numbers, codes)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows, y)
    columns = model._local["level_columns"]
    assert columns.size == 45
    kept = columns != level_effects.NO_COLUMN
    assert kept.sum() == 30
    counts = np.concatenate([np.bincount(own) for own in codes.T])
    assert counts[kept].min() >= counts[~kept].max()


def test_a_memory_limit_reduces_the_levels(monkeypatch):
    numbers, codes, y = panel(600)
    rows = table(numbers, codes)
    n_columns = []
    for n_bytes in (None, 160 * 30**2, 1000):
        monkeypatch.setattr(levels, "fit_bytes", lambda _, n_bytes=n_bytes: n_bytes or 10**9)
        model = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(rows, y)
        n_columns.append(model._local["level_weights"].size)
    assert n_columns == [45, 30, 0]


def test_rows_that_do_not_differ_go_without(rng):
    """There are more equal rows than a cell can have."""
    numbers, codes, y = panel(300)
    numbers[:100], codes[:100] = numbers[0], codes[0]
    weights = rng.uniform(0.5, 2.0, 300)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3)
    model.fit(table(numbers, codes), y, sample_weight=weights)
    assert not model._local["level_inputs"].size


def test_choices_by_some_levels_of_the_largest_category(monkeypatch):
    monkeypatch.setattr(levels.LevelSearch, "tried_columns", 25)
    numbers, codes, y = panel(800)
    model = KernelMachineRegressor(**GIVEN, alpha=0.3).fit(table(numbers, codes), y)
    assert model._local["level_weights"].shape[1] == 45


# Parts of the algorithm.


def test_columns_of_rows():
    columns = level_effects.LevelColumns.of_counts(np.array([1, 2]), [np.array([3, 0, 5]), np.array([2, 2])], 3)
    assert columns.level_columns.tolist() == [0, level_effects.NO_COLUMN, 1, 2, level_effects.NO_COLUMN]
    assert (columns.n_columns, columns.groups.tolist()) == (3, [0, 0, 1])
    values = np.array([[9.0, 9.0, 9.0], [0, 2, 7], [1, 0, 2]])
    assert columns.of_rows(values).tolist() == [[0, 1, -1], [-1, 2, -1]]
    assert columns.share == 2 / 3


def test_variances_are_found(rng):
    """They equal those of simulated effects, by the equations of uncorrelated rows."""
    from scipy import sparse

    drawn = np.array([rng.integers(200, size=1500), 200 + rng.integers(100, size=1500)])
    effects = np.append(rng.normal(size=200) * np.sqrt(0.5), rng.normal(size=100) * np.sqrt(2.0))
    K = np.eye(1500, dtype=np.float32)  # variance 1, plus noise of 0.1
    y = effects[drawn].sum(axis=0) + np.sqrt(1.1) * rng.normal(size=1500)
    part = level_effects.CellPart.of(K, 0.1, None, y.astype(np.float32)[:, np.newaxis], drawn)
    equations = level_effects.LevelEquations(300, 1)
    equations.add(part)
    groups = np.repeat([0, 1], [200, 100])
    found = equations.likeliest_variances(groups, np.array([0.3, 0.3]))
    np.testing.assert_allclose(found, [0.5, 2.0], rtol=0.3)
    assert sparse.issparse(level_effects.one_hot(drawn)[1])


def test_equations_that_rounding_makes_indefinite_have_a_solution():
    """Without noise, 1 / variance is below the rounding error of the products, here of equal columns of levels."""
    product = np.full((3, 3), 1e9, np.float32)
    product[0, 0] -= 1e3
    assert np.linalg.eigvalsh(product).min() < 0
    equations = level_effects.LevelEquations(3, 1)
    equations.add_product(np.arange(3), product)
    equations._sums[:] = 1e9
    weights, inverse = equations.solved(np.full(3, 100.0))
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-4)
    assert np.linalg.eigvalsh(inverse).min() > 0


def test_singular_equations_are_named():
    equations = level_effects.LevelEquations(2, 1)
    with pytest.raises(leave_one_out.SingularKernelError, match="equations of the levels are not positive definite"):
        equations.inverse(np.array([1.0, -1.0]))
