"""The bins of a mixture of grids, their counts, and the scores and densities of rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.random_words import round_significant
from binfeat._common.subsets import slices
from binfeat._engine.bin_tables import rank
from binfeat._engine.evaluate import evaluate_known
from binfeat.features.binning.bin_matrix import BinMatrix, code_dtype
from binfeat.features.binning.bins import Bins, unite_bins
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import BinTables, count_bins, find_codes

_FINEST = 1e9  # cells per length scale of the grid that distinguishes rows
_LARGEST = 2.0**1000  # scales stay finite, as in `Grids.draw`
_FEW_ROWS = 64  # evaluated one by one
_BLOCK_BYTES = 2**26
_SIGNIFICANT = 32  # bits of a scale, as in `Grids.draw`


def draw_grids(levels: list, n_grids: int, seed: int, categorical: np.ndarray) -> Grids:
    """Grids of a mixture of kernels, and one more grid, by which a row shares its bin with equal rows only.

    Grid p has the kernel and the gamma (n_inputs,) of level ``p % len(levels)``; it depends on the seed and p only.
    """
    drawn = [Grids.draw(kernel, gamma, n_grids, seed, categorical).arrays for kernel, gamma in levels]
    mixed = [np.stack([drawn[p % len(levels)][k][p] for p in range(n_grids)]) for k in range(4)]
    gamma = levels[0][1]
    with np.errstate(over="ignore"):
        finest = np.minimum(round_significant(gamma * _FINEST, _SIGNIFICANT), _LARGEST)
    finest = np.where(categorical & (gamma > 0), 1.0, finest)
    last = finest[None], np.where(categorical, 0.0, 0.5)[None], mixed[2][:1], mixed[3][:1]
    return Grids(*(np.vstack(pair) for pair in zip(mixed, last)))


class _Lookup:
    """Some grids and the look-up tables of their bins."""

    def __init__(self, grids: Grids, bins: Bins, n_jobs: int | None) -> None:
        self.grids, self.bins, self._n_jobs = grids, bins, n_jobs
        self.tables = BinTables(bins.keys, bins.starts, n_jobs)
        self.arrays = *grids.arrays, *self.tables.arrays  # as kernels take them
        self.value = 1 / np.sqrt(len(grids))

    def codes(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows, and the codes of their bins (n_grids, n_rows)."""
        dtype = code_dtype(self.bins.sizes.max())
        for rows in slices(X.shape[0], max(_FEW_ROWS, _BLOCK_BYTES // (4 * len(self.grids)))):
            yield rows, find_codes(self.tables, self.grids, X[rows], self._n_jobs, dtype)

    def means(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Means over the grids of the weights (n_weights, n_bins) of each row's bins, (n_rows, n_weights)."""
        out = np.empty((X.shape[0], len(weights)))
        for rows, codes in self.codes(X):
            matrix = BinMatrix._trusted(codes, self.bins.starts, np.dtype(np.float64), self._n_jobs)
            out[rows] = matrix @ weights.T
        out *= self.value
        return out


def dense(X: Any) -> np.ndarray:
    """Rows as float64 in C order."""
    if type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous:
        return X
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


@dataclass(frozen=True)
class CountedBins:
    """The grids of `draw_grids`, and the bins of the training rows with their counts, which add up."""

    grids: Grids
    bins: Bins
    n_rows: int
    n_levels: int  # of the mixture
    n_jobs: int | None = None

    @property
    def n_grids(self) -> int:
        """Number of grids of the mixture."""
        return len(self.grids) - 1

    def count(self, X: Any) -> Bins:
        """The bins of rows in memory."""
        return count_bins(self.grids, [X], X.shape[0], n_jobs=self.n_jobs)

    def plus(self, more: Bins, n_rows: int) -> "CountedBins":
        """The same with the counts of more rows, or without those of some rows if `n_rows` is negative.

        ValueError if a count would be negative.
        """
        united = unite_bins([self.bins, replace(more, counts=np.sign(n_rows) * more.counts)])
        if united.counts.min() < 0:
            raise ValueError("X has rows that are not training rows; forget only rows of fit or partial_fit.")
        return replace(self, bins=united, n_rows=self.n_rows + n_rows).only(united.counts > 0)

    def only(self, kept: np.ndarray) -> "CountedBins":
        """The same with some of the bins, in the order of falling counts, in which look-ups are fastest."""
        starts = np.concatenate([[0], np.cumsum(kept)])[self.bins.starts].astype(np.int64)
        keys, counts, new_codes = self.bins.keys[kept], self.bins.counts[kept], np.empty(starts[-1], np.uint32)
        scratch = np.empty_like(new_codes), np.empty_like(new_codes)
        rank(keys, counts, starts, np.zeros(len(self.grids), np.int64), *scratch, new_codes, n_jobs=self.n_jobs)
        return replace(self, bins=Bins(keys, counts, starts))

    @cached_property
    def mixture(self) -> _Lookup:
        """The grids of the mixture."""
        return _Lookup(self.grids[:-1], self.bins.of(slice(0, self.n_grids)), self.n_jobs)

    @cached_property
    def _finest(self):
        return _Lookup(self.grids[-1:], self.bins.of(slice(self.n_grids, self.n_grids + 1)), self.n_jobs)

    @cached_property
    def _arrays(self):
        return *self.mixture.arrays, *self._finest.arrays, self.logs

    @cached_property
    def _ones(self):
        return np.ones((1, self._finest.bins.keys.size))

    @cached_property
    def _log_rows(self):
        return np.log(self.n_rows)

    @cached_property
    def logs(self) -> np.ndarray:
        """For each bin of the mixture, ``log(1 + n)`` and ``log(n)`` of its count n: the second leaves out a row."""
        counts = self.mixture.bins.counts
        logs = np.log(np.maximum(np.arange(counts.max(initial=0) + 2), 1))
        out = np.empty((2, counts.size))
        np.take(logs[1:], counts, out=out[0])
        np.take(logs, counts, out=out[1])
        return out

    def scores(self, X: Any) -> np.ndarray:
        """Mean logarithm of the share of training rows in a row's bins; see `OutlierDetector`."""
        if X.shape[0] <= _FEW_ROWS:
            scores = np.empty(X.shape[0])
            evaluate_known(dense(X), *self._arrays, scores)
            scores *= self.mixture.value
            scores *= self.mixture.value
        else:
            means = self.mixture.means(X, self.logs)
            scores = np.where(self.known(X), means[:, 1], means[:, 0])
        scores -= self._log_rows
        return scores

    def known(self, X: Any) -> np.ndarray:
        """Whether each row equals a training row."""
        return self._finest.means(X, self._ones)[:, 0] > 0

    def densities(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean share of the training rows in a row's bins, and its standard error over grids."""
        means, variances = (np.zeros((self.n_levels, X.shape[0])) for _ in range(2))
        starts, shares = self.mixture.bins.starts, self.mixture.bins.counts / self.n_rows
        sizes = np.bincount(np.arange(self.n_grids) % self.n_levels)
        for rows, codes in self.mixture.codes(X):
            for p, grid_codes in enumerate(codes):
                own = np.append(shares[starts[p] : starts[p + 1]], 0.0)
                found = own[np.minimum(grid_codes, own.size - 1)]
                means[p % self.n_levels, rows] += found
                variances[p % self.n_levels, rows] += found**2
        sizes = sizes[:, None]
        means /= sizes
        variances = np.maximum(variances / sizes - means**2, 0.0) / np.maximum(sizes - 1, 1)
        return means.mean(axis=0), np.sqrt(variances.sum(axis=0)) / self.n_levels
