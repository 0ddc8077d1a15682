"""One-hot columns for the levels of categorical inputs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from binfeat._common.array_record import ArrayRecord

NO_COLUMN = -1


@dataclass(frozen=True, eq=False)
class LevelColumns(ArrayRecord):
    """A column for each level of some categorical inputs, and the prior variance of the weights of each input.

    Variances are relative to a kernel with value 1 for equal rows. Rare and new levels have no column, and no effect.
    """

    level_inputs: np.ndarray  # (n_categories,), int32: the categorical inputs
    level_starts: np.ndarray  # (n_categories + 1,), int64: where the codes of each input begin in `level_columns`
    level_columns: np.ndarray  # (n_codes,), int32: the column of each code, or NO_COLUMN
    level_variances: np.ndarray  # (n_categories,)

    @classmethod
    def of_counts(cls, inputs: np.ndarray, counts: list[np.ndarray], most: int) -> Self:
        """Columns for the most frequent levels, at most `most` of them, by the count of rows with each code."""
        every = np.concatenate(counts)
        frequent = np.sort(np.argsort(-every, kind="stable")[: min(most, np.count_nonzero(every))])
        columns = np.full(every.size, NO_COLUMN, np.int32)
        columns[frequent] = np.arange(frequent.size)
        starts = np.cumsum([0, *(own.size for own in counts)], dtype=np.int64)
        return cls(inputs.astype(np.int32), starts, columns, np.ones(inputs.size))

    @cached_property
    def n_columns(self) -> int:
        return int(self.level_columns.max(initial=NO_COLUMN)) + 1

    @cached_property
    def groups(self) -> np.ndarray:
        """The category of each column, (n_columns,)."""
        of_codes = np.repeat(np.arange(self.level_inputs.size), np.diff(self.level_starts))
        return of_codes[self.level_columns != NO_COLUMN]

    @property
    def variances(self) -> np.ndarray:
        """The prior variance of the weight of each column, (n_columns,)."""
        return self.level_variances[self.groups]

    @property
    def share(self) -> float:
        """The share of all categories in the prior variance of a function value."""
        total = float(self.level_variances.sum())
        return total / (1 + total)

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """Columns (n_categories, n_rows) of the levels of rows, given as columns (n_inputs, n_rows)."""
        out = np.empty((self.level_inputs.size, values.shape[1]), np.int64)
        for place, (j, start, stop) in enumerate(zip(self.level_inputs, self.level_starts, self.level_starts[1:])):
            known = np.append(self.level_columns[start:stop], NO_COLUMN)
            out[place] = known[np.minimum(values[j], stop - start).astype(np.int64)]
        return out

    def n_new(self, columns: np.ndarray) -> np.ndarray:
        """The prior variance of levels without a column, (n_rows,), for `of_rows`."""
        return self.level_variances @ (columns == NO_COLUMN)


@dataclass(frozen=True, eq=False)
class PresentLevels:
    """The levels that occur in some rows, and their one-hot matrix."""

    columns: np.ndarray  # (n_present,): numbers of columns, sorted
    Z: sparse.csr_array  # (n_rows, n_present)

    @classmethod
    def of(cls, columns: np.ndarray) -> Self:
        """The levels of rows with these columns, (n_categories, n_rows); NO_COLUMN is skipped."""
        rows = np.broadcast_to(np.arange(columns.shape[1]), columns.shape)
        known = columns != NO_COLUMN
        present, places = np.unique(columns[known], return_inverse=True)
        shape = columns.shape[1], present.size
        Z = sparse.csr_array((np.ones(places.size, np.float32), (rows[known], places)), shape=shape)
        return cls(present, Z)
