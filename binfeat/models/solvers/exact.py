"""Exact kernel models: all rows that memory and time allow, without random features."""

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from binfeat._common.arrays import quotients
from binfeat._common.held_out import less_by
from binfeat._common.labels import AnyLabels
from binfeat._common.subsets import thinned
from binfeat._threads import one_blas_thread
from binfeat.length_scales.kernel_sum import KernelSum, KernelValues, Trial
from binfeat.length_scales.leave_one_out import LEAST_ALPHA, Solve, diagonal_by_group, least_alpha, left_out_variances
from binfeat.models.fitted.exact import MOST_IN_CLOSED_FORM, ExactFunction, RowsInCells
from binfeat.models.fitted.kernel_function import HeldOutErrors, KernelFunction
from binfeat.models.kernel_algebra.solve import factored, matrix_to_solve, minimize, solve_kernel
from binfeat.models.problem import counts_of, rows_of, weights_are_counts
from binfeat.models.run import Phase, Run
from binfeat.models.solvers.all_rows import AllRows
from binfeat.models.solvers.candidate import KernelCandidate, KernelRows, Solution, warn_of_steps
from binfeat.models.solvers.cell_ensemble import CellEnsemble
from binfeat.models.solvers.learner import ALL_ROWS, FEW_ROWS, Learner
from binfeat.models.solvers.levels import LevelSearch
from binfeat.models.solvers.sizes import TUNING_ROWS, exact_seconds

_MOST_LEVERAGE = 0.99  # maximum influence of a row on its own prediction
_LEAST_FACTOR = 0.25  # minimum factor of approximated variances; the smallest of a dozen tables was 0.6


@dataclass(frozen=True, eq=False)
class _Solved:
    """A solution for all rows; arrays are (n_rows, n_targets)."""

    coef: np.ndarray
    alpha: float
    scores: np.ndarray
    left_out: np.ndarray  # leave-one-out scores, unless known from tuning; NaN if unknown
    errors: HeldOutErrors | None = None  # leave-one-out errors of too many rows for a closed form


