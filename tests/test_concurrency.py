"""Threads, forked and spawned processes, joblib, and threading layers: the results of one thread."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numba
import numpy as np
import pytest
from hard import easy, hard

import binfeat

N_THREADS = 16


def table(n_rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    return X, np.sin(X[:, 0]) + X[:, 1]


X, Y = table()
MADE = {
    "binning": lambda: binfeat.RandomBinning(gamma=0.2, n_grids=8, random_state=0),
    "codes": lambda: binfeat.RandomBinning(gamma=0.2, n_grids=8, random_state=0, output="codes"),
    "fastfood": lambda: binfeat.RandomFourier(gamma=0.2, n_components=32, sampler="fastfood", random_state=0),
    "ridge": lambda: binfeat.CGRidge(alpha=0.1),
    "exact": lambda: binfeat.KernelMachineRegressor(features="exact", gamma=0.2, random_state=0),
    "model": lambda: binfeat.KernelMachineRegressor(
        features="binning", gamma=0.2, alpha=0.1, solver_params={"n_grids": 8}, random_state=0
    ),
    "learned": lambda: binfeat.KernelMachineRegressor(features="exact", random_state=0),
}
LONG = {"binning", "exact", "learned"}
SOME = easy(MADE, *(name for name in MADE if name not in LONG))
# The threads of BLAS depend on concurrent callers, and rounding on its threads; steps of a search amplify this.
ROUNDING = {"exact": 1e-3, "learned": 0.05}


def fitted(estimator):
    """Return the estimator fitted to all rows, or to few rows if a fit has many steps."""
    n_rows = 300 if isinstance(estimator, binfeat.KernelMachineRegressor) else len(X)
    return estimator.fit(X[:n_rows], Y[:n_rows])


def answer(estimator):
    """Return the result for the rows, as an array."""
    if hasattr(estimator, "predict"):
        return estimator.predict(X)
    Z = estimator.transform(X)
    return getattr(Z, "indices", getattr(Z, "codes", Z))


@pytest.fixture
def small_searches(limits):
    limits(n_steps=10, sample_grids=(5, 20))


@pytest.mark.parametrize("together", [True, *hard(False)], ids=["one estimator", "several"])
@pytest.mark.parametrize("name", SOME)
@pytest.mark.usefixtures("small_searches")
def test_sixteen_threads_fit_and_predict_at_once(name, together, threads):
    expected = answer(fitted(MADE[name]()))
    shared = fitted(MADE[name]())
    barrier = threading.Barrier(N_THREADS)

    def work(number):
        own = shared if together else MADE[name]()
        barrier.wait(timeout=60)
        found = []
        for turn in range(1 if name == "learned" else 2):
            if not together or (number + turn) % 3 == 0:
                fitted(own)
            found.append(answer(own))
        return found

    with ThreadPoolExecutor(N_THREADS) as pool:
        for found in pool.map(work, range(N_THREADS), timeout=300):
            for each in found:
                np.testing.assert_allclose(each, expected, rtol=0, atol=ROUNDING.get(name, 0.0))


def fitted_answer(name):
    return answer(fitted(MADE[name]()))


@pytest.mark.parametrize("name", ["codes", "fastfood", "ridge"])
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_forked_pool_after_a_parallel_call(name, threads):
    expected = fitted_answer(name)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for found in pool.map_async(fitted_answer, [name] * 4).get(timeout=300):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.hard
def test_joblib_processes():
    names = ["codes", "ridge", "codes"]
    found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(fitted_answer)(name) for name in names)
    for name, each in zip(names, found, strict=True):
        np.testing.assert_array_equal(each, fitted_answer(name))


@pytest.mark.hard
def test_spawned_process():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply_async(fitted_answer, ["codes"]).get(timeout=300)
    np.testing.assert_array_equal(found, fitted_answer("codes"))


# Models loaded by a service.

FILES = Path(__file__).parent / "files" / "format_3"
KINDS = ["exact", "local", "binning", "fourier"]
ROWS = np.random.default_rng(1).normal(size=(3000, 3))


def loaded(kind):
    return binfeat.load(FILES / f"{kind}.skops").set_params(on_unseen="ignore")


def served(model):
    """Return typical results of a service: for one row, some rows and many, with uncertainties."""
    found = [model._scores(ROWS[:1]), model._scores(ROWS[:100]), model._scores(ROWS)]
    if hasattr(model, "predict_interval"):
        found.append(model.predict_interval(ROWS[:50], coverage=0.5, method="deviations").reshape(50, -1))
    return [each.tobytes() for each in found]


@pytest.mark.parametrize("kind", easy(KINDS, "exact", "local"))
def test_sixteen_threads_are_served_by_one_loaded_model(kind, threads):
    """All start before anything is derived from its arrays; each gets the bits of a single thread."""
    pytest.importorskip("skops.io")
    expected, model, barrier = served(loaded(kind)), loaded(kind), threading.Barrier(N_THREADS)

    def ask(_):
        barrier.wait(timeout=60)
        return served(model)

    with ThreadPoolExecutor(N_THREADS) as pool:
        assert all(found == expected for found in pool.map(ask, range(N_THREADS), timeout=300))


_model = None  # inherited by forked children


def served_by_parents():
    return served(_model)


@pytest.mark.parametrize("kind", easy(KINDS, "exact", "binning"))
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_forked_children_predict_with_the_model_of_their_parent(kind, threads, monkeypatch):
    pytest.importorskip("skops.io")
    monkeypatch.setattr(sys.modules[__name__], "_model", loaded(kind))
    expected = served(_model)  # in threads, before the fork
    with multiprocessing.get_context("fork").Pool(2) as pool:
        answers = [pool.apply_async(served_by_parents) for _ in range(2)]
        assert all(each.get(timeout=300) == expected for each in answers)
    assert served(_model) == expected


def served_of(kind):
    return served(loaded(kind))


@pytest.mark.hard
def test_spawned_children_load_their_own():
    pytest.importorskip("skops.io")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(served_of, ["exact"]).get(timeout=300) == served_of("exact")


def test_asyncio():
    """An event loop continues while threads predict."""
    pytest.importorskip("skops.io")
    model, expected = loaded("exact"), served_of("exact")

    async def serve():
        requests = [asyncio.create_task(asyncio.to_thread(served, model)) for _ in range(8)]
        turns = 0
        while not all(request.done() for request in requests):
            turns += 1
            await asyncio.sleep(0)
        return turns, [request.result() for request in requests]

    turns, found = asyncio.run(serve())
    assert turns > 1
    assert all(each == expected for each in found)


LAYERS = """
import threading
import numba
import numpy as np
import binfeat
from binfeat import _threads
_threads._WORTH_THREADS = 0
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 4))

def bits(n_jobs):
    binning = binfeat.RandomBinning(gamma=0.2, n_grids=8, random_state=0, output="codes", n_jobs=n_jobs)
    Z = binning.fit_transform(X)
    model = binfeat.CGRidge(alpha=0.1).fit(Z, X[:, 0])
    found = []
    def work():
        found.append(model.predict(binning.transform(X)).tobytes())
    threads = [threading.Thread(target=work) for _ in range(16)]
    [own.start() for own in threads]
    [own.join() for own in threads]
    assert len(found) == 16 and len(set(found)) == 1
    return Z.codes.tobytes(), model.coef_.tobytes(), found[0]

print(bits(1) == bits(2), numba.threading_layer())
"""


def under_layer(layer):
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    environment["LD_LIBRARY_PATH"] = f"{sys.prefix}/lib:{os.environ.get('LD_LIBRARY_PATH', '')}"  # pip's TBB is there
    run = subprocess.run(
        [sys.executable, "-c", LAYERS], capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.parametrize("layer", hard("omp", "workqueue", "tbb"))
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread")
def test_threading_layers(layer):
    """All layers return the bits of the serial twins."""
    if layer == "tbb":
        pytest.importorskip("tbb")
    assert under_layer(layer) == ["True", layer]
