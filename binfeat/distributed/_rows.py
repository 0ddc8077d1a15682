"""Rows of a ridge model on the workers."""

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any, cast

import numpy as np
from dask.delayed import Delayed
from dask.sizeof import sizeof
from scipy.sparse.linalg import LinearOperator

from binfeat._rows.rows import Join, Part, Rows, T, add_arrays
from binfeat._rows.vectors import column_dots
from binfeat.distributed._chunks import Chunks, compute, persist, reduce_in_tree, split_rows

sizeof.register(Part, lambda part: sizeof(part.Z) + sizeof(part.Y) + sizeof(part.weights))

_VISIT_COST = 9  # cost of a scheduler round, relative to a product


class DaskRows(Rows):
    """Rows on the workers, as delayed Parts with weights; `traffic` lists bytes sent and received for each product."""

    visit_cost = _VISIT_COST

    def __init__(
        self,
        parts: list[Delayed],
        lengths: Sequence[int],
        n_columns: int,
        n_targets: int,
        dtype: np.dtype,
        dense: bool,
    ) -> None:
        self._parts, self._lengths = parts, lengths
        self.shape, self.n_targets = (sum(lengths), n_columns), n_targets
        self.dtype, self.dense = dtype, dense
        self.traffic: list[tuple[int, int]] = []

    def _each(self, function: Callable[..., Any], own: Iterable[Sequence] = (), common: tuple = ()) -> list[Delayed]:
        return Chunks(self._parts, "X").checked().each(function, own=own, common=common)

    @property
    def design(self) -> "_Predictions":
        return _Predictions(self)

    def take(self, rows: np.ndarray) -> "DaskRows":
        of_parts = split_rows(rows, self._lengths)
        taken = persist(self._each(Part.take, own=[of_parts]))
        kept = [(part, len(rows)) for part, rows in zip(taken, of_parts, strict=True) if len(rows)]
        parts, lengths = (list(column) for column in zip(*kept, strict=True))
        some = DaskRows(parts, lengths, self.shape[1], self.n_targets, self.dtype, self.dense)
        some.traffic = self.traffic  # one record per fit
        return some

    def of_targets(self, targets: slice) -> "DaskRows":
        n_targets, parts = len(range(self.n_targets)[targets]), persist(self._each(Part.of_targets, common=(targets,)))
        some = DaskRows(parts, self._lengths, self.shape[1], n_targets, self.dtype, self.dense)
        some.traffic = self.traffic
        return some

    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        weight, of_targets = self.sum(_totals)
        return weight, of_targets

    def sum(self, function: Callable[..., T], *arguments: Any, join: Join = add_arrays, in_blocks: bool = False) -> T:
        total = reduce_in_tree(self._each(function, common=arguments), partial(_joined, join=join))
        sent = [value for value in arguments if np.shape(value)[:1] == self.shape[1:]]
        if sent:
            self.traffic.append((sent[0].nbytes, total[0].nbytes))
        elif not isinstance(total, list):
            self.traffic.append((0, total.nbytes))
        return total


class _Predictions(LinearOperator):
    """Fetch the predictions ``design @ W`` of rows on the workers."""

    def __init__(self, rows: DaskRows) -> None:
        self._rows = rows
        super().__init__(rows.dtype, rows.shape)

    def take(self, rows: np.ndarray) -> "_Predictions":
        return self._rows.take(rows).design

    def _matmat(self, W: np.ndarray) -> np.ndarray:
        return np.concatenate(compute(self._rows._each(_predict, common=(W,))))


def _predict(part: Part, W: np.ndarray) -> np.ndarray:
    return np.asarray(part.Z @ W)


def _totals(part: Part) -> list[np.ndarray]:
    weights = cast(np.ndarray, part.weights)
    return [weights.sum(axis=0), column_dots(part.Y, weights)]


def _joined(values: list[Any], join: Join) -> Any:
    first, *others = values
    return reduce(join, others, copy.deepcopy(first) if others else first)
