"""Ridge and kernel models on Dask compared with the same in memory, and bytes sent by an iteration."""

import warnings
from contextlib import contextmanager
from functools import partial

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster, wait
from sklearn.exceptions import ConvergenceWarning

import binfeat
from binfeat import distributed
from perf.measure import interleave, stopwatch
from perf.record import Row
from perf.suite import guarded

N_ROWS, N_INPUTS, GRIDS = 4_000_000, 20, 64
N_WORKERS, N_CHUNKS = 2, 4
QUICK_ROWS = 50_000
MANY_ROWS = 10**7  # from this size on, the overhead of Dask should be smaller
MACHINE = {"features": "binning", "solver_params": {"max_grids": GRIDS}, "random_state": 0}
TEST_ROWS = 100_000
FEW_STEPS, MANY_STEPS = 2, 12  # iterations of two fits; their difference in bytes belongs to ten iterations
NARROWING = ("rows",)


def add_options(parser):
    """Add an option for the number of rows; such a run is not recorded."""
    group = parser.add_argument_group("options of scale_dask")
    group.add_argument("--rows", type=int, metavar="N", help=f"rows of the table (default: {N_ROWS:,})")


def run(quick, rows=None):
    n_rows = rows or (QUICK_ROWS if quick else N_ROWS)
    for what, part in (("ridge", _ridge), ("iteration", _iteration), ("model", _model)):
        yield from guarded(what, part, n_rows, quick)


@contextmanager
def _cluster():
    """Yield a client of two worker processes with one thread each."""
    options = {"n_workers": N_WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield


def _ridge(n_rows, quick):
    """Yield times of binning and ridge with four chunks on two workers, and in memory."""
    with _cluster():
        dX, dy = _rows(n_rows)
        X, y = dX.compute(), dy.compute()
        fits = {"dask": partial(_fit_ridge, distributed, dX, dy), "memory": partial(_fit_ridge, binfeat, X, y)}
        times = interleave({name: stopwatch(fit) for name, fit in fits.items()}, 1 if quick else 3)
    what = f"{n_rows:,} rows x {GRIDS} grids, binning and ridge / in memory"
    yield Row(what, times["dask"], times["memory"], _reach(n_rows))


def _reach(n_rows):
    return "<=", 1.3 if n_rows >= MANY_ROWS else 1.5


def _fit_ridge(home, X, y):
    return home.CGRidge().fit(_features(home, X), y)


def _features(home, X):
    gamma = np.where(np.arange(N_INPUTS) < 4, 1.0, 2.0 / N_INPUTS)
    return home.RandomBinning(gamma=gamma, n_grids=GRIDS, output="codes", random_state=0).fit_transform(X)


def _iteration(n_rows, quick):
    """Yield the bytes that an iteration sends, compared with the coefficients: one number per column."""
    with _cluster():
        X, y = _rows(n_rows)
        Z = _features(distributed, X)
        _carried(Z, y, FEW_STEPS)  # the first fit also sends codes
        few, many = (_carried(Z, y, n_steps) for n_steps in (FEW_STEPS, MANY_STEPS))
    carried, ways = (many - few) / (MANY_STEPS - FEW_STEPS), ways_of_coefficients(N_WORKERS, N_CHUNKS)
    what = f"an iteration, carried in all / {ways:g} times the coefficients"
    yield Row(what, carried / 1e6, ways * 8 * Z.shape[1] / 1e6, ("<=", 1.1), "MB")


def _carried(Z, y, n_steps):
    """Return the bytes on the loopback device during this number of iterations of a ridge model."""
    model, before = distributed.CGRidge(tol=0, max_iter=n_steps), _loopback()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(Z, y)
    return _loopback() - before


def _loopback():
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def ways_of_coefficients(n_workers, n_chunks):
    """Return how many times an iteration sends the coefficients between processes.

    They are sent to the scheduler and then to all workers. Sums of chunks are sent to the worker that adds them, unless
    they are already there. The sum is returned through the scheduler.
    """
    return 3 + n_workers + n_chunks * (n_workers - 1) / n_workers


def _model(n_rows, quick):
    """Yield whole kernel models on Dask and in memory, with their errors on new rows."""
    fitted, options = {}, {**MACHINE, **({"solver_params": {"max_grids": 8}} if quick else {})}

    def fit(home, X, y):
        fitted[home] = home.KernelMachineRegressor(**options).fit(X, y)

    with _cluster():
        dX, dy = _rows(n_rows)
        X, y = (part.compute() for part in _rows(TEST_ROWS, seed=1))
        calls = {
            "dask": stopwatch(partial(fit, distributed, dX, dy)),
            "memory": stopwatch(partial(fit, binfeat, dX.compute(), dy.compute())),
        }
        times = interleave(calls, 1)
    what = f"{n_rows:,} rows, kernel model"
    yield Row(f"{what} / in memory", times["dask"], times["memory"], _reach(n_rows))
    on_dask, in_memory = ((fitted[home].predict(X) - y) ** 2 / y.var() for home in (distributed, binfeat))
    standard_error = max(in_memory.std() / np.sqrt(y.size), np.finfo(float).tiny)
    beyond = float((on_dask - in_memory).mean() / standard_error)
    yield Row(f"{what}: error minus the error in memory, in standard errors", beyond, reach=("<=", 1), unit="")
    for where, home, squares in (("on Dask", distributed, on_dask), ("in memory", binfeat, in_memory)):
        n_grids = fitted[home].n_grids_
        yield Row(f"{what} {where}: {n_grids} grids, variance left", 100 * float(squares.mean()), unit="%")


def _rows(n_rows, seed=0):
    """Draw rows on the workers, and a target of four inputs."""
    shape, chunks = (n_rows, N_INPUTS), (-(-n_rows // N_CHUNKS), N_INPUTS)
    X = da.random.default_rng(seed).uniform(-1, 1, size=shape, chunks=chunks)
    y = da.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + da.fabs(X[:, 3])
    X, y = X.persist(), y.persist()
    wait([X, y])
    return X, y
