"""The leave-one-out error of exact kernel ridge regression, and its gradient by Cholesky factors."""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba.extending import get_cython_function_address

from binfeat._common.arrays import Scratch
from binfeat._common.subsets import slices
from binfeat._engine import lapack, triangles
from binfeat._threads import one_blas_thread, share_blocks
from binfeat.length_scales.matrices import Slopes, square

_SIDE, _MANY = 512, 2048  # rows of a tile, and least columns for tiles
_PROBES = 32  # so few take little time in a step
LEAST_ALPHA = 2e-6  # times the number of rows; smaller penalties are below rounding in float32
LEAST_PRECISE_ALPHA = 1e-8  # the same for float64, with kernel values rounded to float32
MOST_PRECISE_ROWS = 1500  # maximum of rows for float64
Weights = np.ndarray | None  # (n_rows,) with mean 1
Groups = np.ndarray | None  # (n_rows,), group numbers
Factor = tuple[np.ndarray, float]  # a triangle, and the penalty in the factorized matrix
Root = Callable[[np.ndarray, float, Weights], Factor]
Solve = Callable[[np.ndarray], np.ndarray]  # solves with a factorized matrix


class WithSlopes(Protocol):
    """A kernel or a sum of kernels with derivatives by its parameters."""

    def with_slopes(self, X: np.ndarray, gamma: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, Slopes]:
        """Return the kernel matrix of X, and a function of M (overwritten): ``sum_ab M_ab dK_ab`` for each parameter.

        M contains the weight of each pair below the diagonal, and zeros above.
        """


