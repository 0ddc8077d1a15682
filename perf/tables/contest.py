"""Fits of models to the splits of a table, in a separate process, each with a time limit."""

import gc
import multiprocessing
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from perf.data import MissingDataError, Split
from perf.measure import with_peak
from perf.record import Row
from perf.tables import load
from perf.tables.peers import MACHINES
from perf.tables.results import Result, error_of, keep
from perf.tables.scores import auc_of, log_loss_of
from perf.tables.splitting import is_regression

LIMIT = 900  # seconds of warm-up, fit and predictions
_GRACE = 5  # seconds until a process is killed
_WARM_UP_ROWS, _WARM_UP_ROWS_OF_A_CLASS, _WARM_UP_SECONDS = 300, 10, 1


class Child:
    """A process that has loaded one table and fits models to it; if it is killed, a new one is started.

    Parameters
    ----------
    table : str
    models : dict of str to Peer
    limit : float
        Seconds.

    Raises
    ------
    MissingDataError
        If the table is not on this computer.
    """

    def __init__(self, table, models=MACHINES, limit=LIMIT):
        self._table, self._models, self._limit = table, models, limit
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")  # threads of OpenMP do not survive a fork
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(far_end, self._table, self._models), daemon=True)
        self._process.start()
        far_end.close()
        if (missing := self._pipe.recv()) is not None:
            raise MissingDataError(missing)

    def fit(self, who, split, seconds=None):
        """Fit a model to a split.

        Parameters
        ----------
        who : str
        split : int
        seconds : float, default=None
            Time limit for models that have one.

        Returns
        -------
        result : Result or None
            None if the model is not fitted to this table.
        """
        if not self._process.is_alive():
            self._start()
        failure = Result(self._table, who, split, failed=f"more than {self._limit:g} s")
        try:
            self._pipe.send((who, split, seconds))
            if self._pipe.poll(self._limit):
                return self._pipe.recv()
        except (EOFError, OSError):
            failure = replace(failure, failed="its process ended")
        self._process.kill()
        self.close()
        return failure

    def close(self):
        """Wait until the process ends by itself, or kill it if it is busy."""
        self._pipe.close()
        self._process.join(_GRACE)
        self._process.kill()
        self._process.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def fit_each(table, models, orders, child, folder):
    """Fit models to splits of a table, and store the results; yields a row if the table is not on this computer.

    Parameters
    ----------
    table : str
    models : dict of str to Peer
    orders : iterable of tuple
        Model, split, its time limit or None, and the name of the stored result.
    child : type
        `Child` or a class with its interface.
    folder : Path

    Yields
    ------
    row : Row
    """
    try:
        with child(table, models) as process:
            for who, split, seconds, name in orders:
                if (result := process.fit(who, split, seconds)) is not None:
                    result = replace(result, who=name)
                    print(result, flush=True)
                    keep(result, folder)
    except MissingDataError as error:
        yield Row(f"{table}: skipped, {error}", None)


def _serve(pipe, table, models):
    """Load a table, report that, and fit models on request until the other end of the pipe is closed."""
    warnings.simplefilter("ignore")
    try:
        source = load(table)
    except MissingDataError as error:
        pipe.send(str(error))
        return
    pipe.send(None)
    warm = set()
    with suppress(EOFError):
        while True:
            who, split, seconds = pipe.recv()
            rows = _with_numbered_classes(source.split(split))
            if not models[who].takes(rows.X, rows.y):
                pipe.send(None)
                continue
            if who not in warm:
                with suppress(Exception):  # the measured fit fails as well, with a message
                    _timed(models[who], _few(rows), split, seconds and min(seconds, _WARM_UP_SECONDS))
                warm.add(who)
            pipe.send(_result(table, who, split, models[who], rows, seconds))


def _with_numbered_classes(split):
    """Return the split with training classes 0 to k - 1; test rows of other classes have -1."""
    if is_regression(split.y):
        return split
    classes, y = np.unique(split.y, return_inverse=True)
    place = np.searchsorted(classes, split.y_test).clip(max=classes.size - 1)
    return Split(split.X, y, split.X_test, np.where(classes[place] == split.y_test, place, -1))


def _few(split):
    """Return a few rows, some of each class, for the warm-up."""
    rows = np.arange(min(_WARM_UP_ROWS, len(split.y)))
    if not is_regression(split.y):
        of_classes = [np.flatnonzero(split.y == label)[:_WARM_UP_ROWS_OF_A_CLASS] for label in np.unique(split.y)]
        rows = np.unique(np.concatenate([rows, *of_classes]))
    X = split.X.iloc[rows] if hasattr(split.X, "iloc") else split.X[rows]
    return Split(X, split.y[rows], X, split.y[rows])


def _result(table, who, split, model, rows, seconds):
    result = Result(table, who, split, **_traits(rows))
    try:
        fit, memory = with_peak(lambda: _timed(model, rows, split, seconds))
        error, floor = error_of(fit.predictions, rows.y_test)
        losses = _losses(fit.model, rows)
    except Exception as error:
        return replace(result, failed=f"{type(error).__name__}: {error}")
    figures = {"error": error, "floor": floor, "fit": fit.seconds, "predict": fit.seconds_of_predict, **losses}
    megabytes = None if memory is None else memory / 1e6
    return replace(result, memory=megabytes, n_trials=getattr(fit.model, "n_trials_", None), **figures)


def _traits(rows):
    n_train, n_inputs = rows.X.shape
    frame = rows.X if hasattr(rows.X, "columns") else None
    return {
        "regression": bool(is_regression(rows.y)),
        "n_train": n_train,
        "n_inputs": n_inputs,
        "n_classes": 0 if is_regression(rows.y) else int(np.unique(rows.y).size),
        "categories": frame is not None and "category" in frame.dtypes.values,
        "missing": bool(np.isnan(rows.X).any() if frame is None else frame.isna().any(axis=None)),
    }


def _losses(model, rows):
    """Return losses of probabilities, on test rows of known classes."""
    if is_regression(rows.y) or not hasattr(model, "predict_proba"):
        return {}
    known = rows.y_test >= 0
    shares, y, classes = np.asarray(model.predict_proba(rows.X_test))[known], rows.y_test[known], np.unique(rows.y)
    return {
        "log_loss": float(log_loss_of(classes, shares, y)),
        "auc_loss": 1 - float(auc_of(classes, shares, y)),
    }


@dataclass(frozen=True)
class Timed:
    """A model fitted once: its predictions for the test rows, and its seconds, including preparation."""

    model: object
    predictions: np.ndarray
    seconds: float
    seconds_of_predict: float


def _timed(model, rows, seed, seconds=None):
    own = {} if seconds is None else {"seconds": seconds}
    gc.collect()
    start = perf_counter()
    fitted = model.make(rows.X, rows.y, seed, **own).fit(rows.X, rows.y)
    middle = perf_counter()
    predictions = np.asarray(fitted.predict(rows.X_test)).ravel()
    return Timed(fitted, predictions, middle - start, perf_counter() - middle)
