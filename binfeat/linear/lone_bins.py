"""Merged bins of single rows: all bins with only one row share one column per row, for shorter solver vectors."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.bins import starts_of

_WORTH_COLUMNS = 2**17  # vectors of fewer columns fit in caches
_MOST_LEFT = 0.8  # maximum share of the columns after merging


class MergedBins:
    """A binning matrix times a matrix Q with orthonormal columns; the span of Q contains the solutions.

    A row that is alone in m bins has m equal columns with equal ridge coefficients. Q merges
    them into one column, multiplied by ``sqrt(m)``. Because ``Q'Q = 1``, the penalty is the same. Merged columns
    follow the others, one for each row. The first ``sizes[p]`` bins of grid p are unchanged; all later bins contain
    at most one row.
    """

    def __init__(self, Z: BinMatrix, sizes: np.ndarray) -> None:
        self._all, self._sizes, self.dtype = Z, sizes, Z.dtype
        self._kept = BinMatrix._trusted(Z.codes, starts_of(sizes), Z.dtype, Z.n_jobs)
        self.shape = Z.shape[0], self._kept.shape[1] + Z.shape[0]
        is_merged = np.ones((Z.shape[1], 1), Z.dtype, order="F")
        self._clear_kept(is_merged)
        self._lengths = np.sqrt(self._sums_of_rows(is_merged))[:, 0]

    def _matmat_into(self, W: np.ndarray, out: np.ndarray) -> None:
        self._kept._matmat_into(W, out)
        values = self._lengths * self._all._value
        for column, lone in zip(out.T, W[self._kept.shape[1] :].T, strict=True):
            column += values * lone

    def _rmatmat_into(self, V: np.ndarray, out: np.ndarray) -> None:
        self._kept._rmatmat_into(V, out)
        np.multiply((self._lengths * self._all._value)[:, np.newaxis], V, out=out[self._kept.shape[1] :])

    def gram_diagonal(self, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Return the diagonal of ``Z.T @ Z``; the entry of a merged column equals the entry of each of its bins.

        With it as preconditioner, conjugate gradients have the same iterates as without merging.
        """
        weights = np.ones(self.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        lone = weights * (self._lengths > 0) / len(self._all.codes)
        return np.concatenate([self._kept.gram_diagonal(weights), lone])

    def spread(self, W: np.ndarray) -> np.ndarray:
        """Return ``Q @ W``: coefficients of all bins."""
        out = np.empty((self._all.shape[1], W.shape[1]), W.dtype, order="F")
        shares = W[self._kept.shape[1] :] / np.maximum(self._lengths, 1)[:, np.newaxis]
        self._all._multiply_transposed(np.ascontiguousarray(shares.T), 1.0, out.T)
        for kept, bins in self._places():
            out[bins] = W[kept]
        return out

    def merge(self, W: np.ndarray) -> np.ndarray:
        """Return ``Q.T @ W``."""
        out, W = np.empty((self.shape[1], W.shape[1]), W.dtype, order="F"), np.array(W, order="F")
        for kept, bins in self._places():
            out[kept] = W[bins]
        self._clear_kept(W)
        out[self._kept.shape[1] :] = self._sums_of_rows(W) / np.maximum(self._lengths, 1)[:, np.newaxis]
        return out

    def _clear_kept(self, W: np.ndarray) -> None:
        for _, bins in self._places():
            W[bins] = 0

    def _sums_of_rows(self, W: np.ndarray) -> np.ndarray:
        out = np.empty((self.shape[0], W.shape[1]), W.dtype, order="F")
        self._all._multiply(W.T, 1.0, out.T)
        return out

    def _places(self) -> Iterator[tuple[slice, slice]]:
        """Yield the unmerged columns of each grid, as slices of this matrix and of the binning matrix."""
        for size, here, there in zip(self._sizes, self._kept.offsets, self._all.offsets):  # offsets include the end
            yield slice(here, here + size), slice(there, there + size)


def merge_lone_bins(Z: BinMatrix) -> MergedBins | None:
    """Return `MergedBins` of a BinMatrix, or None for few columns, or if merging would remove few of them."""
    n_rows, n_columns = Z.shape
    if n_columns < _WORTH_COLUMNS:
        return None
    counts = Z._bin_sizes()
    of_grids = (counts[start:stop] for start, stop in pairwise(Z.offsets))
    sizes = np.array([1 + np.flatnonzero(own > 1).max(initial=-1) for own in of_grids])
    return MergedBins(Z, sizes) if 0 < sizes.sum() <= _MOST_LEFT * n_columns - n_rows else None
