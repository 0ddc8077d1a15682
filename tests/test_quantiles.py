"""Quantiles of kernel models: sizes of residuals, levels, targets, files."""

import pickle
from dataclasses import replace

import naive
import numpy as np
import pytest
from hard import hard
from kernel_models import assert_same_state
from scipy import stats
from sklearn.metrics import mean_pinball_loss
from sklearn.preprocessing import FunctionTransformer

from binfeat import KernelMachineRegressor, blocks

LEVELS = [0.1, 0.5, 0.9]
GIVEN = {"random_state": 0, "target_transform": None}


def drawn(rng, n_rows):
    """Return rows with skewed noise, ten times as large at one end as at the other."""
    X = rng.uniform(-1, 1, size=(n_rows, 2))
    size = np.exp(1.15 * X[:, 1])
    return X, np.sin(3 * X[:, 0]) + 0.3 * size * (rng.exponential(size=n_rows) - 1), size


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(5)
    X, y, _ = drawn(rng, 2200)
    return X[:1200], y[:1200], KernelMachineRegressor(**GIVEN).fit(X[:1200], y[:1200]), X[1200:], y[1200:]


def test_shares_hold_in_every_region(noisy):
    _, _, model, X, y = noisy
    below = y[:, np.newaxis] <= model.predict_quantiles(X, LEVELS)
    for rows in (slice(None), X[:, 1] < -0.3, X[:, 1] > 0.3):
        part = below[rows]
        # For these rows, the 1,200 rows with residuals, and 3 % for the learned sizes.
        noise = np.sqrt(np.multiply(LEVELS, np.subtract(1, LEVELS)) * (1 / len(part) + 1 / 1200))
        assert (np.abs(part.mean(axis=0) - LEVELS) < 3 * noise + 0.03).all()


def test_pinball_loss_is_near_that_of_the_truth_and_below_that_of_one_width(noisy):
    *_, model, X_new, y_new = noisy
    predictions = model.predict_quantiles(X_new, LEVELS)
    truth = np.sin(3 * X_new[:, :1]) + 0.3 * np.exp(1.15 * X_new[:, 1:]) * (stats.expon.ppf(LEVELS) - 1)
    deviations = model.predict_interval(X_new, 0.8, method="deviations")
    for level, own, best in zip(LEVELS, predictions.T, truth.T):
        assert mean_pinball_loss(y_new, own, alpha=level) < 1.1 * mean_pinball_loss(y_new, best, alpha=level)
    for level, own, wide in zip((0.1, 0.9), predictions.T[[0, 2]], deviations.T):
        assert mean_pinball_loss(y_new, own, alpha=level) < 0.95 * mean_pinball_loss(y_new, wide, alpha=level)


def test_quantiles_do_not_cross_and_keep_the_order_of_levels(noisy):
    *_, model, X, _ = noisy
    levels = np.linspace(0.01, 0.99, 33)
    predictions = model.predict_quantiles(X[:200], levels)
    assert predictions.shape == (200, 33)
    assert (np.diff(predictions, axis=1) >= 0).all()
    np.testing.assert_array_equal(model.predict_quantiles(X[:200], levels[::-1]), predictions[:, ::-1])
    np.testing.assert_array_equal(model.predict_quantiles(X[:200], 0.5)[:, 0], predictions[:, 16])
    assert model.predict_quantiles(X[:5]).shape == (5, 3)


def test_by_hand(rng):
    """The formula from stored attributes: sizes by a sum over rows, quantiles by counting."""
    X, y, _ = drawn(rng, 200)
    model = KernelMachineRegressor(**GIVEN, kernel="laplacian", features="exact").fit(X, y)
    noise_model = model._fitted.noise_model
    assert noise_model.nus.tolist() == [0.0]
    rows = (X[:20] - noise_model.center) / noise_model.unit
    logs = naive.laplacian_expansion(noise_model.support, noise_model.gammas[0], noise_model.coef[0], rows)
    middle = (model.predict(X[:20]) - y.mean()) / y.std()
    median = naive.conformal_quantile(noise_model.residuals[:, 0], 0.5)
    for level in LEVELS:
        residual = naive.conformal_quantile(noise_model.residuals[:, 0], level)
        residual = median + np.sqrt(200 / 197) * (residual - median)
        wanted = (middle + np.exp(logs + noise_model.intercept) * residual) * y.std() + y.mean()
        np.testing.assert_allclose(model.predict_quantiles(X[:20], level)[:, 0], wanted, rtol=1e-4, atol=1e-4)


def test_intervals_take_them_where_noise_varies(noisy, rng):
    *_, model, X, _ = noisy
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), model.predict_quantiles(X, [0.1, 0.9]))
    assert [choice for what, choice, *_ in model.decisions_ if what == "noise"] == ["differs between rows"]
    X = rng.uniform(size=(400, 2))
    constant = KernelMachineRegressor(**GIVEN).fit(X, X[:, 0] + rng.normal(size=400))
    deviations, quantiles = (constant.predict_interval(X, 0.8, method=own) for own in ("deviations", "quantiles"))
    np.testing.assert_array_equal(constant.predict_interval(X, 0.8), deviations)
    assert (deviations != quantiles).all()


