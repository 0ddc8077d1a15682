"""Models of random Fourier features."""

from dataclasses import replace
from typing import ClassVar, cast

import numpy as np

from binfeat.features.fourier.features import FourierMap
from binfeat.features.fourier.frequencies import frequencies_of_inputs
from binfeat.linear.result import SolverOptions
from binfeat.models.features.all_rows import AllRows
from binfeat.models.features.sample import Sample
from binfeat.models.features.sizing import Sizing
from binfeat.models.kernel_algebra.kernel_sum import KernelPart
from binfeat.models.machines.bins import ALPHAS, penalties
from binfeat.models.machines.grown import GrownMachine
from binfeat.models.run import Run

_ENOUGH = 0.98  # share of the error that twice as many features have to be below


class FourierMachine(GrownMachine):
    """Ridge regression on random Fourier features of a radial kernel."""

    features: ClassVar[str] = "fourier"
    _fourier: FourierMap

    def judge(self, run: Run) -> np.ndarray:
        kernel, sample = self._kernels.radial, Sample.of(self._problem, run, self._kernels.X)
        fourier = self._fourier = _fourier_map(kernel.main, run.limits.n_fourier, run)
        features = fourier(sample.X), fourier(sample.X_out)
        best = sample.fit(kernel, penalties(run, ALPHAS), *features, SolverOptions(solver="gram"))
        self._known = best.kernel
        return cast(np.ndarray, best.losses)

    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        if self._before is not None:
            known = cast(FourierMap, self._before.fourier)
            self._fourier = replace(known, n_jobs=run.settings.n_jobs)
        with run.stage("Fourier features"):
            sizing = self._doubled(self._fourier, rows, run)
        run.note("Fourier features", sizing.n_features, sizing.error)
        return sizing

    def _doubled(self, fourier: FourierMap, rows: AllRows, run: Run) -> Sizing:
        """Twice as many features as long as that pays."""
        limits, n_rows = run.limits, len(self._problem.table)
        sizing = self._sizing = self._sized(fourier, self._kernel.alpha, rows, run)
        most = min(n_rows, limits.fourier_bytes / (8 * n_rows), np.sqrt(limits.fourier_products / n_rows))
        while 2 * fourier.n_components <= most and run.step():
            fourier, before = _fourier_map(self._kernel.main, 2 * fourier.n_components, run), sizing.error
            more = self._sized(fourier, sizing.alpha, rows, run)
            if more.error < before:
                self._sizing = sizing = more
            if more.error > _ENOUGH * before:
                break
        return sizing

    def _sized(self, fourier: FourierMap, alpha: float, rows: AllRows, run: Run) -> Sizing:
        sizing = Sizing(rows.new_growth(self._kernels, fourier), self._problem, run, alpha)
        sizing.run_without_grids()
        return sizing


def _fourier_map(part: KernelPart, n_components: int, run: Run) -> FourierMap:
    """Random Fourier features of a radial kernel, as `RandomFourier` draws them."""
    scale, seed = part.kernel.frequency_scale(part.gamma), run.settings.seed
    frequencies = frequencies_of_inputs(part.kernel, "orthogonal", n_components // 2, scale, seed, part.linear_map)
    return FourierMap(frequencies, n_jobs=run.settings.n_jobs)
