"""The kernel of grids that skip inputs: `Skip`."""

import numbers
from dataclasses import dataclass

import numpy as np

from binfeat.kernels.base import PitchKernel, ProductKernel
from binfeat.kernels.lookup import binning_kernel


@dataclass(frozen=True)
class Skip(ProductKernel):
    """Kernel of grids that skip inputs at random, ``prod_j (share + (1 - share) k(gamma_j |x_j - y_j|))``.

    Every grid skips each numeric input with probability `share`, which does not apply to categorical inputs: different
    categories multiply the kernel by ``exp(-gamma_j)``, as without `Skip`. Use it for targets that are sums of
    functions of few inputs, because the expanded product is a sum of kernels of subsets of the inputs. The pitch is
    infinite with probability `share`, and otherwise has the pitch law of k.

    Parameters
    ----------
    kernel : object of this module that has a pitch law
        Kernel with the profile k: `Laplacian`, `Hat`, `GammaPitch` or `Product`.
    share : float
        Probability that a grid skips an input, at least 0 and below 1.

    Raises
    ------
    ValueError
        If `kernel` has no pitch law or `share` is out of range.
    """

    __module__ = "binfeat.kernels"  # as saved files name it

    kernel: PitchKernel
    share: float

    def __post_init__(self) -> None:
        binning_kernel(self.kernel)
        if isinstance(self.kernel, str) or not (isinstance(self.share, numbers.Real) and 0 <= self.share < 1):
            raise ValueError(
                f"Skip requires a kernel object and a share from 0 to below 1, got {self.kernel!r} and {self.share!r}."
            )

    def profile(self, t: np.ndarray) -> np.ndarray:
        return self.share + (1.0 - self.share) * self.kernel.profile(t)

    def pitch_quantile(self, u: np.ndarray) -> np.ndarray:
        below = np.asarray(u) / (1.0 - self.share)
        taken = below < 1.0
        return np.where(taken, self.kernel.pitch_quantile(np.where(taken, below, 0.5)), np.inf)
