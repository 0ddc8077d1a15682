"""The weighted sum of kernels of a model.

Its values are computed by tiles in threads, as whole or packed matrices, with derivatives for searches.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations_with_replacement, product
from typing import cast

import numpy as np

from binfeat._common.arrays import Scratch
from binfeat._common.subsets import slices
from binfeat._threads import share_blocks
from binfeat.kernels.base import Kernel
from binfeat.length_scales.matrices import (
    DifferentiableMatrix,
    KernelMatrix,
    Prepared,
    RadialMatrix,
    Slopes,
    Standardizer,
    differentiable_matrix,
    square,
)

_SIDE = 384  # rows of a tile; its arrays fit in the second-level cache
_PACKED_SIDE = 1152  # rows of a packed tile, the fastest for products
_STEPS = np.float32(65535)  # steps of packed values between 0 and 1; rounding is far below the least penalty
_GROUPS = 8  # groups of packed tiles; their sums are added in a fixed order


@dataclass(frozen=True, eq=False)
class KernelPart:
    """One kernel of a sum, with an inverse length scale for each input."""

    kernel: Kernel
    gamma: np.ndarray  # (n_inputs,)
    share: float = 1.0
    linear_map: np.ndarray | None = None  # (n_inputs, rank), of scaled inputs, for a radial kernel


@dataclass(frozen=True, eq=False)
class KernelSum:
    """The kernel ``sum_p share_p k_p``, and the ridge penalty alpha.

    `n_rows` is the number of rows that selected alpha. A warm start of an exact model with more rows selects alpha
    again; with 0, it always does.
    """

    parts: list[KernelPart]
    alpha: float
    n_rows: int = 0

    @property
    def main(self) -> KernelPart:
        """Return the part with the largest share."""
        return max(self.parts, key=lambda part: part.share)

    def __str__(self) -> str:
        if len(self.parts) == 1:
            return repr(self.parts[0].kernel)
        return " + ".join(f"{part.share:.3g} {part.kernel!r}" for part in self.parts)

    def of_kernel(self, kernel: Kernel) -> "KernelSum":
        """Return another kernel with the same length scales and penalty, instead of one part."""
        (part,) = self.parts
        return replace(self, parts=[replace(part, kernel=kernel)])

    def scaled(self, factor: float) -> "KernelSum":
        """Return the same kernels with all gammas multiplied by a factor."""
        return replace(self, parts=[replace(part, gamma=factor * part.gamma) for part in self.parts])

    def matrices(self, categorical: np.ndarray, n_jobs: int | None) -> list[DifferentiableMatrix]:
        """Return the kernel of each part, for columns of rows."""
        return [differentiable_matrix(part.kernel, categorical, n_jobs, part.linear_map) for part in self.parts]

    def gammas(self, standardizer: Standardizer) -> np.ndarray:
        """Return gammas (n_parts, n_inputs) for standardized columns."""
        return np.array([standardizer.gamma(part.kernel, part.gamma) for part in self.parts])

    def values(self, standardizer: Standardizer, categorical: np.ndarray, n_jobs: int | None) -> "KernelValues":
        """Return the kernel as a function of standardized columns."""
        shares = [part.share for part in self.parts]
        return KernelValues(self.matrices(categorical, n_jobs), shares, self.gammas(standardizer), n_jobs)


@dataclass(frozen=True, eq=False)
class Trial:
    """A kernel with its error for comparisons, by leave-one-out or validation predictions."""

    kernel: KernelSum
    error: float
    n_steps: int = 0  # steps of its search
    losses: np.ndarray | None = None  # (n_rows,), losses of the rows that determine the error
    predictions: np.ndarray | None = None  # (n_rows, n_targets), for these rows


@dataclass(frozen=True, eq=False)
class KernelValues:
    """Values of the kernel ``sum_p share_p k_p``, for rows as float32 columns from `Standardizer.columns`."""

    matrices: Sequence[KernelMatrix]
    shares: Sequence[float] | np.ndarray
    gammas: Sequence[np.ndarray] | np.ndarray  # (n_inputs,) for each kernel
    n_jobs: int | None = None

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return values (n, m), float32, for (n_inputs, n) and (n_inputs, m); if A is B, each pair is computed once."""
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

    def packed(self, X: np.ndarray) -> "PackedKernel":
        """Return values for all pairs of X, each computed once, for kernels with values between 0 and 1."""
        return PackedKernel(partial(self._tile, [self._prepared(X)] * 2), _SIDE, X.shape[1], self.n_jobs)

    def _prepared(self, X: np.ndarray) -> list[Prepared]:
        return [matrix.prepared(X, gamma) for matrix, gamma in zip(self.matrices, self.gammas, strict=True)]

    def _tile(self, sides: Sequence[list[Prepared]], rows: slice, columns: slice) -> np.ndarray:
        total: np.ndarray | None = None
        for matrix, share, gamma, A, B in zip(self.matrices, self.shares, self.gammas, *sides, strict=True):
            K = matrix.of_prepared(_part(A, rows), _part(B, columns), gamma)
            K *= np.float32(share)
            total = K if total is None else np.add(total, K, out=total)
        return cast(np.ndarray, total)


