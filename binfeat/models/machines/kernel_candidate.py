"""Base of models of kernel values: optional kernels, rows, and messages about the solution."""

from dataclasses import replace
from typing import Any

from binfeat.length_scales.kernel_sum import KernelSum, Trial
from binfeat.models.machines.candidate import Candidate, Solution
from binfeat.models.machines.kernel_rows import KernelRows
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.scaled_kernels import ScaledKernels


class KernelCandidate(Candidate):
    """A model of kernel values, with optional kernels and penalty."""

    def __init__(self, problem: Problem, run: Run, kernels: ScaledKernels, known: Trial | None = None) -> None:
        self._problem, self._run, self._kernels, self._known = problem, run, kernels, known
        self._rows = KernelRows.of(problem, run, kernels.X, unseen=kernels.unseen)

    def _solution_with(self, kernel: KernelSum, mean_weight: float, **others: Any) -> Solution:
        """A solution with this kernel, whose penalty is for weights of mean 1, and its other fields."""
        given = self._run.settings.alpha
        alpha = kernel.alpha * mean_weight if given is None else given
        return Solution(features=self.features, kernel=replace(kernel, alpha=alpha), **others)

    def _note_hyperparameters(self, solution: Solution) -> None:
        self._run.note("kernel", solution.kernel, solution.error)
        self._run.note("penalty", f"{solution.kernel.alpha:.3g}", solution.error)
