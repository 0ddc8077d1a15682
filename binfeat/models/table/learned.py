"""Facts that an encoder learns from a table: categories, medians and ranges."""

from itertools import compress

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.subsets import every_nth
from binfeat._common.validation import check_categorical, is_word
from binfeat._common.warned import warn
from binfeat.models.table.columns import NO_CATEGORIES, Categories, Column, Columns

_ID_ROWS, _ID_SHARE = 50, 0.9  # with this many rows and a larger share of different values, categories are ids
_MEDIAN_ROWS = 2**14  # evenly spaced rows for the median, which would take 0.4 s for 400,000 x 54
_MEDIAN_VALUES = 2**18  # that are read at a time, and stay in a cache


def ranges_of(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return minimum and maximum of each column, ignoring NaN."""
    return np.fmin.reduce(matrix, initial=np.inf), np.fmax.reduce(matrix, initial=-np.inf)


def chosen_in(estimator: BaseEstimator, table: Columns, categorical_features: ArrayLike | None) -> np.ndarray:
    """Mask of the categorical columns."""
    if is_word(categorical_features, "from_dtype"):
        return np.array([column.holds_strings for column in table.columns], dtype=bool)
    return check_categorical(categorical_features, estimator)


def doubt_digits(table: Columns, chosen: np.ndarray) -> None:
    """Warn about numeric columns with numbers that are equal in float64 only."""
    for column in compress(table.columns, ~chosen):
        n_numbers, n_left = column.lost()
        if n_left < n_numbers:
            warn(
                f"{column.name} of X has {n_numbers:,} different numbers beyond 2^53, but only {n_left:,} of them "
                "differ in float64. If they are names, make the column categorical, for example by "
                "Series.astype('category'). Otherwise subtract a constant."
            )


def categories_in(table: Columns, chosen: np.ndarray) -> list[Categories]:
    """The categories of each column, none of those that are not chosen."""
    n_rows, columns = table.shape[0], zip(table.columns, chosen)
    return [_repeated(column, n_rows) if is_chosen else NO_CATEGORIES for column, is_chosen in columns]


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


def medians_of(matrix: np.ndarray) -> np.ndarray:
    """Medians of the values that are not NaN, 0 of a column in which all are."""
    gaps = np.isnan(matrix)
    n_gaps = np.count_nonzero(gaps, axis=0)
    medians, some, whole = np.zeros(len(n_gaps)), every_nth(matrix, _MEDIAN_ROWS), np.flatnonzero(n_gaps == 0)
    for columns in np.array_split(whole, 1 + whole.size * len(some) // _MEDIAN_VALUES):
        medians[columns] = np.median(np.ascontiguousarray(some[:, columns].T), axis=1, overwrite_input=True)
    for j in np.flatnonzero((n_gaps > 0) & (n_gaps < len(matrix))):
        medians[j] = np.median(every_nth(matrix[~gaps[:, j], j], _MEDIAN_ROWS))
    return medians
