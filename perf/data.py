"""The tables of the cases."""

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_covtype, load_svmlight_file

from perf.record import Row

N_NUMERIC = 10
HAND_WIDTHS = np.array([0.05, 0.3, 0.3, 0.15, 0.2, 0.08, 0.3, 0.3, 0.3, 0.08])
CPU_ACT_ROWS, CENSUS_ROWS = 6_500, 18_000  # for training, as in the paper's Table 1
N_SPLITS = 5

_ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
_KDD_CATEGORIES = (1, 2, 3)  # protocol, service, flag
_KDD_COLUMNS = 41


class MissingDataError(Exception):
    """A table is not on this computer and cannot be fetched."""


@dataclass(frozen=True)
class Split:
    """Training rows and test rows, optionally with weights, such as exposures of rates."""

    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray
    weights: np.ndarray | None = None
    weights_test: np.ndarray | None = None

    def first(self, n_train, n_test):
        """Return at most this many of the first rows of both; None is all."""
        train, test = slice(n_train), slice(n_test)
        weights = (None, None) if self.weights is None else (self.weights[train], self.weights_test[test])
        return Split(_rows(self.X, train), self.y[train], _rows(self.X_test, test), self.y_test[test], *weights)

    def quick(self, n_rows):
        """Return this many random training rows, and as many others as test rows; None returns the split."""
        if n_rows is None:
            return self
        return seeded_split(self.X, self.y, n_rows, 0).first(None, n_rows)


def seeded_split(X, y, n_train, seed):
    """Split into `n_train` random rows and the rest."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    return Split(_rows(X, train), y[train], _rows(X, test), y[test])


def _rows(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _path(name):
    """Return the path of a file of `BINFEAT_DATA`."""
    folder = os.environ.get("BINFEAT_DATA")
    if folder is None:
        raise MissingDataError(f"{name} is not bundled; set BINFEAT_DATA to a folder that holds it.")
    path = Path(folder) / name
    if not path.is_file():
        raise MissingDataError(f"BINFEAT_DATA must be a folder that holds {name}; there is no {path}.")
    return path


def _read(name, reader):
    """Return the result of `reader` for the path of a file."""
    path = _path(name)
    try:
        return reader(path)
    except (OSError, EOFError, ValueError) as error:
        raise MissingDataError(f"{path} cannot be read, get another copy of it. The error was: {error}") from error


def _numbers(name):
    """Inputs, and the last column, of a table of numbers with a header."""
    table = _read(name, lambda path: np.loadtxt(path, delimiter=",", skiprows=1))
    return table[:, :-1], table[:, -1]


def cpu_act():
    """Delve's comp-activ, task "cpu": X of shape (8192, 21), and the share of time in user mode, 0 to 99."""
    return _numbers("cpu_act.csv.gz")


def census():
    """Delve's census-house, prototasks 16H and 8L joined.

    Returns
    -------
    X : ndarray of shape (22784, 22)
        P16p2 and H40p4 are in both; they are used once.
    y : ndarray of shape (22784,)
        Median house price.
    """
    X, y = _numbers("census_house_16H.csv.gz")
    more, _ = _numbers("census_house_8L.csv.gz")
    names = [_header(f"census_house_{task}.csv.gz") for task in ("16H", "8L")]
    fresh = [j for j, name in enumerate(names[1][:-1]) if name not in names[0]]
    return np.hstack([X, more[:, fresh]]), y


def kin8nm():
    """Delve's kin-8nm, a robot arm: X of shape (8192, 8), and the distance of its end from a target."""
    return _numbers("kin8nm.csv.gz")


def abalone():
    """Abalone: a frame of shape (4177, 8), whose first column is a category, and the number of rings."""
    table = _frame("abalone.csv.gz", ",")
    rings = table.pop("Class_Rings").to_numpy(np.float64)
    return with_categories(table, ["Sex"]), rings


def pendigits():
    """Digits written with a pen: X of shape (10992, 16), and the digit."""
    X, y = _numbers("pendigits.csv.gz")
    return X, y.astype(np.int64)


def pmlb(name):
    """A table of the Penn Machine Learning Benchmarks: X, and a target of floats (regression) or integers (classes)."""
    table = _frame(f"pmlb/{name}.tsv.gz", "\t")
    y = table.pop("target").to_numpy()
    return table.to_numpy(np.float64), y


def _frame(name, separator):
    import pandas as pd

    return _read(name, lambda path: pd.read_csv(path, sep=separator))


def _header(name):
    with gzip.open(_path(name), "rt") as lines:
        return next(lines).strip().split(",")


def adult_a9a():
    """Adult in LIBSVM's binary coding `a9a`, with its official test rows, as CSR of 123 columns; y is 1 or -1."""
    parts = [
        _read(f"adult_a9a_{part}.svm.gz", lambda path: load_svmlight_file(str(path), n_features=123))
        for part in ("train", "test")
    ]
    return Split(*parts[0], *parts[1])


