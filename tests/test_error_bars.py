"""Error bars of kernel models: standard deviations, samples, intervals."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import naive
import numpy as np
import pytest
from kernel_models import FIXED, assert_same_state, with_options
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from threadpoolctl import threadpool_limits

from binfeat import KernelMachineClassifier, KernelMachineRegressor, RandomBinning, blocks, kernels
from binfeat.models.fitted import exact, local

# All hyperparameters are given: one kernel, its gamma, the penalty.
GIVEN = {"features": "exact", "random_state": 0, "kernel": "laplacian", "alpha": 0.3}
GAMMA = [0.5, 0.2, 0.0, 0.1]


@pytest.fixture(scope="module")
def fitted(table):
    X, y, _ = table
    return KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], y[:120])


def by_hand(X, y, alpha=0.3, weights=None):
    """Return standardized noise, and the quantile of scores of leave-one-out predictions for intervals of 80 %."""
    K, Y = kernels.Laplacian()(X, gamma=GAMMA), ((y - y.mean()) / y.std()).reshape(-1, 1)
    residuals = naive.left_out_residuals(K, Y, alpha, weights)[:, 0]
    variances, v = naive.left_out_variances(K, alpha, weights), np.ones(len(y)) if weights is None else weights
    noise = np.mean(v * residuals**2 / (1 + v * variances))
    return noise, naive.weighted_quantile(np.abs(residuals) / np.sqrt(noise * (1 + variances)), v, 49 / 61)


def covariance(X, rows, alpha=0.3, weights=None):
    kernel = kernels.Laplacian()
    values = kernel(X, gamma=GAMMA), kernel(rows, X, gamma=GAMMA), kernel(rows, gamma=GAMMA)
    return naive.posterior(*values, alpha, weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_standard_deviations_and_intervals_of_an_exact_model(table, weighted):
    X, y, _ = table
    X, y, rows = X[:60], y[:60], np.vstack([X[100:120], [[5.0, 0, 0, 0]]])
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=60) if weighted else None
    model = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X, y, sample_weight=weights)
    alpha = float(model._exact["alpha"])  # for weights of mean 1 in the training rows
    known = alpha, None if weights is None else weights * alpha / 0.3
    noise, reach = by_hand(X, y, *known)
    variances = np.diag(covariance(X, rows, *known))
    predicted, std = model.predict(rows, return_std=True)
    np.testing.assert_array_equal(predicted, model.predict(rows))
    np.testing.assert_allclose(std, y.std() * np.sqrt(noise * variances), rtol=2e-3)
    half = reach * y.std() * np.sqrt(noise * (1 + variances))
    intervals = model.predict_interval(rows, coverage=0.8, method="deviations")
    np.testing.assert_allclose(intervals, np.column_stack([predicted - half, predicted + half]), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_with_groups_use_errors_of_whole_groups(table, weighted):
    """By errors of single rows, intervals of 90 % contained 31 % of the rows of new groups."""
    X, y, _ = table
    X, y, rows, groups = X[:60], y[:60], X[100:120], X[:60, 0].argsort().argsort() // 5
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=60) if weighted else np.ones(60)
    model = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X, y, sample_weight=weights, groups=groups)
    alpha, Y, scaled = float(model._exact["alpha"]), (y - y.mean()) / y.std(), np.empty(60)
    v = weights * alpha / 0.3
    K = kernels.Laplacian()(X, gamma=GAMMA) + 1
    for group in range(12):
        own, others = groups == group, groups != group
        coef = np.linalg.solve(K[np.ix_(others, others)] + np.diag(alpha / v[others]), Y[others])
        variances = np.diag(covariance(X[others], X[own], alpha, v[others]))
        scaled[own] = np.abs(Y[own] - K[np.ix_(own, others)] @ coef) / np.sqrt(1 + variances)
    half = naive.weighted_quantile(scaled, v, 49 / 61) * y.std() * np.sqrt(1 + np.diag(covariance(X, rows, alpha, v)))
    predicted, intervals = model.predict(rows), model.predict_interval(rows, coverage=0.8, method="deviations")
    np.testing.assert_allclose(intervals, np.column_stack([predicted - half, predicted + half]), rtol=2e-3, atol=2e-3)


def test_standard_deviations_are_those_of_a_gaussian_process(rng):
    """They equal scikit-learn's Gaussian process with the same kernel and noise."""
    X = rng.uniform(-3, 3, size=(150, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=150)
    model = KernelMachineRegressor(**GIVEN, gamma=[0.5]).fit(X, y)
    rows = np.linspace(-6, 6, 30)[:, None]
    predicted, std = model.predict(rows, return_std=True)
    noise = model._fitted.posterior(None).errors.noise[0]
    kernel = ConstantKernel(noise / 0.3) * (Matern(2.0, nu=0.5) + ConstantKernel(1.0))
    peer = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, (y - y.mean()) / y.std())
    mean, deviations = peer.predict(rows, return_std=True)
    np.testing.assert_allclose(predicted, y.mean() + y.std() * mean, atol=1e-3)
    np.testing.assert_allclose(std, y.std() * deviations, rtol=2e-3)
    assert std[0] > 2 * std[15]


