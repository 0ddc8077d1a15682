"""A raw table as a matrix without NaN: its columns as numbers, and the columns that are derived from them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.validation import check_moderate
from binfeat.models.table.columns import RawTable
from binfeat.models.table.derived import Codes, DateParts, Derived, Gaps, Ranks
from binfeat.models.table.findings import Finding, Findings, Report
from binfeat.models.table.inputs import Inputs, Levels, ranges_of


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """Encodes a raw table: learned in `fit`, applied in `transform`.

    The columns of the table come first, in their order, with the median in place of NaN (`Inputs`). The columns that
    are derived from them follow: parts of dates, gaps, ranks if they are wanted, and codes (`derived`).
    """

    inputs: Inputs
    parts: DateParts
    gaps: Gaps
    ranks: Ranks
    codes: Codes

    @classmethod
    def fit(
        cls, estimator: BaseEstimator, X: RawTable, categorical_features: ArrayLike | None, takes_ranks: bool = False
    ) -> tuple[Self, np.ndarray]:
        """The encoder of a table, and the encoded table (n_rows, n_encoded), which may be X itself.

        Sets `n_features_in_` and `feature_names_in_` of the estimator. TypeError or ValueError if values are infinite
        or enormous, or no numbers in a column that is not categorical; MemoryError if a sparse X is too large.
        """
        inputs, matrix = Inputs.fit(estimator, X, categorical_features)
        gaps = np.isnan(matrix)
        parts = DateParts.fit(matrix, ~inputs.are_categories & np.char.startswith(inputs.times, "dates"))
        encoder = cls(inputs, parts, Gaps.fit(gaps), Ranks.none(), Codes.none(inputs.levels))
        matrix = encoder._complete(matrix, gaps)
        check_moderate(matrix, "X")
        if takes_ranks:
            encoder = replace(encoder, ranks=Ranks.fit(matrix[:, : encoder.inputs.n_inputs], inputs.plain_numbers))
        return (encoder, encoder._widened(matrix)) if encoder.ranks.source.size else (encoder, matrix)

    def transform(self, estimator: BaseEstimator, X: RawTable, note: Report = None) -> np.ndarray:
        """The numbers of a table with the columns of `fit`, C-contiguous, writeable, without NaN; might be X itself.

        Numbers far outside the range of `fit` are moved to the last number that is not: a kernel that grows would
        follow them to anywhere. `note` is called with the findings, if there are any.

        TypeError or ValueError if columns differ, hold infinity, or are not categorical and hold no numbers.
        """
        matrix, table, are_known = self.inputs.read(estimator, X)
        if note is not None and not (are_known and (table is None or not self.inputs.hold_strings(table))):
            table = self.inputs.table_of(estimator, X) if table is None else table
            words, had_gaps = np.zeros(table.shape, dtype=bool), self.gaps.columns(self.inputs.n_inputs)
            note(Findings(self.inputs.news(X, table, matrix, words, had_gaps), len(matrix)))
        if are_known and self.source.size == self.inputs.n_inputs:
            return _own(matrix)
        encoded = self._complete(matrix, np.isnan(matrix))
        return encoded if are_known else self.inputs.clipped(encoded)

    def renewed(self, estimator: BaseEstimator, X: RawTable) -> tuple[Self, np.ndarray]:
        """Return the encoder fitted to another table, without limits for its numbers, and that table encoded."""
        matrix, _, _ = self.inputs.read(estimator, X)
        lows, highs = ranges_of(matrix)
        encoder = replace(self, inputs=replace(self.inputs, lows=lows, highs=highs))
        encoded = encoder._complete(matrix, np.isnan(matrix))
        coded = self.codes.source.tolist()
        return encoder.with_codes(encoded, coded) if coded else (encoder, encoded)

    def with_codes(self, matrix: np.ndarray, coded: list[int]) -> tuple[Self, np.ndarray]:
        """Return the encoder with some numbers as codes, and the encoded table with these codes."""
        gaps, levels = self.gaps.mask(matrix[:, self._flags], self.inputs.n_inputs), self.inputs.levels
        own = [
            np.unique(matrix[~gaps[:, j], j]) if j in coded else levels.of(j)[0] for j in range(self.inputs.n_inputs)
        ]
        levels = levels.with_numbers(own)
        inputs, codes = replace(self.inputs, levels=levels), Codes(np.array(coded, dtype=np.int64), levels)
        encoder = replace(self, inputs=inputs, codes=codes)
        return encoder, encoder._widened(matrix[:, : self.source.size - self.codes.source.size])

    def compared(self, estimator: BaseEstimator, X: RawTable) -> tuple[Findings, np.ndarray]:
        """Differences from the table of `fit`, and the encoded table; words are encoded as missing values."""
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
        for j in self.codes.source:
            values, known = matrix[:, j], self.inputs.levels.of(j)[0]
            if (known == np.rint(known)).all():
                fresh = ~np.isnan(values) & ~np.isin(values, known)
                examples = (f"{value:g}" for value in np.unique(values[fresh]))
                found += Finding.among(table.columns[j].name, "unseen codes", fresh, examples, f"{known.size:,} codes")
        found += self.inputs.news(X, table, matrix, words, self.gaps.columns(self.inputs.n_inputs))
        return Findings(found, len(matrix)), self.inputs.clipped(self._complete(matrix, np.isnan(matrix)))

    @cached_property
    def source(self) -> np.ndarray:
        """The column of the table for each encoded column, (n_encoded,)."""
        return np.concatenate([np.arange(self.inputs.n_inputs), *(own.source for _, own in self._derived())])

    @cached_property
    def categorical(self) -> np.ndarray:
        """Mask of the encoded columns that are categories, (n_encoded,)."""
        masks = (np.full(own.source.size, own.are_categories) for _, own in self._derived())
        return np.concatenate([self.inputs.are_categories, *masks])

    def with_value(self, matrix: np.ndarray, place: int, value: float) -> np.ndarray:
        """A copy of encoded rows with the same value, or code, in a column of all rows, and no gap there."""
        out, flags = matrix.copy(), self._flags
        out[:, flags][:, self.gaps.source == self.source[place]] = 0.0
        out[:, place] = value
        self._fill(out, self.gaps.mask(out[:, flags], self.inputs.n_inputs), flags.stop)
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was learned, as arrays by name."""
        inputs, ranks = self.inputs, self.ranks
        own = {"medians": inputs.medians, "times": inputs.times, "lows": inputs.lows, "highs": inputs.highs}
        knots = {"rank_starts": ranks.starts, "rank_knots": ranks.knots, "rank_values": ranks.scores}
        encoded = {"categorical": self.categorical, "source": self.source, "parts": self.parts.names}
        return encoded | own | inputs.levels.arrays() | knots

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """The same object again from its `arrays()`."""
        medians, names, source = arrays["medians"], arrays["parts"], arrays["source"]
        are_categories, n_parts = arrays["categorical"][: medians.size], medians.size + names.size
        levels = Levels(*(arrays[name] for name in ("numbers", "number_starts", "strings", "string_starts", "missing")))
        inputs = Inputs(are_categories, medians, arrays["times"], levels, arrays["lows"], arrays["highs"])
        codes = Codes(np.flatnonzero(levels.have_numbers & ~are_categories), levels)
        last = source.size - codes.source.size
        first = last - (arrays["rank_starts"].size - 1)
        ranks = Ranks(source[first:last], *(arrays[name] for name in ("rank_starts", "rank_knots", "rank_values")))
        return cls(inputs, DateParts(source[medians.size : n_parts], names), Gaps(source[n_parts:first]), ranks, codes)

    def _derived(self) -> Iterator[tuple[slice, Derived]]:
        """The kinds of derived columns, and where they stand among the encoded columns."""
        first = self.inputs.n_inputs
        for own in (self.parts, self.gaps, self.ranks, self.codes):
            yield slice(first, first + own.source.size), own
            first += own.source.size

    @property
    def _flags(self) -> slice:
        """The encoded columns that mark gaps."""
        return next(columns for columns, own in self._derived() if own is self.gaps)

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
        """Encoded rows with the derived columns that they lack, which are the last ones."""
        out = np.empty((len(matrix), self.source.size))
        out[:, : matrix.shape[1]] = matrix
        self._fill(out, self.gaps.mask(out[:, self._flags], self.inputs.n_inputs), matrix.shape[1])
        return out

    def _fill(self, out: np.ndarray, gaps: np.ndarray, first: int) -> None:
        """Compute the derived columns from the place `first`, by the mask of missing numbers, (n_rows, n_inputs)."""
        for columns, own in self._derived():
            if columns.start >= first:
                own.fill(out[:, columns], out[:, : self.inputs.n_inputs], gaps)


def _own(matrix: np.ndarray) -> np.ndarray:
    return matrix if matrix.flags.carray else matrix.copy()
