"""A raw table's columns as numbers: missing values, categories, frames of every kind."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from binfeat._common.calendar import part_of, parts_in
from binfeat._common.persistence import ArrayRecord
from binfeat._common.validation import callers_level, check_categorical, check_moderate, checked_array
from binfeat._machine.table.columns import NO_CATEGORIES, NO_NUMBERS, NO_STRINGS, read_table

_ID_ROWS, _ID_SHARE = 50, 0.9  # from how many rows on, and above what share of different values, categories are ids
_MEDIAN_ROWS = 2**14  # evenly spaced rows that a median is taken of; all of 400,000 x 54 would cost 0.4 s


@dataclass(frozen=True, eq=False)
class TableEncoder(ArrayRecord):
    """A raw table's columns as numbers: what is learned in `fit`, applied in `transform`.

    The raw columns come first, in their order: numbers as they are with the median in place of NaN, categories as
    codes, dates and durations as days. Behind them stand the parts of the calendar that come back within a column of
    dates, and then a column of 0 and 1 for each column of numbers with some NaN in `fit`, which says where.

    Codes count the categories seen in `fit`: numbers in rising order, then strings, then missing if it was seen.
    The next code stands for whatever was not seen. 1, 1.0 and True are one category; other objects are the
    string that they print as. If nearly every row has a category of its own, all are one.
    """

    categorical: np.ndarray  # whether each column inside is, (n_inputs_inside,)
    source: np.ndarray  # the raw column that each comes from
    medians: np.ndarray  # what replaces NaN, (n_inputs,); 0 for a column with nothing else, and for categories
    numbers: np.ndarray  # categories that are numbers
    number_starts: np.ndarray  # where each column's begin, (n_inputs + 1,)
    strings: np.ndarray  # categories that are strings
    string_starts: np.ndarray
    missing: np.ndarray  # whether missing is a category of the column
    times: np.ndarray  # what times each column holds, as `times_of` has it, (n_inputs,)
    parts: np.ndarray  # names of the parts of the calendar

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
        table = read_table(estimator, X, reset=True)
        times = np.array(table.times, dtype=np.str_)
        table = table.in_days(times)
        chosen = _chosen(estimator, table, categorical_features)
        learned = {**_categories(table, chosen), "times": times}
        bare = cls(chosen, np.arange(chosen.size), np.zeros(chosen.size), **learned, parts=NO_STRINGS)
        matrix = bare._numbers_of(table, estimator)
        gaps = np.isnan(matrix)
        n_gaps = np.count_nonzero(gaps, axis=0)
        medians = np.array([_median(*both) for both in zip(matrix.T, gaps.T, n_gaps)])
        parts, dated = _parts(matrix, np.where(chosen, "", times))
        flagged = np.flatnonzero((n_gaps > 0) & (n_gaps < len(matrix)))
        source = np.concatenate([np.arange(chosen.size), dated, flagged])
        encoder = cls(
            np.append(chosen, np.zeros(source.size - chosen.size, dtype=bool)), source, medians, **learned, parts=parts
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
            matrix = self._numbers_of(read_table(estimator, X, reset=False).in_days(self.times), estimator)
        return self._complete(matrix, np.isnan(matrix))

    def unseen(self, estimator, X):
        """Pairs of a column, in words, and the categories in it that `fit` has not seen, for columns that have some."""
        for j, column in enumerate(read_table(estimator, X, reset=False)):
            numbers, strings, _ = self._categories_of(j)
            if numbers.size + strings.size:  # it is categorical, and no id
                own_numbers, own_strings, _ = column.categories()
                fresh = [*np.setdiff1d(own_numbers, numbers).tolist(), *np.setdiff1d(own_strings, strings).tolist()]
                if fresh:
                    yield column.name, fresh

    def level(self, j, code):
        """The category of a code in words."""
        numbers, strings, _ = self._categories_of(j)
        known = [*(f"{number:g}" for number in numbers), *strings.tolist()]
        return known[code] if code < len(known) else "missing" if self.missing[j] and code == len(known) else "unknown"

    def parts_of(self, j):
        """Places of the parts of the calendar that come from a raw column, and their names."""
        first = self.medians.size
        return [(first + k, name) for k, name in enumerate(self.parts.tolist()) if self.source[first + k] == j]

    def with_value(self, matrix, place, value):
        """Encoded rows, all of which have a value, or a code, in a column, and no gap there; a copy."""
        out, first_flag = matrix.copy(), self.medians.size + self.parts.size
        out[:, first_flag:][:, self.source[first_flag:] == self.source[place]] = 0.0
        out[:, place] = value
        return out

    @cached_property
    def _any_categorical(self):
        return bool(self.categorical.any())

    @cached_property
    def _all_numbers(self):
        return not self._any_categorical and not (self.times != "").any()

    def _needs_no_check(self, estimator, X):
        """Whether scikit-learn's checks, which take longer than a prediction, could only leave X as it is."""
        return (
            type(X) is np.ndarray
            and X.dtype.char in "df"
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.medians.size
            and self._all_numbers
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
        """Fill the gaps, and add parts of dates and the columns that say where gaps were."""
        n_inputs = self.medians.size
        if self.source.size == n_inputs and not gaps.any():
            return matrix if matrix.flags.carray else matrix.copy()
        out = np.empty((matrix.shape[0], self.source.size))
        out[:, :n_inputs] = matrix
        np.copyto(out[:, :n_inputs], self.medians, where=gaps)
        first_flag = n_inputs + self.parts.size
        for place, name in enumerate(self.parts, n_inputs):
            out[:, place] = part_of(out[:, self.source[place]], name)
        out[:, first_flag:] = gaps[:, self.source[first_flag:]]
        return out


def _chosen(estimator, table, categorical_features):
    """Mask of the columns that are categories."""
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        return np.array([column.holds_strings for column in table], dtype=bool)
    return check_categorical(categorical_features, estimator)


def _categories(table, chosen):
    """The encoder's arrays of categories, of the chosen columns."""
    n_rows = table.shape[0]
    found = [_repeated(column, n_rows) if is_chosen else NO_CATEGORIES for column, is_chosen in zip(table, chosen)]
    numbers, strings, missing = zip(*found) if found else ((), (), ())
    return {
        "numbers": np.concatenate([NO_NUMBERS, *numbers]),
        "number_starts": _starts(numbers),
        "strings": np.concatenate([NO_STRINGS, *strings]),
        "string_starts": _starts(strings),
        "missing": np.array(missing, dtype=bool),
    }


def _repeated(column, n_rows):
    """The categories of a column, or none, with a warning, if nearly every row has its own: then all are one level."""
    numbers, strings, missing = column.categories()
    n_levels = numbers.size + strings.size
    if n_rows < _ID_ROWS or n_levels <= _ID_SHARE * n_rows:
        return numbers, strings, missing
    warnings.warn(
        f"{column.name} of X has a different value in nearly every row, {n_levels:,} in {n_rows:,} rows, which says "
        "nothing of other rows; it is an input of one level. Leave it out, or make numbers or fewer categories of it.",
        UserWarning,
        stacklevel=callers_level(),
    )
    return NO_CATEGORIES


def _parts(matrix, times):
    """Names of the parts of the calendar in columns of dates, and the column of each."""
    dated = np.flatnonzero(np.char.startswith(times, "dates"))
    found = [(name, j) for j in dated for name in parts_in(matrix[:, j])]
    names, columns = zip(*found) if found else ((), ())
    return np.array(names, dtype=np.str_), np.array(columns, dtype=np.int64)


def _starts(parts):
    return np.cumsum([0, *(part.size for part in parts)])


def _median(values, gaps, n_gaps):
    """Median of what is there, 0 if nothing is."""
    there = values[~gaps] if n_gaps else values
    return np.median(there[:: -(-there.size // _MEDIAN_ROWS)]) if there.size else 0.0
