"""Copies of rows, as of a class that is drawn again and again: together they are one row with their weight."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from binfeat.models.table.row_hashes import row_hashes

_KEY = np.uint64(0x9E3779B97F4A7C15)  # of cells; odd
_LEAST = 0.25  # share of the rows
_FINE, _FINE_ROWS = 0.25, 10_000  # share of different values above which rows are not equal by chance
_CONFLICTS = 0.05  # pairs of rows with equal inputs and different targets, relative to any pairs


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows of an encoded table with the caller's targets and weights."""

    table: np.ndarray  # (n_rows, n_inputs)
    y: np.ndarray  # (n_rows,) or (n_rows, n_targets)
    answers: np.ndarray  # (n_rows, n_targets): y as numbers
    weights: np.ndarray | None  # (n_rows, 1)

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def hashes(self) -> np.ndarray:
        """Hashes of the rows with their targets."""
        return row_hashes(self.table, self.answers)

    @cached_property
    def share_of_copies(self) -> float:
        """Share of the rows that are equal to an earlier row."""
        return _share_of_copies(self.hashes)

    @property
    def are_equal(self) -> bool:
        """Return True if all inputs are constant."""
        first = self.table[0]
        return np.array_equal(first, self.table[-1]) and bool((self.table == first).all())

    @property
    def are_fine(self) -> bool:
        """Return True if an input has too many values for equal rows by chance."""
        some = self.table[:_FINE_ROWS]
        return any(np.unique(values).size > _FINE * len(some) for values in some.T)

    def without_copies(self, cells: np.ndarray) -> tuple[Self, np.ndarray]:
        """The rows to learn from, and their numbers.

        Rows without weight are left out, and copies, where they are many, are the weight of one row; copies have equal
        `cells`. A single row is never left. Rows whose weights differ come in an order of their own, so that a row with
        a weight of two is the same as one that is there twice. ValueError if a single row has weight.
        """
        rows = np.arange(len(self)) if self.weights is None else np.flatnonzero(self.weights)
        if rows.size < 2:
            raise ValueError("sample_weight must be above 0 for at least 2 rows, got 1. Pass more weighted rows.")
        if self.weights is None and self.share_of_copies <= _LEAST:
            return self, rows
        keys = (self.hashes + cells.astype(np.uint64) * _KEY)[rows]
        are_many = _share_of_copies(keys) > _LEAST
        if self.weights is None and not are_many:
            return self, rows
        own = np.ones(rows.size) if self.weights is None else self.weights[rows, 0]
        _, first, places = np.unique(keys, return_index=True, return_inverse=True)
        if first.size > 1 and are_many and self.at(rows[first]).are_fine and self.at(rows)._targets_agree():
            rows, own, places = rows[first], np.bincount(places, own), np.arange(first.size)
        order = np.argsort(rows) if own.min() == own.max() else np.lexsort((own, places))
        weights = own[order, np.newaxis] if (own != 1).any() else None
        return replace(self.at(rows[order]), weights=weights), rows[order]

    def at(self, rows: np.ndarray) -> Self:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.table[rows], self.y[rows], self.answers[rows], weights)

    def _targets_agree(self) -> bool:
        """Return True if rows with equal inputs nearly always have equal targets."""
        of_inputs, of_answers = (_equal_pairs(row_hashes(part, part[:, :0])) for part in (self.table, self.answers))
        conflicts = 1 - _equal_pairs(self.hashes) / of_inputs
        return conflicts <= _CONFLICTS * (1 - of_answers / (len(self) * (len(self) - 1)))


def _share_of_copies(hashes: np.ndarray) -> float:
    ordered = np.sort(hashes)  # a twentieth of the time of NumPy's `unique`
    return np.count_nonzero(ordered[1:] == ordered[:-1]) / len(hashes)


def _equal_pairs(hashes: np.ndarray) -> float:
    """Number of ordered pairs of rows that are equal, by their hashes."""
    counts = np.unique(hashes, return_counts=True)[1].astype(float)
    return float(counts @ (counts - 1))
