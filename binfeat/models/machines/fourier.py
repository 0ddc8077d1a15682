"""Models of random Fourier features."""

from dataclasses import replace
from functools import partial
from typing import ClassVar, cast

import numpy as np

from binfeat._rows.rows import ProcessRows
from binfeat.features.binning.grids import Grids
from binfeat.features.fourier.features import FourierMap
from binfeat.linear.result import SolverOptions
from binfeat.linear.solve import solve_ridge
from binfeat.models.features.all_rows import AllRows
from binfeat.models.features.sample import Sample
from binfeat.models.features.sizing import Sizing
from binfeat.models.machines.bins import ALPHAS, penalties
from binfeat.models.machines.grown import GrownMachine, fourier_map
from binfeat.models.run import Run

_ENOUGH = 0.98  # share of the error that twice as many features have to be below


class FourierMachine(GrownMachine):
    """Ridge regression on random Fourier features of a radial kernel."""

    features: ClassVar[str] = "fourier"

    def judge(self, run: Run) -> np.ndarray:
        settings, kernel = run.settings, self._kernels.radial
        sample = Sample.of(self._problem, run, self._kernels.X)
        fourier = fourier_map(kernel.main, run.limits.n_fourier, settings.seed, settings.n_jobs)
        rows, alphas = ProcessRows(fourier(sample.X), sample.Y, sample.weights), penalties(run, ALPHAS)
        out, trials = fourier(sample.X_out), []
        for alpha, result in zip(alphas, solve_ridge(rows, alphas, SolverOptions(solver="gram")), strict=True):
            trials.append((sample.losses(out @ result.solution + result.intercept), float(alpha)))
        losses, alpha = min(trials, key=lambda trial: trial[0].mean())
        self._known, self._fourier = replace(kernel, alpha=alpha), fourier
        return losses

    def _grow(self, rows: AllRows, run: Run) -> Sizing:
        with run.stage("Fourier features"):
            sizing = self._doubled(cast(FourierMap, self._fourier), rows, run)
        run.note("Fourier features", sizing.growth.n_fourier, sizing.error)
        return sizing

    def _doubled(self, fourier: FourierMap, rows: AllRows, run: Run) -> Sizing:
        """Twice as many features as long as that pays."""
        settings, limits, n_rows = run.settings, run.limits, len(self._problem.table)
        sizing = self._sizing = self._sized(fourier, self._kernel.alpha, rows, run)
        most = min(n_rows, limits.fourier_bytes / (8 * n_rows), np.sqrt(limits.fourier_products / n_rows))
        while 2 * fourier.n_components <= most and run.step():
            twice = fourier_map(self._kernel.main, 2 * fourier.n_components, settings.seed, settings.n_jobs)
            more, before = self._sized(twice, sizing.alpha, rows, run), sizing.error
            if more.error < before:
                fourier, sizing = twice, more
                self._fourier, self._sizing = twice, more
            if more.error > _ENOUGH * before:
                break
        return sizing

    def _sized(self, fourier: FourierMap, alpha: float, rows: AllRows, run: Run) -> Sizing:
        law = partial(_no_grids, self._kernels.X.shape[1])
        sizing = Sizing(rows.new_growth(self._kernels, law, fourier), self._problem, run, alpha)
        sizing.run_without_grids()
        return sizing


def _no_grids(n_inputs: int, n_grids: int) -> Grids:
    """A placeholder for the pitch law, without grids."""
    floats, words = np.empty((0, n_inputs)), np.empty((0, n_inputs), np.uint64)
    return Grids(floats, floats, words, words)
