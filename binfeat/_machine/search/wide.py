"""Length scales of tables with so many inputs that the search for one of each may cost more than the machine."""

from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np

from binfeat._common.held_out import surely_less
from binfeat._common.subsets import evenly_spaced, thinned
from binfeat._engine.policy import one_blas_thread, side_by_side
from binfeat._kernels.base import Kernel
from binfeat._machine.kernel_algebra.leave_one_out import (
    SingularKernelError,
    Weights,
    least_alpha,
    precise_inverse_root,
    weighted_squares,
)
from binfeat._machine.kernel_algebra.matrices import radial_values
from binfeat._machine.problem import Problem
from binfeat._machine.run import Phase, Run
from binfeat._machine.search.length_scales import MOST_INPUTS, LengthScales, LengthScaleSearch
from binfeat._machine.search.plan import CHUNK, SearchPlan
from binfeat._machine.search.scaled_kernels import ScaledKernels
from binfeat._machine.settings import Settings
from binfeat._machine.table.scalers import NoScaler
from binfeat.kernels import RBF, Matern

_KERNELS = Matern(1.5), RBF()
_ROWS, _STD_ROWS = 500, 10_000  # that the one length scale is chosen by, and standard deviations
_UNSEEN = 1000  # rows that no step sees, a third of all at most
_LOOK, _LEAST_GAIN = 0.0, 2.0  # of steps, half of them and all, in paired standard errors
_EXPONENTS = 4.0 ** np.arange(-2, 2)  # mean squared distances in kernels: with the least they are nearly linear
_PENALTIES = 10.0 ** np.arange(0.5, -4.0, -0.5)  # times these


def is_wide(problem: Problem, settings: Settings) -> bool:
    """Whether inputs are numbers, more than a search affords that has all kernels and scalings to choose from."""
    is_open = settings.kernel is None and settings.learns_gamma and settings.scaling in (None, "standard", "none")
    return is_open and problem.table.shape[1] > MOST_INPUTS and not problem.categorical.any()


