"""Errors of a model on test rows, with their standard errors."""

from dataclasses import dataclass
from time import perf_counter
from typing import Self, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d

from binfeat._common.array_types import ArrayLike
from binfeat._common.frames import unmasked
from binfeat._common.labels import Labels, one_against_rest
from binfeat._common.validation import checked_targets
from binfeat.models.served.estimator import ServedModelBase
from binfeat.models.table.columns import RawTable
from binfeat.models.table.targets import Targets, as_columns
from binfeat.models.table.unique_rows import row_hashes, share_of_seen

_FEWEST = 10  # test rows


@dataclass(frozen=True)
class Measure:
    name: str
    value: float
    spread: float
    is_share: bool = False


def _mean(name: str, values: np.ndarray, is_share: bool = False) -> Measure:
    return Measure(name, float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size)), is_share)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Test rows with their targets, predictions and errors."""

    table: np.ndarray  # (n_rows, n_columns), encoded
    residuals: np.ndarray  # (n_rows, n_targets), standardized targets (labels: -1 and 1) minus predictions
    seconds: float  # time of the predictions
    measures: list[Measure]
    seen: float | None  # share of the rows that are training rows; None if unknown

    @staticmethod
    def of(model: ServedModelBase, X: RawTable, y: ArrayLike) -> "Evaluation":
        """Evaluate a model on test rows; ValueError if X has fewer than 10 rows or y does not match."""
        start, fitted = perf_counter(), model._fitted
        table = fitted.encoder.transform(model, X)
        scores = fitted.scores(fitted.scaled(table), model.n_jobs)
        seconds = perf_counter() - start
        if len(table) < _FEWEST:
            raise ValueError(f"X has {len(table)} rows; a report needs at least {_FEWEST} test rows. Pass more rows.")
        kind = ClassificationEvaluation if is_classifier(model) else RegressionEvaluation
        return kind.evaluate(model, y, scores, table, seconds)

    @staticmethod
    def _share_seen(model: ServedModelBase, table: np.ndarray, answers: np.ndarray) -> float | None:
        seen = model._fitted.seen
        share = np.nan if seen is None else share_of_seen(row_hashes(table, answers), seen)
        return None if np.isnan(share) else share


@dataclass(frozen=True, eq=False)
class RegressionEvaluation(Evaluation):
    y: np.ndarray  # (n_rows, n_targets)
    predicted: np.ndarray

    @classmethod
    def evaluate(
        cls, model: ServedModelBase, y: ArrayLike, scores: np.ndarray, table: np.ndarray, seconds: float
    ) -> Self:
        y = checked_targets(y)
        Y = as_columns(y)
        if Y.shape != scores.shape:
            raise ValueError(
                f"y has shape {y.shape}, but X and the model have {scores.shape} rows and targets. Pass one value per "
                "row and target."
            )
        targets = cast(Targets, model._fitted.targets)
        predicted = as_columns(targets.decode(scores))
        std = targets.std if targets.is_plain else np.maximum(Y.std(axis=0), np.finfo(float).tiny)
        seen = cls._share_seen(model, table, Y)
        return cls(table, (Y - predicted) / std, seconds, cls._measures(Y, predicted), seen, Y, predicted)

    @staticmethod
    def _measures(Y: np.ndarray, predicted: np.ndarray) -> list[Measure]:
        found = list[Measure]()
        for k, (own, guess) in enumerate(zip(Y.T, predicted.T)):
            suffix = f", target {k}" if Y.shape[1] > 1 else ""
            squares, deviations = (own - guess) ** 2, (own - own.mean()) ** 2
            mean = _mean("", squares)
            root = np.sqrt(mean.value)
            # The mean of equal targets is rounded, so their deviations may be slightly above 0.
            if np.ptp(own) > 0 and (variance := deviations.mean()):
                share = mean.value / variance
                spread = _mean("", (squares - share * deviations) / variance).spread  # delta method for a ratio
                found.append(Measure(f"Unexplained variance{suffix}", share, spread, is_share=True))
            found += [
                Measure(f"Root mean squared error{suffix}", root, mean.spread / (2 * root) if root else 0.0),
                _mean(f"Mean absolute error{suffix}", np.abs(own - guess)),
            ]
        return found


@dataclass(frozen=True, eq=False)
class ClassificationEvaluation(Evaluation):
    labels: np.ndarray  # (n_rows,), numbers of the classes
    guesses: np.ndarray  # (n_rows,), numbers of the predicted classes
    probabilities: np.ndarray  # (n_rows, n_classes)

    @classmethod
    def evaluate(
        cls, model: ServedModelBase, y: ArrayLike, scores: np.ndarray, table: np.ndarray, seconds: float
    ) -> Self:
        if model.multilabel_ or isinstance(model.classes_, list):
            raise ValueError(
                "The model predicts several labels per row, and a report supports test rows only for one label per "
                "row. Call report(path) without X and y."
            )
        labels = _numbers_of(column_or_1d(unmasked(y)), model.classes_)
        if len(labels) != len(scores):
            raise ValueError(f"y has {len(labels)} labels, but X has {len(scores)} rows. Pass one label per row.")
        p = cast(Labels, model._fitted.targets).probabilities(scores)
        guesses = p.argmax(axis=1)
        targets = one_against_rest(labels, p.shape[1])
        seen = cls._share_seen(model, table, targets)
        return cls(table, targets - scores, seconds, cls._measures(labels, guesses, p), seen, labels, guesses, p)

    @staticmethod
    def _measures(labels: np.ndarray, guesses: np.ndarray, p: np.ndarray) -> list[Measure]:
        most = np.bincount(labels).argmax()
        own = p[np.arange(len(labels)), labels]
        return [
            _mean("Wrong labels", (labels != guesses).astype(float), is_share=True),
            _mean("Wrong labels if the most frequent one is predicted", (labels != most).astype(float), is_share=True),
            _mean("Log-loss", -np.log(np.maximum(own, 1e-300))),
        ]


def _numbers_of(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class number of each label; ValueError for labels that are not among the classes."""
    places = {label: k for k, label in enumerate(classes.tolist())}
    unknown = [label for label in dict.fromkeys(y.tolist()) if label not in places]
    if unknown:
        raise ValueError(
            f"y contains labels that are not classes of the model: {unknown[:3]}. Classes: {[*places][:10]}. Remove "
            "rows with other labels."
        )
    return np.array([places[label] for label in y.tolist()])
