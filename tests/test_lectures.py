"""Statements of lectures on random features: the Gaussian process mean, and the SVM with random features."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from binfeat import CGRidge, CGRidgeClassifier, RandomFourier

GAMMA, NOISE = 0.5, 0.1


@pytest.fixture
def waves(rng):
    X, X_test = rng.uniform(-3, 3, size=(150, 2)), rng.uniform(-3, 3, size=(80, 2))
    return X, np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=150), X_test


def ridge_mean(X, y, X_test, n_components, seed):
    features = RandomFourier(gamma=GAMMA, n_components=n_components, random_state=seed)
    return (
        make_pipeline(features, CGRidge(alpha=NOISE, fit_intercept=False, tol=1e-10, max_iter=5000))
        .fit(X, y)
        .predict(X_test)
    )


def test_ridge_is_the_gaussian_process_of_its_own_kernel(waves):
    """It is the posterior mean of the process with the features' inner product as covariance."""
    X, y, X_test = waves
    features = RandomFourier(gamma=GAMMA, n_components=400, random_state=0).fit(X)
    Z, Z_test = features.transform(X), features.transform(X_test)
    mean = Z_test @ Z.T @ np.linalg.solve(Z @ Z.T + NOISE * np.eye(len(X)), y)
    np.testing.assert_allclose(ridge_mean(X, y, X_test, 400, 0), mean, rtol=1e-6, atol=1e-8)


@pytest.mark.hard
def test_more_features_come_nearer_to_the_gaussian_process(waves):
    """Sixteen times the features have a quarter of the distance, within the spread of eight draws."""
    X, y, X_test = waves
    process = GaussianProcessRegressor(RBF(1 / np.sqrt(2 * GAMMA)), alpha=NOISE, optimizer=None).fit(X, y)
    exact = process.predict(X_test)
    distances = {
        n: np.array([np.sqrt(np.mean((ridge_mean(X, y, X_test, n, seed) - exact) ** 2)) for seed in range(8)])
        for n in (1024, 16384)
    }
    ratio = distances[1024].mean() / distances[16384].mean()
    spread = [own.std(ddof=1) / own.mean() / np.sqrt(8) for own in distances.values()]
    assert abs(np.log(ratio / 4)) <= 4 * np.hypot(*spread)
    assert distances[16384].mean() < 0.05 * exact.std()


def test_squared_hinge_on_random_features_is_as_good_as_the_exact_svm():
    """Errors on a thousand rows are within four standard errors of a paired difference."""
    X, y = make_moons(2000, noise=0.2, random_state=0)
    X, y, X_test, y_test = X[:1000], y[:1000], X[1000:], y[1000:]
    exact = SVC(gamma=2.0, C=1.0).fit(X, y)
    features = RandomFourier(gamma=2.0, n_components=1000, random_state=0)
    ours = make_pipeline(features, CGRidgeClassifier(alpha=0.5, loss="squared_hinge")).fit(X, y)
    wrong = (ours.predict(X_test) != y_test).astype(float) - (exact.predict(X_test) != y_test)
    assert wrong.mean() <= 4 * wrong.std() / np.sqrt(len(wrong)) + 1e-12
    assert ours.score(X_test, y_test) > 0.95
