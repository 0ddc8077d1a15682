"""Derivatives of a sum of kernels by the logarithms of all its length scales."""

from collections.abc import Sequence

import numpy as np

from binfeat._machine.kernel_algebra.matrices import (
    DifferentiableMatrix,
    KernelMatrix,
    MappedRadialMatrix,
    Slopes,
    square,
)
from binfeat._rows.rows import Scratch


class SumWithSlopes:
    """The kernel ``sum_p share_p k_p`` as `leave_one_out` takes one, of gammas (n_kernels * n_inputs,).

    Of a radial kernel with a linear map, gammas are those of the inputs before the map. Linear kernels stay as they
    are: their slopes are 0.
    """

    def __init__(self, matrices: Sequence[KernelMatrix], shares: Sequence[float]) -> None:
        self._matrices, self._shares = matrices, shares
        self._scratches = [Scratch() for _ in matrices]

    def with_slopes(self, X: np.ndarray, gamma: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, Slopes]:
        """Kernel matrix of X, and a function of M: ``sum_ab M_ab dK_ab / d log gamma``, for all gammas."""
        total = square(scratch, "sum", X.shape[1])
        total[...] = 0.0
        gammas, slopes = gamma.reshape(len(self._matrices), -1), list[Slopes | None]()
        for matrix, share, own, memory in zip(self._matrices, self._shares, gammas, self._scratches, strict=True):
            if isinstance(matrix, DifferentiableMatrix):
                K, slopes_of = matrix.with_slopes(X, own, memory)
            else:
                K, slopes_of = matrix(X, X, own), None
            total += np.float32(share) * K
            slopes.append(slopes_of)

        def all_slopes(M: np.ndarray) -> np.ndarray:
            out = np.zeros(gammas.shape)
            for k, (matrix, share, slopes_of) in enumerate(zip(self._matrices, self._shares, slopes, strict=True)):
                if slopes_of is not None:
                    out[k] = share * _by_gamma(matrix, slopes_of(M.copy()))
            return out.ravel()

        return total, all_slopes


def _by_gamma(matrix: KernelMatrix, slopes: np.ndarray) -> np.ndarray:
    """Slopes by the logarithms of gamma, also where a kernel has slopes by its linear map R of the roots of gamma."""
    return (matrix.linear_map * slopes).sum(axis=1) / 2 if isinstance(matrix, MappedRadialMatrix) else slopes