class SumWithSlopes:
    """The kernel ``sum_p share_p k_p`` with derivatives, for `leave_one_out`.

    Its parameters are the gammas of all kernels, (n_kernels * n_inputs,), and then the shares. For a radial kernel with
    a linear map, gammas belong to the inputs before the map.
    """

    def __init__(self, matrices: Sequence[DifferentiableMatrix]) -> None:
        self._matrices = matrices
        self._scratches = [Scratch() for _ in matrices]
        self._values: list[np.ndarray] = []  # values of each kernel, for the last rows

    @property
    def spreads(self) -> np.ndarray:
        """Return the mean exponent of each kernel between the last rows."""
        return np.array([float(K.diagonal().mean() - K.mean(dtype=np.float64)) for K in self._values])

    def with_slopes(self, X: np.ndarray, gamma: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, Slopes]:
        """Return the kernel matrix of X, and a function of M: ``sum_ab M_ab dK_ab / d log`` of each parameter."""
        total, own_share = (square(scratch, name, X.shape[1]) for name in ("sum", "share"))
        total[...] = 0.0
        n_kernels = len(self._matrices)
        gammas, shares = gamma[:-n_kernels].reshape(n_kernels, -1), gamma[-n_kernels:]
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
                own, linear_map = slopes_of(own_share), matrix.linear_map if isinstance(matrix, RadialMatrix) else None
                # Slopes by the linear map are slopes by roots of gamma.
                by_gamma[k] = share * (own if linear_map is None else (linear_map * own).sum(axis=1) / 2)
            return np.append(by_gamma.ravel(), by_share)

        return total, all_slopes


class PackedKernel:
    """A symmetric matrix of kernel values.

    `values` computes them for two slices of up to `n_together` rows, as a new float32 array with values from 0 to 1.
    """

    def __init__(
        self, values: Callable[[slice, slice], np.ndarray], n_together: int, n_rows: int, n_jobs: int | None = None
    ) -> None:
        self._n_rows, self._n_jobs = n_rows, n_jobs
        self._scratch: list[np.ndarray] = []  # unpacked tiles, one per thread
        places = list(combinations_with_replacement(slices(len(self), _PACKED_SIDE), 2))
        shapes = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in places]
        ends = np.cumsum([height * width for height, width in shapes])
        memory = np.empty(ends[-1], np.uint16)
        tiles = [part.reshape(shape) for part, shape in zip(np.split(memory, ends[:-1]), shapes, strict=True)]
        self._tiles = [(*place, tile) for place, tile in zip(places, tiles, strict=True)]

        def fill(tiles: Iterable[tuple[slice, slice, np.ndarray]]) -> None:
            for rows, columns, tile in tiles:
                _fill(values, n_together, rows, columns, tile)

        share_blocks(fill, self._tiles, memory.size, n_jobs)

    def __len__(self) -> int:
        return self._n_rows

    def first_rows(self, n_first: int) -> np.ndarray:
        """Return the first rows, (n_first, n_rows), float32."""
        out = np.empty((n_first, self._n_rows), np.float32)
        for rows, columns, tile in self._tiles:
            if rows.start < n_first:
                out[rows, columns] = tile[: n_first - rows.start]
            if columns.start < n_first:
                out[columns, rows] = tile.T[: n_first - columns.start]
        out /= _STEPS
        return out

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        """Return the product with V (n_rows, n_columns), float32, bitwise the same for any number of threads."""
        sums = np.zeros((_GROUPS, *V.shape), np.float32)

        def add(groups: Iterable[int]) -> None:
            try:  # other threads may take the last array after any check
                scratch = self._scratch.pop()
            except IndexError:
                scratch = np.empty(_PACKED_SIDE**2, np.float32)
            for group in groups:
                for rows, columns, tile in self._tiles[group::_GROUPS]:
                    K = scratch[: tile.size].reshape(tile.shape)
                    np.copyto(K, tile)
                    sums[group, rows] += K @ V[columns]
                    if rows != columns:
                        sums[group, columns] += K.T @ V[rows]
            self._scratch.append(scratch)

        share_blocks(add, range(_GROUPS), self._n_rows**2, self._n_jobs)
        image = sums.sum(axis=0)
        image /= _STEPS
        return image


def packed_bytes(n_rows: int | np.ndarray) -> int | np.ndarray:
    """Return the bytes of a packed matrix and of the tiles that two threads unpack for products."""
    return n_rows**2 + 2 * 4 * _PACKED_SIDE**2


def _part(arrays: Prepared, place: slice) -> Prepared:
    """Return some of the columns of each array."""
    return tuple(np.ascontiguousarray(array[..., place]) for array in arrays)


def _fill(
    values: Callable[[slice, slice], np.ndarray], n_together: int, rows: slice, columns: slice, tile: np.ndarray
) -> None:
    for some in slices(rows.stop, n_together, rows.start):
        for others in slices(columns.stop, n_together, columns.start):
            if others.start >= some.start:
                place = _within(some, rows), _within(others, columns)
                K = values(some, others)
                K *= _STEPS
                K += np.float32(0.5)  # the conversion to integers truncates
                tile[place] = K
                if rows == columns and others.start > some.start:
                    tile[place[::-1]] = tile[place].T


def _within(some: slice, rows: slice) -> slice:
    return slice(some.start - rows.start, some.stop - rows.start)
