"""Robust location and scale of columns."""

import numpy as np


def robust_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the median and the interquartile range of every column.

    If at least half of the values are equal, the scale is the standard deviation; for a constant column it is 1.
    """
    low, center, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    unit = np.where(high > low, high - low, values.std(axis=0))
    return center, np.where(unit > 0, unit, 1.0)
