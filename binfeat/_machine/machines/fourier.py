"""Machines of random Fourier features."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from binfeat._fourier.features import FourierMap
from binfeat._linear.result import SolverOptions
from binfeat._linear.solve import solve_ridge
from binfeat._machine.machines.all_rows import AllRows, no_grids
from binfeat._machine.machines.bins import ALPHAS, penalties
from binfeat._machine.machines.grown import GrownMachine, fourier_map
from binfeat._machine.machines.sample import Sample
from binfeat._machine.machines.sizing import Sizing
from binfeat._machine.problem import Problem
from binfeat._machine.run import Run
from binfeat._machine.search.length_scales import LengthScales
from binfeat._machine.search.scaled_kernels import ScaledKernels
from binfeat._rows.rows import LocalRows

_ENOUGH = 0.98  # share of the error that twice as many features have to be below


@dataclass(frozen=True, eq=False)
class FourierPlan:
    """What is known of a machine of Fourier features before it takes all rows."""

    scales: LengthScales
    fourier: FourierMap
    alpha: float


class FourierMachine(GrownMachine):
    """Ridge regression on random Fourier features of a radial kernel."""

    features: ClassVar[str] = "fourier"

    def __init__(self, problem: Problem, kernels: ScaledKernels, plan: FourierPlan | None = None) -> None:
        super().__init__(problem, kernels)
        self._known = plan  # of an earlier fit; else `judge` makes it

    @property
    def _plan(self) -> FourierPlan:
        if self._known is None:
            raise RuntimeError("a machine of Fourier features is solved before it is judged")
        return self._known

    def judge(self, run: Run) -> np.ndarray:
        settings, scales = run.settings, self._kernels.radial
        sample = Sample.of(self._problem, run, self._kernels.X, scales.kernel)
        fourier = fourier_map(scales, run.limits.n_fourier, settings.seed, settings.n_jobs)
        rows, alphas = LocalRows(fourier(sample.X), sample.Y, sample.weights), penalties(run, ALPHAS)
        out, trials = fourier(sample.X_out), []
        for alpha, result in zip(alphas, solve_ridge(rows, alphas, SolverOptions(solver="gram")), strict=True):
            trials.append((sample.losses(out @ result.solution + result.intercept), float(alpha)))
        losses, alpha = min(trials, key=lambda trial: trial[0].mean())
        self._known = FourierPlan(scales, fourier, alpha)
        return losses

    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        with run.stage("Fourier features"):
            fourier, sizing = self._doubled(rows, run)
        run.note("Fourier features", fourier.n_components, sizing.error)
        return sizing

    def _doubled(self, rows: AllRows, run: Run) -> tuple[FourierMap, Sizing]:
        """Twice as many features as long as that pays."""
        plan, settings, limits, n_rows = self._plan, run.settings, run.limits, len(self._problem.table)
        fourier, sizing = plan.fourier, self._sized(plan.fourier, plan.alpha, rows, run)
        self._fourier, self._sizing = fourier, sizing
        most = min(n_rows, limits.fourier_bytes / (8 * n_rows), np.sqrt(limits.fourier_products / n_rows))
        while 2 * fourier.n_components <= most and run.step():
            twice = fourier_map(plan.scales, 2 * fourier.n_components, settings.seed, settings.n_jobs)
            more, before = self._sized(twice, sizing.alpha, rows, run), sizing.error
            if more.error < before:
                fourier, sizing = self._fourier, self._sizing = twice, more
            if more.error > _ENOUGH * before:
                break
        return fourier, sizing

    def _sized(self, fourier: FourierMap, alpha: float, rows: AllRows, run: Run) -> Sizing:
        law = partial(no_grids, self._kernels.X.shape[1])
        sizing = Sizing(rows.new_growth(self._kernels, law, fourier), self._problem, run, alpha)
        sizing.run_without_grids()
        return sizing

    def _kernel(self) -> tuple[str, LengthScales, np.ndarray]:
        scales = self._plan.scales
        return repr(scales.kernel), scales, scales.gamma ** (1 / scales.kernel.power)
