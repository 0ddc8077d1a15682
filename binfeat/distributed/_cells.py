"""Cells of rows on the workers: each is gathered to a task, and solved there."""

import numpy as np
from dask import delayed

from binfeat._rows.rows import Part
from binfeat._threads import side_by_side
from binfeat.distributed._chunks import Chunks, compute, shared, split_rows

_MOST_PIECES = 10_000  # rows of a chunk for a task are a task, too, and the scheduler is slow with many


class DaskCells:
    """Calls functions for cells of rows, which are on the workers as a Part for each chunk.

    A Part has rows (n_rows, n_inputs) as kernels see them, and weights, or none, that are divided by `mean_weight`. A
    task takes `n_jobs` threads.
    """

    def __init__(self, parts: Chunks, lengths, mean_weight, n_jobs):
        self._parts, self._lengths, self._mean_weight, self._n_jobs = parts, lengths, mean_weight, n_jobs

    def __call__(self, function, cells):
        """Results of ``function(columns, targets, weights)`` for cells, which are arrays of row numbers.

        A cell is a task; where chunks and cells are many, several are.
        """
        if not cells:
            return []
        n_tasks = min(len(cells), max(1, _MOST_PIECES // len(self._lengths)))
        blocks, function, call = self._parts.alive().blocks, shared(function), delayed(_called)
        tasks = []
        for numbers in np.array_split(np.arange(len(cells)), n_tasks):
            own = [cells[number] for number in numbers]
            rows = np.sort(np.concatenate(own))
            places = [np.searchsorted(rows, cell).astype(np.int32) for cell in own]
            pieces = [
                delayed(Part.take)(block, some.astype(np.int32))
                for block, some in zip(blocks, split_rows(rows, self._lengths), strict=True)
                if len(some)
            ]
            tasks.append(call(function, pieces, places, self._mean_weight, self._n_jobs))
        return [found for task in compute(tasks) for found in task]


def _called(function, pieces, places, mean_weight, n_jobs):
    """Results of a function for cells whose rows have these places among those of the pieces."""
    Z, Y = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("Z", "Y"))
    weights = [piece.weights for piece in pieces]
    relative = None if weights[0] is None else np.concatenate(weights)[:, 0] / mean_weight

    def call(rows):
        X, own_weights = np.ascontiguousarray(Z[rows].T), None if relative is None else relative[rows]
        return function(X, Y[rows].astype(np.float32), own_weights)

    return side_by_side(call, places, n_jobs)
