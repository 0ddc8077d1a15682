"""The columns of a raw table as a matrix of numbers and codes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.calendar import time_in_words
from binfeat._common.subsets import thinned
from binfeat._common.validation import check_categorical, check_moderate, checked_array, is_word
from binfeat._common.warned import warn
from binfeat.models.table.columns import NO_CATEGORIES, Categories, Column, Columns, RawTable, infinite_in, read_table
from binfeat.models.table.findings import NUMBERS, Finding


def arrays_of_categories(categories: list[Categories]) -> dict[str, np.ndarray]:
    """Return the categories of all columns as arrays, with the start of each column."""
    numbers, strings, missing = zip(NO_CATEGORIES, *categories)
    return {
        "numbers": np.concatenate(numbers),
        "number_starts": np.cumsum([part.size for part in numbers]),
        "strings": np.concatenate(strings).astype(np.str_),
        "string_starts": np.cumsum([part.size for part in strings]),
        "missing": np.array(missing[1:], dtype=bool),
    }


def categories_in_arrays(arrays: dict[str, np.ndarray]) -> list[Categories]:
    numbers = np.split(arrays["numbers"], arrays["number_starts"][1:-1])
    strings = np.split(arrays["strings"].astype(object), arrays["string_starts"][1:-1])
    return list(zip(numbers, strings, arrays["missing"].tolist(), strict=True))


def name_of_category(categories: Categories, code: int, times: str) -> str:
    numbers, strings, has_missing = categories
    known = [*(name_of_number(number, times) for number in numbers), *strings.tolist(), *["missing"] * has_missing]
    return known[code] if code < len(known) else "unknown"


def name_of_number(number: float, times: str = "", number_format: str = "") -> str:
    """Return the text of a category or code: all digits of a number, or the date or duration."""
    return f"{number:{number_format}}".removesuffix(".0") if times in ("", NUMBERS) else time_in_words(number, times)


_MEDIAN_ROWS = 2**14  # evenly spaced rows for medians; all rows would take 0.4 s for 400,000 x 54


def _warn_of_long_numbers(table: Columns, chosen: np.ndarray) -> None:
    """Warn about numeric columns with numbers that are equal in float64 only."""
    for column in compress(table.columns, ~chosen):
        n_numbers, n_left = column.lost()
        if n_left < n_numbers:
            warn(
                f"{column.name} of X has {n_numbers:,} different numbers beyond 2^53, but only {n_left:,} of them "
                "differ in float64. If they are names, make the column categorical, for example by "
                "Series.astype('category'). Otherwise subtract a constant."
            )


def _repeated(column: Column, n_rows: int) -> Categories:
    """Return the categories of a column; none, with a warning, if nearly every row has its own category."""
    numbers, strings, missing = column.keys.categories()
    n_levels = numbers.size + strings.size
    if n_rows < 50 or n_levels <= 0.9 * n_rows:
        return numbers, strings, missing
    warn(
        f"{column.name} of X has {n_levels:,} different values in {n_rows:,} rows, too many to generalize, so it is "
        "ignored. Drop it, or convert it to numbers or to fewer categories.",
    )
    return NO_CATEGORIES


def _medians_of(matrix: np.ndarray) -> np.ndarray:
    """Return medians of the values that are not NaN, 0 for a column of NaN."""
    gaps = np.isnan(matrix)
    n_gaps = np.count_nonzero(gaps, axis=0)
    some = matrix if len(matrix) <= _MEDIAN_ROWS else thinned(matrix, _MEDIAN_ROWS)
    medians, whole = np.zeros(len(n_gaps)), np.flatnonzero(n_gaps == 0)
    for columns in np.array_split(whole, 1 + whole.size * len(some) // 2**18):  # values that fit in a cache
        medians[columns] = np.median(np.ascontiguousarray(some[:, columns].T), axis=1, overwrite_input=True)
    for j in np.flatnonzero((n_gaps > 0) & (n_gaps < len(matrix))):
        medians[j] = np.median(thinned(matrix[~gaps[:, j], j], _MEDIAN_ROWS))
    return medians


@dataclass(frozen=True, eq=False)
class Inputs:
    """Columns of a raw table as a matrix with NaN: numbers, categories as codes, dates and durations as days.

    Codes number the categories of `fit`: increasing numbers, then strings, then missing, if it occurred. The next code
    represents all other categories. 1, 1.0 and True are the same category, and also "1" unless `fit` had both; other
    objects are the string that they print as. If nearly every row has its own category, the column has a single
    category.
    """

    are_categories: np.ndarray  # mask of the columns, (n_inputs,)
    medians: np.ndarray  # replace NaN in numeric columns, (n_inputs,); 0 for columns of NaN, unused for categories
    times: np.ndarray  # kind of times of each column, from `times_of`, (n_inputs,)
    categories: list[Categories]  # categories of each column; `NO_CATEGORIES` for numbers
    lows: np.ndarray  # least number in each column, (n_inputs,); above the largest one if there are none
    highs: np.ndarray

    @classmethod
    def fit(
        cls, estimator: BaseEstimator, X: RawTable, categorical_features: ArrayLike | None
    ) -> tuple[Self, np.ndarray]:
        """Return the columns of a table, and its matrix with NaN."""
        table = read_table(estimator, X)
        if is_word(categorical_features, "from_dtype"):
            table = table.without_texts()
            chosen = np.array([column.holds_strings for column in table.columns], dtype=bool)
        else:
            chosen = check_categorical(categorical_features, estimator)
        blank = np.zeros(chosen.size)
        bare = cls(chosen, blank, np.array(table.times, dtype=np.str_), [], lows=blank, highs=blank)
        return bare.fitted_to(table, estimator)

    def fitted_to(self, table: Columns, estimator: BaseEstimator) -> tuple[Self, np.ndarray]:
        """Return the same columns with the values of another table, and its matrix with NaN."""
        _warn_of_long_numbers(table, self.are_categories)
        n_rows, columns = table.shape[0], zip(table.columns, self.are_categories)
        categories = [_repeated(own, n_rows) if is_category else NO_CATEGORIES for own, is_category in columns]
        inputs = replace(self, categories=categories)
        matrix = inputs.numbers_of(table, estimator)
        check_moderate(matrix, "X")
        lows, highs = np.fmin.reduce(matrix, initial=np.inf), np.fmax.reduce(matrix, initial=-np.inf)
        largest = np.maximum(highs, -lows)
        tiny = np.flatnonzero((largest > 0) & (largest < 1e-100))  # their squares underflow
        if tiny.size:
            name = table.columns[tiny[0]].name
            raise ValueError(f"{name} of X has no number of 1e-100 or more in magnitude; multiply it by a constant.")
        return replace(inputs, medians=_medians_of(matrix), lows=lows, highs=highs), matrix

    def read(self, estimator: BaseEstimator, X: RawTable) -> tuple[np.ndarray, Columns | None, bool]:
        """Return numbers and codes with NaN, the table if it was read, and True if all values are known."""
        if self._needs_no_check(estimator, X):
            matrix = np.asarray(X, dtype=np.float64, order="C")
            are_known = self._are_known(matrix)
            if are_known or not np.isinf(matrix).any():
                return matrix, None, are_known
        table = self.table_of(estimator, X)
        matrix = self.numbers_of(table, estimator)
        return matrix, table, self._are_known(matrix)

    def table_of(self, estimator: BaseEstimator, X: RawTable) -> Columns:
        """Return the columns of another table, with strings read as in `fit`."""
        return read_table(estimator, X, self.times.tolist())

    def numbers_of(self, table: Columns, estimator: BaseEstimator) -> np.ndarray:
        """Return numbers and codes, with NaN, otherwise finite."""
        matrix = table.matrix
        if matrix is None or self.are_categories.any():
            matrix = np.empty(table.shape) if matrix is None else matrix.copy()
            for j, column in enumerate(table.columns):
                if self.are_categories[j]:
                    matrix[:, j] = column.keys.codes(*self.categories[j])
                elif table.matrix is None:
                    matrix[:, j] = column.numbers()
        try:
            return checked_array(matrix, ensure_all_finite="allow-nan", input_name="X", estimator=estimator)
        except ValueError:
            infinite = np.isinf(matrix).any(axis=0)
            if not infinite.any():
                raise
            raise ValueError(infinite_in([table.columns[j].name for j in np.flatnonzero(infinite).tolist()])) from None

    def hold_strings(self, table: Columns) -> bool:
        return table.matrix is None and any(
            column.holds_strings for column in compress(table.columns, ~self.are_categories)
        )

    def differences(
        self, X: RawTable, table: Columns, matrix: np.ndarray, words: np.ndarray, gaps: np.ndarray
    ) -> Iterator[Finding]:
        """Yield the findings in another table, given its matrix and a mask of values that are not numbers.

        `gaps` are the columns with some missing numbers in `fit`.
        """
        low, high = self.ends.copy()
        if sparse.issparse(X):  # its columns, such as rare words, share their bounds
            numbers = ~self.are_categories
            low[numbers], high[numbers] = low[numbers].min(initial=0.0), high[numbers].max(initial=0.0)
        for j, column in enumerate(table.columns):
            values = matrix[:, j]
            if self.are_categories[j]:
                yield from _unseen_categories(column, values > high[j], self.categories[j], str(self.times[j]))
                continue
            has_numbers = self.lows[j] <= self.highs[j]
            if has_numbers and j not in gaps:
                fresh = np.isnan(values) & ~words[:, j]
                yield from Finding.among(column.name, "missing values", fresh, ["NaN"], "none")
            beyond = (values < low[j]) | (values > high[j])
            if beyond.any():
                shown = partial(name_of_number, times=str(self.times[j]), number_format=".6g")
                known = f"{shown(self.lows[j])} to {shown(self.highs[j])}" if has_numbers else "missing everywhere"
                examples = map(shown, np.unique(values[beyond]))
                yield from Finding.among(column.name, "far outside", beyond, examples, known)
            yield from column.strings()

    @cached_property
    def ends(self) -> np.ndarray:
        """Return bounds (2, n_inputs) beyond which a number or code is new: one range width outside the range."""
        most, lows, highs = np.finfo(np.float64).max, self.lows, self.highs
        far = np.zeros(lows.size)
        np.subtract(highs, lows, out=far, where=np.isfinite(lows))
        far += 1e-6 * np.maximum(abs(lows), abs(highs), where=np.isfinite(lows), out=np.zeros(lows.size))
        chosen = self.are_categories
        counts = [numbers.size + strings.size + has_missing for numbers, strings, has_missing in self.categories]
        last_codes = np.maximum(np.array(counts) - 1, 0)
        ends = np.where(chosen, 0.0, lows - far), np.where(chosen, last_codes, highs + far)
        return np.clip(ends, -most, most)

    @cached_property
    def bounds(self) -> np.ndarray:
        """Return clipping bounds of rows without NaN, (2, n_inputs); infinite except for numeric columns."""
        are_bounded = ~self.are_categories & (self.lows <= self.highs)
        return np.where(are_bounded, self.ends, [[-np.inf], [np.inf]])

    def clipped(self, encoded: np.ndarray) -> np.ndarray:
        """Clip the columns of the table, which are the first of encoded rows, to the bounds."""
        own = np.clip(encoded[:, : self.n_inputs], *self.bounds)
        return own if own.shape == encoded.shape else np.hstack([own, encoded[:, self.n_inputs :]])

    @property
    def n_inputs(self) -> int:
        return self.medians.size

    @property
    def plain_numbers(self) -> np.ndarray:
        """Mask of numeric columns that are not times."""
        return ~self.are_categories & np.isin(self.times, ["", NUMBERS])

    @cached_property
    def _are_numbers(self) -> bool:
        return not (self.are_categories.any() or (self.times != "").any())

    def _are_known(self, matrix: np.ndarray) -> bool:
        low, high = self.ends
        return bool(((matrix >= low) & (matrix <= high)).all())

    def _needs_no_check(self, estimator: BaseEstimator, X: RawTable) -> bool:
        """Return True if scikit-learn's checks, slower than a prediction, could only find infinite values."""
        return (
            type(X) is np.ndarray
            and X.dtype.char in "df"
            and X.shape[1:] == self.medians.shape
            and len(X) > 0
            and self._are_numbers
            and not hasattr(estimator, "feature_names_in_")
        )


def _unseen_categories(column: Column, unknown: np.ndarray, categories: Categories, times: str) -> Iterator[Finding]:
    """Yield findings of new categories and missing values; a column of ids has no categories and no findings."""
    n_categories = categories[0].size + categories[1].size
    if unknown.any() and (n_categories or categories[2]):
        known = f"{n_categories:,} categories" if n_categories else "missing everywhere"
        missing = column.keys.missing() & unknown
        yield from Finding.among(column.name, "missing values", missing, ["NaN"], "none")
        fresh = unknown & ~missing
        numbers, strings, _ = column.at(fresh).keys.categories()
        examples = [*(name_of_number(number, times) for number in numbers), *map(repr, strings.tolist())]
        yield from Finding.among(column.name, "unseen categories", fresh, examples, known)
