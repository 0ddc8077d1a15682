"""Synthetic tables, each with one difficulty, drawn again for each seed."""

from functools import partial

import numpy as np

from perf import synthetic
from perf.data import Split
from perf.tables.splitting import DrawnTable

_NOISE = 0.1
_RARE_SHARE = 0.01
_MISSING_SHARE = 0.2
_LEVELS = (3, 10, 30, 100, 200)
_WIDE_TRAIN, _WIDE_TEST, _WIDE_INPUTS, _WIDE_USED = 200, 1_000, 1_000, 5


def categories(rng, n_rows):
    """Effects of five columns with 3 to 200 categories, an interaction of two of them, and a curve of a number."""
    import pandas as pd

    codes = [rng.integers(n, size=n_rows) for n in _LEVELS]
    numbers = rng.uniform(-1, 1, (n_rows, 2))
    y = 2 * rng.normal(size=_LEVELS[:2])[codes[0], codes[1]] + np.sin(3 * numbers[:, 0])
    for n, own in zip(_LEVELS, codes):
        y += rng.normal(size=n)[own]
    columns = {f"of_{n}": pd.Categorical([f"level {code}" for code in own]) for n, own in zip(_LEVELS, codes)}
    return pd.DataFrame({**columns, "used": numbers[:, 0], "idle": numbers[:, 1]}), y


def missing(rng, n_rows):
    """Friedman's first target of ten inputs, with a fifth of all values and all high values of one input missing."""
    X = rng.uniform(0, 1, (n_rows, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    X[rng.uniform(size=X.shape) < _MISSING_SHARE] = np.nan
    X[X[:, 3] > 1 - _MISSING_SHARE, 3] = np.nan
    return X, y


def wide(rng, n_rows):
    """A linear target plus a sine, of 5 inputs among 1,000."""
    X = rng.normal(size=(n_rows, _WIDE_INPUTS))
    return X, X[:, : _WIDE_USED - 1].sum(axis=1) + np.sin(2 * X[:, _WIDE_USED - 1])


def _rare(seed):
    """A class with one of a hundred rows: the largest values of a noisy smooth function."""
    rng = np.random.default_rng(seed)
    X, height = synthetic.smooth(rng, synthetic.N_TRAIN + synthetic.N_TEST)
    noisy = height + _NOISE * height.std() * rng.normal(size=height.size)
    y, n = noisy > np.quantile(noisy, 1 - _RARE_SHARE), synthetic.N_TRAIN
    return Split(X[:n], y[:n], X[n:], y[n:])


def _drawn(target, n_train=synthetic.N_TRAIN, n_test=synthetic.N_TEST):
    """Return a regression table with noisy training targets and exact test targets."""
    return DrawnTable(lambda seed: synthetic.draw(target, seed, n_train, n_test))


TABLES = {
    **{f"made_{target.__name__}": partial(_drawn, target) for target in (*synthetic.TARGETS, categories, missing)},
    "made_wide": partial(_drawn, wide, _WIDE_TRAIN, _WIDE_TEST),
    "made_rare": partial(DrawnTable, _rare),
}