class ExactSolver(KernelCandidate):
    """Kernel ridge regression with the kernel matrix."""

    features: ClassVar[str] = "exact"
    fewest_levels = 2  # minimum levels of some category for effects of levels
    level_gain = 0.02  # share of the error that effects of levels must remove
    level_gains_of_some = 0.01, 0.1  # first the same on some rows, for one cell and for several (less accurate)

    def tuned(self) -> Trial:
        """Return kernel and penalty, learned in cells if there are many rows."""
        rows, plan, seconds = self._rows, ALL_ROWS, exact_seconds(*self._problem.table.shape)
        # Between the least penalties by rounding in a set of rows and in the solution.
        least = LEAST_ALPHA * float(np.sqrt(plan.set_rows * len(rows.all)))
        if len(rows.all) <= TUNING_ROWS or rows.is_high_dimensional:
            rows, plan, least = self._tuning_rows, FEW_ROWS, least_alpha(len(rows.all))
        return Learner(rows, self._kernels, self._run, plan, least).of(self._known, seconds)

    @property
    def _tuning_rows(self) -> KernelRows:
        return replace(self._rows, known=thinned(self._rows.known, TUNING_ROWS))

    def _can_use(self, predictions: np.ndarray | None) -> bool:
        """Return True to keep the predictions of the tuning.

        They are validation predictions, cover all rows, or there is no time for leave-one-out predictions of all rows.
        """
        if predictions is None:
            return False
        n_known = 0 if self._rows.held_out.size else len(self._rows.all)
        seconds = 2 * exact_seconds(*self._problem.table.shape)  # solution and leave-one-out predictions
        return len(predictions) >= n_known or not self._run.may_continue(Phase.SOLUTION, seconds)

    def solve(self, rows: AllRows, run: Run) -> Solution:
        with run.stage("kernel and penalty"):
            best = self.tuned()
        with run.stage("solution"):
            solution = self.solution(best)
            if not isinstance(self._problem.targets, AnyLabels):
                solution = self._with_errors(solution, best)
            goes_on = run.step()
            if goes_on and self._may_have_levels:
                solution = self._with_levels(best.kernel, solution, run)
            solution = replace(solution, status="converged" if goes_on else "stopped")
        run.note("features", solution.features, solution.error)
        self._note_hyperparameters(solution)
        return solution

    def solution(self, best: Trial) -> Solution:
        """Solve for all rows."""
        problem, every = self._problem, self._rows.all
        best = best if self._can_use(best.predictions) else replace(best, predictions=None)
        X = self._rows.columns(every)
        with one_blas_thread():  # the order of sums depends on their number
            solved = self._by_loss if problem.loss.needs_matrix else self._by_squares
            found = solved(best, X)
        kernel = replace(best.kernel, alpha=found.alpha)
        rows, predictions = self._tuning_rows.validated, best.predictions
        if predictions is None:
            are_known = np.isfinite(found.left_out).all(axis=1) & np.isin(every, self._rows.known)
            rows, predictions = every[are_known], found.left_out[are_known]
        return Solution(
            features=self.features,
            kernel=self._for_weights(kernel, problem.mean_weight),
            function=self._function(kernel, every, X, found.coef),
            intercept=found.coef.sum(axis=0, dtype=np.float64),
            rows=rows,
            predictions=predictions,
            curve=[(0, float(problem.losses(rows)(predictions).mean()))],
            status="converged",
            errors=found.errors,
            known=(every, found.scores),
        )

    @property
    def _may_have_levels(self) -> bool:
        settings, rows = self._run.settings, self._rows
        is_plain = self._problem.loss.is_squares and not rows.is_high_dimensional and len(rows.known) == len(rows.all)
        leaves_rows_out = not settings.has_cv and self._problem.groups is None
        return is_plain and leaves_rows_out and settings.features is None and self._run.limits.mechanisms.global_part

    def _with_levels(self, kernel: KernelSum, plain: Solution, run: Run) -> Solution:
        """Return a tree with effects of levels if these reduce leave-one-out errors, otherwise the same model."""
        rows, problem, settings, most = self._rows, self._problem, run.settings, MOST_IN_CLOSED_FORM
        search = LevelSearch(rows, run, most, self.fewest_levels)
        seconds, worth = exact_seconds(*problem.table.shape), self.level_gains_of_some[len(rows.all) > most]
        found = search.run(kernel, self._known is not None, self._earlier_levels, seconds, worth)
        if found is None:
            return plain
        ensemble = CellEnsemble(rows, found[0], most, settings.seed, settings.n_jobs, None, found[1])
        ensemble.grow()
        predictions = ensemble.predictions(rows.all)
        error = float(problem.losses(rows.all)(predictions).mean())
        if error > less_by(self.level_gain, plain.error):
            return plain
        run.note("categories", f"additive effects, share {found[1].share:.2g}", error)
        return Solution(
            features="local",
            kernel=self._for_weights(ensemble.kernel, problem.mean_weight),
            function=ensemble.function(),
            intercept=np.zeros(problem.n_targets),
            rows=rows.all,
            predictions=predictions,
            curve=[(1, error)],
            status=plain.status,
            errors=self._errors_of(rows.all, predictions, ensemble.variances[rows.all]),
        )

    def _function(
        self, kernel: KernelSum, rows: np.ndarray, X: np.ndarray, coef: np.ndarray | None = None
    ) -> ExactFunction:
        """Return the function of rows X, (n_inputs, n_rows), with coefficients (n_rows, n_targets) or zeros."""
        problem = self._problem
        coef = np.zeros((len(rows), problem.n_targets)) if coef is None else coef
        own = X, self._rows.standardizer, problem.relative_weights(rows)
        known = KernelFunction.arrays_of(kernel, problem.categorical, *own)
        known["weights_are_counts"] = weights_are_counts(problem)
        return ExactFunction(**known, coef=np.array(coef.T, np.float64, order="C"))

    def _with_errors(self, solution: Solution, best: Trial) -> Solution:
        """Return the solution with errors for error bars, unless its function can compute them later."""
        if self._rows.held_out.size:
            return replace(solution, errors=self._errors(best))
        if self._problem.loss.is_squares:
            if self._problem.groups is not None:
                return replace(solution, errors=self._errors_of_groups(solution))
            if solution.errors is None and self._problem.loss.is_robust:
                function, counts = cast(ExactFunction, solution.function), counts_of(self._problem, self._rows.all)
                return replace(solution, errors=function.robust_errors(counts, self._run.settings.n_jobs))
        return solution

    def _errors(self, best: Trial) -> HeldOutErrors:
        """Return the errors of validation rows, with predictive variances of a model of the other rows."""
        known, rows, n_jobs = self._rows.known, self._rows.held_out, self._run.settings.n_jobs
        function = self._function(best.kernel, known, self._rows.columns(known))
        variances = function.posterior(None, None, n_jobs).variances(self._problem.table[rows], n_jobs)
        return self._errors_of(rows, cast(np.ndarray, best.predictions), variances)

    def _errors_of(self, rows: np.ndarray, predictions: np.ndarray, variances: np.ndarray) -> HeldOutErrors:
        problem = self._problem
        known = problem.Y[rows] - predictions, variances
        return HeldOutErrors.of(*known, weights=counts_of(problem, rows), is_robust=problem.loss.is_robust)

    def _errors_of_groups(self, solution: Solution) -> HeldOutErrors:
        """Return the errors of leave-one-group-out predictions; the solution has one for each row of the model."""
        problem, rows, function = self._problem, solution.rows, cast(ExactFunction, solution.function)
        with one_blas_thread():
            root, alpha = function.inverse_root(self._run.settings.n_jobs)
            diagonal = diagonal_by_group(root, cast(np.ndarray, problem.groups)[rows])
        variances = left_out_variances(diagonal, alpha, function.weights)
        return self._errors_of(rows, solution.predictions, variances)

    def _by_squares(self, best: Trial, X: np.ndarray) -> _Solved:
        problem, rows, n_jobs = self._problem, self._rows.all, self._run.settings.n_jobs
        Y, weights = problem.Y[rows], problem.relative_weights(rows)
        rng = np.random.default_rng(self._run.settings.seed)
        signs = rng.choice(np.array([-1.0, 1.0], np.float32), (len(rows), 1))
        K, error = matrix_to_solve(self._kernel(best), X, Y.shape[1]), np.sqrt(best.error)
        both, alpha = solve_kernel(
            K, best.kernel.alpha, weights, np.hstack([Y.astype(np.float32), signs]), error, n_jobs
        )
        coef, probe = both[:, :-1], both[:, -1:]
        v = np.ones(len(rows)) if weights is None else weights
        scores = Y - alpha / v[:, np.newaxis] * coef
        if best.predictions is not None:
            return _Solved(coef, alpha, scores, Y)
        function = self._function(replace(best.kernel, alpha=alpha), rows, X)
        if function.exceeds_cell:
            own = counts_of(problem, rows), problem.loss.is_robust
            residuals, errors = _left_out(function, coef, signs, probe, n_jobs, *own)
        else:
            residuals, errors = coef / function.inverse_diagonal(n_jobs)[:, np.newaxis], None
        return _Solved(coef, alpha, scores, Y - residuals, errors)

    def _by_loss(self, best: Trial, X: np.ndarray) -> _Solved:
        problem, rows, kernel, n_jobs = self._problem, self._rows.all, self._kernel(best), self._run.settings.n_jobs
        Y, weights = problem.Y[rows], problem.relative_weights(rows)

        def solves(alpha: float, own: np.ndarray) -> tuple[Solve, float]:
            return factored(kernel(X, X), alpha, own, n_jobs)

        coef, scores, gain, alpha = minimize(problem.loss, solves, best.kernel.alpha, weights, Y)
        warn_of_steps(gain, self._run.settings.loss)
        left_out = scores
        if best.predictions is None:
            steps, v = problem.loss.steps(Y, scores)
            v = v if weights is None else v * weights[:, np.newaxis]
            function = self._function(replace(best.kernel, alpha=alpha), rows, X)
            leverages = np.column_stack([_leverages(replace(function, weights=own), n_jobs) for own in v.T])
            left_out = scores - steps * leverages / (1 - leverages)
        return _Solved(coef, alpha, scores, left_out)

    def _kernel(self, best: Trial) -> KernelValues:
        return best.kernel.values(self._rows.standardizer, self._problem.categorical, self._run.settings.n_jobs)


