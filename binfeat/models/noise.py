"""The noise of a fitted model: sizes of residuals that depend on the inputs, and quantiles of scaled residuals."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from binfeat._common.held_out import is_significantly_less, sorted_residuals, sums_by_group
from binfeat._common.subsets import evenly_spaced, thinned
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelSum, Trial
from binfeat.length_scales.matrices import is_radial
from binfeat.models.fitted.exact import ExactFunction, NoiseModel
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.kernel_algebra.loss import SquaredError
from binfeat.models.problem import Problem, counts_of, rows_of
from binfeat.models.run import Run
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.solvers.candidate import Solution
from binfeat.models.solvers.exact import ExactSolver
from binfeat.models.table.targets import Targets, TargetTransform

_SPREAD_ROWS, _SPREAD_VALUES = 1000, 100_000  # rows for learning sizes, and values of their inputs
_SPREAD_TUNED_ROWS = 500  # rows among these for the penalty
_SPREAD_RESIDUALS = 10_000  # residuals for quantiles
_LEAST_SIZE = 0.1  # share of the mean size of residuals that is added to sizes
_CLEAR_ERROR = 0.95  # sizes differ if the error of log sizes is below this share of their variance
_START_ALPHA = 3.0  # initial penalty for sizes, because sizes of single residuals are nearly all noise
_CHANGE = 0.9  # residuals are moved by this quantile of their changes


def noise_model_of(problem: Problem, kernels: ScaledKernels, solution: Solution, run: Run) -> NoiseModel:
    """Fit kernel ridge regression of the logarithms of residuals' sizes, with the length scales of the solution.

    Residuals are validation residuals of the solution. Only the penalty is learned again. Sizes of a group are
    predicted from other groups.
    """
    is_grouped = problem.groups is not None
    known = np.arange(len(solution.rows))[problem.weighty(solution.rows)]
    n_learned = min(_SPREAD_ROWS, max(2, _SPREAD_VALUES // problem.table.shape[1]))
    known = thinned(known, n_learned if is_grouped else _SPREAD_RESIDUALS)
    rows = solution.rows[known]
    residuals = problem.Y[rows] - solution.predictions[known]
    own, targets = _problem_of_sizes(problem, rows, np.abs(residuals), evenly_spaced(len(rows), n_learned))
    some = own.train if is_grouped else thinned(own.train, _SPREAD_TUNED_ROWS)
    settings = replace(run.settings, alpha=None, kernel=None, refits=False)
    quiet, kernel = run.quiet(0, settings), _kernel_of(kernels, solution)
    tuned = ExactSolver(replace(own, train=some), quiet, kernel).tuned()
    logs = ExactSolver(own, quiet, kernel).solution(tuned if is_grouped else replace(tuned, predictions=None))
    expected = targets.decode(logs.predict(run.settings.n_jobs)(problem.table[rows]))
    places = np.full(len(problem.table), -1)
    places[rows] = np.arange(len(rows))
    sizes = np.exp(expected)
    expected[places[logs.rows]] = targets.decode(logs.predictions)
    scaled, weights = residuals / np.exp(expected), counts_of(problem, rows)

    def changes() -> np.ndarray:
        final = (problem.Y[rows] - solution.predict(run.settings.n_jobs)(problem.table[rows])) / sizes
        return sorted_residuals(np.abs(final - scaled), weights)

    differ, function = _differ(own, logs), cast(ExactFunction, logs.function)
    run.note("noise", "differs between rows" if differ else "about constant", solution.error)
    return NoiseModel(
        **(function.arrays() | {"coef": function.coef * targets.std[:, np.newaxis]}),
        intercept=logs.intercept * targets.std + targets.mean,
        differ=differ,
        residuals=_with_changes(sorted_residuals(scaled, weights), changes),
    )


def _with_changes(residuals: np.ndarray, changes: Callable[[], np.ndarray]) -> np.ndarray:
    """Move sorted residuals away from their median if residuals of the final model differ by more than their spread.

    Residuals belong to models without the row. If most targets have the same value and inputs predict little, these
    residuals are nearly equal. Quantiles around predictions of the final model would then exclude that value. The
    spread is half the interquartile range. Changes are computed only if both quartiles have the same sign. Quartiles of
    ordinary noise have different signs, and its changes are smaller than its residuals. Both arrays are results of
    `sorted_residuals`.
    """
    low, high = np.quantile(residuals, [0.25, 0.75], axis=0)
    one_sided = low * high > 0
    if not one_sided.any():
        return residuals
    change = changes()
    is_larger = np.median(change, axis=0) > (high - low) / 2
    margin = np.where(one_sided & is_larger, np.quantile(change, _CHANGE, axis=0), 0.0)
    sides = np.sign(np.arange(len(residuals)) - len(residuals) // 2)  # 0 for the median
    return residuals + sides[:, np.newaxis] * margin


def _differ(problem: Problem, logs: Solution) -> np.ndarray:
    losses = problem.losses(logs.rows)
    predicted, constant = losses(logs.predictions), losses(np.zeros(logs.predictions.shape))
    groups = rows_of(problem.groups, logs.rows)
    predicted, constant = sums_by_group(predicted, groups), sums_by_group(constant, groups)
    return np.array(predicted.mean() < _CLEAR_ERROR * constant.mean() and is_significantly_less(predicted, constant))


def _problem_of_sizes(
    problem: Problem, rows: np.ndarray, sizes: np.ndarray, learned: np.ndarray
) -> tuple[Problem, Targets]:
    """Return a problem with logarithms of the sizes of residuals as targets; `learned` are its training rows."""
    means = sizes.mean(axis=0)
    logs = np.zeros(problem.Y.shape)
    logs[rows] = np.log(sizes + np.where(means > 0, _LEAST_SIZE * means, 1.0))
    train = rows[learned]
    targets = Targets.of(TargetTransform("none"), logs[train])
    plain = replace(problem, own_weights=problem.weights, loss=SquaredError(), squares=None, scoring=None)
    return replace(plain, y=logs, targets=targets, train=train, held_out=train[:0]), targets


def _kernel_of(kernels: ScaledKernels, solution: Solution) -> ScaledKernels:
    """Return the length scales of the solution for a kernel of exact models; for random features, of the search."""
    main = solution.kernel.main
    if isinstance(solution.function, FeatureFunction):
        main = (kernels.radial if is_radial(main.kernel) else kernels.binning).main
    kernel = main.kernel if isinstance(main.kernel, RBF | Laplacian | Matern) else Laplacian()
    own = KernelSum([replace(main, kernel=kernel, share=1.0)], _START_ALPHA, _SPREAD_ROWS)
    return ScaledKernels([Trial(own, 1.0)])
