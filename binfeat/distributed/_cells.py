"""Cells of rows on the workers; a task gathers and solves each cell."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from dask import delayed

from binfeat._rows.rows import Part
from binfeat._threads import side_by_side
from binfeat.distributed._chunks import Chunks, compute, shared, split_rows
from binfeat.models.machines.cells import CellFunction

_MOST_PIECES = 10_000  # each piece of a chunk is a task, and the scheduler is slow with many tasks


class DaskCells:
    """Call functions for cells of rows, which are on the workers as one Part per chunk.

    A Part contains encoded rows (n_rows, n_inputs), and weights (or None), which are divided by `mean_weight`. A
    task uses `n_jobs` threads.
    """

    def __init__(self, parts: Chunks, lengths: Sequence[int], mean_weight: float, n_jobs: int | None) -> None:
        self._parts, self._lengths, self._mean_weight, self._n_jobs = parts, lengths, mean_weight, n_jobs

    def __call__(self, function: CellFunction, cells: list[np.ndarray]) -> list[Any]:
        """Return the results of ``function(columns, targets, weights)`` for cells, which are arrays of row numbers.

        A task computes one cell, or several cells if there are many chunks and cells.
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


def _called(
    function: CellFunction, pieces: list[Part], places: list[np.ndarray], mean_weight: float, n_jobs: int | None
) -> list[Any]:
    """Return the results of a function for cells, given the positions of their rows in the pieces."""
    Z, Y = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("Z", "Y"))
    weights: list[Any] = [piece.weights for piece in pieces]
    relative = None if weights[0] is None else np.concatenate(weights)[:, 0] / mean_weight

    def call(rows: np.ndarray) -> Any:
        X, own_weights = np.ascontiguousarray(Z[rows].T), None if relative is None else relative[rows]
        return function(X, Y[rows].astype(np.float32), own_weights)

    return side_by_side(call, places, n_jobs)
