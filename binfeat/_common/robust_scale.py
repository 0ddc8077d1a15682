"""The centre and the spread of columns that may have long tails."""

import numpy as np


def robust_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median and interquartile range of every column.

    Where half the values or more are equal, the standard deviation takes the range's place; of a constant column 1.
    """
    low, center, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    unit = np.where(high > low, high - low, values.std(axis=0))
    return center, np.where(unit > 0, unit, 1.0)
