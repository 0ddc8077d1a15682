"""Exact kernel machines: all rows that memory and time allow, without random features."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from binfeat._engine.policy import threads_to_factorise
from binfeat._machine.features.all_rows import AllRows
from binfeat._machine.fitted.exact import ExactFunction
from binfeat._machine.fitted.kernel_function import KernelFunction, Part, kernel_name, main_part
from binfeat._machine.kernel_algebra.bounded import minimise, working_squares
from binfeat._machine.kernel_algebra.solve import factored, matrix_to_solve, solve_kernel
from binfeat._machine.machines.candidate import Candidate, Solution, warn_of_steps
from binfeat._machine.machines.cell_rows import CellRows
from binfeat._machine.machines.exact_size import exact_seconds
from binfeat._machine.machines.exact_tuning import LEAST_ALPHA, ExactTuning, Tuned
from binfeat._machine.problem import MarginProblem, Problem
from binfeat._machine.run import Run
from binfeat._machine.search.scaled_kernels import ScaledKernels

_SIGNS = np.array([-1.0, 1.0], np.float32)
_MOST_LEVERAGE = 0.99  # of a row on its own prediction: what it says alone
_MOST_GROWTH, _DAMPING = 0.5, 0.5  # powers of the number of rows, by which factor and penalty are continued


@dataclass(frozen=True, eq=False)
class _Solved:
    """For the rows of a machine: coefficients, what it makes of them, and of each of them without it."""

    coef: np.ndarray  # (n_rows, n_targets)
    alpha: float
    scores: np.ndarray
    left_out: np.ndarray


class ExactMachine(Candidate):
    """Kernel ridge regression with the kernel matrix."""

    features: ClassVar[str] = "exact"

    def __init__(
        self, problem: Problem, run: Run, kernels: ScaledKernels, known: tuple[list[Part], float] | None = None
    ) -> None:
        self._problem, self._run, self._kernels, self._known = problem, run, kernels, known
        self._tuning = ExactTuning(problem, run, kernels, exact_seconds(*problem.table.shape))

    def tuned(self) -> Tuned:
        """Kernels and penalty."""
        return self._tuning.best() if self._known is None else self._tuning.of(*self._known)

    def solve(self, rows: AllRows, run: Run) -> Solution:
        with run.stage("kernel and penalty"):
            best = self.tuned()
        with run.stage("solution"):
            solution = self.solution(best)
            solution = replace(solution, status="converged" if run.step() else "stopped")
        run.note("features", "exact", solution.error)
        run.note("kernel", solution.kernel, solution.error)
        run.note("penalty", f"{solution.alpha:.3g}", solution.error)
        return solution

    def solution(self, best: Tuned) -> Solution:
        """Solve for all rows, with more or less of what fewer of them were best with."""
        problem, settings, tuning = self._problem, self._run.settings, self._tuning
        rows = tuning.all_rows
        parts, alpha = self._continued(best, len(rows))
        X, weights = tuning.columns(rows), problem.relative_weights(rows)
        with threads_to_factorise(len(rows)):
            if isinstance(problem, MarginProblem):
                solved = self._by_loss(problem, parts, alpha, X)
            else:
                solved = self._by_squares(best, parts, alpha, X)
        if len(tuning.rows) == len(rows):
            judged, predictions = tuning.rows, best.predictions
        else:
            told = np.isfinite(solved.left_out).all(axis=1) & np.isin(rows, tuning.known)
            judged, predictions = rows[told], solved.left_out[told]
        main = main_part(parts)
        known = KernelFunction.arrays_of(parts, problem.categorical, X, tuning.frame, solved.alpha, weights)
        return Solution(
            features=self.features,
            kernel=kernel_name(parts),
            alpha=solved.alpha * problem.mean_weight if settings.alpha is None else settings.alpha,
            function=ExactFunction(**known, coef=np.array(solved.coef.T, np.float64, order="C")),
            intercept=solved.coef.sum(axis=0, dtype=np.float64),
            scales=main.scales,
            gamma=main.gamma,
            power=main.scales.kernel.power,
            rows=judged,
            predictions=predictions,
            curve=[(0, float(problem.losses(judged)(predictions).mean()))],
            status="converged",
            known=(rows, solved.scores),
        )

    def _by_squares(self, best: Tuned, parts: list[Part], alpha: float, X: np.ndarray) -> _Solved:
        tuning, problem = self._tuning, self._problem
        rows = tuning.all_rows
        Y, weights = problem.Y[rows], problem.relative_weights(rows)
        signs = np.random.default_rng(self._run.settings.seed).choice(_SIGNS, (len(rows), 1))
        K = matrix_to_solve(tuning.kernel(parts), X, Y.shape[1])
        error = np.sqrt(tuning.squared_error(best))
        both, alpha = solve_kernel(K, alpha, weights, np.hstack([Y.astype(np.float32), signs]), error)
        coef, probe = both[:, :-1], both[:, -1:]
        v = 1.0 if weights is None else weights[:, np.newaxis]
        residuals = np.zeros(Y.shape)
        if len(tuning.rows) < len(rows):
            diagonal, is_exact = self._inverse_diagonal(parts, alpha, weights)
            if not is_exact:
                diagonal *= (signs * probe).mean(dtype=np.float64) / np.nanmean(diagonal)
            residuals = coef / diagonal
        return _Solved(coef, alpha, Y - alpha / v * coef, Y - residuals)

    def _by_loss(self, problem: MarginProblem, parts: list[Part], alpha: float, X: np.ndarray) -> _Solved:
        tuning, loss = self._tuning, problem.loss
        rows, kernel = tuning.all_rows, tuning.kernel(parts)
        Y, weights = problem.Y[rows], problem.relative_weights(rows)
        found, alpha = minimise(loss, lambda alpha, own: factored(kernel(X, X), alpha, own), alpha, weights, Y)
        warn_of_steps(found.gain, self._run.settings.loss)
        left_out = found.scores
        if len(tuning.rows) < len(rows):
            steps, v = working_squares(loss, Y, found.scores)
            v = v if weights is None else v * weights[:, np.newaxis]
            leverages = np.hstack([self._leverages(parts, alpha, own) for own in v.T])
            left_out = found.scores - steps * leverages / (1 - leverages)
        return _Solved(found.coef, alpha, found.scores, left_out)

    def _leverages(self, parts: list[Part], alpha: float, weights: np.ndarray) -> np.ndarray:
        """What each row does to its own prediction, (n_rows, 1)."""
        diagonal, _ = self._inverse_diagonal(parts, alpha, weights)
        return np.clip(1 - alpha * diagonal / weights[:, np.newaxis], 0.0, _MOST_LEVERAGE)

    def _inverse_diagonal(self, parts: list[Part], alpha: float, weights: np.ndarray | None) -> tuple[np.ndarray, bool]:
        """Diagonal of the inverse of all rows, (n_rows, 1), by their weights, and whether it is exact."""
        tuning, of_table = self._tuning, None
        if weights is not None:
            of_table = np.ones(len(self._problem.table))
            of_table[tuning.all_rows] = weights
        cells = CellRows(self._problem, self._kernels.X, tuning.all_rows, tuning.frame)
        return cells.inverse_diagonal(parts, alpha, of_table, self._run.settings.n_jobs)

    def _continued(self, tuned: Tuned, n_rows: int) -> tuple[list[Part], float]:
        """Parts and penalty for more rows than they were found with, continued as they went from fewer."""
        some, few = len(self._tuning.rows), max(1, tuned.parts[0].scales.n_rows)
        if n_rows <= some or some <= few:
            return tuned.parts, tuned.alpha
        growth, further = np.log(some / few), np.log(n_rows / some)
        parts = []
        for part in tuned.parts:
            power = np.clip(np.log(part.factor) / growth, 0.0, _MOST_GROWTH)
            parts.append(replace(part, factor=part.factor * np.exp(power * further)))
        alpha = tuned.alpha
        if self._run.settings.alpha is None:
            before = tuned.ratio * np.exp(sum(part.share * np.log(part.scales.alpha) for part in parts))
            power = np.clip(np.log(alpha / before) / growth, -1.0, 0.0)
            alpha = max(min(alpha, LEAST_ALPHA), alpha * np.exp(_DAMPING * power * further))
        return parts, alpha
