"""Base of the spectral estimators: the eigenvectors of the graph of the rows."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.fit_rollback import fit_method
from binfeat._common.progress import Progress
from binfeat._common.validation import check_integer, check_real, seed_of
from binfeat._common.warned import warn
from binfeat._rows.products import Features
from binfeat._rows.sources import is_source
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.graph.eigenvectors import Eigenvectors, leading_eigenvectors
from binfeat.graph.estimator import GraphEstimator, rows_of_sample
from binfeat.graph.neighbors import NeighborGraph, NeighborMeans
from binfeat.graph.similarity import Graph

_MOST_ROWS = 50_000  # maximum of a sample: 10^6 rows then need 2 products, 13 with a sample of 10,000
_LEAST_ROWS = 1_000  # minimum of a sample
_TIMES_AS_MANY = 4  # least ratio of all rows to rows of a sample
_FEW_GRIDS = 16  # grids for comparing all rows with the sample
_NEAR = 1e-3  # residuals of the sample; smaller ones do not improve the start for all rows


class SpectralEstimator(GraphEstimator):
    eigenvalues_: np.ndarray
    eigengaps_: np.ndarray

    @fit_method
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the eigenvectors of the graph of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
            With a map of bins, the rows of a source are kept in memory during the fit, for distances.
        y : None
            Ignored.

        Returns
        -------
        self : SpectralEmbedding or SpectralClustering
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, X holds infinity, there are too few rows, or no rows are similar.
        """
        self._check_map()
        progress = Progress(self, X, None)
        options: dict[str, Any] = {
            "tol": check_real(self.tol, "tol", minimum=0.0),
            "max_iter": check_integer(self.max_iter, "max_iter", 1),
            "seed": seed_of(self.random_state),
            "n_jobs": self.n_jobs,
        }
        n_components = self._check_size()
        progress.begin()
        table = X
        if not is_source(X):  # the map checks the blocks of a source
            table = self._check(X, reset=True)
            self._check_size(table.shape[0])
        table, sample = self._fill(table)
        gaps = []
        for gamma in self._candidates():
            made, Z, graph = self._graph(table, sample, gamma)
            self._check_size(Z.shape[0])
            start = _start_from_sample(Z, graph, n_components + 1, **options)
            options_of_all = {**options, "start": start, "callback": lambda: not progress.step("iteration")}
            known = graph.known_vectors(n_components + 1)
            found = leading_eigenvectors(graph.normalized, known, n_components, **options_of_all)
            gaps.append(-np.diff(np.append(1.0, found.values)[n_components:]).sum())
            if gaps[-1] == max(gaps):
                kept = made, graph, found
        self._keep(*kept, options["tol"])
        self.__dict__.pop("eigengaps_", None)  # of an earlier fit
        if self.gammas is not None:
            self.eigengaps_ = np.array(gaps)
        progress.end()
        return self

    def _candidates(self) -> Sequence[Any]:
        if self.gammas is None:
            return [self.gamma]
        is_sequence = hasattr(self.gammas, "__len__") and not isinstance(self.gammas, str)
        if not is_sequence or getattr(self.gammas, "shape", None) == () or not len(self.gammas):
            raise ValueError(f"gammas must be a sequence of at least one gamma, or None, got {self.gammas!r}.")
        return self.gammas

    def _keep(self, made: Any, graph: Graph, found: Eigenvectors, tol: float) -> None:
        """Set the attributes, including those for coordinates of new rows."""
        self._keep_map(made)
        self.eigenvalues_, self.n_iter_ = found.values, found.n_products
        means, coordinates = graph.means(graph.by_root_degree(found.vectors))
        self._means = means.arrays()
        self._keep_rows(coordinates, graph)
        residual = found.residuals.max(initial=0.0)
        if residual > tol:
            warn(
                f"Eigenvectors have residuals up to {residual:.2g} after {self.n_iter_} products, above tol={tol:.2g}: "
                "increase max_iter or tol, or decrease gamma.",
                ConvergenceWarning,
            )


def _start_from_sample(
    Z: Features, graph: Graph, n_wanted: int, *, tol: float, seed: int, **options: Any
) -> np.ndarray | None:
    """Return vectors near the leading eigenvectors of a graph, from the eigenvectors of a quarter of the rows.

    The eigenvectors of the sample start from a sample of the sample. On 10^4 rows in curved clusters, 4 products with
    all rows are enough instead of 71. None for fewer than 4,000 rows, and for features that are not bins.
    """
    n_rows = Z.shape[0]
    n_sample = min(_MOST_ROWS, n_rows // _TIMES_AS_MANY)
    if n_sample < max(_LEAST_ROWS, n_wanted + 1) or not (isinstance(Z, BinMatrix) and isinstance(graph, NeighborGraph)):
        return None
    chosen = rows_of_sample(n_rows, seed, n_sample)
    rows = Z.take(chosen)
    sample = NeighborGraph(rows, graph.rows.take(chosen), seed, graph.stages)
    options |= {"tol": max(tol, _NEAR), "seed": seed}
    start = _start_from_sample(rows, sample, n_wanted, **options)
    known = sample.known_vectors(n_wanted + 1)
    found = leading_eigenvectors(sample.normalized, known, n_wanted, start=start, **options)
    means = NeighborMeans.of_values(_few_grids(rows), sample.by_root_degree(found.vectors), seed)
    return means.of_rows(_few_grids(Z)) * graph.known[:, None]


def _few_grids(Z: BinMatrix) -> BinMatrix:
    return BinMatrix._trusted(Z.codes[:_FEW_GRIDS], Z.offsets[: _FEW_GRIDS + 1], Z.dtype, Z.n_jobs)
