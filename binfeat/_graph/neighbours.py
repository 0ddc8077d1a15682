"""The graph of each row's most similar rows, by the bins that they share."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from binfeat._binning.bin_matrix import no_bin
from binfeat._common.memory import require_memory
from binfeat._common.persistence import ArrayRecord
from binfeat._engine.neighbours import list_rows, nearest
from binfeat._engine.policy import thread_count
from binfeat._graph.similarity import Graph, means

# A row itself is one of them. The fewer of 10, 15, 20, 30, 50, 100 and all neighbours, the more digits get the right
# one of few labels, and the fewer rows of satimage; clusters are good with 10, 15 and 30.
_N_NEAREST = 16
_MOST_OF_A_BIN = 16  # rows that are met in a bin: bounds the time where many rows are alike
_ROWS_AT_A_TIME = 8192


@dataclass(frozen=True, eq=False)
class BinMembers(ArrayRecord):
    """Up to 16 rows of each bin, at random, which all rows of the bin meet there."""

    weights: np.ndarray  # (n_columns,) float64: what a bin adds to the similarity of two of its rows
    begins: np.ndarray  # (n_columns + 1,) int64: where the rows of each bin begin
    rows: np.ndarray  # (n_listed,) int32

    @classmethod
    def of(cls, Z, seed):
        """Of the rows of a BinMatrix: a bin of n rows adds ``1 / (n - 1)`` in a mean over the grids."""
        n_grids, sizes = len(Z.codes), Z._bin_sizes()
        shared = sizes > 1
        weights = np.divide(1 / n_grids, sizes - 1, out=np.zeros(sizes.size), where=shared)
        begins = np.concatenate([[0], np.cumsum(np.where(shared, np.minimum(sizes, _MOST_OF_A_BIN), 0))])
        require_memory(4 * begins[-1], "the rows of all bins", "Give fewer rows, or features of fewer grids.")
        rows = np.empty(begins[-1], np.int32)
        order = np.random.default_rng(seed).permutation(Z.shape[0])
        list_rows(Z.codes, no_bin(Z.codes.dtype), Z.offsets, order, begins, rows, n_jobs=Z.n_jobs)
        return cls(weights, begins, rows)

    def nearest(self, Z, n_rows):
        """Numbers and similarities of those, of so many rows, that rows Z are most similar to, (n, n_nearest)."""
        codes, workers, shape = Z.codes, thread_count(Z.n_jobs), (Z.shape[0], min(_N_NEAREST, n_rows))
        require_memory(12 * shape[0] * shape[1], "the nearest rows", "Give fewer rows.")
        neighbours, similarities = np.empty(shape, np.int32), np.empty(shape)
        sums, met = np.zeros((workers, n_rows)), np.empty((workers, n_rows), np.int32)
        members = codes, no_bin(codes.dtype), Z.offsets, self.weights, self.begins, self.rows
        for start in range(0, shape[0], _ROWS_AT_A_TIME):
            some = slice(start, start + _ROWS_AT_A_TIME)
            nearest(*members, start, sums, met, neighbours[some], similarities[some], n_jobs=Z.n_jobs)
        return neighbours, similarities


def _matrix(neighbours, similarities, n_rows):
    """As CSR of shape (n, n_rows), without zeros."""
    kept = similarities > 0
    ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return sparse.csr_array((similarities[kept], neighbours[kept], ends), shape=(len(neighbours), n_rows))


@dataclass(frozen=True, eq=False)
class NeighbourMeans(BinMembers):
    """Values of training rows, of which others get the mean over the 16 most similar ones."""

    values: np.ndarray  # (n_rows, k) float64

    def of_rows(self, Z):
        """For the rows of a BinMatrix, (n, k); 0 for a row that meets no other."""
        if Z.shape[1] != self.weights.size:
            raise ValueError(f"The features have {Z.shape[1]} bins, and those of fit had {self.weights.size}.")
        n_rows = len(self.values)
        neighbours, similarities = self.nearest(Z, n_rows)
        return means(_matrix(neighbours, similarities, n_rows), self.values)


class NeighbourGraph(Graph):
    """The similarities of each row and the 15 most similar other ones.

    They are halved where only one of two rows is among the most similar ones of the other. In a bin of more than 16
    rows, only 16 of them, the same for all, are met by others.

    Parameters
    ----------
    Z : BinMatrix of shape (n_rows, n_columns)
    seed : int
        Of the choice of rows in bins of many.
    """

    def __init__(self, Z, seed):
        n_rows = Z.shape[0]
        self._members = BinMembers.of(Z, seed)
        require_memory(60 * n_rows * min(_N_NEAREST, n_rows), "the graph of neighbours", "Give fewer rows.")
        neighbours, similarities = self._members.nearest(Z, n_rows)
        self._with_itself = _matrix(neighbours, similarities, n_rows)
        similarities[neighbours == np.arange(n_rows)[:, None]] = 0.0
        others = _matrix(neighbours, similarities, n_rows)
        self._W = (others + others.T) / 2
        super().__init__(self._W.sum(axis=1))

    def _product(self, V):
        return np.asfortranarray(self._W @ V)

    def means(self, values):
        """Of values (n_rows, k), what gives other rows their means, and those of the graph's own rows."""
        values = np.ascontiguousarray(values)
        return NeighbourMeans(**self._members.arrays(), values=values), means(self._with_itself, values)
