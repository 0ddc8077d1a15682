"""First decisions of a fit: a transform of the targets, and weights for outliers."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

import numpy as np

from binfeat._common.labels import AnyLabels
from binfeat._threads import side_by_side
from binfeat.kernels.families import Matern
from binfeat.length_scales.kernel_sum import Trial
from binfeat.length_scales.leave_one_out import SingularKernelError
from binfeat.length_scales.search import LengthScaleSearch
from binfeat.models.kernel_algebra.bounded import BOUNDED_LOSSES, bounded_loss
from binfeat.models.machines.candidate import Predictor
from binfeat.models.machines.exact import ExactMachine
from binfeat.models.problem import Beyond, HuberWeights, MarginProblem, Problem, WorkingProblem
from binfeat.models.run import Phase, Run
from binfeat.models.search.kernel_search import KernelSearch
from binfeat.models.search.scaled_kernels import ScaledKernels
from binfeat.models.target.deviance import DEVIANCES
from binfeat.models.target.huber import scales
from binfeat.models.target.targets import Targets, as_columns
from binfeat.models.target.transform_choice import TransformTrial, likelihood, transforms_to_try
from binfeat.models.target.transforms import TargetTransform

_TRIAL_STEPS, _TRIAL_ROWS, _COMMON_ROWS = 30, 300, 1000  # of a search, and rows that errors are compared on
_ROUNDS = 2  # of weights by residuals or curvatures
_ROBUST_ROWS = 1500  # maximum of rows of the model whose leave-one-out residuals are used
_ROBUST_STEPS = 30  # of its search for length scales

_Near = TypeVar("_Near", bound=Problem)


def prepared(problem: Problem, run: Run, has_targets: bool) -> Problem:
    """Return the problem with targets, unless they are set, and final weights."""
    if run.settings.loss in DEVIANCES:
        return _working(problem, run)
    if run.settings.loss in BOUNDED_LOSSES:
        return MarginProblem.of(problem, bounded_loss(run.settings.loss, cast(AnyLabels, problem.targets)))
    if run.settings.chooses_transform and not has_targets:
        known = _about_medians(problem) if run.settings.is_robust else problem
        problem = replace(problem, targets=_choose_targets(known, run))
    return _robust(problem, run) if run.settings.is_robust else problem


def _choose_targets(problem: Problem, run: Run) -> Targets | AnyLabels:
    """The targets of a problem with the transform that does best, each tried by a short search for length scales."""
    kinds = transforms_to_try(as_columns(problem.y))
    if not kinds or not run.limits.mechanisms.target_transforms:
        return problem.targets

    def attempt(kind: type[TargetTransform]) -> list[TransformTrial]:
        if kind is kinds[0] or run.may_continue(Phase.TARGETS):
            return _transform_trials(problem, run, kind.fit(as_columns(problem.y)))
        return []

    trials = [trial for some in side_by_side(attempt, kinds, run.settings.n_jobs) for trial in some]
    if not trials:
        return problem.targets
    plain, *others = trials
    likeliest = sorted(others, key=lambda trial: -trial.likelihood)
    best = next((trial for trial in likeliest if trial.beats(plain)), plain)
    run.note("target transform", best.targets.transform.name, best.error)
    return best.targets


def _transform_trials(problem: Problem, run: Run, transform: TargetTransform) -> list[TransformTrial]:
    """The trial of targets with a transform, or none where the kernel is singular."""
    some, targets = problem.train[: _TRIAL_STEPS * _TRIAL_ROWS], Targets.of(transform, problem.y, problem.weights)
    weights, Y, settings = problem.relative_weights(some), targets.encode(problem.y[some]), run.settings
    search = LengthScaleSearch(
        Matern(1.5), problem.table[some], Y, weights, problem.categorical, settings.seed, n_jobs=settings.n_jobs
    )
    try:
        places, residuals = search.run(_TRIAL_STEPS, _TRIAL_ROWS).left_out(_COMMON_ROWS)
    except SingularKernelError:
        return []
    rows, predictions = some[places], Y[places] - residuals
    losses, _ = problem.better(targets, rows, predictions, settings.is_robust)
    own, own_weights = as_columns(problem.y[rows]), None if weights is None else weights[places]
    return [TransformTrial(targets, losses, likelihood(transform, targets.std, own, residuals, own_weights))]


def _robust(problem: Problem, run: Run) -> Problem:
    """The problem with the weights of its rows times those of Huber's loss."""

    def near(predictions: np.ndarray, machine: Predictor) -> Problem:
        reweigh = _huber(problem, predictions)
        _, weights = reweigh(problem.y, problem.weights, predictions)
        return replace(problem, weights=weights, beyond=Beyond(machine, reweigh))

    weighed, error = _reweighted(_about_medians(problem), near, run)
    weights = cast(np.ndarray, weighed.weights)
    lighter = np.mean(weights < (1.0 if problem.weights is None else problem.weights))
    run.note("loss", f"huber, {lighter:.1%} of the rows weigh less", error)
    return weighed


