"""Tables of bins: they grow while bins are found and counted, and look known ones up."""

import numpy as np

from binfeat._common.subsets import slices
from binfeat._engine.bin_tables import LOAD, find, find_ragged, index, insert
from binfeat._threads import thread_count
from binfeat.features.binning.bin_matrix import code_dtype, no_bin
from binfeat.features.binning.bins import Bins, starts_of
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import hash_blocks

_FIRST_BITS = 12  # a new table's size
_GROWTH = 0.5  # bins are taken to grow with this power of the rows, when a full table is made larger


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
        slot_starts = starts_of(1 << self._bits)
        keys = np.empty(slot_starts[-1] // LOAD, np.uint64)
        counts = np.empty(keys.size, np.int64)
        starts = slot_starts // LOAD
        for p, size in enumerate(self.n_bins.astype(int)):
            old, new = slice(self._starts[p], self._starts[p] + size), slice(starts[p], starts[p] + size)
            keys[new], counts[new] = self._keys[old], self._counts[old]
        self._slots = np.empty(0, np.uint32)  # frees the old slots before the new slots are made
        self._slots, self._slot_starts = np.empty(slot_starts[-1], np.uint32), slot_starts
        self._keys, self._counts, self._starts = keys, counts, starts
        index(keys, starts, self.n_bins, slot_starts, self._slots, n_jobs=n_jobs)

    def add(self, hashes, store, grids, first_row, n_all_rows, n_jobs=None):
        """Number and count the bins of a block of rows; `store[grids]`, if any, is written from column `first_row`."""
        if store is None:
            store = CodeStore(hashes.shape[1], hashes.shape[0], dtype=code_dtype(self.n_bins.max()))
            grids, first_row = slice(None), 0
        done = np.zeros(hashes.shape[0], np.int64)
        while True:
            codes = store[grids]
            most = no_bin(codes.dtype)
            tables = self._slots, self._slot_starts, self._keys, self._counts, self.n_bins
            insert(hashes, first_row, most, done, *tables, codes, n_jobs=n_jobs)
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
        return Bins(self._keys[kept], self._counts[kept], starts_of(self.n_bins))


def count_bins(grids, blocks, n_rows, known=None, codes=None, n_jobs=None, *, first_grid=0, tell=None):
    """Find the bins of all rows in blocks, number them in order of appearance, and count their rows.

    Bins that are `known` have numbers already and keep them. `codes`, a CodeStore or uint32 (n_grids, n_rows), is
    filled with the numbers of the rows' bins from `first_grid` on. `tell` is called after every block of `hash_blocks`.
    """
    known = Bins.none(len(grids)) if known is None else known
    tables, counted = {}, {}
    for part, start, hashes in hash_blocks(grids, blocks, n_jobs):
        if part.start not in tables:
            tables[part.start] = _GrowingTables(known.of(part))
        place = slice(first_grid + part.start, first_grid + part.stop)
        tables[part.start].add(hashes, codes, place, start, n_rows, n_jobs)
        if tell is not None:
            tell()
        if start + hashes.shape[1] == n_rows:
            counted[part.start] = tables.pop(part.start).bins()  # which takes less memory
    return Bins.join(list(counted.values()))


def find_codes(tables, grids, X, n_jobs, dtype):
    """Codes of type `dtype` of rows in grids whose bins are known; an unknown bin has the code "no bin"."""
    codes = np.empty((len(grids), X.shape[0]), dtype)
    for part, start, hashes in hash_blocks(grids, [X], n_jobs):
        tables.find(part, hashes, no_bin(codes.dtype), codes, start, n_jobs)
    return codes


class BinTables:
    """Look-up tables of known bins."""

    def __init__(self, keys, starts, n_jobs=None):
        sizes = np.diff(starts)
        bits = np.ceil(np.log2(np.maximum(sizes, 1) * LOAD)).astype(int)
        self.keys, self._starts = keys, starts
        self._slot_starts = starts_of(1 << bits)
        self._slots = np.empty(self._slot_starts[-1], np.uint32)
        index(keys, starts, sizes.astype(np.uint64), self._slot_starts, self._slots, n_jobs=n_jobs)

    def find(self, part, hashes, none, codes, first_row, n_jobs=None):
        """Write the codes of a block of rows in a slice of the grids; `none` where the bin is unknown."""
        grids = slice(part.start, part.stop + 1)
        tables = self._slots, self._slot_starts[grids], self.keys, self._starts[grids]
        find(hashes, first_row, *tables, np.uint32(none), codes[part], n_jobs=n_jobs)

    @property
    def arrays(self):
        """Slots, the first slot of each grid, keys, and the first key of each grid."""
        return self._slots, self._slot_starts, self.keys, self._starts


def codes_among(bins, united, n_jobs=None):
    """The code of each bin of a part, (n_bins,) uint32, among the united bins of the same grids.

    Code c in grid p of the part becomes ``codes[bins.starts[p] + c]``, which is what `recode` takes; a bin that the
    union does not have becomes 2^32 - 1. As many grids have look-up tables at a time as there are threads.
    """
    codes, n_threads = np.empty(bins.keys.size, np.uint32), thread_count(n_jobs)
    for grids in slices(bins.sizes.size, n_threads):
        own, wanted = bins.of(grids), united.of(grids)
        tables = BinTables(wanted.keys, wanted.starts, n_jobs)
        written = codes[bins.starts[grids.start] :][: own.keys.size]
        find_ragged(own.keys, own.starts, *tables.arrays, no_bin(np.uint32), written, n_jobs=n_jobs)
    return codes
