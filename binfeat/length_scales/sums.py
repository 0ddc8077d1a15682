"""Values of a sum of exact kernels for many pairs of rows, by tiles in threads."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from binfeat._common.subsets import slices
from binfeat._threads import share_blocks
from binfeat.length_scales.matrices import KernelMatrix, Prepared
from binfeat.length_scales.packed import PackedKernel

_SIDE = 384  # rows of a tile; its arrays fit in the second-level cache


@dataclass(frozen=True, eq=False)
class KernelValues:
    """Values of the kernel ``sum_p share_p k_p``, of rows that are columns, float32, as `Frame.columns` makes them."""

    matrices: Sequence[KernelMatrix]
    shares: Sequence[float] | np.ndarray
    gammas: Sequence[np.ndarray] | np.ndarray  # (n_inputs,) for every kernel
    n_jobs: int | None = None

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Values (n, m), float32, for (n_inputs, n) and (n_inputs, m); if A is B, every pair is computed once."""
        out = np.empty((A.shape[1], B.shape[1]), np.float32)
        dtype = np.float32 if A is B else np.float64
        sides = [self._prepared(X.astype(dtype, copy=False)) for X in (A, B)]

        def fill(tiles: Iterable[tuple[slice, slice]]) -> None:
            for rows, columns in tiles:
                tile = self._tile(sides, rows, columns)
                out[rows, columns] = tile
                if A is B and rows != columns:
                    out[columns, rows] = tile.T

        pairs = product(slices(A.shape[1], _SIDE), slices(B.shape[1], _SIDE))
        tiles = [pair for pair in pairs if A is not B or pair[0].start <= pair[1].start]
        share_blocks(fill, tiles, out.size, self.n_jobs)
        return out

    def packed(self, X: np.ndarray) -> PackedKernel:
        """Values for all pairs of X, every pair once; of kernels with values between 0 and 1."""
        return PackedKernel(partial(self._tile, [self._prepared(X)] * 2), _SIDE, X.shape[1], self.n_jobs)

    def _prepared(self, X: np.ndarray) -> list[Prepared]:
        return [matrix.prepared(X, gamma) for matrix, gamma in zip(self.matrices, self.gammas, strict=True)]

    def _tile(self, sides: Sequence[list[Prepared]], rows: slice, columns: slice) -> np.ndarray:
        parts = self._parts(sides, rows, columns)
        total = next(parts)
        for K in parts:
            total += K
        return total

    def _parts(self, sides: Sequence[list[Prepared]], rows: slice, columns: slice) -> Iterator[np.ndarray]:
        for matrix, share, gamma, A, B in zip(self.matrices, self.shares, self.gammas, *sides, strict=True):
            K = matrix.of_prepared(_part(A, rows), _part(B, columns), gamma)
            K *= np.float32(share)
            yield K


def _part(arrays: Prepared, place: slice) -> Prepared:
    """Some of the columns of every array."""
    return tuple(np.ascontiguousarray(array[..., place]) for array in arrays)
