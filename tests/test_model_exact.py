"""Exact kernel models: definition, inputs, errors, and interrupts."""

import pickle

import naive
import numpy as np
import pytest
from callbacks import Callback
from hard import hard
from interrupts import SEARCH_STEP, interrupted
from kernel_models import assert_same_state, moments, with_options
from limits import current_limits
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks, kernels
from binfeat.length_scales import kernel_sum, leave_one_out
from binfeat.models import pipeline
from binfeat.models.kernel_algebra import solve
from binfeat.models.solvers import exact

pd = pytest.importorskip("pandas")

EXACT = {"features": "exact", "random_state": 0}
# All hyperparameters are given: one kernel, its gamma, the penalty.
GIVEN = {**EXACT, "kernel": "laplacian", "gamma": [0.5, 0.2, 0.0, 0.1], "alpha": 0.3}


@pytest.fixture
def short(limits):
    """Shorten searches."""
    limits(n_steps=6)


def by_hand(X, y, rows, kernel, gamma, alpha, weights=None):
    """Return predictions of kernel ridge regression on standardized targets."""
    mean, std = moments(y, weights)
    coef = naive.kernel_ridge(kernel(X, gamma=gamma), (y - mean) / std, alpha, weights)
    return mean + std * ((kernel(rows, X, gamma=gamma) + 1.0) @ coef)


# Definition.


def test_predictions_are_a_kernel_expansion(table):
    X, y, _ = table
    model = KernelMachineRegressor(**GIVEN).fit(X[:300], y[:300])
    expected = by_hand(X[:300], y[:300], X, kernels.Laplacian(), GIVEN["gamma"], 0.3)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-4)
    assert (model.features_, model.n_grids_, model.alpha_) == ("exact", 0, 0.3)
    assert model.kernel_ == "Laplacian()"
    assert model.feature_coef_.shape == (1, 300)
    np.testing.assert_allclose(model.gamma_, GIVEN["gamma"])


def test_weighted_predictions_are_a_kernel_expansion(table):
    X, y, _ = table
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=300)
    model = KernelMachineRegressor(**GIVEN).fit(X[:300], y[:300], sample_weight=weights)
    expected = by_hand(X[:300], y[:300], X, kernels.Laplacian(), GIVEN["gamma"], 0.3, weights)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-4)


def kernel_of(nu):
    """Return the kernel with a number."""
    if nu == -1:
        return linear
    return kernels.Laplacian() if nu == 0 else kernels.RBF() if np.isinf(nu) else kernels.Matern(nu)


def linear(A, B, gamma):
    return (A * gamma) @ B.T


def test_learned_models_are_sums_of_kernels(table):
    """Predictions follow from the public kernels."""
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.97
    parts = model._exact
    kinds = [kernel_of(nu) for nu in parts["nus"]]
    rows = (X - parts["center"]) / parts["unit"]
    K = sum(
        s * k(rows, parts["support"].T, gamma=g)
        for s, k, g in zip(parts["shares"], kinds, parts["gammas"], strict=True)
    )
    scores = K @ model.feature_coef_.T + model.intercept_
    expected = y[:300].mean() + y[:300].std() * scores[:, 0]
    np.testing.assert_allclose(model.predict(X), expected, atol=2e-3)
    assert np.sum(parts["shares"]) == pytest.approx(1.0)
    for kind in kinds:
        assert ("Linear()" if kind is linear else repr(kind)) in model.kernel_


def test_sums_of_kernels_where_they_are_better(rng):
    """A step along one input and a sine along the other need both kernels; for a sine, one is enough."""
    X = rng.normal(size=(400, 2))
    wave = np.sin(3 * X[:, 0])
    both = KernelMachineRegressor(**EXACT, gamma=[3.0, 0.3]).fit(X, wave + (X[:, 1] > 0))
    assert both._exact["nus"].size == 2
    assert min(both._exact["shares"]) > 0.05
    alone = KernelMachineRegressor(**EXACT, gamma=[1.0, 1.0]).fit(X, wave)
    assert alone._exact["nus"].size == 1


