"""Kernel machines of 20 inputs as files: their size, load and first prediction in new processes, rows a second."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import skops.io
from sklearn.datasets import make_friedman1

import binfeat
from perf.measure import Times, interleave, new_process, stopwatch
from perf.record import Row
from perf.suite import guarded

KINDS = {  # rows of fit, settings
    "exact": (5_000, {"features": "exact"}),
    "local, one tree": (30_000, {"features": "local", "n_trees": 1}),
    "local, four trees": (30_000, {"features": "local", "n_trees": 4}),
    "200 grids": (30_000, {"features": "binning", "n_grids": 200}),
    "Fourier features": (30_000, {"features": "fourier"}),
}
QUICK_ROWS = 1_000
CALLS = 300  # of a prediction of one row
SHARED = "import numpy as np, sklearn.linear_model, skops.io; X = np.zeros((1, 20)) + 0.5"  # not binfeat's seconds
LOAD = "import binfeat; machine = binfeat.load({path!r})"
ONE_ROW = {"exact": 100, "local, one tree": 60, "local, four trees": 60}  # reach in us


def run(quick):
    for kind in KINDS:
        yield from guarded(kind, _served, kind, quick)


def _served(kind, quick):
    n_rows, given = KINDS[kind]
    X, y = make_friedman1(n_samples=100_000, n_features=20, noise=1.0, random_state=0)
    n_rows = QUICK_ROWS if quick else n_rows
    machine = binfeat.KernelMachineRegressor(random_state=0, **given).fit(X[:n_rows], y[:n_rows])
    with TemporaryDirectory() as folder:
        path, small = Path(folder) / "machine.skops", Path(folder) / "compact.skops"
        for own, target in ((machine, path), (machine.compact(), small)):
            skops.io.dump(own, target)
            what = "file" if target == path else "compact file"
            yield Row(f"{kind}: {what}", target.stat().st_size / 1e6, unit="MB")
        load = LOAD.format(path=str(path))
        timers = {
            "load": new_process(load, SHARED),
            "both": new_process(f"{load}; machine.predict(X)", SHARED),
        }
        times = interleave(timers, 1 if quick else 3)
    yield Row(f"{kind}: load", times["load"])
    yield Row(f"{kind}: load and first prediction", times["both"], reach=("<=", 1.0))
    yield from _predictions(kind, machine, X[: 10 * QUICK_ROWS] if quick else X)


def _predictions(kind, machine, X):
    timers = {
        "one": stopwatch(partial(_one_by_one, machine, X[:1], CALLS)),
        "different": stopwatch(partial(_one_by_one, machine, X, CALLS)),
        "100": stopwatch(partial(machine.predict, X[:100])),
        "all": stopwatch(partial(machine.predict, X)),
    }
    times = interleave(timers, 5)
    for name, what in (("one", "the same row, again"), ("different", "one row after the other")):
        own = Times(tuple(1e6 / CALLS * seconds for seconds in times[name].seconds))
        reach = ("<=", ONE_ROW[kind]) if name == "one" and kind in ONE_ROW else None
        yield Row(f"{kind}: {what}", own, unit="us", reach=reach)
    yield Row(f"{kind}: 100 rows", times["100"])
    yield Row(f"{kind}: {len(X):,} rows", times["all"])


def _one_by_one(machine, X, n_calls):
    for i in range(n_calls):
        k = i % len(X)
        machine.predict(X[k : k + 1])
