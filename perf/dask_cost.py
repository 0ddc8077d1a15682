"""What rounds of a kernel machine on Dask cost: a model fitted to measured rounds, and clusters by it."""

from dataclasses import dataclass, replace
from math import ceil, log, log2

import numpy as np
import psutil
from scipy.optimize import nnls

N_CORES = psutil.cpu_count()
FAN = 8  # sums that are added up in one task
NETWORK = 1.25e9  # bytes a second of a link of 10 Gbit/s
WORKERS = 8  # of a machine in a cluster, one for each core
DOLLARS = 0.4 / 3600  # for a second of a machine with 8 cores

SCHEDULER, WAY = ("round", "chunk"), ("byte",)
_ON_BINS = ("row and grid", "doubling of a grid's bins, for each row and grid")
KINDS = {
    "first look": (*SCHEDULER, "row and input"),
    "binning": (*SCHEDULER, *_ON_BINS, "row, grid and input", *WAY),
    "first sums": (*SCHEDULER, *_ON_BINS, *WAY),
    "iteration": (*SCHEDULER, *_ON_BINS, *WAY),
}


@dataclass(frozen=True)
class Round:
    """One look at all rows: of the table, the binning, the sums before a solve, or an iteration of the solver."""

    kind: str  # among KINDS
    n_rows: int
    n_inputs: int
    n_grids: int
    n_columns: int
    n_workers: int  # with one thread each
    n_chunks: int
    seconds: float = np.nan
    carried: float = np.nan  # bytes on the loopback device, which carries all between processes of one machine

    @property
    def work(self):
        """All but what was measured."""
        return replace(self, seconds=0.0, carried=0.0)

    @property
    def coefficients(self):
        """Bytes of one number for each column."""
        return 8 * self.n_columns

    @property
    def sent(self):
        """Coefficients that an iteration carries, stated.

        Out to the scheduler and on to all workers; sums of chunks that lie on another worker than the one which adds
        them; the sum back by the scheduler. Binning carries bins instead.
        """
        return 3 + self.n_workers + self.n_chunks * (self.n_workers - 1) / self.n_workers

    def amounts(self, cores=None):
        """How much of each thing that seconds are made of; workers of this machine share its cores."""
        rows = self.n_rows / (cores or min(self.n_workers, N_CORES))
        return {
            "round": 1.0,
            "chunk": self.n_chunks,
            "row and input": rows * self.n_inputs,
            "row and grid": rows * self.n_grids,
            "doubling of a grid's bins, for each row and grid": (
                rows * self.n_grids * log2(max(self.n_columns / max(self.n_grids, 1), 1))
            ),
            "row, grid and input": rows * self.n_grids * self.n_inputs,
            "byte": self.sent * self.coefficients,
        }


def least(fits):
    """The rounds of the first of equal fits, with the least seconds and the median of bytes of all with the same work.

    Parameters
    ----------
    fits : list of lists of Round
    """
    same = {}
    for own in (own for fit in fits for own in fit):
        same.setdefault(own.work, []).append(own)
    return [
        replace(
            own,
            seconds=min(other.seconds for other in same[own.work]),
            carried=float(np.median([other.carried for other in same[own.work]])),
        )
        for own in fits[0]
    ]


@dataclass(frozen=True)
class Cost:
    """Non-negative seconds of each thing that a kind of Round is made of."""

    each: dict

    @classmethod
    def fit(cls, rounds):
        """Least squares of relative errors, of Rounds of one kind; the same work counts once."""
        rounds = {own.work: own for own in rounds}.values()
        (names,) = {KINDS[own.kind] for own in rounds}
        terms = np.array([[own.amounts()[name] / own.seconds for name in names] for own in rounds])
        scales = np.maximum(terms.max(axis=0), np.finfo(float).tiny)
        found = nnls(terms / scales, np.ones(len(rounds)))[0] / scales
        return cls(dict(zip(names, found.tolist(), strict=True)))

    def seconds(self, own):
        """Of a Round on one machine whose processes share its cores and its loopback device."""
        return self._sum(own.amounts(), self.each)

    def on_cluster(self, own, n_machines):
        """Seconds in the rounds of the scheduler, in work on rows, and in bytes that travel, on a cluster.

        Every worker has a core of its own; coefficients pass from machine to machine, and sums up a tree.
        """
        amounts = own.amounts(own.n_workers)
        levels = ceil(log(max(own.n_chunks, 2), FAN))
        path = 3 + log2(n_machines) + FAN * levels
        return {
            "rounds of the scheduler": self._sum(amounts, SCHEDULER),
            "work on rows": self._sum(amounts, set(self.each) - {*SCHEDULER, *WAY}),
            "coefficients' way": path * own.coefficients * max(self.each.get("byte", 0.0), 1 / NETWORK),
        }

    def _sum(self, amounts, names):
        return sum(self.each[name] * amounts[name] for name in names)


def costs_of(rounds):
    """A Cost for each kind of the rounds."""
    kinds = dict.fromkeys(own.kind for own in rounds)
    return {kind: Cost.fit([own for own in rounds if own.kind == kind]) for kind in kinds}


def by_shared_grids(own):
    """Seconds of bytes of an iteration on links, if each worker had some grids of all rows: a number for each row."""
    return 2 * (own.n_workers - 1) / own.n_workers * 8 * own.n_rows / NETWORK


def scaled(rounds, n_rows, n_inputs, power, n_machines, chunks_each=WORKERS):
    """The rounds of a fit of more rows, with columns that grow by a power of the rows, on a cluster of machines."""
    return [
        replace(
            own,
            n_rows=n_rows,
            n_inputs=n_inputs,
            n_columns=int(own.n_columns * (n_rows / own.n_rows) ** power),
            n_workers=WORKERS * n_machines,
            n_chunks=chunks_each * n_machines,
        )
        for own in rounds
    ]


def growth(few, many):
    """The power of the rows by which columns grow from one Round to another."""
    power = log(many.n_columns / few.n_columns) / log(many.n_rows / few.n_rows)
    return min(1.0, max(0.0, power))


def of_cluster(costs, rounds, local, n_machines):
    """Seconds of each part of a fit on a cluster: those of all rounds, and `local` in the process of the fit."""
    parts = {"the process of the fit": local}
    for own in rounds:
        for name, seconds in costs[own.kind].on_cluster(own, n_machines).items():
            parts[name] = parts.get(name, 0.0) + seconds
    return parts