@pytest.mark.parametrize(
    "given",
    [
        {"features": "exact"},
        {"features": "exact", "loss": "huber"},
        {"features": "local", "solver_params": {"cell_rows": 100}},
        {"solver_params": {"n_grids": 30, "n_posterior_samples": 4}, "features": "binning"},
    ],
)
def test_noise_of_weights_that_are_inverse_variances(given, rng, few_steps):
    """Without weights of residuals, the estimated noise of a row of mean weight was thousands of times as large."""
    X, deviations = rng.uniform(-1, 1, size=(800, 2)), rng.choice([0.01, 1.0], size=800)
    y, weights = 0.02 * X[:, 0] + deviations * rng.normal(size=800), deviations**-2.0
    options = {"random_state": 0, "target_transform": None, "kernel": "laplacian", "gamma": [0.3, 0.3]} | given
    model = KernelMachineRegressor(**options).fit(X, y, sample_weight=weights)
    noise = model._fitted.posterior(None).errors.noise[0] * model._fitted.targets.std[0] ** 2
    assert noise == pytest.approx(1 / weights.mean(), rel=0.25)
    assert model.predict(X, return_std=True)[1].max() < 0.02


@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 1e-2])
def test_standard_deviations_of_smooth_functions_with_little_noise(rng, alpha):
    """In float32, most variances were 0 with the smallest penalty, and 5 % off with a thousand times as much."""
    X, rows = rng.uniform(-1, 1, size=(200, 1)), rng.uniform(-1, 1, size=(40, 1))
    options = {**GIVEN, "kernel": "rbf", "gamma": 1.0, "alpha": alpha}
    model = KernelMachineRegressor(**options).fit(X, np.sin(2 * X[:, 0]))
    columns = [model._fitted.function.standardizer.columns(each).T.astype(float) for each in (X, rows)]
    gamma = model._fitted.function.gammas[0]
    K, across = (kernels.RBF()(columns[0], each, gamma=gamma) + 1 for each in columns)
    solved = np.linalg.solve(K + model.alpha_ * np.eye(200), across)
    variances = (2 - (across * solved).sum(axis=0)) / model.alpha_
    posterior = model._fitted.posterior(None)
    np.testing.assert_allclose(posterior.variances(rows, None), variances, rtol=1e-2 if alpha == 1e-2 else 1e-5)
    std = model.predict(rows, return_std=True)[1]
    assert (std > 0).all()
    samples = model.sample_y(rows, 2000, random_state=0)
    np.testing.assert_allclose(samples.std(axis=1), std, rtol=0.1)


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
    model = KernelMachineRegressor(**GIVEN, gamma=[0.5, 0.5]).fit(X[:300], y[:300])
    for coverage in (0.5, 0.8, 0.95):
        low, high = model.predict_interval(X[300:], coverage).T
        inside = ((low <= y[300:]) & (y[300:] <= high)).mean()
        # 3,000 rows, and the 300 rows that determine the width of intervals.
        assert abs(inside - coverage) < 3 * np.sqrt(coverage * (1 - coverage) * (1 / 3000 + 1 / 300))


