"""Columns that are computed from the columns of a table: parts of dates, gaps, ranks and codes.

Each class is one kind. ``source`` holds the column of the table from which each derived column is computed, and
``fill(out, X, gaps)`` writes the derived columns, by the numbers of the table without NaN and the mask of what was NaN.
"""

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Self

import numpy as np
from scipy.special import ndtr, ndtri

from binfeat._common.calendar import part_of, parts_in
from binfeat._common.subsets import evenly_spaced
from binfeat.models.table.columns import places_among
from binfeat.models.table.inputs import Levels
from binfeat.models.table.scalers import Quantiles

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class DateParts:
    """Parts of the calendar that repeat within a column of dates, such as the day of the week."""

    are_categories: ClassVar = False
    source: np.ndarray
    names: np.ndarray

    @classmethod
    def fit(cls, matrix: np.ndarray, are_dates: np.ndarray) -> Self:
        parts = [(name, j) for j in np.flatnonzero(are_dates) for name in parts_in(matrix[:, j])]
        names, columns = zip(*parts) if parts else ((), ())
        return cls(np.array(columns, dtype=np.int64), np.array(names, dtype=np.str_))

    def fill(self, out: np.ndarray, X: np.ndarray, gaps: np.ndarray) -> None:
        for place, (j, name) in enumerate(zip(self.source, self.names)):
            out[:, place] = part_of(X[:, j], name)

    def of(self, j: int) -> list[tuple[int, str]]:
        """Places among the parts, and names, of those of one column."""
        return [(place, name) for place, name in enumerate(self.names.tolist()) if self.source[place] == j]


@dataclass(frozen=True, eq=False)
class Gaps:
    """1 where a number is missing, and else 0, for each column in which some numbers were missing in `fit`."""

    are_categories: ClassVar = False
    source: np.ndarray

    @classmethod
    def fit(cls, gaps: np.ndarray) -> Self:
        n_gaps = np.count_nonzero(gaps, axis=0)
        return cls(np.flatnonzero((n_gaps > 0) & (n_gaps < len(gaps))))

    def fill(self, out: np.ndarray, X: np.ndarray, gaps: np.ndarray) -> None:
        out[:] = gaps[:, self.source]

    def columns(self, n_inputs: int) -> np.ndarray:
        """Mask of the columns of the table with gaps, (n_inputs,)."""
        return np.isin(np.arange(n_inputs), self.source)

    def mask(self, flags: np.ndarray, n_inputs: int) -> np.ndarray:
        """What was missing in columns with a flag, (n_rows, n_inputs)."""
        gaps = np.zeros((len(flags), n_inputs), dtype=bool)
        gaps[:, self.source] = flags > 0
        return gaps


@dataclass(frozen=True, eq=False)
class Ranks:
    """Normal scores of the ranks of numbers that are far from normal."""

    are_categories: ClassVar = False
    source: np.ndarray
    starts: np.ndarray  # of the knots of each column, (n_ranked + 1,)
    knots: np.ndarray
    scores: np.ndarray

    @classmethod
    def none(cls) -> Self:
        return cls(_NONE, *NO_RANKS.values())

    @classmethod
    def fit(cls, X: np.ndarray, numbers: np.ndarray) -> Self:
        """By the mask of columns that are numbers and no times."""
        ranked = columns_to_rank(X, numbers)
        return cls(ranked, *scored_ranks(X, ranked)) if ranked.size else cls.none()

    def fill(self, out: np.ndarray, X: np.ndarray, gaps: np.ndarray) -> None:
        if self.source.size:
            ranks = Quantiles(np.arange(self.source.size), self.starts, self.knots, self.scores)
            out[:] = ranks.transform(X[:, self.source])

    @property
    def maps(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Knots of each column, and their scores."""
        ends = zip(self.starts, self.starts[1:])
        return [(self.knots[first:last], self.scores[first:last]) for first, last in ends]


@dataclass(frozen=True, eq=False)
class Codes:
    """Numbers that are codes, once more as categories.

    A missing number has the code after those of `fit`, and an unseen number the next one.
    """

    are_categories: ClassVar = True
    source: np.ndarray
    levels: Levels  # of all columns of the table

    @classmethod
    def none(cls, levels: Levels) -> Self:
        return cls(_NONE, levels)

    def fill(self, out: np.ndarray, X: np.ndarray, gaps: np.ndarray) -> None:
        for place, j in enumerate(self.source):
            levels, _, _ = self.levels.of(j)
            out[:, place] = np.where(gaps[:, j], levels.size, places_among(X[:, j], levels, levels.size + 1))


Derived = DateParts | Gaps | Ranks | Codes


_MOST_RANKED = 64
NO_RANKS = {"rank_starts": np.zeros(1, np.int64), "rank_knots": np.empty(0), "rank_values": np.empty(0)}


def columns_to_rank(matrix: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return numeric columns that are far from normal, such as amounts, and counts with many zeros.

    Their statistic of Shapiro and Francia (1972) is small. Where there are very many, as in bags of words, none is
    taken.
    """
    some = evenly_spaced(len(matrix), 2**14)
    far = (j for j in np.flatnonzero(numbers) if _is_far_from_normal(np.sort(matrix[some, j])))
    first = np.array(list(islice(far, _MOST_RANKED + 1)), dtype=np.int64)
    return first if first.size <= _MOST_RANKED else first[:0]


def _is_far_from_normal(values: np.ndarray) -> bool:
    if np.count_nonzero(np.diff(values)) < 20:
        return False
    scores = ndtri((np.arange(values.size) + 0.5) / values.size)
    return bool(np.corrcoef(values, scores)[0, 1] ** 2 < 0.865)  # samples of an exponential distribution have 0.82


def scored_ranks(matrix: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts of the knots of these columns, the knots, and their normal scores."""
    ranks = Quantiles.fit(matrix[:, columns], np.zeros(columns.size, dtype=bool))
    return ranks.starts, ranks.knots, ndtri(np.clip(ranks.ranks, *ndtr([-3.0, 3.0])))
