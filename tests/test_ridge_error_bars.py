"""Standard deviations of ridge models, compared with dense algebra."""

import naive
import numpy as np
import pytest
from interrupts import interrupted
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from sklearn.linear_model import BayesianRidge

from binfeat import CGRidge, RandomBinning, RandomFeatureUnion, RandomFourier, blocks
from binfeat.linear import posterior

N_SAMPLES = 32
SPREAD = np.sqrt(1 / (2 * N_SAMPLES))  # of a standard deviation that so many samples know


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=300), rng.uniform(-2.5, 2.5, size=(80, 2))


def binned(X, new, output="codes", n_grids=40):
    binning = RandomBinning(gamma=0.5, n_grids=n_grids, output=output, random_state=0)
    return binning.fit_transform(X), binning.transform(new)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_dense_features_have_exact_standard_deviations(rows, weighted, fit_intercept):
    X, y, new = rows
    waves = RandomFourier(n_components=20, random_state=0)
    Z, Z_new = waves.fit_transform(X) + 0.5, waves.transform(new) + 0.5
    weights = np.random.default_rng(1).uniform(0, 2, size=300).round() if weighted else np.ones(300)
    model = CGRidge(alpha=0.2, n_posterior_samples=1, fit_intercept=fit_intercept).fit(Z, y, sample_weight=weights)
    assert model.solver_ == "gram"
    predicted, std = model.predict(Z_new, return_std=True)
    np.testing.assert_array_equal(predicted, model.predict(Z_new))
    noise, variances = naive.ridge_posterior(Z, y, Z_new, 0.2, weights, fit_intercept)
    assert model.noise_variance_ == pytest.approx(noise, rel=1e-4)
    np.testing.assert_allclose(std, np.sqrt(noise * variances), rtol=1e-4)


DEPENDENT = {
    "sums": lambda X: np.column_stack([X, 0.19 * X[:, 0], 1.19 * X[:, 0]]),
    "copies of large columns": lambda X: np.column_stack([1e9 * X, 1e9 * X]),
    "far from zero": lambda X: 1e6 + X,
    "small": lambda X: 1e-60 * X,
    "units": lambda X: np.column_stack([1e9 * X[:, 0], X[:, 1], X[:, 0]]),
}


@pytest.mark.parametrize("kind", DEPENDENT)
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_dependent_columns_and_other_units(rows, kind, alpha):
    """The reference uses singular values, because the normal equations are singular to working precision."""
    X, y, new = rows
    Z, Z_new = DEPENDENT[kind](X), DEPENDENT[kind](new)
    model = CGRidge(alpha=alpha, n_posterior_samples=1).fit(Z, y)
    _, values, axes = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    known = (Z_new - Z.mean(axis=0)) @ axes.T / np.sqrt(values**2 + alpha)
    expected = np.sqrt(model.noise_variance_ * ((known**2).sum(axis=1) + 1 / len(Z)))
    np.testing.assert_allclose(model.predict(Z_new, return_std=True)[1], expected, rtol=2e-4)


@pytest.mark.parametrize("output", ["codes", "csr"])
def test_samples_of_binning_features(rows, output):
    X, y, new = rows
    Z, Z_new = binned(X, new, output)
    weights = np.random.default_rng(1).integers(0, 4, size=300)
    model = CGRidge(alpha=0.3, n_posterior_samples=N_SAMPLES, random_state=0).fit(Z, y, sample_weight=weights)
    dense, dense_new = ((each.tocsr() if output == "codes" else each).toarray() for each in (Z, Z_new))
    noise, variances = naive.ridge_posterior(dense, y, dense_new, 0.3, weights)
    if output == "codes":  # bins without a column have the prior variance
        variances += (1 - (dense_new**2).sum(axis=1)) / 0.3
    assert model._posterior["coef"].shape == (N_SAMPLES, Z.shape[1])
    assert model._posterior["coef"].dtype == np.float32
    assert model.noise_variance_ == pytest.approx(noise, rel=0.05)
    ratios = model.predict(Z_new, return_std=True)[1] / np.sqrt(noise * variances)
    assert abs(ratios.mean() - 1) < 0.06
    assert ratios.std() < 1.5 * SPREAD


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_small_penalties_and_uneven_weights_do_not_shrink_standard_deviations(rows, fit_intercept):
    X, y, new = rows
    Z, Z_new = binned(X, new, "csr")
    weights = np.random.default_rng(1).uniform(0, 50, size=300) * (np.arange(300) % 3 > 0)
    options = {"alpha": 0.01, "n_posterior_samples": 128, "random_state": 0, "fit_intercept": fit_intercept}
    model = CGRidge(**options).fit(Z, y, sample_weight=weights)
    _, variances = naive.ridge_posterior(Z.toarray(), y, Z_new.toarray(), 0.01, weights, fit_intercept)
    known = variances > 0
    std = model.predict(Z_new, return_std=True)[1][known]
    ratios = std / np.sqrt(model.noise_variance_ * variances[known])
    assert 0.8 < ratios.min() < ratios.max() < 1.25
    assert np.median(ratios) == pytest.approx(1, abs=0.05)


