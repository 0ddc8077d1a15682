"""Kernel machines and ridge on Dask, beside memory and boosted trees on Dask; what an iteration costs, and clusters."""

from contextlib import contextmanager, nullcontext
from functools import partial
from unittest import mock

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import binfeat
from binfeat import distributed
from binfeat._rows import sampled
from perf import dask_cost, dask_peers
from perf.measure import interleave, stopwatch
from perf.record import Row
from perf.suite import guarded

NARROWING = ("rows",)
N_ROWS, N_INPUTS = 4_000_000, 20
QUICK_ROWS = 50_000
CHUNKS = 4
GAMMA = np.where(np.arange(N_INPUTS) < 4, 1.0, 0.1)
BINNING = {"gamma": GAMMA, "n_grids": 64, "output": "codes", "random_state": 0}
FIXED = {"features": "binning", "kernel": "laplacian", "gamma": GAMMA, "alpha": 0.1, "scaling": None, "refit": False}
MACHINE = {"features": "binning", "max_grids": 64, "random_state": 0}
GRIDS = 64
TEST_ROWS = 100_000
SAMPLE = 300
WORKERS = (1, 2, 4)
MANY_CHUNKS = 32
GOAL_ROWS, GOAL_INPUTS, MACHINES = 10**9, 50, (8, 32, 100)


def add_options(parser):
    """How many rows the largest tables have."""
    group = parser.add_argument_group("options of scale_dask")
    group.add_argument(
        "--rows", type=int, metavar="N", help=f"rows of the largest tables, not {N_ROWS:,}; try 10000000"
    )


def run(quick, rows=None):
    n_rows = rows or (QUICK_ROWS if quick else N_ROWS)
    with _cluster(2) as client:
        dX, dy = _rows(n_rows)
        yield from guarded("binning and ridge", _beside_memory, dX, dy, quick)
        with _small_sample() if quick else nullcontext():
            yield from guarded("machines", _machines, client, dX, dy, quick)
    yield from guarded("cost", _cost, n_rows, quick)


@contextmanager
def _cluster(n_workers):
    """A client of processes of one thread each."""
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def _beside_memory(dX, dy, quick):
    X, y = dX.compute(), dy.compute()
    calls = {"dask": stopwatch(partial(_fit, distributed, dX, dy)), "memory": stopwatch(partial(_fit, binfeat, X, y))}
    times = interleave(calls, 1 if quick else 3)
    what = f"{len(X):,} rows x 64 grids, binning and ridge / in memory"
    yield Row(what, times["dask"], times["memory"], ("<=", 1.5))


def _fit(home, X, y):
    return home.CGRidge().fit(home.RandomBinning(**BINNING).fit_transform(X), y)


def _machines(client, dX, dy, quick):
    """Whole kernel machines on Dask and in memory, and boosted trees on Dask, with their errors on new rows."""
    n_rows = dX.shape[0]
    X, y = (part.compute() for part in _rows(TEST_ROWS, seed=1))
    fitted = {}

    def fit(home, name, *rows):
        fitted[name] = home.KernelMachineRegressor(**MACHINE).fit(*rows)

    calls = {
        "dask": stopwatch(partial(fit, distributed, "dask", dX, dy)),
        "memory": stopwatch(partial(fit, binfeat, "memory", dX.compute(), dy.compute())),
    }
    times = interleave(calls, 1)
    reach = ("<=", 1.3 if n_rows >= 10**7 else 1.5)
    yield Row(f"{n_rows:,} rows, kernel machine / in memory", times["dask"], times["memory"], reach)
    errors = {name: (machine.predict(X) - y) ** 2 / y.var() for name, machine in fitted.items()}
    apart = errors["dask"] - errors["memory"]
    deviations = apart.mean() / (apart.std() / np.sqrt(apart.size)) if apart.any() else 0.0
    yield Row("its error beside that in memory, in standard errors of the difference", deviations, None, ("<=", 1), "")
    for name, machine in fitted.items():
        yield Row(
            f"kernel machine, {name}: {machine.n_grids_} grids, variance left", 100 * errors[name].mean(), unit="%"
        )
    ours = times["dask"]
    for name, make in dask_peers.peers(client, dask_peers.QUICK_TREES if quick else dask_peers.N_TREES).items():
        yield from guarded(name, _beside_peer, name, make, ours, (dX, dy, X, y))


def _beside_peer(name, make, ours, rows):
    seconds, error = dask_peers.fit(make, *rows)
    yield Row(f"kernel machine on Dask beside {name} on Dask", ours, seconds)
    yield Row(f"{name}: variance left", 100 * error, unit="%")
    for n_machines in MACHINES:
        share = GOAL_ROWS * GOAL_INPUTS / (rows[0].size * n_machines * dask_cost.WORKERS / 2)
        what = f"{name}: 10^9 rows x 50 inputs on {n_machines} machines, in proportion"
        yield Row(what, seconds * share)
        yield Row(f"{what}, dollars", seconds * share * n_machines * dask_cost.DOLLARS, unit="$")


