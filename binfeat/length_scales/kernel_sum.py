"""The kernel that is learned, solved with, saved and explained: a weighted sum of kernels, and a penalty."""

from dataclasses import dataclass, replace

import numpy as np

from binfeat.kernels.base import Kernel
from binfeat.length_scales.matrices import DifferentiableMatrix, Frame, differentiable_matrix
from binfeat.length_scales.sums import KernelValues


@dataclass(frozen=True, eq=False)
class KernelPart:
    """One kernel of a sum, with an inverse length scale for each input."""

    kernel: Kernel
    base: np.ndarray  # (n_inputs,): gamma as the search for length scales found it
    share: float = 1.0
    linear_map: np.ndarray | None = None  # (n_inputs, rank), of scaled inputs, for a radial kernel
    factor: float = 1.0  # of all gammas, chosen after the search

    @property
    def gamma(self) -> np.ndarray:
        return self.factor * self.base


@dataclass(frozen=True, eq=False)
class KernelSum:
    """The kernel ``sum_p share_p k_p``, and the ridge penalty alpha.

    `n_rows` is the number of rows that alpha was chosen by; it is 0 if any other rows are more informative. An exact
    model with more rows chooses alpha again.
    """

    parts: list[KernelPart]
    alpha: float
    n_rows: int = 0

    @property
    def main(self) -> KernelPart:
        """The part with the largest share."""
        return max(self.parts, key=lambda part: part.share)

    def __str__(self) -> str:
        if len(self.parts) == 1:
            return repr(self.parts[0].kernel)
        return " + ".join(f"{part.share:.3g} {part.kernel!r}" for part in self.parts)

    def of_kernel(self, kernel: Kernel) -> "KernelSum":
        """Another kernel with the same length scales and penalty, instead of one part."""
        (part,) = self.parts
        return replace(self, parts=[replace(part, kernel=kernel)])

    def scaled(self, factor: float) -> "KernelSum":
        """The same kernels with all gammas times a factor."""
        return replace(self, parts=[replace(part, factor=part.factor * factor) for part in self.parts])

    def matrices(self, categorical: np.ndarray, n_jobs: int | None) -> list[DifferentiableMatrix]:
        """The kernel of each part, for rows as columns."""
        return [differentiable_matrix(part.kernel, categorical, n_jobs, part.linear_map) for part in self.parts]

    def gammas(self, frame: Frame) -> np.ndarray:
        """Gammas (n_parts, n_inputs) for columns in a frame."""
        return np.array([frame.gamma(part.kernel, part.gamma) for part in self.parts])

    def values(self, frame: Frame, categorical: np.ndarray, n_jobs: int | None) -> KernelValues:
        """The kernel as a function of columns in a frame."""
        shares = [part.share for part in self.parts]
        return KernelValues(self.matrices(categorical, n_jobs), shares, self.gammas(frame), n_jobs)


@dataclass(frozen=True, eq=False)
class Trial:
    """A kernel with the error that it is compared by, of leave-one-out predictions or held out."""

    kernel: KernelSum
    error: float
    n_steps: int = 0  # of the search that led to it
    losses: np.ndarray | None = None  # (n_rows,), of the rows that determine the error
    predictions: np.ndarray | None = None  # (n_rows, n_targets), for these rows
    K: np.ndarray | None = None  # float32: values for pairs of known rows, then of validation rows