def test_unfinished_samples_overestimate_and_warn(rows):
    X, y, new = rows
    Z, Z_new = binned(X, new, "csr")
    model = CGRidge(alpha=0.01, tol=0.5, max_iter=10, n_posterior_samples=N_SAMPLES, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Standard deviations are too large, .* at most 10 iterations"):
        model.fit(Z, y)
    _, variances = naive.ridge_posterior(Z.toarray(), y, Z_new.toarray(), 0.01)
    ratios = model.predict(Z_new, return_std=True)[1] / np.sqrt(model.noise_variance_ * variances)
    assert ratios.min() > 1 - 3 * SPREAD


def test_far_from_all_rows_only_the_prior_is_known(rows):
    X, y, _ = rows
    Z, Z_new = binned(X, [[50.0, 50.0]])
    model = CGRidge(alpha=0.3, n_posterior_samples=N_SAMPLES, random_state=0).fit(Z, y)
    _, (of_intercept,) = naive.ridge_posterior(Z.tocsr().toarray(), y, np.zeros((1, Z.shape[1])), 0.3)
    std = model.predict(Z_new, return_std=True)[1][0]
    assert std**2 == pytest.approx(model.noise_variance_ * (1 / 0.3 + of_intercept), rel=3 * SPREAD)
    assert std**2 > model.noise_variance_ / 0.3


def test_samples_of_features_of_two_kinds(rows):
    X, y, new = rows
    maps = [
        ("bins", RandomBinning(gamma=0.5, n_grids=40, output="codes", random_state=0)),
        ("waves", RandomFourier(n_components=20, random_state=0)),
    ]
    union = RandomFeatureUnion(maps, weights=[0.5, 2.0], sparse_output=False).fit(X)
    model = CGRidge(alpha=0.3, n_posterior_samples=N_SAMPLES, random_state=0).fit(union.transform(X), y)
    dense, dense_new = union.transform(X).toarray(), union.transform(new).toarray()
    noise, variances = naive.ridge_posterior(dense, y, dense_new, 0.3)
    variances += (2.5 - (dense_new**2).sum(axis=1)) / 0.3
    ratios = model.predict(union.transform(new), return_std=True)[1] / np.sqrt(noise * variances)
    assert abs(ratios.mean() - 1) < 0.06
    assert ratios.std() < 1.5 * SPREAD


@pytest.mark.hard
def test_samples_of_many_rows_beside_a_gaussian_process():
    """They equal scikit-learn's, with the same kernel and noise, at distant rows with nearly independent errors."""
    rng, alpha = np.random.default_rng(0), 3.0
    X = rng.uniform(-30, 30, size=(3000, 1))
    y = np.sin(X[:, 0]) + 0.5 * rng.normal(size=3000)
    new = np.linspace(-30, 30, 61)[:, None]
    kernel = ConstantKernel(1 / alpha) * Matern(2.0, nu=0.5) + ConstantKernel(1e4)  # for a free intercept
    process = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None).fit(X, y)
    expected = process.predict(new, return_std=True)[1]
    Z, Z_new = binned(X, new, n_grids=100)
    ridge = CGRidge(alpha=alpha, n_posterior_samples=N_SAMPLES, random_state=0).fit(Z, y)
    std = ridge.predict(Z_new, return_std=True)[1]
    ratios = std / (np.sqrt(ridge.noise_variance_) * expected)
    assert abs(ratios.mean() - 1) < 4 * SPREAD / np.sqrt(len(new))
    assert ratios.std() < 1.5 * SPREAD


