"""The steps of a fit, from a problem to a fitted model."""

from dataclasses import replace
from typing import cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.held_out import sums_by_group
from binfeat._common.labels import AnyLabels
from binfeat._common.subsets import evenly_spaced
from binfeat._common.warned import warn
from binfeat._threads import side_by_side
from binfeat.kernels.families import Matern
from binfeat.length_scales.kernel_sum import Trial
from binfeat.length_scales.leave_one_out import SingularKernelError
from binfeat.length_scales.search import LengthScaleSearch
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.fitted.importance import ROWS, rises_of_features
from binfeat.models.kernel_algebra.loss import Deviance, loss_of
from binfeat.models.noise import noise_model_of
from binfeat.models.problem import Problem, counts_of, rows_of, weighty_y, with_medians_or_means
from binfeat.models.run import Phase, Run
from binfeat.models.search.high_dimensional import HighDimensionalSearch
from binfeat.models.search.kernel_search import KernelSearch, ScaledKernels
from binfeat.models.solvers.all_rows import AllRows, RowsOf
from binfeat.models.solvers.candidate import Solution
from binfeat.models.solvers.choice import Candidate, SolverChoice, known_kernels, known_solver, solver_again, suits
from binfeat.models.solvers.exact import ExactSolver
from binfeat.models.solvers.sizes import TUNING_ROWS, is_high_dimensional
from binfeat.models.table.targets import (
    LINK,
    Targets,
    TargetTransform,
    TransformTrial,
    as_columns,
    is_better,
    likelihood,
    transforms_to_try,
)


def fit(problem: Problem, previous: Fitted | None, all_rows: RowsOf, run: Run) -> Fitted:
    """Determine targets and weights, then scaling and length scales, then the kind of model, then its solution.

    Ctrl-C returns the best current model and sets `run.interrupt`; it is raised again if there is no model. After the
    solution, the model is complete except for its optional parts.
    """
    problem = prepared(problem, run, has_targets=previous is not None)
    choice = SolverChoice.of(problem, all_rows(problem, run), run)
    if previous is not None and not suits(previous, choice):
        previous = None
    search: KernelSearch | HighDimensionalSearch | None = None
    if previous is None and choice.takes_exact and is_high_dimensional(problem, run.settings):
        search = HighDimensionalSearch(problem, run)
    elif previous is None:
        search = KernelSearch(problem, run, *choice.kernel_kinds, choice.rows.n_train)
    run.begin((search.n_stages if search else 0) + choice.n_stages(run.settings.learns_gamma and previous is None))
    solver = kernels = solution = None
    try:
        kernels = search.run() if search else known_kernels(cast(Fitted, previous), problem, run)
        solver = _solver(choice, kernels, previous)
        solution = solver.solve(choice.rows, run)
        problem, solution = reweighted(problem, kernels, solution, all_rows, run)
        return concluded(problem, kernels, solution, run)
    except KeyboardInterrupt as interrupt:
        if kernels is not None and solution is not None:
            run.interrupt = interrupt
            return concluded(problem, kernels, solution, run, is_short=True)
        settled, so_far = search.settled() if search else kernels, None if solver is None else solver.so_far()
        if settled is None:
            raise
        kernels, run.interrupt = settled, interrupt
        solution = so_far or _solved_in_a_second(choice, kernels, previous)
    return concluded(problem, kernels, solution, run)


def _solver(choice: SolverChoice, kernels: ScaledKernels, previous: Fitted | None) -> Candidate:
    if previous is not None:
        return known_solver(previous, choice, kernels)
    return choice.solver(kernels)


def _solved_in_a_second(choice: SolverChoice, kernels: ScaledKernels, previous: Fitted | None) -> Solution:
    """Return a model of few rows, which takes about a second."""
    problem, run = choice.problem, choice.run.finishing()
    train, held_out = problem.train[: run.limits.hurried_rows], problem.held_out[: run.limits.hurried_out]
    some = replace(problem, train=train, held_out=held_out)
    rows = AllRows(some, run)
    return _solver(replace(choice, problem=some, rows=rows, run=run), kernels, previous).solve(rows, run)


