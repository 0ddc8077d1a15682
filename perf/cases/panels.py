"""Panels with many levels: kernel models with and without effects of levels, boosting, and mixed models."""

from importlib.util import find_spec

from sklearn.base import BaseEstimator, RegressorMixin

from perf.cases.ablation import without
from perf.peers import contest, fit_times, mean_error
from perf.record import Row
from perf.suite import guarded
from perf.tables import panels
from perf.tables.mixed import GPBoost, MixedLM
from perf.tables.peers import LIGHTGBM, MACHINES, ours

_SLOWER = 3  # times LightGBM's seconds, at most
_QUICK_ROWS = 600
_PEERS = {"LightGBM": LIGHTGBM, "CatBoost": "catboost"}
_MIXED = {"GPBoost": (GPBoost, "gpboost"), "MixedLM": (MixedLM, "statsmodels")}


def run(quick):
    """Errors of the targets without noise of made panels, and of the targets of real ones; seconds of a fit."""
    for name, table in panels.TABLES.items():
        yield from guarded(name, _panel, name, table, _QUICK_ROWS if quick else None)


def _panel(name, table, most_rows):
    split = table().split(0).quick(most_rows)
    makers = {
        "ours": lambda: ours(split.X, split.y, 0).set_params(on_unseen="ignore"),
        "without": lambda: _WithoutEffects(ours(split.X, split.y, 0).set_params(on_unseen="ignore")),
        **{peer: lambda key=key: MACHINES[key].make(split.X, split.y, 0) for peer, key in _PEERS.items()},
    }
    makers |= {peer: lambda: None for peer, key in _PEERS.items() if not MACHINES[key].installed}
    makers |= {
        peer: kind if find_spec(package) else lambda: None
        for peer, (kind, package) in _MIXED.items()
        if kind().suits(split.X)
    }
    trials, failures = contest(makers, [split])
    yield from failures
    own = trials.pop("ours", None)
    if own is None:
        return
    reach = {"reach": ("<=", panels.REACH[name])} if name in panels.REACH else {}
    yield Row(f"{name}, error", mean_error(own), **reach, unit="%")
    for peer, theirs in trials.items():
        yield Row(f"{name}, error / {peer}", mean_error(own), mean_error(theirs), unit="%")
        reach = {"reach": ("<=", _SLOWER)} if peer == "LightGBM" else {}
        yield Row(f"{name}, fit / {peer}", fit_times(own), fit_times(theirs), **reach)


class _WithoutEffects(RegressorMixin, BaseEstimator):
    """A kernel model whose fit lacks effects of levels."""

    def __init__(self, machine):
        self.machine = machine

    def fit(self, X, y):
        with without(("global_part",)):
            self.machine.fit(X, y)
        return self

    def predict(self, X):
        return self.machine.predict(X)