def test_penalty_and_width_are_those_of_the_least_error(table):
    X, y = table[0][:60], table[1][:60]
    model = KernelMachineRegressor(**{**GIVEN, "alpha": "auto"}).fit(X, y)
    z = ((y - y.mean()) / y.std())[:, None]
    K = kernels.Laplacian()(X, gamma=GIVEN["gamma"])
    error = naive.left_out_error(K, z, model.alpha_)
    np.testing.assert_allclose(model.learning_curve_, [[0, error]], rtol=1e-3)
    for factor in (10**-0.5, 10**0.5) if model.alpha_ > 1e-3 else (10**0.5,):
        assert naive.left_out_error(K, z, model.alpha_ * factor) >= error * (1 - 1e-4)


def test_automatic_for_few_rows_and_nothing_else_asked(table, limits):
    X, y, labels = (own[:200] for own in table)
    limits(n_steps=2)
    for model, target in ((KernelMachineRegressor(random_state=0), y), (KernelMachineClassifier(), labels)):
        assert model.fit(X, target).features_ == "exact"
    limits(n_steps=2, sample_grids=(5, 10), n_fourier=32)
    for given, kernel in (("laplacian", "Laplacian()"), ("rbf", "RBF()"), (kernels.Matern(2.5), "Matern(nu=2.5)")):
        model = KernelMachineRegressor(kernel=given, random_state=0).fit(X, y)
        assert (model.features_, model.kernel_) == ("exact", kernel)
    for options in ({"kernel": kernels.GammaPitch(8)}, {"solver_params": {"n_grids": 10}}, {"features": "binning"}):
        model = KernelMachineRegressor(**with_options(options, max_grids=10), random_state=0).fit(X, y)
        assert model.features_ != "exact"
    for small in ({"exact_rows": 199}, {"exact_work": 200**2 * 4 - 1}):
        limits(n_steps=2, sample_grids=(5, 10), n_fourier=32, **small)
        assert KernelMachineRegressor(solver_params={"max_grids": 10}, random_state=0).fit(X, y).features_ != "exact"
        assert KernelMachineRegressor(**EXACT).fit(X, y).features_ == "exact"
        assert KernelMachineRegressor(kernel="rbf", random_state=0).fit(X, y).features_ == "local"


@pytest.mark.parametrize("value", [1e9, 1e18])
@pytest.mark.parametrize("kernel", ["rbf", "auto"])
def test_one_huge_value_leaves_digits_to_the_other_rows(kernel, value):
    rng = np.random.default_rng(2)  # the rows of the search do not contain it
    X = rng.normal(size=(700, 4))
    y = X[:, 0] + X[:, 1]
    X[3, 0] = value
    model = KernelMachineRegressor(kernel=kernel, random_state=2).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.98


def test_smooth_targets_without_noise_take_a_tiny_penalty():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(1200, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]

    def errors(alpha):
        model = KernelMachineRegressor(**EXACT, alpha=alpha).fit(X[:200], y[:200])
        return model, np.sqrt(np.mean((model.predict(X[200:]) - y[200:]) ** 2))

    model, error = errors("auto")
    assert model.alpha_ < leave_one_out.LEAST_ALPHA * 200
    assert error < 0.3 * errors(leave_one_out.LEAST_ALPHA * 200)[1]
    low, high = model.predict_interval(X[200:], 0.9).T
    assert 0.8 < np.mean((low <= y[200:]) & (y[200:] <= high)) < 0.97  # 200 rows: a standard error of 0.02


# Decisions.


def test_decisions_and_status(table):
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT).fit(X, y)
    assert model.status_ == "converged"
    assert model.decisions_["what"].tolist() == ["length scales", "features", "kernel", "penalty", "noise"]
    choices = dict(zip(model.decisions_["what"], model.decisions_["choice"], strict=True))
    assert (choices["features"], choices["kernel"]) == ("exact", model.kernel_)
    assert choices["penalty"] == f"{model.alpha_:.3g}"
    n_steps = len(model.length_scale_errors_)
    assert n_steps == current_limits().n_steps
    assert model.length_scale_gammas_.shape == (n_steps, 4)
    assert model.length_scale_errors_[-5:].mean() < model.length_scale_errors_[0] / 2
    np.testing.assert_allclose(model.feature_relevances_.sum(), 1.0)
    assert set(np.argsort(model.feature_relevances_)[-2:]) == {0, 1}
    assert "exact" in model.summary()
    given = KernelMachineRegressor(**GIVEN).fit(X, y)
    assert given.decisions_["what"].tolist() == ["features", "kernel", "penalty", "noise"]
    assert (given.length_scale_errors_.shape, given.length_scale_gammas_.shape) == ((0,), (0, 4))


