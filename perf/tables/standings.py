"""Errors, times and ranks of the models on one table, and mean ranks over all tables."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import rankdata

from perf.tables.peers import LIGHTGBM, OURS

_TITLE = "{:24}{:>10}{:>12}{:>12}{:>7}"
_LINE = "{:24}{:>8.3f} %{:>10.3g} s{:>10.3g} s{:>7g}"
_FIGURES = ("fit", "predict", "memory", "log_loss", "auc_loss", "n_trials")


@dataclass(frozen=True)
class Entry:
    """A model on one table: errors on the splits, and medians of other figures, NaN if there are none."""

    errors: tuple
    fit: float = np.nan
    predict: float = np.nan
    memory: float = np.nan
    log_loss: float = np.nan
    auc_loss: float = np.nan
    n_trials: float = np.nan

    @property
    def error(self):
        return float(np.mean(self.errors))


@dataclass(frozen=True)
class Standing:
    """The results of all models on one table.

    Parameters
    ----------
    name : str
    splits : list of int
        Splits with results of all models that have any result.
    entries : dict of str to Entry
        Models with figures on all these splits.
    failed : dict of str to str
        Models that failed, and the reasons.
    floor : float
        Added to both errors of a ratio.
    traits : Result
        Any result, for its numbers of rows, inputs and classes.
    """

    name: str
    splits: list
    entries: dict
    failed: dict
    floor: float
    traits: object

    @property
    def kind(self):
        return "regression" if self.traits.regression else "classes"

    @property
    def is_made(self):
        return self.name.startswith("made_")

    @property
    def best_peer(self):
        peers = [who for who in self.entries if who != OURS]
        return min(peers, key=lambda who: self.entries[who].error, default=None)

    @cached_property
    def is_comparable(self):
        """True if there are figures of our model and of a peer."""
        return OURS in self.entries and self.best_peer is not None

    def ratio(self, who):
        """Return our error divided by another model's."""
        ours, theirs = (self.entries[own].error + self.floor for own in (OURS, who))
        return ours / theirs

    @property
    def error_ratio(self):
        """Our error divided by the best peer's."""
        return self.ratio(self.best_peer)

    @property
    def fit_ratio(self):
        """Our training time divided by LightGBM's; None without LightGBM."""
        return self.entries[OURS].fit / self.entries[LIGHTGBM].fit if LIGHTGBM in self.entries else None

    @property
    def is_first(self):
        """True if no peer has a lower error than our model."""
        return self.entries[OURS].error <= self.entries[self.best_peer].error

    def ranks(self, everybody):
        """Return ranks from 1 by error; equal errors, and all models without figures, share their mean rank."""
        errors = [self.entries[who].error if who in self.entries else np.inf for who in everybody]
        return dict(zip(everybody, rankdata(errors)))

    def text(self, everybody):
        """Return the figures of the table as text, best error first."""
        ranks = self.ranks(everybody)
        lines = [
            f"{self.name}: {self.traits.n_train} x {self.traits.n_inputs}, {self.kind}, splits: {len(self.splits)}",
            _TITLE.format("", "error", "fit", "predict", "rank"),
        ]
        for who, entry in sorted(self.entries.items(), key=lambda named: named[1].error):
            lines.append(_LINE.format(who, entry.error, entry.fit, entry.predict, ranks[who]))
        lines += [f"{who:24}FAILED: {why}" for who, why in self.failed.items()]
        return "\n".join(lines) + "\n"


def standing_of(name, results):
    """Return the standing of one table from its results.

    Parameters
    ----------
    name : str
    results : list of Result
        At least one result.

    Returns
    -------
    standing : Standing
    """
    by_model = {}
    for result in results:
        by_model.setdefault(result.who, {})[result.split] = result
    splits = sorted(set.intersection(*(set(own) for own in by_model.values())))
    entries, failed = {}, {}
    for who, own in by_model.items():
        reasons = [own[split].failed for split in splits if own[split].failed]
        if reasons:
            failed[who] = reasons[0]
        elif splits:
            entries[who] = _entry([own[split] for split in splits])
    traits = min(results, key=lambda result: (bool(result.failed), result.categories is None))  # old ones lack traits
    return Standing(name, splits, entries, failed, traits.floor, traits)


def _entry(results):
    figures = {what: [getattr(result, what) for result in results] for what in _FIGURES}
    medians = {what: float(np.median(own)) for what, own in figures.items() if None not in own}
    return Entry(tuple(result.error for result in results), **medians)


def mean_ranks(standings, everybody):
    """Return the mean rank of each model over tables.

    Returns
    -------
    ranks : dict of str to float
    """
    all_ranks = [standing.ranks(everybody) for standing in standings]
    return {who: float(np.mean([ranks[who] for ranks in all_ranks])) for who in everybody}


def geometric_mean(ratios):
    return float(np.exp(np.mean(np.log(ratios))))


def median_of(entries, what):
    """Return the median over tables of a figure of one model; NaN if no table has it."""
    values = [value for entry in entries if np.isfinite(value := getattr(entry, what))]
    return float(np.median(values)) if values else np.nan
