"""Which numbers are codes, as of people, districts or plans: neighbours among them are as unlike as any two."""

import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from binfeat._common.subsets import evenly_spaced

_ROWS = 2**16  # evenly spaced rows that tell
_MOST_COLUMNS = 256  # of numbers; with more, as of counts of words, none is looked at
_FEWEST = 8  # codes
_ROWS_OF_A_CODE = 1.5  # in the mean, at least
_SURE = 4.0  # standard errors
_SHARE = 0.5  # of what codes tell, that neighbours differ by


def columns_of_codes(matrix: np.ndarray, numbers: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Columns of numbers that come again, of which the targets Y, (n_rows, n_targets), know no order.

    Where an order counts, mean targets of neighbouring numbers are nearly equal. Their mean squared difference, beside
    that of chance, is von Neumann's (1941): here it has to be half of what numbers that are shuffled would have.
    """
    some, columns = evenly_spaced(len(matrix), _ROWS), np.flatnonzero(numbers)
    if columns.size > _MOST_COLUMNS:
        return columns[:0]
    columns = columns[[_come_again(matrix[some, j]) for j in columns]]
    if not columns.size:
        return columns
    scores = np.column_stack([ndtri((rankdata(column) - 0.5) / some.size) for column in Y[some].T])
    scores -= scores.mean(axis=0)
    return columns[[_are_codes(matrix[some, j], scores) for j in columns]]


def _come_again(values: np.ndarray) -> bool:
    n_codes = 1 + np.count_nonzero(np.diff(np.sort(values)))
    return bool(_FEWEST <= n_codes <= values.size / _ROWS_OF_A_CODE)


def _are_codes(values: np.ndarray, scores: np.ndarray) -> bool:
    """Whether means of centred scores jump from number to number; by mean squares, a degree of freedom each."""
    codes, counts = np.unique(values, return_inverse=True, return_counts=True)[1:]
    n_codes, n_rows = counts.size, values.size
    means = np.array([np.bincount(codes, column) for column in scores.T]) / counts
    told = float((counts * means**2).sum())
    chance = max(0.0, float((scores**2).sum()) - told) / (n_rows - n_codes)
    jumps = float((np.diff(means) ** 2 / (1 / counts[1:] + 1 / counts[:-1])).sum()) / (n_codes - 1)
    least = max(_SURE * math.sqrt(2 / n_codes) * chance, _SHARE * (told / (n_codes - 1) - chance))
    return jumps - chance > least
