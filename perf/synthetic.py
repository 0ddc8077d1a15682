"""Targets of known kinds, on inputs drawn at random."""

import numpy as np

from perf.data import Split

N_TRAIN, N_TEST = 10_000, 5_000
_NOISE = 0.1  # standard deviation, relative to the target's


def _uniform(rng, n_rows, n_inputs):
    return rng.uniform(-1, 1, (n_rows, n_inputs))


def smooth(rng, n_rows):
    """A few slow sines along directions in six inputs."""
    X = _uniform(rng, n_rows, 6)
    directions = rng.normal(size=(6, 4))
    return X, np.sin(X @ directions).sum(axis=1)


def piecewise(rng, n_rows):
    """Steps along six inputs: constant in boxes."""
    X = _uniform(rng, n_rows, 6)
    levels = rng.normal(size=(3, 3, 3))
    cells = np.floor(1.5 * (X[:, :3] + 1)).astype(int)
    return X, levels[tuple(cells.T)] + (X[:, 3] > 0.3) * (X[:, 4] < 0.5)


def additive(rng, n_rows):
    """A sum of a curve along each of ten inputs."""
    X = _uniform(rng, n_rows, 10)
    sines = np.sin(np.linspace(1, 6, 10) * X + rng.uniform(0, 6, 10))
    return X, sines.sum(axis=1)


def interacting(rng, n_rows):
    """Products of pairs and of a triple of eight inputs."""
    X = _uniform(rng, n_rows, 8)
    return X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4] * X[:, 5] * X[:, 6] + 0.5 * np.sin(6 * X[:, 0] * X[:, 7])


def irrelevant(rng, n_rows):
    """Friedman's first target, of 5 inputs among 100."""
    X = _uniform(rng, n_rows, 100)
    U = (X[:, :5] + 1) / 2
    return X, 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2 + 10 * U[:, 3] + 5 * U[:, 4]


def heavy_tails(rng, n_rows):
    """Log-normal inputs over factors of a thousand; the target depends on their logarithms."""
    X = np.exp(2 * rng.normal(size=(n_rows, 6)))
    logs = np.log(X)
    return X, np.tanh(logs[:, 0] - logs[:, 1]) + np.sin(logs[:, 2]) * (logs[:, 3] > 0) + 0.2 * logs[:, 4]


TARGETS = (smooth, piecewise, additive, interacting, irrelevant, heavy_tails)


def draw(target, seed, n_train=N_TRAIN, n_test=N_TEST):
    """Draw rows with noisy training targets and exact test targets, with a mean of about zero.

    Parameters
    ----------
    target : function of `TARGETS`
    seed : int
    n_train, n_test : int

    Returns
    -------
    split : Split
    """
    rng = np.random.default_rng(seed)
    X, y = target(rng, n_train + n_test)
    y = (y - y.mean()) / y.std()
    noisy = y[:n_train] + _NOISE * rng.standard_t(3 if target is heavy_tails else 30, n_train)
    return Split(X[:n_train], noisy, X[n_train:], y[n_train:])
