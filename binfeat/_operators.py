"""Design matrices of every kind behind one face, and the ridge system built on them."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from binfeat._solver.pcg import column_dots


def gram_diagonal(Z, sample_weight):
    """Diagonal of ``Z.T @ diag(sample_weight) @ Z`` as float64, or None where Z cannot tell.

    Parameters
    ----------
    Z : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_columns)
    sample_weight : ndarray of shape (n_rows,) or None
    """
    if hasattr(Z, "gram_diagonal"):
        return Z.gram_diagonal(sample_weight)
    if isinstance(Z, LinearOperator):
        return None
    if sparse.issparse(Z):
        squares = Z.multiply(Z).astype(np.float64).T
        weights = np.ones(Z.shape[0]) if sample_weight is None else sample_weight
        return np.asarray(squares @ weights).ravel()
    if sample_weight is None:
        return np.einsum("ij,ij->j", Z, Z, dtype=np.float64)
    return np.einsum("ij,ij,i->j", Z, Z, sample_weight, dtype=np.float64)


class RidgeSystem:
    """Normal equations of ridge regression, with the intercept taken out by implicit centring.

    For rows z_i, targets y_i and weights v_i, the system is ``A w = b`` with
    ``A = sum_i v_i (z_i - m)(z_i - m)' + alpha`` and ``b = sum_i v_i (z_i - m)(y_i - mean(y))``, where m is the
    weighted mean row, or 0 without intercept. Nothing of Z is copied.

    Parameters
    ----------
    Z : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_columns)
    alpha : ndarray of shape (n_targets,)
    sample_weight : ndarray of shape (n_rows,) or None
    fit_intercept : bool
    """

    def __init__(self, Z, alpha, sample_weight, fit_intercept):
        self.Z = Z
        self.dtype = np.dtype(np.float32 if Z.dtype == np.float32 else np.float64)
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.weights = None if sample_weight is None else sample_weight.reshape(-1, 1)
        self.total = float(Z.shape[0] if sample_weight is None else sample_weight.sum())

    def mean(self, values):
        """Weighted mean of each column, float64; 0 without intercept."""
        if not self.fit_intercept:
            return np.zeros(values.shape[1])
        weights = np.ones((values.shape[0], 1)) if self.weights is None else self.weights
        return column_dots(values, np.broadcast_to(weights, values.shape)) / self.total

    def _centred(self, values):
        values = values - self.mean(values)
        return (values if self.weights is None else values * self.weights).astype(self.dtype, copy=False)

    def right_side(self, Y):
        """``b`` for each target; Y is (n_rows, n_targets) float64."""
        return np.asarray(self.Z.T @ self._centred(Y))

    def apply(self, W, columns):
        """``A @ W``, where column k of W has the penalty of target ``columns[k]``."""
        images = np.asarray(self.Z.T @ self._centred(np.asarray(self.Z @ W)))
        return images + W * self.alpha[columns].astype(self.dtype)

    def diagonal(self):
        """Diagonal of A, (n_columns, n_targets), or (n_columns, 1) when all targets have one penalty."""
        alpha = self.alpha[:1] if (self.alpha == self.alpha[0]).all() else self.alpha
        weights = None if self.weights is None else self.weights.ravel()
        diagonal = gram_diagonal(self.Z, weights)
        if diagonal is None:
            return np.ones((self.Z.shape[1], 1))
        if self.fit_intercept:
            sums = self.Z.T @ (np.ones(self.Z.shape[0], self.dtype) if weights is None else weights)
            diagonal = np.maximum(diagonal - np.square(sums, dtype=np.float64) / self.total, 0.0)
        return diagonal[:, None] + alpha
