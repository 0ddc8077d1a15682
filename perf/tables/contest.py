"""Fits of machines to the splits of a table, in a process of their own, each within a limit of time."""

import gc
import multiprocessing
import warnings
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

import numpy as np

from perf.data import MissingDataError, Split
from perf.tables import TABLES
from perf.tables.peers import MACHINES
from perf.tables.results import Result, error_of
from perf.tables.splitting import is_regression

LIMIT = 900  # seconds of a fit, the one before it to warm up, and the predictions
_GRACE = 5  # seconds for a process to end by itself
_WARM_UP_ROWS, _WARM_UP_ROWS_OF_A_CLASS = 300, 10


class Child:
    """A process that has loaded one table and fits machines to it; if it has to be ended, a new one is started.

    Parameters
    ----------
    table : str
    machines : dict of str to Peer
    limit : float
        Seconds.

    Raises
    ------
    MissingDataError
        If the table is not on this computer.
    """

    def __init__(self, table, machines=MACHINES, limit=LIMIT):
        self._table, self._machines, self._limit = table, machines, limit
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")  # threads of OpenMP do not live through a fork
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(far_end, self._table, self._machines), daemon=True)
        self._process.start()
        far_end.close()
        if (missing := self._pipe.recv()) is not None:
            raise MissingDataError(missing)

    def fit(self, who, split):
        """Fit a machine to a split.

        Returns
        -------
        result : Result or None
            None if the table has more rows than the machine takes.
        """
        if not self._process.is_alive():
            self._start()
        failure = Result(self._table, who, split, failed=f"more than {self._limit:g} s")
        try:
            self._pipe.send((who, split))
            if self._pipe.poll(self._limit):
                return self._pipe.recv()
        except (EOFError, OSError):
            failure = replace(failure, failed="its process ended")
        self._process.kill()
        self.close()
        return failure

    def close(self):
        """End the process: it does so itself, unless it is busy."""
        self._pipe.close()
        self._process.join(_GRACE)
        self._process.kill()
        self._process.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _serve(pipe, table, machines):
    """Load a table, report that, and fit what is asked for until the other end of the pipe is closed."""
    warnings.simplefilter("ignore")
    try:
        source = TABLES[table]()
    except MissingDataError as error:
        pipe.send(str(error))
        return
    pipe.send(None)
    warm = set()
    with suppress(EOFError):
        while True:
            who, split = pipe.recv()
            rows = _with_numbered_classes(source.split(split))
            if len(rows.y) > machines[who].most_rows:
                pipe.send(None)
                continue
            if who not in warm:
                with suppress(Exception):  # the fit that counts fails as well, and says why
                    _timed(machines[who], _few(rows), split)
                warm.add(who)
            pipe.send(_result(table, who, split, machines[who], rows))


def _with_numbered_classes(split):
    """The split with the classes 0 to k - 1 of the training rows; test rows of another class have -1."""
    if is_regression(split.y):
        return split
    classes, y = np.unique(split.y, return_inverse=True)
    place = np.searchsorted(classes, split.y_test).clip(max=classes.size - 1)
    return Split(split.X, y, split.X_test, np.where(classes[place] == split.y_test, place, -1))


def _few(split):
    """A few rows, some of every class, to warm up with."""
    rows = np.arange(min(_WARM_UP_ROWS, len(split.y)))
    if not is_regression(split.y):
        of_classes = [np.flatnonzero(split.y == label)[:_WARM_UP_ROWS_OF_A_CLASS] for label in np.unique(split.y)]
        rows = np.unique(np.concatenate([rows, *of_classes]))
    X = split.X.iloc[rows] if hasattr(split.X, "iloc") else split.X[rows]
    return Split(X, split.y[rows], X, split.y[rows])


def _result(table, who, split, machine, rows):
    n_train, n_inputs = rows.X.shape
    result = Result(table, who, split, regression=bool(is_regression(rows.y)), n_train=n_train, n_inputs=n_inputs)
    try:
        predictions, fit, predict = _timed(machine, rows, split)
    except Exception as error:
        return replace(result, failed=f"{type(error).__name__}: {error}")
    error, floor = error_of(predictions, rows.y_test)
    return replace(result, error=error, floor=floor, fit=fit, predict=predict)


def _timed(machine, rows, seed):
    """Predictions for the test rows, and the seconds of the fit, preparation included, and of predicting."""
    gc.collect()
    start = perf_counter()
    fitted = machine.make(rows.X, rows.y, seed).fit(rows.X, rows.y)
    middle = perf_counter()
    predictions = np.asarray(fitted.predict(rows.X_test)).ravel()
    return predictions, middle - start, perf_counter() - middle
