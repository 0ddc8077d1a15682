"""Pairs of inputs that say something together only, and machines that know several of them."""

import naive
import numpy as np
import pytest

from binfeat import KernelMachineRegressor, kernels
from binfeat._machine.search import pairs

NONE = np.zeros(6, dtype=bool)


def waves(X, a, b):
    return np.sin(2 * X[:, a]) * np.cos(2 * X[:, b])


def found(X, y, categorical=NONE):
    """The inputs of pairs that tell something."""
    lengths = pairs.lengths_of_pairs(X, np.asarray(y, dtype=float).reshape(len(X), -1), categorical)
    return [] if lengths is None else np.flatnonzero(np.isfinite(lengths)).tolist()


def test_surplus_is_an_analysis_of_variance(rng):
    first, second = rng.integers(3, size=200), rng.integers(4, size=200)
    scores = rng.normal(size=(200, 2)) + (first * second)[:, np.newaxis]
    scores -= scores.mean(axis=0)
    alone = pairs._told(first, scores) + pairs._told(second, scores)
    expected = naive.surplus(first, second, scores)
    assert pairs._surplus(first, second, scores, alone) == pytest.approx(expected)


def test_what_only_two_inputs_say_is_found(rng):
    X = rng.uniform(-3, 3, size=(1500, 6))
    noise = rng.normal(size=1500)
    assert found(X, waves(X, 0, 1) + noise) == [0, 1]
    assert found(X, np.floor(X[:, 2]) % 2 + np.floor(X[:, 5]) % 2 == 1) == [2, 5]
    assert found(X, np.column_stack([waves(X, 0, 1), waves(X, 3, 4)]) + noise[:, np.newaxis]) == [0, 1, 3, 4]
    assert found(X, waves(X, 0, 1), np.array([True] + [False] * 5)) == []
    lengths = pairs.lengths_of_pairs(X, waves(X, 0, 1)[:, np.newaxis], NONE)
    np.testing.assert_allclose(lengths[:2], 6 / pairs._BINS, rtol=0.1)


def test_noise_has_no_pairs():
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(1000, 6))
        noise = np.random.default_rng(seed + 100).standard_t(2, size=1000)
        assert found(X, noise) == []


def test_inputs_that_have_no_bins(rng):
    X = np.column_stack([np.ones(500), rng.integers(2, size=500), rng.integers(2, size=500)]).astype(float)
    assert found(X, (X[:, 1] == X[:, 2]) + 0.1 * rng.normal(size=500), NONE[:3]) == [1, 2]
    assert found(X, np.ones(500), NONE[:3]) == []
    many = rng.normal(size=(50, pairs._MOST_INPUTS + 1))
    assert found(many, many[:, 0], np.zeros(many.shape[1], bool)) == []
    assert found(many[:, :1], many[:, 0], NONE[:1]) == []


def test_two_waves_have_a_kernel_each(rng):
    """One kernel of four inputs sets rows too far apart; a sum of two does not."""
    X = rng.uniform(-3, 3, size=(3000, 6))
    y = waves(X, 0, 1) + waves(X, 2, 3)
    train, test = slice(2000), slice(2000, None)
    noisy = y[train] + 0.1 * rng.normal(size=2000)
    machine = KernelMachineRegressor(random_state=0).fit(X[train], noisy)
    assert machine.score(X[test], y[test]) > 0.95
    gammas = machine._fitted.function.gammas
    assert any((gamma[2:4] == 0).all() and gamma[:2].all() for gamma in gammas) or any(
        (gamma[:2] == 0).all() and gamma[2:4].all() for gamma in gammas
    )
    alone = KernelMachineRegressor(kernel=kernels.Matern(1.5), random_state=0).fit(X[train], noisy)
    assert "+" not in alone.kernel_
