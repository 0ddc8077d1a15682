"""A raw table as a matrix without NaN: its columns as numbers, and derived columns."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.calendar import PARTS, parts_in
from binfeat.models.table.columns import RawTable, places_among
from binfeat.models.table.derived import NO_RANKS, Quantiles, scored_ranks
from binfeat.models.table.findings import Finding, Findings, Report
from binfeat.models.table.inputs import Inputs, arrays_of_categories, categories_in_arrays, name_of_number

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """Encodes a raw table: learned in `fit`, applied in `transform`.

    The columns of the table come first, in order, with the median instead of NaN (`Inputs`). Derived columns follow:
    repeating parts of dates, such as the day of the week; flags, 1 for a missing number, for each column with gaps;
    ranks of numbers that are far from normal, if requested; and numbers that are codes, again as categories: a missing
    number has the code after the last code of `fit`, and an unseen number the next one.
    """

    inputs: Inputs
    dates: np.ndarray  # column of the table for each part of a date
    parts: np.ndarray  # names of these parts
    gaps: np.ndarray  # columns of the table in which some numbers were missing in `fit`, but not all
    ranks: Quantiles
    coded: np.ndarray  # columns of the table that are codes

    @classmethod
    def fit(
        cls, estimator: BaseEstimator, X: RawTable, categorical_features: ArrayLike | None, takes_ranks: bool = False
    ) -> tuple[Self, np.ndarray]:
        """Return the encoder of a table, and the encoded table (n_rows, n_encoded), which can be X itself.

        Sets `n_features_in_` and `feature_names_in_` of the estimator. TypeError or ValueError if values are infinite
        or enormous, or not numeric in a numeric column; MemoryError if a sparse X is too large.
        """
        inputs, matrix = Inputs.fit(estimator, X, categorical_features)
        are_dates = ~inputs.are_categories & np.char.startswith(inputs.times, "dates")
        parts = [(j, name) for j in np.flatnonzero(are_dates).tolist() for name in parts_in(matrix[:, j])]
        dates, names = zip(*parts) if parts else ((), ())
        gaps = np.isnan(matrix)
        ranks = Quantiles(_NONE, *NO_RANKS.values())
        encoder = cls(inputs, np.array(dates, np.int64), np.array(names, np.str_), _with_some(gaps), ranks, coded=_NONE)
        matrix = encoder._complete(matrix, gaps)
        if takes_ranks:
            encoder = replace(encoder, ranks=scored_ranks(matrix[:, : inputs.n_inputs], inputs.plain_numbers))
        return (encoder, encoder._widened(matrix)) if encoder.ranks.columns.size else (encoder, matrix)

    def transform(self, estimator: BaseEstimator, X: RawTable, note: Report = None) -> np.ndarray:
        """Return the numbers of a table with the columns of `fit`, C-contiguous, writeable, without NaN; possibly X.

        Numbers far outside the training range are clipped, because linear kernels, in older files, extrapolate without
        limit. `note` is called with the findings, if there are any.

        TypeError or ValueError if columns differ, are infinite, or are not numeric although they should be.
        """
        matrix, table, are_known = self.inputs.read(estimator, X)
        if note is not None and not (are_known and (table is None or not self.inputs.hold_strings(table))):
            table = self.inputs.table_of(estimator, X) if table is None else table
            words = np.zeros(table.shape, dtype=bool)
            note(Findings(self.inputs.differences(X, table, matrix, words, self.gaps), len(matrix)))
        if are_known and self.source.size == self.inputs.n_inputs:
            return _own(matrix)
        encoded = self._complete(matrix, np.isnan(matrix))
        return encoded if are_known else self.inputs.clipped(encoded)

    def renewed(self, estimator: BaseEstimator, X: RawTable) -> tuple[Self, np.ndarray]:
        """Return the encoder with the values of another table, and that table encoded.

        The derived columns stay, and flags of columns with missing numbers for the first time are added.
        """
        inputs, matrix = self.inputs.fitted_to(self.inputs.table_of(estimator, X), estimator)
        gaps = np.isnan(matrix)
        encoder = replace(self, inputs=inputs, gaps=np.union1d(self.gaps, _with_some(gaps)))
        encoded = encoder._complete(matrix, gaps)
        return encoder.with_codes(encoded, self.coded.tolist()) if self.coded.size else (encoder, encoded)

    def with_codes(self, matrix: np.ndarray, coded: list[int]) -> tuple[Self, np.ndarray]:
        """Return the encoder with some numbers as codes, and the encoded table with these codes."""
        gaps, categories = self._gaps_in(matrix), self.inputs.categories.copy()
        for j in coded:
            categories[j] = np.unique(matrix[~gaps[:, j], j]), *categories[j][1:]
        inputs = replace(self.inputs, categories=categories)
        encoder = replace(self, inputs=inputs, coded=np.array(coded, dtype=np.int64))
        return encoder, encoder._widened(matrix[:, : self.source.size - self.coded.size])

    def compared(self, estimator: BaseEstimator, X: RawTable) -> tuple[Findings, np.ndarray]:
        """Return differences from the training table, and the encoded table; strings in numeric columns are missing."""
        table = self.inputs.table_of(estimator, X)
        words = np.zeros(table.shape, dtype=bool)
        found = list[Finding]()
        for j in np.flatnonzero(~self.inputs.are_categories).tolist():
            own, words[:, j] = table.columns[j].words()
            found += own
        if found:
            columns = [column.without(rows) if rows.any() else column for column, rows in zip(table.columns, words.T)]
            table = replace(table, columns=columns, matrix=None)
        matrix = self.inputs.numbers_of(table, estimator)
        for j in self.coded:
            values, known = matrix[:, j], self.inputs.categories[j][0]
            if (known == np.rint(known)).all():
                fresh = ~np.isnan(values) & ~np.isin(values, known)
                examples = map(name_of_number, np.unique(values[fresh]))
                found += Finding.among(table.columns[j].name, "unseen codes", fresh, examples, f"{known.size:,} codes")
        found += self.inputs.differences(X, table, matrix, words, self.gaps)
        return Findings(found, len(matrix)), self.inputs.clipped(self._complete(matrix, np.isnan(matrix)))

    @cached_property
    def source(self) -> np.ndarray:
        """Column of the table for each encoded column, (n_encoded,)."""
        inputs = np.arange(self.inputs.n_inputs)
        return np.concatenate([inputs, self.dates, self.gaps, self.ranks.columns, self.coded])

    @cached_property
    def categorical(self) -> np.ndarray:
        """Mask of the encoded columns that are categories, (n_encoded,)."""
        derived = np.arange(self.inputs.n_inputs, self.source.size)
        return np.append(self.inputs.are_categories, derived >= self.source.size - self.coded.size)

    def with_value(self, matrix: np.ndarray, place: int, value: float) -> np.ndarray:
        """Return encoded rows with the same value, or code, in a column, and no gap there."""
        out, flags = matrix.copy(), self._flags
        out[:, flags][:, self.gaps == self.source[place]] = 0.0
        out[:, place] = value
        self._fill(out, self._gaps_in(out), flags.stop)
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        inputs, ranks = self.inputs, self.ranks
        own = {"medians": inputs.medians, "times": inputs.times, "lows": inputs.lows, "highs": inputs.highs}
        knots = {"rank_starts": ranks.starts, "rank_knots": ranks.knots, "rank_values": ranks.ranks}
        encoded = {"categorical": self.categorical, "source": self.source, "parts": self.parts}
        return encoded | own | arrays_of_categories(inputs.categories) | knots

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        medians, names, source = arrays["medians"], arrays["parts"], arrays["source"]
        are_categories, n_parts = arrays["categorical"][: medians.size], medians.size + names.size
        categories, ends = categories_in_arrays(arrays), (arrays["lows"], arrays["highs"])
        inputs = Inputs(are_categories, medians, arrays["times"], categories, *ends)
        last = source.size - np.count_nonzero(arrays["categorical"][medians.size :])
        first = last - (arrays["rank_starts"].size - 1)
        ranks = Quantiles(source[first:last], *(arrays[name] for name in ("rank_starts", "rank_knots", "rank_values")))
        return cls(inputs, source[medians.size : n_parts], names, source[n_parts:first], ranks, source[last:])

    @property
    def _flags(self) -> slice:
        """Encoded columns that mark gaps."""
        first = self.inputs.n_inputs + self.dates.size
        return slice(first, first + self.gaps.size)

    def _gaps_in(self, matrix: np.ndarray) -> np.ndarray:
        """Return a mask of missing values in encoded rows, (n_rows, n_inputs), in columns with gaps."""
        gaps = np.zeros((len(matrix), self.inputs.n_inputs), dtype=bool)
        gaps[:, self.gaps] = matrix[:, self._flags] > 0
        return gaps

    def _complete(self, matrix: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """Fill the gaps, and add the derived columns."""
        n_inputs = self.inputs.n_inputs
        if self.source.size == n_inputs and not gaps.any():
            return _own(matrix)
        out = np.empty((matrix.shape[0], self.source.size))
        out[:, :n_inputs] = matrix
        np.copyto(out[:, :n_inputs], self.inputs.medians, where=gaps)
        self._fill(out, gaps, n_inputs)
        return out

    def _widened(self, matrix: np.ndarray) -> np.ndarray:
        """Add missing derived columns, the last ones, to encoded rows."""
        out = np.empty((len(matrix), self.source.size))
        out[:, : matrix.shape[1]] = matrix
        self._fill(out, self._gaps_in(out), matrix.shape[1])
        return out

    def _fill(self, out: np.ndarray, gaps: np.ndarray, first: int) -> None:
        """Compute the derived columns from `first` on, given a mask of missing numbers, (n_rows, n_inputs)."""
        X, flags, n_encoded = out[:, : self.inputs.n_inputs], self._flags, self.source.size
        if first < flags.stop:
            for place, (j, name) in enumerate(zip(self.dates, self.parts), self.inputs.n_inputs):
                out[:, place] = PARTS[name][1](X[:, j])
            out[:, flags] = gaps[:, self.gaps]
        if first <= flags.stop and self.ranks.columns.size:
            out[:, flags.stop : n_encoded - self.coded.size] = self.ranks.mapped(X)
        for place, j in enumerate(self.coded, n_encoded - self.coded.size):
            known = self.inputs.categories[j][0]
            out[:, place] = np.where(gaps[:, j], known.size, places_among(X[:, j], known, known.size + 1))


def _with_some(gaps: np.ndarray) -> np.ndarray:
    """Return the columns in which some values are missing, but not all."""
    n_gaps = np.count_nonzero(gaps, axis=0)
    return np.flatnonzero((n_gaps > 0) & (n_gaps < len(gaps)))


def _own(matrix: np.ndarray) -> np.ndarray:
    return matrix if matrix.flags.carray else matrix.copy()
