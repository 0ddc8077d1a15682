"""Ridge models on a growing number of random grids: the number of grids, penalty and precision."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import cast

import numpy as np

from binfeat._common.held_out import less_by
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
from binfeat.linear.result import Result, RidgeSystem, SolverOptions
from binfeat.linear.solve import ridge_system
from binfeat.models.problem import Problem, WeightColumn
from binfeat.models.run import Phase, Run
from binfeat.models.solvers.sizes import bytes_for_bins, dtype_and_targets_at_a_time, least_dtype

_log = logging.getLogger("binfeat")

_DECADES = 10.0 ** np.arange(3)
_UP, _DOWN = np.sqrt(10), 1 / np.sqrt(10)

Map = BinMap | FourierMap
GridLaw = Callable[[int], Grids]  # returns the first grids, for a given number
# Features, their solution, and predictions (n_out, n_targets) for the validation rows without these rows.
RidgeModel = tuple[Map, Result, np.ndarray]


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
        """Store the codes of the rows in additional grids, and return the bins of these grids."""
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
            blocks = cast(RowBlocks, self._blocks).narrowed(features.n_components)
            Z = StreamedFeatures(blocks, features, features.n_components, np.float64, dense=True)
        return ProcessRows(Z, self._Y, self._weights)

    def weigh_held_out(self) -> None:
        self._weights = self._own_weights


class Growth:
    """Ridge models on rows in the features of a map, or in grids of a law; grids can be added.

    Each solve starts from 0. From the last solution it would need as many iterations, and the error of other rows
    would be higher (perf/notes/random_feature_models.md). Codes, bins, coefficients and the solver's vectors need at
    most `max_bytes`: if this is too little, vectors are float32, and fewer targets are solved for at a time.
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
        self.n_grids, self.n_iter = 0, 0  # grids and iterations of the last solve
        if isinstance(source, FourierMap):
            self._use(source, source(X_out))

    @property
    def n_together(self) -> int:
        return self._options.targets_at_a_time or self.rows.n_targets

    def grow(self, n_grids: int) -> None:
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
        self._system: RidgeSystem | None = None  # equations of the current rows and features

    def solve(self, alpha: float, tol: float, max_iter: int) -> RidgeModel:
        features, options = cast(Map, self._features), replace(self._options, tol=tol, max_iter=max_iter)
        if self._system is None:
            self._system = ridge_system(self.rows.for_solver(features, self._dtype), 1, options)
        result = next(self._system.solve([alpha], options))
        self.n_iter = result.n_iter
        return features, result, np.asarray(self._out @ result.solution) + result.intercept

    def posterior(
        self, alpha: float, n_samples: int, max_iter: int, rng: np.random.Generator
    ) -> tuple[RidgePosterior, np.ndarray]:
        """Return the posterior of the training rows, and the variances of the validation predictions."""
        rows = self.rows.for_solver(cast(Map, self._features), self._dtype)
        options = replace(self._options, max_iter=max_iter)
        samples = ridge_posterior(rows, alpha, n_samples, options, rng, self._system)
        return samples, samples.variances(self._out)

    def add_held_out_rows(self, Y: np.ndarray, weights: WeightColumn) -> None:
        """Include the validation rows in the next model, given their targets and weights."""
        self.rows.weigh_held_out()
        system = self._system
        self._system = None
        if isinstance(system, GramSystem):
            self._system = system + gram_system(ProcessRows(self._out, Y, weights), fit_intercept=True)


