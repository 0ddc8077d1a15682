"""Errors, times and ranks of the machines on one table, and mean ranks over all tables."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import rankdata

from perf.tables.peers import LIGHTGBM, OURS

_TITLE = "{:24}{:>10}{:>12}{:>12}{:>7}"
_LINE = "{:24}{:>8.3f} %{:>10.3g} s{:>10.3g} s{:>7g}"


@dataclass(frozen=True)
class Entry:
    """A machine on one table: mean error over the splits, and medians of seconds."""

    error: float
    fit: float
    predict: float


@dataclass(frozen=True)
class Standing:
    """One table.

    Parameters
    ----------
    name : str
    splits : list of int
        Splits on which every machine with any result has been fitted.
    entries : dict of str to Entry
        Machines with figures on all these splits.
    failed : dict of str to str
        Machines that failed, and why.
    floor : float
        Added to both errors of a ratio.
    kind : str
        "regression" or "classes".
    size : str
    """

    name: str
    splits: list
    entries: dict
    failed: dict
    floor: float
    kind: str
    size: str

    @property
    def best_peer(self):
        peers = [who for who in self.entries if who != OURS]
        return min(peers, key=lambda who: self.entries[who].error, default=None)

    @cached_property
    def is_comparable(self):
        """Whether there are figures of ours and of a peer."""
        return OURS in self.entries and self.best_peer is not None

    @property
    def error_ratio(self):
        """Our error over the best peer's."""
        ours, theirs = (self.entries[who].error + self.floor for who in (OURS, self.best_peer))
        return ours / theirs

    @property
    def fit_ratio(self):
        """Our seconds of the fit over LightGBM's; None without LightGBM."""
        return self.entries[OURS].fit / self.entries[LIGHTGBM].fit if LIGHTGBM in self.entries else None

    @property
    def is_first(self):
        """Whether no peer's error is lower than ours."""
        return self.entries[OURS].error <= self.entries[self.best_peer].error

    def ranks(self, everybody):
        """Ranks from 1 by error; equal errors, and all machines without figures, share the mean of their ranks."""
        errors = [self.entries[who].error if who in self.entries else np.inf for who in everybody]
        return dict(zip(everybody, rankdata(errors)))

    def text(self, everybody):
        """The table's figures, laid out, best error first."""
        ranks = self.ranks(everybody)
        lines = [
            f"{self.name}: {self.size}, {self.kind}, splits: {len(self.splits)}",
            _TITLE.format("", "error", "fit", "predict", "rank"),
        ]
        for who, entry in sorted(self.entries.items(), key=lambda named: named[1].error):
            lines.append(_LINE.format(who, entry.error, entry.fit, entry.predict, ranks[who]))
        lines += [f"{who:24}FAILED: {why}" for who, why in self.failed.items()]
        return "\n".join(lines) + "\n"


def standing_of(name, results):
    """Standing of one table from its results.

    Parameters
    ----------
    name : str
    results : list of Result
        At least one result.

    Returns
    -------
    standing : Standing
    """
    by_machine = {}
    for result in results:
        by_machine.setdefault(result.who, {})[result.split] = result
    splits = sorted(set.intersection(*(set(own) for own in by_machine.values())))
    entries, failed = {}, {}
    for who, own in by_machine.items():
        reasons = [own[split].failed for split in splits if own[split].failed]
        if reasons:
            failed[who] = reasons[0]
        elif splits:
            entries[who] = _entry([own[split] for split in splits])
    some = next((result for result in results if not result.failed), results[0])
    kind = "regression" if some.regression else "classes"
    return Standing(name, splits, entries, failed, some.floor, kind, f"{some.n_train} x {some.n_inputs}")


def _entry(results):
    fit, predict = (float(np.median([getattr(result, side) for result in results])) for side in ("fit", "predict"))
    return Entry(float(np.mean([result.error for result in results])), fit, predict)


def mean_ranks(standings, everybody):
    """Mean rank of each machine over tables.

    Returns
    -------
    ranks : dict of str to float
    """
    all_ranks = [standing.ranks(everybody) for standing in standings]
    return {who: float(np.mean([ranks[who] for ranks in all_ranks])) for who in everybody}


def geometric_mean(ratios):
    return float(np.exp(np.mean(np.log(ratios))))
