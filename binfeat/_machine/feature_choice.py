"""The choice of the kind of features, on the sample of the length scales."""

from dataclasses import dataclass

import numpy as np

from binfeat._fourier.features import FourierMap
from binfeat._fourier.frequencies import draw_frequencies
from binfeat._linear.result import SolverOptions
from binfeat._linear.solve import solve_ridge
from binfeat._machine.growth import Growth, TrainingRows
from binfeat._machine.length_scales import ALPHAS
from binfeat._machine.sample import surely_less
from binfeat._rows.rows import LocalRows
from binfeat.kernels import RBF

_FACTORS = (0.3, 0.6, 1.0)  # of inverse length scales of the Gaussian to those of the grids
_TOL, _MAX_ITER = 1e-2, 200


@dataclass(frozen=True)
class FeatureTrial:
    """Features that were tried on the sample: their map, the best penalty, and the held-out losses with it."""

    features: str
    errors: np.ndarray
    alpha: float
    fourier: FourierMap | None

    @property
    def error(self):
        return self.errors.mean()


def gaussian_map(gamma, n_components, seed, n_jobs=None):
    """Random Fourier features of the Gaussian kernel, as `RandomFourier` draws them."""
    kernel = RBF()
    frequencies = draw_frequencies(kernel, "orthogonal", n_components // 2, gamma.size, seed)
    return FourierMap(np.ascontiguousarray((frequencies * kernel.frequency_scale(gamma)).T), n_jobs=n_jobs)


class FeatureChoice:
    """Fourier features of the Gaussian kernel with the learned length scales: instead of bins, or beside them.

    Parameters
    ----------
    problem : Problem
    kernels : KernelChoice
        Done.
    may_mix : bool
        Whether both kinds can stand side by side.
    """

    def __init__(self, problem, kernels, may_mix):
        self._problem, self._kernels, self._may_mix = problem, kernels, may_mix

    def run(self):
        """The features to take, a FeatureTrial.

        Raises
        ------
        ValueError
            If Fourier features are asked for, and some inputs are categorical.
        """
        best, wanted = self._kernels.best, self._problem.machine.features
        if self._problem.categorical.any() and wanted in ("fourier", "hybrid"):
            raise ValueError(f"features={wanted!r} needs numbers only, and X has categorical inputs; use 'binning'.")
        bins = FeatureTrial("binning", best.errors, best.alpha, None)
        # Where no input varies there is a constant, of whatever features.
        if wanted == "binning" or not best.gamma.any() or (wanted == "auto" and not self._may_try()):
            return bins
        chosen = self._best_of(bins, wanted)
        self._problem.decisions.note("features", chosen.features, chosen.error)
        return chosen

    def _best_of(self, bins, wanted):
        fourier = min((self._try_fourier(factor) for factor in _FACTORS), key=_error)
        trials = [fourier] if wanted != "hybrid" else []
        if wanted != "fourier" and self._may_mix:
            trials.append(self._try_hybrid(fourier.fourier))
        best = bins
        for trial in trials:
            if wanted != "auto" or surely_less(trial.errors, best.errors):
                best = trial
        return best

    def _may_try(self):
        limits = self._problem.limits
        small = 8 * limits.n_fourier * len(self._problem.table) <= limits.fourier_bytes
        return small and not self._problem.categorical.any() and self._kernels.may_search()

    def _try_fourier(self, factor):
        problem, sample = self._problem, self._kernels.search.sample
        gamma = (factor * self._kernels.best.gamma) ** 2
        fourier = gaussian_map(gamma, problem.limits.n_fourier, problem.seed, problem.n_jobs)
        rows, alphas = LocalRows(fourier(sample.X), sample.Y, sample.weights), problem.penalties(ALPHAS)
        out, trials = fourier(sample.X_out), []
        for alpha, result in zip(alphas, solve_ridge(rows, alphas, SolverOptions(solver="gram")), strict=True):
            errors = sample.loss(out @ result.solution + result.intercept)
            trials.append(FeatureTrial("fourier", errors, float(alpha), fourier))
        return min(trials, key=_error)

    def _try_hybrid(self, fourier):
        sample, best, trials = self._kernels.search.sample, self._kernels.best, []
        rows = TrainingRows.in_memory(sample.X, sample.Y, sample.weights, self._problem.n_jobs)
        growth = Growth(rows, sample.X_out, lambda n_grids: best.grids[:n_grids], fourier, self._problem.n_jobs)
        growth.grow(sample.n_grids)
        for alpha in self._problem.penalties(best.alpha * np.array([1.0, np.sqrt(10), 10.0])):
            growth.solve(alpha, _TOL, _MAX_ITER)
            trials.append(FeatureTrial("hybrid", sample.loss(growth.held_out()), float(alpha), fourier))
        return min(trials, key=_error)


def _error(trial):
    return trial.error