def test_transformed_targets(table):
    """Intervals are transformed from logarithms; standard deviations are those of the log-normal distribution."""
    X, y, _ = table
    plain = KernelMachineRegressor(**GIVEN, gamma=GAMMA, target_transform=None).fit(X[:120], y[:120])
    model = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], np.exp(2 * y[:120]))
    assert model.target_transform_ == "log"
    model._target_limits = np.array([[-np.inf], [np.inf]])
    model = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(np.log(model.predict_interval(X[120:])) / 2, plain.predict_interval(X[120:]), atol=1e-6)
    model._target_shifts = np.zeros((1, 1))
    model = pickle.loads(pickle.dumps(model))  # derived quantities are computed again
    mean, std = plain.predict(X[120:], return_std=True)
    variances = (2 * std) ** 2
    wanted = np.exp(2 * mean + variances / 2) * np.sqrt(np.expm1(variances))
    np.testing.assert_allclose(model.predict(X[120:], return_std=True)[1], wanted, rtol=1e-3)
    assert (model.sample_y(X[120:130], 5) > 0).all()


def test_several_targets(table):
    X, y, _ = table
    both = np.column_stack([y, 3 - 2 * X[:, 1]])[:120]
    model = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], both)
    alone = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], both[:, 1])
    rows = X[120:150]
    assert model.sample_y(rows, 4).shape == (30, 2, 4)
    predicted, std = model.predict(rows, return_std=True)
    assert predicted.shape == std.shape == (30, 2)
    np.testing.assert_allclose(std[:, 1], alone.predict(rows, return_std=True)[1], rtol=1e-5)
    intervals = model.predict_interval(rows, method="deviations")
    assert intervals.shape == (30, 2, 2)
    np.testing.assert_allclose(intervals[:, 1], alone.predict_interval(rows, method="deviations"), rtol=1e-5)


def test_gross_errors_do_not_widen_the_intervals_of_most(rng):
    X = rng.uniform(-1, 1, size=(300, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    y[::30] += 20.0
    given = {**GIVEN, "gamma": [0.5, 0.5], "loss": "huber", "target_transform": None}
    model = KernelMachineRegressor(**given).fit(X, y)
    assert np.ptp(model.predict_interval(X[:10], 0.8), axis=1).max() < 1.0
    assert np.ptp(model.predict_interval(X[:10], 0.98), axis=1).min() > 20.0


@pytest.mark.parametrize("features", ["exact", "local", "binning"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gross_errors_do_not_widen_standard_deviations(features, weighted, rng, few_steps):
    """The noise contained the outliers, so standard deviations were up to 50 times as large."""
    X, weights = rng.uniform(-1, 1, size=(400, 2)), rng.integers(1, 4, size=400) if weighted else None
    y = X[:, 0] + 0.1 * rng.normal(size=400)
    y[::10] += 20.0 * rng.choice([-1.0, 1.0], size=40)
    options = {"exact": {}, "local": {"cell_rows": 150}, "binning": {"n_grids": 30, "n_posterior_samples": 4}}
    given = {**GIVEN, "gamma": [0.5, 0.5], "features": features, "solver_params": options[features] or None}
    model = KernelMachineRegressor(**given, loss="huber", target_transform=None).fit(X, y, sample_weight=weights)
    noise = np.sqrt(model._fitted.posterior(None).errors.noise[0]) * model._fitted.targets.std[0]
    assert 0.08 < noise < 0.18
    assert model.predict(X, return_std=True)[1].max() < 0.2
    assert model.sample_y(X[:10], 20).std(axis=1).max() < 0.3


def test_blocks_and_layouts_of_rows(fitted, table):
    X, y, _ = table
    source = blocks(X[120:], y[120:], block_rows=50)
    for function in (fitted.predict_interval, lambda rows: fitted.predict(rows, return_std=True)):
        np.testing.assert_allclose(function(source), function(X[120:]), rtol=1e-4)
    with pytest.raises(ValueError, match="sample_y requires rows in memory"):
        fitted.sample_y(source)


def test_nothing_of_it_is_kept_in_the_model(table):
    X, y, _ = table
    model = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], y[:120])
    other = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:120], y[:120])
    before = model.predict_interval(X)
    assert_same_state(model, other)
    sio = pytest.importorskip("skops.io")
    loaded = sio.loads(sio.dumps(model), trusted=["binfeat.KernelMachineRegressor"])
    np.testing.assert_array_equal(loaded.predict_interval(X), before)


