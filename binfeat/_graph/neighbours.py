"""The graph of each row's most similar rows."""

import numpy as np
from scipy import sparse

from binfeat._binning.bin_matrix import no_bin
from binfeat._common.memory import require_memory
from binfeat._engine.neighbours import list_rows, nearest
from binfeat._engine.policy import thread_count
from binfeat._graph.similarity import inverse_roots

# The fewer of 10, 15, 20, 30, 50, 100 and all neighbours, the more digits get the right one of few labels, and the
# fewer rows of satimage.
_N_NEIGHBOURS = 15
_MOST_OF_A_BIN = 16  # rows that the others of their bin meet there: bounds the time where many rows are alike
_ROWS_AT_A_TIME = 8192


class NeighbourGraph:
    """The similarities of each row and the 15 most similar ones.

    They are those of `SimilarityGraph`, halved where only one of two rows is among the most similar ones of the other.
    In a bin of more than 16 rows, only 16 of them, the same for all, are met by others.

    Parameters
    ----------
    Z : BinMatrix of shape (n_rows, n_columns)
    weights : ndarray of shape (n_columns,)
        Of bins, as of `column_weights`.
    seed : int
        Of the choice of rows in bins of many.
    """

    def __init__(self, Z, weights, seed):
        n_rows, n_wanted = Z.shape[0], min(_N_NEIGHBOURS, Z.shape[0] - 1)
        require_memory(40 * n_rows * n_wanted, "the graph of neighbours", "Give fewer rows.")
        neighbours, similarities = _nearest_rows(Z, weights, n_wanted, seed)
        ends = np.arange(0, neighbours.size + 1, n_wanted)
        W = sparse.csr_array((similarities.ravel(), neighbours.ravel(), ends), shape=(n_rows, n_rows))
        W.eliminate_zeros()
        self._W = (W + W.T) / 2
        self._inverse = inverse_roots(self._W.sum(axis=1))[:, None]

    def normalised(self, V):
        """``D^-1/2 W D^-1/2 V`` for V of shape (n_rows, k), D the row sums of W."""
        return np.asfortranarray(self._inverse * (self._W @ (self._inverse * V)))


def _nearest_rows(Z, weights, n_wanted, seed):
    """Numbers and similarities of the most similar rows of each row, (n_rows, n_wanted)."""
    n_rows, codes, none = Z.shape[0], Z.codes, no_bin(Z.codes.dtype)
    sizes = np.where(weights > 0, np.rint(Z.gram_diagonal() * len(codes)), 0).astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(np.minimum(sizes, _MOST_OF_A_BIN))])
    require_memory(4 * begins[-1], "the rows of all bins", "Give fewer rows, or features of fewer grids.")
    rows, order = np.empty(begins[-1], np.int32), np.random.default_rng(seed).permutation(n_rows)
    list_rows(codes, none, Z.offsets, order, begins, rows, n_jobs=Z.n_jobs)
    n_workers, shape = thread_count(Z.n_jobs), (n_rows, n_wanted)
    neighbours, similarities = np.empty(shape, np.int32), np.empty(shape)
    sums, met = np.zeros((n_workers, n_rows)), np.empty((n_workers, n_rows), np.int32)
    shares = weights / len(codes)
    for start in range(0, n_rows, _ROWS_AT_A_TIME):
        some = slice(start, start + _ROWS_AT_A_TIME)
        found = neighbours[some], similarities[some]
        nearest(codes, none, Z.offsets, shares, begins, rows, start, sums, met, *found, n_jobs=Z.n_jobs)
    return neighbours, similarities
