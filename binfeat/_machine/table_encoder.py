"""A raw table's columns as numbers: missing values, categories, frames of every kind."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from binfeat._common.memory import require_memory
from binfeat._common.persistence import ArrayRecord
from binfeat._common.validation import INFINITE, check_categorical, check_moderate, checked_array, checked_rows

_MEDIAN_ROWS = 2**14  # evenly spaced rows that a median is taken of; all of 400,000 x 54 would cost 0.4 s


@dataclass(frozen=True, eq=False)
class TableEncoder(ArrayRecord):
    """A raw table's columns as numbers: what is learned in `fit`, applied in `transform`.

    The raw columns come first, in their order: numbers as they are with the median in place of NaN, categories as
    codes. Behind them stands a column of 0 and 1 for each column of numbers with some NaN in `fit`, which says
    where.

    Codes count the categories seen in `fit`: numbers in rising order, then strings, then missing if it was seen.
    The next code stands for whatever was not seen. 1, 1.0 and True are one category; other objects are the
    string that they print as.
    """

    categorical: np.ndarray  # whether each column inside is, (n_inputs_inside,)
    source: np.ndarray  # the raw column that each comes from
    medians: np.ndarray  # what replaces NaN, (n_inputs,); 0 for a column with nothing else, and for categories
    numbers: np.ndarray  # categories that are numbers
    number_starts: np.ndarray  # where each column's begin, (n_inputs + 1,)
    strings: np.ndarray  # categories that are strings
    string_starts: np.ndarray
    missing: np.ndarray  # whether missing is a category of the column

    @classmethod
    def fit(cls, estimator, X, categorical_features):
        """Learn from a table, and set `n_features_in_` and `feature_names_in_` of the estimator.

        Parameters
        ----------
        estimator : estimator
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_inputs)
        categorical_features : "from_dtype", None, or array-like of bool, int or str
            As in `HistGradientBoostingClassifier`; "from_dtype" also takes columns of strings, and of objects
            some of which are strings.

        Returns
        -------
        encoder : TableEncoder
        matrix : ndarray of float64 of shape (n_rows, n_inputs_inside)
            Might be X itself.

        Raises
        ------
        TypeError, ValueError
            If a column has infinite or enormous values, or other things than numbers without being categorical.
        MemoryError
            If a sparse X does not fit in memory when dense.
        """
        table = _read(estimator, X, reset=True)
        if isinstance(categorical_features, str) and categorical_features == "from_dtype":
            chosen = np.array([column.holds_strings for column in table], dtype=bool)
        else:
            chosen = check_categorical(categorical_features, estimator)
        found = [column.categories() if is_chosen else _NO_CATEGORIES for column, is_chosen in zip(table, chosen)]
        own_numbers, own_strings, missing = zip(*found) if found else ((), (), ())
        categories = {
            "numbers": np.concatenate([_NO_NUMBERS, *own_numbers]),
            "number_starts": _starts(own_numbers),
            "strings": np.concatenate([_NO_STRINGS, *own_strings]),
            "string_starts": _starts(own_strings),
            "missing": np.array(missing, dtype=bool),
        }
        bare = cls(chosen, np.arange(chosen.size), np.zeros(chosen.size), **categories)
        matrix = bare._numbers_of(table, estimator)
        gaps = np.isnan(matrix)
        n_gaps = np.count_nonzero(gaps, axis=0)
        medians = np.array([_median(*both) for both in zip(matrix.T, gaps.T, n_gaps)])
        flagged = np.flatnonzero((n_gaps > 0) & (n_gaps < len(matrix)))
        encoder = cls(
            np.append(chosen, np.zeros(flagged.size, dtype=bool)),
            np.append(np.arange(chosen.size), flagged),
            medians,
            **categories,
        )
        matrix = encoder._complete(matrix, gaps)
        check_moderate(matrix, "X")
        return encoder, matrix

    def transform(self, estimator, X):
        """The numbers of a table with the same columns, C-contiguous, writeable, without NaN; might be X itself.

        TypeError or ValueError if columns are others than in `fit`, or hold infinity or what is neither a number nor
        of a categorical column.
        """
        if self._needs_no_check(estimator, X):
            matrix = np.asarray(X, dtype=np.float64, order="C")
        else:
            matrix = self._numbers_of(_read(estimator, X, reset=False), estimator)
        return self._complete(matrix, np.isnan(matrix))

    @cached_property
    def _any_categorical(self):
        return bool(self.categorical.any())

    def _needs_no_check(self, estimator, X):
        """Whether scikit-learn's checks, which take longer than a prediction, could only leave X as it is."""
        return (
            type(X) is np.ndarray
            and X.dtype.char in "df"
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.medians.size
            and not self._any_categorical
            and not hasattr(estimator, "feature_names_in_")
            and not np.isinf(X).any()
        )

    def _numbers_of(self, table, estimator):
        """Numbers and codes, still with NaN, finite otherwise."""
        matrix = table.matrix
        if matrix is None or self._any_categorical:
            matrix = np.empty(table.shape) if matrix is None else matrix.copy()
            for j, column in enumerate(table):
                if self.categorical[j]:
                    matrix[:, j] = column.codes(*self._categories_of(j))
                elif table.matrix is None:
                    matrix[:, j] = column.numbers()
        return checked_array(matrix, ensure_all_finite="allow-nan", input_name="X", estimator=estimator)

    def _categories_of(self, j):
        own_numbers = self.numbers[self.number_starts[j] : self.number_starts[j + 1]]
        own_strings = self.strings[self.string_starts[j] : self.string_starts[j + 1]]
        return own_numbers, own_strings, self.missing[j]

    def _complete(self, matrix, gaps):
        """Fill the gaps, and add the columns that say where they were."""
        n_inputs = self.medians.size
        if self.source.size == n_inputs and not gaps.any():
            return matrix if matrix.flags.carray else matrix.copy()
        out = np.empty((matrix.shape[0], self.source.size))
        out[:, :n_inputs] = matrix
        np.copyto(out[:, :n_inputs], self.medians, where=gaps)
        out[:, n_inputs:] = gaps[:, self.source[n_inputs:]]
        return out


