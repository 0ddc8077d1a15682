"""Models of random features: of bins, and of Fourier features of a radial kernel."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np

from binfeat._common.held_out import less_by
from binfeat._rows.lazy import LazyFeatures
from binfeat._rows.products import Features
from binfeat._rows.rows import ProcessRows
from binfeat.features.binning.bin_map import BinMap, map_and_features
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import BinningInput
from binfeat.features.fourier.features import FourierMap
from binfeat.features.fourier.frequencies import frequencies_of_inputs
from binfeat.kernels.families import GammaPitch
from binfeat.kernels.skip import Skip
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.linear.result import SolverOptions
from binfeat.linear.solve import solve_ridge
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.kernel_function import HeldOutErrors
from binfeat.models.problem import Problem, counts_of, rows_of
from binfeat.models.run import Phase, Run
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.settings import PENALTY_FACTOR
from binfeat.models.solvers.all_rows import AllRows, first_grids
from binfeat.models.solvers.candidate import Solution
from binfeat.models.solvers.growth import GridLaw, Sizing

_FIRST_ALPHAS = np.array([10.0, PENALTY_FACTOR, 1.0])  # relative to the exact kernel, because grids are finitely many
_ALPHAS = np.geomspace(10.0, 1e-3, 9)  # for weights of mean 1
_BY_GRAM, _BY_CG = SolverOptions(solver="gram"), SolverOptions(tol=1e-2, max_iter=100, solver="cg")
# After the Laplacian, with the same gammas: their pitches vary less, so fewer grids are needed.
KERNELS = GammaPitch(8.0), GammaPitch(np.inf), Skip(GammaPitch(8.0), 0.2)


class FeatureSolver(ABC):
    """A model of random features; `validate` selects the kernel, unless an earlier fit provides kernel and features."""

    def __init__(
        self,
        problem: Problem,
        kernels: ScaledKernels,
        kernel: KernelSum | None = None,  # with the penalty for the caller's weights
        before: FeatureFunction | None = None,
    ) -> None:
        self._problem, self._kernels, self._before = problem, kernels, before
        self._kernel = cast(KernelSum, kernel)  # None until it is selected
        self._sizing: Sizing | None = None

    features: ClassVar[str]

    @abstractmethod
    def validate(self, run: Run) -> np.ndarray:
        """Return validation losses on a sample, by a smaller model of this kind, and store the plan."""

    @abstractmethod
    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        """Add features while that lowers the error; set `_sizing` as soon as there is a model."""

    def _sample(self, run: Run) -> tuple[np.ndarray, np.ndarray]:
        """Return the training and validation rows for comparing kernels."""
        limits, problem = run.limits, self._problem
        return problem.train[: limits.sample_rows], problem.held_out[: limits.sample_out]

    def _best(
        self, kernel: KernelSum, alphas: np.ndarray, Z: Features, Z_out: Features, options: SolverOptions, run: Run
    ) -> Trial:
        """Return the kernel with the best of some penalties, given features of the sample's rows."""
        problem, (train, out), fits = self._problem, self._sample(run), list[Trial]()
        rows, losses_of = ProcessRows(Z, problem.Y[train], rows_of(problem.weights, train)), problem.losses(out)
        for alpha, result in zip(alphas, solve_ridge(rows, alphas, options)):
            losses = losses_of(np.asarray(Z_out @ result.solution) + result.intercept)
            fits.append(Trial(replace(kernel, alpha=float(alpha)), losses.mean(), losses=losses))
        return min(fits, key=lambda fit: fit.error)

    def solve(self, rows: AllRows, run: Run) -> Solution:
        problem, settings, sizing = self._problem, run.settings, self._grow(rows, run)
        run.note("penalty", f"{sizing.alpha:.3g}", sizing.error)
        if settings.n_posterior_samples is not None and sizing.status != "stopped":
            with run.stage("error bars"):
                sizing.learn_posterior(settings.n_posterior_samples, problem.mean_weight, settings.seed)
        if settings.refits and sizing.status != "stopped":
            with run.stage("refit"):
                sizing.refit(problem.Y[problem.held_out], rows_of(problem.weights, problem.held_out))
        return self._solution(sizing)

    def so_far(self) -> Solution | None:
        return self._solution(self._sizing) if self._sizing is not None and self._sizing.curve else None

    def _solution(self, sizing: Sizing) -> Solution:
        problem, (features, result, predictions) = self._problem, sizing.model
        rows = problem.held_out
        count, variances = problem.weighty(rows), np.broadcast_to(sizing.variances, len(rows))
        known = (problem.Y[rows] - predictions)[count], variances[count]
        bins = features if isinstance(features, BinMap) else BinMap.none(self._problem.table.shape[1])
        fourier = features if isinstance(features, FourierMap) else None
        return Solution(
            features=self.features,
            kernel=replace(self._kernel, alpha=sizing.alpha),
            function=FeatureFunction(bins, fourier, np.ascontiguousarray(result.solution.T, np.float64)),
            intercept=result.intercept,
            rows=rows,
            predictions=predictions,
            curve=sizing.curve,
            status=sizing.status,
            errors=HeldOutErrors.of(*known, weights=counts_of(problem, rows[count]), is_robust=problem.loss.is_robust),
            samples=sizing.posterior,
        )