@pytest.mark.parametrize("method", ["deviations", "quantiles"])
def test_intervals_of_a_row_alone_are_those_in_a_batch(fitted, table, method):
    rows = table[0][:60]
    batch = fitted.predict_interval(rows, method=method)
    alone = np.concatenate([fitted.predict_interval(row[np.newaxis], method=method) for row in rows])
    np.testing.assert_array_less(np.abs(alone - batch).max(axis=1), 1e-3 * np.ptp(batch, axis=1))
    if method == "quantiles":
        np.testing.assert_array_equal(alone, batch)


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
    with pytest.raises(ValueError, match=r"coverage must be at most 0\.889 with 8 validation rows"):
        few.predict_interval(X, 0.9)
    assert few.predict_interval(X, 0.88).shape == (400, 2)
    assert not hasattr(KernelMachineClassifier, "predict_interval")


# Models of random features.

N_SAMPLES = 32
SPREAD = np.sqrt(1 / (2 * N_SAMPLES))  # of a standard deviation that so many samples know
HALVES = [(np.arange(250), np.arange(250, 400))]
BINS = {**with_options(FIXED, n_posterior_samples=N_SAMPLES), "target_transform": None, "alpha": 0.3}


def far_and_near(X):
    return np.vstack([X[:40] + 0.1, [[50.0, 0.0, 0.0, 0.0]]])


def test_samples_of_bins_are_of_the_dense_posterior(table):
    X, y, _ = table
    rows, z = far_and_near(X), (y - y.mean()) / y.std()
    model = KernelMachineRegressor(**BINS, cv=HALVES, refit=False).fit(X, y)
    binning = RandomBinning(gamma=0.5, n_grids=20, random_state=0).fit(X[:250])
    Z, Z_out, Z_new = (binning.transform(each).toarray() for each in (X[:250], X[250:], rows))
    own = [
        naive.ridge_posterior(Z, z[:250], each, 0.3)[1] + (1 - (each**2).sum(axis=1)) / 0.3 for each in (Z_out, Z_new)
    ]
    coef, intercept = naive.ridge(Z, z[:250], 0.3)
    residuals = z[250:] - Z_out @ coef[0] - intercept[0]
    noise = np.mean(residuals**2 / (1 + own[0]))
    std = model.predict(rows, return_std=True)[1]
    ratios = std / (y.std() * np.sqrt(noise * own[1]))
    assert abs(ratios.mean() - 1) < 0.06
    assert ratios.std() < 1.5 * SPREAD
    assert std[-1] > 1.5 * std[:-1].mean()
    low, high = model.predict_interval(rows, 0.8, method="deviations").T
    reach = np.sort(np.abs(residuals) / np.sqrt(1 + own[0]))[int(np.ceil(0.8 * 151)) - 1]
    wide = 2 * y.std() * reach * np.sqrt(1 + own[1])
    assert np.mean((high - low) / wide) == pytest.approx(1, abs=0.06)


def test_weights_and_penalty_in_other_units(table):
    X, y, _ = table
    model = KernelMachineRegressor(**BINS).fit(X, y)
    weighted = KernelMachineRegressor(**{**BINS, "alpha": 2.1}).fit(X, y, sample_weight=np.full(400, 7.0))
    rows = far_and_near(X)
    np.testing.assert_allclose(
        weighted.predict(rows, return_std=True)[1], model.predict(rows, return_std=True)[1], rtol=1e-4
    )
    np.testing.assert_allclose(weighted.predict_interval(rows), model.predict_interval(rows), rtol=1e-3)


