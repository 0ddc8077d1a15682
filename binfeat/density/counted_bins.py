"""The bins of a mixture of grids, their counts, and the scores and densities of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.subsets import evenly_spaced, slices
from binfeat._common.validation import CheckedRows
from binfeat._engine.bin_tables import EMPTY, rank
from binfeat._engine.evaluate import add_weights, score_rows
from binfeat._engine.replacements import replace_inputs
from binfeat._threads import thread_count
from binfeat.features.binning.bin_matrix import code_dtype
from binfeat.features.binning.bins import Bins, starts_of, unite_bins
from binfeat.features.binning.grids import Grids, hash_blocks
from binfeat.features.binning.tables import BinTables, count_bins, find_codes
from binfeat.kernels.base import Kernel

Level = tuple[Kernel, np.ndarray]  # the kernel and the gamma (n_inputs,) of a part of a mixture

_BLOCK_BYTES = 2**26
_LOOK_UPS = 2**22  # Maximum look-ups per thread and kernel call (under a second), so that Ctrl-C is handled.
_ORDERS = 2**64
_N_TYPICAL = 16


def draw_grids(levels: list[Level], n_grids: int, seed: int, categorical: np.ndarray) -> Grids:
    """Draw the grids of a mixture of kernels, and one more grid with only equal rows in a bin.

    Grid p has the kernel and the gamma (n_inputs,) of level ``p % len(levels)``; it depends on the seed and p only.
    """
    drawn = [Grids.draw(kernel, gamma, n_grids, seed, categorical).arrays for kernel, gamma in levels]
    mixed = [np.stack([drawn[p % len(levels)][k][p] for p in range(n_grids)]) for k in range(4)]
    gamma = levels[0][1]
    last = np.where(gamma > 0, np.inf, 0.0)[None], np.zeros((1, gamma.size)), mixed[2][:1], mixed[3][:1]
    return Grids(*(np.vstack(pair) for pair in zip(mixed, last)))


def dense(X: CheckedRows) -> np.ndarray:
    """Return a read-only array of float64 in C order, so that one compiled signature is enough."""
    rows = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64).view()
    rows.flags.writeable = False
    return rows


@dataclass(frozen=True)
class Turns:
    """The training rows that each grid counts.

    Each row has a random 64-bit number, its order. Grid p counts the rows with orders from ``firsts[p]`` to
    ``firsts[p] + last``, cyclic. Intervals are disjoint, or cover all orders evenly.
    """

    n_grids: int
    width: int  # from 1 to 2^64

    @classmethod
    def of(cls, n_grids: int, max_samples: int | None, n_rows: int) -> "Turns":
        """Let each grid count about `max_samples` of `n_rows` rows; None counts all."""
        most = n_rows if max_samples is None else min(max_samples, n_rows)
        return cls(n_grids, -(-most * _ORDERS // n_rows))

    @property
    def span(self) -> int:
        """Number of orders that any grid counts, the lowest ones."""
        return min(self.width * self.n_grids, _ORDERS)

    @cached_property
    def firsts(self) -> np.ndarray:
        """First order of each grid, (n_grids,) uint64."""
        return np.array([p * self.span // self.n_grids for p in range(self.n_grids)], np.uint64)

    @cached_property
    def last(self) -> np.uint64:
        """Difference between the last and the first order of a grid."""
        return np.uint64(self.width - 1)


@dataclass(frozen=True)
class Counts:
    """Counts of some rows, which can be merged: bins of the mixture, and the rows that any grid counts."""

    bins: Bins
    hashes: np.ndarray  # (n_counted,) uint64: hashes of rows in the grid that distinguishes rows
    orders: np.ndarray  # (n_counted,) uint64

    @classmethod
    def of(cls, grids: Grids, turns: Turns, blocks: Iterable, n_rows: int, n_jobs: int | None = None) -> "Counts":
        """Count rows in blocks, given as pairs of rows and orders."""
        if turns.width < _ORDERS:
            return cls.united([cls._of_turns(grids, turns, X, orders, n_jobs) for X, orders in blocks])
        rows = []

        def tapped() -> Iterator[CheckedRows]:
            for X, orders in blocks:
                rows.append((grids[-1:].hash(X, n_jobs)[0], orders))
                yield X

        bins = count_bins(grids[:-1], tapped(), n_rows, n_jobs=n_jobs)
        return cls(bins, *map(np.concatenate, zip(*rows)))

    @classmethod
    def _of_turns(cls, grids: Grids, turns: Turns, X: CheckedRows, orders: np.ndarray, n_jobs: int | None) -> "Counts":
        counted = np.flatnonzero(orders <= np.uint64(turns.span - 1))
        X, orders = X[counted], orders[counted]
        of_grids = (np.flatnonzero(orders - first <= turns.last) for first in turns.firsts)
        found = [
            np.unique(grids[p : p + 1].hash(X[rows], n_jobs)[0], return_counts=True) for p, rows in enumerate(of_grids)
        ]
        keys, counts = map(np.concatenate, zip(*found))
        bins = Bins(keys, counts.astype(np.int64), starts_of([own.size for own, _ in found]))
        return cls(bins, grids[-1:].hash(X, n_jobs)[0], orders)

    @classmethod
    def united(cls, parts: list["Counts"]) -> "Counts":
        rows = (np.concatenate([getattr(part, name) for part in parts]) for name in ("hashes", "orders"))
        return cls(unite_bins([part.bins for part in parts]), *rows)

    def places(self, hashes: np.ndarray) -> np.ndarray:
        """Return places of distinct counted rows with these increasing hashes.

        ValueError if a hash has fewer counted rows than copies in `hashes`.
        """
        nth = np.arange(hashes.size) - np.searchsorted(hashes, hashes)
        places = np.searchsorted(self.hashes, hashes) + nth
        if (places >= self.hashes.size).any() or (self.hashes[places] != hashes).any():
            raise ValueError("X has rows that are not training rows; forget only rows of fit or partial_fit.")
        return places


def _with_least(bins: Bins, least: int) -> Bins:
    """Copy the bins with at least this number of rows."""
    kept = bins.counts >= least
    return Bins(bins.keys[kept], bins.counts[kept], starts_of(kept)[bins.starts])


@dataclass(frozen=True)
class CountedBins:
    grids: Grids
    turns: Turns
    counts: Counts
    sizes: np.ndarray  # (n_grids,) int64: rows that each grid has counted
    n_rows: int
    n_levels: int  # of the mixture
    n_jobs: int | None = None

    @classmethod
    def of(cls, grids: Grids, turns: Turns, counts: Counts, *others: Any) -> "CountedBins":
        """Create counted bins from counts in any order of bins and rows; empty bins are dropped."""
        bins, sequence = _with_least(counts.bins, 1), np.lexsort((counts.orders, counts.hashes))
        scratch = np.zeros(bins.sizes.size, np.int64), *np.empty((3, bins.keys.size), np.uint32)
        rank(bins.keys, bins.counts, bins.starts, *scratch)  # the fastest order for look-ups
        sizes = np.diff(starts_of(bins.counts)[bins.starts])
        return cls(grids, turns, Counts(bins, counts.hashes[sequence], counts.orders[sequence]), sizes, *others)

    def plus(self, X: CheckedRows, orders: np.ndarray) -> "CountedBins":
        """Add training rows."""
        more = Counts.of(self.grids, self.turns, [(X, orders)], X.shape[0], self.n_jobs)
        return self._with(Counts.united([self.counts, more]), X.shape[0])

    def minus(self, X: CheckedRows) -> "CountedBins":
        """Remove training rows; ValueError if they are not among the training rows."""
        counts, hashes = self.counts, self.grids[-1:].hash(X, self.n_jobs)[0]
        sequence = np.argsort(hashes)
        places = counts.places(hashes[sequence])
        block = X[sequence], counts.orders[places]
        less = Counts.of(self.grids, self.turns, [block], X.shape[0], self.n_jobs).bins
        bins = unite_bins([counts.bins, Bins(less.keys, -less.counts, less.starts)])
        return self._with(Counts(bins, *(np.delete(of, places) for of in (counts.hashes, counts.orders))), -X.shape[0])

    def _with(self, counts: Counts, n_more: int) -> "CountedBins":
        return CountedBins.of(self.grids, self.turns, counts, self.n_rows + n_more, self.n_levels, self.n_jobs)

    def compact(self) -> "CountedBins":
        """Remove bins of a single row, and training rows."""
        counts = self.counts
        return replace(self, counts=Counts(_with_least(counts.bins, 2), counts.hashes[:0], counts.orders[:0]))

    @cached_property
    def _tables(self) -> BinTables:
        return BinTables(self.counts.bins.keys, self.counts.bins.starts, self.n_jobs)

    @cached_property
    def _rows(self) -> tuple[BinTables, np.ndarray]:
        """Return distinct hashes of training rows, their look-up table, and their lowest orders."""
        hashes = self.counts.hashes
        firsts = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        return BinTables(hashes[firsts], np.array([0, firsts.size])), self.counts.orders[firsts]

    @cached_property
    def weights(self) -> np.ndarray:
        """Return ``log(1 + n)`` and ``log(n)`` for the count n of each bin; the second excludes one row."""
        counts = self.counts.bins.counts
        logs = np.log(np.maximum(np.arange(counts.max(initial=0) + 2), 1)) / self.turns.n_grids
        return np.stack([logs[1:][counts], logs[counts]])

    @cached_property
    def _arrays(self) -> tuple[np.ndarray | np.uint64, ...]:
        """Return the arguments of `score_rows` between rows and scores."""
        table, orders = self._rows
        turns = orders, self.turns.firsts, self.turns.last, self.weights
        return *self.grids.arrays, *self._tables.arrays, table.arrays[0], table.keys, *turns

    @cached_property
    def lowest_score(self) -> float:
        """Score of rows without another row in their bins."""
        return -float(np.log(np.maximum(self.sizes, 1)).mean())

    def scores_of_few(self, X: np.ndarray) -> np.ndarray | None:
        """Return scores of rows, an array; None if rows have infinite values."""
        scores = np.empty(X.shape[0])
        return scores + self.lowest_score if score_rows(dense(X), *self._arrays, scores) else None

    def scores(self, X: CheckedRows) -> np.ndarray:
        """Return the mean logarithm of the share of training rows in a row's bins; see `OutlierDetector`."""
        scores, (known, orders) = np.zeros(X.shape[0]), self.find(X)
        slots, slot_starts, keys, starts = self._tables.arrays
        for part, start, hashes in hash_blocks(self.grids[:-1], [X], self.n_jobs):
            grids, rows = slice(part.start, part.stop + 1), slice(start, start + hashes.shape[1])
            tables = slots, slot_starts[grids], keys, starts[grids]
            turns = known[rows], orders[rows], self.turns.firsts[part], self.turns.last
            add_weights(hashes, *tables, *turns, self.weights, scores[rows], n_jobs=self.n_jobs)
        return scores + self.lowest_score

    def find(self, X: CheckedRows) -> tuple[np.ndarray, np.ndarray]:
        """Return True for rows equal to a training row, and the lowest order of these."""
        table, orders = self._rows
        codes = find_codes(table, self.grids[-1:], X, self.n_jobs, np.uint32)[0]
        known = codes != EMPTY
        return known, np.append(orders, np.uint64(0))[np.where(known, codes, orders.size)]

    def densities(self, X: CheckedRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean share of training rows in a row's bins, and its standard error over grids, or NaN."""
        means, variances = (np.zeros((self.n_levels, X.shape[0])) for _ in range(2))
        bins, n_grids = self.counts.bins, self.turns.n_grids
        sizes = np.bincount(np.arange(n_grids) % self.n_levels)[:, None]
        shares = bins.counts / np.repeat(np.maximum(self.sizes, 1), bins.sizes)
        for rows in slices(X.shape[0], max(1, _BLOCK_BYTES // (4 * n_grids))):
            codes = find_codes(self._tables, self.grids[:-1], X[rows], self.n_jobs, code_dtype(bins.sizes.max()))
            for p, grid_codes in enumerate(codes):
                own = np.append(shares[bins.starts[p] : bins.starts[p + 1]], 0.0)
                found = own[np.minimum(grid_codes, own.size - 1)]
                means[p % self.n_levels, rows] += found
                variances[p % self.n_levels, rows] += found**2
        means /= sizes
        variances = np.maximum(variances / sizes - means**2, 0.0) / np.where(sizes > 1, sizes - 1, np.nan)
        return means.mean(axis=0), np.sqrt(variances.sum(axis=0)) / self.n_levels


def rises(counted_bins: CountedBins, X: np.ndarray, sample: CheckedRows) -> np.ndarray:
    """Return the mean increase of each row's score when an input is replaced by values of typical rows."""
    sequence = np.argsort(counted_bins.scores(sample), kind="stable")[sample.shape[0] // 2 :]
    typical = dense(sample[sequence[evenly_spaced(sequence.size, _N_TYPICAL)]])
    known, orders = counted_bins.find(X)
    counted = known[:, None] & (orders[:, None] - counted_bins.turns.firsts <= counted_bins.turns.last)
    others = *counted_bins.grids[:-1].arrays, *counted_bins._tables.arrays, counted_bins.weights
    out, n_jobs = np.empty(X.shape), counted_bins.n_jobs
    step = max(1, _LOOK_UPS // (typical.size * counted_bins.turns.n_grids))
    for rows in slices(X.shape[0], thread_count(n_jobs) * step):  # Ctrl-C works between the slices
        replace_inputs(X[rows], typical, *others, counted[rows], out[rows], n_jobs=n_jobs)
    return out / len(typical)
