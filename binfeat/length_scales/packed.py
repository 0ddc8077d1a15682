"""A kernel matrix of many rows in a fourth of the memory: tiles of one triangle, in 16 bits."""

from collections.abc import Callable, Iterable
from itertools import combinations_with_replacement

import numpy as np

from binfeat._common.subsets import slices
from binfeat._threads import share_blocks

_SIDE = 1152  # of a tile: as many rows as products are fast for
_STEPS = np.float32(65535)  # between 0 and 1; the error of rounding is far below the least penalty
_GROUPS = 8  # tiles; their sums are added in a fixed order


def packed_bytes(n_rows: int | np.ndarray) -> int | np.ndarray:
    """Memory of a packed matrix and of the tiles that two threads unpack for products."""
    return n_rows**2 + 2 * 4 * _SIDE**2


class PackedKernel:
    """A symmetric matrix of kernel values.

    `values` computes them for all pairs of two slices of up to `n_together` rows: a new float32 array, between 0 and 1.
    """

    def __init__(
        self, values: Callable[[slice, slice], np.ndarray], n_together: int, n_rows: int, n_jobs: int | None = None
    ) -> None:
        self._n_rows, self._n_jobs = n_rows, n_jobs
        self._scratch: list[np.ndarray] = []  # unpacked tiles, of as many threads as there were
        places = list(combinations_with_replacement(slices(len(self), _SIDE), 2))
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
        """The first rows, (n_first, n_rows), float32."""
        out = np.empty((n_first, self._n_rows), np.float32)
        for rows, columns, tile in self._tiles:
            if rows.start < n_first:
                out[rows, columns] = tile[: n_first - rows.start]
            if columns.start < n_first:
                out[columns, rows] = tile.T[: n_first - columns.start]
        out /= _STEPS
        return out

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        """The product with V, (n_rows, n_columns), float32; the same for any number of threads."""
        sums = np.zeros((_GROUPS, *V.shape), np.float32)

        def add(groups: Iterable[int]) -> None:
            scratch = self._scratch.pop() if self._scratch else np.empty(_SIDE**2, np.float32)
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


def _fill(
    values: Callable[[slice, slice], np.ndarray], n_together: int, rows: slice, columns: slice, tile: np.ndarray
) -> None:
    for some in slices(rows.stop, n_together, rows.start):
        for others in slices(columns.stop, n_together, columns.start):
            if others.start >= some.start:
                place = _within(some, rows), _within(others, columns)
                tile[place] = _packed(values(some, others))
                if rows == columns and others.start > some.start:
                    tile[place[::-1]] = tile[place].T


def _packed(values: np.ndarray) -> np.ndarray:
    values *= _STEPS
    values += np.float32(0.5)  # the conversion to whole numbers cuts off
    return values


def _within(some: slice, rows: slice) -> slice:
    return slice(some.start - rows.start, some.stop - rows.start)
