"""A kernel matrix of many rows in a fourth of the memory: tiles of one triangle, in 16 bits."""

from itertools import combinations_with_replacement

import numpy as np

from binfeat._engine.policy import share_blocks

_SIDE = 1152  # of a tile: as many rows as products are fast for
_STEPS = 65535  # between 0 and 1; what rounding adds is far below the least penalty
_GROUPS = 8  # of tiles, whose sums are added in their order


def pieces(n, side, start=0):
    """Slices of so many rows, the last one of fewer."""
    return [slice(i, min(i + side, start + n)) for i in range(start, start + n, side)]


def packed_bytes(n_rows):
    """Memory of a packed matrix of values between 0 and 1, and of what products with it take, in two threads."""
    return n_rows**2 + 2 * 4 * _SIDE**2


class PackedKernel:
    """A symmetric matrix of kernel values.

    Parameters
    ----------
    n_rows : int
    values : callable
        From two slices of rows to the values for all pairs of them, float32, which may be written to.
    n_together : int
        Rows of such a slice.
    bounded : bool
        Whether all values lie between 0 and 1. Others are kept in float32.
    n_jobs : int, default=None
    """

    def __init__(self, n_rows, values, n_together, bounded, n_jobs=None):
        self._n_rows, self._n_jobs, self._steps = n_rows, n_jobs, np.float32(_STEPS if bounded else 1)
        self._scratch: list[np.ndarray] = []  # for as many threads as there were
        places = list(combinations_with_replacement(pieces(n_rows, _SIDE), 2))
        shapes = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in places]
        ends = np.cumsum([height * width for height, width in shapes])
        memory = np.empty(ends[-1], np.uint16 if bounded else np.float32)
        tiles = [part.reshape(shape) for part, shape in zip(np.split(memory, ends[:-1]), shapes, strict=True)]
        self._tiles = [(*place, tile) for place, tile in zip(places, tiles, strict=True)]

        def fill(tiles):
            for rows, columns, tile in tiles:
                self._fill(values, n_together, rows, columns, tile)

        share_blocks(fill, self._tiles, memory.size, n_jobs)

    def __len__(self):
        return self._n_rows

    def _fill(self, values, n_together, rows, columns, tile):
        for some in pieces(rows.stop - rows.start, n_together, rows.start):
            for others in pieces(columns.stop - columns.start, n_together, columns.start):
                if others.start >= some.start:
                    place = _within(some, rows), _within(others, columns)
                    tile[place] = self._packed(values(some, others))
                    if rows == columns and others.start > some.start:
                        tile[place[::-1]] = tile[place].T

    def _packed(self, values):
        if self._steps == 1:
            return values
        values *= self._steps
        values += np.float32(0.5)  # is cut off
        return values

    def first_rows(self, n_first):
        """The first rows, (n_first, n_rows), float32."""
        out = np.empty((n_first, self._n_rows), np.float32)
        for rows, columns, tile in self._tiles:
            if rows.start < n_first:
                out[rows, columns] = tile[: n_first - rows.start]
            if columns.start < n_first:
                out[columns, rows] = tile.T[: n_first - columns.start]
        out /= self._steps
        return out

    def __matmul__(self, V):
        """The product with V, (n_rows, n_columns), float32; the same for any number of threads."""
        sums = np.zeros((_GROUPS, *V.shape), np.float32)

        def add(groups):
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
        image /= self._steps
        return image


def _within(some, rows):
    return slice(some.start - rows.start, some.stop - rows.start)
