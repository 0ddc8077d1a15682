"""Spectral embedding and clustering at linear cost: `SpectralEmbedding` and `SpectralClustering`."""

import warnings

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from threadpoolctl import threadpool_limits

from binfeat._common.docstrings import filled
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.progress import Progress
from binfeat._common.validation import callers_level, check_integer, check_real, seed_of
from binfeat._graph.docs import TEXTS as SHARED
from binfeat._graph.eigenvectors import leading_eigenvectors
from binfeat._graph.estimator import GraphEstimator
from binfeat._graph.start import start_from_sample
from binfeat._rows.sources import is_source

__all__ = ["SpectralClustering", "SpectralEmbedding"]

_MOST_ROWS = 20_000  # from which k-means learns its centres

TEXTS = SHARED | {
    "parameters": """\
$features
$gamma
gammas : sequence, default=None
    Several values of `gamma` instead, of which the one with the widest eigengap is taken: the difference of the last
    eigenvalue used and the next one.
tol : float, default=1e-3
    Largest residual norm of an eigenvector. The eigenvalues are at most 1.
max_iter : int, default=200
    Maximum number of products with a block of vectors.""",
    "rest": """\
$n_jobs
$random_state""",
    "attributes": """\
eigenvalues_ : ndarray of shape (n_found,)
    Largest eigenvalues of the normalised similarities in falling order, without the first, which is 1 and has a
    constant vector; one more than there are coordinates.
eigengaps_ : ndarray of shape (n_gammas,)
    Eigengap with each of `gammas`. Only if `gammas` are given.
n_iter_ : int
    Number of products with a block of vectors. With bins, the first block comes from the eigenvectors of a quarter of
    4,000 rows or more, 50,000 at most, whose products are not counted.
$gamma_
$features_
$inputs""",
    "fit": """\
Find the eigenvectors of the graph of the rows.

Parameters
----------
$X
$y

$self

Raises
------
TypeError, ValueError
    If a parameter is out of range, X holds infinity, there are too few rows, or no rows are similar.""",
    "warns": """\
Warns
-----
UserWarning
    If more than a tenth of the rows share no bin with another row.
ConvergenceWarning
    If residuals are above `tol` after `max_iter` products.""",
    "references": """\
References
----------
L. Wu, P.-Y. Chen, I. Yen, F. Xu, Y. Xia and C. Aggarwal, "Scalable Spectral Clustering Using Random Binning
Features", KDD 2018.

D. Zhou, J. Huang and B. Schoelkopf, "Learning with Hypergraphs", NIPS 2006.

K. Wu and H. Simon, "Thick-Restart Lanczos Method for Large Symmetric Eigenvalue Problems", SIAM Journal on Matrix
Analysis and Applications 22, 2000 (the solver).""",
    "X": """\
X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
    Or a source of blocks of its rows, see `binfeat.blocks`.""",
}


class _Spectral(GraphEstimator):
    """Base of both: coordinates of rows from the eigenvectors of their graph."""

    def _fit(self, X):
        self._check_map()
        progress = Progress(self, X, None)
        options = {
            "tol": check_real(self.tol, "tol", minimum=0.0),
            "max_iter": check_integer(self.max_iter, "max_iter", 1),
            "seed": seed_of(self.random_state),
            "n_jobs": self.n_jobs,
        }
        n_components = self._check_size()

        def stops():
            return not progress.step("iteration")

        progress.begin()
        table = self._check(X, reset=True)
        if not is_source(table):
            self._check_size(table.shape[0])
        gaps = []
        for gamma in self._candidates():
            made, Z, graph = self._graph(table, gamma)
            self._check_size(Z.shape[0])
            start = start_from_sample(Z, graph, n_components + 1, **options)
            found = leading_eigenvectors(
                graph.normalised, graph.known, n_components, start=start, callback=stops, **options
            )
            gaps.append(-np.diff(np.append(1.0, found.values)[n_components:]).sum())
            if gaps[-1] == max(gaps):
                kept = made, graph, found
        self._keep(*kept, options["tol"])
        self.__dict__.pop("eigengaps_", None)  # of an earlier fit
        if self.gammas is not None:
            self.eigengaps_ = np.array(gaps)
        progress.end()

    def _candidates(self):
        """The values of gamma to compare."""
        if self.gammas is None:
            return [self.gamma]
        if isinstance(self.gammas, str) or not hasattr(self.gammas, "__len__") or not len(self.gammas):
            raise ValueError(f"gammas must be a sequence of at least one gamma, or None, got {self.gammas!r}.")
        return self.gammas

    def _keep(self, made, graph, found, tol):
        """Set the attributes, among them what coordinates of new rows are made of."""
        self._keep_map(made)
        self.eigenvalues_, self.n_iter_ = found.values, found.n_products
        means, coordinates = graph.means(graph.by_root_degree(found.vectors))
        self._means = means.arrays()
        self._keep_rows(coordinates)
        residual = found.residuals.max(initial=0.0)
        if residual > tol:
            warnings.warn(
                f"Eigenvectors have residuals up to {residual:.2g} after {self.n_iter_} products, above tol={tol:.2g}: "
                "raise max_iter or tol, or lower gamma.",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )


