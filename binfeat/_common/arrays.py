"""Quotients, moments and robust scales of arrays, and reusable memory for arrays."""

import numpy as np

from binfeat._common.array_types import DTypeLike


def quotients(a: np.ndarray | float, b: np.ndarray) -> np.ndarray:
    """Return ``a / b``, and 0 where b is not positive."""
    if (b > 0).all():
        return np.divide(a, b)
    out = np.zeros(np.broadcast_shapes(np.shape(a), b.shape), np.result_type(a, b))
    return np.divide(a, b, out=out, where=b > 0)


def mean_and_std(Y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted means and standard deviations of columns, (n_columns,), for weights (n_rows, 1) or None."""
    own = None if weights is None else weights[:, 0]
    mean = np.average(Y, axis=0, weights=own)
    return mean, np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=own))


def robust_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the median and the interquartile range of every column.

    If the quartiles are equal, the scale is the standard deviation; for a constant column it is 1.
    """
    low, center, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    unit = np.where(high > low, high - low, values.std(axis=0))
    return center, np.where(unit > 0, unit, 1.0)


class Scratch:
    """Arrays in Fortran order that are allocated once and reused."""

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
        """Return an uninitialized array of this shape; it may overwrite the array returned before for the same name."""
        kept = self._kept.get(name)
        if kept is None or kept.dtype != dtype or kept.shape[0] != shape[0] or kept.shape[1] < shape[1]:
            kept = self._kept[name] = np.empty(shape, dtype, order="F")
        return kept[:, : shape[1]]
