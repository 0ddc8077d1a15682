"""Random binning in plain NumPy, as a good NumPy programmer would write it."""

import numpy as np
from scipy import sparse


def hash_whole(X, grids):
    """Compute the hashes of one grid after another, by an integer product of all cells with the keys."""
    for scale, shift, keys in zip(grids.scale, grids.shift, grids.keys):
        yield np.ceil(X * scale - shift).astype(np.int64) @ keys.view(np.int64)


def hash_by_input(X, grids):
    """Compute the same hashes input by input, so that NumPy's arrays stay in the cache."""
    columns = np.ascontiguousarray(X.T)
    for scale, shift, keys in zip(grids.scale, grids.shift, grids.keys):
        total = np.zeros(X.shape[0], np.int64)
        for x, s, v, key in zip(columns, scale, shift, keys.view(np.int64)):
            total += np.ceil(x * s - v).astype(np.int64) * key
        yield total


def fit_transform(X, grids, hashes_of):
    """Compute random binning features with one column per occupied bin.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_inputs)
    grids : binfeat.features.binning.grids.Grids
    hashes_of : function
        `hash_whole` or `hash_by_input`.

    Returns
    -------
    Z : scipy.sparse.csr_matrix of shape (n_rows, n_bins)
        Like the result of `RandomBinning`, but with the columns of a grid in the order of their hashes.
    """
    shape = X.shape[0], len(grids)
    columns = np.empty(shape, np.int32)
    n_bins = 0
    for p, hashes in enumerate(hashes_of(X, grids)):
        bins, codes = np.unique(hashes, return_inverse=True)
        columns[:, p] = codes + n_bins
        n_bins += bins.size
    row_starts = np.arange(0, columns.size + 1, len(grids), dtype=np.int32)
    values = np.full(columns.size, 1 / np.sqrt(len(grids)))
    return sparse.csr_matrix((values, columns.ravel(), row_starts), shape=(X.shape[0], n_bins))