class Sizing:
    """Grow a ridge model until the gain is too small, or the budget of seconds or work is exhausted.

    Work is the number of rows times grids in the products of all iterations of all solves.
    """

    first_tol, precise_tol, max_iter = 1e-2, 1e-3, 200
    least_alpha, most_alpha = 1e-4, 1e4  # for weights of mean 1
    enough_gain = 0.02  # share of the error that twice the grids must remove
    least_step = 1.25  # least ratio of numbers of grids for another solution
    precise_rows = 40_000  # rows up to which a more precise solution is tried; with more rows it takes too long
    precise_gain = 0.03  # share of the error that more precise solutions must remove
    refit_solves = 1.5  # time of a refit, including the codes of the added rows, in solutions

    model: RidgeModel  # the best so far, once `curve` is not empty

    def __init__(self, growth: Growth, problem: Problem, run: Run, alpha: float) -> None:
        self.growth, self.alpha, self._run = growth, alpha, run
        self._losses, self._negligible = problem.losses(problem.held_out), problem.negligible
        self._tunes_alpha, self._refits = run.settings.alpha is None, run.settings.refits
        self._bounds = problem.mean_weight * self.least_alpha, problem.mean_weight * self.most_alpha
        self._work_left: float = run.limits.work_of_a_row + run.limits.work // growth.rows.n_rows
        self._alpha_falls = True  # True if a lower penalty was better after the last grids
        self._tol, self.status = self.first_tol, "converged"  # or "budget" or "stopped"
        self.curve: list[tuple[int, float]] = []  # number of grids and validation error after each batch
        self.posterior: RidgePosterior | None = None  # for noise of variance 1 for a row of mean weight
        self.variances: np.ndarray | float = 0.0  # of the validation predictions, in units of the noise variance
        self._grid_seconds = self._solve_seconds = 0.0  # seconds of one more grid, and of the last solve

    @property
    def error(self) -> float:
        return self.curve[-1][1]

    def run_without_grids(self) -> None:
        self._add_to_curve()
        self._tune((_UP, _DOWN))
        self._stopped()

    def run(self, n_grids: int, most: int | None = None) -> None:
        """Grow from the first number of grids to at most another; None stops there."""
        while True:
            self._add_grids(n_grids)
            if self._stopped() or most is None:
                return
            wanted = _grids_wanted(self.curve, self._negligible)
            if wanted == n_grids:
                return
            limits = {"max_bytes" if most < self._run.settings.max_grids else "max_grids": most, **self._affordable()}
            limit = min(limits, key=limits.__getitem__)
            n_grids = min(wanted, limits[limit])
            if n_grids < self.least_step * self.growth.n_grids:
                self.status = "budget"
                self._run.note("limit", limit, self.error)
                return

    def learn_posterior(self, n_samples: int, mean_weight: float, seed: int) -> None:
        rng = np.random.default_rng([seed, n_samples])
        posterior, variances = self.growth.posterior(self.alpha, n_samples, self.max_iter, rng)
        self.posterior, self.variances = posterior.times(mean_weight), mean_weight * variances

    def refit(self, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Add the validation rows, given their targets and weights; validation predictions do not change."""
        self.growth.add_held_out_rows(Y, weights)
        features, result, _ = self._solved(self.alpha, self._tol)
        self.model = features, result, self.model[2]

    def _solved(self, alpha: float, tol: float) -> RidgeModel:
        start = self._run.clock.used
        model = self.growth.solve(alpha, tol, self.max_iter)
        self._solve_seconds = self._run.clock.used - start
        self._work_left -= self.growth.n_iter * self.growth.n_grids
        return model

    def _add_to_curve(self) -> None:
        self.model = self._solved(self.alpha, self._tol)
        self.curve.append((self.growth.n_grids, self._losses(self.model[2]).mean()))

    def _add_grids(self, n_grids: int) -> None:
        start, before = self._run.clock.used, self.growth.n_grids
        self.growth.grow(n_grids)
        self._grid_seconds = (self._run.clock.used - start) / (n_grids - before)
        self._add_to_curve()
        if len(self.curve) == 1:
            self._tune((_UP, _DOWN))
            self._try_fine_solution()
        elif self._alpha_falls:  # more grids need a lower penalty
            alpha = self.alpha
            self._tune((_DOWN,))
            self._alpha_falls = self.alpha < alpha
        _log.info("%d grids: validation error %.4g", *self.curve[-1])

    def _stopped(self) -> bool:
        if not self._run.step():
            self.status = "stopped"
        return self.status == "stopped"

    def _tune(self, factors: Iterable[float]) -> None:
        """Solve with other penalties while the validation error decreases."""
        least, most = self._bounds
        for factor in factors if self._tunes_alpha else ():
            tried = 0
            while least <= self.alpha * factor <= most and self._may_try():
                tried += 1
                if not self._gains_by(self.alpha * factor, self._tol):
                    break
            if tried > 1:
                break

    def _try_fine_solution(self) -> None:
        """For few rows, try a smaller tolerance, also with larger penalties.

        Early stopping regularizes like a penalty; the validation error decides between them.
        """
        if self.growth.rows.n_rows > self.precise_rows:
            return
        for alpha in self.alpha * (_DECADES if self._tunes_alpha else _DECADES[:1]):
            least, tol = self.precise_gain if self._tol == self.first_tol else 0.0, self.precise_tol
            if not self._may_try() or (not self._gains_by(alpha, tol, least) and self._tol == tol):
                break
        if self._tol == self.precise_tol:
            self._tune((_UP, _DOWN))

    def _gains_by(self, alpha: float, tol: float, least: float = 0.0) -> bool:
        """Try another penalty or tolerance; keep it if the validation error decreases by a minimum share."""
        n_grids, before = self.curve[-1]
        model = self._solved(alpha, tol)
        error = self._losses(model[2]).mean()
        gains = error < less_by(least, before)
        if gains:
            self.model, self.alpha, self._tol, self.curve[-1] = model, alpha, tol, (n_grids, error)
        return bool(gains)

    def _may_try(self) -> bool:
        """Return True if another solve can help, and there is time for it."""
        seconds = (1 + self.refit_solves * self._refits) * self._solve_seconds
        return self.error > self._negligible and self._run.may_continue(Phase.SOLUTION, seconds)

    def _affordable(self) -> dict[str, int]:
        """Return the number of grids that can be solved for and refitted with the remaining work and time."""
        growth, left, refit = self.growth, self._run.clock.left_of(Phase.SOLUTION), self.refit_solves * self._refits
        by_work = int(self._work_left / ((1 + refit) * growth.n_iter))
        limits = {"the most work of a fit with grids": by_work}
        if np.isinf(left):
            return limits
        grid, solve = self._grid_seconds, (2 + refit) * self._solve_seconds / growth.n_grids
        return limits | {"max_seconds": int((left + grid * growth.n_grids) / max(grid + solve, 1e-9))}


def _grids_wanted(curve: list[tuple[int, float]], negligible: float) -> int:
    """Return the grids after which a doubling would gain too little, by error = a + b / grids through the last two."""
    now, error = curve[-1]
    if len(curve) < 2:
        return 2 * now
    before, earlier = curve[-2]
    slope = (earlier - error) / (1 / before - 1 / now)
    enough = max(Sizing.enough_gain * abs(error), negligible)  # minus a score is often negative
    if slope / (2 * now) <= enough:
        return now
    wanted = 2 ** np.ceil(np.log2(slope / max(2 * enough * now, np.finfo(float).tiny))) * now
    return int(np.clip(wanted, 2 * now, 4 * now))
