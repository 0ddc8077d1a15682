"""Kernel models of 20 inputs as files: size, load and first prediction in new processes, rows per second.

Default models are compared with boosting: fits, and predictions in a process that has only loaded them.
"""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import skops.io
from sklearn.base import clone
from sklearn.datasets import make_friedman1

import binfeat
from perf.measure import Times, interleave, new_process, stopwatch
from perf.record import Row
from perf.suite import guarded
from perf.tables.peers import LIGHTGBM, MACHINES, OURS, QUICK_MACHINES
from perf.text_tables import csv_table

KINDS = {  # training rows, settings
    "exact": (5_000, {"features": "exact"}),
    "local, one tree": (30_000, {"features": "local", "solver_params": {"n_trees": 1}}),
    "local, four trees": (30_000, {"features": "local", "solver_params": {"n_trees": 4}}),
    "200 grids": (30_000, {"features": "binning", "solver_params": {"n_grids": 200}}),
    "Fourier features": (30_000, {"features": "fourier"}),
}
ROWS_BESIDE = 5_000, 50_000  # of default models and boosting
BESIDE = {  # names on the page, and in `perf tables`
    "ours": OURS,
    "LightGBM": LIGHTGBM,
    "HistGradientBoosting": "hist_gradient_boosting",
    "CatBoost": "catboost",
}
QUICK_ROWS = 1_000
MOST_ROWS = 100_000
FIGURES = {  # columns of the page: rows of a kind, and the unit of the column
    "file, MB": ("file", 1),
    "compact, MB": ("compact file", 1),
    "start, s": ("load and first prediction", 1),
    "one row, µs": ("the same row, again", 1),
    "100 rows, ms": ("100 rows", 1e3),
    "100,000 rows, s": (f"{MOST_ROWS:,} rows", 1),
}
CALLS = 300  # predictions of one row
SHARED = "import numpy as np, sklearn.linear_model, skops.io; X = np.zeros((1, 20)) + 0.5"  # not counted
LOAD = "import binfeat; model = binfeat.load({path!r})"
ONE_ROW = {"exact": 100, "local, one tree": 60, "local, four trees": 60}  # goal in us


def parts(content):
    """Return the tables of the page: kinds of models, and default models compared with boosting."""
    return {"kinds": _kinds(content["rows"]), "beside": _in_columns(content["rows"])}


def _kinds(rows):
    figures = {row["what"]: row["ours"] for row in rows}
    lines = [
        (
            f"{kind}, {KINDS[kind][0]:,} rows",
            *(f"{times * figures[f'{kind}: {what}']:.2g}" for what, times in FIGURES.values()),
        )
        for kind in KINDS
    ]
    return csv_table(("model", *FIGURES), lines)


def _in_columns(rows):
    lines, peers = {}, []
    for row in rows:
        at = row["at"] or {}
        if at.get("panel") == "beside":
            lines.setdefault((at["rows"], at["what"], row["unit"]), [row["ours"]]).append(row["reference"])
            peers += [at["peer"]] * (at["peer"] not in peers)
    header = "rows of the fit", "what", "ours", *peers
    cells = [(f"{n:,}", f"{what}, {unit}", *(f"{own:.3g}" for own in line)) for (n, what, unit), line in lines.items()]
    return csv_table(header, cells)


def run(quick):
    for kind in KINDS:
        yield from guarded(kind, _served, kind, quick)
    for n_rows in (QUICK_ROWS,) if quick else ROWS_BESIDE:
        yield from guarded(f"{n_rows:,} rows", _beside, n_rows, quick)