def test_fourier_features_have_exact_standard_deviations(table, few_grids):
    X, y, _ = table
    z = (y - y.mean()) / y.std()
    options = {
        "features": "fourier",
        "gamma": "scale",
        "solver_params": {"n_posterior_samples": 1},
        "random_state": 0,
        "target_transform": None,
    }
    model = KernelMachineRegressor(**options, cv=HALVES, refit=False).fit(X, y)
    fitted = model._fitted
    Z, Z_new = (fitted.function.fourier(fitted.rows(model, each)) for each in (X[:250], X[:40] + 0.1))
    _, variances = naive.ridge_posterior(Z, z[:250], Z_new, model.alpha_)
    std = y.std() * np.sqrt(model._held_out["noise"] * variances)
    np.testing.assert_allclose(model.predict(X[:40] + 0.1, return_std=True)[1], std, rtol=1e-3)


def test_bins_of_validation_rows_have_the_variance_of_the_prior(table, few_grids):
    """Their coefficients are 0 until the refit to all rows; error bars do not change."""
    X, y, _ = table
    before, after = (KernelMachineRegressor(**BINS, refit=refit).fit(X, y) for refit in (False, True))
    assert after._posterior["coef"].shape == (N_SAMPLES, after.feature_coef_.shape[1])
    assert np.count_nonzero(after.feature_coef_) > np.count_nonzero(before.feature_coef_)
    only = before.feature_coef_[0] == 0
    assert only.any()
    samples = before._posterior["coef"][:, only]
    np.testing.assert_allclose((samples**2).sum(axis=0).mean() * before._posterior["alpha"], 1.0, rtol=0.1)
    rows = far_and_near(X)
    ratios = after.predict(rows, return_std=True)[1] / before.predict(rows, return_std=True)[1]
    assert abs(ratios.mean() - 1) < 0.05
    np.testing.assert_array_equal(after._held_out["scores"], before._held_out["scores"])


def test_sampled_functions_of_bins(table):
    X, y, _ = table
    model = KernelMachineRegressor(**BINS).fit(X, y)
    rows, n = np.vstack([far_and_near(X), [[50.0, 0.0, 0.0, 0.0], [-50.0, 0.0, 0.0, 0.0]]]), 2000
    samples = model.sample_y(rows, n)
    mean, std = model.predict(rows, return_std=True)
    assert (np.abs(samples.mean(axis=1) - mean) < 5 * std / np.sqrt(n)).all()
    np.testing.assert_allclose(samples.std(axis=1), std, rtol=5 / np.sqrt(2 * n))
    np.testing.assert_array_equal(samples[-2], samples[-3])  # the same row in the same unseen bins
    assert np.corrcoef(samples[-1], samples[-2])[0, 1] < 0.6


def test_without_samples_all_intervals_have_one_width(table):
    X, y, _ = table
    model = KernelMachineRegressor(**with_options(BINS, n_posterior_samples=None)).fit(X[:300], y[:300])
    np.testing.assert_allclose(np.ptp(np.ptp(model.predict_interval(X, method="deviations"), axis=1)), 0, atol=1e-12)
    for ask in (lambda: model.predict(X, return_std=True), lambda: model.sample_y(X)):
        with pytest.raises(ValueError, match="features='binning' require posterior samples"):
            ask()
    with pytest.raises(ValueError, match=r"coverage must be at most 0\.987 with 75 validation rows"):
        model.predict_interval(X, 0.99)


@pytest.mark.hard
def test_samples_change_nothing_else(table, threads, limits):
    limits(n_steps=5, sample_grids=(5, 20))
    X, y, _ = table
    plain = KernelMachineRegressor(**with_options(BINS, n_posterior_samples=None)).fit(X, y)
    model = KernelMachineRegressor(**BINS).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    threads(1)
    other = KernelMachineRegressor(**BINS).fit(X, y)
    assert_same_state(model, other)
    np.testing.assert_array_equal(model.predict_interval(X), other.predict_interval(X))


def test_samples_from_blocks(table, sampled_rows):
    """Validation rows are among the other rows."""
    X, y, _ = table
    sampled_rows(300)
    models = (KernelMachineRegressor(**BINS).fit(*each) for each in ((blocks(X, y, block_rows=150),), (X, y)))
    of_blocks, peer = (
        each.predict(far_and_near(X), return_std=True)[1] / np.sqrt(each._held_out["noise"]) for each in models
    )
    assert np.mean(of_blocks / peer) == pytest.approx(1, abs=0.08)


