"""A ridge model on binning features with a growing number of grids."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, Self, cast

import numpy as np

from binfeat._common.subsets import slices
from binfeat._rows import sources
from binfeat._rows.rows import ProcessRows, Rows
from binfeat._rows.streamed import StreamedFeatures
from binfeat.features.binning.bin_matrix import BinMatrix, code_dtype, in_type
from binfeat.features.binning.bins import Bins
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import BinTables, count_bins, find_codes
from binfeat.features.fourier.features import FourierMap
from binfeat.linear.gram import GramSystem, gram_system
from binfeat.linear.posterior import RidgePosterior, ridge_posterior
from binfeat.linear.result import RidgeSystem, SolveInterrupted, SolverOptions
from binfeat.linear.solve import ridge_system
from binfeat.models.features.feature_bytes import bytes_for_bins, dtype_and_targets_at_a_time, least_dtype
from binfeat.models.fitted.features import BinFunction
from binfeat.models.problem import WeightColumn

Dense = np.ndarray | StreamedFeatures
Blocks = Iterable[np.ndarray]  # (n_block_rows, n_inputs), float64

_FEATURES_AS_A_GRID = 3  # in a product: of 8 bytes each, read once


class GrowthRows(Protocol):
    """The rows for a growing model, in memory or elsewhere, possibly including validation rows."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_targets(self) -> int: ...
    def features(self, fourier: FourierMap) -> object: ...  # that `for_solver` takes as dense ones
    def count(self, grids: Grids, first_grid: int) -> Bins: ...
    def for_solver(self, offsets: np.ndarray, dense: Any, dtype: np.dtype, targets: slice) -> Rows: ...
    def weigh_held_out(self) -> bool: ...


class TrainingRows:
    """The rows for a growing model, in memory or from a source.

    Validation rows of a source are included with weight 0.
    """

    def __init__(
        self, blocks: Blocks, Y: np.ndarray, weights: WeightColumn, n_jobs: int | None, max_bytes: float = np.inf
    ) -> None:
        self.blocks, self.Y, self.weights, self._n_jobs = blocks, Y, weights, n_jobs
        self._later: WeightColumn = None  # including validation rows, for a source only
        self._store = CodeStore(len(Y), 0, max_bytes)

    @property
    def n_rows(self) -> int:
        return len(self.Y)

    @property
    def n_targets(self) -> int:
        return self.Y.shape[1]

    def without(self, held_out: np.ndarray) -> Self:
        """The rows of a source, those with the numbers `held_out` with weight 0."""
        self._later = np.ones((len(self.Y), 1)) if self.weights is None else self.weights
        self.weights = self._later.copy()
        self.weights[held_out] = 0.0
        return self

    def features(self, fourier: FourierMap) -> Dense:
        """Fourier features of the rows: an array, or what reads the source for them."""
        if self._later is None:
            (X,) = self.blocks
            return fourier(X)
        return StreamedFeatures(
            cast(sources.RowBlocks, self.blocks), fourier, fourier.n_components, np.float64, dense=True
        )

    def count(self, grids: Grids, first_grid: int) -> Bins:
        """Keep the codes of the rows in more grids, and give the bins of these."""
        self._store.grow(first_grid + len(grids))
        codes = self._store
        return count_bins(grids, self.blocks, len(self.Y), codes=codes, n_jobs=self._n_jobs, first_grid=first_grid)

    def for_solver(self, offsets: np.ndarray, dense: Dense | None, dtype: np.dtype, targets: slice) -> Rows:
        """Return the rows with features of all grids, with columns from `offsets` on, or with dense features."""
        Z = BinMatrix._of_store(self._store, offsets, dtype, self._n_jobs) if dense is None else dense
        return ProcessRows(Z, self.Y[:, targets], self.weights)

    def weigh_held_out(self) -> bool:
        """Restore the weights of included validation rows; return True if there are any."""
        if self._later is None:
            return False
        self.weights = self._later
        return True

    def append(self, Y: np.ndarray, weights: WeightColumn, codes: np.ndarray) -> None:
        """More rows, with their codes in all grids."""
        n_rows, n_grids = len(self.Y), len(codes)
        self.blocks, self.Y = [], np.concatenate([self.Y, Y])
        if weights is not None:
            self.weights = np.concatenate([self.weights, weights])
        wide = n_grids and (self._store.array.dtype == np.uint32 or codes.max() >= np.iinfo(np.uint16).max)
        store = CodeStore(len(self.Y), n_grids, self._store.max_bytes, np.uint32 if wide else np.uint16)
        store.array[:, :n_rows], store.array[:, n_rows:] = self._store.array, codes
        self._store = store


