"""Outliers by the counts of bins: `OutlierDetector`."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.validation import check_integer, names_of_inputs, seed_of
from binfeat._rows.row_sample import RowSample, orders_of
from binfeat._rows.sources import Survey, is_source
from binfeat.density.counted_bins import dense
from binfeat.density.estimator import CountingEstimator
from binfeat.features.binning.two_samples import N_PERMUTATIONS, Drift, drift_between
from binfeat.kernels.base import Kernel
from binfeat.kernels.lookup import binning_kernel

__all__ = ["OutlierDetector"]


class OutlierDetector(OutlierMixin, CountingEstimator):
    """Outlier and novelty detection by the counts of random bins, at linear cost.

    Each of `n_grids` random grids divides the input space into bins. The share of the training rows in the bin of a row
    is, on average over grids, the mean kernel value between the row and the training rows: a kernel density estimate
    that needs one hash and one look-up per grid. The score of a row x is

        ``mean_p log((1 + n_p(x)) / m_p)``

    where grid p counts m_p training rows, drawn at random, of which ``n_p(x)`` are in the bin of x. A training row is
    left out of its own bins, which also applies to any row that equals a training row.

    Parameters
    ----------
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        Kernel with a pitch law, as in `RandomBinning`.
    gamma : "scale", float or array-like of shape (n_inputs,), default="scale"
        Unit of the inverse length scales, one for all inputs or one for each; 0 ignores an input. "scale" is
        ``1 / (n_inputs * std)`` for each input, where a categorical or constant input has a standard deviation of 1
        and constant inputs are not counted.
    fineness : "auto", float or sequence of float, default="auto"
        Multiples of `gamma`. Grids are divided equally among several values. "auto" is the logarithm of the number of
        rows that a grid counts, limited to the range from 1 to 8. Increase it to detect outliers near dense regions,
        decrease it for outliers far from all other rows.
    input_share : "auto", float or sequence of float, default="auto"
        Probability that a grid uses an input; the length scales of the inputs that it uses are shortened by this
        factor. Grids are divided equally among several values. "auto" is 1 and 0.5, or 1 for up to 4 inputs.
    n_grids : int, default=64
        Number of grids. The standard deviation of a score falls with its square root.
    max_samples : int or None, default=4096
        Number of training rows that each grid counts, on average. Every grid draws its own rows, so that all training
        rows are used if there are at most ``n_grids * max_samples``. None counts all rows in every grid, which is
        slower for large tables. Increase it to distinguish regions with fewer than 1 in 4,096 of the rows.
    contamination : "auto" or float, default="auto"
        Share of outliers among the training rows, above 0 and at most 0.5. "auto" sets the threshold to the first
        quartile of their scores minus 1.5 interquartile ranges, or to the 1 % quantile if that is higher.
    categorical_features : array-like of bool, int or str, default=None
        Inputs that hold category numbers: a mask, positions, or column names.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, initially all threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.

    Attributes
    ----------
    offset_ : float
        Threshold: rows with lower scores are outliers.
    gamma_ : ndarray of shape (n_inputs,)
        Unit of the inverse length scales.
    n_rows_ : int
        Number of training rows.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_inputs,)
        Names of the inputs, when X has string column names.

    See Also
    --------
    RandomBinning : The grids as a feature map.
    sklearn.ensemble.IsolationForest : Random trees instead of grids.
    sklearn.neighbors.KernelDensity : Exact kernel density estimates, at quadratic cost.

    Notes
    -----
    Thresholds, length scales, explanations and drift tests are computed from a uniform sample of at most 10,000
    training rows. Scores are bitwise the same for any number of threads, any split
    into batches or blocks, dense and CSR input, and float32 values and their float64 copies. A missing value is similar
    to other missing values only.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007 (the grids).

    S. Sathe and C. Aggarwal, "Subspace Outlier Detection in Linear Time with Randomized Hashing", ICDM 2016 (mean
    logarithms of counts in grids on subsets of inputs).

    A. Gretton, K. Borgwardt, M. Rasch, B. Schoelkopf and A. Smola, "A Kernel Two-Sample Test", JMLR 13, 2012 (drift).

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import OutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> detector = OutlierDetector(random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.1], [5.0, -5.0]])
    array([ 1, -1])
    """

    __module__ = "binfeat"  # as saved files name it

    offset_: float
    gamma_: np.ndarray
    n_rows_: int
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        *,
        kernel: str | Kernel = "laplacian",
        gamma: str | float | ArrayLike = "scale",
        fineness: str | float | Sequence[float] = "auto",
        input_share: str | float | Sequence[float] = "auto",
        n_grids: int = 64,
        max_samples: int | None = 4096,
        contamination: str | float = "auto",
        categorical_features: ArrayLike | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.fineness = fineness
        self.input_share = input_share
        self.n_grids = n_grids
        self.max_samples = max_samples
        self.contamination = contamination
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the training rows in the bins of the grids.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
            See `binfeat.blocks`. A source is read twice.
        y : None
            Ignored.

        Returns
        -------
        self : OutlierDetector

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range or X has infinite values; the message names it.
        """
        self._check_parameters()
        seed = seed_of(self.random_state)
        if is_source(X):
            survey = Survey(X, self._check, RowSample.in_turn(seed))
            self._learn_blocks(survey.rows(), survey.n_rows, survey.sum, seed)
        else:
            X = self._check(X, reset=True)
            self._learn_blocks([X], X.shape[0], RowSample.of(X, seed), seed)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add more rows to the training rows.

        The first call sets the length scales, and the share of the rows that each grid counts by `max_samples`; later
        calls add counts and update the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        y : None
            Ignored.

        Returns
        -------
        self : OutlierDetector
        """
        if not hasattr(self, "_bin_keys"):
            return self.fit(X)
        X = self._check(X)
        self._require_sample("partial_fit")
        sample = self._sample + RowSample.of(X, self._seed, self._n_seen)
        counted = self._counted.plus(X, orders_of(X.shape[0], self._seed, self._n_seen))
        self._keep(counted, sample, self._n_seen + X.shape[0])
        return self

    @all_or_nothing
    def forget(self, X: Any) -> Self:
        """Remove rows from the training rows, such as the oldest rows of a sliding window.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
            Rows of earlier calls of `fit` or `partial_fit`.

        Returns
        -------
        self : OutlierDetector

        Raises
        ------
        ValueError
            If some of the rows are not training rows, no training row would be left, or grids count a part of the rows
            only: more than ``n_grids * max_samples``.
        """
        check_is_fitted(self)
        X = self._check(X)
        self._require_sample("forget")
        if not self._counted.turns.cover:
            raise ValueError(
                f"forget requires counts of all rows, but max_samples={self.max_samples} with n_grids={self.n_grids} "
                f"counts only a part of {self.n_rows_:,} rows. Fit with max_samples=None."
            )
        if X.shape[0] >= self.n_rows_:
            raise ValueError(f"X has {X.shape[0]} rows of {self.n_rows_} training rows; at least one row must remain.")
        counted = self._counted.minus(X)
        self._keep(counted, self._sample.take(counted.known(self._sample.rows)), self._n_seen)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Score of each row; lower is more abnormal.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            From ``-mean_p log(m_p)`` for rows without a training row in any of their bins, to 0.
        """
        if not hasattr(self, "_bin_keys"):
            check_is_fitted(self)  # takes as long as the score of a row
        elif self._is_plain(X) and (scores := self._counted.scores_of_few(X)) is not None:
            return scores
        return np.concatenate([self._counted.scores(rows) for rows in self._blocks(X)])

    def decision_function(self, X: Any) -> np.ndarray:
        """Score of each row minus the threshold; negative for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            ``score_samples(X) - offset_``.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return True for each outlier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        labels : ndarray of shape (n_rows,), int
            -1 for outliers, 1 for other rows.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def density(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Kernel density estimate: mean kernel value between each row and all training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        density : ndarray of shape (n_rows,)
            Unbiased estimate, over random grids, of the mean kernel value. The kernel is the mean over `fineness` and
            `input_share` of ``Skip(kernel, 1 - input_share)`` with the inverse length scales
            ``fineness * gamma_ / input_share``. A training row is not left out.
        standard_error : ndarray of shape (n_rows,)
            Standard error of the estimate over the grids.
        """
        check_is_fitted(self)
        parts = [self._counted.densities(rows) for rows in self._blocks(X)]
        density, standard_error = (np.concatenate(values) for values in zip(*parts))
        return density, standard_error

    def contributions(self, X: Any) -> np.ndarray:
        """Contribution of each input to the score of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)

        Returns
        -------
        contributions : ndarray of shape (n_rows, n_inputs)
            Mean increase in the score when the input is replaced by its value in 16 training rows with scores above the
            median. High values mark the inputs that make a row abnormal.
        """
        check_is_fitted(self)
        self._require_sample("contributions")
        return self._counted.rises(dense(self._check(X)), self._sample.rows)

    def drift(
        self, X: Any, *, n_permutations: int = N_PERMUTATIONS, random_state: int | np.random.RandomState | None = 0
    ) -> Drift:
        """Test whether new rows are distributed as the training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
            At least 2 new rows, which are not training rows. Of more than 2,000 rows, a random sample is used.
        n_permutations : int, default=199
            Number of random permutations of rows. The smallest possible p-value is ``1 / (n_permutations + 1)``.
        random_state : int, RandomState instance or None, default=0
            Seed of the permutations.

        Returns
        -------
        drift : Drift
            With attributes `squared_mmd`, `p_value`, `input_shares` and `feature_names`. Prints as a summary.

        Raises
        ------
        ValueError
            If X or the training rows have fewer than 2 rows.
        """
        check_is_fitted(self)
        self._require_sample("drift")
        n_permutations, seed = check_integer(n_permutations, "n_permutations", 1), seed_of(random_state)
        samples, law = (dense(self._sample.rows), dense(self._check(X))), binning_kernel(self.kernel)
        scales = self.gamma_, self._categorical, names_of_inputs(self)
        return drift_between(*samples, law, *scales, n_permutations, seed, self.n_jobs)

    def compact(self) -> Self:
        """Make a copy for deployment that only scores rows: smaller in memory and in files.

        The copy has no bins of a single training row, which lowers the scores of some new rows slightly, and no
        sample of training rows. It cannot update, explain, or test for drift, and scores training rows as new rows.

        Returns
        -------
        detector : OutlierDetector
        """
        check_is_fitted(self)
        smaller = copy(self)
        smaller._keep_counts(self._counted.compact())
        smaller._keep_sample(self._sample.take(slice(0)), self._n_seen)
        return smaller
