"""First decisions of a fit: a transform of the targets, and a quadratic approximation of the loss."""

from dataclasses import replace
from typing import cast

import numpy as np

from binfeat._common.labels import AnyLabels
from binfeat._threads import side_by_side
from binfeat.kernels.families import Matern
from binfeat.models.kernel_algebra.kernel_sum import Trial
from binfeat.models.kernel_algebra.leave_one_out import SingularKernelError
from binfeat.models.loss import Deviance, loss_of
from binfeat.models.machines.candidate import Predictor
from binfeat.models.machines.exact import ExactMachine
from binfeat.models.machines.sizes import TUNING_ROWS
from binfeat.models.problem import Problem, with_medians_or_means
from binfeat.models.run import Phase, Run
from binfeat.models.search.kernel_search import KernelSearch, ScaledKernels
from binfeat.models.search.length_scales import LengthScaleSearch
from binfeat.models.target.targets import Targets, as_columns
from binfeat.models.target.transform_choice import TransformTrial, likelihood, transforms_to_try
from binfeat.models.target.transforms import LogLink, TargetTransform

_STEPS, _TRIAL_ROWS, _COMMON_ROWS = 30, 300, 1000  # of a search, and rows that errors are compared on
_ROUNDS = 2  # of weights by residuals or curvatures


def prepared(problem: Problem, run: Run, has_targets: bool) -> Problem:
    """Return the problem with its loss, targets unless they are set, and a quadratic approximation of the loss."""
    problem = replace(problem, loss=loss_of(run.settings.loss, problem.targets))
    if problem.loss.has_link:
        problem = _with_link(problem, cast(Deviance, problem.loss))
    elif run.settings.chooses_transform and not has_targets:
        problem = replace(problem, targets=_choose_targets(_at_start(problem), run))
    start = _at_start(problem)
    return problem if start is problem else _near_small_model(start, run)


def _with_link(problem: Problem, loss: Deviance) -> Problem:
    """Return the problem with standardised logarithms of means as targets."""
    loss, flat = loss.standardised(problem.answers, problem.own_weights), problem.y.ndim == 1
    targets = Targets.of_moments(LogLink(), np.asarray(loss.center), np.asarray(loss.std), flat)
    return replace(problem, loss=loss, targets=targets)


def _at_start(problem: Problem) -> Problem:
    """Return the first approximation of the loss, if it needs one."""
    scores = problem.loss.start(problem.answers)
    return problem if scores is None else problem.at(scores)


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
    some, targets = problem.train[: _STEPS * _TRIAL_ROWS], Targets.of(transform, problem.y, problem.weights)
    weights, Y, settings = problem.relative_weights(some), targets.encode(problem.y[some]), run.settings
    search = LengthScaleSearch(
        Matern(1.5), problem.table[some], Y, weights, problem.categorical, settings.seed, n_jobs=settings.n_jobs
    )
    try:
        places, residuals = search.run(_STEPS, _TRIAL_ROWS).left_out(_COMMON_ROWS)
    except SingularKernelError:
        return []
    rows, predictions = some[places], Y[places] - residuals
    losses, _ = with_medians_or_means(problem, targets, rows, predictions)
    own, own_weights = as_columns(problem.y[rows]), None if weights is None else weights[places]
    return [TransformTrial(targets, losses, likelihood(transform, targets.std, own, residuals, own_weights))]


def _near_small_model(start: Problem, run: Run) -> Problem:
    """Return the approximation near predictions of an exact model of some rows, in rounds, from a first approximation.

    The predictions are leave-one-out predictions for the model's own rows.
    """
    near, model, error = start, _SmallModel.of(start, run), np.nan
    for _ in range(_ROUNDS):
        predictions, machine, error = model.predictions(near)
        near = near.at(predictions, machine)
    words = run.settings.loss
    if near.loss.is_squares:
        lighter = np.mean(np.asarray(near.weights) < (1.0 if near.own_weights is None else near.own_weights))
        words = f"{words}, {lighter:.1%} of the rows have less weight"
    run.note("loss", words, error)
    return near


class _SmallModel:
    """Exact models of some rows, with the kernels and approximately the penalty of the first model."""

    def __init__(self, kernels: ScaledKernels, run: Run) -> None:
        self._kernels, self._run = kernels, run
        self._known: Trial | None = None  # with the penalty of weights as they are

    @classmethod
    def of(cls, problem: Problem, run: Run) -> "_SmallModel":
        """Return kernels of a short search, without log messages."""
        quiet, kinds = run.quiet(_STEPS), {"binning", "radial"} if run.settings.kernel is None else {"radial"}
        return cls(KernelSearch(problem, quiet, kinds, set()).run(), quiet)

    def predictions(self, problem: Problem) -> tuple[np.ndarray, Predictor, float]:
        """Return leave-one-out or test residuals of all rows, the model, and its error."""
        kernels, run, known = self._kernels, self._run, self._known
        some = replace(problem, train=problem.train[:TUNING_ROWS], held_out=problem.held_out[:0])
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
