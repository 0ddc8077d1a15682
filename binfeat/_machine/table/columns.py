"""The columns of a raw table: their numbers, or the distinct objects in them; anything else is refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from binfeat._common.calendar import days_of, times_of
from binfeat._common.frames import collected, is_frame
from binfeat._common.memory import require_memory
from binfeat._common.validation import INFINITE, checked_rows
from binfeat._machine.table.findings import ORDER, Finding, Findings, in_words

NO_STRINGS = np.empty(0, dtype=np.str_)

RawTable = Any  # an array-like, a sparse matrix or a data frame
Categories = tuple[np.ndarray, np.ndarray, bool]  # numbers, strings, and whether missing is a category
NO_CATEGORIES: Categories = (np.empty(0), NO_STRINGS, False)


class Column:
    """A column with a name for errors; `by_type` says that its type alone makes its values categories."""

    def __init__(self, values: np.ndarray, name: str, by_type: bool = False) -> None:
        if values.dtype.kind not in "biufOUS":
            raise TypeError(f"{name} of X has type {values.dtype}; convert it to numbers or strings.")
        self._values, self.name, self._by_type = values, name, by_type
        self._are_numbers = values.dtype.kind in "biuf"

    @property
    def holds_strings(self) -> bool:
        """Whether the type says that values are categories, or, in a column of objects, some of them are strings."""
        return self._by_type or (
            self._values.dtype.kind == "O" and any(isinstance(value, str) for value in self._distinct[0])
        )

    @cached_property
    def _distinct(self) -> tuple[list, np.ndarray]:
        """The distinct objects, and for every row the place of its object among them."""
        values = self._values.tolist()
        try:
            places = dict.fromkeys(values, 0)
        except TypeError:  # not hashable
            return values, np.arange(len(values))
        for place, value in enumerate(places):
            places[value] = place
        return list(places), np.fromiter(map(places.__getitem__, values), np.intp, len(values))

    def numbers(self) -> np.ndarray:
        """Float64 values, NaN where missing."""
        if self._are_numbers:
            return self._values
        distinct, places = self._distinct
        try:
            return np.array([np.nan if _is_missing(value) else float(value) for value in distinct])[places]
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.name} of X must hold numbers, unless categorical_features has it: {error}.") from None

    @cached_property
    def _keys(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers, NaN for other values; a mask of the other values that are strings; and these strings."""
        if self._are_numbers:
            keys = self._values.astype(np.float64), np.zeros(self._values.size, dtype=bool), NO_STRINGS
        else:
            known = [None if _is_missing(value) else value for value in self._distinct[0]]
            are_numbers = [isinstance(value, Real | np.bool_) for value in known]
            strings = [value is not None and not number for value, number in zip(known, are_numbers)]
            keys = (
                np.array([float(value) if isinstance(value, Real | np.bool_) else np.nan for value in known]),
                np.array(strings, dtype=bool),
                np.array([str(value) for value, string in zip(known, strings) if string], dtype=np.str_),
            )
        if np.isinf(keys[0]).any():
            raise ValueError(INFINITE)
        return keys

    def strings(self) -> tuple[int, tuple[str, ...]]:
        """The number of rows that hold strings, and some of these."""
        distinct, places = self._distinct
        are_strings = np.array([isinstance(value, str) for value in distinct])
        return int(are_strings[places].sum()), in_words(map(repr, compress(distinct, are_strings)))

    def missing(self) -> np.ndarray:
        """Mask of the rows without a category."""
        values, are_strings, _ = self._keys
        missing = np.isnan(values) & ~are_strings
        return missing if self._are_numbers else missing[self._distinct[1]]

    def categories(self) -> Categories:
        """The distinct numbers, sorted, the distinct strings, sorted, and whether some values are missing."""
        values, are_strings, strings = self._keys
        missing = np.isnan(values)
        return np.unique(values[~missing]), np.unique(strings), bool((missing & ~are_strings).any())

    def codes(self, known_numbers: np.ndarray, known_strings: np.ndarray, missing: bool) -> np.ndarray:
        """The code of every row's category."""
        values, are_strings, strings = self._keys
        n_known = known_numbers.size + known_strings.size
        unseen = n_known + missing
        codes = np.where(np.isnan(values), n_known, _places(values, known_numbers, unseen))
        codes[are_strings] = _places(strings, known_strings, unseen - known_numbers.size) + known_numbers.size
        return codes if self._are_numbers else codes[self._distinct[1]]


