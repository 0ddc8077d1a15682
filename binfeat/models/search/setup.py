"""Setup of searches for length scales: kernels, scaled inputs, rows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from binfeat._common.arrays import quotients
from binfeat._common.validation import WIDEST, check_gamma
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.matrices import is_radial
from binfeat.length_scales.search import LengthScaleSearch
from binfeat.models.problem import Problem
from binfeat.models.search.plan import SearchPlan
from binfeat.models.settings import Settings

_STEP_ROWS = 1000  # for each step, at least, rows are scaled
_FIRST_ALPHA = 0.3  # of kernels with given gammas


@dataclass(frozen=True, eq=False)
class SearchSetup:
    """Makes searches for one problem."""

    problem: Problem
    settings: Settings
    plan: SearchPlan
    kinds: set[str]  # of kernels: "binning", "radial"

    @cached_property
    def rows(self) -> np.ndarray:
        """Numbers of the rows that searches see."""
        return self.problem.train[: self.plan.n_steps * max(_STEP_ROWS, self.plan.late_rows)]

    @property
    def kernels(self) -> list[Kernel]:
        """Return the kernel of the grids, then a radial kernel, if requested."""
        given = self.settings.kernel
        binning, radial = Laplacian() if given is None else given, given if is_radial(given) else Matern(1.5)
        return [kernel for kind, kernel in (("binning", binning), ("radial", radial)) if kind in self.kinds]

    def search(self, kernel: Kernel) -> LengthScaleSearch:
        problem, settings, rows = self.problem, self.settings, self.rows
        table = problem.table[rows], problem.Y[rows], problem.relative_weights(rows), problem.categorical
        alpha = problem.relative_alpha(settings.alpha)
        return LengthScaleSearch(kernel, *table, settings.seed, alpha=alpha, n_jobs=settings.n_jobs)

    def given(self) -> list[Trial]:
        """The kernels with gammas that are not learned."""
        parts = [KernelPart(kernel, self._given_gamma(kernel.power)) for kernel in self.kernels]
        return [Trial(KernelSum([part], _FIRST_ALPHA), np.nan) for part in parts]

    def _given_gamma(self, power: int) -> np.ndarray:
        """``1 / (n_inputs * std**power)``, or the user's gamma, for each input or for each column inside."""
        encoder, given = self.problem.encoder, self.settings.gamma
        if given is None:
            std = np.where(self.problem.categorical, 1.0, self.problem.table.std(axis=0))
            return quotients(1.0, std**power * std.size)
        if np.shape(given) == encoder.source.shape:  # as in `gamma_` of another model
            own = check_gamma(given, encoder.source.size)
        else:
            own = check_gamma(given, encoder.inputs.n_inputs)[encoder.source]
        self._check_size(own, power)
        return own

    def _check_size(self, gamma: np.ndarray, power: int) -> None:
        """Refuse a gamma beyond the range of float32 with a ValueError."""
        spread = np.where(self.problem.categorical, 1.0, self.problem.table.std(axis=0) ** power)
        large = np.flatnonzero(gamma / WIDEST * spread > 1)
        if large.size:
            raise ValueError(
                f"gamma must be at most {WIDEST} over the spread of an input; got {gamma[large[0]]:.6g} for input "
                f"{self.problem.encoder.source[large[0]]}. Decrease gamma, or use gamma='learn'."
            )
