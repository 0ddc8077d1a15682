"""What machines of random features have in common: they grow, learn how far they may be off, and take all rows."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from binfeat.features.fourier.features import FourierMap
from binfeat.features.fourier.frequencies import frequencies_of_inputs
from binfeat.kernels.base import Kernel
from binfeat.models.features.all_rows import AllRows
from binfeat.models.features.sizing import Sizing
from binfeat.models.fitted.features import FeatureFunction, FourierFunction
from binfeat.models.fitted.score_function import HeldOutErrors
from binfeat.models.machines.candidate import Candidate, Solution
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.length_scales import LengthScales
from binfeat.models.search.scaled_kernels import ScaledKernels


@dataclass(frozen=True, eq=False)
class FeaturePlan:
    """What is known of a machine of features before it takes all rows."""

    kernel: Kernel  # of the grids, if there are any
    gamma: np.ndarray  # (n_inputs,), as the kernel defines it
    alpha: float
    fourier: FourierMap | None = None
    n_grids: int | None = None  # of an earlier fit, to begin with


class GrownMachine(Candidate):
    """A machine of random features; without the plan of an earlier fit `judge` makes one."""

    def __init__(self, problem: Problem, kernels: ScaledKernels, plan: FeaturePlan | None = None) -> None:
        self._problem, self._kernels, self._known = problem, kernels, plan
        self._sizing: Sizing | None = None
        self._judged: np.ndarray | None = None  # predictions for the held-out rows, before they are learned from

    @abstractmethod
    def judge(self, run: Run) -> np.ndarray:
        """Losses of held-out rows of a sample, by a smaller machine of this kind; what it takes is kept."""

    @abstractmethod
    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        """Add features as long as that pays; sets `_sizing` as soon as there is a machine."""

    @property
    @abstractmethod
    def _scales(self) -> LengthScales:
        """What the search found for the kernel."""

    @property
    def _plan(self) -> FeaturePlan:
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
        growth, plan = sizing.growth, self._plan
        predictions = growth.held_out() if self._judged is None else self._judged
        bins, coef, intercept = growth.learned()
        fourier = None if plan.fourier is None else FourierFunction(plan.fourier.frequencies, coef.T)
        return Solution(
            features=self.features,
            kernel=repr(plan.kernel),
            alpha=sizing.alpha,
            function=FeatureFunction(bins, fourier),
            intercept=intercept,
            scales=self._scales,
            gamma=plan.gamma,
            power=plan.kernel.power,
            rows=self._problem.held_out,
            predictions=predictions,
            curve=sizing.curve,
            status=sizing.status,
            errors=self._errors(predictions, growth.variances_out),
            samples=growth.posterior,
        )

    def _errors(self, predictions: np.ndarray, variances: np.ndarray | float) -> HeldOutErrors:
        """How far predictions were off, whose variances are multiples of the noise."""
        problem, rows = self._problem, self._problem.held_out
        residuals, count = problem.Y[rows] - predictions, problem.weighty(rows)
        return HeldOutErrors.of(residuals[count], np.broadcast_to(variances, len(rows))[count])


def fourier_map(scales: LengthScales, n_components: int, seed: int, n_jobs: int | None) -> FourierMap:
    """Random Fourier features of a radial kernel, as `RandomFourier` draws them."""
    kernel, scale = scales.kernel, scales.kernel.frequency_scale(scales.gamma)
    frequencies = frequencies_of_inputs(kernel, "orthogonal", n_components // 2, scale, seed, scales.linear_map)
    return FourierMap(frequencies, n_jobs=n_jobs)
