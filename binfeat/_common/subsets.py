"""Subsets of rows."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

_VALUES, _FEWEST_ROWS = 2**18, 32  # values that fit in a cache, and minimum of rows


def evenly_spaced(n_rows: int, most: int) -> np.ndarray:
    """Return up to `most` increasing row numbers at even distances."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(int)


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """Return up to `most` of the values at even distances."""
    return values[evenly_spaced(len(values), most)]


def numbered(blocks: Iterable[Any]) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of rows after the numbers of their rows, a slice."""
    stop = 0
    for X in blocks:
        start, stop = stop, stop + X.shape[0]
        yield slice(start, stop), X


def places_in(blocks: Iterable[Any], wanted: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield blocks of rows with the places of the wanted rows in each, given the increasing numbers of these rows."""
    for rows, X in numbered(blocks):
        yield X, wanted[slice(*np.searchsorted(wanted, (rows.start, rows.stop)))] - rows.start


def slices(stop: int, step: int, start: int = 0) -> list[slice]:
    """Return slices of `step` rows from `start` to `stop`; the last slice may be shorter."""
    return [slice(i, min(i + step, stop)) for i in range(start, stop, step)]


def cached_parts(n_rows: int, n_values: int) -> list[slice]:
    """Return slices of rows with `n_values` numbers each that fit in a cache."""
    return slices(n_rows, max(_FEWEST_ROWS, _VALUES // max(1, n_values)))


def equal_groups(x: np.ndarray, most: int, n_rows: int) -> list[np.ndarray]:
    """Return the row numbers of up to `most` intervals of x with equally many rows, at least `n_rows`."""
    return np.array_split(np.argsort(x, kind="stable"), max(1, min(most, len(x) // n_rows)))