def _working(problem: Problem, run: Run) -> WorkingProblem:
    """Return the quadratic approximation of a deviance near the predictions of a model of some rows."""
    start = WorkingProblem.of(problem, DEVIANCES[run.settings.loss])
    working, error = _reweighted(start, start.at, run)
    run.note("loss", run.settings.loss, error)
    return working


def _reweighted(start: _Near, near: Callable[[np.ndarray, Predictor], _Near], run: Run) -> tuple[_Near, float]:
    """The problem near predictions of an exact model of some rows, in rounds, and the error of that model.

    Its predictions are leave-one-out predictions for its own rows. Each round has the squares of the round before.
    """
    problem, model, error = start, _SmallModel.of(start, run), np.nan
    for _ in range(_ROUNDS):
        predictions, machine, error = model.predictions(problem)
        problem = near(predictions, machine)
    return problem, error


def _about_medians(problem: Problem) -> Problem:
    """The problem with Huber's weights of the targets' distances from their medians."""
    medians = np.median(problem.Y, axis=0)
    _, weights = _huber(problem, medians)(problem.y, problem.weights, medians)
    return replace(problem, weights=weights)


def _huber(problem: Problem, predictions: np.ndarray) -> HuberWeights:
    """Huber's weights by deviations from predictions for all rows, of those with weight."""
    return HuberWeights(problem.targets, scales((problem.Y - predictions)[problem.weighty(slice(None))]))


class _SmallModel:
    """Exact models of some rows, with the kernels and approximately the penalty of the first model."""

    def __init__(self, kernels: ScaledKernels, run: Run) -> None:
        self._kernels, self._run = kernels, run
        self._known: Trial | None = None  # with the penalty of weights as they are

    @classmethod
    def of(cls, problem: Problem, run: Run) -> "_SmallModel":
        """Return kernels of a short search, without log messages."""
        quiet, kinds = run.quiet(_ROBUST_STEPS), {"binning", "radial"} if run.settings.kernel is None else {"radial"}
        return cls(KernelSearch(problem, quiet, kinds, set()).run(), quiet)

    def predictions(self, problem: Problem) -> tuple[np.ndarray, Predictor, float]:
        """Return leave-one-out or test residuals of all rows, the model, and its error."""
        kernels, run, known = self._kernels, self._run, self._known
        some = replace(problem, train=problem.train[:_ROBUST_ROWS], held_out=problem.held_out[:0])
        if known is not None:
            known = replace(known, kernel=replace(known.kernel, alpha=known.kernel.alpha / some.mean_weight))
        machine = ExactMachine(some, run, kernels, known)
        tuned = machine.tuned()
        solution = machine.solution(tuned)
        kernel = replace(tuned.kernel, alpha=tuned.kernel.alpha * some.mean_weight)
        self._known = Trial(kernel, tuned.error)
        predictions = solution.scores(kernels.X, run.settings.n_jobs)
        predictions[solution.rows] = solution.predictions
        return predictions, solution.predictor(kernels.scaler, run.settings.n_jobs), solution.error
