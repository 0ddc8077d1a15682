"""Design matrices of every kind behind one face, and the ridge system built on them."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from binfeat._engine.vectors import centre
from binfeat._linear.cg import column_dots


def product(Z, W, out):
    """Write ``Z @ W``; W and out are in Fortran order."""
    if hasattr(Z, "_matmat_into"):
        Z._matmat_into(W, out)
    else:
        out[:] = Z @ W


def transposed_product(Z, V, out):
    """Write ``Z.T @ V``; V and out are in Fortran order."""
    if hasattr(Z, "_rmatmat_into"):
        Z._rmatmat_into(V, out)
    else:
        out[:] = Z.T @ V


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
        self._rows = np.ones((Z.shape[0], 1)) if weights is None else np.asfortranarray(weights)
        self._typed_rows = self._rows.astype(self.dtype, copy=False)
        self._totals = np.maximum(self._rows.sum(axis=0), np.finfo(float).tiny)
        self._values = None

    def mean(self, values):
        """Weighted mean of each target's column, float64; 0 without intercept."""
        return self._means(values, self._rows, self._totals)

    def _means(self, values, rows, totals):
        if not self.fit_intercept:
            return np.zeros(values.shape[1])
        return column_dots(values, rows) / totals

    def _centred(self, values, columns):
        """Weighted deviations from the mean, made in place; values are in Fortran order."""
        rows, totals = self._typed_rows, self._totals
        if rows.shape[1] > 1 and len(columns) < rows.shape[1]:
            rows, totals = np.asfortranarray(rows[:, columns]), totals[columns]
        if self.fit_intercept or self.weights is not None:
            centre(self._means(values, rows, totals), rows.T, values.T)
        return values

    def right_side(self, Y):
        """``b`` for each target; Y is (n_rows, n_targets) float64."""
        out = np.empty((self.Z.shape[1], Y.shape[1]), self.dtype, order="F")
        transposed_product(self.Z, self._centred(np.array(Y, self.dtype, order="F"), range(Y.shape[1])), out)
        return out

    def _buffer(self, n_columns):
        """Space for a value of each row and column, the same at each call."""
        if self._values is None or self._values.shape[1] < n_columns:
            self._values = np.empty((self.Z.shape[0], n_columns), self.dtype, order="F")
        return self._values[:, :n_columns]

    def apply(self, W, columns, out):
        """Write ``A @ W``, where column k of W belongs to target ``columns[k]``; all in Fortran order."""
        values = self._buffer(W.shape[1])
        product(self.Z, W, values)
        transposed_product(self.Z, self._centred(values, columns), out)

    def intercept(self, coef, Y):
        """Intercepts that go with coefficients, for each target; 0 without."""
        return self.mean(Y - np.asarray(self.Z @ coef))

    def diagonal(self):
        """Diagonal of A, (n_columns, 1) or (n_columns, n_targets); ones where Z cannot tell."""
        diagonal = gram_diagonal(self.Z, self.weights)
        if diagonal is None:
            return np.ones((self.Z.shape[1], 1))
        if self.fit_intercept:
            sums = np.empty(diagonal.shape, self.dtype, order="F")
            transposed_product(self.Z, self._typed_rows, sums)
            diagonal = np.maximum(diagonal - sums.astype(np.float64) ** 2 / self._totals, 0.0)
        return diagonal
