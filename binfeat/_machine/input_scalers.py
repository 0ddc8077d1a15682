"""Columns scaled by the ranks of their values, or with their long tails drawn in."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np

from binfeat._engine.policy import thread_count
from binfeat._engine.quantiles import ROWS, interpolate_columns

_ROWS = 2**17  # evenly spaced rows that are ranked: what they miss is below the distance of two knots
_LONG_TAIL = 10.0  # interquartile ranges from the median to the farthest value


def _evenly_spaced(X):
    return X[:: -(-X.shape[0] // _ROWS)]


def _two_values(X):
    """Which columns have no values but their least and their largest."""
    return ((X.min(axis=0) == X) | (X.max(axis=0) == X)).all(axis=0)


class InputScaler(Protocol):
    """A dataclass of arrays, which can be kept by their names, that maps a table."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def fit(cls, X, categorical):
        """Learn from X (n_rows, n_inputs), float64 without NaN, and a mask of its categorical inputs."""

    def transform(self, X, n_jobs=None):
        """Scaled columns; a float64 array like X (n_rows, n_inputs)."""

    def arrays(self):
        """All that was learned, as arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays):
        """The same object again from its `arrays()`."""
        return cls(**arrays)


@dataclass(frozen=True, eq=False)
class Arcsinh(InputScaler):
    """Maps each column with long tails to ``arcsinh((x - median) / interquartile range)``.

    That is linear about the median and logarithmic far from it. Tails are long that reach further than ten
    interquartile ranges; columns of two values have none. Where half the values or more are one, the standard
    deviation takes that range's place.

    Attributes
    ----------
    columns : ndarray of int64 of shape (n_mapped,)
    centers, units : ndarray of float64 of shape (n_mapped,)
    """

    columns: np.ndarray
    centers: np.ndarray
    units: np.ndarray

    @classmethod
    def fit(cls, X, categorical):
        """Learn which columns of X (n_rows, n_inputs), float64 without NaN, have long tails, and their ranges."""
        rows = _evenly_spaced(X)
        low, center, high = np.quantile(rows, (0.25, 0.5, 0.75), axis=0)
        unit = np.where(high > low, high - low, rows.std(axis=0))
        reach = np.maximum(rows.max(axis=0) - center, center - rows.min(axis=0))
        columns = np.flatnonzero(~np.asarray(categorical) & (reach > _LONG_TAIL * unit) & ~_two_values(rows))
        return cls(columns.astype(np.int64), center[columns], unit[columns])

    def transform(self, X, n_jobs=None):
        """Scaled columns; a float64 array like X (n_rows, n_inputs)."""
        out = np.array(X)
        out[:, self.columns] = np.arcsinh((out[:, self.columns] - self.centers) / self.units)
        return out


@dataclass(frozen=True, eq=False)
class Quantiles(InputScaler):
    """Maps each column of numbers to the rank of its values in `fit`, from 0 to 1.

    The rank of a value is the share of rows below it plus half the share of those equal to it. It holds at up to
    `n_quantiles` knots, evenly spaced in rank, and is linear between them; values beyond the first and the last
    knot have theirs. Columns of categories or of at most two values stay as they are.

    Attributes
    ----------
    columns : ndarray of int64 of shape (n_mapped,)
        The columns that are mapped.
    starts : ndarray of int64 of shape (n_mapped + 1,)
        Where the knots of each begin.
    knots, ranks : ndarray of float64
        Values and their ranks.
    """

    columns: np.ndarray
    starts: np.ndarray
    knots: np.ndarray
    ranks: np.ndarray

    @classmethod
    def fit(cls, X, categorical, n_quantiles=1000):
        """Learn the ranks.

        Parameters
        ----------
        X : ndarray of float64 of shape (n_rows, n_inputs), no NaN
        categorical : ndarray of bool of shape (n_inputs,)
        n_quantiles : int, default=1000
            Most knots of a column, at least 2.

        Returns
        -------
        quantiles : Quantiles
        """
        rows = _evenly_spaced(X)
        columns, knots, ranks = [], [np.empty(0)], [np.empty(0)]
        for j in np.flatnonzero(~np.asarray(categorical) & ~_two_values(rows)):
            values = np.sort(rows[:, j])
            own_knots = np.unique(values[np.linspace(0, values.size - 1, n_quantiles).round().astype(np.intp)])
            counts = np.searchsorted(values, own_knots, "left") + np.searchsorted(values, own_knots, "right")
            columns.append(j)
            knots.append(own_knots)
            ranks.append(counts / (2 * values.size))
        starts = np.cumsum([0, *(own.size for own in knots[1:])], dtype=np.int64)
        return cls(np.array(columns, dtype=np.int64), starts, np.concatenate(knots), np.concatenate(ranks))

    def transform(self, X, n_jobs=None):
        """Scaled columns.

        Parameters
        ----------
        X : ndarray of float64 of shape (n_rows, n_inputs), no NaN
        n_jobs : int, default=None
            Threads; None is Numba's current setting.

        Returns
        -------
        X_scaled : ndarray of float64 of shape (n_rows, n_inputs)
        """
        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False  # read-only or not, one compiled signature serves
        tasks = max(1, min(thread_count(n_jobs), -(-X.shape[0] // ROWS)))
        scratch = np.empty((tasks, ROWS)), np.empty((tasks, ROWS), np.uint64)
        out = np.empty(X.shape)
        learned = self.columns, self.starts, self.knots, self.ranks
        interpolate_columns(X, *learned, *scratch, out, n_jobs=n_jobs)
        return out


SCALERS: dict[str, type[InputScaler]] = {"arcsinh": Arcsinh, "quantile": Quantiles}
