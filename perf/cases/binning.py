"""RandomBinning on Forest Cover and on CSR, compared with NumPy and RandomTreesEmbedding; memory."""

from functools import partial

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomTreesEmbedding

from binfeat import RandomBinning, transform
from perf import numpy_binning
from perf.data import forest_cover_for
from perf.floors import find_bins, over_floor, rates
from perf.measure import bytes_of, interleave, peak_memory, stopwatch
from perf.record import Row
from perf.suite import guarded

N_GRIDS = 50
QUICK_ROWS = 15_000
SMALL_ROWS = 30_000  # with fewer, the given length scales would be too fine, and fits would warn
N_DRAWN, QUICK_DRAWN, DRAWN_INPUTS, DRAWN_GRIDS, DRAWN_GAMMA = 1_000_000, 100_000, 20, 100, 0.05  # for `transform`
SPARSE_GAMMA = 0.2  # about 4,500 bins per grid on the sparse table


def run(quick):
    n_rows = QUICK_ROWS if quick else None
    X, gamma, _, row = forest_cover_for(n_rows)
    yield row
    ours = RandomBinning(gamma=gamma, n_grids=N_GRIDS, random_state=0)
    yield from guarded("against references", _against_references, ours, X, quick)
    yield from guarded("CSR input", _sparse_input, quick)
    yield from guarded("peak memory", _memory, ours, X, n_rows)
    yield from guarded("peak memory of transform", _memory_of_transform, QUICK_DRAWN if quick else N_DRAWN)


def _against_references(ours, X, quick):
    ours.fit(X)
    _require_same_bins(ours, X[:SMALL_ROWS])
    trees = RandomTreesEmbedding(n_estimators=N_GRIDS, max_depth=10, n_jobs=2, random_state=0).fit(X[:50_000])
    calls = {
        "fit_transform": partial(ours.fit_transform, X),
        "transform": partial(ours.transform, X),
        "trees": partial(trees.transform, X),
        "dot": partial(numpy_binning.fit_transform, X, ours._grids, numpy_binning.hash_whole),
        "inputs": partial(numpy_binning.fit_transform, X, ours._grids, numpy_binning.hash_by_input),
    }
    repeats = {"fit_transform": 7, "transform": 7, "trees": 7, "dot": 1, "inputs": 2}
    if quick:
        repeats = {**dict.fromkeys(calls, 3), "dot": 1}
    times = interleave({name: stopwatch(call) for name, call in calls.items()}, repeats)
    floor = _floor(X, ours.kappa_, rates(quick))
    row_grids = X.shape[0] * N_GRIDS / times["fit_transform"].best / 1e6
    return [
        Row("fit_transform / NumPy, integer dot", times["fit_transform"], times["dot"], (">=", 25)),
        Row("fit_transform / NumPy, input by input", times["fit_transform"], times["inputs"]),
        Row("fit_transform / RandomTreesEmbedding.transform", times["fit_transform"], times["trees"], (">=", 6)),
        Row("transform / RandomTreesEmbedding.transform", times["transform"], times["trees"], (">=", 6)),
        Row("fit_transform, row-grids a second", row_grids, reach=(">=", 60), unit="M"),
        *(over_floor(name, times[name], floor) for name in ("fit_transform", "transform")),
    ]


def _floor(X, bins_of_grid, known):
    entries = len(X) * N_GRIDS * (8 + 4)
    written = {"new memory": entries * known["memory: new, written"]}
    return find_bins(X, N_GRIDS, bins_of_grid, known) | written


def _require_same_bins(ours, X):
    Z = RandomBinning(**ours.get_params()).fit_transform(X)
    for hashes_of in (numpy_binning.hash_whole, numpy_binning.hash_by_input):
        reference = numpy_binning.fit_transform(X, ours._grids, hashes_of)
        counts, expected = (np.sort(np.bincount(matrix.indices)) for matrix in (Z, reference))
        if not np.array_equal(counts, expected):
            raise RuntimeError(f"{hashes_of.__name__} finds other bins than RandomBinning: nothing to compare.")


def _sparse_input(quick):
    rows = sparse.random(20_000, 1_000, density=0.01, format="csr", random_state=0)
    dense = rows.toarray()
    ours = RandomBinning(gamma=SPARSE_GAMMA, n_grids=100, random_state=0).fit(rows)
    calls = {
        "hash CSR": partial(ours._grids.hash, rows),
        "hash dense": partial(ours._grids.hash, dense),
        "CSR": partial(ours.fit_transform, rows),
        "dense": partial(ours.fit_transform, dense),
    }
    times = interleave({name: stopwatch(call) for name, call in calls.items()}, 3 if quick else 9)
    return [
        Row("CSR input / dense, hashing", times["hash CSR"], times["hash dense"], (">=", 10)),
        Row("CSR input / dense, fit_transform", times["CSR"], times["dense"], (">=", 5)),
        Row("CSR input, bins a grid", ours.kappa_, unit="bins"),
    ]


def _memory(ours, X, n_rows):
    Z = ours.fit_transform(X)
    own = bytes_of(Z)
    peak = peak_memory(_prepare_memory, n_rows)
    yield Row("peak memory without X / the CSR", peak and peak / 1e6, own / 1e6, ("<=", 1.5), "MB")


def _prepare_memory(n_rows):
    X, gamma, _, _ = forest_cover_for(n_rows)
    ours = RandomBinning(gamma=gamma, n_grids=N_GRIDS, random_state=0)
    ours.fit_transform(X[:SMALL_ROWS])
    return partial(ours.fit_transform, X)


def _memory_of_transform(n_rows):
    call = _prepare_transform(n_rows)
    own = bytes_of(call())
    del call
    peak = peak_memory(_prepare_transform, n_rows)
    yield Row("transform, peak memory without X / the CSR", peak and peak / 1e6, own / 1e6, ("<=", 1.2), "MB")


def _prepare_transform(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, DRAWN_INPUTS))
    call = partial(transform, gamma=DRAWN_GAMMA, n_grids=DRAWN_GRIDS)
    call(X[:SMALL_ROWS])
    return partial(call, X)
