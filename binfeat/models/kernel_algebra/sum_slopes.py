"""Derivatives of a sum of kernels by the logarithms of all its length scales and shares."""

from collections.abc import Sequence

import numpy as np

from binfeat._common.arrays import Scratch
from binfeat.length_scales.matrices import DifferentiableMatrix, MappedRadialMatrix, Slopes, square


class SumWithSlopes:
    """The kernel ``sum_p share_p k_p`` as `leave_one_out` takes one.

    Its parameters are the gammas of all kernels, (n_kernels * n_inputs,), and then the shares. Of a radial kernel with
    a linear map, gammas are those of the inputs before the map.
    """

    def __init__(self, matrices: Sequence[DifferentiableMatrix]) -> None:
        self._matrices = matrices
        self._scratches = [Scratch() for _ in matrices]
        self._values: list[np.ndarray] = []  # of each kernel, for the last rows

    @property
    def spreads(self) -> np.ndarray:
        """Return the mean exponent of each kernel between the last rows."""
        return np.array([float(K.diagonal().mean() - K.mean(dtype=np.float64)) for K in self._values])

    def with_slopes(self, X: np.ndarray, gamma: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, Slopes]:
        """Kernel matrix of X, and a function of M: ``sum_ab M_ab dK_ab / d log`` of every parameter."""
        total, own_share = (square(scratch, name, X.shape[1]) for name in ("sum", "share"))
        total[...] = 0.0
        gammas, shares = self._parted(gamma)
        values, slopes = list[np.ndarray](), list[Slopes]()
        for matrix, share, own, memory in zip(self._matrices, shares, gammas, self._scratches, strict=True):
            K, slopes_of = matrix.with_slopes(X, own, memory)
            total += np.multiply(K, np.float32(share), out=own_share)
            values.append(K)
            slopes.append(slopes_of)
        self._values = values

        def all_slopes(M: np.ndarray) -> np.ndarray:
            by_gamma, by_share = np.zeros(gammas.shape), np.zeros(len(shares))
            for k, (matrix, share, slopes_of) in enumerate(zip(self._matrices, shares, slopes, strict=True)):
                by_share[k] = share * float(np.vdot(M, values[k]))
                np.copyto(own_share, M)
                by_gamma[k] = share * _by_gamma(matrix, slopes_of(own_share))
            return np.append(by_gamma.ravel(), by_share)

        return total, all_slopes

    def _parted(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gammas (n_kernels, n_inputs), and shares."""
        n_kernels = len(self._matrices)
        return parameters[:-n_kernels].reshape(n_kernels, -1), parameters[-n_kernels:]


def _by_gamma(matrix: DifferentiableMatrix, slopes: np.ndarray) -> np.ndarray:
    """Slopes by the logarithms of gamma, also where a kernel has slopes by its linear map R of the roots of gamma."""
    return (matrix.linear_map * slopes).sum(axis=1) / 2 if isinstance(matrix, MappedRadialMatrix) else slopes
