"""Ridge models on a growing number of random grids, and their memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from binfeat._common.memory import allowed_bytes, require_bytes
from binfeat._rows.lazy import LazyFeatures
from binfeat._rows.products import Features
from binfeat._rows.rows import ProcessRows
from binfeat._rows.sources import RowBlocks
from binfeat._rows.streamed import StreamedFeatures
from binfeat.features.binning.bin_map import BinMap
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.bins import Bins
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import count_bins
from binfeat.features.fourier.features import FourierMap
from binfeat.linear.gram import GramSystem, gram_system
from binfeat.linear.posterior import RidgePosterior, ridge_posterior
from binfeat.linear.result import RidgeSystem, SolverOptions
from binfeat.linear.solve import ridge_system
from binfeat.linear.target_groups import VECTORS
from binfeat.models.machines.limits import SIZES
from binfeat.models.problem import WeightColumn


def fit_bytes(max_bytes: int | None) -> int:
    """Bytes that a fit may take: `max_bytes`, or a quarter of the computer's memory."""
    return allowed_bytes(max_bytes, 4)


def least_dtype(n_rows: int) -> np.dtype:
    """Return the dtype of coefficients and vectors if memory is short: float64 for many rows."""
    return np.dtype(np.float32 if n_rows <= SIZES.float32_rows else np.float64)


def row_bytes(n_targets: int) -> int:
    """Bytes of a row's targets and weights, and of what a solve makes of them."""
    return 8 * (2 + 5 * n_targets)


def require_table_bytes(shape: tuple[int, ...], n_rows: int, n_targets: int, max_bytes: int | None) -> None:
    """Raise an error if copies of a table of this shape (() if unknown) and its targets do not fit into `max_bytes`.

    A ValueError, or a MemoryError where `max_bytes` is None and the computer's memory is the limit.
    """
    n_columns = shape[1] if len(shape) == 2 else 0
    n_copies = SIZES.wide_table_copies if n_columns > SIZES.wide_columns else SIZES.table_copies
    n_bytes = n_rows * (8 * n_copies * n_columns + row_bytes(n_targets)) - SIZES.more_bytes
    if n_bytes > 0:
        words = f"dense copies of X, {n_rows:,} rows of {n_columns:,} columns, and of {n_targets:,} targets"
        require_bytes(n_bytes, max_bytes, words, "Use fewer columns, for example by TruncatedSVD, or fewer rows.")


def bytes_for_features(max_bytes: int | None, n_rows: int, n_targets: int) -> int:
    """Bytes that vectors of the rows leave of what a fit may take, for codes and bins; codes may have half of them."""
    return max(0, fit_bytes(max_bytes) - n_rows * row_bytes(n_targets))


def _bytes_of_bin(n_targets: int, together: int, dtype: np.dtype) -> int:
    """Bytes of a bin: before and after a solve it has a coefficient for each target."""
    return SIZES.bin_bytes + dtype.itemsize * (2 * n_targets + VECTORS * together)


def most_grids(max_bytes: float, n_rows: int, bins_of_grid: float, n_targets: int, dtype: np.dtype) -> float:
    """Return the number of grids that fit into this number of bytes, with the fewest targets per solve."""
    bins = bins_of_grid * _bytes_of_bin(n_targets, min(SIZES.targets_together, n_targets), dtype)
    return max(max_bytes / 2 / bins, max_bytes / (bins + SIZES.code_bytes * n_rows))  # codes in a file, or not


def bytes_for_bins(max_bytes: float, n_rows: int, n_grids: int) -> float:
    """Return the bytes that remain after the codes."""
    return max_bytes - min(max_bytes / 2, SIZES.code_bytes * n_rows * n_grids)


