"""Maps of single columns: ranks of values, and the scalings of older files."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from binfeat._common.array_record import ArrayRecord
from binfeat._common.subsets import every_nth
from binfeat._engine.quantiles import ROWS, interpolate_columns
from binfeat._threads import thread_count

RANKED_ROWS = 2**17  # evenly spaced rows that are ranked: the error is below the distance of two knots


def _two_values(X: np.ndarray) -> np.ndarray:
    """Mask of the columns that hold no values but their least and their largest."""
    return ((X.min(axis=0) == X) | (X.max(axis=0) == X)).all(axis=0)


class InputScaler(ArrayRecord, ABC):
    """A map of single columns of a table, float64 without NaN."""

    @abstractmethod
    def transform(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Scaled columns; a float64 array like X, which it may be."""


@dataclass(frozen=True, eq=False)
class NoScaler(InputScaler):
    """Columns as they are."""

    def transform(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        return X


@dataclass(frozen=True, eq=False)
class Arcsinh(InputScaler):
    """Maps columns to ``arcsinh((x - median) / interquartile range)``: in files up to format 4."""

    columns: np.ndarray  # numbers of the mapped columns, int64
    centers: np.ndarray  # (n_mapped,)
    units: np.ndarray

    def transform(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        out = np.array(X)
        out[:, self.columns] = np.arcsinh((out[:, self.columns] - self.centers) / self.units)
        return out


@dataclass(frozen=True, eq=False)
class Quantiles(InputScaler):
    """Maps each column of numbers to the rank of its values in `fit`, from 0 to 1.

    The rank of a value is the share of rows below it plus half the share of rows equal to it. The map is exact at up to
    `n_quantiles` knots, evenly spaced in rank, and is linear between them; values beyond the first or the last
    knot get the rank of that knot. Columns of categories or of at most two values stay as they are.
    """

    columns: np.ndarray  # numbers of the mapped columns, int64
    starts: np.ndarray  # where the knots of every column begin, (n_mapped + 1,), int64
    knots: np.ndarray  # values
    ranks: np.ndarray  # of the knots

    @classmethod
    def fit(cls, X: np.ndarray, categorical: np.ndarray, n_quantiles: int = 1000) -> Self:
        rows = every_nth(X, RANKED_ROWS)
        columns, knots, ranks = [], [np.empty(0)], [np.empty(0)]
        for j in np.flatnonzero(~np.asarray(categorical) & ~_two_values(rows)):
            values = np.sort(rows[:, j])
            column_knots = np.unique(values[np.linspace(0, values.size - 1, n_quantiles).round().astype(np.intp)])
            counts = np.searchsorted(values, column_knots, "left") + np.searchsorted(values, column_knots, "right")
            columns.append(j)
            knots.append(column_knots)
            ranks.append(counts / (2 * values.size))
        starts = np.cumsum([0, *(values.size for values in knots[1:])], dtype=np.int64)
        return cls(np.array(columns, dtype=np.int64), starts, np.concatenate(knots), np.concatenate(ranks))

    def transform(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False  # read-only or not, one compiled signature serves
        tasks = 1 if len(X) <= ROWS else min(thread_count(n_jobs), -(-len(X) // ROWS))
        scratch = np.empty((tasks, ROWS)), np.empty((tasks, ROWS), np.uint64)
        out = np.empty(X.shape)
        learned = self.columns, self.starts, self.knots, self.ranks
        interpolate_columns(X, *learned, *scratch, out, n_jobs=n_jobs)
        return out


def scaler_of(scaling: str) -> type[InputScaler]:
    """Return the scaler for a scaling; models in older files had maps before length scales."""
    kinds: dict[str, type[InputScaler]] = {"arcsinh": Arcsinh, "quantile": Quantiles, "warped": Quantiles}
    return kinds.get(scaling, NoScaler)