def test_bad_samples(table):
    X, y, _ = table
    for changed, message in (
        ({"solver_params": {"n_posterior_samples": 0}}, "at least 1"),
        ({"alpha": 0}, "requires a positive alpha"),
    ):
        with pytest.raises(ValueError, match=rf"n_posterior_samples'\] .*{message}"):
            KernelMachineRegressor(**{**BINS, **changed}).fit(X, y)
    with pytest.raises(TypeError, match=r"\['n_posterior_samples'\] must be"):
        KernelMachineRegressor(solver_params={"n_posterior_samples": "many"}).fit(X, y)


def test_one_factor_for_all_threads(table, monkeypatch):
    X, y, _ = table
    model = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X, y)
    made, real = [], exact.ExactPosterior

    def counted(*arguments):
        made.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(exact, "ExactPosterior", counted)
    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(partial(model.predict_interval, method="deviations"), [X[:20]] * 16)
    assert len(made) == 1
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("module", [exact, local])
def test_deviations_use_the_current_number_of_threads(table, monkeypatch, module):
    X, y, _ = table
    features = "exact" if module is exact else "local"
    model = KernelMachineRegressor(**{**GIVEN, "features": features, "n_jobs": 2}, gamma=GAMMA).fit(X, y)
    used, real = [], module.side_by_side

    def noted(work, items, n_jobs):
        used.append(n_jobs)
        return real(work, items, n_jobs)

    monkeypatch.setattr(module, "side_by_side", noted)
    model.predict(X, return_std=True)
    model.set_params(n_jobs=1).predict(X, return_std=True)
    assert used == [2, 1]


@pytest.fixture
def many_rows_are(monkeypatch):
    """Let models of a hundred rows use this number of landmarks and of rows per cell."""

    def set_to(n_rows, n_landmarks):
        monkeypatch.setattr(exact, "MOST_IN_CLOSED_FORM", 100)
        monkeypatch.setattr(exact, "rows_of_cell", lambda n: n_rows)
        monkeypatch.setattr(exact, "_LANDMARKS", n_landmarks)

    return set_to


@pytest.mark.parametrize("most", [1500, 300])
def test_deviations_have_the_same_bits_for_any_number_of_threads(rng, threads, many_rows_are, most):
    """Also for any number of BLAS threads, with the whole kernel matrix and by cells."""
    X = rng.uniform(size=(1300, 6))
    matern = GIVEN | {"kernel": kernels.Matern(1.5), "gamma": 0.3}
    model = KernelMachineRegressor(**matern).fit(X[:500], np.sin(6 * X[:500, 0]))
    if most < 500:
        many_rows_are(150, 40)
    expected = model.predict(X, return_std=True)[1]
    for n_jobs, n_blas in ((1, 2), (2, 1), (1, 1)):
        with threadpool_limits(n_blas, "blas"):
            other = pickle.loads(pickle.dumps(model)).set_params(n_jobs=n_jobs)
            np.testing.assert_array_equal(other.predict(X, return_std=True)[1], expected)


def test_many_rows_whose_landmarks_know_all(table, many_rows_are, monkeypatch):
    """Standard deviations, intervals and samples equal those with the whole kernel matrix."""
    X, y, _ = table
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=200)
    model = KernelMachineRegressor(**GIVEN, gamma=GAMMA).fit(X[:200], y[:200], sample_weight=weights)
    rows, n = np.vstack([X[200:240], [[9.0, 9.0, 9.0, 9.0]]]), 3000
    wanted, intervals = model.predict(rows, return_std=True)[1], model.predict_interval(rows, method="deviations")
    of_all = np.cov(model.sample_y(rows, n))
    many_rows_are(60, 200)
    other = pickle.loads(pickle.dumps(model))
    mean, std = other.predict(rows, return_std=True)
    np.testing.assert_allclose(std, wanted, rtol=0.02)
    np.testing.assert_allclose(other.predict_interval(rows, method="deviations"), intervals, rtol=0.02)
    samples = other.sample_y(rows, n)
    assert (np.abs(samples.mean(axis=1) - mean) < 5 * std / np.sqrt(n)).all()
    error = np.sqrt(2 * (wanted[:, None] ** 2 * wanted**2 + of_all**2) / n)  # of both covariances
    assert (np.abs(np.cov(samples) - of_all) < 5 * error + 0.04 * np.outer(wanted, wanted)).all()


