"""The choice of a transform of the targets, by leave-one-out errors on few rows in the units of y."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from binfeat._engine.policy import one_blas_thread, side_by_side
from binfeat._machine.kernel_algebra.leave_one_out import SingularKernelError
from binfeat._machine.search.length_scales import LengthScaleSearch
from binfeat._machine.target.targets import Targets, as_columns
from binfeat._machine.target.transforms import TRANSFORMS
from binfeat.kernels import Matern

_SKEWED, _FAR = 1.0, 10.0  # skewness, and standard deviations from the mean, from which on a transform is tried
_STEPS, _ROWS, _COMMON_ROWS = 30, 300, 1000  # of a search, and rows that errors are compared on
_GAIN = 0.95  # share of the error without a transform that one with it has to be below
_NATS, _CLEARLY = 0.5, 3.0  # of likelihood that count as far better; standard errors that count as clearly worse
_TINY = np.finfo(np.float64).tiny
_SHARE = 0.1  # of the time, that trials may take


@dataclass(frozen=True, eq=False)
class Trial:
    """Targets with a transform, and what leave-one-out predictions of a short search say of them."""

    targets: Any
    losses: np.ndarray  # of rows, in the units of y; or one number, minus the machine's `scoring`
    likelihood: float  # mean logarithm of the density of y, of Gaussian errors of the transformed targets

    @property
    def error(self):
        return float(self.losses.mean())

    def beats(self, other):
        """Whether it does better in the units of y, or far better as a model of y and not clearly worse in its units.

        Squared errors of targets with long tails hang on few rows; the likelihood (Box and Cox 1964) on all.
        """
        if self.error < _GAIN * other.error:
            return True
        apart, far = self.losses - other.losses, self.likelihood > other.likelihood + _NATS
        noise = apart.std(ddof=1) / np.sqrt(apart.size) if apart.size > 1 else 0.0
        return bool(far and apart.mean() <= _CLEARLY * noise)


def choose_targets(problem):
    """The targets of a problem with the transform that does best, `Targets`.

    A transform is tried only if a target is skewed or has values far from its mean. Each trial is a short search for
    length scales.
    """
    Y = as_columns(problem.y)
    if not _is_long_tailed(Y):
        return problem.targets
    kinds, found = [kind for kind in TRANSFORMS.values() if kind.takes(Y)], {}

    def attempt(kind):
        if kind is kinds[0] or problem.budget.allows(0.0, _SHARE):
            found[kind] = _trials(problem, Targets.of(kind.fit(Y), problem.y))

    with one_blas_thread():
        side_by_side(attempt, kinds, problem.n_jobs)
    trials: list[Trial] = [trial for kind in kinds for trial in found.get(kind, ())]
    if not trials:
        return problem.targets
    plain, *others = trials
    others.sort(key=lambda trial: -trial.likelihood)
    best = next((trial for trial in others if trial.beats(plain)), plain)
    problem.decisions.note("target transform", best.targets.transform.name, best.error)
    return best.targets


def _is_long_tailed(Y):
    """Whether some target, of more than two values, is skewed or reaches far."""
    std = Y.std(axis=0)
    Z = (Y - Y.mean(axis=0)) / np.where(std > 0, std, 1.0)
    shaped = (np.abs((Z**3).mean(axis=0)) > _SKEWED) | (np.abs(Z).max(axis=0) > _FAR)
    return bool((shaped & ((Z.min(axis=0) < Z) & (Z.max(axis=0) > Z)).any(axis=0)).any())


def _trials(problem, targets):
    """The trial of these targets, after a short search, or none where the kernel is singular."""
    rows, weights = problem.train, problem.weights_of(problem.train)
    some = rows[: _STEPS * _ROWS]
    weights = None if weights is None else weights[: len(some), 0] / problem.mean_weight
    Y = targets.encode(problem.y[some])
    search = LengthScaleSearch(
        Matern(1.5), problem.table[some], Y, weights, problem.categorical, problem.seed, n_jobs=problem.n_jobs
    )
    try:
        places, residuals = search.run(_STEPS, _ROWS).left_out(_COMMON_ROWS)
    except SingularKernelError:
        return []
    rows, predictions = some[places], Y[places] - residuals
    losses, _ = targets.better(problem, rows, predictions)
    slopes = targets.transform.log_slopes(as_columns(problem.y[rows]))
    squares = np.average(residuals**2, axis=0, weights=None if weights is None else weights[places])
    densities = slopes.mean(axis=0) - np.log(targets.std) - 0.5 * np.log(np.maximum(squares, _TINY))
    return [Trial(targets, losses, float(densities.mean()))]
