"""Kernel machines and ridge on Dask, beside memory and boosted trees on Dask; what an iteration costs, and clusters."""

import json
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from unittest import mock

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import binfeat
from binfeat import distributed
from binfeat._rows import sampled
from perf import dask_cost, dask_peers, record
from perf.dask_rounds import recorded
from perf.measure import interleave, stopwatch
from perf.record import Row
from perf.suite import guarded, names_among

N_ROWS, N_INPUTS, CHUNKS, GRIDS = 4_000_000, 20, 4, 64
QUICK_ROWS = 50_000
FIXED = {"features": "binning", "kernel": "laplacian", "alpha": 0.1, "scaling": None, "refit": False, "random_state": 0}
MACHINE = {"features": "binning", "max_grids": GRIDS, "random_state": 0}
TEST_ROWS = 100_000
SAMPLE = 300
GOAL_ROWS, GOAL_INPUTS, MACHINES = 10**9, 50, (8, 32, 100)


def add_options(parser):
    """What is measured anew, and how many rows tables have that are fitted beside memory or beside peers."""
    group = parser.add_argument_group("options of scale_dask")
    group.add_argument(
        "--parts", type=names_among(PARTS), metavar="PART,...", help=f"of {', '.join(PARTS)}; the others are kept"
    )
    group.add_argument("--rows", type=int, metavar="N", help=f"rows beside memory and beside peers, not {N_ROWS:,}")


def run(quick, parts=None, rows=None):
    """Measure the parts anew; of the others those figures that are kept."""
    if quick:
        for part in parts or PARTS:
            yield from guarded(part, PARTS[part], rows or QUICK_ROWS, quick)
        return
    for part in parts or PARTS:
        _keep(part, rows or N_ROWS, list(guarded(part, PARTS[part], rows or N_ROWS, quick)))
    for path in sorted(_folder().glob("*.json")):
        yield from (Row.from_dict(kept) for kept in json.loads(path.read_text()))


def _folder():
    return record.FOLDER / "scale_dask"


def _keep(part, n_rows, rows):
    _folder().mkdir(parents=True, exist_ok=True)
    (_folder() / f"{part}-{n_rows}.json").write_text(json.dumps([row.as_dict() for row in rows], indent=1) + "\n")


@contextmanager
def _cluster(n_workers):
    """A client of processes of one thread each."""
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def _ridge(n_rows, quick):
    """Binning and ridge with four chunks on two workers, and in memory."""
    with _cluster(2):
        dX, dy = _rows(n_rows)
        X, y = dX.compute(), dy.compute()
        fits = {"dask": partial(_fit, distributed, dX, dy), "memory": partial(_fit, binfeat, X, y)}
        times = interleave({name: stopwatch(fit) for name, fit in fits.items()}, 1 if quick else 3)
    what = f"{n_rows:,} rows x {GRIDS} grids, binning and ridge / in memory"
    yield Row(what, times["dask"], times["memory"], _reach(n_rows))


def _reach(n_rows):
    return "<=", 1.3 if n_rows >= 10**7 else 1.5


def _fit(home, X, y):
    binning = home.RandomBinning(gamma=_gamma(N_INPUTS), n_grids=GRIDS, output="codes", random_state=0)
    return home.CGRidge().fit(binning.fit_transform(X), y)


def _threads(n_rows, quick):
    """A fit with nothing left to choose by two workers of one thread, and by one whose tasks take two threads."""
    seconds = {}
    for setting, n_jobs in ((Setting(n_rows), None), (Setting(n_rows, n_workers=1, n_chunks=2), 2)):
        with _cluster(setting.n_workers), _small_sample():
            fit = setting.fit(n_jobs=n_jobs)
            seconds[n_jobs] = interleave({"fit": stopwatch(fit)}, 1 if quick else 3)["fit"]
    yield Row(f"{n_rows:,} rows: two workers of one thread, beside one whose tasks take two", seconds[None], seconds[2])


