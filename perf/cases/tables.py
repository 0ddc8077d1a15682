"""KernelMachine* with its defaults beside all peers on more than fifty tables; it has options of its own."""

import tempfile
from pathlib import Path

from perf import plots
from perf.data import MissingDataError
from perf.record import Row
from perf.suite import guarded, names_among
from perf.tables import TABLES
from perf.tables.contest import Child
from perf.tables.peers import LIGHTGBM, MACHINES, OURS, PEERS, QUICK_MACHINES
from perf.tables.results import FOLDER, keep, kept
from perf.tables.standings import geometric_mean, mean_ranks, standing_of

N_SPLITS = 3
NARROWING = ("only", "peers", "splits")
QUICK_TABLES = ("diabetes", "iris")


def add_options(parser):
    """What narrows the case or leaves out fits; a narrowed run is not recorded."""
    group = parser.add_argument_group("options of tables")
    group.add_argument("--only", type=names_among(TABLES), metavar="TABLE,...", help="these tables only")
    group.add_argument(
        "--peers", type=names_among(PEERS), metavar="PEER,...", help="fit these peers only, where not kept"
    )
    group.add_argument("--splits", type=int, metavar="N", help=f"the first N splits of each table, not {N_SPLITS}")
    group.add_argument("--ours", action="store_true", help="fit ours only; the peers are those that are kept")
    group.add_argument("--print", action="store_true", dest="printed", help="fit nothing; print what is kept")


def pictures(record):
    """Ratio of errors against ratio of seconds, a point for each table."""
    return {"tables.png": plots.tables(record["rows"])}


def run(
    quick,
    only=None,
    peers=None,
    splits=None,
    ours=False,
    printed=False,
    tables=TABLES,
    machines=MACHINES,
    child=Child,
    folder=FOLDER,
):
    """Fit what is asked for, and compare the kept results of the chosen tables and peers."""
    if quick:
        with tempfile.TemporaryDirectory() as kept_briefly:
            yield from _run(QUICK_TABLES, QUICK_MACHINES, list(QUICK_MACHINES), 1, child, Path(kept_briefly))
        return
    machines = {name: machine for name, machine in machines.items() if not peers or name in (OURS, *peers)}
    absent = [name for name, machine in machines.items() if not machine.installed]
    yield from (Row(f"{name}: not installed, skipped", None) for name in absent)
    fitted = () if printed else [OURS] if ours else peers or machines
    yield from _run(only or tables, machines, fitted, splits or N_SPLITS, child, folder)


def _run(tables, machines, fitted, n_splits, child, folder):
    """Fit ours anew and the peers whose results are not kept; then compare all kept results."""
    fitted = [name for name in fitted if machines[name].installed]
    before = kept(folder)
    for table in tables:
        orders = [(who, k) for k in range(n_splits) for who in fitted if who == OURS or (table, who, k) not in before]
        yield from guarded(table, _fit, table, machines, orders, child, folder)
    results = [
        result
        for result in kept(folder).values()
        if result.table in tables and result.who in machines and result.split < n_splits
    ]
    yield from _compare(tables, list(machines), results)


def _fit(table, machines, orders, child, folder):
    """Fit machines to splits of a table; a machine that fails on a split is not tried on others."""
    if not orders:
        return
    failures = {}
    try:
        with child(table, machines) as process:
            for who, k in orders:
                result = failures[who].on(k) if who in failures else process.fit(who, k)
                if result is None:
                    continue
                if result.failed:
                    failures[who] = result
                print(result, flush=True)
                keep(result, folder)
    except MissingDataError as error:
        yield Row(f"{table}: skipped, {error}", None)


def _compare(tables, machines, results):
    """Print the figures of every table; rows of all tables together, and of each table."""
    by_table = {table: [result for result in results if result.table == table] for table in tables}
    standings = [standing_of(table, own) for table, own in by_table.items() if own]
    everybody = [who for who in machines if any(result.who == who for result in results)]
    for standing in standings:
        print(standing.text(everybody), flush=True)
        yield from (Row(f"{standing.name}: {who}", None, error=why) for who, why in standing.failed.items())
    standings = [standing for standing in standings if standing.is_comparable]
    if standings:
        yield from _together(standings, everybody)
    for standing in standings:
        yield from _of_table(standing)


def _together(standings, everybody):
    """Rows over all tables that have figures of ours and of a peer."""
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


def _of_table(standing):
    """Rows of one table."""
    at = None
    ours, best = standing.entries[OURS], standing.best_peer
    if standing.fit_ratio is not None:
        at = {"panel": "tables", "series": standing.kind, "table": standing.name}
        at |= {"x": standing.fit_ratio, "y": standing.error_ratio}
        yield Row(f"{standing.name}, fit / {LIGHTGBM}", ours.fit, standing.entries[LIGHTGBM].fit)
    yield Row(f"{standing.name}, error / {best}", ours.error, standing.entries[best].error, unit="%", at=at)
