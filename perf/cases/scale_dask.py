"""Binning and ridge on Dask with two workers of one thread, beside memory; bytes and seconds of an iteration."""

from functools import partial

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster, wait

import binfeat
from binfeat import distributed
from perf.measure import interleave, stopwatch
from perf.record import Row

N_ROWS, N_INPUTS = 4_000_000, 20
QUICK_ROWS = 100_000
CHUNKS = 4
GAMMA = np.where(np.arange(N_INPUTS) < 4, 1.0, 0.1)
BINNING = {"gamma": GAMMA, "n_grids": 64, "output": "codes", "random_state": 0}
FEW, MANY = 5, 25  # iterations, whose difference leaves out what a fit does once


def run(quick):
    n_rows = QUICK_ROWS if quick else N_ROWS
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        dX, dy = _rows(n_rows)
        return [_beside_memory(dX, dy, quick), *_an_iteration(dX, dy, quick)]


def _beside_memory(dX, dy, quick):
    X, y = dX.compute(), dy.compute()
    calls = {"dask": stopwatch(partial(_fit, distributed, dX, dy)), "memory": stopwatch(partial(_fit, binfeat, X, y))}
    times = interleave(calls, 1 if quick else 3)
    what = f"{len(X):,} rows x 64 grids, binning and ridge / in memory"
    return Row(what, times["dask"], times["memory"], ("<=", 1.5))


def _fit(home, X, y):
    return home.CGRidge().fit(home.RandomBinning(**BINNING).fit_transform(X), y)


def _an_iteration(dX, dy, quick):
    """Seconds and bytes of an iteration: stated, and counted on the loopback device, which carries all of it."""
    Z = distributed.RandomBinning(**BINNING).fit_transform(dX)
    machines = {n: distributed.CGRidge(tol=0, max_iter=n) for n in (FEW, MANY)}
    carried = {}

    def fit(n):
        before = _loopback()
        machines[n].fit(Z, dy)
        carried[n] = _loopback() - before

    times = interleave({n: stopwatch(partial(fit, n)) for n in machines}, 1 if quick else 3)
    seconds = (times[MANY].best - times[FEW].best) / (MANY - FEW)
    yield Row("occupied bins, in thousands", Z.shape[1] / 1e3, unit="")
    yield Row("an iteration", seconds)
    yield Row("an iteration, a row and grid on one thread", 2e9 * seconds / Z.shape[0] / 64, unit="ns")
    out, back = (int(n_bytes) for n_bytes in machines[MANY].traffic_[0])
    yield Row("an iteration, out of and into the process of the fit, stated", (out + back) / 1e6, unit="MB")
    # Out to the scheduler and on to both workers, half of the chunks' sums between them, the sum back by the scheduler.
    in_all, times = (carried[MANY] - carried[FEW]) / (MANY - FEW) / 1e6, 5 + CHUNKS // 2
    what = f"an iteration, carried in all / {times} times the coefficients"
    yield Row(what, in_all, times * out / 1e6, ("<=", 1.1), "MB")


def _loopback():
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def _rows(n_rows):
    """Rows that are drawn on the workers, and a target that four inputs make."""
    X = da.random.default_rng(0).uniform(-1, 1, size=(n_rows, N_INPUTS), chunks=(-(-n_rows // CHUNKS), N_INPUTS))
    y = da.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + da.fabs(X[:, 3])
    X, y = X.persist(), y.persist()
    wait([X, y])
    return X, y
