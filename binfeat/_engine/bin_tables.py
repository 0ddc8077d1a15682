"""From hashes to codes and from codes to CSR: one open-addressing table per grid.

A table is an array of 2^bits slots, each EMPTY or the number of a bin; `keys[c]` is the hash of bin number c. The top
bits of a hash select the first slot where its bin can be. A slot has 4 bytes and no hash, so the table of 65,000 bins
fits in a core's second-level cache.
"""

import numpy as np
from numba import prange

from binfeat._engine.policy import jit, parallel_jit
from binfeat._engine.simd import fetch

EMPTY = np.uint32(0xFFFFFFFF)
LOAD = 4  # minimum number of slots per bin

AHEAD = np.uint64(64)  # rows between fetching a slot into the cache and reading it
FEW_SLOTS = 1 << 16  # they stay in a core's second-level cache, so fetching them early takes longer than it saves

_ONE = np.uint64(1)
_WORD = np.uint64(32)
_RADIX = 1 << 11
_TILE = 128  # rows of CSR written together: their cache lines stay in the first-level cache


@jit
def first_slot(hashed, n_slots):
    """Return the slot selected by the top bits of a hash; the number of slots is a power of two."""
    return (hashed >> _WORD) * np.uint64(n_slots) >> _WORD


@jit
def _probe(hashed, slots, keys):
    """Return the slot of the bin with this hash, or the empty slot where it belongs."""
    last = np.uint64(slots.shape[0] - 1)
    slot = first_slot(hashed, slots.shape[0])
    while slots[slot] != EMPTY and keys[slots[slot]] != hashed:
        slot = (slot + _ONE) & last
    return slot


