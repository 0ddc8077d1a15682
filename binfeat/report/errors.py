"""Errors of a machine on rows that it has not seen, with their standard errors."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d

from binfeat._common.frames import unmasked
from binfeat._common.labels import one_against_rest
from binfeat._common.validation import checked_targets
from binfeat.models.table.row_hashes import row_hashes
from binfeat.models.target.targets import as_columns

_FEWEST = 10  # rows for measuring errors


@dataclass(frozen=True)
class Measure:
    """An error and its standard error."""

    name: str
    value: float
    spread: float
    is_share: bool = False


def _mean(name, values, is_share=False):
    return Measure(name, float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size)), is_share)


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows with their targets and predictions."""

    table: np.ndarray  # (n_rows, n_columns), encoded
    residuals: np.ndarray  # (n_rows, n_targets), standardised targets minus predictions; labels are -1 and 1
    seconds: float  # of the predictions
    measures: list
    seen: float | None  # share of the rows that are rows of `fit`; None if that is not known

    @staticmethod
    def of(machine, X, y):
        """Rows X with the predictions of a machine; ValueError if y does not fit."""
        start, fitted = perf_counter(), machine._fitted
        table = fitted.encoder.transform(machine, X)
        scores = fitted.scores(fitted.scaled(table), machine.n_jobs)
        seconds = perf_counter() - start
        if len(table) < _FEWEST:
            raise ValueError(f"A report needs at least {_FEWEST} rows, got {len(table)}.")
        kind = JudgedClasses if is_classifier(machine) else JudgedNumbers
        return kind.judge(machine, y, scores, table, seconds)

    @staticmethod
    def _share_seen(machine, table, answers):
        seen = machine._fitted.seen
        share = np.nan if seen is None else seen.share_of(row_hashes(table, answers))
        return None if np.isnan(share) else share


@dataclass(frozen=True, eq=False)
class JudgedNumbers(Judged):
    """Rows of a regressor."""

    y: np.ndarray  # (n_rows, n_targets)
    predicted: np.ndarray

    @classmethod
    def judge(cls, machine, y, scores, table, seconds):
        y = checked_targets(y)
        Y = as_columns(y)
        if Y.shape != scores.shape:
            raise ValueError(f"y must have a value for each of {scores.shape} rows and targets, got shape {y.shape}.")
        targets = machine._fitted.targets
        predicted = as_columns(targets.decode(scores))
        std = targets.std if targets.is_plain else np.maximum(Y.std(axis=0), np.finfo(float).tiny)
        seen = cls._share_seen(machine, table, Y)
        return cls(table, (Y - predicted) / std, seconds, cls._measures(Y, predicted), seen, Y, predicted)

    @staticmethod
    def _measures(Y, predicted):
        found = []
        for k, (own, guess) in enumerate(zip(Y.T, predicted.T)):
            suffix = f", target {k}" if Y.shape[1] > 1 else ""
            squares, deviations = (own - guess) ** 2, (own - own.mean()) ** 2
            mean = _mean("", squares)
            root = np.sqrt(mean.value)
            variance = deviations.mean() or 1.0
            share = mean.value / variance
            spread = _mean("", (squares - share * deviations) / variance).spread  # of a ratio: the delta method
            found += [
                Measure(f"Variance left unexplained{suffix}", share, spread, is_share=True),
                Measure(f"Root mean squared error{suffix}", root, mean.spread / (2 * root) if root else 0.0),
                _mean(f"Mean absolute error{suffix}", np.abs(own - guess)),
            ]
        return found


@dataclass(frozen=True, eq=False)
class JudgedClasses(Judged):
    """Rows of a classifier."""

    labels: np.ndarray  # (n_rows,), numbers of the classes
    guesses: np.ndarray  # (n_rows,), numbers of the predicted classes
    probabilities: np.ndarray  # (n_rows, n_classes)

    @classmethod
    def judge(cls, machine, y, scores, table, seconds):
        if machine.multilabel_ or isinstance(machine.classes_, list):
            raise ValueError("A report with X and y is of one label a row; this machine learned several columns.")
        labels = _numbers_of(column_or_1d(unmasked(y)), machine.classes_)
        if len(labels) != len(scores):
            raise ValueError(f"y must have a label for each of {len(scores)} rows, got {len(labels)}.")
        p = machine._fitted.targets.probabilities(scores)
        guesses = p.argmax(axis=1)
        targets = one_against_rest(labels, p.shape[1])
        seen = cls._share_seen(machine, table, targets)
        return cls(table, targets - scores, seconds, cls._measures(labels, guesses, p), seen, labels, guesses, p)

    @staticmethod
    def _measures(labels, guesses, p):
        most = np.bincount(labels).argmax()
        own = p[np.arange(len(labels)), labels]
        return [
            _mean("Wrong labels", (labels != guesses).astype(float), is_share=True),
            _mean("Wrong if the most frequent label were always said", (labels != most).astype(float), is_share=True),
            _mean("Log loss of the probabilities", -np.log(np.maximum(own, 1e-300))),
        ]


def _numbers_of(y, classes):
    """Numbers of the classes of the labels y; ValueError if the machine does not know a label."""
    places = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in dict.fromkeys(y.tolist()) if label not in places]
    if unknown:
        raise ValueError(f"y holds labels that the machine does not know: {unknown[:3]}; it knows {[*places][:10]}.")
    return np.array([places[label] for label in y.tolist()])
