"""A raw table's columns as numbers: missing values, categories, frames of every kind."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator

from binfeat._common.array_record import ArrayRecord
from binfeat._common.calendar import part_of
from binfeat._common.validation import check_moderate, checked_array, is_word
from binfeat.models.table.columns import (
    NO_STRINGS,
    Categories,
    Columns,
    RawTable,
    infinite_in,
    places_among,
    read_table,
)
from binfeat.models.table.findings import Findings, Report
from binfeat.models.table.learned import (
    categories_in,
    chosen_in,
    doubt_digits,
    medians_of,
    parts_of_dates,
    ranges_of,
)
from binfeat.models.table.novelty import SeenCategories, SeenNumbers, unseen_codes
from binfeat.models.table.ranks import NO_RANKS, columns_to_rank, ranks_of
from binfeat.models.table.scalers import Quantiles
from binfeat.models.table.texts import NUMBERS

_ROUNDING = 1e-6  # of a column's values, by which numbers may leave their range


@dataclass(frozen=True, eq=False)
class TableEncoder(ArrayRecord):
    """A raw table's columns as numbers: learned in `fit`, applied in `transform`.

    The raw columns come first, in their order: numbers as they are with the median in place of NaN, categories as
    codes, dates and durations as days. Then come the parts of the calendar that repeat within a column of
    dates, then a column of 0 and 1 for each column of numbers with some NaN in `fit`: 1 marks a missing value; and
    then, if they are asked for, the normal scores of the ranks of numbers that are far from normal, and last what is
    told by `with_codes` to be codes, though it is numbers, once more as categories.

    Codes count the categories seen in `fit`: numbers in rising order, then strings, then missing if it was seen. The
    next code stands for all other categories. 1, 1.0 and True are the same category, as is "1" if `fit` had not both;
    other objects are the string that they print as. If nearly every row has its own category, the column has a single
    category.
    """

    categorical: np.ndarray  # mask of the encoded columns, (n_encoded,)
    source: np.ndarray  # the raw column of every encoded column
    medians: np.ndarray  # in place of NaN, (n_inputs,); 0 for a column of NaN only, and for categories
    numbers: np.ndarray  # categories that are numbers, and codes
    number_starts: np.ndarray  # where the numbers of every column begin, (n_inputs + 1,)
    strings: np.ndarray  # categories that are strings
    string_starts: np.ndarray
    missing: np.ndarray  # mask of the columns in which missing is a category
    times: np.ndarray  # of every column, as `times_of` has it, (n_inputs,)
    parts: np.ndarray  # names of the parts of the calendar
    lows: np.ndarray  # least number in each raw column, (n_inputs,); above the largest one if there was none
    highs: np.ndarray
    rank_starts: np.ndarray  # where the knots of every column of ranks begin, (n_ranked + 1,)
    rank_knots: np.ndarray
    rank_values: np.ndarray

    @classmethod
    def fit(
        cls, estimator: BaseEstimator, X: RawTable, categorical_features: ArrayLike | None, takes_ranks: bool = False
    ) -> tuple[Self, np.ndarray]:
        """The encoder of a table, and the encoded table (n_rows, n_encoded), which may be X itself.

        Sets `n_features_in_` and `feature_names_in_` of the estimator. TypeError or ValueError if values are infinite
        or enormous, or no numbers in a column that is not categorical; MemoryError if a sparse X is too large.
        """
        table = read_table(estimator, X)
        if is_word(categorical_features, "from_dtype"):
            table = table.without_texts()
        times = np.array(table.times, dtype=np.str_)
        chosen = chosen_in(estimator, table, categorical_features)
        doubt_digits(table, chosen)
        learned = {**categories_in(table, chosen), "times": times}
        blank = np.zeros(chosen.size)
        own = np.arange(chosen.size)
        bare = cls(chosen, own, blank, **learned, parts=NO_STRINGS, lows=blank, highs=blank, **NO_RANKS)
        matrix = bare._numbers_of(table, estimator)
        gaps = np.isnan(matrix)
        n_gaps = np.count_nonzero(gaps, axis=0)
        medians = medians_of(matrix, gaps, n_gaps)
        parts, dated = parts_of_dates(matrix, np.where(chosen, "", times))
        flagged = np.flatnonzero((n_gaps > 0) & (n_gaps < len(matrix)))
        source = np.concatenate([own, dated, flagged])
        categorical = np.append(chosen, np.zeros(source.size - chosen.size, dtype=bool))
        learned |= ranges_of(matrix)
        table.require_size(np.maximum(learned["highs"], -learned["lows"]))
        encoder = cls(categorical, source, medians, **learned, parts=parts, **NO_RANKS)
        matrix = encoder._complete(matrix, gaps)
        check_moderate(matrix, "X")
        return encoder._with_ranks(matrix) if takes_ranks else (encoder, matrix)

    def transform(self, estimator: BaseEstimator, X: RawTable, note: Report = None) -> np.ndarray:
        """The numbers of a table with the columns of `fit`, C-contiguous, writeable, without NaN; might be X itself.

        What is far outside is as far as it may be without being so: kernels that grow would follow it to anywhere.
        `note` is called with what `fit` had not seen, if there is any.

        TypeError or ValueError if columns differ, hold infinity, or are not categorical and hold no numbers.
        """
        matrix, table, is_known = self._read(estimator, X)
        if note is not None and not (is_known and (table is None or not self._has_strings(table))):
            table = read_table(estimator, X, self.times.tolist()) if table is None else table
            note(self._findings(table, matrix, np.zeros(table.shape, dtype=bool), self._ends_of(X)))
        if is_known and self.source.size == self.medians.size:
            return _own(matrix)
        encoded = self._complete(matrix, np.isnan(matrix))
        return encoded if is_known else np.clip(encoded, *self.bounds)

    def renewed(self, estimator: BaseEstimator, X: RawTable) -> tuple[Self, np.ndarray]:
        """The encoder for another table that it is fitted to, whose numbers may be anywhere, and this table encoded."""
        matrix, _, _ = self._read(estimator, X)
        encoder = replace(self, **ranges_of(matrix))
        encoded = encoder._complete(matrix, np.isnan(matrix))
        return (encoder, encoded) if not self.coded.size else encoder.with_codes(encoded, self.coded.tolist())

    def findings(self, estimator: BaseEstimator, X: RawTable) -> Findings:
        """What a table has that `fit` had not seen."""
        table = read_table(estimator, X, self.times.tolist())
        words = np.zeros(table.shape, dtype=bool)
        found = []
        for j in np.flatnonzero(~self._are_categories).tolist():
            finding, words[:, j] = table.columns[j].words()
            found += [] if finding is None else [finding]
        if found:
            columns = [column.without(rows) if rows.any() else column for column, rows in zip(table.columns, words.T)]
            table = replace(table, columns=columns, matrix=None)
        matrix = self._numbers_of(table, estimator)
        fresh = (unseen_codes(table.columns[j].name, matrix[:, j], self.categories_of(j)[0]) for j in self.coded)
        return Findings.of(0, [*found, *chain(*fresh)]) + self._findings(table, matrix, words, self._ends_of(X))

    def _findings(self, table: Columns, matrix: np.ndarray, words: np.ndarray, ends: np.ndarray) -> Findings:
        """What a table has that `fit` had not seen, beside `words`, a mask of its values that are no numbers."""
        parts = zip(map(self._seen, range(self.medians.size)), table.columns, matrix.T, words.T, ends.T)
        return Findings.of(len(matrix), (each for seen, *own in parts for each in seen.news(*own)))

    def _seen(self, j: int) -> SeenNumbers | SeenCategories:
        """What a raw column had in `fit`."""
        if self.categorical[j]:
            return SeenCategories(sum(levels.size for levels in self.categories_of(j)[:2]))
        return SeenNumbers(self.lows[j], self.highs[j], str(self.times[j]), bool(self._had_gaps[j]))

    def _has_strings(self, table: Columns) -> bool:
        """Whether numbers come as strings."""
        numbers = ~self._are_categories
        return table.matrix is None and any(column.holds_strings for column in compress(table.columns, numbers))

    @cached_property
    def _ends(self) -> np.ndarray:
        """Numbers, or codes, beyond which a column has what `fit` had not seen: farther away than its range is wide."""
        most, lows, highs = np.finfo(np.float64).max, self.lows, self.highs
        far = np.zeros(lows.size)
        np.subtract(highs, lows, out=far, where=np.isfinite(lows))
        far += _ROUNDING * np.maximum(abs(lows), abs(highs), where=np.isfinite(lows), out=np.zeros(lows.size))
        n_levels = np.diff(self.number_starts) + np.diff(self.string_starts) + self.missing
        chosen = self._are_categories
        ends = np.where(chosen, 0.0, lows - far), np.where(chosen, np.maximum(n_levels - 1, 0), highs + far)
        return np.clip(ends, -most, most)

    def _ends_of(self, X: RawTable) -> np.ndarray:
        """The ends of each column; all numbers of a sparse matrix, as words of texts, have the same: they are rare."""
        low, high = ends = self._ends.copy()
        if sparse.issparse(X):
            numbers = ~self._are_categories
            low[numbers], high[numbers] = low[numbers].min(initial=0.0), high[numbers].max(initial=0.0)
        return ends

    @cached_property
    def bounds(self) -> np.ndarray:
        """Least and largest numbers of encoded rows, (2, n_encoded); infinite for all but numbers of `fit`."""
        bounds = np.tile([[-np.inf], [np.inf]], self.source.size)
        numbers = np.flatnonzero(~self._are_categories & (self.lows <= self.highs))
        bounds[:, numbers] = self._ends[:, numbers]
        return bounds

    @cached_property
    def _had_gaps(self) -> np.ndarray:
        """Mask of the columns of numbers that were missing in some rows."""
        flagged = self.source[self._flags]
        return np.isin(np.arange(self.medians.size), flagged) | (self.lows > self.highs)

    def _are_known(self, matrix: np.ndarray) -> bool:
        """Whether nothing is missing, far away or infinite, and all categories are those of `fit`."""
        low, high = self._ends
        return bool(((matrix >= low) & (matrix <= high)).all())

    def level(self, j: int, code: int) -> str:
        """The category of a code in words."""
        numbers, strings, _ = self.categories_of(j)
        known = [*(f"{number:g}" for number in numbers), *strings.tolist()]
        return known[code] if code < len(known) else "missing" if self.missing[j] and code == len(known) else "unknown"

    def parts_of(self, j: int) -> list[tuple[int, str]]:
        """Places and names of the parts of the calendar that come from a raw column."""
        first = self.medians.size
        return [(first + k, name) for k, name in enumerate(self.parts.tolist()) if self.source[first + k] == j]

    def with_value(self, matrix: np.ndarray, place: int, value: float) -> np.ndarray:
        """A copy of encoded rows with the same value, or code, in a column of all rows, and no gap there."""
        out, flags = matrix.copy(), self._flags
        out[:, flags][:, self.source[flags] == self.source[place]] = 0.0
        out[:, place] = value
        self._derive(out)
        return out

    @property
    def n_ranked(self) -> int:
        """How many columns of ranks there are, which come before those of codes."""
        return self.rank_starts.size - 1

    @cached_property
    def coded(self) -> np.ndarray:
        """Raw columns of numbers that are codes, too; their categories come last, in this order."""
        return np.flatnonzero((np.diff(self.number_starts) > 0) & ~self._are_categories)

    @property
    def knots_of_ranks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Knots of the map of each column that is ranked, and their ranks."""
        ends = zip(self.rank_starts, self.rank_starts[1:])
        return [(self.rank_knots[first:last], self.rank_values[first:last]) for first, last in ends]

    @property
    def _flags(self) -> slice:
        """The columns that mark gaps."""
        return slice(self.medians.size + self.parts.size, self.ranks.start)

    @property
    def ranks(self) -> slice:
        """The columns of ranks, which those of codes follow."""
        last = self.source.size - self.coded.size
        return slice(last - self.n_ranked, last)

    @property
    def plain_numbers(self) -> np.ndarray:
        """Mask of the raw columns of numbers that are no times."""
        return ~self._are_categories & np.isin(self.times, ["", NUMBERS])

    def with_codes(self, matrix: np.ndarray, coded: list[int]) -> tuple[Self, np.ndarray]:
        """The encoder of a table that it has encoded, of which some numbers are codes, and the table with these."""
        own = [
            np.unique(matrix[~self._are_flagged(matrix, j), j]) if j in coded else self.categories_of(j)[0]
            for j in range(self.medians.size)
        ]
        last = self.ranks.stop
        encoder = replace(
            self,
            numbers=np.concatenate(own),
            number_starts=np.append(0, np.cumsum([levels.size for levels in own])),
            source=np.append(self.source[:last], coded),
            categorical=np.append(self.categorical[:last], np.ones(len(coded), dtype=bool)),
        )
        return encoder, encoder._widened(matrix[:, :last])

    def _are_flagged(self, matrix: np.ndarray, j: int) -> np.ndarray:
        """Mask of the encoded rows in which a raw column was missing, if it was in `fit`."""
        flags = self._flags.start + np.flatnonzero(self.source[self._flags] == j)
        return np.any(matrix[:, flags] > 0, axis=1)

    def _widened(self, matrix: np.ndarray) -> np.ndarray:
        """Encoded rows with room for further columns, and these."""
        out = np.empty((len(matrix), self.source.size))
        out[:, : matrix.shape[1]] = matrix
        self._derive(out)
        return out

    def _with_ranks(self, matrix: np.ndarray) -> tuple[Self, np.ndarray]:
        """The encoder, and the encoded table, with ranks of numbers that are far from normal."""
        ranked = columns_to_rank(matrix, self.plain_numbers)
        if not ranked.size:
            return self, matrix
        source = np.append(self.source, ranked)
        categorical = np.append(self.categorical, np.zeros(ranked.size, dtype=bool))
        encoder = replace(self, source=source, categorical=categorical, **ranks_of(matrix, ranked))
        return encoder, encoder._widened(matrix)

    def _derive(self, out: np.ndarray, gaps: np.ndarray | None = None) -> None:
        """Set the ranks and the codes in encoded rows, of which `gaps` says what was missing, or else the flags do.

        What was missing has the code after those of `fit`, and what is new the next one.
        """
        if self.n_ranked:
            ranks = Quantiles(np.arange(self.n_ranked), self.rank_starts, self.rank_knots, self.rank_values)
            out[:, self.ranks] = ranks.transform(out[:, self.source[self.ranks]])
        for place, j in enumerate(self.coded, self.ranks.stop):
            levels, _, _ = self.categories_of(j)
            missing = self._are_flagged(out, j) if gaps is None else gaps[:, j]
            out[:, place] = np.where(missing, levels.size, places_among(out[:, j], levels, levels.size + 1))

    @cached_property
    def _are_categories(self) -> np.ndarray:
        """Mask of the raw columns."""
        return self.categorical[: self.medians.size]

    @cached_property
    def _all_numbers(self) -> bool:
        return not (self._are_categories.any() or (self.times != "").any())

    def _read(self, estimator: BaseEstimator, X: RawTable) -> tuple[np.ndarray, Columns | None, bool]:
        """Numbers and codes, with NaN; the table that they come from, if it was read; and `_are_known`."""
        if self._needs_no_check(estimator, X):
            matrix = np.asarray(X, dtype=np.float64, order="C")
            is_known = self._are_known(matrix)
            if is_known or not np.isinf(matrix).any():
                return matrix, None, is_known
        table = read_table(estimator, X, self.times.tolist())
        matrix = self._numbers_of(table, estimator)
        return matrix, table, self._are_known(matrix)

    def _needs_no_check(self, estimator: BaseEstimator, X: RawTable) -> bool:
        """Whether scikit-learn's checks, which take longer than a prediction, could find nothing but infinity."""
        return (
            type(X) is np.ndarray
            and X.dtype.char in "df"
            and X.shape[1:] == self.medians.shape
            and len(X) > 0
            and self._all_numbers
            and not hasattr(estimator, "feature_names_in_")
        )

    def _numbers_of(self, table: Columns, estimator: BaseEstimator) -> np.ndarray:
        """Numbers and codes, still with NaN, finite otherwise."""
        matrix = table.matrix
        if matrix is None or self._are_categories.any():
            matrix = np.empty(table.shape) if matrix is None else matrix.copy()
            for j, column in enumerate(table.columns):
                if self.categorical[j]:
                    matrix[:, j] = column.codes(*self.categories_of(j))
                elif table.matrix is None:
                    matrix[:, j] = column.numbers()
        try:
            return checked_array(matrix, ensure_all_finite="allow-nan", input_name="X", estimator=estimator)
        except ValueError:
            infinite = np.isinf(matrix).any(axis=0)
            if not infinite.any():
                raise
            raise ValueError(infinite_in([table.columns[j].name for j in np.flatnonzero(infinite).tolist()])) from None

    def categories_of(self, j: int) -> Categories:
        own_numbers = self.numbers[self.number_starts[j] : self.number_starts[j + 1]]
        own_strings = self.strings[self.string_starts[j] : self.string_starts[j + 1]]
        return own_numbers, own_strings, bool(self.missing[j])

    def _complete(self, matrix: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """Fill the gaps, and add parts of dates, the columns that mark gaps, ranks and codes."""
        n_inputs = self.medians.size
        if self.source.size == n_inputs and not gaps.any():
            return _own(matrix)
        out = np.empty((matrix.shape[0], self.source.size))
        out[:, :n_inputs] = matrix
        np.copyto(out[:, :n_inputs], self.medians, where=gaps)
        for place, name in enumerate(self.parts, n_inputs):
            out[:, place] = part_of(out[:, self.source[place]], name)
        out[:, self._flags] = gaps[:, self.source[self._flags]]
        self._derive(out, gaps)
        return out


def _own(matrix: np.ndarray) -> np.ndarray:
    return matrix if matrix.flags.carray else matrix.copy()
