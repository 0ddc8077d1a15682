"""Cholesky factors of matrices and their inverses, in place, and products with these."""

import functools
from collections.abc import Iterable

import numpy as np
from numba.extending import get_cython_function_address

from binfeat._common.subsets import slices
from binfeat._engine import lapack
from binfeat._threads import one_blas_thread, share_blocks

_SIDE, _MANY = 512, 2048  # of a tile, and columns with which tiles are worth it


@functools.cache
def _routine(name: str, dtype: np.dtype) -> int:
    """Return the address of a routine for float32 or float64, given its name without the type letter."""
    library = "lapack" if name in ("potrf", "trtri") else "blas"
    return get_cython_function_address(f"scipy.linalg.cython_{library}", {"f": "s", "d": "d"}[dtype.char] + name)


def factorise(A: np.ndarray, n_jobs: int | None = 1) -> bool:
    """Replace the upper triangle of A, (n, n) in C order, by U with ``A = U' U``; whether A is positive definite.

    A large matrix is factorised by tiles of a fixed size, in threads: BLAS's own threads split sums by their number.
    """
    potrf = _routine("potrf", A.dtype)
    if len(A) < _MANY:
        return bool(lapack.factorise(A, potrf))
    cuts = slices(len(A), _SIDE)
    with one_blas_thread():
        for k, own in enumerate(cuts):
            if not lapack.factorise(A[own, own], potrf):
                return False
            _eliminate(A, own, cuts[k + 1 :], n_jobs)
    return True


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


def invert_triangle(U: np.ndarray) -> None:
    """Invert an upper triangle in place, with zeros below: an array (n, n) in C order."""
    lapack.invert_triangle(U, 0, len(U), _routine("trtri", U.dtype), _routine("trmm", U.dtype))


def times_square(B: np.ndarray, A: np.ndarray) -> np.ndarray:
    """``B B' A``, in the type of B, for an upper triangle B, (n, n), with zeros below, and A, (n, m)."""
    out = A.astype(B.dtype, order="C")
    if out.shape[1] == 1:
        return B @ (B.T @ out)
    lapack.times_square(B, out, _routine("trmm", B.dtype))
    return out


def pair_weights(B: np.ndarray, c: np.ndarray, g: np.ndarray, shares: np.ndarray, probes: np.ndarray) -> float:
    """Replace B by what pairs of rows weigh in the slopes of a leave-one-out error, each pair once; the error."""
    routines = _routine("trmm", B.dtype), _routine("syr2k", B.dtype)
    return float(lapack.pair_weights(B, c, g, shares.astype(B.dtype, copy=False), probes, *routines))
