"""The last thing a fit for numbers learns: how far targets scatter around predictions, row by row."""

from dataclasses import fields, replace
from typing import cast

import numpy as np

from binfeat._common.held_out import sums_by_group, surely_less
from binfeat._common.subsets import evenly_spaced, thinned
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelSum, Trial
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.spread import Spread
from binfeat.models.machines.candidate import Solution
from binfeat.models.machines.exact import ExactMachine
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.scaled_kernels import ScaledKernels
from binfeat.models.target.targets import Targets
from binfeat.models.target.transforms import NoTransform

_ROWS, _VALUES = 1000, 100_000  # that it is learned from, at most, and values of their inputs
_TUNED_ROWS = 500  # of these, that the factor and the penalty are learned from
_JUDGED = 10_000  # maximum number of residuals for quantiles
_FLOOR = 0.1  # of the mean size, which is added to sizes
_CLEARLY = 0.95  # sizes differ if the error of log sizes is below this share of their variance
_ALPHA = 3.0  # to start with: sizes of single residuals are nearly all noise


def spread_of(problem: Problem, kernels: ScaledKernels, solution: Solution, run: Run) -> Spread:
    """Kernel ridge regression of the logarithms of residuals' sizes, with the length scales of the solution.

    Residuals are validation residuals of the solution. A common factor of the length scales and the penalty
    are learned again. Sizes of a group are predicted from other groups.
    """
    is_grouped = problem.is_grouped
    known = np.arange(len(solution.rows))[problem.weighty(solution.rows)]
    n_learned = min(_ROWS, max(2, _VALUES // problem.table.shape[1]))
    known = thinned(known, n_learned if is_grouped else _JUDGED)
    rows = solution.rows[known]
    residuals = problem.Y[rows] - solution.predictions[known]
    own, targets = _problem_of_sizes(problem, rows, np.abs(residuals), evenly_spaced(len(rows), n_learned))
    some = own.train if is_grouped else thinned(own.train, _TUNED_ROWS)
    quiet, kernel = run.quiet(0, alpha=None, kernel=None, refits=False), _kernel_of(kernels, solution)
    tuned = ExactMachine(replace(own, train=some), quiet, kernel).tuned()
    logs = ExactMachine(own, quiet, kernel).solution(tuned if is_grouped else replace(tuned, predictions=None))
    expected = targets.decode(logs.scores(kernels.X[rows], run.settings.n_jobs))
    places = np.full(len(problem.table), -1)
    places[rows] = np.arange(len(rows))
    expected[places[logs.rows]] = targets.decode(logs.predictions)
    function = cast(ExactFunction, logs.function)
    return Spread(
        **{field.name: getattr(function, field.name) for field in fields(ExactFunction) if field.name != "coef"},
        coef=function.coef * targets.std[:, np.newaxis],
        intercept=logs.intercept * targets.std + targets.mean,
        differ=_differ(own, logs),
        residuals=np.sort(residuals / np.exp(expected), axis=0),
    )


def _differ(problem: Problem, logs: Solution) -> np.ndarray:
    """Return True if predicted log sizes are better than their mean."""
    losses = problem.losses(logs.rows)
    predicted, constant = losses(logs.predictions), losses(np.zeros(logs.predictions.shape))
    groups = problem.groups_of(logs.rows)
    predicted, constant = sums_by_group(predicted, groups), sums_by_group(constant, groups)
    return np.array(predicted.mean() < _CLEARLY * constant.mean() and surely_less(predicted, constant))


def _problem_of_sizes(
    problem: Problem, rows: np.ndarray, sizes: np.ndarray, learned: np.ndarray
) -> tuple[Problem, Targets]:
    """The logarithms of the sizes of some rows' residuals as targets, those with numbers `learned` among them."""
    means = sizes.mean(axis=0)
    logs = np.zeros(problem.Y.shape)
    logs[rows] = np.log(sizes + np.where(means > 0, _FLOOR * means, 1.0))
    train = rows[learned]
    targets = Targets.of(NoTransform(), logs[train])
    return replace(problem, y=logs, targets=targets, train=train, held_out=train[:0], scoring=None), targets


def _kernel_of(kernels: ScaledKernels, solution: Solution) -> ScaledKernels:
    """Return the length scales of the solution for a kernel of exact models."""
    main = solution.kernel.main
    kernel = main.kernel if isinstance(main.kernel, RBF | Laplacian | Matern) else Laplacian()
    own = KernelSum([replace(main, kernel=kernel, share=1.0, factor=1.0)], _ALPHA, _ROWS)
    return ScaledKernels(kernels.scaling, kernels.scaler, kernels.X, [Trial(own, 1.0)], learned=True)