def test_many_rows_of_which_cells_know_most(rng, many_rows_are):
    """Standard deviations are slightly too large, and intervals have their coverage."""
    X = rng.uniform(-1, 1, size=(1600, 2))
    y = np.sin(3 * X[:, 0]) + (0.1 + np.abs(X[:, 1])) * rng.normal(size=1600)
    model = KernelMachineRegressor(**GIVEN, gamma=[2.0, 2.0]).fit(X[:400], y[:400])
    exact_std = model.predict(X[400:], return_std=True)[1]
    many_rows_are(100, 40)
    other = pickle.loads(pickle.dumps(model))
    ratios = other.predict(X[400:], return_std=True)[1] / exact_std
    assert ratios.min() > 0.9
    assert 1 < ratios.mean() < 1.1
    low, high = other.predict_interval(X[400:], 0.8, method="deviations").T
    inside = ((low <= y[400:]) & (y[400:] <= high)).mean()
    assert abs(inside - 0.8) < 3 * np.sqrt(0.16 * (1 / 1200 + 1 / 400))


def test_many_rows_of_which_cells_know_little(rng, many_rows_are, monkeypatch):
    """The approximated inverse overestimates leave-one-out residuals by 40 % here, and standard deviations by 25 %."""
    X = rng.uniform(-1, 1, size=(3600, 3))
    y = np.sin(6 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.03 * rng.normal(size=3600)
    many_rows_are(100, 20)
    monkeypatch.setattr("binfeat.models.solvers.exact.MOST_IN_CLOSED_FORM", 100)
    monkeypatch.setattr("binfeat.models.solvers.exact.TUNING_ROWS", 100)
    model = KernelMachineRegressor(**GIVEN | {"alpha": 0.01}, gamma=[1.0, 0.3, 0.3]).fit(X[:1600], y[:1600])
    low, high = model.predict_interval(X[1600:], 0.8, method="deviations").T
    inside = ((low <= y[1600:]) & (y[1600:] <= high)).mean()
    assert abs(inside - 0.8) < 3 * np.sqrt(0.16 * (1 / 2000 + 1 / 1600))
    state, std = model.__getstate__(), model.predict(X[1600:], return_std=True)[1]
    samples = model.sample_y(X[1600:1650], 2000)
    np.testing.assert_allclose(samples.std(axis=1), std[:50], rtol=5 / np.sqrt(2 * 2000))
    older = KernelMachineRegressor.__new__(KernelMachineRegressor)
    older.__setstate__(state | {"_held_out": {name: state["_held_out"][name] for name in ("noise", "scores")}})
    factor = float(state["_held_out"]["variance_factor"])
    np.testing.assert_allclose(older.predict(X[1600:], return_std=True)[1] * np.sqrt(factor), std)
    monkeypatch.undo()
    exact_std = pickle.loads(pickle.dumps(model)).predict(X[1600:], return_std=True)[1]
    assert factor < 0.75
    assert np.mean(std / exact_std) == pytest.approx(1, abs=0.05)


def test_a_factor_of_each_cell_for_all_threads(table, monkeypatch):
    X, y, _ = table
    model = KernelMachineRegressor(
        **with_options({**GIVEN, "features": "local"}, cell_rows=100, n_trees=1), gamma=GAMMA
    ).fit(X, y)
    made, real = [], local.ExactPosterior

    def counted(*arguments, needs_errors):
        made.append(needs_errors)
        return real(*arguments, needs_errors=needs_errors)

    monkeypatch.setattr(local, "ExactPosterior", counted)
    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(partial(model.predict_interval, method="deviations"), [X] * 16)
    assert len(made) == len(np.unique(model.apply(X)))
    assert not any(made)  # errors are not computed again
    for other in others:
        np.testing.assert_array_equal(other, first)