_TRIAL_STEPS, _TRIAL_ROWS, _COMMON_ROWS = 30, 300, 1000  # steps and rows of a short search, and rows to compare
# Rounds of weights by residuals, until they change little. With up to 10 rounds instead of 2, errors of 30 tables with
# outliers are 7 % lower, and halved if outliers are on one side. Two are enough for deviances: steps follow.
_ROUNDS, _MOST_ROUNDS, _SAME_WEIGHTS = 2, 10, 0.005
_MOST_STEPS = 6  # maximum of Newton steps of a loss
# Root mean squares of changes of logarithms of means: steps end below the first, and have not converged above the
# second.
_SMALL_STEP, _LARGE_STEP = 0.01, 0.1
_STATUSES = "converged", "budget", "stopped"  # in the order of their priority
_WORSE = 0.01  # a larger relative increase of leave-one-out errors is not rounding


def prepared(problem: Problem, run: Run, has_targets: bool) -> Problem:
    """Return the problem with its loss, targets unless they are set, and a quadratic approximation of the loss."""
    problem = replace(problem, loss=loss_of(run.settings.loss, problem.targets))
    if problem.loss.has_link:
        problem = _with_link(problem, cast(Deviance, problem.loss))
    elif run.settings.chooses_transform and not has_targets:
        problem = replace(problem, targets=_choose_targets(_at_start(problem), run))
    start = _at_start(problem)
    return problem if start is problem else _near_small_model(start, run)


def reweighted(
    problem: Problem, kernels: ScaledKernels, solution: Solution, rows: RowsOf, run: Run
) -> tuple[Problem, Solution]:
    """Approximate the problem near the solution and solve again, until both agree.

    They agree if the logarithms of means of all rows change little, in the root mean square; single rows can change
    more. Squared errors need no step, and losses that need a kernel matrix are at their minimum. If the penalty was
    selected, steps end before the leave-one-out loss increases: the penalty of random features was selected for the
    first approximation, and can be too small for the minimum.
    """
    if not problem.loss.has_link:
        return problem, solution
    scores, moved, first = solution.scores_of_all(problem.table, run.settings.n_jobs), np.inf, solution
    for _ in range(_MOST_STEPS):
        start, quiet = run.clock.used, run.quiet(0)
        near = problem.at(scores, solution.predict(run.settings.n_jobs))
        following = solver_again(solution, near, kernels, quiet).solve(rows(near, quiet), quiet)
        if run.settings.alpha is None and following.error > solution.error + _WORSE * abs(solution.error):
            moved = 0.0
            break
        before, problem, solution = scores, near, following
        scores = solution.scores_of_all(problem.table, run.settings.n_jobs)
        moved = _moved(problem, scores - before)
        if moved < _SMALL_STEP or not run.may_continue(Phase.SOLUTION, run.clock.used - start):
            break
    statuses = [first.status, solution.status]
    if moved > _LARGE_STEP:
        end = f"the last step changed log-means by {moved:.2g} (root mean square). Increase alpha."
        message = f"loss={run.settings.loss!r} did not converge: {end}"
        warn(message, ConvergenceWarning)
        statuses.append("budget")
    if not np.isclose(solution.kernel.alpha, first.kernel.alpha):
        run.note("penalty", f"{solution.kernel.alpha:.3g}", solution.error)
    run.note("loss", f"{run.settings.loss}, last step changed log-means by {moved:.1g}", solution.error)
    return problem, replace(solution, status=max(statuses, key=_STATUSES.index))


