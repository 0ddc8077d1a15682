"""Dask on processes: workers that are killed, join late or lack memory; a lost client or scheduler."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from interrupts import SEARCH_STEP
from kernel_models import FIXED, assert_same_state, with_options
from solving import NormalEquations

import binfeat

da = pytest.importorskip("dask.array")
dask_distributed = pytest.importorskip("distributed")

import dask  # noqa: E402

import binfeat.distributed as remote  # noqa: E402
from binfeat.distributed import (  # noqa: E402
    _all_rows,
    _rows,
)

pytestmark = pytest.mark.usefixtures("own_scheduler")
N = 1500
LEARNED = {**FIXED, "gamma": "learn"}
LOCAL = {
    "features": "local",
    "kernel": "laplacian",
    "gamma": 0.5,
    "alpha": 0.1,
    "solver_params": {"cell_rows": 150},
    "random_state": 0,
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 2] + 0.1 * rng.normal(size=N), rng.uniform(size=N)


@pytest.fixture(autouse=True)
def small_sample(sampled_rows, limits):
    """Treat tables of some hundred rows as larger than memory, with a short search."""
    sampled_rows(400)
    limits(n_steps=5)


def chunked(X):
    return da.from_array(X, chunks=(400, 3))


def binnings():
    options = {"gamma": 0.5, "n_grids": 15, "output": "codes", "random_state": 0}
    return binfeat.RandomBinning(**options), remote.RandomBinning(**options)


async def _wait_until_empty(dask_scheduler):
    import asyncio

    for _ in range(200):
        if not dask_scheduler.tasks:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"left on the scheduler: {list(dask_scheduler.tasks)}")


def assert_like(got, expected, X):
    assert got.decisions_[["what", "choice"]].tolist() == expected.decisions_[["what", "choice"]].tolist()
    np.testing.assert_allclose(got.predict(X), expected.predict(X), atol=1e-3)


def kill(process):
    os.kill(process, signal.SIGKILL)


def kill_a_worker_in(monkeypatch, client, home, name, call=1):
    """Kill the worker with most chunks in a call of a function of this process; yield the list of killed workers."""
    real, calls, killed = getattr(home, name), [], []

    def killing(*arguments, **options):
        calls.append(None)
        if len(calls) == call:
            workers = client.run(os.getpid)
            held = client.has_what()
            killed.append(workers[max(workers, key=lambda worker: len(held.get(worker, ())))])
            kill(killed[0])
        return real(*arguments, **options)

    monkeypatch.setattr(home, name, killing)
    return killed


def assert_same_ridge(got, expected):
    assert (got.alpha_, got.status_) == (expected.alpha_, expected.status_)
    np.testing.assert_allclose(got.coef_, expected.coef_, rtol=0, atol=1e-4 * np.abs(expected.coef_).max())


def test_maps_and_ridge_models(rows, client):
    X, y, weights = rows
    here, there = binnings()
    Z, blocks = here.fit_transform(X), there.fit_transform(chunked(X))
    dask_distributed.wait(blocks.to_delayed())
    held = {key for keys in client.has_what().values() for key in keys}
    assert {block.key for block in blocks.to_delayed()} <= held  # codes stay where they were computed
    np.testing.assert_array_equal(blocks.compute().codes, Z.codes)
    model = remote.CGRidge(tol=1e-6).fit(blocks, y, weights)
    assert_same_ridge(model, binfeat.CGRidge(tol=1e-6).fit(Z, y, weights))
    options = {"n_components": 40, "random_state": 0}
    features = remote.RandomFourier(**options).fit_transform(chunked(X))
    expected = binfeat.CGRidgeClassifier().fit(binfeat.RandomFourier(**options).fit_transform(X), y > 0)
    assert_same_ridge(remote.CGRidgeClassifier().fit(features, y > 0), expected)


def test_a_failed_ridge_fit_keeps_nothing_on_workers(rows, client):
    X, y, _ = rows
    with pytest.raises(ValueError, match="at least two classes") as error:
        remote.CGRidgeClassifier().fit(chunked(X), y > np.inf)
    assert error.value is not None  # a debugger keeps the traceback, too
    client.run_on_scheduler(_wait_until_empty)


@pytest.mark.hard
def test_worker_killed_in_mid_fit(rows, client, monkeypatch):
    X, y, _ = rows
    here, there = binnings()
    blocks = there.fit_transform(chunked(X))
    dask_distributed.wait(blocks.to_delayed())
    assert all(client.has_what().values())
    workers = client.run(os.getpid)
    apply, calls = NormalEquations.apply, []

    def kill_in_mid_fit(self, *arguments):
        calls.append(None)
        if len(calls) == 5:
            threading.Timer(0.01, kill, [next(iter(workers.values()))]).start()
        return apply(self, *arguments)

    expected = binfeat.CGRidge(tol=1e-6).fit(here.fit_transform(X), y)
    monkeypatch.setattr(NormalEquations, "apply", kill_in_mid_fit)
    model = remote.CGRidge(tol=1e-6).fit(blocks, y)
    client.wait_for_workers(2)
    assert client.run(os.getpid).values() != workers.values()
    assert len(calls) > 10
    assert_same_ridge(model, expected)


@pytest.mark.hard
def test_closed_client(rows, cluster, monkeypatch):
    X, y, _ = rows
    message = "X was stored on the workers of a distributed.Client that is closed"
    with dask_distributed.Client(cluster):
        dX = chunked(X).persist()
        blocks = binnings()[1].fit_transform(dX)
    with pytest.raises(RuntimeError, match=message):
        binnings()[1].fit(dX)
    with pytest.raises(RuntimeError, match=message):
        remote.CGRidge().fit(blocks, y)
    for use in (blocks.compute, blocks.persist, blocks.tocsr):
        with pytest.raises(RuntimeError, match=r"Z was stored on the workers of a distributed\.Client that is"):
            use()
    apply = NormalEquations.apply
    with dask_distributed.Client(cluster) as client:
        blocks = binnings()[1].fit_transform(chunked(X))

        def close_in_mid_fit(self, *arguments):
            client.close()
            return apply(self, *arguments)

        monkeypatch.setattr(NormalEquations, "apply", close_in_mid_fit)
        with pytest.raises(RuntimeError, match=message):
            remote.CGRidge().fit(blocks, y)


@pytest.mark.hard
def test_same_model_by_processes_which_keep_nothing(rows, client):
    X, y, weights = rows
    expected = binfeat.KernelMachineRegressor(**FIXED).fit(binfeat.blocks(X, y, weights))
    model = remote.KernelMachineRegressor(**FIXED).fit(chunked(X), y, weights)
    assert_like(model, expected, X)
    client.run_on_scheduler(_wait_until_empty)


@pytest.mark.hard
def test_workers_killed_in_each_stage(rows, client, monkeypatch):
    """Length scales, growth, refit, predictions: lost data of a worker is computed again."""
    X, y, _ = rows
    expected = binfeat.KernelMachineRegressor(**LEARNED).fit(binfeat.blocks(X, y))
    killed = [
        kill_a_worker_in(monkeypatch, client, *place)
        for place in (
            SEARCH_STEP,
            (_rows.DaskRows, "sum", 4),
            (_all_rows.DaskTrainingRows, "weigh_held_out"),
        )
    ]
    model = remote.KernelMachineRegressor(**LEARNED).fit(chunked(X), y)
    assert len({process for each in killed for process in each}) == 3
    assert_like(model, expected, X)
    lazy = model.predict(chunked(X)).persist()
    kill(next(iter(client.run(os.getpid).values())))
    np.testing.assert_allclose(lazy.compute(), model.predict(X), atol=1e-12)
    del lazy
    client.run_on_scheduler(_wait_until_empty)


def test_a_worker_killed_before_the_second_tree(rows, client, monkeypatch):
    """Its rows are computed again; nothing stays on the workers."""
    X, y, weights = rows
    options = with_options(LOCAL, n_trees=2)
    expected = binfeat.KernelMachineClassifier(**options).fit(binfeat.blocks(X, y > 0, weights))
    killed = kill_a_worker_in(monkeypatch, client, _all_rows.DaskCells, "__call__", 2)
    model = remote.KernelMachineClassifier(**options).fit(chunked(X), y > 0, weights)
    assert killed
    assert_same_state(model, expected)
    client.run_on_scheduler(_wait_until_empty)


def _die(X):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.hard
def test_a_task_that_ends_workers_is_named(rows, client):
    """The task ends its worker, as the nanny ends a worker with too much memory."""
    dX = chunked(rows[0]).map_blocks(_die, meta=np.empty((0, 3)))
    before = client.run_on_scheduler(_allow_failures, n=0)
    with pytest.raises(
        RuntimeError, match=r"Workers died while they ran .*, the last of them tcp:.*Use smaller chunks"
    ):
        remote.KernelMachineRegressor(**FIXED).fit(dX, rows[1])
    client.run_on_scheduler(_allow_failures, n=before)
    client.run_on_scheduler(_wait_until_empty)


def _allow_failures(dask_scheduler, n):
    before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, n
    return before


@pytest.fixture
def commands(tmp_path):
    """Yield a function that starts `dask` with a command and options, over TCP; all processes end with the test."""
    place, started = str(tmp_path / "scheduler.json"), []

    def start(*arguments):
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard", "--scheduler-file", place]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return started[-1]

    yield start, place
    for process in reversed(started):
        process.kill()  # a worker without scheduler does not end at once
        process.wait()


@pytest.mark.hard
def test_command_lines_a_late_worker_and_no_scheduler(rows, commands, monkeypatch):
    """`dask scheduler` and `dask worker`; a worker joins during a fit, and the scheduler is killed at the end."""
    start, place = commands
    X, y, _ = rows
    scheduler, worker = start("scheduler", "--port", "0"), ("worker", "--nthreads", "1", "--no-nanny")
    start(*worker)
    expected = binfeat.KernelMachineRegressor(**FIXED).fit(binfeat.blocks(X, y))
    events, total = [], _rows.DaskRows.sum

    def with_events(self, *arguments, **options):
        if events:
            events.pop()()
        return total(self, *arguments, **options)

    def join_late():
        start(*worker)
        client.wait_for_workers(2, timeout=60)

    monkeypatch.setattr(_rows.DaskRows, "sum", with_events)
    at_once = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with at_once, dask_distributed.Client(scheduler_file=place, timeout=60) as client:
        events.append(join_late)
        assert_like(remote.KernelMachineRegressor(**FIXED).fit(chunked(X), y), expected, X)
        assert len(client.scheduler_info()["workers"]) == 2
        events.append(scheduler.kill)
        with pytest.raises(RuntimeError, match=r"closed or has lost it .*scheduler-connection-lost.* Connect a client"):
            remote.KernelMachineRegressor(**FIXED).fit(chunked(X), y)
