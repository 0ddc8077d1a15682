"""Exact kernel ridge regression: its leave-one-out error and the gradient of that in all parameters."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

LEAST_ALPHA = 2e-6  # for each row, below which float32 cannot tell the penalty from rounding


class SingularKernelError(ValueError):
    """No penalty made a kernel matrix positive definite."""


def factor(K, alpha, weights=None):
    """Lower Cholesky factor of ``K + 1 1' + alpha / weights``, float32 in Fortran order, and the alpha that it took.

    Where rounding leaves the matrix indefinite, alpha is raised by factors of ten. It is never below what rounding
    makes of zero.
    """
    alpha = max(alpha, LEAST_ALPHA * len(K))
    shift = np.ones(len(K), np.float32) if weights is None else (1.0 / weights).astype(np.float32)
    for _ in range(8):
        A = K + np.float32(1.0)
        A[np.diag_indices_from(A)] += np.float32(alpha) * shift
        L, info = lapack.spotrf(A.T, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return L, alpha
        alpha *= 10.0
    raise SingularKernelError("the kernel matrix of the rows is not positive definite for any penalty")


def inverse(K, alpha, weights=None):
    """Inverse of ``K + 1 1' + alpha / weights``, float32, and the alpha that it took; see `factor`."""
    L, alpha = factor(K, alpha, weights)
    G, _ = lapack.spotri(L, lower=1, overwrite_c=1)
    G = np.tril(G)
    G += np.tril(G, -1).T
    return G, alpha


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out error on some rows, and its derivatives."""

    error: float
    slopes: np.ndarray  # by the logarithms of the kernel's parameters
    alpha_slope: float  # by the logarithm of alpha


def residuals(G, Y):
    """Leave-one-out residuals of shape (n_rows, n_targets), for the inverse G."""
    return (G @ Y) / np.diag(G)[:, None]


def leave_one_out_error(matrix, X, Y, weights, gamma, alpha):
    """The error of `leave_one_out` alone."""
    G, _ = inverse(matrix(X, X, gamma), alpha, weights)
    squares = residuals(G, Y) ** 2
    return float((squares if weights is None else weights[:, np.newaxis] * squares).mean(dtype=np.float64))


def leave_one_out(matrix, X, Y, weights, gamma, alpha):
    """Weighted mean squared leave-one-out residual of some rows, and its gradient.

    With K the kernel matrix, v weights of mean 1, ``G = (K + 1 1' + alpha / v)^-1`` and ``c = G Y``, the residuals are
    ``r = c / diag G`` and the error the mean of ``v r^2``. Its derivative by a parameter of K is
    ``2 / m sum_ab M_ab dK_ab`` with ``M = G diag(w) G - (G u) c' / T``.

    Parameters
    ----------
    matrix : LaplacianMatrix, ProfileMatrix or RadialMatrix
    X : ndarray of shape (n_inputs, m), float32
        About mean zero.
    Y : ndarray of shape (m, T), float32
    weights : ndarray of shape (m,) or None
        Above 0.
    gamma : ndarray of shape (n_inputs,)
    alpha : float

    Returns
    -------
    found : LeaveOneOut
    """
    m, n_targets = Y.shape
    K, slopes = matrix.with_slopes(X, gamma)
    G, alpha = inverse(K, alpha, weights)
    shares = np.ones(m, np.float32) if weights is None else weights.astype(np.float32)
    c, g = G @ Y, np.diag(G)[:, None]
    r = c / g
    u = shares[:, None] * r / g
    w = (u * c).sum(axis=1) / g[:, 0] / n_targets
    M = (G * w) @ G
    M -= (G @ u) @ (c.T / np.float32(n_targets))
    by_alpha = float((np.diag(M) / shares).sum(dtype=np.float64))
    error = float((shares[:, None] * r * r).mean(dtype=np.float64))
    return LeaveOneOut(error, 2 / m * slopes(M), 2 / m * alpha * by_alpha)