def concluded(problem: Problem, kernels: ScaledKernels, solution: Solution, run: Run, is_short: bool = False) -> Fitted:
    """Return the fitted model, with calibrated targets and its errors; without noise model and rises if short."""
    rows, predictions, settings, function = solution.rows, solution.predictions, run.settings, solution.function
    targets, encoder = _with_predictions(problem, rows, predictions, run), problem.encoder
    main = solution.kernel.main
    relevances = kernels.relevances(problem, main, run.limits.sample_rows, settings.seed)
    groups = None if settings.has_cv or problem.scoring is not None else rows_of(problem.groups, rows)
    error = _error(problem.losses(rows)(predictions), groups)
    has_noise = problem.loss.is_squares and not isinstance(targets, AnyLabels) and run.limits.mechanisms.noise_model
    noise_model = noise_model_of(problem, kernels, solution, run) if has_noise and not is_short else None
    if run.cut_short:
        run.note("limit", f"max_seconds, of {run.cut_short}", error[0])
    errors, gammas = kernels.history(main.kernel)
    status = "budget" if solution.status == "converged" and run.cut_short else solution.status
    return Fitted(
        features=solution.features,
        kernel=str(solution.kernel),
        scaling="ranks" if encoder.ranks.columns.size else "standard",
        alpha=solution.kernel.alpha,
        encoder=encoder,
        targets=targets,
        function=function.with_anchors(settings.n_jobs) if isinstance(function, ExactFunction) else function,
        intercept=solution.intercept,
        gamma=main.gamma,
        linear_map=main.linear_map,
        feature_relevances=np.bincount(encoder.source, relevances, minlength=encoder.inputs.n_inputs),
        length_scale_errors=errors,
        length_scale_gammas=gammas,
        held_out_error=error,
        learning_curve=np.array(solution.curve),
        decisions=run.decisions(),
        status=status if run.interrupt is None else "interrupted",
        samples=solution.samples,
        errors=solution.errors,
        noise_model=noise_model,
        rises=None if is_short else _rises(problem, solution, run),
    )


def _with_link(problem: Problem, loss: Deviance) -> Problem:
    loss, flat = loss.standardized(problem.answers, problem.own_weights), problem.y.ndim == 1
    targets = Targets.of_moments(TargetTransform(LINK), np.asarray(loss.center), np.asarray(loss.std), flat)
    return replace(problem, loss=loss, targets=targets)


def _at_start(problem: Problem) -> Problem:
    scores = problem.loss.start(problem.answers, counts_of(problem, slice(None)))
    return problem if scores is None else problem.at(scores)


def _choose_targets(problem: Problem, run: Run) -> Targets | AnyLabels:
    """Return the targets with the best transform; each is tried with a short search for length scales."""
    kinds = transforms_to_try(weighty_y(problem))
    if not kinds or not run.limits.mechanisms.target_transforms:
        return problem.targets

    def attempt(kind: str) -> list[TransformTrial]:
        if kind is kinds[0] or run.may_continue(Phase.TARGETS):
            transform = TargetTransform.fit(kind, weighty_y(problem), problem.loss.is_robust)
            return _transform_trials(problem, run, transform)
        return []

    trials = [trial for some in side_by_side(attempt, kinds, run.settings.n_jobs) for trial in some]
    if not trials:
        return problem.targets
    plain, *others = trials
    likeliest = sorted(others, key=lambda trial: -trial[2])
    targets, losses, _ = next((trial for trial in likeliest if is_better(trial, plain)), plain)
    run.note("target transform", targets.transform.name, losses.mean())
    return targets


def _transform_trials(problem: Problem, run: Run, transform: TargetTransform) -> list[TransformTrial]:
    """Return the trial of targets with a transform; an empty list if the kernel is singular."""
    some = problem.train[problem.weighty(problem.train)][: _TRIAL_STEPS * _TRIAL_ROWS]
    targets = Targets.of(transform, problem.y, problem.weights)
    weights, Y, settings = problem.relative_weights(some), targets.encode(problem.y[some]), run.settings
    table, groups = (problem.table[some], Y, weights, problem.categorical), rows_of(problem.related, some)
    search = LengthScaleSearch(Matern(1.5), *table, settings.seed, groups=groups, n_jobs=settings.n_jobs)
    try:
        places, residuals = search.run(_TRIAL_STEPS, _TRIAL_ROWS).left_out(_COMMON_ROWS)
    except SingularKernelError:
        return []
    rows, predictions = some[places], Y[places] - residuals
    losses, _ = with_medians_or_means(problem, targets, rows, predictions)
    own, own_weights = as_columns(problem.y[rows]), None if weights is None else weights[places]
    return [(targets, losses, likelihood(transform, targets.std, own, residuals, own_weights))]


