"""Sums over the columns of tall arrays, in float64 and a fixed order of summation."""

from collections.abc import Callable

import numpy as np

from binfeat._engine.vectors import BLOCK, partial_dots, partial_squares


def _sums(kernel: Callable[..., None], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Add up the partial sums of `kernel` over blocks of rows, for each column of `a`."""
    a, b = np.asfortranarray(a).T, np.asfortranarray(b).T
    partial = np.empty((a.shape[0], -(-a.shape[1] // BLOCK)))
    kernel(a, b, partial)
    return partial.sum(axis=1)


def column_dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot product of each column of `a` with the same (or the only) column of `b`."""
    return _sums(partial_dots, a, b)


def weighted_squares(a: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum of squares of each column of `a`; weights have one column, or one per column of `a`."""
    return _sums(partial_squares, a, weights)


def column_sums(a: np.ndarray) -> np.ndarray:
    """Return the sum of each column of `a`, bitwise equal to `column_dots` with ones, without allocating ones."""
    ones, sums = np.ones((1, BLOCK), a.dtype), []
    for column in np.asfortranarray(a).T:
        whole = column.size // BLOCK
        partial = np.empty((-(-column.size // BLOCK), 1))
        partial_dots(column[: whole * BLOCK].reshape(whole, BLOCK), ones, partial[:whole])
        if whole < len(partial):
            rest = column[np.newaxis, whole * BLOCK :]
            partial_dots(rest, ones[:, : rest.size], partial[whole:])
        sums.append(partial.T.sum(axis=1)[0])
    return np.array(sums)
