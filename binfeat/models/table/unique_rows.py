"""Unique rows of a table: copies, for example from oversampling, become one row with the sum of their weights."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from binfeat._common.subsets import cached_parts

_KEPT = 8192  # maximum number of hashes in a model
_FEWEST = 10  # different rows of a table with copies; fewer are equal by chance


@dataclass(frozen=True, eq=False)
class TableRows:
    table: np.ndarray  # (n_rows, n_inputs)
    y: np.ndarray  # (n_rows,) or (n_rows, n_targets)
    answers: np.ndarray  # (n_rows, n_targets): y as numbers
    weights: np.ndarray | None  # (n_rows, 1)

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def hashes(self) -> np.ndarray:
        return row_hashes(self.table, self.answers)

    @cached_property
    def share_of_copies(self) -> float:
        return _share_of_copies(self.hashes)

    @property
    def are_equal(self) -> bool:
        first = self.table[0]
        return np.array_equal(first, self.table[-1]) and bool((self.table == first).all())

    @property
    def are_fine(self) -> bool:
        """Return True if the values of an input show that equal rows are copies, for a table of different rows.

        Such an input has different values in more than a fourth of the rows. Codes do not count: integers of a small
        range that are different in all rows, such as numbers of products.
        """
        some = self.table[:10_000]
        ranges, n_different = np.ptp(self.table, axis=0), np.array([np.unique(values).size for values in some.T])
        are_codes = (ranges < 10 * len(self)) & (some == np.floor(some)).all(axis=0) & (n_different == len(some))
        return bool(((n_different > 0.25 * len(some)) & ~are_codes).any())

    @property
    def copies_are_fine(self) -> bool:
        """Return `are_fine` of the different rows; False for very few rows."""
        different = np.unique(self.hashes, return_index=True)[1]
        return different.size >= _FEWEST and self.at(different).are_fine

    def at(self, rows: np.ndarray) -> Self:
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.table[rows], self.y[rows], self.answers[rows], weights)


def unique_rows(rows: TableRows, cells: np.ndarray | int = 0) -> tuple[TableRows, np.ndarray]:
    """Return the rows to learn from, and their numbers.

    Rows of weight 0 are dropped. Copies are merged if more than a fourth of the rows are copies, unless they are equal
    by chance, or there are few different rows: new rows are then probably copies, too, such as products in a list of
    sales, and without copies all validation rows would be new products. Only rows with equal `cells`, (n_rows,), are
    merged. If weights differ, rows are sorted by their hashes, so that a weight of two and a row that occurs twice give
    the same model.
    ValueError if a single row has weight.
    """
    kept = np.arange(len(rows)) if rows.weights is None else np.flatnonzero(rows.weights)
    if kept.size < 2:
        raise ValueError("sample_weight must be above 0 for at least 2 rows, got 1. Pass more weighted rows.")
    keys = (rows.hashes + np.uint64(0x9E3779B97F4A7C15) * np.asarray(cells, np.uint64))[kept]
    are_many = _share_of_copies(keys) > 0.25
    if rows.weights is None and not are_many:
        return rows, kept
    weights = np.ones(kept.size) if rows.weights is None else rows.weights[kept, 0]
    _, first, places, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    if are_many and not _are_few(counts) and rows.at(kept[first]).are_fine and _targets_agree(rows.at(kept)):
        kept, weights, places = kept[first], np.bincount(places, weights), np.arange(first.size)
    order = np.argsort(kept) if weights.min() == weights.max() else np.lexsort((weights, places))
    own = weights[order, np.newaxis] if (weights != 1).any() else None
    return replace(rows.at(kept[order]), weights=own), kept[order]


def _are_few(counts: np.ndarray) -> bool:
    """Return True if rows with these counts seem to be drawn from few different rows, nearly all of which occur.

    Then few rows occur once or twice, and counts vary at random, unlike the counts of a table that is repeated.
    """
    are_rare = counts[counts <= 2].sum() >= 0.2 * counts.sum()
    are_even = counts.var() < 0.75 * counts.mean()  # the variance of random counts is their mean
    return counts.size < _FEWEST or not (are_rare or are_even)


def _targets_agree(rows: TableRows) -> bool:
    """Return True if rows with equal inputs rarely have different targets: 5 % as often as any rows, or less."""
    of_inputs, of_answers = (_equal_pairs(row_hashes(part, part[:, :0])) for part in (rows.table, rows.answers))
    conflicts = 1 - _equal_pairs(rows.hashes) / of_inputs
    return conflicts <= 0.05 * (1 - of_answers / (len(rows) * (len(rows) - 1)))


def row_hashes(table: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return a hash of the numbers and targets of each row, (n_rows,) uint64."""
    keys = np.random.default_rng(0).integers(2**64, size=table.shape[1] + Y.shape[1], dtype=np.uint64) | 1
    hashes = np.empty(len(table), np.uint64)
    for rows in cached_parts(len(table), len(keys)):
        bits = (np.hstack([table[rows], Y[rows]]) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        hashes[rows] = (bits ^ (bits >> np.uint64(32))) @ keys
    return hashes


def _share_of_copies(hashes: np.ndarray) -> float:
    ordered = np.sort(hashes)  # 20 times as fast as NumPy's `unique`
    return np.count_nonzero(ordered[1:] == ordered[:-1]) / len(hashes)


def _equal_pairs(hashes: np.ndarray) -> float:
    """Return the number of ordered pairs of equal rows, by their hashes."""
    counts = np.unique(hashes, return_counts=True)[1].astype(float)
    return float(counts @ (counts - 1))


def kept_hashes(hashes: np.ndarray) -> np.ndarray:
    """Return sorted hashes of the training rows; for many rows the lowest ones, which are a random sample."""
    ordered = np.sort(hashes)  # faster than NumPy's `unique`
    return ordered[np.append(True, ordered[1:] != ordered[:-1])][:_KEPT]


def share_of_seen(hashes: np.ndarray, kept: np.ndarray) -> float:
    """Return the share of rows that are training rows, given their `kept_hashes`; NaN if unknown."""
    known = hashes if len(kept) < _KEPT else hashes[hashes <= kept[-1]]
    return float(np.isin(known, kept).mean()) if known.size else np.nan
