"""Base of models of random features: growth, error bars, and the final fit to all rows."""

from abc import abstractmethod
from dataclasses import replace
from typing import cast

import numpy as np

from binfeat.features.binning.bin_map import BinMap
from binfeat.features.fourier.features import FourierMap
from binfeat.models.features.all_rows import AllRows
from binfeat.models.features.growth import RidgeModel
from binfeat.models.features.sizing import Sizing
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.score_function import HeldOutErrors
from binfeat.models.kernel_algebra.kernel_sum import KernelSum
from binfeat.models.machines.candidate import Candidate, Solution
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.scaled_kernels import ScaledKernels


class GrownMachine(Candidate):
    """A model of random features; without the kernel and the function of an earlier fit `judge` chooses them."""

    def __init__(
        self,
        problem: Problem,
        kernels: ScaledKernels,
        kernel: KernelSum | None = None,  # with the penalty for the weights of the caller
        before: FeatureFunction | None = None,
    ) -> None:
        self._problem, self._kernels, self._known, self._before = problem, kernels, kernel, before
        self._sizing: Sizing | None = None

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
        problem, model = self._problem, cast(RidgeModel, sizing.model)
        rows, n_inputs = problem.held_out, self._kernels.X.shape[1]
        residuals, count = problem.Y[rows] - model.predictions, problem.weighty(rows)
        features = model.features
        bins = features if isinstance(features, BinMap) else BinMap.none(n_inputs)
        fourier = features if isinstance(features, FourierMap) else None
        return Solution(
            features=self.features,
            kernel=replace(self._kernel, alpha=sizing.alpha),
            function=FeatureFunction(bins, fourier, np.ascontiguousarray(model.coef.T, dtype=np.float64)),
            intercept=model.intercept,
            rows=rows,
            predictions=model.predictions,
            curve=sizing.curve,
            status=sizing.status,
            errors=HeldOutErrors.of(residuals[count], np.broadcast_to(sizing.variances, len(rows))[count]),
            samples=sizing.posterior,
        )