def _cost(most_rows, quick):
    """A model of an iteration and of a binning, fitted to 1, 2 and 4 workers, checked on a fit that it has not seen."""
    sizes = [most_rows // 100, most_rows // 10, most_rows]
    cases = [(sizes[0], n, CHUNKS) for n in WORKERS] + [(size, 2, CHUNKS) for size in sizes[1:]]
    cases += [(sizes[1], 1, CHUNKS), (sizes[0], 2, MANY_CHUNKS)]
    seen = [_measure(*case) for case in cases]
    costs = tuple(dask_cost.Cost.fit([rounds[kind] for rounds in seen]) for kind in (0, 1))
    for kind, cost in zip(("iteration", "binning"), costs, strict=True):
        round_, task, row_grid, byte = cost.each
        yield Row(f"{kind}: a round of the scheduler", round_)
        yield Row(f"{kind}: a chunk", 1e3 * task, unit="ms")
        yield Row(f"{kind}: a row and grid on one thread", 1e9 * row_grid, unit="ns")
        yield Row(f"{kind}: a byte carried", 1e9 * byte, unit="ns")
    largest = seen[cases.index((sizes[-1], 2, CHUNKS))][0]
    what = f"an iteration, carried in all / {largest.sent:g} times the coefficients"
    yield Row(what, largest.carried / 1e6, largest.sent * largest.coefficients / 1e6, ("<=", 1.1), "MB")
    yield from _checked(costs, sizes[-1] // 2)
    yield from _on_clusters(costs, seen, sizes[-1], quick)


def _measure(n_rows, n_workers, n_chunks):
    """A typical iteration and the binning of a machine with nothing left to choose."""
    with _cluster(n_workers):
        dX, dy = _rows(n_rows, n_chunks)
        with _small_sample(), dask_cost.recorded(n_workers) as (iterations, binnings):
            for _ in range(2):  # the first one loads kernels on the workers
                iterations.clear()
                binnings.clear()
                distributed.KernelMachineRegressor(n_grids=GRIDS, random_state=0, **FIXED).fit(dX, dy)
        return dask_cost.typical(iterations), dask_cost.typical(binnings)


def _small_sample():
    """A sample so small that even quick tables are fitted where they are."""
    return mock.patch.object(sampled, "_MOST_ROWS", SAMPLE)


def _checked(costs, n_rows):
    """Seconds on Dask of a fit with other numbers of rows and grids, on 2 workers."""
    with _cluster(2):
        dX, dy = _rows(n_rows)
        with _small_sample(), dask_cost.recorded(2) as fits:
            for _ in range(2):
                for rounds in fits:
                    rounds.clear()
                distributed.KernelMachineRegressor(n_grids=GRIDS // 2, random_state=0, **FIXED).fit(dX, dy)
    measured = sum(own.seconds for rounds in fits for own in rounds)
    predicted = sum(cost.seconds(own) for cost, rounds in zip(costs, fits, strict=True) for own in rounds)
    yield Row(f"{n_rows:,} rows x {GRIDS // 2} grids: measured", measured)
    yield Row(f"{n_rows:,} rows x {GRIDS // 2} grids: the model", predicted)
    apart = max(measured / predicted, predicted / measured)
    yield Row("the model and what it was not fitted to, larger / smaller", apart, None, ("<=", 1.25), "")


def _on_clusters(costs, seen, n_rows, quick):
    """Seconds and dollars of 10^9 rows x 50 inputs, with the rounds that a fit of this many rows takes."""
    with _cluster(2):
        dX, dy = _rows(n_rows)
        with _small_sample() if quick else nullcontext(), dask_cost.recorded(2) as fits:
            total = stopwatch(partial(distributed.KernelMachineRegressor(**MACHINE).fit, dX, dy))()
    if not fits[0]:
        raise ValueError(f"{n_rows:,} rows are so few that the machine was fitted in memory; give more by --rows.")
    local = total - sum(own.seconds for rounds in fits for own in rounds)
    iterations = [rounds[0] for rounds in seen]
    power = dask_cost.growth(min(iterations, key=_rows_of), max(iterations, key=_rows_of))
    for n_machines in MACHINES:
        own = tuple(dask_cost.scaled(rounds, GOAL_ROWS, power, n_machines) for rounds in fits)
        parts = dask_cost.of_cluster(costs, own, local)
        seconds, first = sum(parts.values()), max(parts, key=parts.__getitem__)
        what = f"10^9 rows x 50 inputs on {n_machines} machines"
        yield Row(f"{what}: seconds by the model, most in {first}", seconds)
        yield Row(f"{what}: {first}", parts[first])
        yield Row(f"{what}: dollars", seconds * n_machines * dask_cost.DOLLARS, unit="$")
        last = own[0][-1]
        shared = costs[0].by_shared_grids(last)
        yield Row(
            f"{what}: bytes of an iteration, grids shared out / rows",
            shared,
            costs[0].on_cluster(last)["coefficients' way"],
        )


def _rows_of(own):
    return own.n_rows


def _rows(n_rows, n_chunks=CHUNKS, seed=0):
    """Rows that are drawn on the workers, and a target that four inputs make."""
    shape, chunks = (n_rows, N_INPUTS), (-(-n_rows // n_chunks), N_INPUTS)
    X = da.random.default_rng(seed).uniform(-1, 1, size=shape, chunks=chunks)
    y = da.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + da.fabs(X[:, 3])
    X, y = X.persist(), y.persist()
    wait([X, y])
    return X, y
