"""Length scales of the inputs from a sample of the rows."""

from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.random_words import round_significant
from binfeat._common.validation import CheckedRows, check_gamma, is_word

_SIGNIFICANT = 24  # bits kept, so that bins do not depend on the order of summation


def unit_gamma(gamma: Any, rows: CheckedRows, categorical: np.ndarray) -> np.ndarray:
    """One over the number of inputs times the standard deviation of each input; or `gamma` if it is numbers.

    A categorical or constant input has a standard deviation of 1, and constant inputs are not counted.
    """
    if not is_word(gamma, "scale"):
        return check_gamma(gamma, rows.shape[1], words=("scale",))
    std = np.array([_std(_column(rows, j)) for j in range(rows.shape[1])])
    n_inputs = max(1, np.count_nonzero(std))
    std[categorical | (std == 0)] = 1.0
    return 1.0 / (n_inputs * round_significant(std, _SIGNIFICANT))


def _column(rows: CheckedRows, j: int) -> np.ndarray:
    return rows[:, [j]].toarray()[:, 0] if sparse.issparse(rows) else np.ascontiguousarray(rows[:, j])


def _std(values: np.ndarray) -> float:
    """Standard deviation without missing values; 0 where all values are equal."""
    values = values[~np.isnan(values)]
    largest = np.abs(values).max(initial=0.0)
    if values.size == 0 or values.min() == values.max():
        return 0.0
    return max(float(np.std(values / largest)) * largest, float(np.finfo(np.float64).tiny))
