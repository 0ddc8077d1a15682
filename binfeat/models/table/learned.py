"""What an encoder learns of a table: categories, medians, ranges, and what repeats in dates."""

from itertools import compress

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from binfeat._common.calendar import parts_in
from binfeat._common.subsets import every_nth
from binfeat._common.validation import check_categorical, is_word
from binfeat._common.warned import warn
from binfeat.models.table.columns import NO_CATEGORIES, Categories, Column, Columns

_ID_ROWS, _ID_SHARE = 50, 0.9  # with so many rows, and a larger share of different values, categories are ids
_MEDIAN_ROWS = 2**14  # evenly spaced rows whose median is taken; the median of 400,000 x 54 would take 0.4 s
_MEDIAN_VALUES = 2**18  # that are read at a time, and stay in a cache


def ranges_of(matrix: np.ndarray) -> dict[str, np.ndarray]:
    """The least and the largest number of each column, beside NaN."""
    return {"lows": np.fmin.reduce(matrix, initial=np.inf), "highs": np.fmax.reduce(matrix, initial=-np.inf)}


def chosen_in(estimator: BaseEstimator, table: Columns, categorical_features: ArrayLike | None) -> np.ndarray:
    """Mask of the categorical columns."""
    if is_word(categorical_features, "from_dtype"):
        return np.array([column.holds_strings for column in table.columns], dtype=bool)
    return check_categorical(categorical_features, estimator)


def doubt_digits(table: Columns, chosen: np.ndarray) -> None:
    """Warn of columns that are not chosen as categories, and whose numbers are not all different in float64."""
    for column in compress(table.columns, ~chosen):
        n_numbers, n_left = column.lost()
        if n_left < n_numbers:
            warn(
                f"{column.name} of X has {n_numbers:,} different numbers beyond 2^53, of which float64 keeps "
                f"{n_left:,} apart. If they are names, make the column categorical, as Series.astype('category') does; "
                "otherwise subtract a constant."
            )


def categories_in(table: Columns, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """The encoder's arrays of categories, of the chosen columns."""
    n_rows, columns = table.shape[0], zip(table.columns, chosen)
    categories = [_repeated(column, n_rows) if is_chosen else NO_CATEGORIES for column, is_chosen in columns]
    numbers, strings, missing = zip(NO_CATEGORIES, *categories)
    return {
        "numbers": np.concatenate(numbers),
        "number_starts": np.cumsum([part.size for part in numbers]),
        "strings": np.concatenate(strings),
        "string_starts": np.cumsum([part.size for part in strings]),
        "missing": np.array(missing[1:], dtype=bool),
    }


def _repeated(column: Column, n_rows: int) -> Categories:
    """The categories of a column; no categories, with a warning, if nearly every row has its own category."""
    numbers, strings, missing = column.categories()
    n_levels = numbers.size + strings.size
    if n_rows < _ID_ROWS or n_levels <= _ID_SHARE * n_rows:
        return numbers, strings, missing
    warn(
        f"{column.name} of X has a different value in nearly every row, {n_levels:,} in {n_rows:,} rows, which says "
        "nothing of other rows; it is an input of one level. Leave it out, or make numbers or fewer categories of it.",
    )
    return NO_CATEGORIES


def parts_of_dates(matrix: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Names of the parts of the calendar in columns of dates, and their columns."""
    dated = np.flatnonzero(np.char.startswith(times, "dates"))
    parts = [(name, j) for j in dated for name in parts_in(matrix[:, j])]
    names, columns = zip(*parts) if parts else ((), ())
    return np.array(names, dtype=np.str_), np.array(columns, dtype=np.int64)


def medians_of(matrix: np.ndarray, gaps: np.ndarray, n_gaps: np.ndarray) -> np.ndarray:
    """Medians of the values that are not missing, 0 of a column in which all are."""
    medians, some, whole = np.zeros(len(n_gaps)), every_nth(matrix, _MEDIAN_ROWS), np.flatnonzero(n_gaps == 0)
    for columns in np.array_split(whole, 1 + whole.size * len(some) // _MEDIAN_VALUES):
        medians[columns] = np.median(np.ascontiguousarray(some[:, columns].T), axis=1, overwrite_input=True)
    for j in np.flatnonzero((n_gaps > 0) & (n_gaps < len(matrix))):
        medians[j] = np.median(every_nth(matrix[~gaps[:, j], j], _MEDIAN_ROWS))
    return medians
