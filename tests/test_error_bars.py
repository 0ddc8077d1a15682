"""Error bars of kernel machines: standard deviations, samples, intervals."""

import numpy as np
import pytest
from machines import assert_same_state
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks, kernels
from tests import naive

# Nothing to choose: one kernel, its gamma, the penalty.
GIVEN = {"features": "exact", "random_state": 0, "kernel": "laplacian", "alpha": 0.3, "scaling": None}
GAMMA = [0.5, 0.2, 0.0, 0.1]


@pytest.fixture(scope="module")
def fitted(table):
    X, y, _ = table
    return KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], y[:120])


def by_hand(X, y, alpha=0.3, weights=None):
    """Standardised noise and scores of leave-one-out predictions, row by row."""
    K, Y = kernels.Laplacian()(X, gamma=GAMMA), ((y - y.mean()) / y.std()).reshape(-1, 1)
    residuals = naive.left_out_residuals(K, Y, alpha, weights)[:, 0]
    scaled = np.abs(residuals) / np.sqrt(1 + naive.left_out_variances(K, alpha, weights))
    noise = np.mean(scaled**2)
    return noise, np.sort(scaled) / np.sqrt(noise)


def covariance(X, rows, alpha=0.3, weights=None):
    kernel = kernels.Laplacian()
    values = kernel(X, gamma=GAMMA), kernel(rows, X, gamma=GAMMA), kernel(rows, gamma=GAMMA)
    return naive.posterior(*values, alpha, weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_standard_deviations_and_intervals_of_an_exact_machine(table, weighted):
    X, y, _ = table
    X, y, rows = X[:60], y[:60], np.vstack([X[100:120], [[30.0, 0, 0, 0]]])
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=60) if weighted else None
    machine = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X, y, sample_weight=weights)
    alpha = float(machine._exact["alpha"])  # for weights of mean 1 in the training rows
    known = alpha, None if weights is None else weights * alpha / 0.3
    noise, scores = by_hand(X, y, *known)
    variances = np.diag(covariance(X, rows, *known))
    predicted, std = machine.predict(rows, return_std=True)
    np.testing.assert_array_equal(predicted, machine.predict(rows))
    np.testing.assert_allclose(std, y.std() * np.sqrt(noise * variances), rtol=2e-3)
    half = scores[int(np.ceil(0.8 * 61)) - 1] * y.std() * np.sqrt(noise * (1 + variances))
    intervals = machine.predict_interval(rows, coverage=0.8)
    np.testing.assert_allclose(intervals, np.column_stack([predicted - half, predicted + half]), rtol=2e-3, atol=2e-3)


def test_standard_deviations_are_those_of_a_gaussian_process(rng):
    """scikit-learn's, with the same kernel and noise."""
    X = rng.uniform(-3, 3, size=(150, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=150)
    machine = KernelMachineRegressor(**GIVEN, gamma=[0.5]).fit(X, y)
    rows = np.linspace(-6, 6, 30)[:, None]
    predicted, std = machine.predict(rows, return_std=True)
    noise = machine._predictor_of_fit().posterior(None).errors.noise[0]
    kernel = ConstantKernel(noise / 0.3) * (Matern(2.0, nu=0.5) + ConstantKernel(1.0))
    peer = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, (y - y.mean()) / y.std())
    mean, deviations = peer.predict(rows, return_std=True)
    np.testing.assert_allclose(predicted, y.mean() + y.std() * mean, atol=1e-3)
    np.testing.assert_allclose(std, y.std() * deviations, rtol=2e-3)
    assert std[0] > 2 * std[15]


def test_samples_have_the_mean_and_the_covariance(fitted, table):
    X, y, _ = table
    rows, n = X[120:123], 4000
    samples = fitted.sample_y(rows, n, random_state=1)
    assert samples.shape == (3, n)
    mean, std = fitted.predict(rows, return_std=True)
    error = std / np.sqrt(n)
    assert (np.abs(samples.mean(axis=1) - mean) < 4 * error).all()
    wanted = covariance(X[:120], rows) * by_hand(X[:120], y[:120])[0] * y[:120].var()
    spread = np.sqrt((wanted**2 + np.outer(np.diag(wanted), np.diag(wanted))) / n)
    assert (np.abs(np.cov(samples) - wanted) < 4 * spread).all()
    np.testing.assert_array_equal(samples[:, :1], fitted.sample_y(rows, n, random_state=1)[:, :1])
    assert (fitted.sample_y(rows, random_state=2) != fitted.sample_y(rows, random_state=3)).all()


