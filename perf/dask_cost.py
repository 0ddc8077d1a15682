"""What rounds of a kernel machine on Dask cost: a recorder, a model fitted to what it records, and clusters by it."""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil, log
from time import perf_counter
from unittest import mock

import numpy as np
import psutil
from scipy.optimize import nnls

from binfeat.distributed._all_rows import DaskTrainingRows
from binfeat.distributed._rows import DaskRows

N_CORES = psutil.cpu_count()
FAN = 8  # sums that are added up in one task
NETWORK = 1.25e9  # bytes a second of a link of 10 Gbit/s
WORKERS = 8  # of a machine in a cluster, one for each core
DOLLARS = 0.4 / 3600  # for a second of a machine with 8 cores


@dataclass(frozen=True)
class Round:
    """One look at all rows: an iteration of the solver, or the binning of all rows."""

    n_rows: int
    n_grids: int
    n_columns: int
    n_workers: int
    n_chunks: int
    seconds: float = np.nan
    carried: float = np.nan  # bytes on the loopback device, which carries all between processes of one machine

    @property
    def coefficients(self):
        """Bytes of one number for each column."""
        return 8 * self.n_columns

    @property
    def sent(self):
        """Coefficients that an iteration carries, stated.

        Out to the scheduler and on to all workers; sums of chunks that lie on another worker than the one which adds
        them; the sum back by the scheduler.
        """
        return 3 + self.n_workers + self.n_chunks * (self.n_workers - 1) / self.n_workers

    def terms(self):
        """What seconds are made of: a round, a task for each chunk, products on cores, bytes."""
        cores = min(self.n_workers, N_CORES)
        return np.array([1.0, self.n_chunks, self.n_rows * self.n_grids / cores, self.sent * self.coefficients])


@contextmanager
def recorded(n_workers):
    """Lists of the iterations and of the binnings of fits within, as Rounds."""
    iterations: list[Round] = []
    binnings: list[Round] = []
    total, count = DaskRows.sum, DaskTrainingRows.count

    def timed(call, kept, shape):
        before, start = loopback(), perf_counter()
        result = call()
        seconds, carried = perf_counter() - start, loopback() - before
        kept.append(Round(*shape(result), seconds, carried))
        return result

    def timed_sum(rows, function, *arguments, **options):
        def call():
            return total(rows, function, *arguments, **options)

        if function.__name__ != "_product":
            return call()
        n_grids = binnings[-1].n_grids
        shape = rows.shape[0], n_grids, rows.shape[1], n_workers, len(rows._parts)
        return timed(call, iterations, lambda _: shape)

    def timed_count(rows, grids, first_grid):
        n_chunks = len(rows._parts.blocks)
        return timed(
            lambda: count(rows, grids, first_grid),
            binnings,
            lambda bins: (rows.n_rows, len(grids), bins.keys.size, n_workers, n_chunks),
        )

    patches = mock.patch.object(DaskRows, "sum", timed_sum), mock.patch.object(DaskTrainingRows, "count", timed_count)
    with patches[0], patches[1]:
        yield iterations, binnings


def loopback():
    """Bytes that this machine has sent to itself."""
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def typical(rounds):
    """The first of equal rounds, with the medians of their seconds and bytes."""
    seconds, carried = (float(np.median([getattr(each, name) for each in rounds])) for name in ("seconds", "carried"))
    return replace(rounds[0], seconds=seconds, carried=carried)


@dataclass(frozen=True)
class Cost:
    """Non-negative seconds of each of a Round's terms."""

    each: np.ndarray  # (4,)

    @classmethod
    def fit(cls, rounds):
        """Least squares of relative errors."""
        terms = np.array([own.terms() / own.seconds for own in rounds])
        scales = np.maximum(terms.max(axis=0), np.finfo(float).tiny)
        return cls(nnls(terms / scales, np.ones(len(rounds)))[0] / scales)

    def seconds(self, own):
        """Of a Round on one machine whose processes share its cores and its loopback device."""
        return float(own.terms() @ self.each)

    def on_cluster(self, own):
        """Seconds in the rounds of the scheduler, in products, and in bytes that travel, on a cluster.

        Every worker has a core; coefficients pass from worker to worker, and sums up a tree.
        """
        round_, task, row_grid, byte = self.each
        levels = ceil(log(max(own.n_chunks, 2), FAN))
        path = 3 + log(own.n_workers, 2) + FAN * levels
        return {
            "rounds of the scheduler": round_ + task * own.n_chunks,
            "products": row_grid * own.n_rows * own.n_grids / own.n_workers,
            "coefficients' way": path * own.coefficients * max(byte, 1 / NETWORK),
        }

    def by_shared_grids(self, own):
        """Seconds of bytes that travel if each worker had some grids of all rows: a number for each row, not column."""
        path = 2 * (own.n_workers - 1) / own.n_workers
        return path * 8 * own.n_rows * max(self.each[3], 1 / NETWORK)


def scaled(rounds, n_rows, power, n_machines):
    """The rounds of a fit of more rows, with columns that grow by a power of the rows, on a cluster of machines."""
    n_workers = WORKERS * n_machines
    return [
        replace(
            own,
            n_rows=n_rows,
            n_columns=int(own.n_columns * (n_rows / own.n_rows) ** power),
            n_workers=n_workers,
            n_chunks=n_workers,
        )
        for own in rounds
    ]


def growth(few, many):
    """The power of the rows by which columns grow from one Round to another."""
    power = log(many.n_columns / few.n_columns) / log(many.n_rows / few.n_rows)
    return min(1.0, max(0.0, power))


def of_cluster(costs, fits, local):
    """Seconds of each part of a fit on a cluster: rounds of iterations and of binnings, and the process of the fit.

    Parameters
    ----------
    costs : tuple of Cost
        Of an iteration, and of a binning.
    fits : tuple of lists of Round
        Likewise.
    local : float
        Seconds of all else.
    """
    parts = {"the process of the fit": local}
    for cost, rounds in zip(costs, fits, strict=True):
        for own in rounds:
            for name, seconds in cost.on_cluster(own).items():
                parts[name] = parts.get(name, 0.0) + seconds
    return parts
