"""Kernel machines on processes: workers that are killed, join late or lack memory; a scheduler that goes away."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import binfeat
from binfeat._machine.length_scales import LengthScaleSearch
from binfeat._rows import sampled
from tests.machines import FIXED

da = pytest.importorskip("dask.array")
dask_distributed = pytest.importorskip("distributed")

import dask  # noqa: E402

import binfeat.distributed as remote  # noqa: E402
from binfeat.distributed import _all_rows  # noqa: E402
from binfeat.distributed._rows import DaskRows  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_scheduler")
N = 1500
LEARNED = {**FIXED, "gamma": "learn"}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 2] + 0.1 * rng.normal(size=N), rng.uniform(size=N)


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """Tables of some hundred rows are beyond memory."""
    monkeypatch.setattr(sampled, "_MOST_ROWS", 400)


def chunked(X):
    return da.from_array(X, chunks=(400, 3))


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
    """Kill the worker with most chunks in a call of a function of this process; the list of those killed."""
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


def test_same_machine_by_processes_which_keep_nothing(rows, client):
    X, y, weights = rows
    expected = binfeat.KernelMachineRegressor(**FIXED).fit(binfeat.blocks(X, y, weights))
    machine = remote.KernelMachineRegressor(**FIXED).fit(chunked(X), y, weights)
    assert_like(machine, expected, X)
    client.run_on_scheduler(_wait_until_empty)


def test_workers_killed_in_each_stage(rows, client, monkeypatch):
    """Length scales, growth, refit, predictions: what a worker held is made again."""
    X, y, _ = rows
    expected = binfeat.KernelMachineRegressor(**LEARNED).fit(binfeat.blocks(X, y))
    killed = [
        kill_a_worker_in(monkeypatch, client, *place)
        for place in (
            (LengthScaleSearch, "_step"),
            (DaskRows, "sum", 4),
            (_all_rows.DaskTrainingRows, "weigh_held_out"),
        )
    ]
    machine = remote.KernelMachineRegressor(**LEARNED).fit(chunked(X), y)
    assert len({process for each in killed for process in each}) == 3
    assert_like(machine, expected, X)
    lazy = machine.predict(chunked(X)).persist()
    kill(next(iter(client.run(os.getpid).values())))
    np.testing.assert_allclose(lazy.compute(), machine.predict(X), atol=1e-12)
    del lazy
    client.run_on_scheduler(_wait_until_empty)


def _die(X):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_ends_workers_is_named(rows, client):
    """As one does that needs more memory than the nanny lets it have."""
    dX = chunked(rows[0]).map_blocks(_die, meta=np.empty((0, 3)))
    before = client.run_on_scheduler(_allow_failures, n=0)
    with pytest.raises(RuntimeError, match=r"Workers died while they ran .*, the last of them tcp:.*Make chunks small"):
        remote.KernelMachineRegressor(**FIXED).fit(dX, rows[1])
    client.run_on_scheduler(_allow_failures, n=before)
    client.run_on_scheduler(_wait_until_empty)


def _allow_failures(dask_scheduler, n):
    before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, n
    return before


@pytest.fixture
def commands(tmp_path):
    """What starts `dask` with a command and its options, over TCP; all processes end with the test."""
    place, started = str(tmp_path / "scheduler.json"), []

    def start(*arguments):
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard", "--scheduler-file", place]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return started[-1]

    yield start, place
    for process in reversed(started):
        process.kill()  # a worker without its scheduler does not end at once
        process.wait()


def test_command_lines_a_late_worker_and_no_scheduler(rows, commands, monkeypatch):
    """`dask scheduler` and `dask worker`; a worker joins in mid-fit, and in the end the scheduler goes away."""
    start, place = commands
    X, y, _ = rows
    scheduler, worker = start("scheduler", "--port", "0"), ("worker", "--nthreads", "1", "--no-nanny")
    start(*worker)
    expected = binfeat.KernelMachineRegressor(**FIXED).fit(binfeat.blocks(X, y))
    events, total = [], DaskRows.sum

    def with_events(self, *arguments, **options):
        if events:
            events.pop()()
        return total(self, *arguments, **options)

    def join_late():
        start(*worker)
        client.wait_for_workers(2, timeout=60)

    monkeypatch.setattr(DaskRows, "sum", with_events)
    at_once = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with at_once, dask_distributed.Client(scheduler_file=place, timeout=60) as client:
        events.append(join_late)
        assert_like(remote.KernelMachineRegressor(**FIXED).fit(chunked(X), y), expected, X)
        assert len(client.scheduler_info()["workers"]) == 2
        events.append(scheduler.kill)
        with pytest.raises(RuntimeError, match=r"closed or has lost it .*scheduler-connection-lost.* Connect a client"):
            remote.KernelMachineRegressor(**FIXED).fit(chunked(X), y)
