"""What machines of kernel values have in common: kernels that may be known, rows, and words about their solution."""

from typing import Any

from binfeat.models.fitted.kernel_function import kernel_name, main_part
from binfeat.models.machines.candidate import Candidate, Solution
from binfeat.models.machines.descent import Hyperparameters
from binfeat.models.machines.kernel_rows import KernelRows
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.scaled_kernels import ScaledKernels


class KernelCandidate(Candidate):
    """A machine of kernel values, which may be given its kernels and penalty."""

    def __init__(
        self, problem: Problem, run: Run, kernels: ScaledKernels, known: Hyperparameters | None = None
    ) -> None:
        self._problem, self._run, self._kernels, self._known = problem, run, kernels, known
        self._rows = KernelRows.of(problem, run, kernels.X, unseen=kernels.unseen)

    def _solution_with(self, params: Hyperparameters, mean_weight: float, **others: Any) -> Solution:
        """A solution with these hyperparameters, whose penalty is for weights of mean 1, and its other fields."""
        main, given = main_part(params.parts), self._run.settings.alpha
        return Solution(
            features=self.features,
            kernel=kernel_name(params.parts),
            alpha=params.alpha * mean_weight if given is None else given,
            scales=main.scales,
            gamma=main.gamma,
            power=main.scales.kernel.power,
            **others,
        )

    def _note_hyperparameters(self, solution: Solution) -> None:
        self._run.note("kernel", solution.kernel, solution.error)
        self._run.note("penalty", f"{solution.alpha:.3g}", solution.error)
