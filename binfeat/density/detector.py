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
from binfeat._rows.row_sample import RowSample, orders_of, with_orders
from binfeat._rows.sources import SourceSummary, is_source
from binfeat.density.counted_bins import Counts, dense, rises
from binfeat.density.estimator import CountingEstimator
from binfeat.features.binning.two_samples import N_PERMUTATIONS, Drift, drift_between
from binfeat.kernels.base import Kernel
from binfeat.kernels.lookup import binning_kernel

__all__ = ["OutlierDetector"]


class OutlierDetector(OutlierMixin, CountingEstimator):
    """Detect outliers and drift by counting rows in random bins, in linear time.

    Each of `n_grids` random grids divides the input space into bins, and counts the training rows in each bin. The
    share of the training rows in the bin of a row, averaged over the grids, estimates the kernel density at this row.
    The score of a row x is

        ``mean_p log((1 + n_p(x)) / m_p)``

    where grid p counts m_p random training rows, and ``n_p(x)`` of them are in the bin of x. A training row is not
    counted in its own bins. If a new row equals a training row, this training row is not counted.

    Parameters
    ----------
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        Kernel, as in `RandomBinning`.
    gamma : "scale", float or array-like of shape (n_inputs,), default="scale"
        Inverse length scale before multiplication by `fineness`, one for all inputs or one per input; 0 ignores an
        input. "scale" is ``1 / (n_inputs * std_j)``, where std_j is the standard deviation of input j, or 1 if it is
        categorical or constant. Constant inputs are not counted in n_inputs. If at most a tenth of the values, or
        up to three different ones such as -999, are far from all others and dominate the standard deviation, they are
        clipped before it is computed.
    fineness : "auto", float or sequence of float, default="auto"
        Factor of `gamma`; a larger value means smaller bins. Increase it to detect outliers near dense regions,
        decrease it to detect only outliers far from all other rows. "auto" is the logarithm of the number of rows that
        a grid counts, limited to the range from 1 to 8. With several values, the grids are divided equally among them.
    input_share : "auto", float or sequence of float, default="auto"
        Probability that a grid uses an input. Smaller values detect outliers in subsets of the inputs. The length
        scales of the used inputs are multiplied by this number. "auto" is 1 and 0.5, or 1 for up to 4 inputs. With
        several values, the grids are divided equally among them.
    n_grids : int, default=64
        Number of grids. The random error of a score is proportional to ``1 / sqrt(n_grids)``.
    max_samples : int or None, default=4096
        Mean number of training rows that a grid counts; every grid draws its own rows. None counts all rows in every
        grid. Increase it if small groups, with fewer than 1 in 4,096 of the rows, are not outliers.
    contamination : "auto" or float, default="auto"
        Share of outliers among the training rows, above 0 and at most 0.5. With "auto", the threshold is the first
        quartile of the scores of the training rows minus 1.5 interquartile ranges, or their 1 % quantile if it is
        higher. Rows that share no bin with other training rows are always outliers, even if their share is larger.
    categorical_features : array-like of bool, int or str, default=None
        Inputs that contain category numbers: a mask, positions, or column names.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, by default all threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.

    Attributes
    ----------
    offset_ : float
        Threshold: rows with lower scores are outliers.
    gamma_ : ndarray of shape (n_inputs,)
        Inverse length scale of each input before multiplication by `fineness`.
    n_rows_ : int
        Number of training rows.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_inputs,)
        Number of inputs, and their names, when X has string column names.

    See Also
    --------
    RandomBinning : The grids as a feature map.
    sklearn.ensemble.IsolationForest : Random trees instead of grids.
    sklearn.neighbors.KernelDensity : Exact kernel density estimates, at quadratic cost.

    Notes
    -----
    The threshold, the length scales, contributions and drift tests are computed from a random sample of at most 10,000
    training rows. Scores are bitwise the same for any number of threads, any split into batches or blocks, dense and
    CSR input, and float32 values and their float64 copies. A missing value (NaN) matches other missing values and
    nothing else. If most values are missing at random, complete rows are rare, and many of them are outliers. See
    :doc:`/user_guide/plot_13_outliers`.

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
            See `binfeat.blocks`. A source is read twice, and needs no targets.
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
            summary = SourceSummary(X, self._check, RowSample.in_turn(seed))
            rows, n_rows, sample = with_orders(summary.rows(), seed), summary.n_rows, summary.sum
        else:
            X = self._check(X, reset=True)
            rows, n_rows, sample = with_orders([X], seed), X.shape[0], RowSample.of(X, seed)
        self._learn(lambda grids, turns: Counts.of(grids, turns, rows, n_rows, self.n_jobs), n_rows, sample, seed)
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
        self._require_rows("partial_fit")
        X = self._check(X)
        sample = self._sample + RowSample.of(X, self._seed, self._n_seen)
        counted = self._counted.plus(X, orders_of(X.shape[0], self._seed, self._n_seen))
        if counted.turns.span == 2**64:
            sample = sample.lowest_of(counted.counts.orders)
        self._keep(counted, sample, self._n_seen + X.shape[0])
        return self

    @all_or_nothing
    def forget(self, X: Any) -> Self:
        """Remove rows from the training rows, such as the oldest rows of a sliding window.

        The random sample of the training rows loses these rows as well. If no row of the sample is left, the threshold
        is not estimated again.

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
            If some of the rows are not training rows, if no training row would be left, or if there are more than
            ``n_grids * max_samples`` training rows, because grids then count only a part of them.
        """
        self._require_rows("forget")
        X = self._check(X)
        if self._counted.turns.span < 2**64:
            raise ValueError(
                f"forget requires counts of all rows, but max_samples={self.max_samples} with n_grids={self.n_grids} "
                f"counts only a part of {self.n_rows_:,} rows. Fit with max_samples=None."
            )
        if X.shape[0] >= self.n_rows_:
            raise ValueError(f"X has {X.shape[0]} rows of {self.n_rows_} training rows; at least one row must remain.")
        counted = self._counted.minus(X)
        self._keep(counted, self._sample.take(np.isin(self._sample.orders, counted.counts.orders)), self._n_seen)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Compute the score of each row; lower is more abnormal.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        scores : ndarray of shape (n_rows,)
            From ``-mean_p log(m_p)`` for rows without a training row in any of their bins, to
            ``mean_p log(1 + 1 / m_p)`` for rows that share all bins with all training rows.
        """
        if not hasattr(self, "_bin_keys"):
            check_is_fitted(self)  # takes as long as the score of a row
        elif self._is_plain(X) and (scores := self._counted.scores_of_few(X)) is not None:
            return scores
        return np.concatenate([self._counted.scores(rows) for rows in self._blocks(X)])

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the score of each row minus the threshold; negative for outliers.

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
        """Predict -1 for outliers and 1 for other rows.

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
        """Estimate the kernel density: the mean kernel value between each row and all training rows.

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
            Standard error of the estimate over the grids. NaN if a kernel of the mixture has a single grid.

        Raises
        ------
        ValueError
            If the detector is compact, because estimates without the bins of single training rows would be too low.
        """
        self._require_rows("density")
        parts = [self._counted.densities(rows) for rows in self._blocks(X)]
        density, standard_error = (np.concatenate(values) for values in zip(*parts))
        return density, standard_error

    def contributions(self, X: Any) -> np.ndarray:
        """Compute the contribution of each input to the score of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)

        Returns
        -------
        contributions : ndarray of shape (n_rows, n_inputs)
            Mean increase in the score when the value of the input is replaced by its values in 16 training rows with
            scores above the median. Inputs with high values make the row abnormal.
        """
        self._require_sample("contributions")
        return rises(self._counted, dense(self._check(X)), self._sample.rows)

    def drift(
        self, X: Any, *, n_permutations: int = N_PERMUTATIONS, random_state: int | np.random.RandomState | None = 0
    ) -> Drift:
        """Test whether new rows have the same distribution as the training rows.

        The test finds differences of all inputs together, and of single inputs.

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
            Result with the attributes `squared_mmd`, `p_value`, `is_significant`, `input_shares`, `input_p_values` and
            `feature_names`. ``print(drift)`` shows a summary.

        Raises
        ------
        ValueError
            If X or the training rows have fewer than 2 rows.
        """
        self._require_sample("drift")
        n_permutations, seed = check_integer(n_permutations, "n_permutations", 1), seed_of(random_state)
        samples, law = (dense(self._sample.rows), dense(self._check(X))), binning_kernel(self.kernel)
        names = names_of_inputs(self)
        return drift_between(*samples, law, self.gamma_, self._categorical, names, n_permutations, seed, self.n_jobs)

    def compact(self) -> Self:
        """Return a smaller copy for deployment, which only scores rows.

        The copy does not contain the bins of single training rows, so the scores of some new rows are slightly lower.
        It does not contain the sample of training rows, so it cannot update, explain, estimate densities, or test for
        drift. It scores training rows like new rows.

        Returns
        -------
        detector : OutlierDetector
        """
        check_is_fitted(self)
        smaller = copy(self)
        smaller._keep(self._counted.compact(), self._sample.take(slice(0)), self._n_seen)
        return smaller