@pytest.mark.parametrize(
    ("given", "seed"),
    [({}, 5), ({"solver_params": {"n_grids": 60}}, 1), *hard(({"features": "fourier"}, 1))],
)
def test_quantiles_contain_a_value_that_most_targets_share(given, seed):
    """Residuals of these targets varied less than predictions changed by the rows' own targets, so coverage was 0."""
    rng = np.random.default_rng(seed)
    X, is_rare = rng.normal(size=(1000, 4)), rng.random(1000) < 0.02
    y = np.where(is_rare, rng.gamma(2, 1000, size=1000), 0.0)
    model = KernelMachineRegressor(random_state=0, **given).fit(X[:500], y[:500])
    low, high = model.predict_quantiles(X[500:], [0.05, 0.95]).T
    assert np.mean((low <= y[500:]) & (y[500:] <= high)) > 0.85


def test_several_targets_transforms_weights_and_blocks(rng):
    X, y, size = drawn(rng, 400)
    both = np.column_stack([y, X[:, 0] + 0.1 * rng.normal(size=400)])
    model = KernelMachineRegressor(**GIVEN, features="exact").fit(X, both, sample_weight=rng.integers(0, 3, size=400))
    predictions = model.predict_quantiles(X, LEVELS)
    assert predictions.shape == (400, 2, 3)
    assert (np.abs((both[:, :, np.newaxis] <= predictions).mean(axis=0) - LEVELS) < 0.1).all()
    assert stats.spearmanr(np.ptp(predictions, axis=2)[:, 0], size)[0] > 0.8
    np.testing.assert_allclose(model.predict_quantiles(blocks(X, both, block_rows=90), LEVELS), predictions, rtol=1e-4)
    logs = KernelMachineRegressor(random_state=0, target_transform=FunctionTransformer(np.log, np.exp))
    logs.fit(X, np.exp(2 * y))
    assert (logs.predict_quantiles(X, 0.05) > 0).all()


@pytest.mark.parametrize(
    "given",
    [
        {"features": "exact"},
        {"features": "exact", "loss": "huber"},
        {"features": "local", "solver_params": {"cell_rows": 100}},
        {"features": "binning", "solver_params": {"n_grids": 30}},
    ],
)
def test_rows_of_weight_two_count_as_two_rows(given):
    """With residuals counted once per row, intervals of 50 % contained more than 80 % of new targets."""

    def people(seed):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 40, size=8000) / 10
        return x, np.round(2 * (3 * np.sin(x) + rng.laplace(size=8000))) / 2

    rows, counts = np.unique(np.column_stack(people(0)), axis=0, return_counts=True)
    options = {**GIVEN, "kernel": "laplacian", "gamma": [0.5], **given}
    model = KernelMachineRegressor(**options).fit(rows[:, :1], rows[:, 1], sample_weight=counts)
    x, y = people(1)
    for method in ("deviations", "quantiles"):
        for coverage in (0.5, 0.9):
            low, high = model.predict_interval(x[:, np.newaxis], coverage, method).T
            assert np.mean((low <= y) & (y <= high)) == pytest.approx(coverage, abs=0.1)


@pytest.mark.parametrize(
    "given",
    [
        {"solver_params": {"n_grids": 60}},
        *hard({"features": "local", "solver_params": {"cell_rows": 300}}, {"features": "fourier"}),
    ],
)
def test_all_kinds_of_models_have_quantiles(given, rng, few_steps):
    X, y, _ = drawn(rng, 1500)
    model = KernelMachineRegressor(**GIVEN, **given).fit(X[:1000], y[:1000])
    share = (y[1000:, np.newaxis] <= model.predict_quantiles(X[1000:], LEVELS)).mean(axis=0)
    n_validated = len(model._fitted.noise_model.residuals)
    noise = np.sqrt(np.multiply(LEVELS, np.subtract(1, LEVELS)) * (1 / 500 + 1 / n_validated))
    assert (np.abs(share - LEVELS) < 3 * noise + 0.03).all()


def test_decreasing_transforms(few_steps, rng):
    X, y, _ = drawn(rng, 300)
    y = np.column_stack([np.exp(y), np.exp(-y)])
    negative = FunctionTransformer(lambda Y: Y * [1, -1], lambda Z: Z * [1, -1])
    for transform in (negative, FunctionTransformer(np.reciprocal, np.reciprocal)):
        model = KernelMachineRegressor(random_state=0, target_transform=transform).fit(X, y)
        quantiles = model.predict_quantiles(X, [0.9, 0.1])
        np.testing.assert_allclose((y[:, :, np.newaxis] <= quantiles).mean(axis=0), [[0.9, 0.1]] * 2, atol=0.06)
        for method in ("quantiles", "deviations"):
            low, high = np.moveaxis(model.predict_interval(X, 0.8, method), -1, 0)
            assert (low <= high).all()
            np.testing.assert_allclose(((low <= y) & (y <= high)).mean(axis=0), 0.8, atol=0.1)


