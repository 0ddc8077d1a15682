"""The tables of `perf.data`, downloaded by scikit-learn if `BINFEAT_DATA` is not set."""

import numpy as np
from sklearn.datasets import fetch_kddcup99, fetch_openml

from perf.data import MissingDataError, Split, seeded_split

_A9A_TRAIN = 32_561
_KDD_TEST_SHARE = 0.1  # scikit-learn does not download the official test rows
_KDD_CATEGORIES = ("protocol_type", "service", "flag")


def _fetched(what, fetch, **options):
    try:
        return fetch(**options)
    except (OSError, ValueError) as error:
        raise MissingDataError(
            f"{what} could not be fetched by scikit-learn; set BINFEAT_DATA to a folder that holds it. "
            f"The error was: {error}"
        ) from error


def _openml(name):
    return _fetched(name, fetch_openml, name=name, version=1, as_frame=False)


def cpu_act():
    table = _openml("cpu_act")
    return table.data, table.target.astype(np.float64)


def census():
    """Prototasks 16H and 8L joined; inputs in both are used once."""
    wide, narrow = _openml("house_16H"), _openml("house_8L")
    fresh = [j for j, name in enumerate(narrow.feature_names) if name not in wide.feature_names]
    return np.hstack([wide.data, narrow.data[:, fresh]]), wide.target.astype(np.float64)


def adult_a9a():
    """As many of the first rows as LIBSVM has for training, and the others for testing."""
    table = _openml("a9a")
    X, y = table.data.tocsr(), table.target.astype(np.float64)
    return Split(X[:_A9A_TRAIN], y[:_A9A_TRAIN], X[_A9A_TRAIN:], y[_A9A_TRAIN:])


def kddcup99():
    """The official 10 % file, with a random tenth as test rows."""
    table = _fetched("KDD Cup 1999", fetch_kddcup99, percent10=True, as_frame=True)
    numbers = [name for name in table.data if name not in _KDD_CATEGORIES]
    X = table.data.astype({**dict.fromkeys(numbers, np.float64), **dict.fromkeys(_KDD_CATEGORIES, "category")})
    y = (table.target != b"normal.").to_numpy(bool)
    return seeded_split(X, y, len(y) - round(_KDD_TEST_SHARE * len(y)), 0)
