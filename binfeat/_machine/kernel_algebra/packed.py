"""A kernel matrix of many rows in a fourth of the memory: tiles of one triangle, in 16 bits."""

from itertools import combinations_with_replacement

import numpy as np

from binfeat._engine.policy import share_blocks

_SIDE = 1152  # of a tile: as many rows as products are fast for
_STEPS = np.float32(65535)  # between 0 and 1; what rounding adds is far below the least penalty
_GROUPS = 8  # of tiles, whose sums are added in their order


def pieces(n, side, start=0):
    """Slices of so many rows, the last one of fewer."""
    return [slice(i, min(i + side, start + n)) for i in range(start, start + n, side)]


def packed_bytes(n_rows):
    """Memory of a packed matrix, and of what products with it take, in two threads."""
    return n_rows**2 + 2 * 4 * _SIDE**2


class PackedKernel:
    """A symmetric matrix of kernel values, ``K + R' R``.

    Parameters
    ----------
    values : callable
        From two slices of rows to the values of K for all pairs of them, between 0 and 1, float32, which may be
        written to.
    n_together : int
        Rows of such a slice.
    root : ndarray of shape (rank, n_rows), float32
        R, of few rows, or none.
    n_jobs : int, default=None
    """

    def __init__(self, values, n_together, root, n_jobs=None):
        self._n_rows, self._root, self._n_jobs = root.shape[1], root, n_jobs
        self._scratch: list[np.ndarray] = []  # for as many threads as there were
        places = list(combinations_with_replacement(pieces(len(self), _SIDE), 2))
        shapes = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in places]
        ends = np.cumsum([height * width for height, width in shapes])
        memory = np.empty(ends[-1], np.uint16)
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
                    tile[place] = _packed(values(some, others))
                    if rows == columns and others.start > some.start:
                        tile[place[::-1]] = tile[place].T

    def first_rows(self, n_first):
        """The first rows, (n_first, n_rows), float32."""
        out = np.empty((n_first, self._n_rows), np.float32)
        for rows, columns, tile in self._tiles:
            if rows.start < n_first:
                out[rows, columns] = tile[: n_first - rows.start]
            if columns.start < n_first:
                out[columns, rows] = tile.T[: n_first - columns.start]
        out /= _STEPS
        if self._root.size:
            out += self._root[:, :n_first].T @ self._root
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
        image /= _STEPS
        image += self._root.T @ (self._root @ V)
        return image


def _packed(values):
    values *= _STEPS
    values += np.float32(0.5)  # is cut off
    return values


def _within(some, rows):
    return slice(some.start - rows.start, some.stop - rows.start)