_NO_NUMBERS, _NO_STRINGS = np.empty(0), np.empty(0, dtype=np.str_)
_NO_CATEGORIES = _NO_NUMBERS, _NO_STRINGS, False


class _Table:
    """The columns of X: read one by one, or from a matrix of numbers."""

    def __init__(self, columns, shape, matrix=None):
        self._columns, self.shape, self.matrix = columns, shape, matrix

    def __iter__(self):
        return iter(self._columns)


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

    def __init__(self, values, name, by_type=False):
        if values.dtype.kind not in "biufOUS":
            raise TypeError(f"{name} of X has type {values.dtype}; convert it to numbers or strings.")
        self._values, self._name, self._by_type = values, name, by_type
        self._are_numbers = values.dtype.kind in "biuf"

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
            raise kind(f"{self._name} of X must hold numbers, unless categorical_features has it: {error}.") from None

    @cached_property
    def _keys(self):
        """Numbers, NaN for what is none; which of them are strings instead; and those strings."""
        if self._are_numbers:
            keys = self._values.astype(np.float64), np.zeros(self._values.size, dtype=bool), _NO_STRINGS
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


def _starts(parts):
    return np.cumsum([0, *(part.size for part in parts)])


def _median(values, gaps, n_gaps):
    """Median of what is there, 0 if nothing is."""
    there = values[~gaps] if n_gaps else values
    return np.median(there[:: -(-there.size // _MEDIAN_ROWS)]) if there.size else 0.0


def _read(estimator, X, reset):
    """The columns of X, their number and names checked as scikit-learn does."""
    if nw.dependencies.is_into_dataframe(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        frame = nw.from_native(X, eager_only=True)
        named = hasattr(estimator, "feature_names_in_")
        names = [f"Column {name!r}" if named else f"Column {j}" for j, name in enumerate(frame.columns)]
        return _Table([_frame_column(*both) for both in zip(frame.iter_columns(), names)], frame.shape)
    X = checked_rows(estimator, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if sparse.issparse(X):
        require_memory(8 * X.shape[0] * X.shape[1], f"a dense copy of X, {X.shape},", "Use fewer rows or columns.")
        X = X.toarray()
    columns = [_Column(values, f"Column {j}") for j, values in enumerate(X.T)]
    matrix = np.asarray(X, dtype=np.float64, order="C") if X.dtype.kind in "biuf" else None
    return _Table(columns, X.shape, matrix)


def _frame_column(series, name):
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return _Column(series.cast(nw.Float64).to_numpy(), name)
    values, missing = series.to_numpy(), series.is_null().to_numpy()
    if missing.any() and values.dtype.kind not in "mM":
        values = values.astype(object)
        values[missing] = None  # what NumPy has there differs, and for Arrow dictionaries is another row's
    return _Column(values, name, by_type=dtype in (nw.Categorical, nw.Enum, nw.String))
