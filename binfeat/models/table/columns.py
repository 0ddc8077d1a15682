"""The columns of a raw table, as numbers or as keys of categories."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import compress
from numbers import Real
from typing import TypeAlias

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from binfeat._common.calendar import days_of, is_time, times_of, times_of_objects, with_times, zone_in
from binfeat._common.frames import (
    EXACT,
    LONG_INTEGERS,
    collected,
    in_float64,
    is_frame,
    is_missing,
    is_numeric,
    values_of,
)
from binfeat._common.memory import require_memory
from binfeat._common.validation import INFINITE, checked_rows
from binfeat._common.warned import warn
from binfeat._rows.sources import Table
from binfeat.models.table.findings import (
    DATES,
    NUMBERS,
    Finding,
    Findings,
    RawValue,
    content_of,
    day_of,
    days_in,
    few,
    guess_type,
    key_of,
    number_of_text,
    numbers_of_text,
)

NO_STRINGS = np.empty(0, dtype=object)  # because one long string would make all strings of `np.str_` long

RawTable: TypeAlias = Table  # an array-like, a sparse matrix or a data frame
Categories = tuple[np.ndarray, np.ndarray, bool]  # numbers, strings, and whether missing is a category
NO_CATEGORIES: Categories = (np.empty(0), NO_STRINGS, False)
_CONVERSIONS = {  # conversions of objects of these types
    "bytes": "Decode it; text in files must be UTF-8",
    **dict.fromkeys(("date", "datetime", "Timestamp"), "Convert it, for example by pandas.to_datetime"),
    "Interval": "Convert it to its midpoint, for example by Series.array.mid",
    "Period": "Convert it, for example by Series.dt.to_timestamp()",
    "time": "Convert it to hours",
}
_MOST_SHOWN = 90  # characters of an error of Python, about 50 of them of the value that it quotes
_SEVERAL = "several values per row; use one column per value"


@dataclass(frozen=True, eq=False)
class CategoryKeys:
    """Numbers and strings that represent the categories of rows, or of the distinct objects in a column."""

    numbers: np.ndarray  # float64, NaN for strings and missing values
    are_strings: np.ndarray  # mask
    strings: np.ndarray  # object
    places: np.ndarray | None  # place of each row among the distinct objects; None if there is a key per row

    def missing(self) -> np.ndarray:
        return self._of_rows(np.isnan(self.numbers) & ~self.are_strings)

    def categories(self) -> Categories:
        """Sorted distinct numbers, sorted distinct strings, and True if some values are missing."""
        missing = np.isnan(self.numbers)
        return np.unique(self.numbers[~missing]), np.unique(self.strings), bool((missing & ~self.are_strings).any())

    def codes(self, known_numbers: np.ndarray, known_strings: np.ndarray, missing: bool) -> np.ndarray:
        """Return the code of each row's category; a number and a string that represents it are the same category."""
        n_numbers, n_known = known_numbers.size, known_numbers.size + known_strings.size
        unseen, are_numbers = n_known + missing, ~np.isnan(self.numbers)
        of_numbers = places_among(self.numbers, known_numbers, unseen)
        of_strings = places_among(self.strings, known_strings, unseen - n_numbers) + n_numbers
        fresh = (of_numbers == unseen) & are_numbers
        if fresh.any():
            numbers, places = numbers_of_text(known_strings)
            found = places_among(self.numbers[fresh], numbers, places.size)
            of_numbers[fresh] = np.append(n_numbers + places, unseen)[found]
        fresh = of_strings == unseen
        if known_numbers.size and fresh.any():
            numbers = np.array([number_of_text(own) for own in self.strings[fresh].tolist()])
            of_strings[fresh] = places_among(numbers, known_numbers, unseen)
        codes = np.where(are_numbers, of_numbers, n_known)
        codes[self.are_strings] = of_strings
        return self._of_rows(codes)

    def _of_rows(self, values: np.ndarray) -> np.ndarray:
        return values if self.places is None else values[self.places]


