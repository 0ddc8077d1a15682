"""Quantiles of kernel models: sizes of residuals, levels, targets, files."""

import pickle
from dataclasses import replace

import naive
import numpy as np
import pytest
from hard import hard
from machines import assert_same_state
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
    _, _, machine, X, y = noisy
    below = y[:, np.newaxis] <= machine.predict_quantiles(X, LEVELS)
    for rows in (slice(None), X[:, 1] < -0.3, X[:, 1] > 0.3):
        part = below[rows]
        # For these rows, the 1,200 rows with residuals, and 3 % for the learned sizes.
        noise = np.sqrt(np.multiply(LEVELS, np.subtract(1, LEVELS)) * (1 / len(part) + 1 / 1200))
        assert (np.abs(part.mean(axis=0) - LEVELS) < 3 * noise + 0.03).all()


def test_pinball_loss_is_near_that_of_the_truth_and_below_that_of_one_width(noisy):
    *_, machine, X_new, y_new = noisy
    predictions = machine.predict_quantiles(X_new, LEVELS)
    truth = np.sin(3 * X_new[:, :1]) + 0.3 * np.exp(1.15 * X_new[:, 1:]) * (stats.expon.ppf(LEVELS) - 1)
    deviations = machine.predict_interval(X_new, 0.8, method="deviations")
    for level, own, best in zip(LEVELS, predictions.T, truth.T):
        assert mean_pinball_loss(y_new, own, alpha=level) < 1.1 * mean_pinball_loss(y_new, best, alpha=level)
    for level, own, wide in zip((0.1, 0.9), predictions.T[[0, 2]], deviations.T):
        assert mean_pinball_loss(y_new, own, alpha=level) < 0.95 * mean_pinball_loss(y_new, wide, alpha=level)


def test_quantiles_do_not_cross_and_keep_the_order_of_levels(noisy):
    *_, machine, X, _ = noisy
    levels = np.linspace(0.01, 0.99, 33)
    predictions = machine.predict_quantiles(X[:200], levels)
    assert predictions.shape == (200, 33)
    assert (np.diff(predictions, axis=1) >= 0).all()
    np.testing.assert_array_equal(machine.predict_quantiles(X[:200], levels[::-1]), predictions[:, ::-1])
    np.testing.assert_array_equal(machine.predict_quantiles(X[:200], 0.5)[:, 0], predictions[:, 16])
    assert machine.predict_quantiles(X[:5]).shape == (5, 3)


def test_by_hand(rng):
    """The formula from stored attributes: sizes by a sum over rows, quantiles by counting."""
    X, y, _ = drawn(rng, 200)
    machine = KernelMachineRegressor(**GIVEN, kernel="laplacian", features="exact").fit(X, y)
    spread = machine._fitted.spread
    assert spread.nus.tolist() == [0.0]
    rows = (X[:20] - spread.center) / spread.unit
    logs = naive.laplacian_expansion(spread.support, spread.gammas[0], spread.coef[0], rows)
    middle = (machine.predict(X[:20]) - y.mean()) / y.std()
    for level in LEVELS:
        residual = naive.conformal_quantile(spread.residuals[:, 0], level) * np.sqrt(200 / 197)
        wanted = (middle + np.exp(logs + spread.intercept) * residual) * y.std() + y.mean()
        np.testing.assert_allclose(machine.predict_quantiles(X[:20], level)[:, 0], wanted, rtol=1e-4, atol=1e-4)


def test_intervals_take_them_where_noise_varies(noisy, rng):
    *_, machine, X, _ = noisy
    np.testing.assert_array_equal(machine.predict_interval(X, 0.8), machine.predict_quantiles(X, [0.1, 0.9]))
    assert [choice for what, choice, *_ in machine.decisions_ if what == "noise"] == ["differs between rows"]
    X = rng.uniform(size=(400, 2))
    constant = KernelMachineRegressor(**GIVEN).fit(X, X[:, 0] + rng.normal(size=400))
    deviations, quantiles = (constant.predict_interval(X, 0.8, method=own) for own in ("deviations", "quantiles"))
    np.testing.assert_array_equal(constant.predict_interval(X, 0.8), deviations)
    assert (deviations != quantiles).all()


def test_several_targets_transforms_weights_and_blocks(rng):
    X, y, size = drawn(rng, 400)
    both = np.column_stack([y, X[:, 0] + 0.1 * rng.normal(size=400)])
    machine = KernelMachineRegressor(**GIVEN, features="exact").fit(X, both, sample_weight=rng.integers(0, 3, size=400))
    predictions = machine.predict_quantiles(X, LEVELS)
    assert predictions.shape == (400, 2, 3)
    assert (np.abs((both[:, :, np.newaxis] <= predictions).mean(axis=0) - LEVELS) < 0.1).all()
    assert stats.spearmanr(np.ptp(predictions, axis=2)[:, 0], size)[0] > 0.8
    np.testing.assert_allclose(
        machine.predict_quantiles(blocks(X, both, block_rows=90), LEVELS), predictions, rtol=1e-4
    )
    logs = KernelMachineRegressor(random_state=0, target_transform=FunctionTransformer(np.log, np.exp))
    logs.fit(X, np.exp(2 * y))
    assert (logs.predict_quantiles(X, 0.05) > 0).all()


