"""Columns scaled by the ranks of their values."""

from dataclasses import dataclass, fields

import numpy as np

from binfeat._engine.policy import thread_count
from binfeat._engine.quantiles import ROWS, interpolate_columns

_ROWS = 2**17  # evenly spaced rows that are ranked: what they miss is below the distance of two knots


@dataclass(frozen=True, eq=False)
class Quantiles:
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
        rows = X[:: -(-X.shape[0] // _ROWS)]
        columns, knots, ranks = [], [np.empty(0)], [np.empty(0)]
        for j in np.flatnonzero(~np.asarray(categorical)):
            values = np.array(rows[:, j])
            if ((values == values.min()) | (values == values.max())).all():
                continue
            values.sort()
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

    def arrays(self):
        """All that was learned, as arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays):
        """The same object again from its `arrays()`."""
        return cls(**arrays)