@jit
def _insert_grid(hashes, begin, most, slots, keys, counts, n_bins, codes):
    n_rows, is_large = np.uint64(hashes.shape[0]), slots.shape[0] > FEW_SLOTS
    room = min(np.uint64(slots.shape[0] // LOAD), np.uint64(most))
    for i in range(np.uint64(begin), n_rows):
        if is_large:  # in a function of its own, this would count references to arrays in every iteration
            fetch(slots, first_slot(hashes[min(i + AHEAD, n_rows - _ONE)], slots.shape[0]))
        slot = _probe(hashes[i], slots, keys)
        code = slots[slot]
        if code == EMPTY:
            if n_bins == room:
                return i, n_bins
            code = np.uint32(n_bins)
            slots[slot] = code
            keys[code] = hashes[i]
            counts[code] = 0
            n_bins += _ONE
        codes[i] = code
        counts[code] += 1
    return n_rows, n_bins


@parallel_jit(work="hashes")
def insert(hashes, first_row, most, done, slots, slot_starts, keys, counts, n_bins, codes):
    """Number the bins of each grid in order of appearance, until its table is full or it has `most` bins.

    Parameters
    ----------
    hashes : (n_grids, n_rows) uint64
    first_row : int; column of the first row in `codes`
    most : int; maximum number of bins of a grid
    done : (n_grids,) int64; first row to insert, written: n_rows, or the row that found no room
    slots : (n_slots,) uint32, tables one after another, written
    slot_starts : (n_grids + 1,) int64; each table's size is a power of two
    keys, counts : (n_slots // LOAD,) uint64 and int64, written
    n_bins : (n_grids,) uint64, written
    codes : (n_grids, n_all_rows) uint16 or uint32, written from column `first_row`
    """
    for p in prange(hashes.shape[0]):
        first, last = slot_starts[p], slot_starts[p + 1]
        bins = slice(first // LOAD, last // LOAD)
        done[p], n_bins[p] = _insert_grid(
            hashes[p], done[p], most, slots[first:last], keys[bins], counts[bins], n_bins[p], codes[p, first_row:]
        )


@parallel_jit(work="keys")
def index(keys, key_starts, n_bins, slot_starts, slots):
    """Build the tables of bins whose numbers are known.

    Parameters
    ----------
    keys : (n_keys,) uint64, distinct within a grid
    key_starts : (n_grids + 1,) int64; first key of each grid
    n_bins : (n_grids,) uint64; number of keys in use
    slot_starts : (n_grids + 1,) int64
    slots : (n_slots,) uint32, written
    """
    for p in prange(n_bins.shape[0]):
        table = slots[slot_starts[p] : slot_starts[p + 1]]
        grid_keys = keys[key_starts[p] : key_starts[p + 1]]
        table[:] = EMPTY
        for code in range(n_bins[p]):
            table[_probe(grid_keys[code], table, grid_keys)] = np.uint32(code)


@jit
def _find_grid(hashes, slots, keys, none, codes):
    n_rows, is_large = np.uint64(hashes.shape[0]), slots.shape[0] > FEW_SLOTS
    for i in range(n_rows):
        if is_large:
            fetch(slots, first_slot(hashes[min(i + AHEAD, n_rows - _ONE)], slots.shape[0]))
        code = slots[_probe(hashes[i], slots, keys)]
        codes[i] = none if code == EMPTY else code


@parallel_jit(work="hashes")
def find(hashes, first_row, slots, slot_starts, keys, key_starts, none, codes):
    """Look up the number of each row's bin in each grid.

    Parameters
    ----------
    hashes, first_row, codes : as in `insert`
    slots, slot_starts, keys, key_starts : tables, as `index` builds them
    none : uint32; code for a bin that is not in the table
    """
    for p in prange(hashes.shape[0]):
        table = slots[slot_starts[p] : slot_starts[p + 1]]
        _find_grid(hashes[p], table, keys[key_starts[p] : key_starts[p + 1]], none, codes[p, first_row:])


@parallel_jit(work="hashes")
def find_ragged(hashes, starts, slots, slot_starts, keys, key_starts, none, codes):
    """Look up the numbers of bins, for a different number of hashes in each grid.

    Parameters
    ----------
    hashes : (n_hashes,) uint64
    starts : (n_grids + 1,) int64; first hash of each grid
    slots, slot_starts, keys, key_starts, none : as in `find`
    codes : (n_hashes,) uint32, written
    """
    for p in prange(starts.shape[0] - 1):
        own, table = slice(starts[p], starts[p + 1]), slots[slot_starts[p] : slot_starts[p + 1]]
        _find_grid(hashes[own], table, keys[key_starts[p] : key_starts[p + 1]], none, codes[own])


@parallel_jit(work="hashes")
def fold(hashes, first_row, n_slots, codes):
    """Select one of `n_slots` columns by the top bits of each hash.

    Parameters
    ----------
    hashes, first_row, codes : as in `insert`
    n_slots : uint64, below 2^32
    """
    for p in prange(hashes.shape[0]):
        written = codes[p, first_row : first_row + hashes.shape[1]]
        for i in range(written.shape[0]):
            written[i] = first_slot(hashes[p, i], n_slots)


@jit
def _digit(hashed, falling, level):
    """Return a digit of the sort key (decreasing count, hash); levels 0 and 1 are the top bits of the hash."""
    if level < 2:
        return (hashed >> np.uint64(42 + 11 * level)) & np.uint64(_RADIX - 1)
    return (falling >> np.uint64(11 * (level - 2))) & np.uint64(_RADIX - 1)


@jit
def _sort_by_digit(keys, counts, largest, level, order, spare):
    starts = np.zeros(_RADIX + 1, np.int64)
    for i in range(order.shape[0]):
        b = order[i]
        starts[_digit(keys[b], np.uint64(largest - counts[b]), level) + _ONE] += 1
    for k in range(_RADIX):
        starts[k + 1] += starts[k]
    for i in range(order.shape[0]):
        b = order[i]
        digit = _digit(keys[b], np.uint64(largest - counts[b]), level)
        spare[starts[digit]] = b
        starts[digit] += 1
    for i in range(order.shape[0]):
        order[i] = spare[i]


@jit
def _settle(keys, counts, order):
    """Sort the few neighbors with the same count and the same top 22 bits of the hash."""
    for i in range(1, order.shape[0]):
        b = order[i]
        k = i
        while k > 0 and counts[order[k - 1]] == counts[b] and keys[order[k - 1]] > keys[b]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = b


@jit
def _rank_grid(keys, counts, order, spare):
    largest = np.int64(0)
    for b in range(counts.shape[0]):
        largest = max(largest, counts[b])
    # Sort by two digits of the hash, then by the digits of the counts.
    level = np.int64(0)  # a literal would compile a second version
    while level < 2 or largest >> (11 * (level - 2)) > 0:
        _sort_by_digit(keys, counts, largest, level, order, spare)
        level += 1
    _settle(keys, counts, order)


@jit
def _reorder(values, order):
    before = values.copy()
    for b in range(order.shape[0]):
        values[b] = before[order[b]]


@parallel_jit(work="keys")
def rank(keys, counts, starts, fixed, order, spare, new_codes):
    """Sort each grid's bins by descending count, equal ones by ascending hash; the first `fixed` bins stay.

    Parameters
    ----------
    keys, counts : (n_keys,) uint64 and int64, sorted in place
    starts : (n_grids + 1,) int64; first bin of each grid
    fixed : (n_grids,) int64
    order, spare : (n_keys,) uint32, scratch
    new_codes : (n_keys,) uint32, written: place of each bin after the sort
    """
    for p in prange(fixed.shape[0]):
        tail = slice(starts[p] + fixed[p], starts[p + 1])
        grid_keys, grid_counts, grid_order = keys[tail], counts[tail], order[tail]
        for b in range(grid_order.shape[0]):
            grid_order[b] = b
        _rank_grid(grid_keys, grid_counts, grid_order, spare[tail])
        _reorder(grid_keys, grid_order)
        _reorder(grid_counts, grid_order)
        grid_codes = new_codes[starts[p] : starts[p + 1]]
        for b in range(fixed[p]):
            grid_codes[b] = b
        for b in range(grid_order.shape[0]):
            grid_codes[fixed[p] + grid_order[b]] = fixed[p] + b


@parallel_jit(work="codes")
def recode(codes, new_codes, starts, out):
    """Replace each grid's codes: `out[p, i] = new_codes[starts[p] + codes[p, i]]`.

    Parameters
    ----------
    codes, out : (n_grids, n_rows) uint16 or uint32; `out` is written, and may be `codes`
    new_codes : (n_keys,) uint32
    starts : (n_grids + 1,) int64
    """
    for p in prange(codes.shape[0]):
        grid_codes = new_codes[starts[p] : starts[p + 1]]
        for i in range(codes.shape[1]):
            out[p, i] = grid_codes[codes[p, i]]


@parallel_jit(work="codes")
def count_entries(codes, column_starts, out):
    """Count the grids in which each row has a bin.

    Parameters
    ----------
    codes, column_starts : as in `to_csr`
    out : (n_rows,) int64, written
    """
    n_rows = codes.shape[1]
    n_tiles = (n_rows + _TILE - 1) // _TILE
    for tile in prange(n_tiles):
        rows = slice(tile * _TILE, min(n_rows, tile * _TILE + _TILE))
        entries = out[rows]
        entries[:] = 0
        for p in range(codes.shape[0]):
            tile_codes, n_bins = codes[p, rows], np.uint32(column_starts[p + 1] - column_starts[p])
            for i in range(tile_codes.shape[0]):
                entries[i] += tile_codes[i] < n_bins


@parallel_jit(work="codes")
def to_csr(codes, column_starts, value, row_starts, columns, values):
    """Write the column numbers and values of a CSR matrix; entries of a row are in order of their grid.

    Parameters
    ----------
    codes : (n_grids, n_rows) uint16 or uint32; codes beyond the bins of a grid are no bin
    column_starts : (n_grids + 1,) int64
    value : float64; value of every entry of the matrix
    row_starts : (n_rows + 1,) int64
    columns : (n_entries,) int32 or int64, written
    values : (n_entries,) float32 or float64, written
    """
    n_rows = codes.shape[1]
    n_tiles = (n_rows + _TILE - 1) // _TILE
    for tile in prange(n_tiles):
        first, last = tile * _TILE, min(n_rows, tile * _TILE + _TILE)
        place = row_starts[first:last].copy()
        for p in range(codes.shape[0]):
            tile_codes, n_bins = codes[p, first:last], np.uint32(column_starts[p + 1] - column_starts[p])
            for i in range(tile_codes.shape[0]):
                if tile_codes[i] < n_bins:
                    columns[place[i]] = column_starts[p] + tile_codes[i]
                    place[i] += 1
        values[row_starts[first] : row_starts[last]] = value