def test_files_and_threads_have_the_same_quantiles(noisy):
    X, y, model, X_new, _ = noisy
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_quantiles(X_new), model.predict_quantiles(X_new))
    again = KernelMachineRegressor(**GIVEN, n_jobs=1).fit(X[:300], y[:300])
    assert_same_state(again, KernelMachineRegressor(**GIVEN, n_jobs=1).fit(X[:300], y[:300]))
    broken = pickle.loads(pickle.dumps(model))
    broken._spread = {**broken._spread, "coef": broken._spread["coef"][:, 1:]}
    with pytest.raises(ValueError, match="coef"):
        pickle.loads(pickle.dumps(broken))


def test_models_of_older_files_say_so(noisy):
    *_, model, X, _ = noisy
    old = pickle.loads(pickle.dumps(model))
    old.__dict__.pop("_spread")
    old = pickle.loads(pickle.dumps(old))
    with pytest.raises(ValueError, match="or an older version saved it"):
        old.predict_quantiles(X)
    assert old.predict_interval(X[:3]).shape == (3, 2)


def test_bad_levels(noisy):
    *_, model, X, _ = noisy
    for bad in (0.0, 1.0, [0.5, -0.1], np.nan):
        with pytest.raises(ValueError, match="quantiles must be"):
            model.predict_quantiles(X, bad)
    with pytest.raises(ValueError, match="quantiles must contain at least one level"):
        model.predict_quantiles(X, [])
    with pytest.raises(TypeError, match="quantiles must be"):
        model.predict_quantiles(X, "most")
    with pytest.raises(
        ValueError, match=r"1200 residuals determine quantiles from 0\.000833 to 0\.999, got \[0\.9999\]"
    ):
        model.predict_quantiles(X, [0.5, 0.9999])
    with pytest.raises(ValueError, match="method must be"):
        model.predict_interval(X, method="split")


@pytest.mark.parametrize("n_rows", [2, 3, 9])
def test_few_rows(n_rows, rng):
    X = rng.uniform(size=(n_rows, 2))
    model = KernelMachineRegressor(random_state=0).fit(X, rng.normal(size=n_rows))
    assert np.isfinite(model.predict_quantiles(X, 0.5)).all()


@pytest.mark.parametrize(
    ("n_rows", "by_deviations", "by_quantiles"),
    [(8, False, False), (9, True, False), (18, True, False), (19, True, True)],
)
def test_intervals_of_few_rows_are_told_or_refused(n_rows, by_deviations, by_quantiles, rng, monkeypatch):
    """Intervals of 90 % need 9 rows by deviations, and 19 rows by quantiles; "auto" uses a possible one."""
    X, y, _ = drawn(rng, n_rows)
    model = KernelMachineRegressor(features="exact", random_state=0).fit(X, y)
    noise_model = replace(model._fitted.noise_model, differ=np.array(True))
    monkeypatch.setattr(KernelMachineRegressor, "_fitted", replace(model._fitted, noise_model=noise_model))

    def interval(method):
        return model.predict_interval(X, 0.9, method=method)

    for method, refusal, known in (
        ("deviations", f"coverage must be at most 0.889 with {n_rows} validation rows", by_deviations),
        ("quantiles", f"{n_rows} residuals determine quantiles from .*, got .*0.05", by_quantiles),
    ):
        if known:
            assert np.isfinite(interval(method)).all()
            continue
        with pytest.raises(ValueError, match=refusal):
            interval(method)
    if by_deviations:
        np.testing.assert_array_equal(interval("auto"), interval("quantiles" if by_quantiles else "deviations"))


@pytest.mark.parametrize("n_seeds", hard(10, 40))
def test_intervals_of_few_rows_know_what_is_chosen_by_them(n_seeds):
    shares = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(220, 3))
        y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + rng.normal(size=220)
        model = KernelMachineRegressor(random_state=0).fit(X[:20], y[:20])
        low, high = model.predict_interval(X[20:]).T
        shares.append(np.mean((low <= y[20:]) & (y[20:] <= high)))
    assert np.mean(shares) > 0.9 - 2 * np.std(shares) / np.sqrt(n_seeds)
    given = KernelMachineRegressor(kernel="laplacian", gamma="scale", alpha=1.0, random_state=0).fit(X[:20], y[:20])
    assert (given._widening(20), model._widening(20)) == (1.0, np.sqrt(20 / 13))
    assert model._widening(1000) < 1.004


def test_constant_targets_and_inputs(rng):
    X = rng.uniform(size=(50, 2))
    np.testing.assert_allclose(KernelMachineRegressor().fit(X, np.full(50, 3.0)).predict_quantiles(X), 3.0)
    flat = KernelMachineRegressor().fit(np.ones((50, 2)), rng.normal(size=50)).predict_quantiles(np.ones((4, 2)))
    assert np.isfinite(flat).all()
    assert (np.ptp(flat, axis=0) == 0).all()
