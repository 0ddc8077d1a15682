"""Values of a sum of exact kernels for many pairs of rows, by tiles in threads."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from binfeat._engine.policy import share_blocks
from binfeat._machine.kernel_algebra.matrices import LinearMatrix
from binfeat._machine.kernel_algebra.packed import PackedKernel, pieces

_SIDE = 384  # of a tile: what is made of it stays in the second-level cache


@dataclass(frozen=True, eq=False)
class KernelSum:
    """The kernel ``sum_p share_p k_p``.

    Rows are columns, float32, as `exact_kernels.Frame.columns` makes them.
    """

    matrices: Sequence[Any]  # of `exact_kernels.kernel_matrix`
    shares: Sequence[float] | np.ndarray
    gammas: Sequence[np.ndarray] | np.ndarray  # (n_inputs,) each
    n_jobs: int | None = None

    def __call__(self, A, B):
        """Values (n, m), float32, for (n_inputs, n) and (n_inputs, m); of one set of rows each pair once."""
        out = np.empty((A.shape[1], B.shape[1]), np.float32)
        sides = self._prepared(A), self._prepared(B)

        def fill(tiles):
            for rows, columns in tiles:
                tile = self._tile(sides, rows, columns)
                out[rows, columns] = tile
                if A is B and rows != columns:
                    out[columns, rows] = tile.T

        pairs = product(pieces(A.shape[1], _SIDE), pieces(B.shape[1], _SIDE))
        tiles = [pair for pair in pairs if A is not B or pair[0].start <= pair[1].start]
        share_blocks(fill, tiles, out.size, self.n_jobs)
        return out

    def packed(self, X):
        """Values for all pairs of X, each once; linear parts as what they are products of."""
        parts = list(zip(self.matrices, self.shares, self.gammas, strict=True))
        matrices, shares, gammas = zip(*(part for part in parts if not _is_linear(part)), strict=True)
        rest = KernelSum(matrices, shares, gammas, self.n_jobs)
        linear = [np.float32(np.sqrt(part[1])) * part[0].root(X, part[2]) for part in parts if _is_linear(part)]
        root = np.vstack([np.empty((0, X.shape[1]), np.float32), *linear])
        return PackedKernel(partial(rest._tile, [rest._prepared(X)] * 2), _SIDE, root, self.n_jobs)

    def _prepared(self, X):
        return [matrix.prepared(X, gamma) for matrix, gamma in zip(self.matrices, self.gammas, strict=True)]

    def _tile(self, sides, rows, columns):
        total: Any = None
        for matrix, share, gamma, A, B in zip(self.matrices, self.shares, self.gammas, *sides, strict=True):
            K = matrix.of_prepared(_part(A, rows), _part(B, columns), gamma)
            K *= np.float32(share)
            total = K if total is None else np.add(total, K, out=total)
        return total


def _is_linear(part):
    return isinstance(part[0], LinearMatrix)


def _part(arrays, place):
    """Some of the columns of each array."""
    return tuple(np.ascontiguousarray(array[..., place]) for array in arrays)
