"""Tables for the cases clusters and few_labels: real ones with classes, and synthetic rows in curved clusters."""

import numpy as np
from sklearn.datasets import load_digits, make_circles, make_moons

from perf import data

TABLES = {
    "pendigits": data.pendigits,
    "optdigits": lambda: data.pmlb("optdigits"),
    "satimage": lambda: data.pmlb("satimage"),
    "digits": lambda: load_digits(return_X_y=True),
}
SHAPES = {
    "rings": lambda: make_circles(2000, factor=0.5, noise=0.06, random_state=0),
    "moons": lambda: make_moons(2000, noise=0.06, random_state=0),
}
_HIDDEN, _STEEPNESS, _NOISE = 8, 1.5, 0.05


def table(load, n_rows=None):
    """Return X and the classes, numbered from 0, of a table, or of `n_rows` random rows."""
    X, y = load()
    y = np.unique(y, return_inverse=True)[1]
    rows = slice(None) if n_rows is None else np.random.default_rng(0).permutation(len(y))[:n_rows]
    return X[rows], y[rows]


def curved(n_rows, n_inputs=20, n_clusters=10):
    """Return rows near curved surfaces, one surface per cluster, and the cluster of each row.

    A layer of tanh maps two random numbers to the inputs.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(n_clusters, size=n_rows)
    X = _NOISE * rng.normal(size=(n_rows, n_inputs))
    for cluster in range(n_clusters):
        rows = np.flatnonzero(y == cluster)
        inner = _STEEPNESS * rng.normal(size=(2, _HIDDEN))
        hidden = np.tanh(rng.uniform(-1, 1, (rows.size, 2)) @ inner + rng.normal(size=_HIDDEN))
        X[rows] += hidden @ rng.normal(size=(_HIDDEN, n_inputs)) / np.sqrt(_HIDDEN)
    return X, y
