"""Subsets of rows."""

import numpy as np

_VALUES, _FEWEST_ROWS = 2**18, 32  # of a part that is in a cache


def evenly_spaced(n_rows, most):
    """Rising numbers of up to `most` rows, at even distances."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(int)


def thinned(values, most):
    """Up to `most` of the values, at even distances."""
    return values[evenly_spaced(len(values), most)]


def every_nth(rows, most):
    """A view of up to `most` of the rows, at equal distances."""
    return rows[:: -(-len(rows) // most)]


def slices(stop, step, start=0):
    """Slices of `step` rows, or fewer in the last, from `start` to `stop`."""
    return [slice(i, min(i + step, stop)) for i in range(start, stop, step)]


def cached_parts(n_rows, n_values):
    """Slices of rows with `n_values` numbers each, so many at a time that these stay in a cache."""
    return slices(n_rows, max(_FEWEST_ROWS, _VALUES // max(1, n_values)))


def equal_groups(x, most, n_rows):
    """Numbers of the rows in up to `most` intervals of x, each with equally many rows, and with `n_rows` or more."""
    return np.array_split(np.argsort(x, kind="stable"), max(1, min(most, len(x) // n_rows)))
