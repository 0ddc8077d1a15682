"""Length scales for many inputs, for which a search can take longer than the model."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np

from binfeat._common.held_out import is_significantly_less, of_mean_one, seen_and_unseen, squared_errors
from binfeat._common.labels import Labels
from binfeat._common.subsets import thinned
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF, Matern
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.leave_one_out import SingularKernelError, least_alpha, precise_inverse_root
from binfeat.length_scales.limits import SEARCH
from binfeat.length_scales.matrices import radial_values
from binfeat.length_scales.search import LengthScaleSearch, SearchPlan
from binfeat.models.kernel_algebra.loss import SquaredError
from binfeat.models.problem import Losses, Problem, relative_alpha, rows_of, without_scoring
from binfeat.models.run import Phase, Run
from binfeat.models.search.kernel_search import ScaledKernels, advance, histories_of, negligible_error

_PENALTIES = 10.0 ** np.arange(0.5, -5.0, -1.0)  # factors of the initial penalty


def high_dimensional_losses(problem: Problem, rows: np.ndarray) -> Losses:
    """Return log-losses for many inputs, because squared errors would select penalties that are bad for labels.

    They are computed from calibrated probabilities.
    """
    labels, y, weights = problem.targets, problem.y[rows], rows_of(problem.weights, rows)
    if not isinstance(labels, Labels) or labels.is_multilabel or not problem.uses_squared_errors:
        return problem.losses(rows)

    def log_losses(predictions: np.ndarray) -> np.ndarray:
        return of_mean_one(weights) * labels.calibrated(predictions, y, weights).log_losses(predictions, y)

    return log_losses


class HighDimensionalSearch:
    """One length scale for all inputs, raw or standardized; then one per input, if there is time.

    The common length scale is selected first, because it needs only one matrix product for raw and one for standardized
    inputs. If time ends then, the model is similar to ridge regression. Length scales per input belong to a radial
    kernel, with gradients by matrix products. They are used if rows that no step has used have clearly lower
    leave-one-out errors; rows of the steps would not show that, because they are fewer than the inputs.
    """

    n_stages = 1

    def __init__(self, problem: Problem, run: Run) -> None:
        self._problem = replace(problem, loss=SquaredError()) if problem.loss.needs_matrix else problem
        self._run, self._negligible = run, negligible_error(problem)
        self._rows = problem.train[problem.weighty(problem.train)]
        self._found: Trial | None = None
        self._history: list[tuple[Kernel, np.ndarray, np.ndarray]] = []
        self._unseen: np.ndarray | None = None  # rows that no step used, if there were steps

    def run(self) -> ScaledKernels:
        """Return the kernel of the table."""
        run = self._run
        with one_blas_thread(), run.stage("length scales"):
            self._found, is_standard = self._of_all()
            words = f"{self._found.kernel}, one for all{' standardized' * is_standard} inputs"
            run.note("length scales", words, self._found.error)
            if run.step() and self._may_step() and run.limits.mechanisms.wide_scales:
                self._found = self._learn(self._found, is_standard)
        return self._kernels(self._found)

    def settled(self) -> ScaledKernels | None:
        """Return the current result after Ctrl-C, or None."""
        return None if self._found is None else self._kernels(self._found)

    def _of_all(self) -> tuple[Trial, bool]:
        """Return the best common length scale, and True if it is for standardized inputs."""
        problem, settings, some = self._problem, self._run.settings, thinned(self._rows, SEARCH.wide_rows)
        std, X = problem.table[thinned(self._rows, SEARCH.wide_std_rows)].std(axis=0), problem.table[some]
        squares = squared_errors(problem.Y[some], rows_of(problem.weights, some))

        def search_unit(unit: str) -> Trial:
            gamma = _gamma(std, unit == "standard")
            scaled = ((X - X.mean(axis=0)) * np.sqrt(gamma)).astype(np.float32)
            products, found = scaled @ scaled.T, []
            for kernel, exponent in product((Matern(1.5), RBF()), 4.0 ** np.arange(-2, 2)):
                K = _values(kernel, products, exponent)
                error, alpha = self._least_error(some, K, exponent * _PENALTIES, squares)
                own = KernelSum([KernelPart(kernel, exponent * gamma)], alpha, len(some))
                found.append((Trial(own, error), K, exponent))
            best, K, exponent = min(found, key=lambda own: own[0].error)
            finer = exponent * 10.0 ** np.arange(2.0, -5.0, -0.5)
            _, alpha = self._least_error(some, K, finer, high_dimensional_losses(problem, some))
            return replace(best, kernel=replace(best.kernel, alpha=alpha))

        units = ["none", "standard"]
        found = side_by_side(search_unit, units, settings.n_jobs)
        best, unit = min(zip(found, units), key=lambda pair: pair[0].error)
        return best, unit == "standard"

    def _least_error(self, some: np.ndarray, K: np.ndarray, alphas: np.ndarray, losses: Losses) -> tuple[float, float]:
        """Return the lowest leave-one-out error and its penalty; there can be minima at both ends."""
        given, least = self._alpha, least_alpha(len(self._rows))
        found = [(np.inf, least)]
        for alpha in np.maximum(alphas, least) if given is None else [given]:
            with suppress(SingularKernelError):
                left_out = self._problem.left_out(some, K, alpha, precise_inverse_root)
                found.append((float(losses(left_out).mean()), float(alpha)))
        return min(found)

    def _learn(self, start: Trial, is_standard: bool) -> Trial:
        """Return a length scale per input, or the start if rows that no step has used do not clearly gain."""
        plan, n_rows = SearchPlan.of(self._run.limits.n_steps, len(self._rows)), len(self._rows)
        n_unseen, rng = min(SEARCH.unseen_rows, n_rows // 3), np.random.default_rng(self._run.settings.seed)
        seen, unseen = seen_and_unseen(self._rows, n_unseen, self._problem.related, rng)
        search = self._search_of(start.kernel.main.kernel, seen, is_standard)
        validate = _validator(self._problem, thinned(seen, SEARCH.unseen_rows), unseen, search)
        (_, before), enough = validate(start), negligible_error(self._problem)

        def may_step() -> bool:
            return not search.error < enough and self._may_step()

        for until, n_deviations in ((plan.n_steps // 2, 0.0), (plan.n_steps, SEARCH.least_gain)):
            if self._may_step():
                advance([search], plan, until, plan.late_rows, self._run, may_step)
            if not search.errors:
                return start
            found, losses = validate(search.found)
            if not is_significantly_less(losses, before, n_deviations):
                return start
        self._unseen = unseen
        self._history = histories_of([search])
        self._run.note("length scales", f"{found.kernel}, {found.n_steps} steps", found.error)
        return found

    def _search_of(self, kernel: Kernel, rows: np.ndarray, is_standard: bool) -> LengthScaleSearch:
        problem, settings = self._problem, self._run.settings
        own = problem.table[rows], problem.Y[rows], problem.relative_weights(rows), problem.categorical
        groups, n_jobs = rows_of(problem.related, rows), settings.n_jobs
        return LengthScaleSearch(
            kernel, *own, settings.seed, alpha=self._alpha, scaled=is_standard, groups=groups, n_jobs=n_jobs
        )

    def _may_step(self) -> bool:
        """Return True if time and callbacks allow more steps."""
        return self._run.may_continue(Phase.SEARCH)

    @property
    def _alpha(self) -> float | None:
        """Return the given penalty, if any."""
        return relative_alpha(self._problem, self._run.settings.alpha)

    def _kernels(self, found: Trial) -> ScaledKernels:
        is_perfect = found.error < self._negligible
        return ScaledKernels([found], True, is_perfect, self._history, self._unseen)


def _gamma(std: np.ndarray, is_standard: bool) -> np.ndarray:
    """Return gammas for a mean squared distance of 1, for standardized or for raw inputs."""
    if not is_standard:
        return np.full(std.shape, 1 / max(2 * float((std**2).sum()), np.finfo(float).tiny))
    live = std > 0
    return np.divide(1 / (2 * max(1, int(np.count_nonzero(live)))), std**2, out=np.zeros_like(std), where=live)


def _values(kernel: Kernel, products: np.ndarray, exponent: float) -> np.ndarray:
    """Return kernel values (n, n) from inner products of rows times the exponent."""
    squares = np.float32(exponent) * products.diagonal()
    return radial_values(kernel, np.float32(-2 * exponent) * products, squares, squares)


def _validator(
    problem: Problem, seen: np.ndarray, unseen: np.ndarray, search: LengthScaleSearch
) -> Callable[[Trial], tuple[Trial, np.ndarray]]:
    """Return a function that evaluates a trial on rows that no step has used, predicted by the other rows.

    It returns the trial with the best penalty (unless given) and its error, and the loss of each row.
    """
    plain, standardizer = without_scoring(problem), search.standardizer
    columns = standardizer.columns(problem.table[np.append(seen, unseen)])
    losses_of = high_dimensional_losses(plain, unseen)

    def validate(trial: Trial) -> tuple[Trial, np.ndarray]:
        (gamma,), known = trial.kernel.gammas(standardizer), trial.kernel.alpha
        K = search.matrix(columns, columns, gamma)
        found = [(known, np.zeros((len(unseen), problem.n_targets)))]
        factors = 10.0 ** np.arange(-1.0, 2.5, 0.5)  # rows used by steps select too small penalties
        for alpha in known * factors if search.learns_alpha else [known]:
            with suppress(SingularKernelError):
                found.append((float(alpha), problem.predicted(seen, K, alpha, precise_inverse_root)))
        validated = ((losses_of(predictions), alpha, predictions) for alpha, predictions in found)
        losses, alpha, predictions = min(validated, key=lambda each: each[0].mean())
        error = float(plain.losses(unseen)(predictions).mean())
        return replace(trial, kernel=replace(trial.kernel, alpha=alpha), error=error), losses

    return validate
