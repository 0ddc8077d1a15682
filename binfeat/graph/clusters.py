"""Spectral embedding and clustering at linear cost: `SpectralEmbedding` and `SpectralClustering`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from binfeat._common.array_types import ArrayLike
from binfeat._common.subsets import slices
from binfeat._common.validation import check_integer, seed_of
from binfeat._common.warned import warn
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.graph.saved import check_clusters, check_embedding
from binfeat.graph.similarity import Graph
from binfeat.graph.spectral import SpectralEstimator

__all__ = ["SpectralClustering", "SpectralEmbedding"]

_MOST_ROWS = 20_000  # rows from which k-means learns its centers
_ROWS_OF_A_COMPONENT = 100  # minimum of these rows, or all
_SHARE_OF_FEW = 0.01  # share of the rows below which a component is likely to consist of outliers
_ROWS_AT_A_TIME = 2**15  # rows per thread and step in the assignment of clusters


class SpectralEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SpectralEstimator):
    """Compute spectral coordinates of rows, also of new rows, in linear time.

    The graph connects similar rows, which often share bins of random binning features. Rows that are connected by many
    paths have similar coordinates. With the similarities W of the training rows and their row sums D, a coordinate of a
    row is the mean of ``D^-1/2 u`` over the 16 most similar training rows (the row itself included), where u is one of
    the leading eigenvectors of ``D^-1/2 W D^-1/2`` after the first. The same mean defines coordinates of new rows. It
    approximates the diffusion map of one step (Coifman & Lafon 2006).

    A missing value (NaN) of a training row or of a new row is replaced by the median of its input, or by the most
    frequent category, of at most 10,000 random training rows. If missing values themselves are informative, add an
    input that marks them.

    Parameters
    ----------
    n_components : int, default=2
        Number of coordinates.
    features : transformer, default=None
        Feature map of this package; it is cloned. None is ``RandomBinning(n_grids=256, min_count=2)``.
    gamma : "scale", None, float or array-like of shape (n_inputs,), default="scale"
        Inverse length scale, one for all inputs or one per input. "scale" selects the gamma at which the bin of a row
        contains 3 rows (geometric mean over rows and grids); features other than bins define their own meaning. None
        keeps the gamma of `features`.
    gammas : sequence, default=None
        Candidate values of `gamma`. The value with the widest gap between the last eigenvalue used and the next is
        selected.
    tol : float, default=1e-4
        Tolerance of the residual norm of an eigenvector. The eigenvalues are at most 1. Decrease it if rows along a
        long curve are not in order, or their clusters are mixed; increase it for shorter fits.
    max_iter : int, default=1000
        Maximum number of products with a block of vectors.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, by default all threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_rows, n_components)
        Coordinates of the training rows. The degree-weighted mean square of a coordinate is usually between its squared
        eigenvalue and 1, because each mean includes the row itself. For features other than bins it equals the
        squared eigenvalue.
    eigenvalues_ : ndarray of shape (n_found,)
        Largest eigenvalues of the normalized similarities after the first, which is 1, in descending order. One more
        than the number of coordinates.
    eigengaps_ : ndarray of shape (n_gammas,)
        Eigengap for each value of `gammas`. Only with `gammas`.
    n_iter_ : int
        Number of products of all rows with a block of vectors.
    gamma_ : ndarray of shape (n_inputs,)
        Inverse length scale of each input.
    features_ : transformer
        The fitted map. An eighth of the grids of a `RandomBinning` have larger length scales.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_inputs,)
        Number of inputs, and their names, when X has string column names.

    Warns
    -----
    UserWarning
        If more than a tenth of the rows share no bin with another row, or if, with ``gamma="scale"``, an input has more
        than five times the typical spread and dominates the similarities.
    ConvergenceWarning
        If residuals are above `tol` after `max_iter` products.

    See Also
    --------
    SpectralClustering : Clusters in these coordinates.
    sklearn.manifold.SpectralEmbedding : Embedding of a given graph, without coordinates for new rows.

    Notes
    -----
    The similarity of two rows is the transition probability of a random walk, which selects a random grid and then a
    random other row of the same bin: ``W_ij = 1/P sum_p [i and j share the bin b of grid p] / (n_b - 1)`` for P grids
    and bins of n_b rows. This is a hypergraph with the bins as edges (Zhou, Huang & Schoelkopf 2006). Neighbors are
    close in dense regions and farther away in sparse regions.

    The graph is ``(W + W') / 2``, restricted to 15 neighbors of each row: of the 31 most similar rows, those with the
    smallest Euclidean distance of inputs times gamma. The time is linear in the number of rows, because a row is
    compared with at most 16 rows of a bin. For features other than bins, ``W = Z Z'`` is not restricted, and is applied
    by products with the features.

    One length scale is too short where rows are sparse, for example in the tail of a cluster. Therefore an eighth of at
    least 32 grids have 2, 4, 8 or 16 times the length scale. These grids are used only for rows with fewer than 7
    neighbors, in ascending order of their length scales, until a row has 7 neighbors.

    References
    ----------
    L. Wu, P.-Y. Chen, I. Yen, F. Xu, Y. Xia and C. Aggarwal, "Scalable Spectral Clustering Using Random Binning
    Features", KDD 2018.

    D. Zhou, J. Huang and B. Schoelkopf, "Learning with Hypergraphs", NIPS 2006.

    K. Wu and H. Simon, "Thick-Restart Lanczos Method for Large Symmetric Eigenvalue Problems", SIAM Journal on Matrix
    Analysis and Applications 22, 2000 (the solver).

    R. Coifman and S. Lafon, "Diffusion Maps", Applied and Computational Harmonic Analysis 21, 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from binfeat import SpectralEmbedding
    >>> X, ring = make_circles(500, factor=0.3, noise=0.03, random_state=0)
    >>> embedding = SpectralEmbedding(n_components=1, random_state=0).fit(X)
    >>> outer, inner = embedding.transform([[1.0, 0.0], [0.0, 0.3]]).ravel()
    >>> bool(outer * inner < 0)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    _check_state = staticmethod(check_embedding)

    embedding_: np.ndarray

    def __init__(
        self,
        n_components: int = 2,
        *,
        features: BaseEstimator | None = None,
        gamma: "ArrayLike | None" = "scale",
        gammas: "Sequence[ArrayLike] | None" = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(features, gamma, tol, max_iter, n_jobs, random_state)
        self.n_components, self.gammas = n_components, gammas

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit to rows, and return their coordinates.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
        y : None
            Ignored.

        Returns
        -------
        embedding : ndarray of shape (n_rows, n_components)
            Coordinates of the rows.
        """
        return self.fit(X).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Compute coordinates of new rows or of training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)

        Returns
        -------
        embedding : ndarray of shape (n_rows, n_components)
            Coordinates; 0 for a row that shares no bin with a training row.
        """
        return self._means_for(X)

    def _check_size(self, n_rows: float = np.inf) -> int:
        n_components = check_integer(self.n_components, "n_components", 1)
        if n_components >= n_rows:
            raise ValueError(f"n_components={n_components} must be below n_samples={n_rows}.")
        return n_components

    def _keep_rows(self, coordinates: np.ndarray, graph: Graph) -> None:
        self.embedding_ = coordinates

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]


class SpectralClustering(ClusterMixin, SpectralEstimator):
    """Find clusters of any shape by spectral clustering, in linear time, and assign new rows to them.

    Rows are similar if they share many bins of random binning features. A graph connects similar rows, and clusters are
    parts of the graph with few edges between them. A row is represented by the coordinate 1 and ``n_clusters - 1``
    coordinates of `SpectralEmbedding`, divided by the length of this vector. k-means finds clusters of these vectors
    (Ng, Jordan & Weiss 2001; with random binning, Wu et al. 2018).

    A missing value (NaN) of a training row or of a new row is replaced by the median of its input, or by the most
    frequent category, of at most 10,000 random training rows. If missing values themselves are informative, add an
    input that marks them.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    features : transformer, default=None
        Feature map of this package; it is cloned. None is ``RandomBinning(n_grids=256, min_count=2)``.
    gamma : "scale", None, float or array-like of shape (n_inputs,), default="scale"
        Inverse length scale, one for all inputs or one per input. "scale" selects the gamma at which the bin of a row
        contains 3 rows (geometric mean over rows and grids); features other than bins define their own meaning. None
        keeps the gamma of `features`.
    gammas : sequence, default=None
        Candidate values of `gamma`. The value with the widest gap between the last eigenvalue used and the next is
        selected.
    tol : float, default=1e-4
        Tolerance of the residual norm of an eigenvector. The eigenvalues are at most 1. Decrease it if rows along a
        long curve are not in order, or their clusters are mixed; increase it for shorter fits.
    max_iter : int, default=1000
        Maximum number of products with a block of vectors.
    n_init : int, default=10
        Number of runs of k-means, with at most 20,000 rows.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, by default all threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int32
        Cluster of each training row.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centers of the clusters in normalized coordinates.
    eigenvalues_ : ndarray of shape (n_found,)
        Largest eigenvalues of the normalized similarities after the first, which is 1, in descending order. One more
        than the number of coordinates.
    eigengaps_ : ndarray of shape (n_gammas,)
        Eigengap for each value of `gammas`. Only with `gammas`.
    n_iter_ : int
        Number of products of all rows with a block of vectors.
    gamma_ : ndarray of shape (n_inputs,)
        Inverse length scale of each input.
    features_ : transformer
        The fitted map. An eighth of the grids of a `RandomBinning` have larger length scales.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_inputs,)
        Number of inputs, and their names, when X has string column names.

    Warns
    -----
    UserWarning
        If more than a tenth of the rows share no bin with another row, if, with ``gamma="scale"``, an input has more
        than five times the typical spread and dominates the similarities, or if the graph has more connected
        components than `n_clusters`. If there are at most `n_clusters` components, they have equal weights in k-means,
        so no cluster contains rows of two components. A component with less than 1 % of the rows is then reported,
        because it may consist of outliers.
    ConvergenceWarning
        If residuals are above `tol` after `max_iter` products.

    See Also
    --------
    SpectralEmbedding : The coordinates; its Notes describe the graph.
    sklearn.cluster.KMeans : Faster, and as accurate for round clusters.

    References
    ----------
    L. Wu, P.-Y. Chen, I. Yen, F. Xu, Y. Xia and C. Aggarwal, "Scalable Spectral Clustering Using Random Binning
    Features", KDD 2018.

    A. Ng, M. Jordan and Y. Weiss, "On Spectral Clustering: Analysis and an Algorithm", NIPS 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from binfeat import SpectralClustering
    >>> X, moon = make_moons(1000, noise=0.05, random_state=0)
    >>> clusters = SpectralClustering(2, random_state=0).fit(X)
    >>> bool(adjusted_rand_score(clusters.labels_, moon) > 0.95)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    _check_state = staticmethod(check_clusters)

    labels_: np.ndarray
    cluster_centers_: np.ndarray

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        features: BaseEstimator | None = None,
        gamma: "ArrayLike | None" = "scale",
        gammas: "Sequence[ArrayLike] | None" = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        n_init: int = 10,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(features, gamma, tol, max_iter, n_jobs, random_state)
        self.n_clusters, self.gammas, self.n_init = n_clusters, gammas, n_init

    def predict(self, X: Any) -> np.ndarray:
        """Predict clusters of new rows or of training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)

        Returns
        -------
        labels : ndarray of shape (n_rows,), int32
            Cluster of each row.
        """
        return self._nearest(self._means_for(X))

    def _check_size(self, n_rows: float = np.inf) -> int:
        n_clusters = check_integer(self.n_clusters, "n_clusters", 1)
        check_integer(self.n_init, "n_init", 1)
        if n_clusters > n_rows:
            raise ValueError(f"n_clusters={n_clusters} must be at most n_samples={n_rows}.")
        return n_clusters - 1

    def _keep_rows(self, coordinates: np.ndarray, graph: Graph) -> None:
        seed = seed_of(self.random_state)
        rows, weights = self._rows_for_centers(graph.components, seed)
        means = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed % 2**32)
        with threadpool_limits(1):  # sums depend on the number of threads
            self.cluster_centers_ = means.fit(_directions(coordinates[rows]), sample_weight=weights).cluster_centers_
        self.labels_ = self._nearest(coordinates)

    def _rows_for_centers(self, components: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return rows from which k-means learns its centers, and their weights or None.

        Up to `n_clusters` components have equal weights. Directions of rows of two components are orthogonal, so a
        common center would cost 1, in units of a component's weight, and a second center for one component gains less.
        """
        rows = np.random.default_rng(seed).permutation(len(components))[:_MOST_ROWS]
        n_components = components.max() + 1
        if n_components > self.n_clusters:
            warn(
                f"The graph of similar rows has {n_components:,} connected components, more than "
                f"n_clusters={self.n_clusters}, so a cluster can contain several components. Decrease gamma, or "
                "increase n_clusters."
            )
        if not 1 < n_components <= self.n_clusters:
            return np.sort(rows), None
        smallest = np.bincount(components[components >= 0]).min()
        if smallest < _SHARE_OF_FEW * len(components):
            warn(
                f"A cluster contains only {smallest} of {len(components):,} rows, which have no similar rows outside "
                "it. Remove these rows if they are outliers, or increase n_clusters."
            )
        some = [np.flatnonzero(components == k)[:_ROWS_OF_A_COMPONENT] for k in range(n_components)]
        rows = np.unique(np.concatenate([rows, *some]))
        own = components[rows]
        sizes = np.bincount(own[own >= 0])
        return rows, np.where(own >= 0, rows.size / n_components / sizes[own], 1.0)

    def _nearest(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the cluster of each row.

        In a forked child scikit-learn's `pairwise_distances_argmin` waits forever for OpenMP's threads.
        """
        centers, labels = self.cluster_centers_, np.empty(len(coordinates), np.int32)
        half = (centers**2).sum(axis=1) / 2

        def label(rows: slice) -> None:
            labels[rows] = (half - _directions(coordinates[rows]) @ centers.T).argmin(axis=1)

        with one_blas_thread():
            side_by_side(label, slices(len(labels), _ROWS_AT_A_TIME), getattr(self.features_, "n_jobs", None))
        return labels


def _directions(coordinates: np.ndarray) -> np.ndarray:
    whole = np.column_stack([np.ones(len(coordinates)), coordinates])
    return whole / np.linalg.norm(whole, axis=1, keepdims=True)
