"""Base of models of random features: growth, error bars, and the final fit to all rows."""

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from binfeat.features.fourier.features import FourierMap
from binfeat.features.fourier.frequencies import frequencies_of_inputs
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum
from binfeat.models.features.all_rows import AllRows
from binfeat.models.features.sizing import Sizing
from binfeat.models.fitted.features import FeatureFunction, FourierFunction
from binfeat.models.fitted.score_function import HeldOutErrors
from binfeat.models.machines.candidate import Candidate, Solution
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.scaled_kernels import ScaledKernels


class GrownMachine(Candidate):
    """A model of random features; without the kernel and the features of an earlier fit `judge` chooses them."""

    def __init__(
        self,
        problem: Problem,
        kernels: ScaledKernels,
        kernel: KernelSum | None = None,  # with the penalty for the weights of the caller
        fourier: FourierMap | None = None,
        n_grids: int | None = None,  # to begin with
    ) -> None:
        self._problem, self._kernels, self._known = problem, kernels, kernel
        self._fourier, self._n_grids = fourier, n_grids
        self._sizing: Sizing | None = None
        self._judged: np.ndarray | None = None  # predictions for validation rows, before the final fit

    @abstractmethod
    def judge(self, run: Run) -> np.ndarray:
        """Return validation losses on a sample, by a smaller model of this kind, and store the plan."""

    @abstractmethod
    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        """Add features while that lowers the error; set `_sizing` as soon as there is a model."""

    @property
    def _kernel(self) -> KernelSum:
        if self._known is None:
            raise RuntimeError("a machine is solved before it is judged")
        return self._known

    def solve(self, rows: AllRows, run: Run) -> Solution:
        problem, settings, sizing = self._problem, run.settings, self._grow(rows, run)
        run.note("penalty", f"{sizing.alpha:.3g}", sizing.error)
        self._judged = sizing.growth.held_out()
        if settings.n_posterior_samples is not None and sizing.status != "stopped":
            with run.stage("error bars"):
                sizing.learn_posterior(settings.n_posterior_samples, problem.mean_weight, settings.seed)
        if settings.refits and sizing.status != "stopped":
            with run.stage("refit"):
                sizing.refit(problem.Y[problem.held_out], problem.weights_of(problem.held_out))
        return self._solution(sizing)

    def so_far(self) -> Solution | None:
        return self._solution(self._sizing) if self._sizing is not None and self._sizing.curve else None

    def _solution(self, sizing: Sizing) -> Solution:
        growth, fourier = sizing.growth, self._fourier
        predictions = growth.held_out() if self._judged is None else self._judged
        bins, coef, intercept = growth.learned()
        of_fourier = None if fourier is None else FourierFunction(fourier.frequencies, coef.T)
        return Solution(
            features=self.features,
            kernel=replace(self._kernel, alpha=sizing.alpha),
            function=FeatureFunction(bins, of_fourier),
            intercept=intercept,
            rows=self._problem.held_out,
            predictions=predictions,
            curve=sizing.curve,
            status=sizing.status,
            errors=self._errors(predictions, growth.variances_out),
            samples=growth.posterior,
        )

    def _errors(self, predictions: np.ndarray, variances: np.ndarray | float) -> HeldOutErrors:
        """Return errors of predictions, given their variances in units of the noise variance."""
        problem, rows = self._problem, self._problem.held_out
        residuals, count = problem.Y[rows] - predictions, problem.weighty(rows)
        return HeldOutErrors.of(residuals[count], np.broadcast_to(variances, len(rows))[count])


def fourier_map(part: KernelPart, n_components: int, seed: int, n_jobs: int | None) -> FourierMap:
    """Random Fourier features of a radial kernel, as `RandomFourier` draws them."""
    scale = part.kernel.frequency_scale(part.gamma)
    frequencies = frequencies_of_inputs(part.kernel, "orthogonal", n_components // 2, scale, seed, part.linear_map)
    return FourierMap(frequencies, n_jobs=n_jobs)
