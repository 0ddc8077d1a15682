"""`CGRidge`."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_consistent_length

from binfeat._common.availability import unavailable_if
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.validation import check_flag, check_weights
from binfeat._linear.alpha_choice import Splitter
from binfeat._linear.estimator import CGRidgeBase, holds_rows_out
from binfeat._rows.products import Design, Features
from binfeat._rows.rows import LocalRows
from binfeat._rows.scored import SourceScorer


class CGRidge(SourceScorer, MultiOutputMixin, RegressorMixin, CGRidgeBase):
    """Ridge regression on random features, by preconditioned conjugate gradients.

    Minimises ``sum_i v_i |y_i - w' z_i - b|^2 + alpha |w|^2`` over the coefficients w and the intercept b, for rows
    z_i of features with targets y_i and sample weights v_i.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Ridge penalty, at least 0; an array has one for each target.
    alphas : array-like of shape (n_alphas,), default=None
        Penalties to choose from: the one with the best mean score on held-out rows is taken, and the machine is fitted
        to all rows with it. `alpha` is then ignored.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised. Sparse features stay sparse.
    tol : float, default=None
        None stops when the last four iterations lowered the objective by at most 0.04 % of itself. On 29 tables with
        four penalties each, the errors of predictions for new rows were then within 1 % of the converged errors. A
        number stops at this residual of the normal equations, relative to their right-hand side, for example 1e-6 for
        coefficients that are nearly exact.
    max_iter : int, default=200
        Maximum number of iterations.
    cv : int, splitter or iterable, default=None
        How rows are held out for `alphas` and `early_stopping`, as in `sklearn.model_selection.check_cv`; an iterable
        gives pairs of training and held-out rows. None holds out one random part.
    validation_fraction : float, default=0.1
        Share of the rows in that random part.
    scoring : str or callable, default=None
        Score on the held-out rows, as in `sklearn.metrics.get_scorer`; None is R^2 for numbers and accuracy for labels.
    early_stopping : bool, default=False
        Whether to stop when the score on held-out rows has not improved for 5 iterations, and to keep the coefficients
        with the best score. The held-out rows are not used to fit. Not with `alphas`.
    warm_start : bool, default=False
        Whether `fit` starts from the coefficients of the previous fit.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of the held-out rows.
    n_posterior_samples : int, default=None
        Number of samples of the posterior of w and b that `fit` draws for standard deviations of predictions, 32 say;
        None draws none. 32 samples know a standard deviation to one part in eight. Not for penalties that differ
        between targets, nor on Dask.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        w, in the type of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        b; 0 with ``fit_intercept=False``.
    noise_variance_ : float or ndarray of shape (n_targets,)
        Variance of y about ``w' z + b``, for a row of weight 1. Only with `n_posterior_samples`.
    solver_ : {"cg", "gram"}
        The solver used: conjugate gradients, or the Gram matrix of dense features.
    alpha_ : float or ndarray of shape (n_targets,)
        The penalty used.
    alphas_ : ndarray of shape (n_alphas,)
        Penalties tried; only with `alphas`.
    path_scores_ : ndarray of shape (n_splits, n_alphas)
        Held-out score of each penalty in each split; only with `alphas`.
    n_iter_ : int
        Number of iterations of the last solve, at least 1.
    status_ : {"converged", "max_iter", "breakdown", "early_stopped", "stopped", "interrupted"}
        Why the solver stopped: "converged" if it reached `tol`, "stopped" by a callback.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when X has string column names.

    Warns
    -----
    ConvergenceWarning
        If the solver stopped before it reached `tol`; the coefficients are those of its last iteration.

    See Also
    --------
    RandomBinning : Features to train on; ``output="codes"`` makes the solve faster than CSR.
    CGRidgeClassifier : The same machine for classes.

    Notes
    -----
    The normal equations are centred implicitly and solved in the primal, preconditioned by their diagonal. All targets
    share each product with the features. Residuals are measured in the norm of the inverse diagonal. Where features
    are dense, few, and that is expected to be faster, the Gram matrix is formed and solved exactly, in one iteration.

    Samples of the posterior [1]_ are solved for like further targets, 8 at a time, and take 4 bytes for each feature
    and sample. Where the Gram matrix is formed, standard deviations are exact, whatever the number of samples, and
    take 4 bytes for each pair of features. `noise_variance_` is the sum of the weighted squares of the residuals,
    divided by the number of rows less the trace of the hat matrix.

    References
    ----------
    .. [1] J. Wilson et al., "Pathwise Conditioning of Gaussian Processes", JMLR 22, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import CGRidge, RandomBinning
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> y = np.sin(X[:, 0])
    >>> binning = RandomBinning(gamma=1.0, n_grids=200, random_state=0)
    >>> machine = CGRidge(alpha=0.1).fit(binning.fit_transform(X), y)
    >>> bool(machine.score(binning.transform(X), y) > 0.99)
    True
    """

    __module__ = "binfeat.ridge"  # as saved files name it

    def __init__(
        self,
        alpha: float | ArrayLike = 1.0,
        *,
        alphas: ArrayLike | None = None,
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int = 200,
        cv: int | Splitter | Iterable | None = None,
        validation_fraction: float = 0.1,
        scoring: str | Callable[..., float] | None = None,
        early_stopping: bool = False,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_posterior_samples: int | None = None,
    ) -> None:
        self.alpha, self.alphas, self.fit_intercept, self.tol = alpha, alphas, fit_intercept, tol
        self.max_iter, self.cv, self.validation_fraction, self.scoring = max_iter, cv, validation_fraction, scoring
        self.early_stopping, self.warm_start, self.random_state = early_stopping, warm_start, random_state
        self.n_posterior_samples = n_posterior_samples

    @unavailable_if(holds_rows_out)
    @all_or_nothing
    def partial_fit(self, X: Design, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the machine to these rows and those of all earlier calls.

        The coefficients are those of `fit` on all rows so far, for any `tol`. `fit` forgets these rows and keeps none:
        after it, the next call begins anew, with a warning. Parameters may change between calls.

        Parameters
        ----------
        X : ndarray, sparse matrix or BinMatrix of shape (n_rows, n_features)
            Of the same kind in all calls. Bins must not change between them: fit `RandomBinning` once, or set its
            `n_features`.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero. A row of weight 2 counts as two rows.

        Returns
        -------
        self : CGRidge

        Raises
        ------
        TypeError, ValueError
            If X is of another kind or of other bins than before, or no array, sparse matrix or codes; or as `fit` does.
        AttributeError
            If `alphas`, `early_stopping` or `n_posterior_samples` is set: there is no `partial_fit`, which neither
            holds rows out nor draws samples.

        Notes
        -----
        The solver takes the iterations of a fit: from the last coefficients it would stop elsewhere. Rows are kept,
        copied, with the machine and in its files: codes of binning features take 2 or 4 bytes for each grid, CSR 12 or
        more for each entry. Each iteration visits all rows. Of an array whose Gram matrix takes at most an eighth
        of the computer's memory, only that matrix is kept once there are more rows than features: 8 bytes for each pair
        of features, for any number of rows, and each call then solves exactly.
        """
        Z, first = self._check_next(X)
        _, rows, flat = self._encode(Z, y, sample_weight)
        self._fit_more(rows, first, flat)
        return self

    def predict(self, X: Design, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict targets.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)
        return_std : bool, default=False
            Whether to return the standard deviations of the predictions, too; `fit` needs `n_posterior_samples`.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        std : ndarray like y
            Only with ``return_std=True``: of ``w' z + b``, without noise, in the posterior for the prior
            ``w ~ N(0, s2 / alpha)`` with s2 = `noise_variance_`. Codes of a `RandomBinning` tell of bins that `fit` has
            not seen, whose w have their prior variance; in CSR these bins count for nothing.

        Raises
        ------
        ValueError
            If standard deviations are asked for, and `fit` drew no samples.
        """
        if check_flag(return_std, "return_std"):
            return self._linear(X), self._std(X)
        return self._linear(X)

    def _encode(self, Z: Features, y: Any, sample_weight: ArrayLike | None) -> tuple[np.ndarray, LocalRows, bool]:
        Y = self._check_numbers(y)
        check_consistent_length(Z, Y)
        rows = LocalRows(Z, Y.reshape(Y.shape[0], -1), check_weights(sample_weight, Z.shape[0]))
        return Y, rows, Y.ndim == 1
