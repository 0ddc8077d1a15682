"""Differences between seeds of our model: one split of each table."""

from functools import partial

import numpy as np

from perf.record import Row
from perf.suite import guarded
from perf.tables.contest import fit_each
from perf.tables.peers import OURS, Peer, ours
from perf.tables.results import kept


def run(tables, n_seeds, printed, child, folder):
    """Fit our model with each seed, and compare the errors; `printed` fits nothing.

    Parameters
    ----------
    tables : iterable of str
    n_seeds : int
    printed : bool
    child : type
        `contest.Child` or a class with its interface.
    folder : Path
        Folder of results with names such as "binfeat#3".

    Yields
    ------
    row : Row
    """
    models = {f"{OURS}#{seed}": Peer(partial(_seeded, seed), "binfeat") for seed in range(n_seeds)}
    orders = [(who, 0, None, who) for who in models]
    for table in () if printed else tables:
        yield from guarded(table, fit_each, table, models, orders, child, folder)
    results = kept(folder)
    spreads = []
    for table in tables:
        own = [results[table, who, 0] for who in models if (table, who, 0) in results]
        errors = np.array([result.error for result in own if not result.failed])
        if len(errors) == n_seeds:
            spreads.append(100 * float(errors.std(ddof=1) / (errors.mean() + own[0].floor)))
            at = {"panel": "seeds", "table": table, "low": errors.min(), "mean": errors.mean(), "high": errors.max()}
            yield Row(f"{table}: spread of {n_seeds} seeds", spreads[-1], unit="% of the error", at=at)
    if spreads:
        for what, spread in (("median", np.median(spreads)), ("the largest", max(spreads))):
            yield Row(
                f"spread of {n_seeds} seeds, {what} of {len(spreads)} tables", float(spread), unit="% of the error"
            )


def _seeded(own_seed, X, y, seed):
    return ours(X, y, own_seed)
