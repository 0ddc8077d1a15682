"""The choice of a transform of the targets, by leave-one-out errors on few rows in the units of y."""

import numpy as np

from binfeat._engine.policy import one_blas_thread
from binfeat._machine.leave_one_out import SingularKernelError
from binfeat._machine.length_scales import LengthScaleSearch
from binfeat._machine.target_transforms import TRANSFORMS, NoTransform
from binfeat._machine.targets import Targets, as_columns
from binfeat.kernels import Matern

_SKEWED, _FAR = 1.0, 10.0  # skewness, and standard deviations from the mean, from which on a transform is tried
_STEPS, _ROWS, _COMMON_ROWS = 30, 300, 1000  # of a search, and rows that errors are compared on
_GAIN = 0.95  # share of the error so far that the next transform has to be below: the first ones are the simplest
_SHARE = 0.1  # of the time, that trials may take


def choose_targets(problem):
    """The targets of a problem with the transform that does best, `Targets`.

    A transform is tried only if a target is skewed or has values far from its mean. Each trial is a short search for
    length scales.
    """
    Y = as_columns(problem.y)
    if not _is_long_tailed(Y):
        return problem.targets
    best, least = problem.targets, np.inf
    with one_blas_thread():
        for kind in TRANSFORMS.values():
            if not kind.takes(Y) or (kind is not NoTransform and not problem.budget.allows(0.0, _SHARE)):
                continue
            targets = Targets.of(kind.fit(Y), problem.y)
            error = _error(problem, targets)
            if kind is NoTransform or error < _GAIN * least:
                best, least = targets, error
    problem.decisions.note("target transform", best.transform.name, least)
    return best


def _is_long_tailed(Y):
    """Whether some target, of more than two values, is skewed or reaches far."""
    std = Y.std(axis=0)
    Z = (Y - Y.mean(axis=0)) / np.where(std > 0, std, 1.0)
    shaped = (np.abs((Z**3).mean(axis=0)) > _SKEWED) | (np.abs(Z).max(axis=0) > _FAR)
    return bool((shaped & ((Z.min(axis=0) < Z) & (Z.max(axis=0) > Z)).any(axis=0)).any())


def _error(problem, targets):
    """Leave-one-out error in the units of y, after a short search."""
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
        return np.inf
    return targets.better(problem, some[places], Y[places] - residuals)[0]