class WideSearch:
    """One length scale for all inputs, of the table as it is or of standardised inputs; then one for each, in time.

    The first takes a product of matrices for each of the two, so that there is a machine like ridge regression of the
    same rows before anything else. Those for each input are of a radial kernel, whose gradients are products of
    matrices, too, and are taken where rows that no step has seen are left out with surely less error: the rows of the
    steps would tell little, as they are fewer than the inputs.
    """

    n_stages = 1

    def __init__(self, problem: Problem, run: Run) -> None:
        weights = problem.weights_of(problem.train)
        self._problem, self._run = problem, run
        self._rows = problem.train if weights is None else problem.train[weights[:, 0] > 0]
        self._found: LengthScales | None = None
        self._history: list[tuple[Kernel, np.ndarray, np.ndarray]] = []

    def run(self) -> ScaledKernels:
        """The kernel of the table as it is."""
        run = self._run
        with one_blas_thread(), run.stage("length scales"):
            self._found, is_standard = self._of_all()
            words = f"{self._found.kernel!r}, one for all{' standardised' * is_standard} inputs"
            run.note("length scales", words, self._found.error)
            if run.step() and self._may_step():
                self._found = self._learn(self._found, is_standard)
        return self._kernels(self._found)

    def settled(self) -> ScaledKernels | None:
        """After Ctrl-C: what was found so far, or None if that is nothing."""
        return None if self._found is None else self._kernels(self._found)

    def _of_all(self) -> tuple[LengthScales, bool]:
        """The best length scale for all inputs, and whether it is that of standardised ones."""
        problem, settings = self._problem, self._run.settings
        some = thinned(self._rows, _ROWS)
        std = problem.table[thinned(self._rows, _STD_ROWS)].std(axis=0)
        X, Y, weights = problem.table[some], problem.Y[some].astype(np.float32), problem.relative_weights(some)
        least = least_alpha(len(self._rows))

        def look(unit: str) -> LengthScales:
            gamma = _gamma(std, unit == "standard")
            scaled = ((X - X.mean(axis=0)) * np.sqrt(gamma)).astype(np.float32)
            products, found = scaled @ scaled.T, list[LengthScales]()
            for kernel, exponent in product(_KERNELS, _EXPONENTS):
                alphas = np.maximum(exponent * _PENALTIES, least) if self._alpha is None else np.array([self._alpha])
                error, own = _least_error(_values(kernel, products, exponent), alphas, weights, Y)
                found.append(LengthScales(kernel, exponent * gamma, own, error, len(some), 0))
            return min(found, key=lambda scales: scales.error)

        units = ["none", "standard"] if settings.scaling is None else [settings.scaling]
        found = side_by_side(look, units, settings.n_jobs)
        best, unit = min(zip(found, units), key=lambda pair: pair[0].error)
        return best, unit == "standard"

    def _learn(self, start: LengthScales, is_standard: bool) -> LengthScales:
        """A length scale for each input, or the start, if rows that no step has seen do not surely gain by it."""
        plan, n_rows = SearchPlan.of(self._run.limits.n_steps, len(self._rows)), len(self._rows)
        unseen = evenly_spaced(n_rows, min(_UNSEEN, n_rows // 3))
        search = self._search_of(start.kernel, np.delete(self._rows, unseen), is_standard)
        judge = self._search_of(start.kernel, self._rows[unseen], is_standard)
        X, Y, weights = judge.rows.part(np.arange(len(unseen)))

        def errors(gamma: np.ndarray, alpha: float) -> np.ndarray:
            K = search.matrix(X, X, judge.rows.frame.gamma(start.kernel, gamma))
            return weighted_squares(K, alpha, weights, Y, precise_inverse_root).mean(axis=1)

        before = errors(start.gamma, start.alpha)
        for until, n_deviations in ((plan.n_steps // 2, _LOOK), (plan.n_steps, _LEAST_GAIN)):
            self._step(search, plan, until)
            found = replace(search.scales, error=np.inf)
            if not search.errors or not surely_less(errors(found.gamma, found.alpha), before, n_deviations):
                return start
        self._history = [(found.kernel, np.array(search.errors), np.array(search.gammas))]
        found = replace(found, error=float(errors(found.gamma, found.alpha).mean()))
        self._run.note("length scales", f"{found.kernel!r}, {found.n_steps} steps", found.error)
        return found

    def _step(self, search: LengthScaleSearch, plan: SearchPlan, last: int) -> None:
        """Steps of the search up to the last one, while time and callbacks allow more."""
        while search.n_done < last and self._may_step():
            until = min(search.n_done + CHUNK, last)
            search.run(plan.n_steps, plan.late_rows, until, self._run.gone(Phase.SEARCH))
            self._run.step()

    def _search_of(self, kernel: Kernel, rows: np.ndarray, is_standard: bool) -> LengthScaleSearch:
        problem, settings = self._problem, self._run.settings
        own = problem.table[rows], problem.Y[rows], problem.relative_weights(rows), problem.categorical
        return LengthScaleSearch(
            kernel, *own, settings.seed, alpha=self._alpha, scaled=is_standard, n_jobs=settings.n_jobs
        )

    def _may_step(self) -> bool:
        """Whether time and callbacks allow more steps."""
        return self._run.may_continue(Phase.SEARCH)

    @property
    def _alpha(self) -> float | None:
        """The penalty, if it is given."""
        given = self._run.settings.alpha
        return None if given is None else given / self._problem.mean_weight

    def _kernels(self, scales: LengthScales) -> ScaledKernels:
        scaling = self._run.settings.scaling or "standard"
        is_perfect = scales.error < self._problem.negligible
        return ScaledKernels(scaling, NoScaler(), self._problem.table, [scales], True, is_perfect, self._history)


def _gamma(std: np.ndarray, is_standard: bool) -> np.ndarray:
    """Gammas by which the mean squared distance of two rows is 1, of standardised inputs or of all as they are."""
    if not is_standard:
        return np.full(std.shape, 1 / max(2 * float((std**2).sum()), np.finfo(float).tiny))
    live = std > 0
    return np.divide(1 / (2 * max(1, int(np.count_nonzero(live)))), std**2, out=np.zeros_like(std), where=live)


def _values(kernel: Kernel, products: np.ndarray, exponent: float) -> np.ndarray:
    """Values of a kernel, (n, n), by the rows' inner products times the exponent."""
    squares = np.float32(exponent) * products.diagonal()
    return radial_values(kernel, np.float32(-2 * exponent) * products, squares, squares)


def _least_error(K: np.ndarray, alphas: np.ndarray, weights: Weights, Y: np.ndarray) -> tuple[float, float]:
    """The error of rows left out, and the penalty that it is least with: the first of falling ones before it rises."""
    best, found = np.inf, float(alphas[0])
    for alpha in alphas:
        error = np.inf
        with suppress(SingularKernelError):
            error = float(weighted_squares(K, alpha, weights, Y, precise_inverse_root).mean())
        if error >= best:
            break
        best, found = error, float(alpha)
    return best, found