def _machine(n_rows, quick):
    """Whole kernel machines on Dask and in memory, with their errors on new rows."""
    with _cluster(2), _small_sample() if quick else nullcontext():
        dX, dy = _rows(n_rows)
        X, y = (part.compute() for part in _rows(TEST_ROWS, seed=1))
        fitted = {}
        calls = {
            "dask": stopwatch(partial(_fit_machine, distributed, fitted, dX, dy)),
            "memory": stopwatch(partial(_fit_machine, binfeat, fitted, dX.compute(), dy.compute())),
        }
        times = interleave(calls, 1)
    what = f"{n_rows:,} rows, kernel machine"
    yield Row(f"{what} / in memory", times["dask"], times["memory"], _reach(n_rows))
    dask, memory = (fitted[home] for home in (distributed, binfeat))
    squares = [(machine.predict(X) - y) ** 2 / y.var() for machine in (dask, memory)]
    apart = squares[0] - squares[1]
    for whose, each in (("its", squares[1]), ("the difference's", apart)):
        deviations = apart.mean() / max(each.std() / np.sqrt(each.size), np.finfo(float).tiny)
        reach = ("<=", 1) if each is not apart else None
        yield Row(f"{what}: error beyond that in memory, in {whose} standard errors", deviations, None, reach, "")
    for name, machine, own in zip(("on Dask", "in memory"), (dask, memory), squares, strict=True):
        yield Row(f"{what} {name}: {machine.n_grids_} grids, variance left", 100 * own.mean(), unit="%")


def _fit_machine(home, fitted, X, y):
    fitted[home] = home.KernelMachineRegressor(**MACHINE).fit(X, y)


def _peers(n_rows, quick):
    """A kernel machine and boosted trees on the same Dask cluster, and all of them on larger ones."""
    with _cluster(2) as client:
        dX, dy = _rows(n_rows)
        X, y = (part.compute() for part in _rows(TEST_ROWS, seed=1))
        with _small_sample() if quick else nullcontext():
            fitted = {}
            ours = stopwatch(partial(_fit_machine, distributed, fitted, dX, dy))()
        left = ((fitted[distributed].predict(X) - y) ** 2).mean() / y.var()
        yield Row("kernel machine on Dask, beside peers: variance left", 100 * left, unit="%")
        for name, make in dask_peers.peers(client, dask_peers.QUICK_TREES if quick else dask_peers.N_TREES).items():
            yield from guarded(name, _beside_peer, name, make, ours, (dX, dy, X, y))


def _beside_peer(name, make, ours, rows):
    seconds, error = dask_peers.fit(make, *rows)
    yield Row(f"kernel machine on Dask beside {name} on Dask", ours, seconds)
    yield Row(f"{name}: variance left", 100 * error, unit="%")
    for n_machines in MACHINES:
        share = GOAL_ROWS * GOAL_INPUTS / (rows[0].size * n_machines * dask_cost.WORKERS / 2)
        yield from _bill(
            f"{name}: 10^9 rows x 50 inputs on {n_machines} machines, in proportion", seconds * share, n_machines
        )


def _bill(what, seconds, n_machines):
    yield Row(what, seconds)
    yield Row(f"{what}, dollars", seconds * n_machines * dask_cost.DOLLARS, unit="$")


@dataclass(frozen=True)
class Setting:
    """A fit with nothing left to choose, and the cluster it runs on."""

    n_rows: int
    n_workers: int = 2
    n_chunks: int = CHUNKS
    n_inputs: int = N_INPUTS
    n_grids: int = GRIDS
    finer: float = 1.0  # grids: more bins

    def fit(self, **more):
        """What fits a machine to rows that are drawn now."""
        X, y = _rows(self.n_rows, self.n_chunks, n_inputs=self.n_inputs)
        options = {**FIXED, "gamma": self.finer * _gamma(self.n_inputs), "n_grids": self.n_grids, **more}
        return lambda: distributed.KernelMachineRegressor(**options).fit(X, y)


def _settings(least, most):
    """What the model is fitted to: each of its terms is far larger in some than in others."""
    middle = int(np.sqrt(least * most))
    return [
        Setting(least),
        Setting(least, finer=2.5),
        Setting(least, n_chunks=32),
        Setting(middle, n_inputs=2 * N_INPUTS),
        Setting(middle),
        Setting(most),
        Setting(least, n_workers=1),
        Setting(middle, n_workers=1),
        Setting(least, n_workers=4),
    ]


