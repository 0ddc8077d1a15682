"""The time of each stage of a default fit, for tables of 1,000 to 100,000 rows."""

import cProfile
import gc
import pstats
import warnings
from pathlib import Path

import numpy as np

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from perf import synthetic
from perf.data import forest_cover
from perf.record import Row
from perf.suite import guarded
from perf.text_tables import csv_table

ROWS, QUICK_ROWS = (1_000, 5_000, 20_000, 100_000), (300,)
STAGES = {  # functions called by `pipeline.fit`
    "targets and loss": ("prepared", "reweighted"),
    "search": ("run",),
    "representation and solution": ("_solver", "solve"),
    "calibration and noise": ("concluded",),
}
REST = "table and all else"
PARTS = {  # parts of stages, by the module of the functions
    "linear maps": "linear_maps.py",
    "penalty and shares": "learner.py",
}


def run(quick):
    for n_rows in QUICK_ROWS if quick else ROWS:
        yield from guarded(f"labels, {n_rows:,} rows", _labels, n_rows)
        yield from guarded(f"numbers, {n_rows:,} rows", _numbers, n_rows)


def parts(content):
    """Return the table of the page, with a line per fit."""
    lines = {}
    for row in content["rows"]:
        at = row["at"] or {}
        if at.get("panel") == "stages":
            lines.setdefault((at["targets"], at["rows"]), {})[at["stage"]] = row["ours"]
    header = "targets", "rows", "fit, s", *(f"{stage}, %" for stage in (*STAGES, REST, *PARTS))
    cells = [
        (targets, f"{n_rows:,}", f"{own.pop('fit'):.3g}", *(f"{share:.0f}" for share in own.values()))
        for (targets, n_rows), own in lines.items()
    ]
    return {"stages": csv_table(header, cells)}


def _labels(n_rows):
    X, y = forest_cover()
    yield from _stages(
        "labels", KernelMachineClassifier(random_state=0), X[:n_rows].astype(np.float64), y[:n_rows] == 2
    )


def _numbers(n_rows):
    table = synthetic.draw(synthetic.smooth, 0, n_rows)
    yield from _stages("numbers", KernelMachineRegressor(random_state=0), table.X, table.y)


def _stages(targets, model, X, y):
    """Yield the seconds of the second of two fits, and the percentage of each stage."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
        gc.collect()
        profile = cProfile.Profile()
        profile.runcall(model.fit, X, y)
    calls = pstats.Stats(profile).stats
    whole = _of_functions(calls, ("_fit_rows",), "estimator.py")
    shares = {stage: _of_functions(calls, names, "pipeline.py") / whole for stage, names in STAGES.items()}
    shares[REST] = 1 - sum(shares.values())
    shares |= {part: _of_module(calls, module) / whole for part, module in PARTS.items()}
    at = {"panel": "stages", "targets": targets, "rows": len(y)}
    yield Row(f"{targets}, {len(y):,} rows: fit", whole, at={**at, "stage": "fit"})
    for stage, share in shares.items():
        yield Row(f"{targets}, {len(y):,} rows: {stage}", 100 * share, unit="%", at={**at, "stage": stage})


def _of_functions(calls, names, caller_module):
    """Return the seconds of functions that a module calls."""
    return _seconds(calls, lambda path, name, caller: name in names and Path(caller).name == caller_module)


def _of_module(calls, module):
    """Return the seconds of functions of a module that other modules call."""
    return _seconds(calls, lambda path, name, caller: Path(path).name == module and caller != path)


def _seconds(calls, is_wanted):
    """Return seconds of calls from modules of kernel models with ``is_wanted(path, name, caller's path)``."""
    return sum(
        seconds
        for (path, _, name), (*_, callers) in calls.items()
        for (caller, *_), (*_, seconds) in callers.items()
        if "models" in Path(caller).parts and is_wanted(path, name, caller)
    )
