"""The five data sets of the paper's Table 1, or the nearest available ones."""

import os
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import OneHotEncoder

from perf import data, fetch

TEST_SHARE = 0.1  # of Forest Cover, the last rows
N_SPLITS = 3  # of CPU and Census


@dataclass(frozen=True)
class Task:
    """A line of Table 1: its splits, and the differences from the paper's data."""

    name: str
    splits: list
    deviation: str

    @property
    def is_regression(self):
        return self.splits[0].y.dtype.kind == "f"

    def quick(self, n_rows):
        """Return the first split only, with `n_rows` rows."""
        return Task(self.name, [split.quick(n_rows) for split in self.splits[:1]], self.deviation)


def _source():
    """Return the default module that loads the tables."""
    return data if "BINFEAT_DATA" in os.environ else fetch


def cpu(source=None):
    return _seeded("CPU", (source or _source()).cpu_act(), data.CPU_ACT_ROWS, "the paper's data")


def census(source=None):
    return _seeded("Census", (source or _source()).census(), data.CENSUS_ROWS, "22 of the paper's 119 inputs")


def _seeded(name, table, n_train, deviation):
    splits = [data.seeded_split(*table, n_train, seed) for seed in range(N_SPLITS)]
    n_test = len(splits[0].y_test)
    return Task(name, splits, f"{deviation}; {n_test:,} rows to test, {N_SPLITS} splits")


def adult(source=None):
    split = (source or _source()).adult_a9a()
    labeled = data.Split(_narrow(split.X), split.y > 0, _narrow(split.X_test), split.y_test > 0)
    return Task("Adult", [labeled], f"the paper's data and coding; {len(split.y_test):,} rows to test")


def _narrow(X):
    """Return CSR with the index type that `SVC` accepts."""
    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)


def forest_cover(source=data):
    X, labels = source.forest_cover()
    X, y = X.astype(np.float32), labels == 2
    n = len(X) - round(TEST_SHARE * len(X))
    deviation = f"{n / 522_000:.0%} of the paper's rows; class 2 against the rest; the last 10 % to test"
    return Task("Forest Cover", [data.Split(X[:n], y[:n], X[n:], y[n:])], deviation)


def kddcup99(source=None):
    table = (source or _source()).kddcup99()
    categorical = [name for name in table.X if table.X[name].dtype == "category"]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32).fit(table.X[categorical])

    def numbers(frame):
        return np.hstack([frame.drop(columns=categorical).to_numpy(np.float32), encoder.transform(frame[categorical])])

    X, X_test = numbers(table.X), numbers(table.X_test)
    deviation = f"10 % of the paper's rows, {X.shape[1]} of its 127 inputs; {len(X_test):,} rows to test"
    return Task("KDDCUP99", [data.Split(X, table.y, X_test, table.y_test)], deviation)


LOADERS = {"CPU": cpu, "Census": census, "Adult": adult, "Forest Cover": forest_cover, "KDDCUP99": kddcup99}
