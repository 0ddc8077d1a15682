"""All rows of the final fit of a model: in memory, from a source, or on workers."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.held_out import lists_rows
from binfeat._common.subsets import numbered
from binfeat._rows.sampled import SampledSource
from binfeat.features.binning.tables import count_bins
from binfeat.features.fourier.features import FourierMap
from binfeat.length_scales.matrices import Standardizer
from binfeat.models.fitted.cell_trees import ColumnRows
from binfeat.models.kernel_algebra.loss import MARGINS
from binfeat.models.problem import Problem, rows_of
from binfeat.models.run import Phase, Run
from binfeat.models.settings import SIZES, Settings
from binfeat.models.solvers.cells import EachCell
from binfeat.models.solvers.growth import GridLaw, Growth, TrainingRows
from binfeat.models.solvers.sizes import bytes_for_features, fit_bytes, least_dtype, most_grids, row_bytes
from binfeat.models.table.findings import warn_of_few_grids

RowsOf = Callable[[Problem, Run], "AllRows"]  # from a problem with all rows, or a sample of them

# The problem of all rows, the numbers of the sample's rows among them, and a function that solves cells on workers, or
# None for rows in this process.
Whole = tuple[Problem, np.ndarray, EachCell | None]


def first_grids(run: Run, n_rows: int) -> int:
    """Return the initial number of grids: more for fewer rows, at least a few, and more only if there is time."""
    limits = run.limits
    wanted = np.clip(limits.row_grids // n_rows, *limits.sample_grids)
    in_time = SIZES.trial_share * run.clock.left_of(Phase.SOLUTION) / (SIZES.entry_seconds * n_rows)
    return int(min(wanted, max(limits.few_grids, in_time)))


class AllRows:
    """All rows of a fit, in memory, and the number of grids that fit next to them. Subclasses have other rows."""

    def __init__(self, problem: Problem, run: Run, n_all: int | None = None) -> None:
        """If the problem contains a sample, `n_all` is the number of all rows, including validation rows."""
        self._problem, self._run = problem, run
        self._rows = np.append(problem.train, problem.held_out)
        self.in_memory = n_all is None  # an exact model is possible
        self.n_all = len(self._rows) if n_all is None else n_all
        self._max_bytes: float = bytes_for_features(run.settings.max_bytes, self.n_all, problem.n_targets)

    @property
    def n_train(self) -> int:
        """Return the number of training rows, estimated from their share of the sample."""
        return round(self.n_all * len(self._problem.train) / len(self._rows))

    @property
    def kept_bytes(self) -> int:
        """Return the bytes of the rows in addition to the table, for a local model."""
        of_row = 4 * self._problem.table.shape[1] + row_bytes(self._problem.n_targets)
        return 0 if self.in_memory else self.n_all * of_row

    def whole(self, standardizer: Standardizer) -> Whole:
        """Return all rows with their inputs, possibly stored standardized."""
        return self._problem, np.arange(len(self._problem.table)), None

    def _training_rows(self) -> TrainingRows:
        """Return all rows for `Growth`."""
        problem, rows, held_out = self._problem, self._rows, slice(len(self._problem.train), None)
        given = problem.Y[rows], rows_of(problem.weights, rows), held_out, self._run.settings.n_jobs
        return TrainingRows([problem.table[rows]], *given, self._max_bytes // 2)

    def new_growth(self, source: GridLaw | FourierMap) -> Growth:
        """Return a model without grids, or of Fourier features; validation rows have weight 0."""
        rows, X_out = self._training_rows(), self._problem.table[self._problem.held_out]
        return Growth(rows, X_out, source, self._run.settings.n_jobs, self._max_bytes)

    def first_and_most_grids(self, law: GridLaw) -> tuple[int, int]:
        """Return the initial and the maximum number of grids."""
        by_bins, wanted = self.most_grids(law), self._run.settings.max_grids
        most = int(np.clip(by_bins, 1, wanted))
        if by_bins < wanted:
            self._run.note_memory(f"{most} grids")
            warn_of_few_grids(most)
        return min(first_grids(self._run, self.n_all), most), most

    def most_grids(self, law: GridLaw) -> float:
        """Return the number of grids that should fit in memory: bins grow with a power of the rows.

        It is infinite if even grids with a bin for each row fit.
        """
        most, X = partial(most_grids, self._max_bytes, self.n_all), self._problem.table
        of_targets = self._problem.n_targets, least_dtype(self.n_all)
        if most(self.n_all, *of_targets) >= self._run.settings.max_grids:
            return np.inf
        grids = law(SIZES.probe_grids)
        n_jobs, sizes = self._run.settings.n_jobs, (-(-len(X) // 4), len(X))
        few, many = (count_bins(grids, [X[:n]], n, n_jobs=n_jobs).keys.size / len(grids) for n in sizes)
        power = np.clip(np.log(many / few) / np.log(4), 0.0, 1.0)
        return most(many * (self.n_all / len(X)) ** power, *of_targets)


def check_beyond_memory(settings: Settings, cv: object) -> None:
    """Raise ValueError for settings that require rows in memory."""
    if lists_rows(cv):
        raise ValueError(
            "cv contains row numbers, which require all rows in memory, because a sample of the rows selects "
            "hyperparameters. Pass a splitter, such as KFold(5), or GroupKFold(5) with groups."
        )
    if settings.loss in MARGINS:
        raise ValueError(
            f"loss={settings.loss!r} requires all rows in memory; use loss='squared' for a source of blocks."
        )
    if settings.features == "exact":
        raise ValueError("features='exact' requires all rows in memory; use 'auto', 'local', 'binning' or 'fourier'.")


class SourceRows(AllRows):
    """All rows of a source; ValueError if `max_bytes` is too little for vectors of the rows."""

    def __init__(
        self,
        problem: Problem,
        run: Run,
        estimator: BaseEstimator,  # for names and number of the inputs
        source: SampledSource,
        y: np.ndarray,
        weights: np.ndarray | None,  # (n_rows, 1), for all rows like y
    ) -> None:
        (n_rows, n_targets), max_bytes = (len(y), problem.n_targets), run.settings.max_bytes
        super().__init__(problem, run, n_rows)
        if not self._max_bytes:
            raise ValueError(
                f"max_bytes must be more than {n_rows * row_bytes(n_targets):,}, the size of vectors of {n_rows:,} "
                f"rows and {n_targets} targets; got {fit_bytes(max_bytes):,}."
            )
        self._estimator, self._source, self._y, self._own_weights = estimator, source, y, weights
        if problem.beyond is None:
            self._Y, self._weights = problem.targets.encode(y), weights
            return
        parts = [problem.beyond(X, y[place], rows_of(weights, place)) for place, X in numbered(self._table())]
        self._Y, self._weights = map(np.concatenate, zip(*parts, strict=True))

    def whole(self, standardizer: Standardizer) -> Whole:
        columns = np.empty((self._problem.table.shape[1], self.n_all), np.float32)
        for place, X in numbered(self._table()):
            columns[:, place] = standardizer.columns(X)
        rows, numbers = ColumnRows(columns, standardizer), self._source.rows
        given = self._y, self._Y, self._weights, self._own_weights
        return self._problem.of_all(rows, numbers, *given), numbers, None

    def _training_rows(self) -> TrainingRows:
        held_out, n_jobs = self._source.rows[self._problem.held_out], self._run.settings.n_jobs
        return TrainingRows(self._table(), self._Y, self._weights, held_out, n_jobs, self._max_bytes // 2)

    def _table(self) -> Iterable[np.ndarray]:
        """Return blocks of all rows, encoded."""
        problem = self._problem
        return self._source.summary.rows(partial(problem.encoder.transform, self._estimator), problem.table.shape[1])
