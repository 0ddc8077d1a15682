"""Typical values of inputs, which replace missing values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from binfeat._common.validation import CheckedRows
from binfeat._rows.sources import Source, Table, read_blocks


def typical_values(X: CheckedRows, categorical: np.ndarray) -> np.ndarray:
    """Return the most frequent category of each input in the mask `categorical`, and the median of other inputs.

    Of an even number of values, the median is the lower of the two in the middle. 0 if all values are missing.
    """
    values = np.zeros(X.shape[1])
    if sparse.issparse(X):
        X = sparse.csc_array(X)
        stored = np.flatnonzero(2 * np.diff(X.indptr) >= X.shape[0])  # other inputs are mostly 0
        values[stored] = typical_values(X[:, stored].toarray(), categorical[stored])
        return values
    for j, column in enumerate(X.T):
        known = np.sort(column[~np.isnan(column)])
        if known.size:
            levels, counts = np.unique(known, return_counts=True)
            values[j] = levels[counts.argmax()] if categorical[j] else known[(known.size - 1) // 2]
    return values


def filled(X: CheckedRows, values: np.ndarray) -> CheckedRows:
    """Return rows with the given value of each input instead of missing values."""
    entries = X.data if sparse.issparse(X) else X
    missing = np.isnan(entries)
    if not missing.any():
        return X
    values = values.astype(X.dtype)
    if sparse.issparse(X):
        return type(X)((np.where(missing, values[X.indices], entries), X.indices, X.indptr), shape=X.shape)
    return np.where(missing, values, X)


@dataclass(frozen=True, eq=False)
class FilledBlocks:
    """A source of the blocks of another source, with the given value of each input instead of missing values."""

    source: Source
    check: Callable[[Table], CheckedRows]
    values: np.ndarray

    def __iter__(self) -> Iterator[tuple]:
        for _, X, others in read_blocks(self.source):
            yield filled(self.check(X), self.values), *others
