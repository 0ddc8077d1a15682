"""Rows to bin, and hash tables of their bins: growing tables for counting, and look-up tables of known bins."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from binfeat._common.array_types import DTypeLike
from binfeat._common.memory import allowed_bytes
from binfeat._common.progress import Progress
from binfeat._common.subsets import slices
from binfeat._common.validation import CheckedRows, float_dtype
from binfeat._engine.bin_tables import LOAD, find, find_ragged, index, insert
from binfeat._rows.sources import SourceSummary
from binfeat._threads import thread_count
from binfeat.features.binning.bin_matrix import code_dtype
from binfeat.features.binning.bins import Bins, starts_of
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.coded_features import no_bin
from binfeat.features.binning.grids import Grids, hash_blocks, n_hash_blocks

_FIRST_BITS = 12  # log2 of the size of a new table
_GROWTH = 0.5  # assumed growth of bins with the rows, for resizing full tables


@dataclass(frozen=True)
class BinningInput:
    """Checked rows, in memory or from a source."""

    blocks: Iterable[CheckedRows]
    n_rows: int
    dtype: np.dtype  # of the features
    max_bytes: float = np.inf  # for codes in memory
    summary: SourceSummary | None = None  # of a source with y and weights
    y: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    progress: Progress | None = None  # of a fit with callbacks

    @classmethod
    def of(cls, X: CheckedRows) -> Self:
        return cls([X], X.shape[0], float_dtype(X.dtype))

    @classmethod
    def of_source(cls, summary: SourceSummary, max_bytes: int | None) -> Self:
        given = allowed_bytes(max_bytes, 2), summary, summary.y, summary.sample_weight
        return cls(summary.rows(), summary.n_rows, float_dtype(summary.dtype), *given)

    @property
    def on_block(self) -> Callable[[], object] | None:
        """Return a function to call after every hashed block, or None."""
        return None if self.progress is None else self.progress.step

    def watched(self, progress: Progress, n_grids: int) -> "BinningInput":
        """Return the same rows with the `Progress` of a fit, which begins now."""
        progress.begin(n_hash_blocks(n_grids, self.n_rows) if self.summary is None else None)
        return replace(self, progress=progress)

    def end(self) -> None:
        if self.progress is not None:
            self.progress.end()

    def store(self, n_grids: int) -> CodeStore:
        return CodeStore(self.n_rows, n_grids, self.max_bytes)


class _GrowingTables:
    """Open-addressing tables of a group of grids, which accept new bins."""

    def __init__(self, bins: Bins) -> None:
        self.n_bins = bins.sizes.astype(np.uint64)
        self._keys, self._counts, self._starts = bins.keys, bins.counts, bins.starts
        self._bits = np.full(self.n_bins.size, _FIRST_BITS)
        self._n_rows = 0
        self._make_room(self.n_bins)

    def _make_room(self, wanted: np.ndarray, n_jobs: int | None = None) -> None:
        """Rebuild the tables with room for at least the required number of bins."""
        self._bits = np.maximum(self._bits, np.ceil(np.log2(np.maximum(wanted, 1) * LOAD)).astype(int))
        slot_starts = starts_of(1 << self._bits)
        keys = np.empty(slot_starts[-1] // LOAD, np.uint64)
        counts = np.empty(keys.size, np.int64)
        starts = slot_starts // LOAD
        for p, size in enumerate(self.n_bins.astype(int)):
            old, new = slice(self._starts[p], self._starts[p] + size), slice(starts[p], starts[p] + size)
            keys[new], counts[new] = self._keys[old], self._counts[old]
        self._slots = np.empty(0, np.uint32)  # free the old slots before allocating new ones
        self._slots, self._slot_starts = np.empty(slot_starts[-1], np.uint32), slot_starts
        self._keys, self._counts, self._starts = keys, counts, starts
        index(keys, starts, self.n_bins, slot_starts, self._slots, n_jobs=n_jobs)

    def add(
        self,
        hashes: np.ndarray,
        store: CodeStore | np.ndarray | None,
        grids: slice,
        first_row: int,
        n_all_rows: int,
        n_jobs: int | None = None,
    ) -> None:
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
            if isinstance(store, CodeStore) and (full & (self.n_bins == most)).any():
                store.widen()
                continue
            growth = (n_all_rows / (self._n_rows + np.maximum(done, 1))) ** _GROWTH
            self._make_room(np.where(full, self.n_bins * np.maximum(growth, 1.5), self.n_bins), n_jobs)
        self._n_rows += hashes.shape[1]

    def bins(self) -> Bins:
        kept = np.concatenate(
            [np.arange(s, s + n) for s, n in zip(self._starts, self.n_bins.astype(int), strict=False)]
        )
        return Bins(self._keys[kept], self._counts[kept], starts_of(self.n_bins))


def count_bins(
    grids: Grids,
    blocks: Iterable[CheckedRows],
    n_rows: int,
    known: Bins | None = None,
    codes: CodeStore | np.ndarray | None = None,
    n_jobs: int | None = None,
    *,
    first_grid: int = 0,
    on_block: Callable[[], object] | None = None,
) -> Bins:
    """Find the bins of all rows in blocks, number them in order of appearance, and count their rows.

    Bins that are `known` have numbers already and keep them. `codes`, a CodeStore or uint32 (n_grids, n_rows), is
    filled with the numbers of the rows' bins from `first_grid` on.
    """
    known = Bins.none(len(grids)) if known is None else known
    tables: dict[int, _GrowingTables] = {}
    counted: dict[int, Bins] = {}
    for part, start, hashes in hash_blocks(grids, blocks, n_jobs, on_block):
        if part.start not in tables:
            tables[part.start] = _GrowingTables(known.of(part))
        place = slice(first_grid + part.start, first_grid + part.stop)
        tables[part.start].add(hashes, codes, place, start, n_rows, n_jobs)
        if start + hashes.shape[1] == n_rows:
            counted[part.start] = tables.pop(part.start).bins()  # needs less memory
    return Bins.join(list(counted.values()))


def find_codes(tables: "BinTables", grids: Grids, X: CheckedRows, n_jobs: int | None, dtype: DTypeLike) -> np.ndarray:
    """Return codes (`dtype`) of rows in grids with known bins; unknown bins have the code "no bin"."""
    codes = np.empty((len(grids), X.shape[0]), dtype)
    write_codes(tables, grids, [X], codes, n_jobs)
    return codes


def write_codes(
    tables: "BinTables",
    grids: Grids,
    blocks: Iterable[CheckedRows],
    codes: np.ndarray,
    n_jobs: int | None,
    on_block: Callable[[], object] | None = None,
) -> None:
    """Write codes (n_grids, n_rows) of rows in blocks."""
    slots, slot_starts, keys, starts = tables.arrays
    for part, start, hashes in hash_blocks(grids, blocks, n_jobs, on_block):
        own = slice(part.start, part.stop + 1)
        known = slots, slot_starts[own], keys, starts[own]
        find(hashes, start, *known, no_bin(codes.dtype), codes[part], n_jobs=n_jobs)


class BinTables:
    """Look-up tables of known bins."""

    def __init__(self, keys: np.ndarray, starts: np.ndarray, n_jobs: int | None = None) -> None:
        sizes = np.diff(starts)
        bits = np.ceil(np.log2(np.maximum(sizes, 1) * LOAD)).astype(int)
        self.keys, self._starts = keys, starts
        self._slot_starts = starts_of(1 << bits)
        self._slots = np.empty(self._slot_starts[-1], np.uint32)
        index(keys, starts, sizes.astype(np.uint64), self._slot_starts, self._slots, n_jobs=n_jobs)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return slots, the first slot of each grid, keys, and the first key of each grid."""
        return self._slots, self._slot_starts, self.keys, self._starts


def codes_among(bins: Bins, united: Bins, n_jobs: int | None = None) -> np.ndarray:
    """Return the code of each bin of a part, (n_bins,) uint32, among the merged bins of the same grids.

    Code c in grid p of the part becomes ``codes[bins.starts[p] + c]``, as `recode` expects; a bin that is missing in
    the union becomes 2^32 - 1. The number of look-up tables at a time equals the number of threads.
    """
    codes, n_threads = np.empty(bins.keys.size, np.uint32), thread_count(n_jobs)
    for grids in slices(bins.sizes.size, n_threads):
        own, wanted = bins.of(grids), united.of(grids)
        tables = BinTables(wanted.keys, wanted.starts, n_jobs)
        written = codes[bins.starts[grids.start] :][: own.keys.size]
        find_ragged(own.keys, own.starts, *tables.arrays, no_bin(np.uint32), written, n_jobs=n_jobs)
    return codes