class BinsSolver(FeatureSolver):
    features: ClassVar[str] = "binning"
    sample_factor = 2.0  # ratio of overall factors of gamma tried on a sample
    factors = 1.0, 1.4, 2.0, 2.8, 4.0, 5.6  # factors of gamma on all rows: more rows support finer grids
    factor_tol = 3e-2  # tolerance for comparing these
    usual_grids = 100  # memory for more grids does not affect the comparison

    def validate(self, run: Run) -> np.ndarray:
        kernels = self._kernels
        first = kernels.binning.alpha * _FIRST_ALPHAS if kernels.learned else _ALPHAS
        best = self._fit(kernels.binning, _penalties(run, self._problem.mean_weight * first), run)
        while kernels.learned and may_search(kernels, run):  # for more rows than in the search
            alphas = _penalties(run, best.kernel.alpha / np.array([1.0, PENALTY_FACTOR]))
            other = self._fit(best.kernel.scaled(self.sample_factor), alphas, run)
            if not other.error < best.error:
                break
            best = other
        if run.settings.kernel is None:
            for kernel in KERNELS:
                if may_search(kernels, run):
                    rival = self._fit(best.kernel.of_kernel(kernel), np.array([best.kernel.alpha]), run)
                    best = min(best, rival, key=lambda trial: trial.error)
            run.note("kernel", best.kernel, best.error)
        self._kernel = best.kernel
        return cast(np.ndarray, best.losses)

    def _fit(self, kernel: KernelSum, alphas: np.ndarray, run: Run) -> Trial:
        """Return the kernel with the best of some penalties, by a model of a sample."""
        n_jobs, (X, X_out) = run.settings.n_jobs, (self._problem.table[rows] for rows in self._sample(run))
        grids = self._law(kernel, run)(first_grids(run, len(X)))
        bin_map, Z = map_and_features(grids, BinningInput.of(X), n_jobs=n_jobs)
        return self._best(kernel, alphas, Z, bin_map(X_out, n_jobs=n_jobs), _BY_CG, run)

    def _law(self, kernel: KernelSum, run: Run) -> GridLaw:
        main, seed, categorical = kernel.main, run.settings.seed, self._problem.categorical
        return lambda n_grids: Grids.draw(main.kernel, main.gamma, n_grids, seed, categorical)

    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        if tries_factors(self._problem, run, self._kernels.learned):
            self._kernel = self._kernel.scaled(self._overall_factor(rows, run))
        law = self._law(self._kernel, run)
        first, most = run.settings.n_grids, None
        if first is None:
            first, most = rows.first_and_most_grids(law)
            first = first if self._before is None else min(self._before.n_grids, most)
        growth = rows.new_growth(law)
        with run.stage("grids", 1 if most is None else 1 + int(np.ceil(np.log2(most / first)))):
            self._sizing = sizing = Sizing(growth, self._problem, run, self._kernel.alpha)
            sizing.run(first, most)
        run.note("grids", growth.n_grids, sizing.error)
        if growth.n_together < growth.rows.n_targets:
            less = f"{growth.n_together} of {growth.rows.n_targets}, for less memory"
            run.note("targets at a time", less, sizing.error)
        return sizing

    def _overall_factor(self, rows: AllRows, run: Run) -> float:
        """Return the factor of gamma with the lowest validation error on all rows.

        Each factor has a few grids, or proportionally fewer if memory limits the number of its grids.
        """
        best, least, losses = 1.0, np.inf, self._problem.losses(self._problem.held_out)
        few, most = run.limits.few_grids, float(min(run.settings.max_grids, self.usual_grids))
        with run.stage("overall length scale", len(self.factors)):
            for factor in self.factors:
                start, law = run.clock.used, self._law(self._kernel.scaled(factor), run)
                allowed = max(1.0, rows.most_grids(law))
                if factor == 1:
                    most = min(allowed, most)
                elif allowed < few:
                    break
                growth = rows.new_growth(law)
                growth.grow(max(1, round(few * min(1.0, allowed / most))))
                _, _, predictions = growth.solve(self._kernel.alpha, self.factor_tol, Sizing.max_iter)
                error = losses(predictions).mean()
                if error >= least:
                    break
                best, least = factor, error
                if not (run.step() and run.may_continue(Phase.OVERALL_FACTOR, run.clock.used - start)):
                    break
        run.note("overall length scale", f"gamma times {best:g}", least)
        return best


