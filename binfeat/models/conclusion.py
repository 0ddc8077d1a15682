"""The end of a fit: calibration and errors from leave-one-out or validation predictions."""

import numpy as np

from binfeat._common.held_out import sums_by_group
from binfeat._common.labels import AnyLabels
from binfeat._common.subsets import evenly_spaced
from binfeat._threads import one_blas_thread
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.fitted.importance import ROWS, rises_of_features
from binfeat.models.fitted.spread import Spread
from binfeat.models.machines.candidate import Solution
from binfeat.models.noise import spread_of
from binfeat.models.problem import Problem, rows_of, with_medians_or_means
from binfeat.models.run import Run
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.target.targets import Targets


def concluded(problem: Problem, kernels: ScaledKernels, solution: Solution, run: Run) -> Fitted:
    """Return the fitted model, with calibrated targets and its errors."""
    rows, predictions, settings = solution.rows, solution.predictions, run.settings
    targets, encoder = _with_predictions(problem, rows, predictions, run), problem.encoder
    main = solution.kernel.main
    relevances = kernels.relevances(problem, main, run.limits.sample_rows, settings.seed)
    groups = None if settings.has_cv else rows_of(problem.groups, rows)
    error = _error(problem.losses(rows)(predictions), groups)
    has_noise = problem.loss.is_squares and not isinstance(targets, AnyLabels)
    spread = _spread(problem, kernels, solution, run) if has_noise else None
    if run.cut_short:
        run.note("limit", f"max_seconds, of {run.cut_short}", error[0])
    status = "budget" if solution.status == "converged" and run.cut_short else solution.status
    return Fitted(
        features=solution.features,
        kernel=str(solution.kernel),
        scaling=kernels.scaling,
        alpha=solution.kernel.alpha,
        encoder=encoder,
        scaler=kernels.scaler,
        targets=targets,
        function=solution.function,
        intercept=solution.intercept,
        gamma=main.gamma,
        linear_map=main.linear_map,
        relevances=np.bincount(encoder.source, relevances, minlength=encoder.inputs.n_inputs),
        history=kernels.history(main.kernel),
        held_out_error=error,
        learning_curve=np.array(solution.curve),
        decisions=run.decisions.table(),
        status=status if run.interrupt is None else "interrupted",
        samples=solution.samples,
        errors=solution.errors,
        spread=spread,
        rises=_rises(problem, kernels, solution, run),
    )


def _rises(problem: Problem, kernels: ScaledKernels, solution: Solution, run: Run) -> np.ndarray | None:
    """Return the increase of the loss when each input is shuffled, for a model that stores no rows."""
    function = solution.function
    if not isinstance(function, FeatureFunction):
        return None
    some = evenly_spaced(len(solution.rows), ROWS)
    rows = solution.rows[some]
    weights, residuals = problem.relative_weights(rows), problem.Y[rows] - solution.predictions[some]
    own = kernels.X[rows], residuals, np.ones(len(rows)) if weights is None else weights
    return rises_of_features(function, *own, problem.encoder.source, solution.kernel.main.gamma, run.settings.n_jobs)


def _spread(problem: Problem, kernels: ScaledKernels, solution: Solution, run: Run) -> Spread:
    """Return the size of the residuals as a function of the row."""
    spread = spread_of(problem, kernels, solution, run)
    run.note("noise", "differs between rows" if spread.differ else "about constant", solution.error)
    return spread


def _with_predictions(problem: Problem, rows: np.ndarray, predictions: np.ndarray, run: Run) -> Targets | AnyLabels:
    """Return the targets, calibrated: labels with probabilities, or numbers with medians or means as predictions."""
    targets = problem.targets
    if isinstance(targets, AnyLabels):
        with one_blas_thread():
            return targets.calibrated(predictions, problem.y[rows], rows_of(problem.weights, rows))
    if targets.is_plain:
        return targets
    targets = targets.limited(problem.y)
    if targets.transform.keeps_means:
        return targets
    losses, kept = with_medians_or_means(problem, targets, rows, predictions)
    run.note("predictions", "medians" if kept is targets else "means", losses.mean())
    return kept


def _error(losses: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Mean of losses, and its standard error, NaN of one alone: rows of a group err together (Liang & Zeger 1986)."""
    apart = sums_by_group(losses - losses.mean(), groups)
    n = apart.size
    spread = np.sqrt(n / (n - 1) * (apart**2).sum()) / losses.size if n > 1 else np.nan
    return np.array([losses.mean(), spread])
