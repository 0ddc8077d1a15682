"""A recorder of the rounds in which kernel machines on Dask look at all rows."""

from contextlib import ExitStack, contextmanager
from time import perf_counter
from unittest import mock

import psutil
from distributed import wait

from binfeat._linear import solve
from binfeat._linear.cg import State
from binfeat.distributed._all_rows import DaskTrainingRows
from binfeat.distributed._rows import DaskRows
from binfeat.distributed._table import DaskTable
from perf.dask_cost import Round


@contextmanager
def recorded(n_workers):
    """List of the Rounds of fits within. Binning is over when all codes are there, which fits do not wait for."""
    recorder = _Recorder(n_workers)
    with ExitStack() as stack:
        for owner, name, method in (
            (DaskTable, "__init__", recorder.look),
            (DaskTrainingRows, "count", recorder.count),
            (solve, "NormalEquations", recorder.first_sums),
            (State, "step", recorder.step),
        ):
            stack.enter_context(mock.patch.object(owner, name, _instead(method, getattr(owner, name))))
        yield recorder.rounds


def _instead(method, original):
    return lambda *arguments: method(original, *arguments)


class _Recorder:
    def __init__(self, n_workers):
        self._n_workers, self._width, self._n_grids, self.rounds = n_workers, 0, 0, []

    def _timed(self, kind, call, shape):
        """The result of a call; `shape` gives rows, inputs, grids, columns and chunks of it."""
        before, start = _loopback(), perf_counter()
        result = call()
        seconds, carried = perf_counter() - start, _loopback() - before
        *sizes, n_chunks = shape(result)
        self.rounds.append(Round(kind, *sizes, self._n_workers, n_chunks, seconds, carried))
        return result

    def look(self, original, table, *arguments):
        def shape(_):
            self._width = table.chunks.width
            return table.n_rows, self._width, 0, 0, len(table.lengths)

        self._timed("first look", lambda: original(table, *arguments), shape)

    def count(self, original, rows, grids, first_grid):
        def call():
            bins = original(rows, grids, first_grid)
            wait(rows._parts.blocks)
            return bins

        self._n_grids = first_grid + len(grids)
        return self._timed(
            "binning",
            call,
            lambda bins: (rows.n_rows, self._width, len(grids), bins.keys.size, len(rows._parts.blocks)),
        )

    def first_sums(self, original, rows, fit_intercept):
        return self._of_solve("first sums", lambda: original(rows, fit_intercept), rows)

    def step(self, original, state):
        return self._of_solve("iteration", lambda: original(state), getattr(state._system, "_rows", None))

    def _of_solve(self, kind, call, rows):
        if not isinstance(rows, DaskRows):  # a trial on the sample
            return call()
        return self._timed(
            kind, call, lambda _: (rows.shape[0], self._width, self._n_grids, rows.shape[1], len(rows._parts))
        )


def _loopback():
    """Bytes that this machine has sent to itself."""
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent
