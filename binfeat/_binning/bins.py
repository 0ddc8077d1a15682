"""The occupied bins of every grid: found, counted, ranked, and looked up again."""

from dataclasses import dataclass

import numpy as np

from binfeat._binning.bin_matrix import no_bin
from binfeat._binning.grids import hash_blocks
from binfeat._engine.bin_tables import LOAD, find, index, insert, rank

_FIRST_BITS = 12  # a new table's size
_GROUP = 16  # grids whose hashes of a block of rows are in memory at once
_GROWTH = 0.5  # bins are taken to grow with this power of the rows, when a full table is made larger


@dataclass
class Bins:
    """Hashes and training counts of each grid's bins, in order of their codes.

    Grid p has those from ``starts[p]`` to ``starts[p + 1]``.
    """

    keys: np.ndarray
    counts: np.ndarray
    starts: np.ndarray

    @classmethod
    def none(cls, n_grids):
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.zeros(n_grids + 1, np.int64))

    @classmethod
    def join(cls, parts):
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        keys, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "counts"))
        return cls(keys, counts, _starts(sizes))

    @classmethod
    def join_within_grids(cls, parts):
        """One after another within each grid."""
        keys, counts = (
            np.concatenate([getattr(part, name)[own] for own_of in _grid_slices(parts) for part, own in own_of])
            for name in ("keys", "counts")
        )
        return cls(keys, counts, _starts(sum(part.sizes for part in parts)))

    @property
    def sizes(self):
        return np.diff(self.starts)

    def of(self, grids):
        """The bins of a slice of the grids."""
        starts = self.starts[grids.start : grids.stop + 1]
        own = slice(starts[0], starts[-1])
        return Bins(self.keys[own], self.counts[own], starts - starts[0])

    def first(self, sizes):
        """The first so many bins of each grid, and the others."""
        if (sizes == self.sizes).all():
            return self, Bins.none(sizes.size)
        kept = np.arange(self.keys.size) - np.repeat(self.starts[:-1], self.sizes) < np.repeat(sizes, self.sizes)
        return (
            Bins(self.keys[kept], self.counts[kept], _starts(sizes)),
            Bins(self.keys[~kept], self.counts[~kept], _starts(self.sizes - sizes)),
        )


def _grid_slices(parts):
    """For each grid, every part with the slice of its bins there."""
    for p in range(parts[0].sizes.size):
        yield [(part, slice(part.starts[p], part.starts[p + 1])) for part in parts]