class Growth:
    """A ridge model on rows in grids; rows and grids can be added.

    Each solve starts from 0: from the last solution it takes as many iterations, and where the tolerance stops it
    the error of other rows is higher (perf/notes/grid_machines.md). Features are those of the grids, of which `draw`
    gives the first so many, or those of `fourier`. Codes, bins, coefficients and the solver's vectors take `max_bytes`:
    where these need more, vectors are float32, and fewer targets are solved for at a time.
    """

    def __init__(
        self,
        rows: GrowthRows,
        X_out: np.ndarray,  # validation rows, with codes
        draw: Callable[[int], Grids],
        fourier: FourierMap | None = None,
        n_jobs: int | None = None,
        max_bytes: float = np.inf,
    ) -> None:
        self.rows, self._X_out, self._draw, self._n_jobs = rows, X_out, draw, n_jobs
        self._max_bytes, self._least_dtype = max_bytes, least_dtype(rows.n_rows, fourier)
        self._dtype, self.n_together = np.dtype(np.float64), rows.n_targets  # the latter are solved for at a time
        self._codes_out = np.empty((0, len(X_out)), np.uint16)
        self._dense, self._dense_out, n_fourier = None, None, 0
        if fourier is not None:
            self._dense, self._dense_out = rows.features(fourier), fourier(X_out)
            n_fourier = fourier.n_components
        self.grids, self._bins, n_targets = draw(1)[:0], Bins.none(0), rows.n_targets
        # What the last solve found; to be set back to, all at once.
        self.coefficients = np.zeros((n_fourier, n_targets)), np.zeros(n_targets)
        self._system: RidgeSystem | None = None  # of the last solve, until rows or columns change
        self.n_iter = 0  # of the last solve, the most of all targets
        self.posterior: RidgePosterior | None = None  # for noise of variance 1 of a row of mean weight
        self.variances_out: np.ndarray | float = 0.0  # of the predictions for validation rows

    @property
    def n_grids(self) -> int:
        return len(self.grids)

    @property
    def n_fourier(self) -> int:
        return len(self.coefficients[0]) - self._bins.keys.size

    @property
    def width(self) -> float:
        """Return the cost of products with a row in units of grids, including dense features."""
        return self.n_grids + self.n_fourier / _FEATURES_AS_A_GRID

    def grow(self, n_grids: int) -> None:
        """Add grids up to a given number; the current function is distributed over all of them."""
        before, grids = self.n_grids, self._draw(n_grids)
        fresh = grids[before:]
        bins = self.rows.count(fresh, before)
        tables, bins = BinTables(bins.keys, bins.starts, self._n_jobs), Bins.join([self._bins, bins])
        dtype_out = code_dtype(bins.sizes.max())
        codes = find_codes(tables, fresh, self._X_out, self._n_jobs, dtype_out)
        old, fourier = self._split_coef()
        n_bins, n_targets = bins.keys.size, old.shape[1]
        left = bytes_for_bins(self._max_bytes, self.rows.n_rows, n_grids)
        dtype, n_together = dtype_and_targets_at_a_time(left, n_bins, n_targets, self._least_dtype)
        coef = np.zeros((n_bins + len(fourier), n_targets), dtype, order="F")
        coef[: len(old)], coef[n_bins:] = old * dtype.type(np.sqrt(before / n_grids)), fourier
        codes_out = np.concatenate([in_type(self._codes_out, dtype_out), codes])
        # Assigned together at the end, so that Ctrl-C in a slow step leaves the last function intact.
        self._system, self._dtype, self.n_together = None, dtype, n_together
        self.grids, self._bins, self._codes_out = grids, bins, codes_out
        self.coefficients = coef, self.coefficients[1]

    def add_held_out_rows(self, Y: np.ndarray, weights: WeightColumn) -> None:
        """Add the validation rows; their new bins follow the known bins in each grid."""
        system, self._system = self._system, None
        if self.rows.weigh_held_out():
            return
        if isinstance(system, GramSystem):
            self._system = system + gram_system(ProcessRows(self._dense_out, Y, weights), fit_intercept=True)
        codes = self._codes_out
        if self.n_grids:
            codes = self._add_bins_of_held_out_rows()
        if self._dense is not None:
            self._dense = np.concatenate([self._dense, self._dense_out])
        cast(TrainingRows, self.rows).append(Y, weights, codes)  # validation rows are not included
        self._X_out, self._dense_out = self._X_out[:0], None
        self._codes_out = np.empty((0, 0), np.uint16)

    def _add_bins_of_held_out_rows(self) -> np.ndarray:
        """Return the codes of the validation rows."""
        codes = CodeStore(len(self._X_out), self.n_grids, dtype=self._codes_out.dtype)
        bins = count_bins(self.grids, [self._X_out], len(self._X_out), self._bins, codes, self._n_jobs)
        old, fourier = self._split_coef()
        coef = np.zeros((bins.keys.size, old.shape[1]), self._dtype)
        moved = np.repeat(bins.starts[:-1] - self._bins.starts[:-1], self._bins.sizes)
        coef[np.arange(moved.size) + moved] = old
        posterior = self.posterior
        if posterior is not None:
            places = np.append(np.arange(moved.size) + moved, bins.keys.size + np.arange(len(fourier)))
            posterior = posterior.among(places, bins.keys.size + len(fourier), self._rng)
        self._bins, self.posterior = bins, posterior
        self.coefficients = np.concatenate([coef, fourier]), self.coefficients[1]
        return codes.array

    def solve(self, alpha: float, tol: float, max_iter: int) -> None:
        """Solve the ridge system for one penalty, for as many targets at a time as memory allows."""
        options = SolverOptions(tol=tol, max_iter=max_iter, solver="cg" if self.n_grids else "gram")
        coef, intercept = self.coefficients
        solution = np.array(coef, order="F"), intercept.copy()
        self.n_iter = 0
        try:
            for targets in slices(self.rows.n_targets, self.n_together):
                self._solve_for(targets, alpha, options, *solution)
        finally:
            self.coefficients = solution

    def _solve_for(
        self, targets: slice, alpha: float, options: SolverOptions, coef: np.ndarray, intercept: np.ndarray
    ) -> None:
        system = self._system
        if system is None:
            rows = self.rows.for_solver(self._bins.starts, self._dense, self._dtype, targets)
            system = ridge_system(rows, 1, options)
        if self.n_together == self.rows.n_targets:
            self._system = system
        try:
            result = next(system.solve([alpha], options))
        except SolveInterrupted as error:
            coef[:, targets], intercept[targets] = error.result.solution, error.result.intercept
            raise
        coef[:, targets], intercept[targets] = result.solution, result.intercept
        self.n_iter = max(self.n_iter, result.n_iter)

    def learn_posterior(
        self, alpha: float, n_samples: int, max_iter: int, mean_weight: float, rng: np.random.Generator
    ) -> None:
        """Compute the posterior variances of predictions from the training rows."""
        options = SolverOptions(max_iter=max_iter, solver="cg" if self.n_grids else "gram")
        rows = self.rows.for_solver(self._bins.starts, self._dense, self._dtype, slice(None))
        posterior = ridge_posterior(cast(ProcessRows, rows), alpha, n_samples, options, rng, self._system)
        posterior = posterior.times(mean_weight)
        self.variances_out = posterior.variances(self._features_out)
        self.posterior, self._rng = posterior, rng

    def held_out(self) -> np.ndarray:
        """Return predictions for the validation rows, of shape (n_out, n_targets)."""
        coef, intercept = self.coefficients
        return self._features_out @ coef + intercept

    @property
    def _features_out(self) -> BinMatrix | Dense:
        if self._dense_out is not None:
            return self._dense_out
        return BinMatrix._trusted(self._codes_out, self._bins.starts, self._dtype, self._n_jobs)

    def learned(self) -> tuple[BinFunction, np.ndarray, np.ndarray]:
        """Return the current function: coefficients of bins, Fourier coefficients, and intercepts."""
        self._system = None  # it has vectors as large as the coefficients
        bins, fourier = (np.ascontiguousarray(part.T, dtype=np.float64) for part in self._split_coef())
        return BinFunction(self.grids, self._bins.keys, self._bins.starts, bins), fourier, self.coefficients[1]

    def _split_coef(self) -> tuple[np.ndarray, np.ndarray]:
        coef, n_bins = self.coefficients[0], self._bins.keys.size
        return coef[:n_bins], coef[n_bins:]
