"""Functions of the values of a kernel, or a sum of kernels, with rows of `fit`."""

from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from binfeat._common.array_record import ArrayRecord
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelSum
from binfeat.length_scales.matrices import Frame, Linear, kernel_matrix, linear_squares
from binfeat.length_scales.sums import KernelValues
from binfeat.models.fitted.score_function import ScoreFunction

# Codes of kernels in files; Matern kernels are stored as nu.
_NUS: dict[type, float] = {Laplacian: 0.0, RBF: np.inf, Linear: -1.0}


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelFunction(ArrayRecord, ScoreFunction):
    """A linear function of a kernel's values with the rows of `fit`, of one kernel or a sum."""

    nus: np.ndarray  # (n_kernels,): nu of Matern kernels, or the code of another kernel
    shares: np.ndarray  # (n_kernels,)
    gammas: np.ndarray  # (n_kernels, n_inputs)
    categorical: np.ndarray  # (n_inputs,), bool
    support: np.ndarray  # (n_inputs, n_rows), float32: rows about the center, in units, to which the gammas belong
    center: np.ndarray  # (n_inputs,)
    unit: np.ndarray  # (n_inputs,)
    alpha: np.ndarray  # (): penalty that the coefficients took, for weights of mean 1
    weights: np.ndarray  # (n_rows,), of mean 1
    coef: np.ndarray  # (n_targets, n_coefficients)
    rotation: np.ndarray = field(default_factory=partial(np.empty, (0, 0)))  # (n_inputs, rank), of a radial kernel

    @staticmethod
    def arrays_of(
        kernel: KernelSum,
        categorical: np.ndarray,
        support: np.ndarray,
        frame: Frame,
        weights: np.ndarray | None,
    ) -> dict[str, np.ndarray]:
        """All but the coefficients."""
        kernels = [part.kernel for part in kernel.parts]
        nus = [own.nu if isinstance(own, Matern) else _NUS[type(own)] for own in kernels]
        maps = [part.linear_map for part in kernel.parts if part.linear_map is not None]
        return {
            "nus": np.array(nus),
            "shares": np.array([part.share for part in kernel.parts]),
            "gammas": kernel.gammas(frame),
            "categorical": categorical,
            "support": support,
            "center": frame.center,
            "unit": frame.unit,
            "alpha": np.array(float(kernel.alpha)),
            "weights": np.ones(support.shape[1]) if weights is None else weights,
            **({"rotation": maps[0]} if maps else {}),
        }

    @property
    def frame(self) -> Frame:
        return Frame(self.center, self.unit)

    @property
    def linear_map(self) -> np.ndarray | None:
        """Linear map of the inputs of a radial kernel."""
        return self.rotation if self.rotation.size else None

    @cached_property
    def kernels(self) -> list[Kernel | Linear]:
        kinds = {nu: kind for kind, nu in _NUS.items()}
        return [kinds[nu]() if nu in kinds else Matern(nu) for nu in self.nus]

    @property
    def n_rows(self) -> int:
        """Rows of `fit` that it is made of."""
        return self.support.shape[1]

    @property
    def scales(self) -> np.ndarray:
        """Return the scale factors of input differences in the kernel with the largest share."""
        return self.gammas[int(np.argmax(self.shares))] ** (1 / self.main_power)

    @property
    def main_power(self) -> int:
        """The power of distances that the kernel with most of the sum multiplies by its gamma."""
        return self.kernels[int(np.argmax(self.shares))].power

    def kernel(self, n_jobs: int | None = None) -> KernelValues:
        """The whole kernel, of columns."""
        matrices = [kernel_matrix(kernel, self.categorical, n_jobs, self.linear_map) for kernel in self.kernels]
        return KernelValues(matrices, self.shares, self.gammas, n_jobs)

    def kernel_diagonal(self, A: np.ndarray) -> np.ndarray:
        """Values of the kernel for each of the rows A, (n_inputs, n), with itself."""
        total = np.zeros(A.shape[1])
        for kernel, share, gamma in zip(self.kernels, self.shares, self.gammas):
            total += share * (linear_squares(A, gamma, self.categorical) if isinstance(kernel, Linear) else 1.0)
        return total