class SingularKernelError(ValueError):
    """No penalty made a kernel matrix positive definite."""


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out error on some rows, and its derivatives."""

    error: float
    slopes: np.ndarray  # derivatives of the error by the logarithms of the kernel's parameters
    alpha_slope: float  # derivative by the logarithm of alpha


def factor(
    K: np.ndarray, alpha: float, weights: Weights = None, out: np.ndarray | None = None, n_jobs: int | None = 1
) -> Factor:
    """Return the upper Cholesky factor U of ``K + 1 1' + alpha / weights = U' U``, and the alpha that was needed.

    If the matrix is indefinite by rounding, alpha is increased by factors of ten; it is always above rounding errors. K
    is symmetric, float32, and can be `out` itself; a factor in float64 needs an `out` of this type.
    """
    U = np.empty_like(K) if out is None else out
    least = len(K) * (LEAST_ALPHA if U.dtype == np.float32 else LEAST_PRECISE_ALPHA)
    alpha = max(alpha, least)
    shift = np.ones(len(K), U.dtype) if weights is None else (1.0 / weights).astype(U.dtype)
    np.add(K, 1.0, out=U, dtype=U.dtype)
    highest = float(U.diagonal().max(initial=0.0))  # far above 1 for linear kernels
    second = max(10.0 * alpha, least * highest)
    alphas = [alpha, *(second * 10.0**k for k in range(7))]
    most = np.finfo(U.dtype).max / 2
    with np.errstate(over="ignore"):  # rows with tiny weights
        number = factor_raised(U, (np.minimum(U.dtype.type(own) * shift, most) for own in alphas), n_jobs)
    if number is None:
        raise SingularKernelError("the kernel matrix of the rows is not positive definite for any penalty")
    return U, alphas[number]


def factor_raised(A: np.ndarray, raises: Iterable[np.ndarray], n_jobs: int | None = 1) -> int | None:
    """Replace A, (n, n) symmetric, by its upper Cholesky factor, with zeros below, after raising the diagonal.

    Return the number of the first of `raises`, each (n,), that makes A positive definite; None if none does.
    """
    place = np.einsum("ii->i", A)
    diagonal = place.copy()
    for number, own in enumerate(raises):
        place[...] = diagonal + own
        if factorize(A, n_jobs):
            triangles.clear_below_diagonal(A)
            return number
        triangles.mirror_below_diagonal(A)
    return None


def inverse_root(
    K: np.ndarray, alpha: float, weights: Weights = None, out: np.ndarray | None = None, n_jobs: int | None = 1
) -> Factor:
    """Return the upper triangle B with ``(K + 1 1' + alpha / weights)^-1 = B B'``, and the alpha; see `factor`."""
    B, alpha = factor(K, alpha, weights, out, n_jobs)
    invert_triangle(B)
    return B, alpha


def least_alpha(n_rows: int) -> float:
    """Return the smallest penalty that is meaningful after rounding, for this number of rows."""
    return n_rows * (LEAST_PRECISE_ALPHA if n_rows <= MOST_PRECISE_ROWS else LEAST_ALPHA)


def needs_precision(n_rows: int, alpha: float) -> bool:
    """Return True if a small matrix needs float64, because the penalty is below the rounding error of float32."""
    return n_rows <= MOST_PRECISE_ROWS and alpha < LEAST_ALPHA * n_rows


def precise_inverse_root(
    K: np.ndarray, alpha: float, weights: Weights = None, n_jobs: int | None = 1, *, overwrite: bool = False
) -> Factor:
    """Return `inverse_root`, in float64 if `needs_precision`, for any alpha above rounding."""
    out = np.empty(K.shape) if needs_precision(len(K), alpha) else K if overwrite else None
    return inverse_root(K, alpha, weights, out, n_jobs)


def solver_by(root: Root, K: np.ndarray) -> Callable[[float, Weights], tuple[Solve, float]]:
    """Return a function that solves for a penalty and weights, by products with the root of an inverse.

    Several threads can call it.
    """

    def factored(alpha: float, weights: Weights) -> tuple[Solve, float]:
        B, alpha = root(K, alpha, weights)
        return lambda Y: times_square(B, Y), alpha

    return factored


def squared_row_norms(B: np.ndarray) -> np.ndarray:
    """Return the diagonal of ``B B'`` in float64, for an upper triangle B, such as the root of an inverse."""
    out = np.empty(len(B))
    triangles.squared_row_norms(B, out)
    return out


def residuals(
    K: np.ndarray,
    alpha: float,
    weights: Weights,
    Y: np.ndarray,
    root: Root = inverse_root,
    groups: Groups = None,
) -> np.ndarray:
    """Return leave-one-out residuals (n_rows, n_targets), or leave-one-group-out residuals for group numbers."""
    B, _ = root(K, alpha, weights)
    return residuals_by(B, times_square(B, Y), groups)


def residuals_by(B: np.ndarray, coef: np.ndarray, groups: Groups) -> np.ndarray:
    """Return residuals r with each row (or group) left out: ``G_gg r_g = c_g``, with the block of ``G = B B'``."""
    if groups is None:
        return coef / np.einsum("ij,ij->i", B, B)[:, np.newaxis]
    out = np.empty(coef.shape)
    for rows, block in _blocks(B, groups):
        out[rows] = np.linalg.solve(block, coef[rows])
    return out


def diagonal_by_group(B: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return ``1 / diag(G_gg^-1)`` of the block of each group in ``G = B B'``; the diagonal of G for single rows."""
    out = np.empty(len(B))
    for rows, block in _blocks(B, groups):
        out[rows] = 1 / np.diag(np.linalg.inv(block))
    return out


def _blocks(B: np.ndarray, groups: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows of each group, and their block of ``B B'``."""
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        own = B[rows].astype(np.float64)
        yield rows, own @ own.T


def left_out_variances(g: np.ndarray, alpha: float, weights: Weights) -> np.ndarray:
    """Return variances of leave-one-out predictions, relative to the noise, from the diagonal of the inverse.

    For variances of leave-one-group-out predictions, pass `diagonal_by_group`.
    """
    return np.maximum(1 / (alpha * g) - (1.0 if weights is None else 1 / weights), 0.0)


def weighted_squares(
    K: np.ndarray,
    alpha: float,
    weights: Weights,
    Y: np.ndarray,
    root: Root = inverse_root,
    groups: Groups = None,
) -> np.ndarray:
    """Return squares of `residuals` times the weights of their rows."""
    squares = residuals(K, alpha, weights, Y, root, groups) ** 2
    return squares if weights is None else weights[:, np.newaxis] * squares


def constant_squares(alpha: float, weights: Weights, Y: np.ndarray) -> np.ndarray:
    """Return `weighted_squares` for a zero kernel: errors of the mean of the other rows."""
    v = np.ones((len(Y), 1)) if weights is None else weights[:, np.newaxis]
    total, weight = (v * Y).sum(axis=0, dtype=np.float64), v.sum(dtype=np.float64)
    return v * (Y - (total - v * Y) / (weight - v + alpha)) ** 2


def random_signs(rng: np.random.Generator, m: int, n_parameters: int) -> np.ndarray:
    """Return probes of m rows for `leave_one_out`: columns of signs, or m unit vectors for an exact gradient.

    Unit vectors are used for up to 32 rows, and if there are at least as many parameters as rows.
    """
    if max(_PROBES, n_parameters) >= m:
        return np.float32(np.sqrt(m)) * np.eye(m, dtype=np.float32)
    return rng.choice(np.array([-1.0, 1.0], np.float32), size=(m, _PROBES))


def leave_one_out(
    matrix: WithSlopes,
    X: np.ndarray,
    Y: np.ndarray,
    weights: Weights,
    gamma: np.ndarray,
    alpha: float,
    rng: np.random.Generator,
    scratch: Scratch | None = None,
    groups: Groups = None,
) -> LeaveOneOut:
    """Return the weighted mean squared leave-one-out residual of some rows, and an unbiased estimate of its gradient.

    With K the kernel matrix, v weights of mean 1, ``G = (K + 1 1' + alpha / v)^-1`` and ``c = G Y``, the residuals are
    ``r = c / diag G`` and the error the mean of ``v r^2``. Its derivative by a parameter of K is
    ``2 / m sum_ab M_ab dK_ab`` with ``M = G diag(w) G - (G u) c' / T``. For probes Z with ``E Z Z' = s I`` the first
    part is the expectation of ``G diag(w) Z (G Z)' / s``, which needs only a factor of G (Hutchinson, 1990).

    With groups, residuals are leave-one-group-out residuals, and blocks replace diag G and diag(w).

    X, (n_inputs, m), and Y, (m, T), are float32, and X has a mean of about zero; weights are positive. Matrices reuse
    the scratch of earlier calls, because new memory would take a third of the time.
    """
    m, scratch = len(Y), Scratch() if scratch is None else scratch
    probes = random_signs(rng, m, len(gamma))
    K, slopes = matrix.with_slopes(X, gamma, scratch)
    is_precise = needs_precision(m, alpha)
    B, alpha = inverse_root(K, alpha, weights, np.empty((m, m)) if is_precise else square(scratch, "B", m))
    shares = np.ones(m, B.dtype) if weights is None else weights
    c = times_square(B, Y)
    if groups is None or np.ptp(groups) == 0:  # a single group has no other rows
        error, M = pair_weights(B, c, np.einsum("ij,ij->i", B, B), shares, probes), B
    else:
        error, M = _group_pair_weights(B, c, groups, shares, probes)
    M = M.astype(np.float32, copy=False)
    by_alpha = float((np.diag(M) / shares).sum(dtype=np.float64))
    return LeaveOneOut(error, 2 / m * slopes(M), 2 / m * alpha * by_alpha)


def pair_weights(B: np.ndarray, c: np.ndarray, g: np.ndarray, shares: np.ndarray, probes: np.ndarray) -> float:
    """Replace B by the weights of pairs of rows in the slopes, each pair once; return the leave-one-out error."""
    routines = _routine("trmm", B.dtype), _routine("syr2k", B.dtype)
    return float(lapack.pair_weights(B, c, g, shares.astype(B.dtype, copy=False), probes, *routines))


def _group_pair_weights(
    B: np.ndarray, c: np.ndarray, groups: np.ndarray, shares: np.ndarray, probes: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the leave-one-group-out error and the weights of pairs of rows in its slopes, as `pair_weights` does.

    With residuals r and ``u_g = G_gg^-1 v_g r_g``, the block of a group that replaces diag(w) is ``u_g r_g' / T``.
    """
    (n_probes, n_targets), members = (probes.shape[1], c.shape[1]), groups[:, np.newaxis] == np.unique(groups)
    r = residuals_by(B, c, groups)
    weighted = shares[:, np.newaxis] * r
    u = residuals_by(B, weighted, groups)
    blocks = sum(u[:, [t]] * (members @ (members.T @ (r[:, [t]] * probes))) for t in range(n_targets))
    left = times_square(B, np.hstack([blocks / n_probes, -u]))
    half = left @ np.hstack([times_square(B, probes), c]).T / n_targets
    M = np.tril(half + half.T)
    np.einsum("ii->i", M)[...] /= 2
    return float((weighted * r).mean()), M


def factorize(A: np.ndarray, n_jobs: int | None = 1) -> bool:
    """Replace the upper triangle of A, (n, n) in C order, by U with ``A = U' U``; False unless A is positive definite.

    Large matrices are factorized in tiles of a fixed size by threads, because sums of BLAS depend on its threads.
    """
    potrf = _routine("potrf", A.dtype)
    if len(A) < _MANY:
        return bool(lapack.factorize(A, potrf))
    cuts = slices(len(A), _SIDE)
    with one_blas_thread():
        for k, own in enumerate(cuts):
            if not lapack.factorize(A[own, own], potrf):
                return False
            _eliminate(A, own, cuts[k + 1 :], n_jobs)
    return True


def invert_triangle(U: np.ndarray) -> None:
    """Invert an upper triangle, (n, n) in C order with zeros below, in place."""
    lapack.invert_triangle(U, 0, len(U), _routine("trtri", U.dtype), _routine("trmm", U.dtype))


def times_square(B: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return ``B B' A`` in the type of B, for an upper triangle B, (n, n), with zeros below, and A, (n, m)."""
    out = A.astype(B.dtype, order="C")
    if out.shape[1] == 1:
        return B @ (B.T @ out)
    lapack.times_square(B, out, _routine("trmm", B.dtype))
    return out


def _eliminate(A: np.ndarray, own: slice, others: list[slice], n_jobs: int | None) -> None:
    """Eliminate rows with a factor, U at A[own, own], from later columns; the remainder is factorized next."""
    trsm, syrk, gemm = (_routine(name, A.dtype) for name in ("trsm", "syrk", "gemm"))

    def solve(tiles: Iterable[slice]) -> None:
        for tile in tiles:
            lapack.solve_triangle(A[own, own], A[own, tile], trsm)

    def subtract(tiles: Iterable[tuple[slice, slice]]) -> None:
        for rows, columns in tiles:
            if rows == columns:  # the lower triangle is unchanged
                lapack.subtract_square(A[own, columns], A[rows, columns], syrk)
            else:
                lapack.subtract_product(A[own, rows], A[own, columns], A[rows, columns], gemm)

    share_blocks(solve, others, len(A[own]) * len(A), n_jobs)
    pairs = [(rows, columns) for place, rows in enumerate(others) for columns in others[place:]]
    share_blocks(subtract, pairs, len(A[own]) * len(A), n_jobs)


@functools.cache
def _routine(name: str, dtype: np.dtype) -> int:
    """Return the address of a routine for float32 or float64, given its name without the type letter."""
    library = "lapack" if name in ("potrf", "trtri") else "blas"
    return get_cython_function_address(f"scipy.linalg.cython_{library}", {"f": "s", "d": "d"}[dtype.char] + name)