class Column:
    """A column with a name for errors.

    `by_type` is True if the dtype makes its values categories, and `is_text` if its strings can represent numbers.
    `kind` is set if its strings or objects are converted: `NUMBERS`, `DATES` or a kind of times.
    """

    def __init__(
        self, values: np.ndarray, name: str, by_type: bool = False, is_text: bool = True, kind: str = ""
    ) -> None:
        if values.dtype.kind not in "biufOUS" or values.ndim != 1:
            if values.ndim != 1:
                raise TypeError(f"{name} of X has {_SEVERAL}.")
            raise TypeError(f"{name} of X has type {values.dtype}; convert it to numbers or strings.")
        self._values, self.name, self._by_type, self._is_text, self._kind = values, name, by_type, is_text, kind
        self._are_numbers, self._zone = values.dtype.kind in "biuf", zone_in(kind)
        self._are_times = kind == DATES or is_time(kind)
        self._are_exact = self._are_numbers and not _are_large(values)

    @property
    def holds_strings(self) -> bool:
        """Return True for categorical dtypes, and for objects with strings that are not converted."""
        are_objects = self._values.dtype.kind == "O" and not self._kind
        return self._by_type or (are_objects and any(isinstance(value, str) for value in self._distinct[0]))

    @cached_property
    def _distinct(self) -> tuple[list, np.ndarray]:
        """Return the distinct objects, and the place of each row's object among them."""
        values = self._values.tolist()
        try:
            places = dict.fromkeys(values, 0)
        except TypeError:  # not hashable
            return values, np.arange(len(values))
        for place, value in enumerate(places):
            places[value] = place
        return list(places), np.fromiter(map(places.__getitem__, values), np.intp, len(values))

    def numbers(self) -> np.ndarray:
        """Return the numbers of the rows, NaN for missing values.

        Times in strings and objects are converted to days (since 1970).
        """
        if self._are_finished:
            return self._values
        distinct, places = self._distinct
        try:
            return np.array([self._number_of(value) for value in distinct])[places]
        except (TypeError, ValueError, OverflowError) as error:
            if self._are_times:
                times = "durations" if self._kind == "durations" else "dates of the form 2026-12-31"
                raise ValueError(f"{self.name} of X must contain {times}: {_short(error)}.") from None
            if any(isinstance(value, list | tuple | set | dict | np.ndarray) for value in distinct):
                raise TypeError(f"{self.name} of X has {_SEVERAL}.") from None
            kind = TypeError if isinstance(error, TypeError) else ValueError
            message = f"{self.name} of X must contain numbers, or be listed in categorical_features: {_short(error)}."
            types = {type(value).__name__ for value in distinct}
            hints = [f" {hint}." for name, hint in _CONVERSIONS.items() if name in types]
            raise kind(message + "".join(hints)) from None

    @property
    def _are_finished(self) -> bool:
        return self._are_numbers and not self._are_times

    def _number_of(self, value: RawValue) -> float:
        if is_missing(value):
            return np.nan
        if self._kind == "durations":
            return days_in(value)
        return day_of(value, self._zone) if self._are_times else float(value)

    def _key_of(self, value: RawValue) -> float | str:
        if self._are_times:
            with suppress(ValueError):
                return self._number_of(value)
        return key_of(value)

    def words(self) -> tuple[list[Finding], np.ndarray]:
        """Return values that are neither finite numbers (or dates) nor missing, and a mask of their rows."""

        def is_word(value: RawValue) -> bool:
            try:
                return bool(np.isinf(self._number_of(value)))
            except (TypeError, ValueError, OverflowError):
                return True

        if self._are_finished:
            rows = np.isinf(self._values)
            distinct = np.unique(self._values[rows]).tolist()
        else:
            distinct, places = self._distinct
            are_words = np.fromiter(map(is_word, distinct), bool, len(distinct))
            distinct, rows = compress(distinct, are_words), are_words[places]
        known = "numbers" if not self._are_times else "durations" if self._kind == "durations" else "dates"
        return Finding.among(self.name, "no numbers", rows, map(repr, distinct), known), rows

    def at(self, rows: np.ndarray) -> "Column":
        return Column(self._values[rows], self.name, kind=self._kind)

    def without(self, rows: np.ndarray) -> "Column":
        """Return the column with missing values in these rows."""
        values = self._values.astype(object)
        values[rows] = None
        return Column(values, self.name, kind=self._kind)

    def content(self) -> tuple[str, str]:
        """Return the content of strings (`content_of`), if no value is of another kind, and `guess_type` of them."""
        if not (self._is_text and self.holds_strings):
            return "", ""
        known = [value for value in self._distinct[0] if not is_missing(value)]
        strings = [value for value in known if isinstance(value, str)]
        kind = content_of(strings) if strings else ""
        return kind if kind == NUMBERS or len(strings) == len(known) else "", guess_type(strings)

    def read_as(self, kind: str) -> "Column":
        """Return the column with its strings or objects as numbers or days."""
        return Column(self._values, self.name, kind=kind)

    @cached_property
    def keys(self) -> CategoryKeys:
        if self._are_exact:
            keys = CategoryKeys(self._values.astype(np.float64), np.zeros(self._values.size, bool), NO_STRINGS, None)
        else:
            distinct, places = self._distinct
            known = [None if is_missing(value) else self._key_of(value) for value in distinct]
            keys = CategoryKeys(
                np.array([value if isinstance(value, float) else np.nan for value in known]),
                np.array([isinstance(value, str) for value in known], dtype=bool),
                np.array([value.rstrip("\0") for value in known if isinstance(value, str)], dtype=object),
                places,
            )
        if np.isinf(keys.numbers).any():
            raise ValueError(infinite_in([self.name]))
        return keys

    def strings(self) -> list[Finding]:
        """Return a finding of strings in a numeric column, or an empty list."""
        if not self.holds_strings:
            return []
        distinct, places = self._distinct
        are_strings = np.array([isinstance(value, str) for value in distinct])
        return Finding.among(
            self.name, "numbers as strings", are_strings[places], map(repr, compress(distinct, are_strings)), "numbers"
        )

    def lost(self) -> tuple[int, int]:
        """Count the different numbers of a column, and those that remain in float64; zeros if none can be lost."""
        if self._are_exact or self._are_times or self._values.dtype.kind == "f":
            return 0, 0
        numbers: list[RawValue] = [value for value in self._distinct[0] if isinstance(value, Real | Decimal)]
        large = {value for value in numbers if not is_missing(value) and EXACT < abs(value) <= sys.float_info.max}
        return len(large), len(set(map(float, large)))