def _places(values: np.ndarray, known: np.ndarray, unseen: int) -> np.ndarray:
    """Places of values among sorted known values, or `unseen`."""
    if not known.size:
        return np.full(values.shape, unseen)
    places = np.minimum(np.searchsorted(known, values), known.size - 1)
    return np.where(known[places] == values, places, unseen)


def _is_missing(value: object) -> bool:
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # pandas'


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of X."""

    columns: Sequence[Column]
    times: Sequence[str]  # of every column, as `times_of` has it
    shape: tuple[int, int]
    matrix: np.ndarray | None = None  # X, if it is a matrix of numbers


def read_table(estimator: BaseEstimator, X: RawTable, times: Sequence[str] | None = None) -> Table:
    """The columns of X, with dates and durations as days; their number and names are checked as scikit-learn does.

    `times` are the times of the columns in `fit`, None in `fit` itself. TypeError if a column has other times.
    """
    X, reset = collected(X), times is None
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        frame = nw.from_native(X, eager_only=True)
        named, all_series = hasattr(estimator, "feature_names_in_"), list(frame.iter_columns())
        names = [f"Column {name!r}" if named else f"Column {j}" for j, name in enumerate(frame.columns)]
        times = [times_of(series.dtype) for series in all_series] if times is None else times
        return Table(list(map(_frame_column, all_series, names, times)), times, frame.shape)
    X = checked_rows(estimator, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if sparse.issparse(X):
        require_memory(8 * X.shape[0] * X.shape[1], f"a dense copy of X, {X.shape},", "Use fewer rows or columns.")
        X = X.toarray()
    columns = [Column(values, f"Column {j}") for j, values in enumerate(X.T)]
    times = [""] * len(columns) if times is None else times
    for column, known in zip(columns, times):
        if known:
            raise TypeError(f"{column.name} of X has no times, and had {known} in fit.")
    matrix = np.asarray(X, dtype=np.float64, order="C") if X.dtype.kind in "biuf" else None
    return Table(columns, times, X.shape, matrix)


def in_order(estimator: BaseEstimator, X: RawTable) -> tuple[RawTable, Findings]:
    """A data frame with the columns of `fit` alone and in their order, and whether it had others; else X as it is."""
    X, names = collected(X), list(getattr(estimator, "feature_names_in_", []))
    if not (names and is_frame(X)):
        return X, Findings()
    frame = nw.from_native(X, eager_only=True)
    if frame.columns == names or not set(names) <= set(frame.columns):
        return X, Findings()
    others = [name for name in frame.columns if name not in names]
    which = in_words(map(repr, others)) or ("another order",)
    return frame.select(names).to_native(), Findings.of(0, [Finding("All columns", ORDER, len(frame), which, "not so")])


def _frame_column(series: nw.Series, name: str, times: str) -> Column:
    dtype = series.dtype
    if times or times_of(dtype):
        try:
            return Column(days_of(series, times), name)
        except TypeError as error:
            raise TypeError(f"{name} of X {error}.") from None
    if dtype.is_numeric() or dtype == nw.Boolean:
        return Column(series.cast(nw.Float64).to_numpy(), name)
    values, missing = series.to_numpy(), series.is_null().to_numpy()
    if missing.any():
        values = values.astype(object)
        values[missing] = None  # NumPy's values there differ, and for Arrow dictionaries are another row's
    return Column(values, name, by_type=dtype in (nw.Categorical, nw.Enum, nw.String))