def _leverages(function: ExactFunction, n_jobs: int | None) -> np.ndarray:
    """Return the influence of each row on its own prediction, (n_rows,)."""
    diagonal = function.inverse_diagonal(n_jobs)
    return np.clip(1 - float(function.alpha) * diagonal / function.weights, 0.0, _MOST_LEVERAGE)


def _left_out(
    function: ExactFunction,
    coef: np.ndarray,
    signs: np.ndarray,
    probe: np.ndarray,
    n_jobs: int | None,
    weights: np.ndarray | None,
    is_robust: bool,
) -> tuple[np.ndarray, HeldOutErrors | None]:
    """Return leave-one-out residuals of many rows, and their errors if a closed form is too large.

    The probe is the solution for random signs. Signs times probe estimate the diagonal, with noise. The approximated
    inverse, applied to the same signs, has nearly the same noise, which is subtracted (a control variate).
    """
    inverse, alpha, v = RowsInCells.of(function, n_jobs), float(function.alpha), function.weights
    approximated = inverse.diagonal()
    diagonal = _corrected(approximated, approximated + (signs * (probe - inverse.times(signs)))[:, 0], v)
    residuals, known = coef / diagonal[:, np.newaxis], np.isfinite(diagonal)
    if len(coef) <= MOST_IN_CLOSED_FORM:
        return residuals, None
    variances, right = (left_out_variances(g[known], alpha, v[known]) for g in (approximated, diagonal))
    factor = np.clip(quotients(right.mean(), variances.mean()), _LEAST_FACTOR, 1.0)
    own = float(factor), rows_of(weights, known), is_robust
    return residuals, HeldOutErrors.of(residuals[known], variances, *own)


def _corrected(diagonal: np.ndarray, estimated: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return an approximated diagonal of the inverse, corrected by unbiased but noisy values (Hutchinson 1990).

    Divided by the weights, the result is a linear function of the approximation, by least squares. It has the correct
    mean, and is between constant and proportional to the approximation.
    """
    known = np.isfinite(diagonal)
    total, part = weights[known].sum(), diagonal / weights
    mean, right_mean = diagonal[known].sum() / total, estimated[known].sum() / total
    apart = part - mean
    slope = quotients(apart[known] @ estimated[known], weights[known] @ apart[known] ** 2)
    return weights * (right_mean + np.clip(slope, 0.0, right_mean / mean) * apart)