def _short(error: Exception) -> str:
    """Return the text of an error, or only its start if it quotes a long value of X."""
    text = str(error)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _are_large(values: np.ndarray) -> bool:
    """Return True if some numbers exceed the range of exact integers in float64."""
    if values.dtype.itemsize < 8 or not values.size:
        return False
    ends = (float(end.reduce(values, initial=0)) for end in (np.fmin, np.fmax))
    return any(EXACT < abs(end) < np.inf for end in ends)


def infinite_in(names: list[str]) -> str:
    words = [name.removeprefix("Column ") for name in names]
    few = words if len(words) <= 4 else [*words[:4], f"{len(words) - 4} others"]
    listed = f"column {few[0]}" if len(few) == 1 else f"columns {', '.join(few[:-1])} and {few[-1]}"
    return f"{INFINITE.removesuffix('.')}; it is in {listed}. If it represents a missing value, replace it by NaN."


def places_among(values: np.ndarray, known: np.ndarray, unseen: int) -> np.ndarray:
    """Return places of values among sorted known values, or `unseen`."""
    if not known.size:
        return np.full(values.shape, unseen)
    places = np.minimum(np.searchsorted(known, values), known.size - 1)
    return np.where(known[places] == values, places, unseen)


@dataclass(frozen=True, eq=False)
class Columns:
    columns: Sequence[Column]
    times: Sequence[str]  # kind of times of each column, from `times_of`
    shape: tuple[int, int]
    matrix: np.ndarray | None = None  # X, if it is a matrix of numbers

    def without_texts(self) -> "Columns":
        """Return a table with numbers and days instead of strings that represent them, with a warning."""
        kinds = list[str]()
        for column in self.columns:
            kind, doubt = column.content()
            kinds.append(kind)
            if not kind and doubt:
                warn(f"{column.name} of X {doubt}")
            if kind:
                warn(
                    f"{column.name} of X contains {kind}, which are converted. If they are names, make the column "
                    "categorical, for example by Series.astype('category').",
                )
        columns = [column.read_as(kind) if kind else column for column, kind in zip(self.columns, kinds)]
        return replace(self, columns=columns, times=[kind or own for kind, own in zip(kinds, self.times)])