def _served(kind, quick):
    n_rows, given = KINDS[kind]
    X, y = _table()
    n_rows = QUICK_ROWS if quick else n_rows
    model = binfeat.KernelMachineRegressor(random_state=0, **given).fit(X[:n_rows], y[:n_rows])
    with TemporaryDirectory() as folder:
        path, small = Path(folder) / "model.skops", Path(folder) / "compact.skops"
        for own, target in ((model, path), (model.compact(), small)):
            skops.io.dump(own, target)
            what = "file" if target == path else "compact file"
            yield Row(f"{kind}: {what}", target.stat().st_size / 1e6, unit="MB")
        load = LOAD.format(path=str(path))
        timers = {
            "load": new_process(load, SHARED),
            "both": new_process(f"{load}; model.predict(X)", SHARED),
        }
        times = interleave(timers, 1 if quick else 3)
    yield Row(f"{kind}: load", times["load"])
    yield Row(f"{kind}: load and first prediction", times["both"], reach=("<=", 1.0))
    yield from _predictions(kind, model, X[: 10 * QUICK_ROWS] if quick else X)


def _table():
    return make_friedman1(n_samples=MOST_ROWS, n_features=20, noise=1.0, random_state=0)


def _predictions(kind, model, X):
    timers = {
        "one": stopwatch(partial(_one_by_one, model, X[:1], CALLS)),
        "different": stopwatch(partial(_one_by_one, model, X, CALLS)),
        "100": stopwatch(partial(model.predict, X[:100])),
        "all": stopwatch(partial(model.predict, X)),
    }
    times = interleave(timers, 5)
    for name, what in (("one", "the same row, again"), ("different", "one row after the other")):
        reach = ("<=", ONE_ROW[kind]) if name == "one" and kind in ONE_ROW else None
        yield Row(f"{kind}: {what}", _of_a_call(times[name]), unit="us", reach=reach)
    yield Row(f"{kind}: 100 rows", times["100"])
    yield Row(f"{kind}: {len(X):,} rows", times["all"])


def _one_by_one(model, X, n_calls):
    for i in range(n_calls):
        k = i % len(X)
        model.predict(X[k : k + 1])


def _of_a_call(times):
    """Return microseconds of a call."""
    return Times(tuple(1e6 / CALLS * seconds for seconds in times.seconds))


def _beside(n_rows, quick):
    """Yield fits of a default model and boosting, and predictions in processes that have only loaded a file."""
    X, y = _table()
    makers = {**MACHINES, **(QUICK_MACHINES if quick else {})}
    models = {name: makers[who].make(X, y, 0) for name, who in BESIDE.items() if makers[who].installed}
    with TemporaryDirectory() as folder:
        fits, paths = {}, {}
        for name, model in models.items():
            clone(model).fit(X[:QUICK_ROWS], y[:QUICK_ROWS])  # compiles and imports
            fits[name] = Times((stopwatch(partial(model.fit, X[:n_rows], y[:n_rows]))(),))
            paths[name] = Path(folder) / name
            paths[name].write_bytes(pickle.dumps(model))
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            times = process.submit(_loaded, paths, QUICK_ROWS if quick else MOST_ROWS).result()
    for name in list(models)[1:]:
        at = {"panel": "beside", "rows": n_rows, "what": "fit", "peer": name}
        yield Row(f"{n_rows:,} rows: fit / {name}", fits["ours"], fits[name], at=at)
        for what, unit in (("one row", "us"), ("100 rows", "s"), (f"{MOST_ROWS:,} rows", "s")):
            ours, theirs = (
                _of_a_call(times[own, what]) if unit == "us" else times[own, what] for own in ("ours", name)
            )
            reach = ("<=", 1) if (name, what) == ("LightGBM", f"{MOST_ROWS:,} rows") else None
            at = {"panel": "beside", "rows": n_rows, "what": what, "peer": name}
            yield Row(f"{n_rows:,} rows: {what} predicted / {name}", ours, theirs, reach, unit, at)


def _loaded(paths, n_rows):
    """Return times of predictions by the models of some files."""
    X, timers = _table()[0][:n_rows], {}
    for name, path in paths.items():
        model = pickle.loads(path.read_bytes())
        timers[name, "one row"] = stopwatch(partial(_one_by_one, model, X[:1], CALLS))
        timers[name, "100 rows"] = stopwatch(partial(model.predict, X[:100]))
        timers[name, f"{MOST_ROWS:,} rows"] = stopwatch(partial(model.predict, X))
    return interleave(timers, 5)
