"""Subsets of rows."""

import numpy as np


def evenly_spaced(n_rows, most):
    """Rising numbers of up to `most` rows, at even distances."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(int)


def equal_groups(x, most, n_rows):
    """Numbers of the rows in up to `most` intervals of x, each with equally many rows, and with `n_rows` or more."""
    return np.array_split(np.argsort(x, kind="stable"), max(1, min(most, len(x) // n_rows)))