def test_a_given_penalty_is_kept(table, short):
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT, alpha=0.37).fit(X, y)
    assert model.alpha_ == 0.37
    assert KernelMachineRegressor(**GIVEN).fit(X, y).alpha_ == 0.3


def test_a_penalty_below_rounding_errors_is_increased(rng):
    X = rng.normal(size=(200, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    given = {"features": "exact", "kernel": "rbf", "gamma": 0.4, "target_transform": None, "random_state": 0}
    models = [KernelMachineRegressor(alpha=alpha, **given).fit(X, y) for alpha in (1e-12, 1e-9, 1e-3)]
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
    assert 1e-7 < models[0].alpha_ == models[1].alpha_ < 1e-5
    assert models[2].alpha_ == 1e-3
    scaled = (y - y.mean()) / y.std()
    coef = np.linalg.solve(kernels.RBF()(X, gamma=0.4) + 1 + models[0].alpha_ * np.eye(200), scaled)
    expected = (kernels.RBF()(X + 0.1, X, gamma=0.4) + 1) @ coef
    np.testing.assert_allclose(models[0].predict(X + 0.1), y.mean() + y.std() * expected, atol=5e-3)


def test_a_given_gamma_is_kept(table):
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT, gamma="scale").fit(X, y)
    power = model._fitted.function.main_power
    np.testing.assert_allclose(model.gamma_, 1 / (4 * X.std(axis=0) ** power))
    for kernel in ("auto", "laplacian"):
        model = KernelMachineRegressor(**{**GIVEN, "kernel": kernel}).fit(X, y)
        np.testing.assert_allclose(model.gamma_, GIVEN["gamma"])
        assert model.feature_relevances_[2] == 0.0
        moved = X.copy()
        moved[:, 2] += 3.0
        np.testing.assert_allclose(model.predict(moved), model.predict(X), atol=1e-5)


def test_without_refit_rows_held_out_have_no_say(table, rng):
    X, y, _ = table
    cv = [(np.arange(300), np.arange(300, 400))]
    changed = np.where(np.arange(400) < 300, y, rng.permutation(y))
    model = KernelMachineRegressor(**{**GIVEN, "alpha": "auto"}, cv=cv, refit=False)
    kept = model.fit(X, y)
    assert kept.feature_coef_.shape == (1, 300)
    with_all = clone(model).set_params(refit=True).fit(X, y)
    assert with_all.feature_coef_.shape == (1, 400)
    assert with_all.alpha_ <= kept.alpha_  # more rows need a smaller penalty
    labels, other = y > 0, changed > 0
    one, two = (
        KernelMachineClassifier(**GIVEN, cv=cv, refit=False).fit(X, target).feature_coef_ for target in (labels, other)
    )
    np.testing.assert_array_equal(one, two)


def test_rows_of_a_group_are_left_out_together(table, short):
    X, y, _ = table
    groups = np.random.default_rng(1).integers(0, 40, 400)
    model = KernelMachineRegressor(**GIVEN).fit(X, y, groups=groups)
    Y = (y - y.mean()) / y.std()
    K = model._fitted.function.kernel()
    columns = model._fitted.function.standardizer.columns(model._fitted.rows(model, X))
    matrix, losses = K(columns, columns).astype(float) + 1, np.empty(400)
    for group in range(40):
        own, others = groups == group, groups != group
        coef = np.linalg.solve(matrix[np.ix_(others, others)] + model.alpha_ * np.eye(others.sum()), Y[others])
        losses[own] = (matrix[np.ix_(own, others)] @ coef - Y[own]) ** 2
    np.testing.assert_allclose(model.held_out_error_[0], losses.mean(), rtol=1e-4)


def test_groups_of_few_rows_have_exact_models_that_no_copy_deceives(rng, short):
    X, y = np.repeat(rng.normal(size=(100, 3)), 3, axis=0), np.repeat(rng.normal(size=100), 3)
    groups = np.repeat([f"patient {number}" for number in range(100)], 3)
    model = KernelMachineRegressor(random_state=0).fit(X, y, groups=groups)
    assert model.features_ == "exact"
    assert model.held_out_error_[0] > 0.9


# Inputs.


def test_round_trips(table, short):
    sio = pytest.importorskip("skops.io")
    X, y, labels = table
    for model, target in ((KernelMachineRegressor(**EXACT), y), (KernelMachineClassifier(**EXACT), labels)):
        model.fit(X, target)
        data = sio.dumps(model)
        trusted = sio.get_untrusted_types(data=data)
        assert trusted == [f"binfeat.{type(model).__name__}"]
        for loaded in (pickle.loads(pickle.dumps(model)), sio.loads(data, trusted=trusted)):
            np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
            assert_same_state(loaded, model)


@pytest.mark.parametrize("kernel", ["auto", "laplacian"])
def test_one_row_is_as_in_a_batch(table, short, bytes_of_a_prediction, kernel):
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT, kernel=kernel).fit(X, y)
    expected = model.predict(X)
    own = np.concatenate([model.predict(X[i : i + 1]) for i in range(50)])
    np.testing.assert_allclose(own, expected[:50], atol=1e-4)
    bytes_of_a_prediction(2**14)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-4)