@pytest.mark.parametrize(
    "given",
    [
        {"solver_params": {"n_grids": 60}},
        *hard({"features": "local", "solver_params": {"cell_rows": 300}}, {"features": "fourier"}),
    ],
)
def test_all_kinds_of_models_have_quantiles(given, rng, few_steps):
    X, y, _ = drawn(rng, 1500)
    machine = KernelMachineRegressor(**GIVEN, **given).fit(X[:1000], y[:1000])
    share = (y[1000:, np.newaxis] <= machine.predict_quantiles(X[1000:], LEVELS)).mean(axis=0)
    n_judged = len(machine._fitted.spread.residuals)
    noise = np.sqrt(np.multiply(LEVELS, np.subtract(1, LEVELS)) * (1 / 500 + 1 / n_judged))
    assert (np.abs(share - LEVELS) < 3 * noise + 0.03).all()


def test_files_and_threads_have_the_same_quantiles(noisy):
    X, y, machine, X_new, _ = noisy
    loaded = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(loaded.predict_quantiles(X_new), machine.predict_quantiles(X_new))
    again = KernelMachineRegressor(**GIVEN, n_jobs=1).fit(X[:300], y[:300])
    assert_same_state(again, KernelMachineRegressor(**GIVEN, n_jobs=1).fit(X[:300], y[:300]))
    broken = pickle.loads(pickle.dumps(machine))
    broken._spread = {**broken._spread, "coef": broken._spread["coef"][:, 1:]}
    with pytest.raises(ValueError, match="coef"):
        pickle.loads(pickle.dumps(broken))


def test_models_of_older_files_say_so(noisy):
    *_, machine, X, _ = noisy
    old = pickle.loads(pickle.dumps(machine))
    old.__dict__.pop("_spread")
    old = pickle.loads(pickle.dumps(old))
    with pytest.raises(ValueError, match="an older version without quantiles"):
        old.predict_quantiles(X)
    assert old.predict_interval(X[:3]).shape == (3, 2)


def test_bad_levels(noisy):
    *_, machine, X, _ = noisy
    for bad in (0.0, 1.0, [0.5, -0.1], np.nan):
        with pytest.raises(ValueError, match="quantiles must be"):
            machine.predict_quantiles(X, bad)
    with pytest.raises(ValueError, match="quantiles must contain at least one level"):
        machine.predict_quantiles(X, [])
    with pytest.raises(TypeError, match="quantiles must be"):
        machine.predict_quantiles(X, "most")
    with pytest.raises(
        ValueError, match=r"1200 residuals determine quantiles from 0\.000833 to 0\.999, got \[0\.9999\]"
    ):
        machine.predict_quantiles(X, [0.5, 0.9999])
    with pytest.raises(ValueError, match="method must be"):
        machine.predict_interval(X, method="split")


@pytest.mark.parametrize("n_rows", [2, 3, 9])
def test_few_rows(n_rows, rng):
    X = rng.uniform(size=(n_rows, 2))
    machine = KernelMachineRegressor(random_state=0).fit(X, rng.normal(size=n_rows))
    assert np.isfinite(machine.predict_quantiles(X, 0.5)).all()


@pytest.mark.parametrize(
    ("n_rows", "by_deviations", "by_quantiles"),
    [(8, False, False), (9, True, False), (18, True, False), (19, True, True)],
)
def test_intervals_of_few_rows_are_told_or_refused(n_rows, by_deviations, by_quantiles, rng, monkeypatch):
    """Intervals of 90 % need 9 rows by deviations, and 19 rows by quantiles; "auto" uses a possible one."""
    X, y, _ = drawn(rng, n_rows)
    machine = KernelMachineRegressor(features="exact", random_state=0).fit(X, y)
    spread = replace(machine._fitted.spread, differ=np.array(True))
    monkeypatch.setattr(KernelMachineRegressor, "_fitted", replace(machine._fitted, spread=spread))

    def interval(method):
        return machine.predict_interval(X, 0.9, method=method)

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
        machine = KernelMachineRegressor(random_state=0).fit(X[:20], y[:20])
        low, high = machine.predict_interval(X[20:]).T
        shares.append(np.mean((low <= y[20:]) & (y[20:] <= high)))
    assert np.mean(shares) > 0.9 - 2 * np.std(shares) / np.sqrt(n_seeds)
    given = KernelMachineRegressor(kernel="laplacian", gamma="scale", alpha=1.0, random_state=0).fit(X[:20], y[:20])
    assert (given._widening(20), machine._widening(20)) == (1.0, np.sqrt(20 / 13))
    assert machine._widening(1000) < 1.004


def test_constant_targets_and_inputs(rng):
    X = rng.uniform(size=(50, 2))
    np.testing.assert_allclose(KernelMachineRegressor().fit(X, np.full(50, 3.0)).predict_quantiles(X), 3.0)
    flat = KernelMachineRegressor().fit(np.ones((50, 2)), rng.normal(size=50)).predict_quantiles(np.ones((4, 2)))
    assert np.isfinite(flat).all()
    assert (np.ptp(flat, axis=0) == 0).all()
