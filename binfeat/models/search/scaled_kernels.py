"""What a search for scaling and length scales finds."""

from dataclasses import dataclass, field

import numpy as np

from binfeat.kernels.base import Kernel
from binfeat.models.kernel_algebra.matrices import is_radial
from binfeat.models.problem import Problem
from binfeat.models.search.length_scales import LengthScales, exponent_shares, mean_distances
from binfeat.models.table.scalers import InputScaler

History = tuple[np.ndarray, np.ndarray]  # errors (n_steps,) and gammas (n_steps, n_inputs)


@dataclass(frozen=True, eq=False)
class ScaledKernels:
    """Scaled inputs, and kernels with a gamma for each input, whose errors are of the same rows."""

    scaling: str  # "standard" or "ranks"; of older files also "none", "arcsinh", "quantile" or "warped"
    scaler: InputScaler
    X: np.ndarray  # the scaled table, (n_rows, n_inputs)
    scales: list[LengthScales]  # that of the grids first, if there is one, then a radial one
    learned: bool = False  # whether length scales are learned from this table
    is_perfect: bool = False  # whether a kernel leaves so little error that nothing is left to gain
    histories: list[tuple[Kernel, np.ndarray, np.ndarray]] = field(default_factory=list)  # of the steps to each kernel
    unseen: np.ndarray | None = None  # rows that are to judge all else, where steps learn others by heart

    @property
    def binning(self) -> LengthScales:
        """The kernel of the grids."""
        return self.scales[0]

    @property
    def has_radial(self) -> bool:
        return any(is_radial(own.kernel) for own in self.scales)

    @property
    def radial(self) -> LengthScales:
        """The radial kernel."""
        return next(own for own in self.scales if is_radial(own.kernel))

    @property
    def vary(self) -> bool:
        """Whether some input varies; else there is a constant, of whatever features."""
        return any(own.gamma.any() for own in self.scales)

    def history(self, scales: LengthScales) -> History:
        """Errors, and gammas, of the steps that led to a kernel; empty where nothing was searched."""
        known = ((errors, gammas) for kernel, errors, gammas in self.histories if kernel == scales.kernel)
        return next(known, (np.empty(0), np.empty((0, self.X.shape[1]))))

    def relevances(self, problem: Problem, gamma: np.ndarray, power: int, n_rows: int, seed: int) -> np.ndarray:
        """Share of each input in the mean exponent of a kernel, by so many rows at most."""
        rows, rng = problem.train[:n_rows], np.random.default_rng(seed)
        return exponent_shares(gamma, mean_distances(self.X[rows], problem.categorical, rng, power))
