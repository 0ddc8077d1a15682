"""Result of a search for scaling and length scales."""

from dataclasses import dataclass, field

import numpy as np

from binfeat.kernels.base import Kernel
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.matrices import is_radial
from binfeat.length_scales.search import exponent_shares, mean_distances
from binfeat.models.problem import Problem
from binfeat.models.table.scalers import InputScaler

History = tuple[np.ndarray, np.ndarray]  # errors (n_steps,) and gammas (n_steps, n_inputs)


@dataclass(frozen=True, eq=False)
class ScaledKernels:
    """Scaled inputs, and kernels with one gamma per input, with errors on the same rows."""

    scaling: str  # "standard" or "ranks"; of older files also "none", "arcsinh", "quantile" or "warped"
    scaler: InputScaler
    X: np.ndarray  # the scaled table, (n_rows, n_inputs)
    found: list[Trial]  # the kernel of the grids first, if there is one, then a radial one
    learned: bool = False  # whether length scales are learned from this table
    is_perfect: bool = False  # whether a kernel leaves so little error that nothing is left to gain
    histories: list[tuple[Kernel, np.ndarray, np.ndarray]] = field(default_factory=list)  # of the steps to each kernel
    unseen: np.ndarray | None = None  # rows that are to judge all else, where steps learn others by heart

    @property
    def binning(self) -> KernelSum:
        """The kernel of the grids."""
        return self.found[0].kernel

    @property
    def has_radial(self) -> bool:
        return any(is_radial(own.kernel.main.kernel) for own in self.found)

    @property
    def radial(self) -> KernelSum:
        """The radial kernel."""
        return next(own.kernel for own in self.found if is_radial(own.kernel.main.kernel))

    @property
    def vary(self) -> bool:
        """Return True if an input varies; otherwise the model is constant."""
        return any(own.kernel.main.gamma.any() for own in self.found)

    def history(self, kernel: Kernel) -> History:
        """Errors, and gammas, of the steps that led to a kernel; empty if nothing was searched.

        Grids may have another kernel than the search, with its length scales.
        """
        own = [(errors, gammas) for known, errors, gammas in self.histories if known == kernel]
        if not is_radial(kernel):
            own += [(errors, gammas) for known, errors, gammas in self.histories if not is_radial(known)]
        return own[0] if own else (np.empty(0), np.empty((0, self.X.shape[1])))

    def relevances(self, problem: Problem, part: KernelPart, n_rows: int, seed: int) -> np.ndarray:
        """Return the share of each input in the mean exponent of a kernel, on a limited number of rows."""
        rows, rng = problem.train[:n_rows], np.random.default_rng(seed)
        return exponent_shares(part.gamma, mean_distances(self.X[rows], problem.categorical, rng, part.kernel.power))
