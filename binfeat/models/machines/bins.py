"""Models of random binning features."""

from typing import ClassVar, cast

import numpy as np

from binfeat.features.binning.grids import Grids
from binfeat.kernels.families import GammaPitch
from binfeat.kernels.skip import Skip
from binfeat.length_scales.kernel_sum import Trial
from binfeat.models.features.all_rows import AllRows, GridLaw
from binfeat.models.features.sample import Sample
from binfeat.models.features.sizing import Sizing, most_batches
from binfeat.models.machines.grown import GrownMachine
from binfeat.models.problem import Problem
from binfeat.models.run import Phase, Run
from binfeat.models.search.scaled_kernels import ScaledKernels

_FACTOR = 2.0  # between overall factors of the length scales that are tried on a sample
DECREASE = np.sqrt(10)  # between penalties
_FIRST_ALPHAS = np.array([10.0, DECREASE, 1.0])  # relative to the exact kernel, for finitely many grids
ALPHAS = np.geomspace(10.0, 1e-3, 9)
_TOL, _MAX_ITER = 3e-2, 200  # enough to compare overall factors
# Of the same gammas, after the Laplacian: their pitches vary less, so that fewer grids are needed.
KERNELS = GammaPitch(8.0), GammaPitch(np.inf), Skip(GammaPitch(8.0), 0.2)


class BinsMachine(GrownMachine):
    """Ridge regression on the bins of random grids."""

    features: ClassVar[str] = "binning"

    def judge(self, run: Run) -> np.ndarray:
        """The best kernel, length scales and penalty on a sample."""
        kernels, settings = self._kernels, run.settings
        sample = Sample.of(self._problem, run, kernels.X)
        first = kernels.binning.alpha * self._problem.mean_weight * _FIRST_ALPHAS if kernels.learned else ALPHAS
        best = sample.fit(kernels.binning, penalties(run, first))
        if kernels.learned:
            best = self._finer(sample, best, run)
        if settings.kernel is None:
            best = self._other_kernels(sample, best, run)
            run.note("kernel", best.kernel, best.error)
        self._known = best.kernel
        return cast(np.ndarray, best.losses)

    def _finer(self, sample: Sample, best: Trial, run: Run) -> Trial:
        """Shorter length scales, as long as they do better: there are more rows than they were learned on."""
        while may_search(self._kernels, run):
            alphas = penalties(run, best.kernel.alpha / np.array([1.0, DECREASE]))
            other = sample.fit(best.kernel.scaled(_FACTOR), alphas)
            if not other.error < best.error:
                break
            best = other
        return best

    def _other_kernels(self, sample: Sample, best: Trial, run: Run) -> Trial:
        for kernel in KERNELS:
            if may_search(self._kernels, run):
                rival = sample.fit(best.kernel.of_kernel(kernel), np.array([best.kernel.alpha]))
                if rival.error < best.error:
                    best = rival
        return best

    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        if tries_factors(self._problem, run, self._kernels.learned):
            self._known = self._kernel.scaled(self._overall_factor(rows, run))
        law = self._law(run)
        first, most = run.settings.n_grids, None
        if first is None:
            first, most = rows.first_and_most_grids(self._kernels, law)
            first = first if self._n_grids is None else min(self._n_grids, most)
        with run.stage("grids", most_batches(first, most)):
            growth = rows.new_growth(self._kernels, law)
            self._sizing = sizing = Sizing(growth, self._problem, run, self._kernel.alpha)
            sizing.run(first, most)
        run.note("grids", growth.n_grids, sizing.error)
        if growth.n_together < growth.rows.n_targets:
            less = f"{growth.n_together} of {growth.rows.n_targets}, for less memory"
            run.note("targets at a time", less, sizing.error)
        return sizing

    def _law(self, run: Run, factor: float = 1.0) -> GridLaw:
        main, seed, categorical = self._kernel.scaled(factor).main, run.settings.seed, self._problem.categorical
        return lambda n_grids: Grids.draw(main.kernel, main.gamma, n_grids, seed, categorical)

    def _overall_factor(self, rows: AllRows, run: Run) -> float:
        """Return the factors of gamma for more rows than the sample, which support finer grids."""
        factors = rows.factors(self._kernels, lambda factor: self._law(run, factor))
        best, least = 1.0, np.inf
        with run.stage("overall length scale", len(factors)):
            for factor in factors:
                start, error = run.clock.used, self._error_with(factor, rows, run)
                if error >= least:
                    break
                best, least = factor, error
                if not (run.step() and run.may_continue(Phase.OVERALL_FACTOR, run.clock.used - start)):
                    break
        run.note("overall length scale", f"{best:g} times the sample's gamma", least)
        return best

    def _error_with(self, factor: float, rows: AllRows, run: Run) -> float:
        """Held-out error of a few grids with an overall factor of gamma."""
        growth = rows.new_growth(self._kernels, self._law(run, factor))
        growth.grow(run.limits.few_grids)
        growth.solve(self._kernel.alpha, _TOL, _MAX_ITER)
        return self._problem.losses(self._problem.held_out)(growth.held_out()).mean()


def tries_factors(problem: Problem, run: Run, learned: bool) -> bool:
    """Return True if there are enough more rows than in the sample for shorter length scales."""
    return learned and len(problem.train) > 2 * run.limits.sample_rows


def may_search(kernels: ScaledKernels, run: Run) -> bool:
    """Return True if callbacks and time allow one more trial, and it may help."""
    in_time = run.may_continue(Phase.SEARCH)
    return run.step() and in_time and not kernels.is_perfect


def penalties(run: Run, alphas: np.ndarray) -> np.ndarray:
    """These, or the user's."""
    return alphas if run.settings.alpha is None else np.array([run.settings.alpha])
