"""Rows of a ridge model on the workers."""

import copy
from functools import partial, reduce

import numpy as np
from dask.sizeof import sizeof
from scipy.sparse.linalg import LinearOperator

from binfeat._rows.rows import Part, Rows, add_arrays
from binfeat._rows.vectors import column_dots
from binfeat.distributed._chunks import Chunks, compute, persist, reduce_in_tree, split_rows

sizeof.register(Part, lambda part: sizeof(part.Z) + sizeof(part.Y) + sizeof(part.weights))

_VISIT_COST = 9  # cost of a scheduler round, relative to a product


class DaskRows(Rows):
    """Rows on the workers, as delayed Parts with weights.

    `dtype` and `dense` describe the features. `traffic` lists the bytes of coefficients sent and of sums
    received, for each product and for the Gram matrix.
    """

    visit_cost = _VISIT_COST

    def __init__(self, parts, lengths, n_columns, n_targets, dtype, dense):
        self._parts, self._lengths = parts, lengths
        self.shape, self.n_targets = (sum(lengths), n_columns), n_targets
        self.dtype, self.dense, self.traffic = dtype, dense, []

    def _each(self, function, own=(), common=()):
        return Chunks(self._parts, "X").alive().each(function, own=own, common=common)

    @property
    def design(self):
        return _Predictions(self)

    def take(self, rows):
        of_parts = split_rows(rows, self._lengths)
        taken = persist(self._each(Part.take, own=[of_parts]))
        kept = [(part, len(rows)) for part, rows in zip(taken, of_parts, strict=True) if len(rows)]
        parts, lengths = (list(column) for column in zip(*kept, strict=True))
        some = DaskRows(parts, lengths, self.shape[1], self.n_targets, self.dtype, self.dense)
        some.traffic = self.traffic  # one record per fit
        return some

    def of_targets(self, targets):
        n_targets, parts = len(range(self.n_targets)[targets]), persist(self._each(Part.of_targets, common=(targets,)))
        some = DaskRows(parts, self._lengths, self.shape[1], n_targets, self.dtype, self.dense)
        some.traffic = self.traffic
        return some

    def totals(self):
        return tuple(self.sum(_totals))

    def sum(self, function, *arguments, join=add_arrays, in_blocks=False):
        total = reduce_in_tree(self._each(function, common=arguments), partial(_joined, join=join))
        sent = [value for value in arguments if np.shape(value)[:1] == self.shape[1:]]
        if sent:
            self.traffic.append((sent[0].nbytes, total[0].nbytes))
        elif not isinstance(total, list):
            self.traffic.append((0, total.nbytes))
        return total


class _Predictions(LinearOperator):
    """Fetch the predictions ``design @ W`` of rows on the workers."""

    def __init__(self, rows):
        self._rows = rows
        super().__init__(rows.dtype, rows.shape)

    def take(self, rows):
        """Select rows."""
        return self._rows.take(rows).design

    def _matmat(self, W):
        return np.concatenate(compute(self._rows._each(_predict, common=(W,))))


def _predict(part, W):
    return np.asarray(part.Z @ W)


def _totals(part):
    return [part.weights.sum(axis=0), column_dots(part.Y, part.weights)]


def _joined(values, join):
    first, *others = values
    return reduce(join, others, copy.deepcopy(first) if others else first)
