"""Base of the spectral estimators: the eigenvectors of the graph of the rows."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.fit_rollback import fit_method
from binfeat._common.progress import Progress
from binfeat._common.validation import check_integer, check_real, seed_of
from binfeat._common.warned import warn
from binfeat._rows.sources import is_source
from binfeat.graph.eigenvectors import Eigenvectors, leading_eigenvectors
from binfeat.graph.estimator import GraphEstimator
from binfeat.graph.similarity import Graph
from binfeat.graph.start import start_from_sample


class SpectralEstimator(GraphEstimator):
    """Base of the spectral estimators: coordinates of rows from the eigenvectors of their graph."""

    eigenvalues_: np.ndarray
    eigengaps_: np.ndarray

    @fit_method
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the eigenvectors of the graph of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
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
        table = self._check(X, reset=True)
        if not is_source(table):
            self._check_size(table.shape[0])
        gaps = []
        for gamma in self._candidates():
            made, Z, graph = self._graph(table, gamma)
            self._check_size(Z.shape[0])
            start = start_from_sample(Z, graph, n_components + 1, **options)
            options_of_all = {**options, "start": start, "callback": lambda: not progress.step("iteration")}
            found = leading_eigenvectors(graph.normalised, graph.known, n_components, **options_of_all)
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
        """The values of gamma to compare."""
        if self.gammas is None:
            return [self.gamma]
        if isinstance(self.gammas, str) or not hasattr(self.gammas, "__len__") or not len(self.gammas):
            raise ValueError(f"gammas must be a sequence of at least one gamma, or None, got {self.gammas!r}.")
        return self.gammas

    def _keep(self, made: Any, graph: Graph, found: Eigenvectors, tol: float) -> None:
        """Set the attributes, also those from which new rows get their coordinates."""
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
