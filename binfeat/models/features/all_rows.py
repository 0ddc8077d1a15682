"""All rows for the final fit of a model of features: in memory, from a source, or elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._rows.sampled import SampledSource
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import count_bins
from binfeat.features.fourier.features import FourierMap
from binfeat.length_scales.matrices import Frame
from binfeat.models.features.feature_bytes import bytes_for_features, fit_bytes, least_dtype, most_grids, row_bytes
from binfeat.models.features.growth import Growth, GrowthRows, TrainingRows
from binfeat.models.features.sample import first_grids
from binfeat.models.kernel_algebra.bounded import BOUNDED_LOSSES
from binfeat.models.kernel_algebra.column_rows import ColumnRows, EachCell, ScaledTable
from binfeat.models.problem import Beyond, Problem
from binfeat.models.run import Run
from binfeat.models.search.scaled_kernels import ScaledKernels
from binfeat.models.settings import Settings
from binfeat.models.table.doubts import doubt_grids
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.scalers import InputScaler, NoScaler

GridLaw = Callable[[int], Grids]  # returns the first grids, for a given number
RowsOf = Callable[[Problem, Run], "AllRows"]  # of a problem with all rows or a sample of them

_FACTORS = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6)  # of gamma: more rows take finer grids
_PROBE_GRIDS = 4  # in which bins are counted to foresee how many there will be


@dataclass(frozen=True, eq=False)
class Whole:
    """All rows of a table; the problem may contain a sample of them."""

    problem: Problem
    X: ScaledTable  # scaled
    numbers: np.ndarray  # of the sample's rows among them
    each_cell: EachCell | None = None  # of cells on workers; None where rows are here only


class AllRows(ABC):
    """Base of rows in memory and of a source: the number of grids that fit in memory."""

    in_memory: ClassVar[bool]  # so that an exact model is possible

    def __init__(self, problem: Problem, run: Run, n_rows: int, max_bytes: float) -> None:
        self._problem, self._run, self._n_rows, self._max_bytes = problem, run, n_rows, max_bytes

    @property
    @abstractmethod
    def n_all(self) -> int:
        """Number of all rows, including validation rows."""

    @property
    def kept_bytes(self) -> int:
        """Bytes for the rows in addition to the table, for a local model."""
        return 0

    @abstractmethod
    def whole(self, kernels: ScaledKernels, frame: Frame) -> Whole:
        """All rows with their inputs, which may be kept in a frame."""

    @abstractmethod
    def _training_rows(self, kernels: ScaledKernels) -> GrowthRows:
        """Return all rows except validation rows, for `Growth`."""

    @abstractmethod
    def _sampled_inputs(self, kernels: ScaledKernels) -> np.ndarray:
        """Scaled rows in which bins are counted."""

    @abstractmethod
    def _first_grids(self) -> int:
        """Grids to begin with, if memory allows."""

    def new_growth(self, kernels: ScaledKernels, law: GridLaw, fourier: FourierMap | None = None) -> Growth:
        """Return a model without grids, for all rows except validation rows."""
        rows, X_out = self._training_rows(kernels), kernels.X[self._problem.held_out]
        return Growth(rows, X_out, law, fourier, self._run.settings.n_jobs, self._max_bytes)

    def factors(self, kernels: ScaledKernels, law: Callable[[float], GridLaw]) -> Sequence[float]:
        """Overall factors of gamma to try, with the grids that the law has for each."""
        return _FACTORS

    def first_and_most_grids(self, kernels: ScaledKernels, law: GridLaw) -> tuple[int, int]:
        """Grids to begin with, and to grow to at most."""
        by_bins = self._most_by_bins(self._sampled_inputs(kernels), law)
        most = int(np.clip(by_bins, 1, self._run.settings.max_grids))
        if by_bins < self._run.settings.max_grids:
            self._run.note_memory(f"{most} grids")
            doubt_grids(most)
        return min(self._first_grids(), most), most

    def _most_by_bins(self, X: np.ndarray, law: GridLaw) -> float:
        """Grids that are expected to fit in memory: the bins of a grid grow with a power of the rows, from X on."""
        most = partial(most_grids, self._max_bytes, self._n_rows)
        of_targets = self._problem.n_targets, least_dtype(self._n_rows, None)
        if most(self._n_rows, *of_targets) >= self._run.settings.max_grids:
            return np.inf
        grids = law(_PROBE_GRIDS)
        few, many = (self._mean_bins(grids, X[:n]) for n in (-(-len(X) // 4), len(X)))
        power = np.clip(np.log(many / few) / np.log(4), 0.0, 1.0)
        return most(many * (self._n_rows / len(X)) ** power, *of_targets)

    def _mean_bins(self, grids: Grids, X: np.ndarray) -> float:
        return count_bins(grids, [X], len(X), n_jobs=self._run.settings.n_jobs).keys.size / len(grids)


class MemoryRows(AllRows):
    """The training rows of a problem, which are in memory."""

    in_memory: ClassVar[bool] = True

    def __init__(self, problem: Problem, run: Run) -> None:
        n_rows = len(problem.train)
        super().__init__(problem, run, n_rows, bytes_for_features(run.settings.max_bytes, n_rows, problem.n_targets))

    @property
    def n_all(self) -> int:
        return len(self._problem.table)

    def whole(self, kernels: ScaledKernels, frame: Frame) -> Whole:
        return Whole(self._problem, kernels.X, np.arange(self.n_all))

    def _training_rows(self, kernels: ScaledKernels) -> GrowthRows:
        problem, train = self._problem, self._problem.train
        codes = self._max_bytes // 2
        X, Y, weights = kernels.X[train], problem.Y[train], problem.weights_of(train)
        return TrainingRows([X], Y, weights, self._run.settings.n_jobs, codes)

    def _sampled_inputs(self, kernels: ScaledKernels) -> np.ndarray:
        return kernels.X

    def _first_grids(self) -> int:
        return first_grids(self._run, self._n_rows)


@dataclass(frozen=True, eq=False)
class Encoding:
    """From a raw table to the inputs that kernels see."""

    estimator: BaseEstimator  # for names and number of the inputs
    encoder: TableEncoder
    scaler: InputScaler
    n_jobs: int | None

    def __call__(self, X: object) -> np.ndarray:
        """Scaled inputs, (n_rows, n_inputs_inside) float64."""
        table = self.encoder.transform(self.estimator, X)
        return self.scaler.transform(table, self.n_jobs)


def check_beyond_memory(settings: Settings) -> None:
    """Refuse with a ValueError what only rows in memory can have."""
    if settings.loss in BOUNDED_LOSSES:
        raise ValueError(f"loss={settings.loss!r} needs all rows in memory; use loss='squared' for rows beyond it.")
    if settings.features == "exact":
        others = "'auto', 'local', 'binning' or 'fourier'"
        raise ValueError(f"features={settings.features!r} needs all rows in memory; use {others}.")


class RowsBeyondMemory(AllRows):
    """All rows of a table; the problem contains a sample of them."""

    in_memory: ClassVar[bool] = False

    @property
    def n_all(self) -> int:
        return self._n_rows

    @property
    def kept_bytes(self) -> int:
        return self.n_all * (4 * self._problem.table.shape[1] + row_bytes(self._problem.n_targets))

    def factors(self, kernels: ScaledKernels, law: Callable[[float], GridLaw]) -> Sequence[float]:
        """Return the common factors of gamma to try: their bins must fit in memory."""
        first, *finer = _FACTORS
        X, few = self._sampled_inputs(kernels), self._run.limits.few_grids
        return [first, *(factor for factor in finer if self._most_by_bins(X, law(factor)) >= few)]

    def _sampled_inputs(self, kernels: ScaledKernels) -> np.ndarray:
        return kernels.X[self._problem.train]

    def _first_grids(self) -> int:
        return self._run.limits.sample_grids[0]


class SourceRows(RowsBeyondMemory):
    """All rows of a source; ValueError if `max_bytes` is too little for vectors of the rows."""

    def __init__(
        self,
        problem: Problem,
        run: Run,
        estimator: BaseEstimator,  # for names and number of the inputs
        source: SampledSource,
        y: np.ndarray,
        weights: np.ndarray | None,  # (n_rows, 1), of all rows as y
    ) -> None:
        self._estimator, self._source, max_bytes = estimator, source, run.settings.max_bytes
        self._y, self._own_weights = y, weights
        if problem.beyond is None:
            self._Y, self._weights = problem.targets.encode(y), weights
        else:
            encoding = Encoding(estimator, problem.encoder, NoScaler(), run.settings.n_jobs)
            blocks = source.summary.rows(encoding, problem.table.shape[1])
            self._Y, self._weights = _learned(problem.beyond, blocks, y, weights)
        n_rows, n_targets = self._Y.shape
        super().__init__(problem, run, n_rows, bytes_for_features(max_bytes, n_rows, n_targets))
        if not self._max_bytes:
            raise ValueError(
                f"max_bytes must be more than {n_rows * row_bytes(n_targets):,}, which vectors of {n_rows:,} rows and "
                f"{n_targets} targets take; got {fit_bytes(max_bytes):,}."
            )

    def whole(self, kernels: ScaledKernels, frame: Frame) -> Whole:
        columns, done = np.empty((kernels.X.shape[1], self.n_all), np.float32), 0
        for X in self._scaled(kernels):
            columns[:, done : done + len(X)] = frame.columns(X)
            done += len(X)
        rows, numbers = ColumnRows(columns, frame), self._source.rows
        given = self._y, self._Y, self._weights, self._own_weights
        return Whole(self._problem.of_all(rows, numbers, *given), rows, numbers)

    def _training_rows(self, kernels: ScaledKernels) -> GrowthRows:
        rows = TrainingRows(
            self._scaled(kernels), self._Y, self._weights, self._run.settings.n_jobs, self._max_bytes // 2
        )
        return rows.without(self._source.rows[self._problem.held_out])

    def _scaled(self, kernels: ScaledKernels) -> Iterable[np.ndarray]:
        """Blocks of all rows, as kernels see them."""
        encoding = Encoding(self._estimator, self._problem.encoder, kernels.scaler, self._run.settings.n_jobs)
        return self._source.summary.rows(encoding, kernels.X.shape[1])


def _learned(
    beyond: Beyond, table: Iterable[np.ndarray], y: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Targets and weights of all rows of a source, by blocks of its encoded table."""
    parts, done = [], 0
    for X in table:
        place = slice(done, done + len(X))
        parts.append(beyond(X, y[place], None if weights is None else weights[place]))
        done = place.stop
    Y, own = zip(*parts, strict=True)
    return np.concatenate(Y), np.concatenate(own)
