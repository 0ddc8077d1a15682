"""Exact kernel ridge regression: its leave-one-out error and the gradient of that in all parameters."""

from dataclasses import dataclass

import numpy as np

from binfeat._engine.triangles import clear_below_diagonal, mirror_below_diagonal
from binfeat._machine.kernel_algebra.cholesky import factorise, invert_triangle
from binfeat._machine.kernel_algebra.matrices import square
from binfeat._rows.rows import Scratch

_PROBES = 32  # at least: they are a part of the time of a step that hardly shows
LEAST_ALPHA = 2e-6  # for each row, below which float32 cannot tell the penalty from rounding
LEAST_PRECISE_ALPHA = 1e-8  # the same of float64, where kernel values have float32's rounding
MOST_PRECISE_ROWS = 1500  # for which float64 is worth its time


class SingularKernelError(ValueError):
    """No penalty made a kernel matrix positive definite."""


def factor(K, alpha, weights=None, out=None):
    """Upper Cholesky factor U of ``K + 1 1' + alpha / weights = U' U``, and the alpha that it took.

    Where rounding leaves the matrix indefinite, alpha is raised by factors of ten. It is never below what rounding
    makes of zero. K is symmetric, float32, and may itself be `out`; a factor in float64 takes an `out` of that type.
    """
    U = np.empty_like(K) if out is None else out
    alpha = max(alpha, len(K) * (LEAST_ALPHA if U.dtype == np.float32 else LEAST_PRECISE_ALPHA))
    shift = np.ones(len(K), U.dtype) if weights is None else (1.0 / weights).astype(U.dtype)
    np.add(K, 1.0, out=U, dtype=U.dtype)
    diagonal = U.diagonal().copy()
    for _ in range(8):
        U[np.diag_indices_from(U)] = diagonal + U.dtype.type(alpha) * shift
        if factorise(U):
            clear_below_diagonal(U)
            return U, alpha
        mirror_below_diagonal(U)
        alpha *= 10.0
    raise SingularKernelError("the kernel matrix of the rows is not positive definite for any penalty")


def inverse_root(K, alpha, weights=None, out=None):
    """Upper triangle B with ``(K + 1 1' + alpha / weights)^-1 = B B'``, and the alpha that it took; see `factor`."""
    B, alpha = factor(K, alpha, weights, out)
    invert_triangle(B)
    return B, alpha


def needs_precision(n_rows, alpha):
    """Whether a matrix of few rows takes float64, since float32 cannot tell the penalty from rounding."""
    return n_rows <= MOST_PRECISE_ROWS and alpha < LEAST_ALPHA * n_rows


def precise_inverse_root(K, alpha, weights=None):
    """`inverse_root`; where `needs_precision` says so in float64, with an alpha of any size above rounding."""
    return inverse_root(K, alpha, weights, np.empty(K.shape) if needs_precision(len(K), alpha) else None)


def residuals(K, alpha, weights, Y, root=inverse_root):
    """Leave-one-out residuals of shape (n_rows, n_targets)."""
    B, _ = root(K, alpha, weights)
    return (B @ (B.T @ Y)) / np.einsum("ij,ij->i", B, B)[:, np.newaxis]


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out error on some rows, and its derivatives."""

    error: float
    slopes: np.ndarray  # by the logarithms of the kernel's parameters
    alpha_slope: float  # by the logarithm of alpha


def weighted_squares(K, alpha, weights, Y):
    """Squares of `residuals`, times the weights of their rows."""
    squares = residuals(K, alpha, weights, Y) ** 2
    return squares if weights is None else weights[:, np.newaxis] * squares


def leave_one_out_error(matrix, X, Y, weights, gamma, alpha):
    """The error of `leave_one_out` alone."""
    return float(weighted_squares(matrix(X, X, gamma), alpha, weights, Y).mean(dtype=np.float64))


def random_signs(rng, m, n_parameters):
    """Probes of m rows for `leave_one_out`: columns of signs, or as many as rows, with which its gradient is exact.

    More of them for more parameters, whose slopes take as long.
    """
    n_probes = max(_PROBES, n_parameters)
    if n_probes >= m:
        return np.float32(np.sqrt(m)) * np.eye(m, dtype=np.float32)
    return rng.choice(np.array([-1.0, 1.0], np.float32), size=(m, n_probes))


def leave_one_out(matrix, X, Y, weights, gamma, alpha, rng, scratch=None):
    """Weighted mean squared leave-one-out residual of some rows, and an unbiased estimate of its gradient.

    With K the kernel matrix, v weights of mean 1, ``G = (K + 1 1' + alpha / v)^-1`` and ``c = G Y``, the residuals are
    ``r = c / diag G`` and the error the mean of ``v r^2``. Its derivative by a parameter of K is
    ``2 / m sum_ab M_ab dK_ab`` with ``M = G diag(w) G - (G u) c' / T``. For probes Z with ``E Z Z' = s I`` the first
    part is the expectation of ``G diag(w) Z (G Z)' / s``, which takes a factor of G only, not G (Hutchinson, 1990).

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
    rng : numpy.random.Generator
        Draws the probes, see `random_signs`.
    scratch : Scratch or None
        Where matrices are made, time after time: new memory would take a third of the time.

    Returns
    -------
    found : LeaveOneOut
    """
    (m, n_targets), scratch = Y.shape, Scratch() if scratch is None else scratch
    probes = random_signs(rng, m, len(gamma))
    K, slopes = matrix.with_slopes(X, gamma, scratch)
    B, alpha = inverse_root(K, alpha, weights, square(scratch, "B", m))
    shares = np.ones(m, np.float32) if weights is None else weights.astype(np.float32)
    c, g = B @ (B.T @ Y), np.einsum("ij,ij->i", B, B)[:, np.newaxis]
    r = c / g
    u = shares[:, np.newaxis] * r / g
    w = (u * c).sum(axis=1, keepdims=True) / n_targets / g
    sides = B @ (B.T @ np.hstack([w * probes, u, probes]))
    n_probes, last = probes.shape[1], sides.shape[1] - probes.shape[1]
    left, right = sides[:, :last], np.hstack([sides[:, last:], c])
    left[:, :n_probes] /= n_probes
    left[:, n_probes:] /= -n_targets
    M = np.matmul(left, right.T, out=B)
    by_alpha = float((np.diag(M) / shares).sum(dtype=np.float64))
    error = float((shares[:, np.newaxis] * r * r).mean(dtype=np.float64))
    return LeaveOneOut(error, 2 / m * slopes(M), 2 / m * alpha * by_alpha)