def adult_table():
    """Adult as the UCI has it, with its official test rows: frames of 8 categorical columns, some values missing.

    y is True if the income is above 50,000.
    """
    parts = [_adult_part("adult_uci.data.gz", 0), _adult_part("adult_uci.test.gz", 1)]
    return Split(*parts[0], *parts[1])


def _adult_part(name, n_skipped):
    import pandas as pd

    options = {"header": None, "names": _ADULT_COLUMNS, "skipinitialspace": True, "na_values": "?"}
    table = _read(name, lambda path: pd.read_csv(path, skiprows=n_skipped, **options))
    income = table.pop("income").str.startswith(">50K").to_numpy(bool)
    return with_categories(table, [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]), income


def kddcup99():
    """KDD Cup 1999: the official 10 % file and the official test rows, as frames of 41 columns, 3 categorical.

    y is True if a connection is an attack.
    """
    parts = [_kdd_part("kddcup99_10_percent.csv.gz"), _kdd_part("kddcup99_corrected_test.csv.gz")]
    return Split(*parts[0], *parts[1])


def _kdd_part(name):
    import pandas as pd

    table = _read(name, lambda path: pd.read_csv(path, header=None))
    attack = (table.pop(_KDD_COLUMNS) != "normal.").to_numpy()
    names = [f"c{j}" for j in range(_KDD_COLUMNS)]
    return with_categories(table.set_axis(names, axis=1), [names[j] for j in _KDD_CATEGORIES]), attack


def with_categories(table, names):
    """Return a copy of the frame, with the columns `names` as categories."""
    return table.astype(dict.fromkeys(names, "category"))


def forest_cover():
    """Forest Cover, rows in a fixed random order.

    Returns
    -------
    X : ndarray of shape (n_rows, 54)
        Ten numeric inputs and 44 flags; 426,598 rows from `BINFEAT_DATA`, 581,012 from scikit-learn.
    y : ndarray of shape (n_rows,)
        Cover type, 1 to 7.
    """
    if "BINFEAT_DATA" not in os.environ:
        return _fetch_forest_cover()
    with _read("forest_cover.npz", np.load) as arrays:
        return arrays["X"], arrays["y"]


def _fetch_forest_cover(**options):
    try:
        return fetch_covtype(return_X_y=True, shuffle=True, random_state=0, **options)
    except OSError as error:
        raise MissingDataError(
            "Forest Cover could not be fetched by scikit-learn; set BINFEAT_DATA to a folder that holds "
            f"forest_cover.npz (arrays X and y). The error was: {error}"
        ) from error


def made_forest_cover(n_rows):
    """Draw a table like Forest Cover: ten numbers and two groups of flags from four latent numbers, and seven classes.

    Returns
    -------
    X : ndarray of shape (n_rows, 54)
    y : ndarray of shape (n_rows,)
        1 to 7, with about the frequencies of the cover types.
    """
    rng = np.random.default_rng(0)
    place = rng.normal(size=(n_rows, 4))
    numbers = place @ rng.normal(size=(4, N_NUMERIC)) + 0.1 * rng.normal(size=(n_rows, N_NUMERIC))
    flags = [np.eye(n)[(place @ rng.normal(size=(4, n))).argmax(axis=1)] for n in (4, 40)]
    height = place[:, 0] + np.sin(2 * place[:, 1]) + 0.2 * rng.normal(size=n_rows)
    bounds = np.quantile(height, [0.36, 0.85, 0.91, 0.92, 0.94, 0.97])
    return np.hstack([numbers, *flags]), 1 + np.searchsorted(bounds, height)


def forest_cover_for(quick_rows=None):
    """Return Forest Cover scaled to [0, 1], with given length scales; quick runs without data use a synthetic table.

    Parameters
    ----------
    quick_rows : int, default=None
        Rows of a quick run. None is a full run with all rows, which needs the data.

    Returns
    -------
    X : ndarray of shape (n_rows, 54), float64
        Scaled by the smallest and largest values of all rows.
    gamma : ndarray of shape (54,)
        One over the width of each input; 1 for the flags.
    labels : ndarray of shape (n_rows,)
        Cover types, 1 to 7.
    row : Row
        Name of the table, for the output.
    """
    what = "rows of Forest Cover"
    if quick_rows is None or "BINFEAT_DATA" in os.environ:
        X, labels = forest_cover()
    else:
        try:
            X, labels = _fetch_forest_cover(download_if_missing=False)
        except MissingDataError:
            X, labels = made_forest_cover(quick_rows)
            what = "a made table of Forest Cover's shape, since BINFEAT_DATA is not set: rows"
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0)
    gamma = np.ones(X.shape[1])
    gamma[:N_NUMERIC] = 1 / HAND_WIDTHS
    X = (X[:quick_rows] - low) / np.where(high > low, high - low, 1)
    return X, gamma, labels[:quick_rows], Row(what, len(X), unit="")
