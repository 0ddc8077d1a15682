"""The choice of the kind of features, and of the kernel of the grids, on a sample of the rows."""

from dataclasses import dataclass

import numpy as np

from binfeat._fourier.features import FourierMap
from binfeat._fourier.frequencies import frequencies_of_inputs
from binfeat._linear.result import SolverOptions
from binfeat._linear.solve import solve_ridge
from binfeat._machine.machines.exact import ExactChoice, most_exact_rows
from binfeat._machine.machines.growth import Growth, TrainingRows
from binfeat._machine.machines.sample import surely_less
from binfeat._rows.rows import LocalRows
from binfeat.kernels import GammaPitch, Skip

_FACTOR = 2.0  # between overall factors of the length scales that are tried
_DECREASE = np.sqrt(10)  # between penalties
_FIRST_ALPHAS = np.array([10.0, _DECREASE, 1.0])  # times that of the exact kernel: grids are fewer than all
_ALPHAS = np.geomspace(10.0, 1e-3, 9)
_TOL, _MAX_ITER = 1e-2, 60
# Of the same gammas, after the Laplacian: their pitches vary less, so that fewer grids are needed.
KERNELS = GammaPitch(8.0), GammaPitch(np.inf), Skip(GammaPitch(8.0), 0.2)


@dataclass(frozen=True)
class FeatureTrial:
    """What was tried on the sample: its features or kernels, the best penalty, and the held-out losses with it."""

    features: str
    errors: np.ndarray
    alpha: float
    fourier: FourierMap | None
    radial: object = None  # LengthScales of the Fourier features
    exact: ExactChoice | None = None

    @property
    def error(self):
        return self.errors.mean()


