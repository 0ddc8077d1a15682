"""Machines of random binning and random Fourier features side by side."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from binfeat._machine.features.growth import Growth, TrainingRows
from binfeat._machine.machines.bins import DECREASE, BinsMachine, penalties
from binfeat._machine.machines.grown import fourier_map
from binfeat._machine.run import Run

_TOL, _MAX_ITER = 1e-2, 60


class HybridMachine(BinsMachine):
    """Grids that grow beside Fourier features of a radial kernel."""

    features: ClassVar[str] = "hybrid"

    def judge(self, run: Run) -> np.ndarray:
        sample, fit = self._try_grids(run)
        settings, scales = run.settings, self._kernels.radial
        fourier = fourier_map(scales, run.limits.n_fourier, settings.seed, settings.n_jobs)
        rows = TrainingRows([sample.X], sample.Y, sample.weights, settings.n_jobs)
        growth = Growth(rows, sample.X_out, lambda n_grids: fit.grids[:n_grids], fourier, settings.n_jobs)
        growth.grow(sample.n_grids)
        trials = []
        for alpha in penalties(run, fit.alpha * np.array([1.0, DECREASE])):
            growth.solve(alpha, _TOL, _MAX_ITER)
            trials.append((sample.losses(growth.held_out()), float(alpha)))
        losses, alpha = min(trials, key=lambda trial: trial[0].mean())
        self._known = replace(self._plan, alpha=alpha, fourier=fourier)
        run.note("features", self.features, losses.mean())
        return losses
