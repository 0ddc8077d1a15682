"""Design matrices of every kind behind one face, and the ridge system built on them."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from binfeat._solver.pcg import column_dots


def gram_diagonal(Z, weights):
    """Diagonal of ``Z.T @ diag(w) @ Z`` for each column w of the weights, or None where Z cannot tell.

    Parameters
    ----------
    Z : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows, k), or None for ones

    Returns
    -------
    diagonal : ndarray of shape (n_columns, k), float64, or None
    """
    if hasattr(Z, "gram_diagonal"):
        columns = [None] if weights is None else weights.T
        return np.stack([Z.gram_diagonal(column) for column in columns], axis=1)
    if isinstance(Z, LinearOperator):
        return None
    weights = np.ones((Z.shape[0], 1)) if weights is None else weights
    if sparse.issparse(Z):
        return np.asarray(Z.multiply(Z).astype(np.float64).T @ weights)
    return np.einsum("ij,ij,ik->jk", Z, Z, weights, dtype=np.float64)


class RidgeSystem:
    """Normal equations of ridge regression, with the intercept taken out by implicit centring.

    For rows z_i, targets y_i and weights v_i, the system is ``(A + alpha) w = b`` with
    ``A = sum_i v_i (z_i - m)(z_i - m)'`` and ``b = sum_i v_i (z_i - m)(y_i - mean(y))``, where m is the
    weighted mean row, or 0 without intercept. Nothing of Z is copied. Every target may have weights of its own.

    Parameters
    ----------
    Z : ndarray, sparse matrix, BinMatrix or LinearOperator of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows, 1) or (n_rows, n_targets), or None for ones
    fit_intercept : bool
    """

    def __init__(self, Z, weights, fit_intercept):
        self.Z = Z
        self.dtype = np.dtype(np.float32 if Z.dtype == np.float32 else np.float64)
        self.weights = weights
        self.fit_intercept = fit_intercept
        self._rows = np.ones((Z.shape[0], 1)) if weights is None else weights
        self._totals = self._rows.sum(axis=0)

    def _of(self, columns):
        """Weights of the rows and their totals for some of the targets."""
        if self._rows.shape[1] == 1:
            return self._rows, self._totals
        return self._rows[:, columns], self._totals[columns]

    def mean(self, values, columns=slice(None)):
        """Weighted mean of each column, float64; 0 without intercept."""
        if not self.fit_intercept:
            return np.zeros(values.shape[1])
        weights, totals = self._of(columns)
        return column_dots(values, np.broadcast_to(weights, values.shape)) / np.maximum(totals, np.finfo(float).tiny)

    def _centred(self, values, columns):
        weights, _ = self._of(columns)
        values = values - self.mean(values, columns)
        return (values if self.weights is None else values * weights).astype(self.dtype, copy=False)

    def right_side(self, Y):
        """``b`` for each target; Y is (n_rows, n_targets) float64."""
        return np.asarray(self.Z.T @ self._centred(Y, slice(None)))

    def apply(self, W, columns):
        """``A @ W``, where column k of W belongs to target ``columns[k]``."""
        return np.asarray(self.Z.T @ self._centred(np.asarray(self.Z @ W), columns))

    def diagonal(self):
        """Diagonal of A, (n_columns, 1) or (n_columns, n_targets); ones where Z cannot tell."""
        diagonal = gram_diagonal(self.Z, self.weights)
        if diagonal is None:
            return np.ones((self.Z.shape[1], 1))
        if self.fit_intercept:
            sums = np.asarray(self.Z.T @ self._rows.astype(self.dtype, copy=False), dtype=np.float64)
            diagonal = np.maximum(diagonal - sums**2 / np.maximum(self._totals, np.finfo(float).tiny), 0.0)
        return diagonal