def fourier_map(scales, n_components, seed, n_jobs=None):
    """Random Fourier features of a radial kernel, as `RandomFourier` draws them."""
    kernel, scale = scales.kernel, scales.kernel.frequency_scale(scales.gamma)
    frequencies = frequencies_of_inputs(kernel, "orthogonal", n_components // 2, scale, seed, scales.linear_map)
    return FourierMap(frequencies, n_jobs=n_jobs)


class FeatureChoice:
    """Grids, random Fourier features of a radial kernel, or both; or an exact machine of some of the rows.

    Parameters
    ----------
    problem : Problem
    kernels : KernelChoice
        Done.
    may_be_exact : bool
        Whether "auto" weighs grids against an exact machine, and not against Fourier features: where a kernel without
        random error is worth more than all rows, it is worth more than thousands of features too.

    Attributes
    ----------
    kernel : kernel of the grids
    gamma : ndarray of shape (n_inputs,)
        Of the grids; as fine as the sample's held-out rows say.
    """

    def __init__(self, problem, kernels, may_be_exact):
        self._problem, self._kernels, self._may_be_exact = problem, kernels, may_be_exact

    def run(self):
        """The features to take, a FeatureTrial."""
        wanted = self._problem.machine.features
        trials = [] if wanted == "fourier" else [self._try_grids()]
        if wanted == "hybrid" and self._varies:
            trials.append(self._try_both(self._kernels.radial[0]))
        elif self._tries_exact(trials):
            trials.append(self._try_exact())
        elif wanted == "fourier" or (wanted == "auto" and self._varies and self._may_try_fourier()):
            trials.append(self._try_fourier(self._kernels.radial[0]))
        best = trials[0]
        for trial in trials[1:]:
            if wanted == trial.features or surely_less(trial.errors, best.errors):
                best = trial
        if len(trials) > 1:
            self._problem.decisions.note("features", best.features, best.error)
        return best

    @property
    def _varies(self):
        """Whether some input varies; else there is a constant, of whatever features."""
        return any(scales.gamma.any() for scales in self._kernels.found)

    def _try_grids(self):
        problem, scales = self._problem, self._kernels.binning
        sample = problem.sample(self._kernels.X, scales.kernel, problem.limits.sample_rows)
        best = sample.fit(scales.gamma, problem.penalties(self._first_alphas(scales)))
        if self._kernels.learned:
            best = self._finer(sample, best)
        if problem.machine.kernel == "auto":
            sample, best = self._other_kernels(sample, best)
            problem.decisions.note("kernel", sample.kernel, best.error)
        self.kernel, self.gamma, self._sample, self._fit = sample.kernel, best.gamma, sample, best
        return FeatureTrial("binning", best.errors, best.alpha, None)

    def _first_alphas(self, scales):
        return scales.alpha * self._problem.mean_weight * _FIRST_ALPHAS if self._kernels.learned else _ALPHAS

    def _finer(self, sample, best):
        """Shorter length scales, as long as they do better: there are more rows than they were learned on."""
        while self._kernels.may_search():
            alphas = self._problem.penalties(best.alpha / np.array([1.0, _DECREASE]))
            other = sample.fit(_FACTOR * best.gamma, alphas)
            if not other.error < best.error:
                break
            best = other
        return best

    def _other_kernels(self, sample, best):
        first = sample
        for kernel in KERNELS:
            if self._kernels.may_search():
                other = first.of_kernel(kernel)
                rival = other.fit(best.gamma, [best.alpha])
                if rival.error < best.error:
                    sample, best = other, rival
        return sample, best

    def _may_try_fourier(self):
        """Whether there is a radial kernel, and time to try it, and no exact machine is weighed instead."""
        return not self._may_be_exact and bool(self._kernels.radial) and self._kernels.may_search()

    def _tries_exact(self, trials):
        """Whether an exact machine may do better: it has to on few rows already, where errors are squares as well."""
        problem = self._problem
        if not (self._may_be_exact and self._varies and self._kernels.may_search()):
            return False
        few = min(scales.error for scales in self._kernels.found)
        if problem.machine.scoring is None and not few < trials[0].error:
            return False
        return most_exact_rows(problem) > problem.limits.exact_trial_rows

    def _try_exact(self):
        problem, exact = self._problem, ExactChoice(self._problem, self._kernels)
        exact.choose()
        exact.solve(min(problem.limits.exact_trial_rows, len(problem.train)))
        out = problem.held_out[: problem.limits.sample_out]
        predictions = exact.function(self._kernels.X[out], problem.n_jobs) + exact.intercept
        return FeatureTrial("exact", problem.loss_of(out)(predictions), exact.alpha, None, exact=exact)

    def _fourier_map(self, scales):
        problem = self._problem
        return fourier_map(scales, problem.limits.n_fourier, problem.seed, problem.n_jobs)

    def _try_fourier(self, scales):
        problem = self._problem
        sample = problem.sample(self._kernels.X, scales.kernel, problem.limits.sample_rows)
        fourier = self._fourier_map(scales)
        rows, alphas = LocalRows(fourier(sample.X), sample.Y, sample.weights), problem.penalties(_ALPHAS)
        out, trials = fourier(sample.X_out), []
        for alpha, result in zip(alphas, solve_ridge(rows, alphas, SolverOptions(solver="gram")), strict=True):
            errors = sample.loss(out @ result.solution + result.intercept)
            trials.append(FeatureTrial("fourier", errors, float(alpha), fourier, scales))
        return min(trials, key=_error)

    def _try_both(self, scales):
        fourier, sample, best, trials = self._fourier_map(scales), self._sample, self._fit, []
        rows = TrainingRows.in_memory(sample.X, sample.Y, sample.weights, self._problem.n_jobs)
        growth = Growth(rows, sample.X_out, lambda n_grids: best.grids[:n_grids], fourier, self._problem.n_jobs)
        growth.grow(sample.n_grids)
        for alpha in self._problem.penalties(best.alpha * np.array([1.0, _DECREASE])):
            growth.solve(alpha, _TOL, _MAX_ITER)
            errors = sample.loss(growth.held_out())
            trials.append(FeatureTrial("hybrid", errors, float(alpha), fourier, scales))
        return min(trials, key=_error)


def _error(trial):
    return trial.error