def test_noise_is_that_of_the_targets():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2000, 10))
    y = Z @ rng.normal(size=10) + 0.5 * rng.normal(size=2000)
    model = CGRidge(alpha=0.01, n_posterior_samples=1).fit(Z, y)
    assert model.noise_variance_ == pytest.approx(0.25, abs=4 * 0.25 * np.sqrt(2 / 2000))
    peer = BayesianRidge().fit(Z, y)
    np.testing.assert_allclose(
        np.sqrt(model.predict(Z, return_std=True)[1] ** 2 + model.noise_variance_),
        peer.predict(Z, return_std=True)[1],
        rtol=0.01,
    )


def test_several_targets_have_noise_of_their_own(rows):
    X, y, new = rows
    Z, Z_new = binned(X, new)
    options = {"alpha": 0.3, "tol": 1e-8, "n_posterior_samples": 4, "random_state": 0}
    both = CGRidge(**options).fit(Z, np.column_stack([y, 5 * X[:, 1]]))
    alone = CGRidge(**options).fit(Z, y)
    std = both.predict(Z_new, return_std=True)[1]
    assert std.shape == (80, 2)
    assert both.noise_variance_.shape == (2,)
    np.testing.assert_allclose(std[:, 0], alone.predict(Z_new, return_std=True)[1], rtol=1e-6)


def test_same_samples_for_any_number_of_threads_and_from_a_source(rows, threads):
    X, y, new = rows
    binning = RandomBinning(gamma=0.5, n_grids=20, output="codes", random_state=0).fit(X)
    Z_new = binning.transform(new)
    model = CGRidge(alpha=0.3, tol=1e-2, n_posterior_samples=9, random_state=0)
    expected = model.fit(binning.transform(X), y).predict(Z_new, return_std=True)[1]
    threads(1)
    np.testing.assert_array_equal(model.fit(binning.transform(X), y).predict(Z_new, return_std=True)[1], expected)
    source = binning.transform(blocks(X, y, block_rows=70))
    np.testing.assert_allclose(model.fit(source).predict(Z_new, return_std=True)[1], expected, rtol=1e-5)


def test_bad_parameters(rows):
    X, y, _ = rows
    for value in (0, -1):
        with pytest.raises(ValueError, match="n_posterior_samples must be at least 1"):
            CGRidge(n_posterior_samples=value).fit(X, y)
    with pytest.raises(TypeError, match="n_posterior_samples must be"):
        CGRidge(n_posterior_samples="many").fit(X, y)
    for alpha in (0.0, [1.0, 2.0]):
        with pytest.raises(ValueError, match="n_posterior_samples requires one positive alpha"):
            CGRidge(alpha=alpha, n_posterior_samples=2).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="n_posterior_samples requires a positive alpha, but alphas selected 0"):
        CGRidge(alphas=[0.0], n_posterior_samples=2).fit(X, y)
    model = CGRidge().fit(X, y)
    with pytest.raises(ValueError, match="return_std=True requires posterior samples"):
        model.predict(X, return_std=True)
    with pytest.raises(TypeError, match="return_std must be"):
        model.predict(X, return_std=1)


@pytest.mark.filterwarnings("ignore:fit stores no rows")
def test_a_fit_without_samples_forgets_those_of_the_last(rows):
    X, y, _ = rows
    model = CGRidge(n_posterior_samples=2).fit(X, y)
    with pytest.raises(AttributeError, match="partial_fit does not support n_posterior_samples"):
        model.partial_fit(X, y)
    model.set_params(n_posterior_samples=None).fit(X, y)
    assert not hasattr(model, "noise_variance_")
    model.set_params(n_posterior_samples=2).fit(X, y).set_params(n_posterior_samples=None).partial_fit(X, y)
    assert not hasattr(model, "noise_variance_")
    with pytest.raises(ValueError, match="return_std=True requires posterior samples"):
        model.predict(X, return_std=True)


def test_ctrl_c_while_samples_are_drawn_leaves_a_model(rows):
    X, y, _ = rows
    Z, _ = binned(X, X[:1])
    model = CGRidge(n_posterior_samples=2)
    with interrupted(posterior, "_sampled"), pytest.raises(KeyboardInterrupt):
        model.fit(Z, y)
    assert model.status_ == "interrupted"
    np.testing.assert_array_equal(model.predict(Z), CGRidge().fit(Z, y).predict(Z))
