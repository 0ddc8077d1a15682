"""Panels with many levels: kernel models with and without effects of levels, boosting, and mixed models."""

from functools import partial

from sklearn.base import BaseEstimator, RegressorMixin

from perf.cases.ablation import without
from perf.peers import contest, fit_times, mean_error
from perf.record import Row
from perf.suite import guarded
from perf.tables import panels
from perf.tables.mixed import GPBoost, MixedLM
from perf.tables.peers import LIGHTGBM, MACHINES, Peer, ours

_SLOWER = 3  # goal: at most this multiple of LightGBM's seconds
_QUICK_ROWS = 600
_PEERS = {
    "LightGBM": MACHINES[LIGHTGBM],
    "CatBoost": MACHINES["catboost"],
    "GPBoost": Peer(lambda X, y, seed: GPBoost(), "gpboost"),
    "MixedLM": Peer(lambda X, y, seed: MixedLM(), "statsmodels"),
}


def run(quick):
    """Yield errors (synthetic panels: of targets without noise), and seconds of a fit."""
    for name, table in panels.TABLES.items():
        yield from guarded(name, _panel, name, table, _QUICK_ROWS if quick else None)


def _panel(name, table, most_rows):
    split = table().split(0).quick(most_rows)
    makers = {
        "ours": lambda: ours(split.X, split.y, 0).set_params(on_unseen="ignore"),
        "without": lambda: _WithoutEffects(ours(split.X, split.y, 0).set_params(on_unseen="ignore")),
        **{
            name: partial(peer.make, split.X, split.y, 0) if peer.installed else lambda: None
            for name, peer in _PEERS.items()
            if name != "MixedLM" or MixedLM().suits(split.X)
        },
    }
    trials, failures = contest(makers, [split, split])  # twice, because the first fit may compile kernels
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
    """A kernel model without effects of levels."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        with without(("global_part",)):
            self.model.fit(X, y)
        return self

    def predict(self, X):
        return self.model.predict(X)
