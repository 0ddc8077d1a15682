"""Exact kernel machines: all rows that memory and time allow, without random features."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from binfeat._engine.policy import one_blas_thread
from binfeat._machine.features.all_rows import AllRows
from binfeat._machine.fitted.exact import ExactFunction
from binfeat._machine.fitted.kernel_function import KernelFunction, Part, kernel_name, kernel_sum, main_part
from binfeat._machine.kernel_algebra.leave_one_out import LEAST_ALPHA
from binfeat._machine.kernel_algebra.solve import matrix_to_solve, solve_kernel
from binfeat._machine.machines.candidate import Candidate, Solution
from binfeat._machine.machines.exact_size import TUNING_ROWS, exact_seconds
from binfeat._machine.machines.exact_tuning import ExactTuning, Tuned
from binfeat._machine.machines.fine_tuning import ALL_ROWS, FineTuning
from binfeat._machine.machines.kernel_rows import KernelRows
from binfeat._machine.problem import Problem
from binfeat._machine.run import Run
from binfeat._machine.search.scaled_kernels import ScaledKernels

_SIGNS = np.array([-1.0, 1.0], np.float32)


class ExactMachine(Candidate):
    """Kernel ridge regression with the kernel matrix."""

    features: ClassVar[str] = "exact"

    def __init__(
        self, problem: Problem, run: Run, kernels: ScaledKernels, known: tuple[list[Part], float] | None = None
    ) -> None:
        self._problem, self._run, self._kernels, self._known = problem, run, kernels, known
        self._rows = KernelRows.of(problem, run, kernels.X)

    def tuned(self) -> Tuned:
        """Kernels and penalty, in cells where rows are many."""
        rows, seconds = self._rows, exact_seconds(*self._problem.table.shape)
        if len(rows.all) > TUNING_ROWS:
            # Between what rounding allows in a set of rows and in the solution.
            least_alpha = LEAST_ALPHA * float(np.sqrt(ALL_ROWS.set_rows * len(rows.all)))
            return FineTuning(rows, self._kernels, self._run, ALL_ROWS, least_alpha).of(self._known, seconds)
        tuning = ExactTuning(rows, self._run, self._kernels, seconds)
        return tuning.best() if self._known is None else tuning.of(*self._known)

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
        """Solve for all rows."""
        problem, settings, frame = self._problem, self._run.settings, self._rows.frame
        rows, parts, alpha = self._rows.all, best.parts, best.alpha
        X, Y, weights = self._rows.columns(rows), problem.Y[rows].astype(np.float32), problem.relative_weights(rows)
        signs = np.random.default_rng(settings.seed).choice(_SIGNS, (len(rows), 1))
        with one_blas_thread():  # the order of its sums depends on their number
            kernel = kernel_sum(parts, frame, problem.categorical, settings.n_jobs)
            K, error = matrix_to_solve(kernel, X, Y.shape[1]), np.sqrt(best.squared_error)
            solved, alpha = solve_kernel(K, alpha, weights, np.hstack([Y, signs]), error, settings.n_jobs)
        coef, probe = solved[:, :-1], solved[:, -1:]
        judged, predictions = self._left_out(best, alpha, coef, float((signs * probe).mean(dtype=np.float64)))
        main = main_part(parts)
        known = KernelFunction.arrays_of(parts, problem.categorical, X, frame, alpha, weights)
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

    def _left_out(self, best: Tuned, alpha: float, coef: np.ndarray, diagonal: float) -> tuple[np.ndarray, np.ndarray]:
        """Rows with leave-one-out predictions, and these: of the machine, unless it was tuned with all of its rows.

        What the `diagonal` of the inverse is on average, a probe with random signs tells (Hutchinson 1990).
        """
        if best.predictions is not None:
            return self._rows.all, best.predictions
        cells = self._rows.cells(self._rows.all)
        residuals = cells.left_out(best.parts, alpha, coef, diagonal, self._run.settings.n_jobs)
        told = np.isfinite(residuals).all(axis=1) & np.isin(cells.rows, self._rows.known)
        rows = cells.rows[told]
        return rows, self._problem.Y[rows] - residuals[told]
