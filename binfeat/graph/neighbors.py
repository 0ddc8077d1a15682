"""The graph of rows and their most similar rows, by shared bins."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from binfeat._common.array_record import ArrayRecord
from binfeat._common.memory import require_memory
from binfeat._common.subsets import slices
from binfeat._engine.neighbors import list_rows, nearest
from binfeat._threads import side_by_side, thread_count
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.coded_features import no_bin
from binfeat.graph.distances import ScaledRows, nearest_of
from binfeat.graph.similarity import Graph, means

# The row itself is one of the 16. Among 10, 15, 20, 30, 50, 100 and all neighbors, fewer neighbors label more digits
# correctly from few labels, but fewer rows of satimage; clusters are good with 10, 15 and 30.
N_NEAREST = 16
# With 5, 7, 10 and 15 nearest rows of equal similarity, 7 are best for few labels on digits, optdigits, satimage and
# pendigits together. With 32 candidates, as many labels are correct as with the exact nearest rows.
_N_EQUAL, _N_CANDIDATES = 7, 32
_MOST_OF_A_BIN = 16  # rows of a bin that are compared, which limits the time for many equal rows
_ROWS_AT_A_TIME = 8192
_ROWS_OF_A_PART = 2**16  # rows per part of a product
# Rows with fewer neighbors are compared in wider grids. With 16, noise connects moons; 4, 5 and 6 are no better than 8.
_ENOUGH = 8
_FEW_GRIDS = 3  # grids with bins that determine the order of rows


@dataclass(frozen=True, eq=False)
class BinMembers(ArrayRecord):
    """Up to 16 random rows of each bin, with which all rows of the bin are compared.

    Rows have numbers by their places in an order that puts similar rows side by side, for the cache.
    """

    weights: np.ndarray  # (n_columns,) float64: contribution of a bin to the similarity of two of its rows
    begins: np.ndarray  # (n_columns + 1,) int64: first row of each bin
    rows: np.ndarray  # (n_listed,) int32: their places

    @classmethod
    def of(cls, Z: BinMatrix, order: np.ndarray, seed: int) -> Self:
        """List members of the bins of a BinMatrix, given an order of its rows; bins of n rows weigh ``1 / (n - 1)``."""
        n_grids, sizes = len(Z.codes), Z._bin_sizes()
        shared = sizes > 1
        weights = np.divide(1 / n_grids, sizes - 1, out=np.zeros(sizes.size), where=shared)
        begins = np.concatenate([[0], np.cumsum(np.where(shared, np.minimum(sizes, _MOST_OF_A_BIN), 0))])
        require_memory(4 * begins[-1], "the rows of all bins", "Use fewer rows or fewer grids.")
        rows, drawn = np.empty(begins[-1], np.int32), np.random.default_rng(seed).permutation(order.size)
        list_rows(Z.codes, no_bin(Z.codes.dtype), Z.offsets, drawn, _places(order), begins, rows, n_jobs=Z.n_jobs)
        return cls(weights, begins, rows)

    def nearest(
        self, Z: BinMatrix, order: np.ndarray, n_rows: int, stages: tuple[int, ...] = (), n_nearest: int = N_NEAREST
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return places and similarities (n, n_nearest) of the rows most similar to rows of Z, among `n_rows`.

        `stages` are numbers of grids. A row is compared in the grids of each stage, and then in all grids, until it has
        8 neighbors (usually the row itself and 7 others).
        """
        codes, workers, shape = Z.codes, thread_count(Z.n_jobs), (Z.shape[0], min(n_nearest, n_rows))
        require_memory(12 * shape[0] * shape[1], "the nearest rows", "Use fewer rows.")
        neighbors, similarities = np.empty(shape, np.int32), np.empty(shape)
        sums, met = np.zeros((workers, n_rows)), np.empty((workers, n_rows + 1), np.int32)
        none, members = no_bin(codes.dtype), (self.weights, self.begins, self.rows)
        lacking = np.arange(shape[0])
        for n_grids in dict.fromkeys((*stages, len(codes))):
            bins = codes[:n_grids], none, Z.offsets[: n_grids + 1]
            for some in slices(lacking.size, _ROWS_AT_A_TIME):
                rows = lacking[some]
                found = np.empty((rows.size, shape[1]), np.int32), np.empty((rows.size, shape[1]))
                nearest(*bins, *members, order[rows], sums, met, *found, n_jobs=Z.n_jobs)
                neighbors[rows], similarities[rows] = found
            lacking = lacking[similarities[lacking, min(_ENOUGH, shape[1]) - 1] == 0]
        return neighbors, similarities


