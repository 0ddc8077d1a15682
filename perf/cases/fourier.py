"""RandomFourier compared with RBFSampler and with product and writing; fastfood with iid; CSR with dense input."""

from functools import partial

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline

from binfeat import CGRidgeClassifier, RandomFourier
from binfeat._common.subsets import slices
from binfeat._threads import share_blocks
from binfeat.features.fourier.features import _by_weights, _fill, _writer
from perf.data import adult_a9a
from perf.floors import over_floor, rates
from perf.measure import interleave, stopwatch
from perf.record import Row
from perf.suite import guarded

N_ROWS, QUICK_ROWS = 100_000, 10_000
N_COMPONENTS = 1_000
GAMMA = 0.02  # for Adult; about 1 / (inputs * variance)
BLOCK = 512


def run(quick):
    n_rows = QUICK_ROWS if quick else N_ROWS
    yield from guarded("float32", _against_rbf_sampler, n_rows, np.float32, 4.5, quick)
    yield from guarded("float64", _against_rbf_sampler, n_rows, np.float64, 3, quick)
    yield from guarded("fastfood", _fastfood, n_rows // 50, quick)
    yield from guarded("CSR input", _sparse_input, n_rows, quick)
    yield from guarded("Adult", _ridge_on_adult, quick)


def _against_rbf_sampler(n_rows, dtype, reach, quick):
    X = np.random.default_rng(0).normal(size=(n_rows, 54)).astype(dtype)
    pairs = RandomFourier(n_components=N_COMPONENTS, random_state=0).fit(X)
    offset = RandomFourier(n_components=N_COMPONENTS, phase="offset", random_state=0).fit(X)
    theirs = RBFSampler(n_components=N_COMPONENTS, random_state=0).fit(X)
    _require_same_features(offset, theirs, X[:1_000])
    given = np.ones((n_rows, N_COMPONENTS), dtype)
    project, shape = _by_weights(X, pairs.random_weights_), (BLOCK, pairs.random_weights_.shape[1])
    write_pairs = _writer(None, N_COMPONENTS, X.dtype)
    calls = {
        "pairs": partial(pairs.transform, X),
        "offset": partial(offset.transform, X),
        "RBFSampler": partial(theirs.transform, X),
        "given": partial(_fill, given, project, write_pairs, shape, None),
        "product": partial(_multiply_blocks, n_rows, project, shape, dtype),
        "writing": lambda: _write(np.empty((n_rows, N_COMPONENTS), dtype)),
        "writing, given": partial(_write, given),
    }
    repeats = dict.fromkeys(calls, 3 if quick else 15) | {"RBFSampler": 3 if quick or dtype == np.float64 else 15}
    times = interleave({name: stopwatch(call) for name, call in calls.items()}, repeats)
    name = np.dtype(dtype).name
    yield Row(f"{name}, transform / RBFSampler.transform", times["pairs"], times["RBFSampler"], (">=", reach))
    bound = ("<=", 1.05) if dtype == np.float32 else None
    for kind, ours, writing in (("new", "pairs", "writing"), ("given", "given", "writing, given")):
        floor = times["product"].best + times[writing].best
        yield Row(f"{name}, transform / product + writing, both into {kind} memory", times[ours], floor, bound)
    yield over_floor(f"{name}, transform", times["pairs"], _floor(X, pairs.random_weights_.shape[1], rates(quick)))
    yield Row(f"{name}, product alone", times["product"])
    yield Row(f"{name}, writing alone", times["writing"])
    yield Row(f"{name}, phase='offset' / RBFSampler.transform", times["offset"], times["RBFSampler"])


def _floor(X, n_frequencies, known):
    values = len(X) * N_COMPONENTS
    return {
        "product": 2 * X.size * n_frequencies * known["SGEMM" if X.dtype == np.float32 else "DGEMM"],
        "cos and sin": values * known[f"cos and sin, {X.dtype}"],
        "new memory": values * X.itemsize * known["memory: new, written"],
    }


def _require_same_features(ours, theirs, X):
    copy = RandomFourier(**ours.get_params()).fit(X)
    copy.random_weights_, copy.random_offset_ = theirs.random_weights_, theirs.random_offset_
    if not np.allclose(copy.transform(X), theirs.transform(X), rtol=0, atol=1e-4 / np.sqrt(N_COMPONENTS)):
        raise RuntimeError("RBFSampler makes other features than RandomFourier: nothing to compare.")


def _write(Z):
    """Write an array of the size of the features by all threads, from a block that stays in the cache."""
    block = np.ones((BLOCK, N_COMPONENTS), Z.dtype)

    def work(blocks):
        for rows in blocks:
            Z[rows] = block[: len(Z[rows])]

    share_blocks(work, slices(len(Z), BLOCK), Z.size)
    return Z


def _multiply_blocks(n_rows, project, shape, dtype):
    """Multiply all rows in blocks; like the map, write them to scratch that stays in the cache."""

    def work(blocks):
        own = np.empty(shape, dtype)
        for rows in blocks:
            project(rows, own[: rows.stop - rows.start])

    share_blocks(work, slices(n_rows, BLOCK), n_rows * shape[1])


def _fastfood(n_rows, quick):
    X = np.random.default_rng(0).normal(size=(n_rows, 1024)).astype(np.float32)
    calls = {
        sampler: partial(RandomFourier(n_components=16_384, sampler=sampler, random_state=0).fit(X).transform, X)
        for sampler in ("fastfood", "iid")
    }
    times = interleave({name: stopwatch(call) for name, call in calls.items()}, 3 if quick else 7)
    yield Row("1,024 inputs -> 16,384, fastfood / iid", times["fastfood"], times["iid"], (">=", 5))


def _sparse_input(n_rows, quick):
    """Yield a row for binary inputs like Adult (a9a)."""
    rows = sparse.random(n_rows, 123, density=0.11, format="csr", dtype=np.float32, random_state=0, data_rvs=np.ones)
    dense = rows.toarray()
    ours = RandomFourier(n_components=N_COMPONENTS, random_state=0).fit(rows)
    calls = {"CSR": partial(ours.transform, rows), "dense": partial(ours.transform, dense)}
    times = interleave({name: stopwatch(call) for name, call in calls.items()}, 3 if quick else 15)
    yield Row("CSR at 11 % density / dense", times["CSR"], times["dense"], (">=", 1))


def _ridge_on_adult(quick):
    """Yield rows of a whole task on a9a: features, a path of penalties, and the fit with the best one."""
    data = adult_a9a()
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    n_rows = 1_500 if quick else len(y)
    alphas = np.geomspace(0.01, 100, 8)
    ours = make_pipeline(
        RandomFourier(gamma=GAMMA, n_components=2_000, random_state=0),
        CGRidgeClassifier(alphas=alphas, random_state=0),
    )
    theirs = make_pipeline(
        RBFSampler(gamma=GAMMA, n_components=2_000, random_state=0), RidgeClassifierCV(alphas=alphas)
    )
    calls = {
        "ours": stopwatch(partial(ours.fit, X[:n_rows], y[:n_rows])),
        "theirs": stopwatch(partial(theirs.fit, X[:n_rows], y[:n_rows])),
    }
    times = interleave(calls, {"ours": 3, "theirs": 1})
    errors = [100 * (1 - model.score(X_test, y_test)) for model in (ours, theirs)]
    what = "Adult, 2,000 features and 8 alphas / RBFSampler and RidgeClassifierCV"
    yield Row(what, times["ours"], times["theirs"], (">=", 5))
    yield Row("Adult, test error minus RBFSampler's", errors[0] - errors[1], reach=("<=", 0.1), unit="points")
    yield Row("Adult, test error", errors[0], unit="%")
