"""Error against seconds: models with time limits, on a few tables."""

from perf.record import Row
from perf.suite import guarded
from perf.tables.contest import fit_each
from perf.tables.peers import OURS
from perf.tables.results import kept
from perf.tables.standings import geometric_mean, standing_of

TABLES = ("cpu_act", "wine_quality_white", "phoneme", "diamonds", "adult", "forest_cover_2")


def run(tables, models, seconds, n_splits, printed, child, folder):
    """Fit our model again, and others without stored results, and compare them; `printed` fits nothing.

    Parameters
    ----------
    tables : iterable of str
    models : dict of str to Peer
    seconds : list of float
    n_splits : int
    printed : bool
    child : type
        `contest.Child` or a class with its interface.
    folder : Path
        Folder of results with names such as "binfeat@3".

    Yields
    ------
    row : Row
    """
    for table in () if printed else tables:
        before = kept(folder)
        orders = [
            (who, k, own, f"{who}@{own:g}")
            for k in range(n_splits)
            for own in seconds
            for who in models
            if who == OURS or (table, f"{who}@{own:g}", k) not in before
        ]
        yield from guarded(table, fit_each, table, models, orders, child, folder)
    yield from _compared(tables, models, seconds, n_splits, kept(folder).values())


def _compared(tables, models, seconds, n_splits, results):
    ratios = {}
    for table in tables:
        own = [
            result
            for result in results
            if result.table == table and result.who.partition("@")[0] in models and result.split < n_splits
        ]
        own = [result for result in own if float(result.who.partition("@")[2] or -1) in seconds]
        if own:
            yield from _of_table(standing_of(table, own), models, seconds, ratios)
    for (who, asked), own in ratios.items():
        yield Row(f"error in {asked:g} s / {who}'s, geometric mean of {len(own)}", geometric_mean(own), unit="")


def _of_table(standing, models, seconds, ratios):
    """Yield the rows of a table, and add our error divided by the error of each other model with the same limit."""
    for who, why in standing.failed.items():
        yield Row(f"{standing.name}: {who}", None, error=why)
    for who in models:
        for asked in seconds:
            if (entry := standing.entries.get(f"{who}@{asked:g}")) is None:
                continue
            ours = standing.entries.get(f"{OURS}@{asked:g}")
            at = {"panel": "seconds", "table": standing.name, "series": who, "asked": asked, "x": entry.fit}
            yield Row(f"{standing.name}: {who} in {asked:g} s", entry.error, unit="%", at=at)
            if who != OURS and ours is not None:
                ratio = (ours.error + standing.floor) / (entry.error + standing.floor)
                ratios.setdefault((who, asked), []).append(ratio)
