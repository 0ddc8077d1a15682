"""Eigenvectors of the graph of a sample of the rows, from which the iteration for all rows starts."""

import numpy as np

from binfeat._binning.bin_matrix import BinMatrix, no_bin
from binfeat._graph.eigenvectors import leading_eigenvectors
from binfeat._graph.similarity import SimilarityGraph, weighted_means

SAMPLE_ROWS = 10_000
_WORTH_A_SAMPLE = 2  # times as many rows


def sampled_rows(n_rows, seed):
    """Rising numbers of 10,000 of the rows."""
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:SAMPLE_ROWS])


def start_from_sample(Z, graph, n_wanted, *, tol, max_iter, seed):
    """Vectors near the leading eigenvectors of the graph of many rows, by those of a sample of the rows.

    A row gets the mean of those rows of the sample that share its bins. On 10^5 rows in curved clusters, residuals are
    below 0.01 after 2 products instead of 24.

    Parameters
    ----------
    Z : BinMatrix or other features of shape (n_rows, n_columns)
    graph : SimilarityGraph
        Of all rows.
    n_wanted : int
    tol, max_iter, seed : as of `leading_eigenvectors`

    Returns
    -------
    start : ndarray of shape (n_rows, n_wanted), or None
        None for few rows, and for features that are no bins.
    """
    if not isinstance(Z, BinMatrix) or Z.shape[0] < _WORTH_A_SAMPLE * SAMPLE_ROWS:
        return None
    sample, columns = _of_shared_bins(Z, sampled_rows(Z.shape[0], seed))
    of_sample = SimilarityGraph(sample)
    found = leading_eigenvectors(of_sample.normalised, of_sample.known, n_wanted, tol=tol, max_iter=max_iter, seed=seed)
    values = np.zeros((Z.shape[1], n_wanted + 1), order="F")
    values[columns] = of_sample.columns_of_means(of_sample.by_root_degree(found.vectors))
    return weighted_means(Z, values) * graph.known[:, None]


def _of_shared_bins(Z, rows):
    """Some rows, as a BinMatrix of the bins that two of them share, and the columns of these bins in Z."""
    none = no_bin(Z.codes.dtype)
    codes, columns = np.empty((len(Z.codes), rows.size), Z.codes.dtype), []
    for of_all, new, first in zip(Z.codes, codes, Z.offsets[:-1], strict=True):
        old = of_all.take(rows)
        bins, places, counts = np.unique(old, return_inverse=True, return_counts=True)
        shared = (counts > 1) & (bins != none)
        number = np.where(shared, np.cumsum(shared) - 1, none).astype(new.dtype)
        new[:] = number[places]
        columns.append(first + bins[shared].astype(np.int64))
    offsets = np.concatenate([[0], np.cumsum([own.size for own in columns])])
    return BinMatrix(codes, offsets, n_jobs=Z.n_jobs), np.concatenate(columns)
