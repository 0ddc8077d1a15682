"""All rows on the workers, for the final fit of a kernel model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, cast

import numpy as np
from dask import delayed
from dask.delayed import Delayed
from sklearn.base import BaseEstimator

from binfeat._common.labels import AnyLabels
from binfeat._common.memory import allowed_bytes
from binfeat._common.persistence import Unfinished
from binfeat._rows.lazy import LazyFeatures
from binfeat._rows.rows import Part
from binfeat._threads import side_by_side
from binfeat.distributed._chunks import Chunks, compute, gathered, persist, reduce_in_tree, shared, split_rows
from binfeat.distributed._rows import DaskRows
from binfeat.distributed._table import DaskTable, Given
from binfeat.distributed.binning import number_bins, renumber
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.bins import Bins, rank_bins, starts_of, unite_bins
from binfeat.features.binning.grids import Grids
from binfeat.features.fourier.features import FourierMap
from binfeat.length_scales.matrices import Standardizer
from binfeat.models.fitted.cell_trees import ColumnRows
from binfeat.models.problem import Beyond, Problem
from binfeat.models.run import Run
from binfeat.models.solvers.all_rows import AllRows, Whole
from binfeat.models.solvers.cells import CellFunction
from binfeat.models.solvers.growth import Map
from binfeat.models.table.targets import Targets

Encode = Callable[[Any], np.ndarray]  # of a chunk of the raw table

_MOST_PIECES = 10_000  # each piece of a chunk is a task, and the scheduler is slow with many tasks


class AllDaskRows(AllRows):
    """All rows of a Dask table.

    Targets, weights and codes stay on the workers, including validation rows; only sums over rows are received. The
    `problem` contains the sample; names and number of inputs are read from the estimator.
    """

    def __init__(self, problem: Problem, run: Run, estimator: BaseEstimator, table: DaskTable) -> None:
        self._table, self._estimator = table, estimator
        super().__init__(problem, run, table.n_rows)
        self._max_bytes = allowed_bytes(run.settings.max_bytes, 2)
        self._task_jobs = 1 if run.settings.n_jobs is None else run.settings.n_jobs

    @cached_property
    def _parts(self) -> list[Delayed]:
        """Return a delayed Part without features for each chunk."""
        problem, table = self._problem, self._table
        if problem.beyond is None:
            return persist(table.given.each(_part, shared(problem.targets), self._task_jobs))
        given = shared(self._encoding()), shared(problem.beyond), self._task_jobs
        return persist(table.chunks.each(_part_by_rows, *given, own=[table.given.blocks]))

    def _encoding(self) -> Encode:
        """Return the encoder of a chunk, with names and number of the inputs."""
        twin = type(self._estimator)()  # other attributes of the model are not sent
        names = "n_features_in_", "feature_names_in_"
        vars(twin).update({name: value for name, value in vars(self._estimator).items() if name in names})
        twin._unfinished = Unfinished()
        return partial(self._problem.encoder.transform, twin)

    def whole(self, standardizer: Standardizer) -> Whole:
        """Fetch all rows, with inputs in float32; the workers keep their rows, and solve cells."""
        problem, table = self._problem, self._table
        is_weighted = table.is_weighted or problem.beyond is not None
        given = shared(self._encoding()), standardizer, is_weighted
        parts = replace(table.given, blocks=persist(table.chunks.each(_with_columns, *given, own=[self._parts])))
        Z, learned, weights = gathered(parts, "Z", "Y", "weights")
        y, own_weights = table.answers()
        rows = ColumnRows(np.ascontiguousarray(Z.T), standardizer)
        whole = problem.of_all(rows, table.rows, y, learned, weights, own_weights)
        cells = DaskCells(parts, table.lengths, whole.mean_weight, self._task_jobs)
        return whole, table.rows, cells

    def _training_rows(self) -> Any:  # with the methods of `TrainingRows`
        problem, table = self._problem, self._table
        encoding = self._encoding()
        held_out = split_rows(table.rows[np.sort(problem.held_out)], table.lengths)
        given = encoding, held_out, self._task_jobs
        return DaskTrainingRows(table.chunks, table.lengths, self._parts, problem.n_targets, *given)


class DaskCells:
    """Call functions for cells of rows, which are on the workers as one Part of encoded rows per chunk."""

    def __init__(self, parts: Chunks, lengths: Sequence[int], mean_weight: float, n_jobs: int | None) -> None:
        self._parts, self._lengths, self._mean_weight, self._n_jobs = parts, lengths, mean_weight, n_jobs

    def __call__(self, function: CellFunction, cells: list[np.ndarray]) -> list[Any]:
        """Return the results of ``function(columns, targets, weights)`` for cells, which are arrays of row numbers.

        A task computes one cell, or several cells if there are many chunks and cells.
        """
        if not cells:
            return []
        n_tasks = min(len(cells), max(1, _MOST_PIECES // len(self._lengths)))
        blocks, function, call = self._parts.checked().blocks, shared(function), delayed(_called)
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


def _with_columns(X: Any, part: Part, encoding: Encode, standardizer: Standardizer, is_weighted: bool) -> Part:
    return replace(part, Z=standardizer.columns(encoding(X)).T, weights=part.weights if is_weighted else None)


class DaskTrainingRows:
    """Rows on the workers for a growing model; validation rows have weight 0.

    While grids are added, a worker holds the codes of a chunk twice. `parts` has a delayed Part without features for
    each chunk of the raw table, and `held_out` the numbers of its validation rows.
    """

    def __init__(
        self,
        chunks: Chunks,
        lengths: tuple[int, ...],
        parts: list[Delayed],
        n_targets: int,
        encoding: Encode,
        held_out: list[np.ndarray],
        n_jobs: int,
    ) -> None:
        self._chunks, self._lengths, self._encoding, self._n_jobs = chunks, lengths, shared(encoding), n_jobs
        self._whole = replace(chunks, blocks=parts, check=None)
        self._parts = replace(self._whole, blocks=persist(self._whole.checked().each(_without, own=[held_out])))
        self.n_rows, self.n_targets = sum(lengths), n_targets

    def count(self, grids: Grids, first_grid: int) -> Bins:
        """Compute codes in additional grids on the workers, and return the bins of these grids."""
        blocks = persist(self._chunks.each(_numbered, self._encoding, shared(grids), self._n_jobs))
        numbered = replace(self._whole, blocks=blocks)
        bins = rank_bins(reduce_in_tree(numbered.each(itemgetter(0)), unite_bins)).coded
        self._keep(self._parts.checked().each(_with_grids, shared(bins), own=[blocks]))
        return bins

    def for_solver(self, features: Map, dtype: np.dtype) -> DaskRows:
        """Return the rows with these features; features of bins have this dtype."""
        parts, dense = self._parts.blocks, isinstance(features, FourierMap)
        if dense:
            parts = self._chunks.each(_with_fourier, self._encoding, shared(features), own=[parts])
        elif dtype == np.float32:
            parts = persist(self._parts.each(_in_dtype, dtype))
        return DaskRows(parts, self._lengths, features.n_components, self.n_targets, dtype, dense)

    def weigh_held_out(self) -> None:
        self._keep(self._parts.checked().each(_with_weights, own=[self._whole.blocks]))

    def _keep(self, parts: list[Delayed]) -> None:
        self._parts = replace(self._whole, blocks=persist(parts))


def _part(given: Given, targets: Targets | AnyLabels, n_jobs: int) -> Part:
    return Part(None, targets.encode(given.y), given.weights, n_jobs)


def _part_by_rows(X: Any, given: Given, encoding: Encode, beyond: Beyond, n_jobs: int) -> Part:
    Y, weights = beyond(encoding(X), given.y, given.weights)
    return Part(None, Y, weights, n_jobs)


def _without(part: Part, rows: np.ndarray) -> Part:
    weights = cast(np.ndarray, part.weights).copy()
    weights[rows] = 0.0
    return replace(part, weights=weights)


def _in_dtype(part: Part, dtype: np.dtype) -> Part:
    Z = cast(BinMatrix, part.Z)
    return replace(part, Z=BinMatrix._trusted(Z.codes, Z.offsets, dtype, part.n_jobs))


def _with_weights(part: Part, whole: Part) -> Part:
    return replace(part, weights=whole.weights)


def _numbered(X: Any, encoding: Encode, grids: Grids, n_jobs: int) -> tuple[Bins, np.ndarray]:
    return number_bins(encoding(X), grids, n_jobs)


def _with_grids(part: Part, numbered: tuple[Bins, np.ndarray], united: Bins) -> Part:
    bins, fresh = numbered
    offsets, n_known = united.starts, 0
    Z: Any = part.Z  # a BinMatrix, or None before the first grids
    if Z is not None:
        offsets, n_known = starts_of(np.concatenate([np.diff(Z.offsets), united.sizes])), len(Z.codes)
    narrow = np.diff(offsets).max() <= np.iinfo(np.uint16).max
    codes = np.empty((n_known + len(fresh), len(part.Y)), np.uint16 if narrow else np.uint32)
    if n_known:
        codes[:n_known] = Z.codes
    renumber(fresh, bins, united, codes[n_known:], part.n_jobs)
    return replace(part, Z=BinMatrix._trusted(codes, offsets, np.dtype(np.float64), part.n_jobs))


def _with_fourier(X: Any, part: Part, encoding: Encode, fourier: FourierMap) -> Part:
    fourier = replace(fourier, n_jobs=part.n_jobs)
    return replace(part, Z=LazyFeatures(fourier, encoding(X), fourier.n_components))