def alike_together(Z: BinMatrix) -> np.ndarray:
    """Return the numbers of the rows of a BinMatrix, sorted by their first bins."""
    return np.lexsort(Z.codes[:_FEW_GRIDS])


def _matrix(neighbors: np.ndarray, similarities: np.ndarray, n_rows: int) -> sparse.csr_array:
    """Return the similarities as CSR (n, n_rows), without zeros."""
    kept = similarities > 0
    ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return sparse.csr_array((similarities[kept], neighbors[kept], ends), shape=(len(neighbors), n_rows))


def _places(order: np.ndarray) -> np.ndarray:
    """Return the place of each row in an order of all rows."""
    places = np.empty(order.size, np.int32)
    places[order] = np.arange(order.size, dtype=np.int32)
    return places


@dataclass(frozen=True, eq=False)
class NeighborMeans(BinMembers):
    """Values of training rows, and means over the 16 most similar training rows for other rows."""

    values: np.ndarray  # (n_rows, k) float64, by place

    @classmethod
    def of_values(cls, Z: BinMatrix, values: np.ndarray, seed: int) -> Self:
        """Create means of the values (n_rows, k) of the rows of a BinMatrix."""
        order = alike_together(Z)
        return cls(**BinMembers.of(Z, order, seed).arrays(), values=values[order])

    def of_rows(self, Z: BinMatrix, stages: tuple[int, ...] = ()) -> np.ndarray:
        """Return means for the rows of a BinMatrix, (n, k); 0 for rows that share no bin with a training row."""
        if Z.shape[1] != self.weights.size:
            raise ValueError(f"The features have {Z.shape[1]} bins, and those of fit had {self.weights.size}.")
        n_rows, order = len(self.values), alike_together(Z)
        neighbors, similarities = self.nearest(Z, order, n_rows, stages)
        return means(_matrix(neighbors, similarities, n_rows), self.values)[_places(order)]


class NeighborGraph(Graph):
    """Similarities of all rows with their 15 neighbors; halved if only one row is a neighbor of the other.

    The neighbors are the 15 nearest `rows` among the 31 most similar ones, and copies of the row. With `equal`, the
    neighbors are the 7 nearest, and all similarities are 1.

    Rows with too few neighbors in the grids of a stage are compared in more grids, see `BinMembers.nearest`.
    """

    def __init__(
        self,
        Z: BinMatrix,
        rows: ScaledRows,
        seed: int,
        stages: tuple[int, ...] = (),
        equal: bool = False,
    ) -> None:
        self.stages, self.rows = stages, rows
        n_rows, self._order, self._n_jobs = Z.shape[0], alike_together(Z), Z.n_jobs
        self._members = BinMembers.of(Z, self._order, seed)
        most = min(_N_CANDIDATES, n_rows)
        require_memory(60 * n_rows * most, "the graph of neighbors", "Use fewer rows.")
        neighbors, similarities = self._members.nearest(Z, self._order, n_rows, stages, most)
        self._with_itself = _matrix(neighbors[:, :N_NEAREST], similarities[:, :N_NEAREST], n_rows)
        similarities[neighbors == np.arange(n_rows)[:, None]] = 0.0
        n_nearest = _N_EQUAL if equal else N_NEAREST - 1
        near = nearest_of(rows, self._order, neighbors, similarities > 0, n_nearest, Z.n_jobs)
        similarities = near.astype(float) if equal else similarities * near
        others = _matrix(neighbors, similarities, n_rows)
        W = ((others + others.T) / 2).tocsr()
        self._parts = [(part, W[part]) for part in slices(n_rows, _ROWS_OF_A_PART)]
        self._places = _places(self._order)
        super().__init__(W.sum(axis=1)[self._places])

    @cached_property
    def components(self) -> np.ndarray:
        linked = connected_components(sparse.vstack([W for _, W in self._parts]), directed=False)[1][self._places]
        numbers = np.full(linked.size, -1)
        numbers[self.degrees > 0] = np.unique(linked[self.degrees > 0], return_inverse=True)[1]
        return numbers

    def _product(self, V: np.ndarray) -> np.ndarray:
        V = np.ascontiguousarray(V)[self._order]
        image = np.empty(V.shape)

        def multiply(part: tuple[slice, sparse.csr_array]) -> None:
            rows, W = part
            image[rows] = W @ V

        side_by_side(multiply, self._parts, self._n_jobs)
        return np.asfortranarray(image[self._places])

    def means(self, values: np.ndarray) -> tuple[NeighborMeans, np.ndarray]:
        """Return, for values (n_rows, k), an object that computes means for other rows, and the means of the rows."""
        values = np.ascontiguousarray(values[self._order])
        own = means(self._with_itself, values)[self._places]
        return NeighborMeans(**self._members.arrays(), values=values), own