def _unseen(most):
    """What it is not fitted to: other rows, inputs, grids, bins and chunks."""
    return [
        Setting(most // 4, n_inputs=30, n_grids=32, n_chunks=6),
        Setting(most // 20, n_grids=96, finer=1.5, n_chunks=8),
    ]


def _cost(_, quick):
    """A model of each kind of round, fitted to 1, 2 and 4 workers, checked on fits that it has not seen."""
    least, most = (2_000, 200_000) if quick else (10**5, 10**7)
    settings, unseen = _settings(least, most), _unseen(most)
    if quick:
        settings, unseen = settings[:7], unseen[:1]
    measured = _measured([*settings, *unseen], 1 if quick else 3)
    seen = [own for setting in settings for own in measured[setting]]
    costs = dask_cost.costs_of(seen)
    for kind, cost in costs.items():
        for name, each in cost.each.items():
            scale, unit = (1e3, "ms") if name in dask_cost.SCHEDULER else (1e9, "ns")
            yield Row(f"{kind}: a {name}", scale * each, unit=unit)
    largest = next(own for own in measured[Setting(most)] if own.kind == "iteration")
    what = f"an iteration, carried in all / {largest.sent:g} times the coefficients"
    yield Row(what, largest.carried / 1e6, largest.sent * largest.coefficients / 1e6, ("<=", 1.1), "MB")
    for setting in unseen:
        yield from _checked(costs, setting, measured[setting])
    few = next(own for own in measured[Setting(least)] if own.kind == "iteration")
    yield from _on_clusters(costs, dask_cost.growth(few, largest), QUICK_ROWS if quick else N_ROWS, quick)


def _measured(settings, repeats):
    """The rounds of each setting, with the least seconds of some fits."""
    found = {}
    for n_workers in sorted({setting.n_workers for setting in settings}):
        with _cluster(n_workers), _small_sample():
            Setting(10_000, n_chunks=4 * n_workers).fit()()  # loads kernels on the workers
            for setting in (own for own in settings if own.n_workers == n_workers):
                found[setting] = _rounds(setting, repeats)
                print(f"{setting}: {sum(own.seconds for own in found[setting]):.3g} s", flush=True)
    return found


def _rounds(setting, repeats):
    fit, fits = setting.fit(), []
    for _ in range(repeats):
        with recorded(setting.n_workers) as rounds:
            fit()
        fits.append(rounds)
    return dask_cost.least(fits)


def _checked(costs, setting, rounds):
    what = f"{setting.n_rows:,} rows x {setting.n_inputs} inputs, {setting.n_grids} grids, {setting.n_chunks} chunks"
    measured = sum(own.seconds for own in rounds)
    predicted = sum(costs[own.kind].seconds(own) for own in rounds)
    for kind, cost in costs.items():
        own = [(one.seconds, cost.seconds(one)) for one in rounds if one.kind == kind]
        seconds, model = (sum(column) for column in zip(*own, strict=True))
        yield Row(f"{what}: {kind}, {len(own)} times", seconds, model)
    apart = max(measured / predicted, predicted / measured)
    yield Row(
        f"{what}: measured {measured:.3g} s, model {predicted:.3g} s, larger / smaller", apart, None, ("<=", 1.25), ""
    )


def _on_clusters(costs, power, n_rows, quick):
    """Seconds and dollars of 10^9 rows x 50 inputs, with the rounds that a fit of this many rows takes."""
    with _cluster(2), _small_sample() if quick else nullcontext(), recorded(2) as rounds:
        X, y = _rows(n_rows)
        total = stopwatch(partial(distributed.KernelMachineRegressor(**MACHINE).fit, X, y))()
    local = total - sum(own.seconds for own in rounds)
    for n_machines in MACHINES:
        what = f"10^9 rows x 50 inputs on {n_machines} machines"
        own = dask_cost.scaled(rounds, GOAL_ROWS, GOAL_INPUTS, power, n_machines)
        parts = dask_cost.of_cluster(costs, own, local, n_machines)
        yield from _bill(f"{what}, by the model", sum(parts.values()), n_machines)
        yield from (Row(f"{what}: {name}", seconds) for name, seconds in parts.items())
        few = dask_cost.scaled(rounds, GOAL_ROWS, GOAL_INPUTS, power, n_machines, chunks_each=1)
        fewer = dask_cost.of_cluster(costs, few, local, n_machines)
        yield Row(f"{what}, by the model, with one chunk on each machine and its cores", sum(fewer.values()))
    way = costs[own[-1].kind].on_cluster(own[-1], n_machines)["coefficients' way"]
    yield Row(f"{what}: bytes of an iteration, grids shared out / rows", dask_cost.by_shared_grids(own[-1]), way)


PARTS = {"ridge": _ridge, "threads": _threads, "machine": _machine, "peers": _peers, "cost": _cost}


def _small_sample():
    """A sample so small that even quick tables are fitted where they are."""
    return mock.patch.object(sampled, "_MOST_ROWS", SAMPLE)


def _gamma(n_inputs):
    return np.where(np.arange(n_inputs) < 4, 1.0, 2.0 / n_inputs)


def _rows(n_rows, n_chunks=CHUNKS, seed=0, n_inputs=N_INPUTS):
    """Rows that are drawn on the workers, and a target that four inputs make."""
    shape, chunks = (n_rows, n_inputs), (-(-n_rows // n_chunks), n_inputs)
    X = da.random.default_rng(seed).uniform(-1, 1, size=shape, chunks=chunks)
    y = da.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + da.fabs(X[:, 3])
    X, y = X.persist(), y.persist()
    wait([X, y])
    return X, y
