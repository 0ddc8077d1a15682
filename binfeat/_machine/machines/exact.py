"""Exact kernel machines: all rows that memory and time allow, without random features."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from binfeat._engine.policy import one_blas_thread
from binfeat._machine.features.all_rows import AllRows
from binfeat._machine.fitted.exact import ExactFunction
from binfeat._machine.fitted.kernel_function import KernelFunction, Part, kernel_name, main_part
from binfeat._machine.kernel_algebra.solve import matrix_to_solve, solve_kernel
from binfeat._machine.machines.candidate import Candidate, Solution
from binfeat._machine.machines.cell_rows import CellRows
from binfeat._machine.machines.exact_size import exact_seconds
from binfeat._machine.machines.exact_tuning import LEAST_ALPHA, ExactTuning, Tuned
from binfeat._machine.problem import Problem
from binfeat._machine.run import Run
from binfeat._machine.search.scaled_kernels import ScaledKernels

_SIGNS = np.array([-1.0, 1.0], np.float32)
_MOST_GROWTH, _DAMPING = 0.5, 0.5  # powers of the number of rows, by which factor and penalty are continued


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
        X, Y, weights = tuning.columns(rows), problem.Y[rows].astype(np.float32), problem.relative_weights(rows)
        signs = np.random.default_rng(settings.seed).choice(_SIGNS, (len(rows), 1))
        with one_blas_thread():  # the order of its sums depends on their number
            K = matrix_to_solve(tuning.kernel(parts), X, Y.shape[1])
            error = np.sqrt(tuning.squared_error(best))
            solved, alpha = solve_kernel(K, alpha, weights, np.hstack([Y, signs]), error, settings.n_jobs)
        coef, probe = solved[:, :-1], solved[:, -1:]
        judged, predictions = self._left_out(best, parts, alpha, coef, float((signs * probe).mean(dtype=np.float64)))
        main = main_part(parts)
        known = KernelFunction.arrays_of(parts, problem.categorical, X, tuning.frame, alpha, weights)
        return Solution(
            features=self.features,
            kernel=kernel_name(parts),
            alpha=alpha * problem.mean_weight if settings.alpha is None else settings.alpha,
            function=ExactFunction(**known, coef=np.array(coef.T, np.float64, order="C")),
            intercept=coef.sum(axis=0, dtype=np.float64),
            scales=main.scales,
            gamma=main.gamma,
            power=main.scales.kernel.power,
            rows=judged,
            predictions=predictions,
            curve=[(0, float(problem.losses(judged)(predictions).mean()))],
            status="converged",
        )

    def _left_out(
        self, best: Tuned, parts: list[Part], alpha: float, coef: np.ndarray, diagonal: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with leave-one-out predictions, and these: of the machine, unless it was tuned with all of its rows.

        What the `diagonal` of the inverse is on average, a probe with random signs tells (Hutchinson 1990).
        """
        tuning, problem = self._tuning, self._problem
        if len(tuning.rows) == len(tuning.all_rows):
            return tuning.rows, best.predictions
        known = CellRows(problem, self._kernels.X, tuning.all_rows, tuning.frame)
        residuals = known.left_out(parts, alpha, coef, diagonal, self._run.settings.n_jobs)
        told = np.isfinite(residuals).all(axis=1) & np.isin(tuning.all_rows, tuning.known)
        rows = tuning.all_rows[told]
        return rows, problem.Y[rows] - residuals[told]

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
            before = np.exp(sum(part.share * np.log(part.scales.alpha) for part in parts))
            power = np.clip(np.log(alpha / before) / growth, -1.0, 0.0)
            alpha = max(min(alpha, LEAST_ALPHA), alpha * np.exp(_DAMPING * power * further))
        return parts, alpha