def test_categories_and_missing_values(rng):
    city = rng.choice(["Rome", "Oslo", "Bonn"], size=500)
    frame = pd.DataFrame({"x": rng.normal(size=500), "city": city, "z": rng.normal(size=500)})
    frame.loc[::7, "z"] = np.nan
    y = frame["x"] * (city == "Rome") + 2.0 * (city == "Oslo") + 0.05 * rng.normal(size=500)
    model = KernelMachineRegressor(random_state=0).fit(frame[:350], y[:350])
    assert model.features_ == "exact"
    assert model.score(frame[350:], y[350:]) > 0.9
    assert model.feature_relevances_[2] < 0.1
    assert np.isfinite(model.predict(frame[350:].assign(city="Atlantis"))).all()
    assert np.isfinite(model.predict(frame[350:].assign(x=np.nan))).all()


def test_categories_by_hand(rng):
    X = np.column_stack([rng.normal(size=200), rng.integers(3, size=200)])
    y = X[:, 0] + (X[:, 1] == 1) + 0.1 * rng.normal(size=200)
    options = {**GIVEN, "gamma": [0.5, 0.8], "categorical_features": [1]}
    model = KernelMachineRegressor(**options).fit(X, y)
    K = naive.kernel_matrix(X, X, [0.5, 0.8], lambda t: np.exp(-t), categorical={1})
    coef = naive.kernel_ridge(K, (y - y.mean()) / y.std(), 0.3)
    np.testing.assert_allclose(model.predict(X), y.mean() + y.std() * (K + 1.0) @ coef, atol=1e-4)


def test_sample_weights(table, short):
    X, y, _ = table
    weights = np.tile([0.0, 1.0], 200)
    model = KernelMachineRegressor(**EXACT).fit(X, np.where(weights > 0, y, -y), sample_weight=weights)
    assert model.feature_coef_.shape == (1, 200)  # rows of weight 0 are not part of the model
    assert model.score(X[::2], y[::2]) > 0.9
    alike = [KernelMachineRegressor(**EXACT).fit(X, y, sample_weight=w).predict(X) for w in (None, 1.0, np.ones(400))]
    np.testing.assert_array_equal(alike[1], alike[2])
    np.testing.assert_allclose(alike[0], alike[1], atol=1e-3)


def test_several_targets(table, short):
    X, y, _ = table
    Y = np.column_stack([y, 1000 * X[:, 2] + 5, np.ones(400)])
    model = KernelMachineRegressor(**EXACT).fit(X[:300], Y[:300])
    predictions = model.predict(X[300:])
    assert model.feature_coef_.shape == (3, 300)
    for k in (0, 1):
        assert np.corrcoef(predictions[:, k], Y[300:, k])[0, 1] ** 2 > 0.9
    np.testing.assert_allclose(predictions[:, 2], 1.0)


def test_classes_with_probabilities(three, short):
    X, labels = three
    model = KernelMachineClassifier(**EXACT).fit(X[:600], labels[:600])
    p = model.predict_proba(X[600:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[600:]))
    chosen = p[np.arange(300), np.searchsorted(model.classes_, labels[600:])]
    assert -np.log(chosen).mean() < 0.75
    assert abs(p.max(axis=1).mean() - model.score(X[600:], labels[600:])) < 0.1  # calibrated


