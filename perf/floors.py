"""Measured speed limits of this processor: seconds per byte, operation and look-up."""

import functools

import numba
import numpy as np

from binfeat._engine.bin_tables import LOAD
from binfeat._engine.hashing import _add_column
from binfeat._engine.trig import WRITERS
from perf.measure import interleave, stopwatch
from perf.record import Row

_BYTES = 2**28  # of an array larger than all caches
_IN_CACHE = 512  # rows of a block that fits into the first-level cache
_SIZES = tuple(2**k for k in range(8, 23, 2))  # entries of tables for look-ups
_PRODUCT = 1500  # rows and columns of a matrix product
_OF_MEMORY, _OF_ARITHMETIC = 0.8, 0.7  # shares of the floor that are goals
_options = {"error_model": "numpy", "cache": True, "parallel": True}


@numba.njit(**_options)
def _write(out):
    for i in numba.prange(out.size):
        out[i] = 1.0


@numba.njit(**_options)
def _read(values, sums):
    """Sum integers: their sum does not depend on the order, so it is vectorized."""
    n = np.uint64(values.size // sums.size)
    for part in numba.prange(sums.size):
        total = np.uint64(0)
        for i in range(n):
            total += values[np.uint64(part) * n + i]
        sums[part] = total


@numba.njit(**_options)
def _copy(values, out):
    for i in numba.prange(out.size):
        out[i] = values[i]


@numba.njit(**_options)
def _gather(tables, codes, rounds, out):
    """Add entries of a table per thread to values in its first-level cache."""
    for thread in numba.prange(out.shape[0]):
        for k in range(rounds):
            first = np.uint64(k * out.shape[1] % codes.size)
            for i in range(np.uint64(out.shape[1])):
                out[thread, i] += tables[thread, codes[first + i]]


@numba.njit(**_options)
def _scatter(tables, codes, rounds, values):
    for thread in numba.prange(values.shape[0]):
        for k in range(rounds):
            first = np.uint64(k * values.shape[1] % codes.size)
            for i in range(np.uint64(values.shape[1])):
                tables[thread, codes[first + i]] += values[thread, i]


@numba.njit(**_options)
def _hash(x, scale, shift, key, rounds, out):
    """Compute terms of the hash, for rows in the first-level cache."""
    for thread in numba.prange(out.shape[0]):
        for _ in range(rounds):
            _add_column(x, np.uint64(thread), 1.0, scale, shift, key, np.uint64(0), out[thread])


def _trig(write_pairs):
    @numba.njit(**{**_options, "cache": False})
    def cos_sin(projection, scale, rounds, out):
        for thread in numba.prange(out.shape[0]):
            for _ in range(rounds):
                write_pairs(projection[thread], scale, out[thread])

    return cos_sin


def _memory_calls():
    touched, other = np.ones(_BYTES // 8), np.ones(_BYTES // 8)
    sums = np.empty(64, np.uint64)
    return {
        "memory: new, written": (lambda: _write(np.empty(_BYTES // 8)), _BYTES),
        "memory: touched, written": (lambda: _write(touched), _BYTES),
        "memory: read": (lambda: _read(touched.view(np.uint64), sums), _BYTES),
        "memory: copied": (lambda: _copy(other, touched), _BYTES),
    }


def _product_calls(n):
    calls = {}
    for name, dtype in (("SGEMM", np.float32), ("DGEMM", np.float64)):
        A, out = np.ones((n, n), dtype), np.empty((n, n), dtype)
        calls[name] = functools.partial(np.matmul, A, A, out=out), 2 * n**3
    return calls


def _table_calls(sizes):
    rng, threads, calls = np.random.default_rng(0), numba.get_num_threads(), {}
    values, rounds = np.ones((threads, 4096)), 256
    for size in sizes:
        codes, tables = rng.integers(size, size=2**18).astype(np.uint32), np.ones((threads, size))
        for name, call in (("gather", _gather), ("scatter", _scatter)):
            work = functools.partial(call, tables, codes, rounds, values)
            calls[f"{name}, {size:,} entries"] = work, threads * values.shape[1] * rounds
    return calls


def _arithmetic_calls(rounds=2000):
    threads = numba.get_num_threads()
    x, hashes = np.full((threads, _IN_CACHE), 0.3), np.zeros((threads, _IN_CACHE), np.uint64)
    terms = functools.partial(_hash, x, 1.7, 0.4, np.uint64(2**61 + 15), rounds, hashes)
    calls = {"hash, a term": (terms, rounds * hashes.size)}
    for dtype, (write_pairs, _) in WRITERS.items():
        projection, out = np.full((threads, 8, 128), 0.3, dtype), np.empty((threads, 8, 256), dtype)
        trig = functools.partial(_trig(write_pairs), projection, dtype.type(1.0), rounds // 8, out)
        calls[f"cos and sin, {dtype}"] = trig, rounds // 8 * out.size
    return calls


@functools.cache
def rates(quick=False):
    """Return seconds per byte, operation, look-up, term and value, with all threads.

    Returns
    -------
    rates : dict of str to float
    """
    sizes, known = _SIZES[::3] if quick else _SIZES, {}
    computed = _product_calls(_PRODUCT // 3 if quick else _PRODUCT) | _table_calls(sizes)
    computed |= _arithmetic_calls(200 if quick else 2000)
    for calls in (_memory_calls(), computed):  # in turn: a virtual computer takes back unused memory
        times = interleave({name: stopwatch(call) for name, (call, _) in calls.items()}, 2 if quick else 7)
        known |= {name: times[name].best / work for name, (_, work) in calls.items()}
    return known


def look_up(kind, n_entries, known):
    """Return seconds of a "gather" or "scatter" with a table of at least this many entries; `known` are `rates`."""
    of_size = {int(name.split()[1].replace(",", "")): rate for name, rate in known.items() if kind in name}
    return of_size[min((size for size in of_size if size >= n_entries), default=max(of_size))]


def find_bins(X, n_grids, bins_of_grid, known):
    """Return the least seconds to find the bins of rows, as parts for `over_floor`."""
    return {
        "memory read": X.nbytes * known["memory: read"],
        "hashing": np.count_nonzero(X) * n_grids * known["hash, a term"],  # a column of zeros adds no terms
        "look-ups": len(X) * n_grids * look_up("gather", LOAD * bins_of_grid, known),
    }


def over_floor(what, ours, parts):
    """Return a row that compares a figure with the sum of its floors, and names the largest.

    Parameters
    ----------
    what : str
    ours : Times
    parts : dict of str to float
        Least seconds of each kind of work; work that moves bytes has "memory" in its name.
    """
    binds = max(parts, key=parts.get)
    share = _OF_MEMORY if "memory" in binds else _OF_ARITHMETIC
    return Row(f"{what} / floor, mostly {binds}", ours, sum(parts.values()), ("<=", round(1 / share, 2)))
