"""A raw table on Dask with its targets and weights: a first pass over all chunks, and a sample of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from dask.sizeof import sizeof
from sklearn.base import BaseEstimator, is_classifier

from binfeat._common.labels import ClassWeight, check_labels, unite_classes, weights_of_classes
from binfeat._common.validation import check_weights, checked_targets
from binfeat._rows.sampled import checked_types, require_alike, sampled_rows
from binfeat._rows.sources import Table, rows_changed
from binfeat.distributed._chunks import (
    Chunks,
    compute,
    gathered,
    inputs_of,
    joined,
    persist,
    reduce_in_tree,
    require_rows,
    split_like,
    split_rows,
    taken,
    values_beside,
    weights_of_chunk,
)
from binfeat.models.table.targets import TargetTransform, as_columns, ends_of, replace_ignored


@dataclass(frozen=True)
class Facts:
    n_rows: int
    weight: float
    y_shape: tuple  # shape of the targets of a row
    classes: np.ndarray
    counts: np.ndarray  # rows of each class
    totals: np.ndarray  # weights of each class
    kind: Any  # of X: the types of its columns, or True for dense features

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray, kind: Any, has_classes: bool) -> Self:
        labels = y if has_classes else y[:0]
        classes, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
        totals = np.bincount(places.ravel(), weights[: len(labels), 0], classes.size)
        return cls(len(y), float(weights.sum()), y.shape[1:], classes, counts, totals, kind)


def places_of_rows(facts: Sequence[Facts]) -> list[int]:
    """Return the numbers of non-empty chunks; ValueError if all chunks are empty."""
    places = [place for place, fact in enumerate(facts) if fact.n_rows]
    require_rows(len(places))
    return places


def require_targets(facts: Sequence[Facts]) -> None:
    """Raise ValueError if targets of chunks have different columns, or all weights are 0."""
    for fact in facts:
        if fact.y_shape != facts[0].y_shape:
            raise ValueError(f"y must have the same columns in all chunks, got {fact.y_shape} and {facts[0].y_shape}.")
    check_weights([fact.weight for fact in facts], len(facts))


@dataclass
class Given:
    """Checked targets or labels and weights of a chunk, and the kinds of the columns of X."""

    y: np.ndarray
    weights: np.ndarray  # (n_rows, 1)
    types: list

    def take(self, rows: np.ndarray) -> "Given":
        return Given(self.y[rows], self.weights[rows], self.types)


sizeof.register(Given, lambda given: sizeof(given.y) + sizeof(given.weights))


class DaskTable:
    """A raw table on Dask, its targets and weights, after one pass over them.

    Targets and weights stay on the workers while this object exists; X is computed again for every pass.
    Empty chunks are dropped. The sample, with the increasing row numbers `rows`, equals the sample of a source of
    blocks of the same rows. An error about a chunk names the chunk.
    """

    def __init__(self, estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, groups: Any, seed: int) -> None:
        chunks, classify = inputs_of(estimator, X, reset=True), is_classifier(estimator)
        own = values_beside(chunks, y, sample_weight)
        given = replace(chunks, blocks=persist(chunks.each(_checked, classify, own=own)), check=None)
        facts = compute(given.each(_facts, classify))
        self._all_lengths = tuple(fact.n_rows for fact in facts)
        self._groups = (
            None if groups is None else split_like(replace(chunks, lengths=self._all_lengths), groups, "groups")
        )
        filled = places_of_rows(facts)
        self.chunks, self.given = _chosen(chunks, filled), _chosen(given, filled)  # of Given
        self._facts, self.is_weighted = [facts[i] for i in filled], sample_weight is not None
        self._require_alike()
        self.lengths = tuple(fact.n_rows for fact in self._facts)
        unchanged = self.chunks.each(_unchanged, own=[self.lengths])  # arrays of later passes have these lengths
        self.chunks = replace(self.chunks, blocks=unchanged, check=None)
        self.n_rows, self.flat = sum(self.lengths), not self._facts[0].y_shape
        self.rows = sampled_rows(self.n_rows, chunks.width, seed)

    def _require_alike(self) -> None:
        known = self._facts[0].kind
        for fact in self._facts:
            known = require_alike(fact.kind, known, "an earlier chunk")
        require_targets(self._facts)

    @property
    def is_whole(self) -> bool:
        return self.rows.size == self.n_rows

    def sample(self) -> tuple[Table, np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Fetch X, y, weights and groups of the sample; None for missing weights or groups."""
        tables = taken(self.chunks, self.rows, self.lengths)
        given = self.given.each(Given.take, own=[split_rows(self.rows, self.lengths)])
        fetched = compute([*tables, *given])
        X, given = joined(fetched[: len(tables)]), fetched[len(tables) :]
        y, weights = (np.concatenate([getattr(part, name) for part in given]) for name in ("y", "weights"))
        groups = None
        if self._groups is not None:
            groups = np.asarray(joined(compute(taken(self._groups, self.rows, self._all_lengths))))
        return X, y, weights.ravel() if self.is_weighted else None, groups

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Fetch targets or labels and weights (n_rows, 1) of all rows; None for missing weights."""
        y, weights = gathered(self.given, "y", "weights")
        return y, weights if self.is_weighted else None

    @cached_property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the classes of all rows and their counts; ValueError if there is only one class."""
        return unite_classes([(fact.classes, fact.counts) for fact in self._facts])

    def weigh_classes(self, class_weight: ClassWeight) -> None:
        """Multiply the weights of all rows by the weights of their classes."""
        if class_weight is not None:
            classes, totals = unite_classes([(fact.classes, fact.totals) for fact in self._facts])
            of_class = weights_of_classes(class_weight, classes, totals)
            self.given = replace(self.given, blocks=persist(self.given.each(_weighed, classes, of_class)))
            self.is_weighted = True

    def replace_ignored(self) -> None:
        """Replace targets of weight 0 by the minima of the others: a loss or a transform may not accept them."""
        if self.is_weighted:
            self.given = replace(self.given, blocks=persist(self.given.each(_without_ignored, self.ends[0])))

    @cached_property
    def ends(self) -> np.ndarray:
        """Return minimum and maximum of targets in rows of positive weight, (2, n_targets)."""
        ends = np.array(compute(self.given.each(_ends)))
        return np.array([ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)])

    def moments(self, transform: TargetTransform) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted mean and standard deviation of all transformed targets, each of shape (n_targets,)."""
        total, *sums = reduce_in_tree(self.given.each(_sums, transform), sum)
        mean = np.array(sums) / total
        return mean, np.sqrt(reduce_in_tree(self.given.each(_squares, transform, mean), sum) / total)


def _chosen(chunks: Chunks, places: list[int]) -> Chunks:
    lengths = None if chunks.lengths is None else tuple(chunks.lengths[i] for i in places)
    return replace(chunks, blocks=[chunks.blocks[i] for i in places], lengths=lengths)


def _checked(X: Table, y: Any, weights: Any, classify: bool) -> Given:
    n_rows = X.shape[0]
    weights = weights_of_chunk(weights, y, n_rows)
    if not n_rows:
        return Given(np.empty(0), weights, [])
    types = checked_types(X)
    if classify:
        if np.ndim(y) == 2 and y.shape[1] > 1:
            raise ValueError("y must have a label for each row; an indicator matrix of labels needs rows in memory.")
        return Given(check_labels(y), weights, types)
    return Given(checked_targets(y), weights, types)


def _unchanged(X: Table, n_rows: int) -> Table:
    if X.shape[0] != n_rows:
        raise rows_changed("it", n_rows, X.shape[0])
    return X


def _facts(given: Given, has_classes: bool) -> Facts:
    return Facts.of(given.y, given.weights, given.types, has_classes)


def _weighed(given: Given, classes: np.ndarray, of_class: np.ndarray) -> Given:
    weights = given.weights * of_class[np.searchsorted(classes, given.y)][:, None]
    return replace(given, weights=cast(np.ndarray, check_weights(weights.ravel(), len(weights), some=False)))


def _without_ignored(given: Given, value: np.ndarray) -> Given:
    return replace(given, y=replace_ignored(given.y, given.weights, value))


def _ends(given: Given) -> np.ndarray:
    return ends_of(given.y, given.weights)


def _sums(given: Given, transform: TargetTransform) -> np.ndarray:
    """Return the weight of a chunk, and the weighted sum of each target."""
    return np.append(given.weights.sum(), (given.weights * transform.transform(as_columns(given.y))).sum(axis=0))


def _squares(given: Given, transform: TargetTransform, mean: np.ndarray) -> np.ndarray:
    return (given.weights * (transform.transform(as_columns(given.y)) - mean) ** 2).sum(axis=0)