@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_the_smallest_tables(n_rows):
    X, y = np.arange(2.0 * n_rows).reshape(n_rows, 2), np.arange(float(n_rows))
    for model in (KernelMachineRegressor(**EXACT), KernelMachineRegressor(**EXACT, gamma=1.0)):
        assert np.isfinite(model.fit(X, y).predict(X)).all()
    flat = KernelMachineRegressor(**EXACT).fit(np.ones((10, 2)), np.arange(10.0))
    np.testing.assert_allclose(flat.predict(np.ones((1, 2))), 4.5, atol=1e-3)


def test_rows_that_repeat(table, short):
    X, y, _ = table
    X, y = np.repeat(X[:100], 4, axis=0), np.repeat(y[:100], 4)
    for options in ({}, {"alpha": 1e-12}, {"gamma": "scale", "alpha": 0.0}):
        assert KernelMachineRegressor(**EXACT, **options).fit(X, y).score(X, y) > 0.9


def test_rows_that_are_all_alike_without_a_penalty(rng):
    y = 3 + rng.normal(size=300)
    model = KernelMachineRegressor(**EXACT, gamma=1.0, alpha=0.0).fit(np.ones((300, 2)), y)
    np.testing.assert_allclose(model.predict(np.ones((1, 2))), y.mean(), atol=0.1)


@pytest.mark.parametrize("kernel", ["hat", kernels.Hat(), kernels.GammaPitch(8.0), kernels.Skip(kernels.Hat(), 0.5)])
def test_other_kernels_are_refused(table, kernel):
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT, kernel=kernel)
    with pytest.raises(
        ValueError, match=r"features='exact' accepts kernel='auto', 'laplacian', 'rbf', or one of .*; got"
    ):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_source_of_blocks_is_refused(table, sampled_rows):
    X, y, _ = table
    sampled_rows(200)
    with pytest.raises(
        ValueError, match="features='exact' requires all rows in memory; use 'auto', 'local', 'binning'"
    ):
        KernelMachineRegressor(**EXACT).fit(blocks([(X[i : i + 50], y[i : i + 50]) for i in range(0, 400, 50)]))


# Repeatability and interrupts.


@pytest.mark.parametrize("kernel", ["auto", *hard("laplacian")])
def test_the_same_bits_for_any_number_of_threads(table, threads, short, kernel):
    threads(2)
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT, kernel=kernel, n_jobs=1).fit(X, y)
    for n_jobs in (1, 2, None):
        other = KernelMachineRegressor(**EXACT, kernel=kernel, n_jobs=n_jobs).fit(X, y)
        assert_same_state(other, model)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))