@filled(TEXTS)
class SpectralEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Spectral):
    """Spectral embedding of rows on the graph of random binning features, at linear cost, for new rows too.

    Rows that are linked by many similar rows come to lie side by side. With the similarities W of the training rows and
    their row sums D, a coordinate of a row is the mean of ``D^-1/2 u`` over the 16 training rows that are most similar
    to it, itself among them, where u is one of the leading eigenvectors of ``D^-1/2 W D^-1/2`` after the first. So new
    rows have coordinates too. It is near the diffusion map of one step (Coifman & Lafon 2006).

    $similarity

    Parameters
    ----------
    n_components : int, default=2
        Number of coordinates.
    $parameters
    $rest

    Attributes
    ----------
    embedding_ : ndarray of shape (n_rows, n_components)
        Coordinates of the training rows; their squares have means about the squares of the eigenvalues, weighted by
        degrees.
    $attributes

    $warns

    See Also
    --------
    SpectralClustering : Clusters in these coordinates.
    sklearn.manifold.SpectralEmbedding : Of a given graph; without coordinates of new rows.

    $references

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

    def __init__(
        self,
        n_components=2,
        *,
        features=None,
        gamma="scale",
        gammas=None,
        tol=1e-3,
        max_iter=200,
        n_jobs=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.features = features
        self.gamma = gamma
        self.gammas = gammas
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y=None):
        """$fit"""
        self._fit(X)
        return self

    def fit_transform(self, X, y=None):
        """Fit, and give the coordinates of the same rows.

        Parameters
        ----------
        $X
        $y

        Returns
        -------
        embedding : ndarray of shape (n_rows, n_components)
        """
        return self.fit(X).embedding_

    def transform(self, X):
        """Coordinates of rows, new ones or those of `fit`.

        Parameters
        ----------
        $rows

        Returns
        -------
        embedding : ndarray of shape (n_rows, n_components)
            0 for a row that shares no bin with a training row.
        """
        return self._means_for(X)

    def _check_size(self, n_rows=np.inf):
        n_components = check_integer(self.n_components, "n_components", 1)
        if n_components >= n_rows:
            raise ValueError(f"n_components={n_components} must be below n_samples={n_rows}.")
        return n_components

    def _keep_rows(self, coordinates):
        self.embedding_ = coordinates

    @property
    def _n_features_out(self):
        return self.embedding_.shape[1]


@filled(TEXTS)
class SpectralClustering(ClusterMixin, _Spectral):
    """Spectral clustering on the graph of random binning features, at linear cost, with labels for new rows.

    Clusters are what few similarities cross, whatever their shape. The rows get the coordinates of
    `SpectralEmbedding`, one fewer than clusters, with 1 before them; they are divided by their length, and k-means
    finds the clusters among them (Ng, Jordan & Weiss 2001; with random binning, Wu et al. 2018).

    $similarity

    Parameters
    ----------
    n_clusters : int, default=8
    $parameters
    n_init : int, default=10
        Number of runs of k-means.
    $rest

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int32
        Cluster of each training row.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centres among the divided coordinates.
    $attributes

    $warns

    See Also
    --------
    SpectralEmbedding : The coordinates.
    sklearn.cluster.KMeans : Faster, and as good where clusters are round.

    Notes
    -----
    K-means learns its centres from at most 20,000 rows.

    $references

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

    def __init__(
        self,
        n_clusters=8,
        *,
        features=None,
        gamma="scale",
        gammas=None,
        tol=1e-3,
        max_iter=200,
        n_init=10,
        n_jobs=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.features = features
        self.gamma = gamma
        self.gammas = gammas
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @all_or_nothing
    def fit(self, X, y=None):
        """$fit"""
        self._fit(X)
        return self

    def predict(self, X):
        """Clusters of rows, new ones or those of `fit`.

        Parameters
        ----------
        $rows

        Returns
        -------
        labels : ndarray of shape (n_rows,), int32
        """
        return self._nearest(self._means_for(X))

    def _check_size(self, n_rows=np.inf):
        n_clusters = check_integer(self.n_clusters, "n_clusters", 1)
        check_integer(self.n_init, "n_init", 1)
        if n_clusters > n_rows:
            raise ValueError(f"n_clusters={n_clusters} must be at most n_samples={n_rows}.")
        return n_clusters - 1

    def _keep_rows(self, coordinates):
        seed = seed_of(self.random_state)
        rows = np.sort(np.random.default_rng(seed).permutation(len(coordinates))[:_MOST_ROWS])
        means = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed % 2**32)
        with threadpool_limits(1):  # its sums depend on the number of threads
            self.cluster_centers_ = means.fit(_directions(coordinates[rows])).cluster_centers_
        self.labels_ = self._nearest(coordinates)

    def _nearest(self, coordinates):
        return pairwise_distances_argmin(_directions(coordinates), self.cluster_centers_).astype(np.int32)


def _directions(coordinates):
    """Coordinates with 1 before them, divided by their length."""
    whole = np.column_stack([np.ones(len(coordinates)), coordinates])
    return whole / np.linalg.norm(whole, axis=1, keepdims=True)