def read_table(estimator: BaseEstimator, X: RawTable, times: Sequence[str] | None = None) -> Columns:
    """Return the columns of X, with dates and durations as days; number and names are checked as in scikit-learn.

    `times` are the times of the columns in `fit`, or None in `fit`. TypeError if a column has other times.
    """
    X, reset = collected(X), times is None
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        frame = nw.from_native(X, eager_only=True)
        named, all_series = hasattr(estimator, "feature_names_in_"), list(frame.iter_columns())
        names = [f"Column {name!r}" if named else f"Column {j}" for j, name in enumerate(frame.columns)]
        known = [times_of(with_times(own)) for own in all_series] if times is None else times
        columns, shape, matrix = list(map(_frame_column, all_series, names, known)), frame.shape, None
    else:
        X = checked_rows(estimator, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False)
        if sparse.issparse(X):
            require_memory(8 * X.shape[0] * X.shape[1], f"a dense copy of X, {X.shape},", "Use fewer rows or columns.")
            X = X.toarray()
        known = [""] * X.shape[1] if times is None else times
        columns, shape = [_array_column(values, f"Column {j}", known[j]) for j, values in enumerate(X.T)], X.shape
        matrix = np.asarray(X, dtype=np.float64, order="C") if X.dtype.kind in "biuf" else None
    if reset:
        of_objects = [times_of_objects(own._distinct[0]) if own._values.dtype.kind == "O" else "" for own in columns]
        columns = [column.read_as(own) if own else column for column, own in zip(columns, of_objects)]
        known = [own or typed for own, typed in zip(of_objects, known)]
    return Columns(columns, known, shape, matrix)


def in_order(estimator: BaseEstimator, X: RawTable) -> tuple[RawTable, Findings]:
    """Return a frame with only the columns of `fit`, in order, and a finding if that changed it; other X unchanged."""
    X, names = collected(X), list(getattr(estimator, "feature_names_in_", []))
    if not (names and is_frame(X)):
        return X, Findings()
    frame = nw.from_native(X, eager_only=True)
    if frame.columns == names or not set(names) <= set(frame.columns):
        return X, Findings()
    others = [name for name in frame.columns if name not in names]
    which = few(map(repr, others)) or ("another order",)
    return frame.select(names).to_native(), Findings(
        [Finding("All columns", "other columns", len(frame), which, "not so")]
    )


def _numbers_in(series: nw.Series) -> np.ndarray:
    """Return the numbers of a series in float64, or as objects if float64 cannot represent them."""
    is_integer = series.dtype.is_integer() and series.dtype not in LONG_INTEGERS  # Arrow casts no integers above 2^53
    floats = series if is_integer or series.dtype == nw.Float64 else in_float64(series)
    values = floats.to_numpy().astype(np.float64, copy=False)
    if series.dtype.is_float() or not (_are_large(values) or series.dtype == nw.Decimal):
        return values
    if not _are_large(values) and floats.n_unique() == series.cast(nw.String).n_unique():  # old Polars: no decimals
        return values
    own = np.empty(len(series), dtype=object)
    own[:] = series.to_list()
    return own


def _array_column(values: np.ndarray, name: str, times: str) -> Column:
    column = Column(values, name)
    if times in ("dates", "durations") and values.dtype.kind in "biuf" and not column.keys.missing().all():
        raise TypeError(f"{name} of X contains no times, but contained {times} in fit.")
    return column.read_as(times) if times else column


def _frame_column(series: nw.Series, name: str, times: str) -> Column:
    typed = with_times(series) if times else series
    dtype, own = series.dtype, times_of(typed)
    if times and not own and series.is_null().all():
        return Column(np.full(len(series), np.nan), name)
    if own or (times not in ("", NUMBERS) and is_numeric(series)):
        try:
            return Column(days_of(typed, "dates" if times == DATES else times), name, by_type=typed is not series)
        except TypeError as error:
            raise TypeError(f"{name} of X {error}.") from None
    if is_numeric(series):
        return Column(_numbers_in(series), name)
    are_names = dtype in (nw.Categorical, nw.Enum)
    column = Column(values_of(series), name, by_type=are_names or dtype == nw.String, is_text=not are_names)
    return column.read_as(times) if times else column