class FourierSolver(FeatureSolver):
    features: ClassVar[str] = "fourier"
    enough_gain = 0.02  # share of the error that twice the Fourier features must remove

    def validate(self, run: Run) -> np.ndarray:
        kernel = self._kernels.radial
        fourier = _fourier_map(kernel.main, run.limits.n_fourier, run)
        X, X_out = (self._problem.table[rows] for rows in self._sample(run))
        Z, Z_out = LazyFeatures(fourier, X, fourier.n_components), fourier(X_out)
        best = self._best(kernel, _penalties(run, self._problem.mean_weight * _ALPHAS), Z, Z_out, _BY_GRAM, run)
        self._kernel = best.kernel
        return cast(np.ndarray, best.losses)

    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        known = None if self._before is None else self._before.fourier
        fourier = _fourier_map(self._kernel.main, run.limits.n_fourier, run) if known is None else known
        with run.stage("Fourier features"):
            sizing = self._doubled(replace(fourier, n_jobs=run.settings.n_jobs), rows, run)
        run.note("Fourier features", cast(FourierMap, sizing.model[0]).n_components, sizing.error)
        return sizing

    def _doubled(self, fourier: FourierMap, rows: AllRows, run: Run) -> Sizing:
        """Double the number of features while the validation error falls enough."""
        limits, n_rows, start = run.limits, len(self._problem.table), run.clock.used
        sizing = more = self._sizing = self._sized(fourier, self._kernel.alpha, rows, run)
        most = min(n_rows, limits.fourier_bytes / (8 * n_rows), np.sqrt(limits.fourier_products / n_rows))
        while 2 * fourier.n_components <= most and more.status != "stopped":
            if not run.may_continue(Phase.SOLUTION, 4 * (run.clock.used - start)):  # products of pairs of features
                run.cut_short = run.cut_short or "the Fourier features"
                break
            start, before = run.clock.used, sizing.error
            fourier = _fourier_map(self._kernel.main, 2 * fourier.n_components, run)
            more = self._sized(fourier, sizing.alpha, rows, run)
            if more.error < before:
                self._sizing = sizing = more
            if more.error > less_by(self.enough_gain, before):
                break
        sizing.status = more.status
        return sizing

    def _sized(self, fourier: FourierMap, alpha: float, rows: AllRows, run: Run) -> Sizing:
        sizing = Sizing(rows.new_growth(fourier), self._problem, run, alpha)
        sizing.run_without_grids()
        return sizing


def _fourier_map(part: KernelPart, n_components: int, run: Run) -> FourierMap:
    """Draw random Fourier features of a radial kernel, as `RandomFourier` does."""
    scale, seed = part.kernel.frequency_scale(part.gamma), run.settings.seed
    frequencies = frequencies_of_inputs(part.kernel, "orthogonal", n_components // 2, scale, seed, part.linear_map)
    return FourierMap(frequencies, n_jobs=run.settings.n_jobs)


def tries_factors(problem: Problem, run: Run, learned: bool) -> bool:
    return learned and len(problem.train) > 2 * run.limits.sample_rows


def may_search(kernels: ScaledKernels, run: Run) -> bool:
    in_time = run.may_continue(Phase.SEARCH)
    return run.step() and in_time and not kernels.is_perfect


def _penalties(run: Run, alphas: np.ndarray) -> np.ndarray:
    return alphas if run.settings.alpha is None else np.array([run.settings.alpha])
