"""The columns of a raw table: numbers, the distinct objects in them, and what is no table."""

from functools import cached_property
from numbers import Real

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from binfeat._common.calendar import days_of, times_of
from binfeat._common.frames import collected, is_frame
from binfeat._common.memory import require_memory
from binfeat._common.validation import INFINITE, checked_rows

NO_NUMBERS, NO_STRINGS = np.empty(0), np.empty(0, dtype=np.str_)
NO_CATEGORIES = NO_NUMBERS, NO_STRINGS, False


class Table:
    """The columns of X: read one by one, or from a matrix of numbers."""

    def __init__(self, columns, shape, matrix=None):
        self._columns, self.shape, self.matrix = columns, shape, matrix

    def __iter__(self):
        return iter(self._columns)

    @property
    def times(self):
        """What times each column holds, as `times_of` has it."""
        return [column.times for column in self]

    def in_days(self, times):
        """The same with these times as numbers of days; TypeError if a column holds others."""
        return Table([column.in_days(own) for column, own in zip(self, times)], self.shape, self.matrix)


class _TimeColumn:
    """A column of dates or durations, which are yet to become numbers."""

    def __init__(self, series, name):
        self._series, self.name, self.times = series, name, times_of(series.dtype)

    def in_days(self, times):
        try:
            return _Column(days_of(self._series, times), self.name)
        except TypeError as error:
            raise TypeError(f"{self.name} of X {error}.") from None


class _Column:
    """One column: an array of numbers, or the distinct objects in it and where they stand.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
    name : str
        For errors.
    by_type : bool
        Whether the column's type alone says that it holds categories.
    """

    times = ""

    def __init__(self, values, name, by_type=False):
        if values.dtype.kind not in "biufOUS":
            raise TypeError(f"{name} of X has type {values.dtype}; convert it to numbers or strings.")
        self._values, self.name, self._by_type = values, name, by_type
        self._are_numbers = values.dtype.kind in "biuf"

    def in_days(self, times):
        if times:
            raise TypeError(f"{self.name} of X has no times, and had {times} in fit.")
        return self

    @property
    def holds_strings(self):
        """Whether it holds categories by its type, or, if it may hold anything, some strings."""
        return self._by_type or (
            self._values.dtype.kind == "O" and any(isinstance(value, str) for value in self._distinct[0])
        )

    @cached_property
    def _distinct(self):
        """The objects, and the number of each row's among them."""
        values = self._values.tolist()
        try:
            places = dict.fromkeys(values)
        except TypeError:  # not hashable
            return values, np.arange(len(values))
        for place, value in enumerate(places):
            places[value] = place
        return list(places), np.fromiter(map(places.__getitem__, values), np.intp, len(values))

    def numbers(self):
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
    def _keys(self):
        """Numbers, NaN for what is none; which of them are strings instead; and those strings."""
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

    def categories(self):
        """Its distinct numbers and strings, each sorted, and whether some values are missing."""
        values, are_strings, strings = self._keys
        missing = np.isnan(values)
        return np.unique(values[~missing]), np.unique(strings), bool((missing & ~are_strings).any())

    def codes(self, known_numbers, known_strings, missing):
        """The code of each row's category."""
        values, are_strings, strings = self._keys
        n_known = known_numbers.size + known_strings.size
        unseen = n_known + missing
        codes = np.where(np.isnan(values), n_known, _places(values, known_numbers, unseen))
        codes[are_strings] = _places(strings, known_strings, unseen - known_numbers.size) + known_numbers.size
        return codes if self._are_numbers else codes[self._distinct[1]]


def _places(values, known, unseen):
    """Where each value stands among sorted known ones, or `unseen`."""
    if not known.size:
        return np.full(values.shape, unseen)
    places = np.minimum(np.searchsorted(known, values), known.size - 1)
    return np.where(known[places] == values, places, unseen)


def _is_missing(value):
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # pandas'


def read_table(estimator, X, reset):
    """The columns of X, a `Table`; their number and names are checked as scikit-learn does."""
    X = collected(X)
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        frame = nw.from_native(X, eager_only=True)
        named = hasattr(estimator, "feature_names_in_")
        names = [f"Column {name!r}" if named else f"Column {j}" for j, name in enumerate(frame.columns)]
        return Table([_frame_column(*both) for both in zip(frame.iter_columns(), names)], frame.shape)
    X = checked_rows(estimator, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if sparse.issparse(X):
        require_memory(8 * X.shape[0] * X.shape[1], f"a dense copy of X, {X.shape},", "Use fewer rows or columns.")
        X = X.toarray()
    columns = [_Column(values, f"Column {j}") for j, values in enumerate(X.T)]
    matrix = np.asarray(X, dtype=np.float64, order="C") if X.dtype.kind in "biuf" else None
    return Table(columns, X.shape, matrix)


def _frame_column(series, name):
    dtype = series.dtype
    if times_of(dtype):
        return _TimeColumn(series, name)
    if dtype.is_numeric() or dtype == nw.Boolean:
        return _Column(series.cast(nw.Float64).to_numpy(), name)
    values, missing = series.to_numpy(), series.is_null().to_numpy()
    if missing.any():
        values = values.astype(object)
        values[missing] = None  # what NumPy has there differs, and for Arrow dictionaries is another row's
    return _Column(values, name, by_type=dtype in (nw.Categorical, nw.Enum, nw.String))