def test_intervals_hold_where_noise_varies(rng):
    X = rng.uniform(-1, 1, size=(3300, 2))
    y = X[:, 0] + (0.1 + np.abs(X[:, 1])) * rng.standard_t(3, size=3300)
    machine = KernelMachineRegressor(**GIVEN, gamma=[0.5, 0.5]).fit(X[:300], y[:300])
    for coverage in (0.5, 0.8, 0.95):
        low, high = machine.predict_interval(X[300:], coverage).T
        inside = ((low <= y[300:]) & (y[300:] <= high)).mean()
        # Of 3,000 rows, and of the 300 that the reach of the intervals comes from.
        assert abs(inside - coverage) < 3 * np.sqrt(coverage * (1 - coverage) * (1 / 3000 + 1 / 300))


def test_transformed_targets(table):
    """Intervals are those of logarithms, and standard deviations those of what has a logarithm that is normal."""
    X, y, _ = table
    plain = KernelMachineRegressor(**GIVEN, gamma=GAMMA, target_transform=None).fit(X[:120], y[:120])
    machine = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], np.exp(2 * y[:120]))
    assert machine.target_transform_ == "log"
    np.testing.assert_allclose(
        np.log(machine.predict_interval(X[120:])) / 2, plain.predict_interval(X[120:]), atol=1e-6
    )
    machine._target_shifts = np.zeros((1, 1))
    mean, std = plain.predict(X[120:], return_std=True)
    variances = (2 * std) ** 2
    wanted = np.exp(2 * mean + variances / 2) * np.sqrt(np.expm1(variances))
    np.testing.assert_allclose(machine.predict(X[120:], return_std=True)[1], wanted, rtol=1e-3)
    assert (machine.sample_y(X[120:130], 5) > 0).all()


def test_several_targets(table):
    X, y, _ = table
    both = np.column_stack([y, 3 - 2 * X[:, 1]])[:120]
    machine = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], both)
    alone = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], both[:, 1])
    rows = X[120:150]
    assert machine.sample_y(rows, 4).shape == (30, 2, 4)
    predicted, std = machine.predict(rows, return_std=True)
    assert predicted.shape == std.shape == (30, 2)
    np.testing.assert_allclose(std[:, 1], alone.predict(rows, return_std=True)[1], rtol=1e-5)
    intervals = machine.predict_interval(rows)
    assert intervals.shape == (30, 2, 2)
    np.testing.assert_allclose(intervals[:, 1], alone.predict_interval(rows), rtol=1e-5)


def test_gross_errors_do_not_widen_the_intervals_of_most(rng):
    X = rng.uniform(-1, 1, size=(300, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    y[::30] += 20.0
    given = {**GIVEN, "gamma": [0.5, 0.5], "loss": "huber", "target_transform": None}
    machine = KernelMachineRegressor(**given).fit(X, y)
    assert np.ptp(machine.predict_interval(X[:10], 0.8), axis=1).max() < 1.0
    assert np.ptp(machine.predict_interval(X[:10], 0.98), axis=1).min() > 20.0


def test_blocks_and_layouts_of_rows(fitted, table):
    X, y, _ = table
    source = blocks(X[120:], y[120:], block_rows=50)
    for function in (fitted.predict_interval, lambda rows: fitted.predict(rows, return_std=True)):
        np.testing.assert_allclose(function(source), function(X[120:]), rtol=1e-4)
    with pytest.raises(ValueError, match="X must be rows in memory"):
        fitted.sample_y(source)


def test_nothing_of_it_is_kept_in_the_machine(table):
    X, y, _ = table
    machine = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], y[:120])
    other = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], y[:120])
    before = machine.predict_interval(X)
    assert_same_state(machine, other)
    sio = pytest.importorskip("skops.io")
    loaded = sio.loads(sio.dumps(machine), trusted=["binfeat.machine.KernelMachineRegressor"])
    np.testing.assert_array_equal(loaded.predict_interval(X), before)


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, np.nan])
def test_bad_coverage(fitted, table, coverage):
    with pytest.raises(ValueError, match="coverage must be"):
        fitted.predict_interval(table[0], coverage)
    with pytest.raises(TypeError, match="coverage must be"):
        fitted.predict_interval(table[0], "most")


def test_bad_arguments(fitted, table):
    X, y, _ = table
    with pytest.raises(TypeError, match="return_std must be"):
        fitted.predict(X, return_std="yes")
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        fitted.sample_y(X, 0)
    few = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:8], y[:8])
    with pytest.raises(ValueError, match=r"coverage must be at most 0\.889 where 8 rows"):
        few.predict_interval(X, 0.9)
    assert few.predict_interval(X, 0.88).shape == (400, 2)
    assert not hasattr(KernelMachineClassifier, "predict_interval")