def _starts(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


class _GrowingTables:
    """Open-addressing tables of a group of grids that take in new bins."""

    def __init__(self, bins):
        self.n_bins = bins.sizes.astype(np.uint64)
        self._keys, self._counts, self._starts = bins.keys, bins.counts, bins.starts
        self._bits = np.full(self.n_bins.size, _FIRST_BITS)
        self._n_rows = 0
        self._make_room(self.n_bins)

    def _make_room(self, wanted, n_jobs=None):
        """Rebuild the tables so that each has room for at least the wanted number of bins."""
        self._bits = np.maximum(self._bits, np.ceil(np.log2(np.maximum(wanted, 1) * LOAD)).astype(int))
        slot_starts = _starts(1 << self._bits)
        keys = np.empty(slot_starts[-1] // LOAD, np.uint64)
        counts = np.empty(keys.size, np.int64)
        starts = slot_starts // LOAD
        for p, size in enumerate(self.n_bins.astype(int)):
            old, new = slice(self._starts[p], self._starts[p] + size), slice(starts[p], starts[p] + size)
            keys[new], counts[new] = self._keys[old], self._counts[old]
        self._slots = None  # freed before its successor is made
        self._slots, self._slot_starts = np.empty(slot_starts[-1], np.uint32), slot_starts
        self._keys, self._counts, self._starts = keys, counts, starts
        index(keys, starts, self.n_bins, slot_starts, self._slots, n_jobs=n_jobs)

    def add(self, hashes, store, grids, first_row, n_all_rows, n_jobs=None):
        """Number and count the bins of a block of rows; `store[grids]`, if any, is written from column `first_row`."""
        done = np.zeros(hashes.shape[0], np.int64)
        spare = np.empty(hashes.shape, np.uint32) if store is None else None
        while True:
            codes, place = (spare, 0) if store is None else (store[grids], first_row)
            most = no_bin(codes.dtype)
            tables = self._slots, self._slot_starts, self._keys, self._counts, self.n_bins
            insert(hashes, place, most, done, *tables, codes, n_jobs=n_jobs)
            full = done < hashes.shape[1]
            if not full.any():
                break
            if (full & (self.n_bins == most)).any():
                store.widen()
                continue
            growth = (n_all_rows / (self._n_rows + np.maximum(done, 1))) ** _GROWTH
            self._make_room(np.where(full, self.n_bins * np.maximum(growth, 1.5), self.n_bins), n_jobs)
        self._n_rows += hashes.shape[1]

    def bins(self):
        kept = np.concatenate(
            [np.arange(s, s + n) for s, n in zip(self._starts, self.n_bins.astype(int), strict=False)]
        )
        return Bins(self._keys[kept], self._counts[kept], _starts(self.n_bins))


def count_bins(grids, X, known, codes=None, n_jobs=None):
    """Find the bins of all rows and count their rows.

    Parameters
    ----------
    grids : Grids
    X : ndarray or CSR of shape (n_rows, n_inputs)
    known : Bins
        Bins that have codes already and keep them; new ones follow in order of appearance.
    codes : ndarray of shape (n_grids, n_rows), uint32, or CodeStore, default=None
        Where the rows' codes go; None drops them.
    n_jobs : int, default=None

    Returns
    -------
    bins : Bins
    """
    groups = []
    group = tables = None
    for part, start, hashes in hash_blocks(grids, X, n_jobs):
        if part != group:
            if tables is not None:
                groups.append(tables.bins())
            group, tables = part, _GrowingTables(known.of(part))
        tables.add(hashes, codes, part, start, X.shape[0], n_jobs)
    return Bins.join([*groups, tables.bins()])


def count_bins_of_blocks(grids, blocks, n_rows, codes=None, n_jobs=None, first_grid=0):
    """Find the bins of rows that come in blocks, and count their rows: what `count_bins` makes of all of them.

    Parameters
    ----------
    grids : Grids
    blocks : iterable of ndarray or CSR of shape (n_block_rows, n_inputs)
    n_rows : int
        Of all blocks.
    codes, n_jobs : as in `count_bins`
    first_grid : int, default=0
        Place of the first grid in `codes`.

    Returns
    -------
    bins : Bins
    """
    groups = [slice(p, min(p + _GROUP, len(grids))) for p in range(0, len(grids), _GROUP)]
    tables = [_GrowingTables(Bins.none(group.stop - group.start)) for group in groups]
    first_row = 0
    for X in blocks:
        for group, own in zip(groups, tables, strict=True):
            place = slice(first_grid + group.start, first_grid + group.stop)
            own.add(grids[group].hash(X, n_jobs), codes, place, first_row, n_rows, n_jobs)
        first_row += X.shape[0]
    return Bins.join([own.bins() for own in tables])


def rank_bins(bins, fixed, n_jobs=None):
    """Sort bins in place by falling count, ties by ascending hash, behind each grid's first `fixed`.

    Returns
    -------
    new_codes : ndarray of shape (n_bins,), uint32
        Each bin's code after the sort, where its old code was.
    """
    order, spare, new_codes = (np.empty(bins.keys.size, np.uint32) for _ in range(3))
    rank(bins.keys, bins.counts, bins.starts, fixed, order, spare, new_codes, n_jobs=n_jobs)
    return new_codes


def unite_bins(parts):
    """The bins of all rows from those of several parts of the rows, in canonical order.

    Within a grid that is by falling count, ties by ascending hash: what `rank_bins` makes of the bins of all rows, bit
    for bit. The result is the same whatever the order and the grouping of the parts, and can be a part itself, so that
    unions may be reduced in a tree. Bins of few rows can be told after the last union only.

    Parameters
    ----------
    parts : sequence of at least one Bins
        All of the same grids, each in any order.

    Returns
    -------
    united : Bins
    """
    keys, counts = zip(*map(_unite_grid, _grid_slices(parts)))
    return Bins(np.concatenate(keys), np.concatenate(counts), _starts([own.size for own in keys]))


def _unite_grid(own_of):
    """Distinct keys and sums of their counts: falling sums, ascending keys where they tie."""
    keys, places = np.unique(np.concatenate([part.keys[own] for part, own in own_of]), return_inverse=True)
    counts = np.zeros(keys.size, np.int64)
    np.add.at(counts, places, np.concatenate([part.counts[own] for part, own in own_of]))
    order = np.argsort(-counts, kind="stable")
    return keys[order], counts[order]


def codes_among(bins, united):
    """The code of each bin among others of the same grids: what turns the codes of a part into those of the union.

    Parameters
    ----------
    bins : Bins
        Of one part, in the order of its codes.
    united : Bins
        In the order of the codes wanted, as `unite_bins` gives them.

    Returns
    -------
    codes : ndarray of shape (n_bins,), uint32
        Code c in grid p of the part becomes ``codes[bins.starts[p] + c]``, which is what `recode` takes, and its column
        is that plus ``united.starts[p]``. A bin that the union does not have becomes 2^32 - 1.
    """
    codes = np.full(bins.keys.size, no_bin(np.uint32))
    for (_, own), (_, wanted) in _grid_slices([bins, united]):
        keys = united.keys[wanted]
        if not keys.size:
            continue
        order = np.argsort(keys)
        places = order[np.minimum(np.searchsorted(keys, bins.keys[own], sorter=order), keys.size - 1)]
        known = keys[places] == bins.keys[own]
        codes[own][known] = places[known]
    return codes


class BinTables:
    """Look-up tables of known bins."""

    def __init__(self, keys, starts, n_jobs=None):
        sizes = np.diff(starts)
        bits = np.ceil(np.log2(np.maximum(sizes, 1) * LOAD)).astype(int)
        self.keys, self._starts = keys, starts
        self._slot_starts = _starts(1 << bits)
        self._slots = np.empty(self._slot_starts[-1], np.uint32)
        index(keys, starts, sizes.astype(np.uint64), self._slot_starts, self._slots, n_jobs=n_jobs)

    def find(self, part, hashes, none, codes, first_row, n_jobs=None):
        """Write the codes of a block of rows in a slice of the grids; `none` where the bin is unknown."""
        own = slice(part.start, part.stop + 1)
        tables = self._slots, self._slot_starts[own], self.keys, self._starts[own]
        find(hashes, first_row, *tables, np.uint32(none), codes[part], n_jobs=n_jobs)

    @property
    def arrays(self):
        """Slots, where each grid's begin, keys, and where each grid's begin."""
        return self._slots, self._slot_starts, self.keys, self._starts