@pytest.mark.parametrize("n_rows", [800, *hard(2600, 3200)])  # solved by Cholesky, and by iterations
def test_the_same_bits_of_many_rows_for_any_number_of_threads(rng, threads, n_rows, monkeypatch):
    threads(2)
    if n_rows == 800:
        monkeypatch.setattr(solve, "cholesky_rows", lambda n_targets: 700)
    X = rng.uniform(size=(n_rows, 4))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n_rows)
    model = KernelMachineRegressor(**GIVEN, n_jobs=1).fit(X, y)
    other = KernelMachineRegressor(**GIVEN, n_jobs=2).fit(X, y)
    assert_same_state(other, model)
    for mine, others in zip(model.predict(X, return_std=True), other.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(mine, others)


def test_iterations_give_the_same_model(table, monkeypatch):
    """The same except for the tolerance of the residual, which bounds the differences of predictions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4))
    y = np.sin(X[:, 0]) + X[:, 1]
    expected = KernelMachineRegressor(**GIVEN).fit(X, y).predict(X)
    monkeypatch.setattr(solve, "cholesky_rows", lambda n_targets: 600)
    found = KernelMachineRegressor(**GIVEN).fit(X, y).predict(X)
    assert 0 < np.linalg.norm(found - expected) < solve._MOST_TOL * np.linalg.norm(y - y.mean())


def test_the_last_rows_of_cholesky(monkeypatch):
    """Cholesky factors solve up to the limit; one more row uses iterations."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    used, packed = [], kernel_sum.KernelValues.packed
    monkeypatch.setattr(kernel_sum.KernelValues, "packed", lambda self, X: used.append(X.shape[1]) or packed(self, X))
    for limit in (300, 299):
        monkeypatch.setattr(solve, "cholesky_rows", lambda n_targets, limit=limit: limit)
        KernelMachineRegressor(**GIVEN).fit(X, X[:, 0])
        assert set(used) == (set() if limit == 300 else {300})


def test_callbacks_stop_a_fit(table, short):
    X, y, _ = table
    watcher = Callback("step")
    assert KernelMachineRegressor(**EXACT).set_callbacks(watcher).fit(X, y).status_ == "converged"
    assert watcher.ended
    for stop_at in (1, watcher.n_tasks):
        stopper = Callback("step", stop_at=stop_at)
        stopped = KernelMachineRegressor(**EXACT).set_callbacks(stopper).fit(X, y)
        assert stopped.status_ == "stopped"
        assert stopper.ended
        assert stopped.score(X, y) > 0.5


def test_a_third_of_the_seconds_goes_to_the_search(table):
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT, max_seconds=0).fit(X, y)
    assert model.status_ == "budget"
    assert model.summary().splitlines()[-1].startswith("limit")
    assert len(model.length_scale_errors_) < current_limits().n_steps
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize(("home", "name"), [SEARCH_STEP, (solve, "residuals"), (exact, "solve_kernel")])
def test_ctrl_c_leaves_nothing_or_what_was(table, short, home, name):
    X, y, labels = table
    for model, target in ((KernelMachineRegressor(**EXACT), y), (KernelMachineClassifier(**EXACT), labels)):
        with interrupted(home, name), pytest.raises(KeyboardInterrupt):
            model.fit(X, target)
        with pytest.raises(NotFittedError):
            model.predict(X)
    before = model.fit(X, labels).decision_function(X)
    with interrupted(home, name), pytest.raises(KeyboardInterrupt):
        model.fit(X[:200], labels[:200])
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("n_rows", [20, 400])
def test_a_row_alone_is_predicted_as_in_a_batch(table, n_rows):
    X, y, _ = table
    model = KernelMachineRegressor(**EXACT).fit(X[:n_rows], y[:n_rows])
    alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(60)])
    np.testing.assert_allclose(model.predict(X)[:60], alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("features", ["exact", *hard("local")])
@pytest.mark.parametrize(
    "kernel",
    ["rbf", kernels.Matern(0.5), *hard(kernels.Matern(2.5), kernels.RBF(), kernels.Matern(1.5), kernels.Laplacian())],
)
def test_a_kernel_that_is_asked_for_is_taken(kernel, features, rng):
    X = rng.uniform(-1, 1, size=(300, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    model = KernelMachineRegressor(features=features, kernel=kernel, random_state=0).fit(X[:200], y[:200])
    assert model.kernel_ == repr(kernels.RBF() if kernel == "rbf" else kernel)
    assert model.score(X[200:], y[200:]) > 0.95
    given = KernelMachineRegressor(features=features, kernel=kernel, gamma=1.5, alpha=0.1).fit(X, y)
    if features == "exact":
        own = kernels.RBF() if kernel == "rbf" else kernel
        function = given._fitted.function
        K = own(X, function.support.T * function.unit + function.center, gamma=1.5)
        expected = K @ given.feature_coef_[0] + given.intercept_[0]
        np.testing.assert_allclose(given._scores(X)[:, 0], expected, atol=1e-4)


def of_groups_that_nearly_agree(seed, n_groups):
    """Return inputs and targets of groups of six rows; each group has an effect with variance 1."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), 6)
    X = rng.normal(size=(n_groups, 3))[groups] + 0.02 * rng.normal(size=(groups.size, 3))
    return X, X[:, 0] + rng.normal(size=n_groups)[groups] + 0.1 * rng.normal(size=groups.size), groups


@pytest.mark.parametrize("seed", hard(1, 6))
def test_rows_that_nearly_agree_do_not_decide_for_their_groups(seed):
    """By leave-one-out errors of single rows, an interpolating kernel seemed perfect, and all others far worse."""
    X, y, groups = of_groups_that_nearly_agree(seed, 120)
    X_new, y_new, _ = of_groups_that_nearly_agree(100 + seed, 300)
    model = KernelMachineRegressor(random_state=0).fit(X, y, groups=groups)
    assert np.mean((model.predict(X_new) - y_new) ** 2) < 1.2
    low, high = model.predict_interval(X_new).T
    assert np.mean((low <= y_new) & (y_new <= high)) > 0.84
    classifier = KernelMachineClassifier(loss="log", random_state=0).fit(X, y > 0, groups=groups)
    assert classifier.features_ == "exact"
    assert log_loss(y_new > 0, classifier.predict_proba(X_new)) < 0.65


GROUP_COLUMNS = [(2, 1.0, 1.1), *hard((0, 3.0, 0.8), (3, 1.0, 1.1), (4, 0.3, 1.02))]  # RMSE relative to a constant


@pytest.mark.parametrize(("seed", "slope", "most"), GROUP_COLUMNS)
def test_inputs_that_only_identify_groups_do_not_predict_new_groups(seed, slope, most):
    """By leave-one-out errors of single rows, they were relevant, and errors exceeded those of a constant."""
    rng = np.random.default_rng(seed)
    groups, effects, inputs = rng.integers(240, size=4800), 3 * rng.normal(size=240), rng.normal(size=(240, 6))
    X = np.c_[inputs[groups], rng.normal(size=(4800, 2))]
    y = effects[groups] + slope * X[:, 6] + 0.2 * rng.normal(size=4800)
    known = groups < 40
    model = KernelMachineRegressor(random_state=0).fit(X[known], y[known], groups=groups[known])
    error = np.mean((model.predict(X[~known]) - y[~known]) ** 2)
    assert error < most**2 * np.mean((y[known].mean() - y[~known]) ** 2)


@pytest.mark.parametrize("seed", hard(2, 0, 1, 3))
def test_steps_of_searches_leave_out_groups_also_with_splits_of_the_caller(seed):
    """They left out rows, so inputs that are constant within groups seemed relevant: 3 to 10 % more error."""
    rng = np.random.default_rng(seed)

    def table(n_groups):
        groups = np.repeat(np.arange(n_groups), 15)
        of_groups, own = rng.normal(size=(n_groups, 4))[groups], rng.normal(size=(groups.size, 3))
        noise = rng.normal(size=n_groups)[groups] + 0.5 * rng.normal(size=groups.size)
        return np.hstack([of_groups, own]), of_groups[:, 0] + np.sin(2 * own[:, 0]) + noise, groups

    (X, y, groups), (X_new, y_new, _) = table(60), table(200)
    models = [KernelMachineRegressor(cv=cv, random_state=0).fit(X, y, groups=groups) for cv in (GroupKFold(5), None)]
    errors = [np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2)) for model in models]
    assert errors[0] < 1.025 * errors[1]


@pytest.mark.parametrize("features", hard("auto", "local"))
def test_intervals_of_many_rows_hold_new_groups(features):
    """Rows of a group have nearly the same error, which looked like large noise."""
    X, y, groups = of_groups_that_nearly_agree(0, 300)
    X_new, y_new, _ = of_groups_that_nearly_agree(100, 300)
    model = KernelMachineRegressor(features=features, random_state=0).fit(X, y, groups=groups)
    low, high = model.predict_interval(X_new).T
    assert np.mean((low <= y_new) & (y_new <= high)) > 0.78


def test_standard_errors_count_groups(rng):
    losses = rng.gamma(1.0, size=50)
    alone = losses.std(ddof=1) / np.sqrt(50)
    np.testing.assert_allclose(pipeline._error(losses, None), [losses.mean(), alone])
    np.testing.assert_allclose(
        pipeline._error(np.repeat(losses, 4), np.repeat(np.arange(50), 4)), [losses.mean(), alone]
    )
    assert np.isnan(pipeline._error(losses, np.zeros(50, int))[1])


def test_groups_and_validation_rows_of_many_rows_are_refused_by_exact_models():
    X, y, groups = of_groups_that_nearly_agree(0, 300)
    message = r"features='exact' supports cv and groups for up to 1,500 rows, got 1,800"
    with pytest.raises(ValueError, match=message):
        KernelMachineRegressor(features="exact").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match=message):
        KernelMachineRegressor(features="exact", cv=3).fit(X, y)