def dtype_and_targets_at_a_time(max_bytes: float, n_bins: int, n_targets: int, least: np.dtype) -> tuple[np.dtype, int]:
    """Type of the vectors, and how many targets to solve for together: float64 and all where they take little."""
    max_bytes = min(max_bytes, SIZES.ample_bytes)
    if n_bins * _bytes_of_bin(n_targets, n_targets, np.dtype(np.float64)) <= max_bytes:
        return np.dtype(np.float64), n_targets
    left = max_bytes / n_bins - _bytes_of_bin(n_targets, 0, least)
    pairs = max(1, left // (SIZES.targets_together * VECTORS * least.itemsize))
    return least, int(min(SIZES.targets_together * pairs, n_targets))


Map = BinMap | FourierMap
GridLaw = Callable[[int], Grids]  # returns the first grids, for a given number


class TrainingRows:
    """Training and validation rows, in memory (a list of one block) or from a source.

    Weights of validation rows are 0 until `weigh_held_out`. `DaskTrainingRows` has the same methods.
    """

    def __init__(
        self,
        blocks: Iterable[np.ndarray],  # (n_block_rows, n_inputs), float64
        Y: np.ndarray,
        weights: WeightColumn,
        held_out: np.ndarray | slice,  # numbers of the validation rows
        n_jobs: int | None,
        max_bytes: float = np.inf,
    ) -> None:
        self._blocks, self._Y, self._own_weights, self._n_jobs = blocks, Y, weights, n_jobs
        self._weights: WeightColumn = np.ones((len(Y), 1)) if weights is None else weights.copy()
        self._weights[held_out] = 0.0
        self._store = CodeStore(len(Y), 0, max_bytes)
        self.n_rows, self.n_targets = Y.shape

    def count(self, grids: Grids, first_grid: int) -> Bins:
        """Keep the codes of the rows in more grids, and return the bins of these."""
        self._store.grow(first_grid + len(grids))
        codes = self._store
        return count_bins(grids, self._blocks, self.n_rows, codes=codes, n_jobs=self._n_jobs, first_grid=first_grid)

    def for_solver(self, features: Map, dtype: np.dtype) -> ProcessRows:
        """Return the rows with these features; features of bins have this dtype."""
        Z: Features
        if isinstance(features, BinMap):
            Z = BinMatrix._of_store(self._store, features.starts, dtype, self._n_jobs)
        elif isinstance(self._blocks, list):
            (X,) = self._blocks
            Z = LazyFeatures(features, X, features.n_components)
        else:
            blocks = cast(RowBlocks, self._blocks)
            Z = StreamedFeatures(blocks, features, features.n_components, np.float64, dense=True)
        return ProcessRows(Z, self._Y, self._weights)

    def weigh_held_out(self) -> None:
        """Restore the weights of the validation rows."""
        self._weights = self._own_weights


@dataclass(frozen=True, eq=False)
class RidgeModel:
    """Features, coefficients and validation predictions."""

    features: Map
    coef: np.ndarray  # (n_features, n_targets)
    intercept: np.ndarray  # (n_targets,)
    predictions: np.ndarray  # (n_out, n_targets), without the validation rows


class Growth:
    """Ridge models on rows in the features of a map, or in grids of a law; grids can be added.

    Each solve starts from 0: from the last solution it takes as many iterations, and where the tolerance stops it
    the error of other rows is higher (perf/notes/grid_machines.md). Codes, bins, coefficients and the solver's vectors
    take `max_bytes`: where these need more, vectors are float32, and fewer targets are solved for at a time.
    """

    def __init__(
        self,
        rows: TrainingRows,
        X_out: np.ndarray,  # validation rows
        source: GridLaw | FourierMap,
        n_jobs: int | None = None,
        max_bytes: float = np.inf,
    ) -> None:
        self.rows, self._X_out, self._source, self._n_jobs, self._max_bytes = rows, X_out, source, n_jobs, max_bytes
        self._dtype, self._options = np.dtype(np.float64), SolverOptions(solver="gram")
        self._features: Map | None = None
        self._bins = Bins.none(0)
        self.n_grids, self.n_iter = 0, 0  # of the last solve
        if isinstance(source, FourierMap):
            self._use(source, source(X_out))

    @property
    def n_together(self) -> int:
        """Return the number of targets that are solved for at a time."""
        return self._options.targets_at_a_time or self.rows.n_targets

    def grow(self, n_grids: int) -> None:
        """Add grids up to a given number."""
        grids = cast(GridLaw, self._source)(n_grids)
        self._bins = bins = Bins.join([self._bins, self.rows.count(grids[self.n_grids :], self.n_grids)])
        left, n_targets = bytes_for_bins(self._max_bytes, self.rows.n_rows, n_grids), self.rows.n_targets
        sizes = bins.keys.size, n_targets, least_dtype(self.rows.n_rows)
        self._dtype, n_together = dtype_and_targets_at_a_time(left, *sizes)
        self._options, self.n_grids = SolverOptions(solver="cg", targets_at_a_time=n_together), n_grids
        features = BinMap(grids, bins.keys, bins.starts)
        self._use(features, features(self._X_out, self._dtype, self._n_jobs))

    def _use(self, features: Map, out: np.ndarray | BinMatrix) -> None:
        self._features, self._out = features, out
        self._system: RidgeSystem | None = None  # of the current rows and features

    def solve(self, alpha: float, tol: float, max_iter: int) -> RidgeModel:
        """Solve the ridge system for one penalty."""
        features, options = cast(Map, self._features), replace(self._options, tol=tol, max_iter=max_iter)
        if self._system is None:
            self._system = ridge_system(self.rows.for_solver(features, self._dtype), 1, options)
        result = next(self._system.solve([alpha], options))
        self.n_iter = result.n_iter
        predictions = np.asarray(self._out @ result.solution) + result.intercept
        return RidgeModel(features, result.solution, result.intercept, predictions)

    def posterior(
        self, alpha: float, n_samples: int, max_iter: int, rng: np.random.Generator
    ) -> tuple[RidgePosterior, np.ndarray]:
        """Return the posterior of the training rows, and the variances of the validation predictions."""
        rows = self.rows.for_solver(cast(Map, self._features), self._dtype)
        options = replace(self._options, max_iter=max_iter)
        samples = ridge_posterior(rows, alpha, n_samples, options, rng, self._system)
        return samples, samples.variances(self._out)

    def add_held_out_rows(self, Y: np.ndarray, weights: WeightColumn) -> None:
        """Let the next model be a model of all rows, given targets and weights of the validation rows."""
        self.rows.weigh_held_out()
        system = self._system
        self._system = None
        if isinstance(system, GramSystem):
            self._system = system + gram_system(ProcessRows(self._out, Y, weights), fit_intercept=True)
