"""Values of a function of kernel values for a few rows, in one compiled call."""

from collections.abc import Iterator

import numpy as np

from binfeat._engine import expansions
from binfeat._kernels.base import Kernel
from binfeat._machine.kernel_algebra.matrices import LaplacianMatrix, Linear, LinearMatrix, RadialMatrix
from binfeat._machine.kernel_algebra.sums import KernelSum
from binfeat.kernels import RBF, Laplacian, Matern

_KINDS: dict[type, int] = {
    Laplacian: expansions.LAPLACIAN,
    RBF: expansions.GAUSSIAN,
    Linear: expansions.LINEAR,
}
_MATERN = {1.5: expansions.MATERN_ONCE, 2.5: expansions.MATERN_TWICE}

Places = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # starts, rows, coef, intercepts of `add_expansions`


class Expansion:
    """What rows say of others with a sum of kernels, as `add_expansions` takes it.

    Beside the compiled loop a call takes some tens of microseconds: tiles are faster for many rows.
    """

    def __init__(self, kernel: KernelSum, categorical: np.ndarray, support: np.ndarray, places: Places) -> None:
        self._kernel, self._categorical, self._places = kernel, categorical, places
        self._kinds = np.array([_kind(matrix.kernel) for matrix in kernel.matrices])
        self._shares = np.asarray(kernel.shares, np.float64)
        self._jumps = np.array([gamma[categorical] for gamma in kernel.gammas], np.float32)
        sizes = [-(-len(part) // expansions.LANES) * expansions.LANES for part in self._parts(support[:, :1])]
        self._bounds = np.cumsum([0, *sizes])
        self._S, self._codes = self._sides(support)

    def __call__(self, X: np.ndarray, cells: np.ndarray, out: np.ndarray) -> None:
        """Add values for columns (n_inputs, n), whose cells in each tree are known, to an array (n, n_targets)."""
        kernel, (Q, codes) = (self._kinds, self._shares, self._bounds, self._jumps), self._sides(X)
        expansions.add_expansions(*kernel, Q, self._S, codes, self._codes, cells, *self._places, out)

    def _sides(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates, those of each kernel filled up with zeros, and categories of columns: a row each."""
        coordinates = np.zeros((X.shape[1], self._bounds[-1]), np.float32)
        for part, begin in zip(self._parts(X), self._bounds):
            coordinates[:, begin : begin + len(part)] = part.T
        return coordinates, np.ascontiguousarray(X[self._categorical].T)

    def _parts(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Coordinates of columns for each kernel."""
        for matrix, gamma in zip(self._kernel.matrices, self._kernel.gammas, strict=True):
            assert isinstance(matrix, LaplacianMatrix | RadialMatrix | LinearMatrix)  # which fitted machines have
            yield matrix.coordinates(X, gamma)


def _kind(kernel: Kernel) -> int:
    """What stands for a kernel in the engine."""
    return _MATERN[kernel.nu] if isinstance(kernel, Matern) else _KINDS[type(kernel)]
