"""Time and memory against rows, grids, inputs, classes and threads, with fitted exponents; synthetic tables."""

import warnings
from functools import partial

import numba
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import binfeat
from binfeat import CGRidge, RandomBinning, RandomFourier
from perf.measure import interleave, peak_memory, stopwatch
from perf.record import Row
from perf.suite import guarded

N_INPUTS, N_GRIDS, GAMMA = 10, 32, 0.1
STREAM_BLOCK, STREAM_FEATURES = 100_000, 2**16
ROWS, STREAM_ROWS, MEMORY_ROWS = (10**4, 10**5, 10**6), (10**4, 10**5, 10**6, 10**7), (10**5, 10**6)
QUICK_ROWS = (1_000, 4_000)
GRIDS, INPUTS, CLASSES = (8, 32, 128, 512), (4, 16, 64, 256), (1, 4, 16, 64)


def pictures(record):
    """One panel for each thing that grows, times and bytes apart."""
    from perf import curves

    seconds, megabytes = ([row for row in record["rows"] if row["unit"] == unit] for unit in ("s", "MB"))
    return {
        "scaling_time.png": curves.panels(seconds, "seconds"),
        "scaling_memory.png": curves.panels(megabytes, "MB"),
    }


def run(quick):
    sizes = {} if quick else {"rows": ROWS, "stream": STREAM_ROWS, "memory": MEMORY_ROWS}
    n_rows, repeats = (4_000, 1) if quick else (100_000, 5)
    yield from guarded("rows", _rows, sizes.get("rows", QUICK_ROWS), repeats)
    yield from guarded("rows, streamed", _stream_rows, sizes.get("stream", QUICK_ROWS), 1 if quick else 2)
    yield from guarded("grids", _grids, GRIDS[:3] if quick else GRIDS, n_rows, repeats)
    yield from guarded("inputs", _inputs, INPUTS[:3] if quick else INPUTS, n_rows, repeats)
    yield from guarded("classes", _classes, CLASSES[:3] if quick else CLASSES, n_rows, repeats)
    yield from guarded("threads", _threads, n_rows, repeats)
    yield from guarded("memory", _memory, sizes.get("memory", QUICK_ROWS[-1:]), sizes.get("stream", QUICK_ROWS[-1:]))


def _table(n_rows, n_inputs=N_INPUTS, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_inputs))


def _codes(n_grids=N_GRIDS, gamma=GAMMA):
    return RandomBinning(gamma=gamma, n_grids=n_grids, output="codes", random_state=0)


def _ridge(Z, y):
    """A fit of ten iterations, whatever the system is."""
    return partial(_ten_iterations, CGRidge(alpha=0.1, tol=0, max_iter=10), Z, y)


def _ten_iterations(machine, Z, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(Z, y)


def _target(X, n_targets=1):
    return np.sin(np.outer(X[:, 0], np.arange(1, n_targets + 1)))


def _grow(what, axis, calls, repeats):
    """Times of a call as one thing grows, and their exponent."""
    next(iter(calls.values()))()  # compiles
    times = interleave({x: stopwatch(call) for x, call in calls.items()}, repeats)
    for x, own in times.items():
        yield Row(f"{what}, {x:,} {axis}", own, at={"panel": axis, "series": what, "x": x})
    yield _exponent(f"{what}, exponent of its time in the {axis}", {x: own.best for x, own in times.items()})


def _exponent(what, figures):
    slope = np.polyfit(np.log(list(figures)), np.log(list(figures.values())), 1)[0]
    return Row(what, float(slope), unit="")


def _rows(sizes, repeats):
    X = _table(sizes[-1])
    y = _target(X)
    yield from _grow("binning", "rows", {n: partial(_codes().fit_transform, X[:n]) for n in sizes}, repeats)
    fourier = RandomFourier(n_components=128, random_state=0).fit(X[:1_000].astype(np.float32))
    yield from _grow(
        "Fourier", "rows", {n: partial(fourier.transform, X[:n].astype(np.float32)) for n in sizes}, repeats
    )
    yield from _grow("ridge", "rows", {n: _ridge(_codes().fit_transform(X[:n]), y[:n]) for n in sizes}, repeats)


def _stream(n_rows):
    """Hashed features of blocks that are drawn, used once and forgotten: the right side of a ridge problem."""
    total = np.zeros(STREAM_FEATURES)
    for start in range(0, n_rows, STREAM_BLOCK):
        X = _table(min(STREAM_BLOCK, n_rows - start), seed=start)
        Z = binfeat.transform(X, gamma=GAMMA, n_grids=N_GRIDS, n_features=STREAM_FEATURES)
        total += Z.T @ _target(X)[:, 0]
    return total


def _stream_rows(sizes, repeats):
    yield from _grow("hashed blocks", "rows", {n: partial(_stream, n) for n in sizes}, repeats)


def _grids(sizes, n_rows, repeats):
    X = _table(n_rows)
    y = _target(X)
    yield from _grow("binning", "grids", {p: partial(_codes(p).fit_transform, X) for p in sizes}, repeats)
    yield from _grow("ridge", "grids", {p: _ridge(_codes(p).fit_transform(X), y) for p in sizes}, repeats)


def _inputs(sizes, n_rows, repeats):
    """Gamma falls as inputs are added, so that the number of bins stays."""
    X = _table(n_rows, sizes[-1])
    codes = {d: _codes(gamma=GAMMA * N_INPUTS / d) for d in sizes}
    calls = {d: partial(own.fit_transform, np.ascontiguousarray(X[:, :d])) for d, own in codes.items()}
    yield from _grow("binning", "inputs", calls, repeats)


def _classes(sizes, n_rows, repeats):
    X = _table(n_rows)
    Z = _codes().fit_transform(X)
    yield from _grow("ridge", "classes", {k: _ridge(Z, _target(X, k)) for k in sizes}, repeats)


def _threads(n_rows, repeats):
    X = _table(n_rows)
    Z, counts = _codes().fit_transform(X), [2**k for k in range(numba.config.NUMBA_NUM_THREADS.bit_length())]
    if len(counts) < 2:
        yield Row("threads: this machine has one, skipped", None)
        return
    works = {"binning": partial(_codes().fit_transform, X), "ridge": _ridge(Z, _target(X))}
    for what, call in works.items():
        yield from _grow(what, "threads", {k: partial(_with_threads, k, call) for k in counts}, repeats)


def _with_threads(n_threads, call):
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(n_threads)
        return call()
    finally:
        numba.set_num_threads(before)


def _memory(sizes, stream_sizes):
    """Peaks of new processes beyond what was there before, and the bytes of the result."""
    yield from _grow_bytes("binning, counted", {n: _codes().fit_transform(_table(n)).nbytes for n in sizes})
    yield from _grow_bytes("binning, peak", {n: peak_memory(_prepare_codes, n) for n in sizes})
    yield from _grow_bytes("hashed blocks, peak", {n: peak_memory(_prepare_stream, n) for n in stream_sizes})


def _grow_bytes(what, n_bytes):
    for n, own in n_bytes.items():
        at = {"panel": "rows", "series": what, "x": n}
        yield Row(f"{what}, {n:,} rows", own and own / 1e6, unit="MB", at=at)
    if all(n_bytes.values()) and len(n_bytes) > 1:
        yield _exponent(f"{what}, exponent in the rows", n_bytes)


def _prepare_codes(n_rows):
    X = _table(n_rows)
    _codes().fit_transform(X[:1_000])
    return partial(_codes().fit_transform, X)


def _prepare_stream(n_rows):
    _stream(1_000)
    return partial(_stream, n_rows)
