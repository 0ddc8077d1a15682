"""Ridge machines by conjugate gradients: `CGRidge` and `CGRidgeClassifier`."""

import warnings

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from binfeat._operators import RidgeSystem
from binfeat._solver import pcg
from binfeat._validation import callers_level, check_integer, check_real, check_weights

__all__ = ["CGRidge", "CGRidgeClassifier"]


class _CGRidgeBase(BaseEstimator):
    """What the two machines share: checks, the solve, and the linear function."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-2, max_iter=200):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def _check_design(self, Z, reset=False):
        """Z as it is when it is an operator, else as a checked array."""
        if not isinstance(Z, LinearOperator):
            return validate_data(self, Z, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        if reset:
            self.n_features_in_ = Z.shape[1]
        elif Z.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {Z.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input."
            )
        return Z

    def _check_target(self, y, dtype):
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        return check_array(y, dtype=dtype, ensure_2d=False, input_name="y")

    def _solve(self, Z, Y, sample_weight):
        """Coefficients (n_columns, n_targets) and intercepts (n_targets,) for the targets Y (n_rows, n_targets)."""
        alpha = self._check_alpha(Y.shape[1])
        tol = check_real(self.tol, "tol", minimum=0.0)
        max_iter = check_integer(self.max_iter, "max_iter", 1)
        system = RidgeSystem(Z, check_weights(sample_weight, Z.shape[0]), self.fit_intercept)
        result = pcg.solve(system.apply, system.right_side(Y), system.diagonal(), alpha, tol=tol, max_iter=max_iter)
        self.n_iter_, self.status_ = result.n_iter, result.status
        if result.advice:
            warnings.warn(
                f"Conjugate gradients stopped after {result.n_iter} iterations with status {result.status!r} and a "
                f"relative residual of {result.residuals[-1].max():.2g}, above tol={tol:.2g}. {result.advice}",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )
        intercept = system.mean(Y) - system.mean(np.asarray(Z @ result.solution))
        return result.solution, intercept.astype(system.dtype)

    def _check_alpha(self, n_targets):
        alpha = np.asarray(self.alpha)
        if alpha.dtype.kind not in "iuf" or alpha.ndim > 1 or (alpha.ndim == 1 and alpha.shape != (n_targets,)):
            raise ValueError(f"alpha must be a number or one number per target, {n_targets}; got {self.alpha!r}.")
        if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
            raise ValueError(f"alpha must be finite and non-negative, got {self.alpha!r}.")
        return np.array(np.broadcast_to(alpha, n_targets), dtype=np.float64)

    def _linear(self, X):
        check_is_fitted(self)
        X = self._check_design(X)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class CGRidge(MultiOutputMixin, RegressorMixin, _CGRidgeBase):
    """Ridge regression by preconditioned conjugate gradients, for sparse random features.

    Minimises ``sum_i v_i |y_i - w' z_i - b|^2 + alpha |w|^2`` over w and, with an intercept, b, where v are
    the sample weights. The centred normal equations are solved in the primal, preconditioned by their diagonal,
    with all targets in every product.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Penalty, at least 0; one for each target if an array.
    fit_intercept : bool, default=True
        Whether to fit b, which is not penalised. Features are centred implicitly: sparse ones stay sparse.
    tol : float, default=1e-2
        The solver stops when the residual of the normal equations is at most `tol` times their right-hand side,
        both in the norm of the inverse diagonal.
    max_iter : int, default=200
        Most iterations.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        w, in the type of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        b; 0 without intercept.
    n_iter_ : int
        Iterations made, at least 1.
    status_ : {"converged", "max_iter", "breakdown"}
        Why the solver stopped.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when X has string column names.

    Warns
    -----
    ConvergenceWarning
        If the solver stopped before `tol`; the coefficients are those of its last iterate.

    See Also
    --------
    RandomBinning : Features to train on; ``output="codes"`` makes the solve faster than CSR.
    CGRidgeClassifier : The same for classes.

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

    def fit(self, X, y, sample_weight=None):
        """Fit the machine.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero. A weight of 2 is a row that stands there twice.

        Returns
        -------
        self : CGRidge

        Raises
        ------
        ValueError
            If a parameter, a target or a weight is out of range, or lengths differ.
        """
        Z = self._check_design(X, reset=True)
        Y = self._check_target(y, np.float64)
        check_consistent_length(Z, Y)
        if Y.ndim > 2:
            raise ValueError(f"y must be 1-d or 2-d, got {Y.ndim} dimensions.")
        coef, intercept = self._solve(Z, Y.reshape(Y.shape[0], -1), sample_weight)
        self.coef_ = coef[:, 0] if Y.ndim == 1 else np.ascontiguousarray(coef.T)
        self.intercept_ = intercept[0] if Y.ndim == 1 else intercept
        return self

    def predict(self, X):
        """Predict targets.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        """
        return self._linear(X)


class CGRidgeClassifier(ClassifierMixin, _CGRidgeBase):
    """Ridge classification by preconditioned conjugate gradients, for sparse random features.

    Each class is a target of `CGRidge`, 1 for its rows and -1 for the others, and the largest prediction
    wins; two classes have one target between them.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty, at least 0; an array-like of shape (n_classes,) gives each target its own.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    tol : float, default=1e-2
        The solver stops when the residual of the normal equations is at most `tol` times their right-hand side,
        both in the norm of the inverse diagonal.
    max_iter : int, default=200
        Most iterations.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients, in the type of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; 0 without.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_iter_ : int
        Iterations made, at least 1.
    status_ : {"converged", "max_iter", "breakdown"}
        Why the solver stopped.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when X has string column names.

    Warns
    -----
    ConvergenceWarning
        If the solver stopped before `tol`; the coefficients are those of its last iterate.

    See Also
    --------
    CGRidge : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from binfeat import CGRidgeClassifier, RandomBinning
    >>> X, y = load_digits(return_X_y=True)
    >>> binning = RandomBinning(gamma=0.01, n_grids=100, output="codes", random_state=0)
    >>> machine = make_pipeline(binning, CGRidgeClassifier(alpha=0.1)).fit(X[:1000], y[:1000])
    >>> bool(machine.score(X[1000:], y[1000:]) > 0.9)
    True
    """

    def fit(self, X, y, sample_weight=None):
        """Fit the machine.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels, numbers or strings, of at least two classes.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Non-negative, not all zero. A weight of 2 is a row that stands there twice.

        Returns
        -------
        self : CGRidgeClassifier

        Raises
        ------
        ValueError
            If a parameter or a weight is out of range, lengths differ, or y has fewer than two classes.
        """
        Z = self._check_design(X, reset=True)
        y = column_or_1d(self._check_target(y, None), warn=True)
        check_classification_targets(y)
        check_consistent_length(Z, y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = self.classes_.size
        if n_classes < 2:
            raise ValueError(f"y must have at least two classes, got one class: {self.classes_[0]!r}.")
        targets = [1] if n_classes == 2 else np.arange(n_classes)
        coef, self.intercept_ = self._solve(Z, np.where(labels[:, None] == targets, 1.0, -1.0), sample_weight)
        self.coef_ = np.ascontiguousarray(coef.T)
        return self

    def decision_function(self, X):
        """Predictions of the targets.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            With two classes one score, above 0 for ``classes_[1]``.
        """
        scores = self._linear(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_features)

        Returns
        -------
        y : ndarray of shape (n_rows,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
