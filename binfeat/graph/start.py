"""Eigenvectors of the graph of a sample of the rows, from which the iteration for all rows starts."""

from typing import Any

import numpy as np

from binfeat._rows.products import Features
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.graph.eigenvectors import leading_eigenvectors
from binfeat.graph.neighbours import NeighbourGraph, NeighbourMeans
from binfeat.graph.similarity import Graph

_MOST_ROWS = 50_000  # of a sample: 10^6 rows then take 2 products; 13 with a sample of 10,000
_LEAST_ROWS = 1_000  # of a sample
_TIMES_AS_MANY = 4  # rows of the whole, at least, by rows of a sample
_FEW_GRIDS = 16  # grids in which all rows are compared with the sample
_NEAR = 1e-3  # residuals of the sample: smaller ones do not bring its vectors nearer to those of the whole


def rows_of_sample(n_rows: int, seed: int, n_wanted: int) -> np.ndarray:
    """Numbers of a random sample of the rows, in rising order."""
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:n_wanted])


def start_from_sample(
    Z: Features,
    graph: Graph,
    n_wanted: int,
    *,
    tol: float,
    max_iter: int,
    seed: int,
    n_jobs: int | None = None,
) -> np.ndarray | None:
    """Vectors near the leading eigenvectors of a graph, from the eigenvectors of a sample: a quarter of the rows.

    The eigenvectors of the sample start from a sample of the sample. A row gets the mean of the rows of the sample,
    50,000 at most, that are most similar to it by the first 16 grids.
    On 10^4 rows in curved clusters, residuals are below 0.001 after 4 products with all rows instead of 71. None for
    fewer than 4,000 rows, and for features that are not bins.
    """
    n_rows = Z.shape[0]
    n_sample = min(_MOST_ROWS, n_rows // _TIMES_AS_MANY)
    if n_sample < max(_LEAST_ROWS, n_wanted + 1) or not (
        isinstance(Z, BinMatrix) and isinstance(graph, NeighbourGraph)
    ):
        return None
    rows = Z.take(rows_of_sample(n_rows, seed, n_sample))
    sample = NeighbourGraph(rows, seed)
    options: dict[str, Any] = {"tol": max(tol, _NEAR), "max_iter": max_iter, "seed": seed, "n_jobs": n_jobs}
    start = start_from_sample(rows, sample, n_wanted, **options)
    found = leading_eigenvectors(sample.normalised, sample.known, n_wanted, start=start, **options)
    means = NeighbourMeans.of_values(_few_grids(rows), sample.by_root_degree(found.vectors), seed)
    return means.of_rows(_few_grids(Z)) * graph.known[:, None]


def _few_grids(Z: BinMatrix) -> BinMatrix:
    return BinMatrix._trusted(Z.codes[:_FEW_GRIDS], Z.offsets[: _FEW_GRIDS + 1], Z.dtype, Z.n_jobs)
