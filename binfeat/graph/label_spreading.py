"""Semi-supervised classification on the graph of all rows: `LabelSpreading`."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, column_or_1d

from binfeat._common.array_types import ArrayLike
from binfeat._common.arrays import quotients
from binfeat._common.fit_rollback import fit_method
from binfeat._common.labels import check_labels, label_array, require_two
from binfeat._common.progress import Progress
from binfeat._common.validation import (
    check_flag,
    check_integer,
    check_real,
    check_share,
    require_y,
)
from binfeat._common.warned import warn
from binfeat._rows.scored import SourceScorer
from binfeat._rows.sources import is_source
from binfeat.graph.estimator import GraphEstimator
from binfeat.graph.saved import check_spread_labels
from binfeat.graph.scale import distinct_rows
from binfeat.graph.similarity import Graph
from binfeat.linear import cg
from binfeat.linear.result import Result, SolverOptions

__all__ = ["LabelSpreading"]

_UNLABELED = -1


class LabelSpreading(SourceScorer, ClassifierMixin, GraphEstimator):
    """Classify a table with few labels, by spreading them over the graph of similar rows.

    The class scores of a row are a weighted average of its neighbors' scores and its own label. `predict` uses the
    mean score of the 16 most similar distinct training rows, also for new rows.

    Scores depend on the shares of the classes among the labels. If classes overlap and a rare class has as many labels
    as a frequent one, the rare class is predicted too often. To avoid this, label a random sample of the rows.

    A missing value (NaN) of a training row or of a new row is replaced by the median of its input, or by the most
    frequent category, of at most 10,000 random training rows. If missing values themselves are informative, add an
    input that marks them.

    Parameters
    ----------
    alpha : float, default=0.98
        Weight of the neighbors' scores, above 0 and below 1; the weight of the row's own label is ``1 - alpha``.
    clamp : bool, default=False
        If True, labeled rows keep their labels.
    features : transformer, default=None
        Feature map of this package; it is cloned. None is ``RandomBinning(n_grids=256, min_count=2)``.
    gamma : "scale", None, float or array-like of shape (n_inputs,), default="scale"
        Inverse length scale, one for all inputs or one per input. "scale" selects the gamma at which the bin of a row
        contains 3 rows (geometric mean over rows and grids); features other than bins define their own meaning. None
        keeps the gamma of `features`.
    tol : float, default=1e-8
        Tolerance of the residual of the linear system, relative to its right-hand side Y; see Notes.
    max_iter : int, default=200
        Maximum number of iterations of the solver.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, by default all threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted, without -1.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        Scores of each training row, which sum to 1, or are 0 for a row without a path to a label.
    transduction_ : ndarray of shape (n_rows,)
        Label of each training row.
    n_iter_ : int
        Number of iterations of the solver.
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
        If the residual is above `tol` after `max_iter` iterations.

    See Also
    --------
    SpectralEmbedding : Coordinates of rows in a graph of similarities by bins.
    KernelMachineClassifier : More accurate if many rows have labels. It does not use rows without labels.
    sklearn.semi_supervised.LabelSpreading : Uses a graph of all similarities, or of nearest neighbors by distance.

    Notes
    -----
    The bins give 31 candidates for the neighbors of each row. The 7 candidates with the smallest Euclidean distance of
    inputs times gamma are its neighbors. For rows with fewer than 7 candidates, grids with larger length scales give
    more, as in `SpectralEmbedding`. The similarity W of two rows is 1 if each row is a neighbor of the other, 1/2 if
    only one of them is, and 0 otherwise. Features that are not bins use their own similarities as W. Copies of a row
    are one row of the graph, and their labels count as shares of the classes.

    Conjugate gradients solve ``(I - alpha S) F = Y`` for the scores F of all classes at once (Zhou et al. 2004). Here
    ``S = D^-1/2 W D^-1/2`` for the row sums D of W, and Y is 1 for the class of a labeled row and 0 elsewhere. With
    `clamp`, only the scores of unlabeled rows are solved for.

    References
    ----------
    D. Zhou, O. Bousquet, T. Lal, J. Weston and B. Schoelkopf, "Learning with Local and Global Consistency", NIPS 2004.

    X. Zhu, Z. Ghahramani and J. Lafferty, "Semi-Supervised Learning Using Gaussian Fields and Harmonic Functions", ICML
    2003 (clamped labels).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from binfeat import LabelSpreading
    >>> X, y = load_digits(return_X_y=True)
    >>> unlabeled = np.random.default_rng(0).random(len(y)) > 0.1
    >>> spread = LabelSpreading(random_state=0).fit(X, np.where(unlabeled, -1, y))
    >>> bool((spread.transduction_ == y)[unlabeled].mean() > 0.85)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    _check_state = staticmethod(check_spread_labels)

    _equal_weights = True

    classes_: np.ndarray
    label_distributions_: np.ndarray
    transduction_: np.ndarray

    def __init__(
        self,
        alpha: float = 0.98,
        *,
        clamp: bool = False,
        features: BaseEstimator | None = None,
        gamma: "ArrayLike | None" = "scale",
        tol: float = 1e-8,
        max_iter: int = 200,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        super().__init__(features, gamma, tol, max_iter, n_jobs, random_state)
        self.alpha, self.clamp = alpha, clamp

    @fit_method
    def fit(self, X: Any, y: "ArrayLike | None" = None) -> Self:
        """Spread the labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        y : array-like of shape (n_rows,), default=None
            Labels of at least two classes. -1 marks unlabeled rows. Required.

        Returns
        -------
        self : LabelSpreading

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, X contains infinity, lengths differ, there are fewer than two classes, or
            no rows are similar.
        """
        self._check_map()
        options = SolverOptions(check_real(self.tol, "tol", minimum=0.0), check_integer(self.max_iter, "max_iter", 1))
        alpha, clamp = check_share(self.alpha, "alpha"), check_flag(self.clamp, "clamp")
        if is_source(X):
            raise TypeError("X must be a table in memory, got a source of blocks.")
        X = self._check(X, reset=True)
        labeled, labels = self._check_y(X, y)
        progress = Progress(self, X, y)
        progress.begin()
        X, _ = self._fill(X)
        rows, places = distinct_rows(X)
        if rows.size == 1:
            rows = places = np.arange(X.shape[0])
        X = X[rows]
        made, _, graph = self._graph(X, self._sample(X), self.gamma)
        Y = self._shares_of_labels(labels, places[labeled], rows.size)
        system = _SpreadingSystem(graph, alpha, Y, Y.max(axis=1) > 0 if clamp else None)
        options = SolverOptions(options.tol, options.max_iter, callback=lambda _: not progress.step("iteration"))
        result = cg.solve(system, np.ones(Y.shape[1]), options)
        self._keep_map(made)
        self._keep(graph, result.solution + system.known, places, result, options.tol)
        if clamp:  # also if copies of a row have different labels
            self.transduction_[labeled] = labels
            self.label_distributions_[labeled] = labels[:, None] == self.classes_
        progress.end()
        return self

    def _check_y(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return a mask of the labeled rows, and their labels; set the classes."""
        require_y(type(self).__name__, y)
        y = column_or_1d(label_array(y), warn=True)
        check_consistent_length(X, y)
        labeled = np.ones(len(y), dtype=bool) if y.dtype.kind in "bUS" else np.asarray(y != _UNLABELED, dtype=bool)
        if not labeled.any():
            raise ValueError("y must have labels of at least two classes, but all rows are unlabeled (-1).")
        labels = check_labels(y[labeled])
        self.classes_ = np.unique(labels)
        if str(_UNLABELED) in self.classes_.tolist():
            raise ValueError("y contains the string '-1'. Pass an object array with the integer -1 for unlabeled rows.")
        require_two(self.classes_)
        return labeled, labels

    def _shares_of_labels(self, labels: np.ndarray, rows: np.ndarray, n_rows: int) -> np.ndarray:
        """Return shares of the classes among the labels of each row, (n_rows, n_classes); 0 without a label."""
        counts = np.zeros((n_rows, self.classes_.size), order="F")
        np.add.at(counts, (rows, np.searchsorted(self.classes_, labels)), 1.0)
        return quotients(counts, counts.sum(axis=1, keepdims=True))

    def _keep(self, graph: Graph, scores: np.ndarray, places: np.ndarray, result: Result, tol: float | None) -> None:
        """Set the attributes, given scores of distinct rows and the place of each row among them."""
        shares = np.maximum(scores, 0.0)
        distributions = quotients(shares, shares.sum(axis=1, keepdims=True))
        self._means = graph.means(distributions)[0].arrays()
        self.label_distributions_ = distributions[places]
        self.n_iter_ = result.n_iter
        self._prior = self.label_distributions_.mean(axis=0)
        is_reached = self.label_distributions_.any(axis=1, keepdims=True)
        known = np.where(is_reached, self.label_distributions_, self._prior)
        self.transduction_ = self.classes_[known.argmax(axis=1)]
        if result.advice:
            warn(
                f"Label spreading stopped after {result.n_iter} iterations with a relative residual of "
                f"{result.residuals[-1].max():.2g}, above tol={tol:.2g}. Increase max_iter or tol, or decrease alpha.",
                ConvergenceWarning,
            )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict shares of the classes among the 16 most similar distinct training rows, also of training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)

        Returns
        -------
        shares : ndarray of shape (n_rows, n_classes)
            Shares of the classes, which sum to 1. For a row without similar training rows, or with similar rows
            without a path to a label only, the shares among all training rows.
        """
        shares = self._means_for(X)
        total = shares.sum(axis=1, keepdims=True)
        prior = np.broadcast_to(self._prior / self._prior.sum(), shares.shape)
        return np.divide(shares, total, out=prior.copy(), where=total > 0)

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels of new rows or of training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            For training rows they can differ from `transduction_`, because they depend on neighbors only.
        """
        largest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[largest]


class _SpreadingSystem:
    """``(I - alpha S) F = Y``, for the ridge solver; F of `held` rows is fixed to Y."""

    def __init__(self, graph: Graph, alpha: float, Y: np.ndarray, held: np.ndarray | None) -> None:
        self._graph, self._alpha, self._free = graph, alpha, None if held is None else ~held[:, None]
        self.diagonal = np.zeros((len(Y), 1))
        self.known = np.zeros_like(Y) if held is None else Y * held[:, None]
        self.right = np.asfortranarray(Y if held is None else -self.apply(self.known, slice(None)))

    def apply(self, V: np.ndarray, targets: np.ndarray | slice) -> np.ndarray:
        """Return ``-alpha S V`` in the rows that are not held."""
        image = self._graph.normalized(V)
        image *= -self._alpha
        if self._free is not None:
            image *= self._free
        return image

    def intercept(self, V: np.ndarray) -> np.ndarray:
        return np.zeros(V.shape[1])