def _near_small_model(start: Problem, run: Run) -> Problem:
    """Return the approximation near predictions of an exact model of some rows, in rounds from a first one."""
    quiet, kinds = run.quiet(_TRIAL_STEPS), {"binning", "radial"} if run.settings.kernel is None else {"radial"}
    near, kernels, known = start, KernelSearch(start, quiet, kinds, set(), len(start.train)).run(), None
    for n_done in range(1, 1 + (_MOST_ROUNDS if start.loss.is_squares else _ROUNDS)):
        begun = run.clock.used
        known, solution = _small_model(near, kernels, known, quiet)
        predict = solution.predict(run.settings.n_jobs)
        predictions = predict(start.table)
        predictions[solution.rows] = solution.predictions
        before, near = near, near.at(predictions, predict)
        in_time = run.may_continue(Phase.TARGETS, run.clock.used - begun)
        if n_done >= _ROUNDS and (_is_settled(before, near) or not in_time):
            break
    words = run.settings.loss
    if near.loss.is_squares:
        lighter = np.mean(np.asarray(near.weights) < (1.0 if near.own_weights is None else near.own_weights))
        words = f"{words}, {lighter:.1%} of the rows have less weight"
    run.note("loss", words, solution.error)
    return near


def _is_settled(before: Problem, after: Problem) -> bool:
    old, new = np.asarray(before.weights), np.asarray(after.weights)
    return bool(np.linalg.norm(new - old) < _SAME_WEIGHTS * np.linalg.norm(new))


def _small_model(problem: Problem, kernels: ScaledKernels, known: Trial | None, run: Run) -> tuple[Trial, Solution]:
    """Return kernel and penalty, for the weights of the caller, and the solution of an exact model of some rows."""
    some = replace(problem, train=problem.train[:TUNING_ROWS], held_out=problem.held_out[:0])
    if known is not None:
        known = replace(known, kernel=replace(known.kernel, alpha=known.kernel.alpha / some.mean_weight))
    solver = ExactSolver(some, run, kernels, known)
    tuned = solver.tuned()
    kernel = replace(tuned.kernel, alpha=tuned.kernel.alpha * some.mean_weight)
    return Trial(kernel, tuned.error), solver.solution(tuned)


def _moved(problem: Problem, steps: np.ndarray) -> float:
    """Return the root mean square of steps of the logarithms of means, with the weights of rows."""
    squares = ((steps * cast(Targets, problem.targets).std) ** 2).mean(axis=1)
    return float(np.sqrt(np.average(squares, weights=problem.relative_weights(np.arange(len(squares))))))


def _with_predictions(problem: Problem, rows: np.ndarray, predictions: np.ndarray, run: Run) -> Targets | AnyLabels:
    """Return the targets, calibrated: labels with probabilities, or numbers with medians or means as predictions."""
    targets = problem.targets
    if isinstance(targets, AnyLabels):
        has_matrix = run.limits.mechanisms.calibration_matrix
        return targets.calibrated(predictions, problem.y[rows], rows_of(problem.weights, rows), has_matrix)
    if targets.is_plain:
        return targets
    targets = targets.limited(weighty_y(problem))
    if targets.transform.name == LINK:
        return targets
    losses, kept = with_medians_or_means(problem, targets, rows, predictions)
    run.note("predictions", "medians" if kept is targets else "means", losses.mean())
    return kept


def _error(losses: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Return the mean loss and its standard error (NaN for one), with correlated groups (Liang & Zeger 1986)."""
    apart = sums_by_group(losses - losses.mean(), groups)
    n = apart.size
    standard_error = np.sqrt(n / (n - 1) * (apart**2).sum()) / losses.size if n > 1 else np.nan
    return np.array([losses.mean(), standard_error])


def _rises(problem: Problem, solution: Solution, run: Run) -> np.ndarray | None:
    """Return the increase of the loss when each input is shuffled, for a model that stores no rows."""
    function = solution.function
    if not isinstance(function, FeatureFunction):
        return None
    some = evenly_spaced(len(solution.rows), ROWS)
    rows = solution.rows[some]
    weights, residuals = problem.relative_weights(rows), problem.Y[rows] - solution.predictions[some]
    own = problem.table[rows], residuals, np.ones(len(rows)) if weights is None else weights, counts_of(problem, rows)
    return rises_of_features(function, *own, problem.encoder.source, solution.kernel.main.gamma, run.settings.n_jobs)
