"""Cholesky factors of matrices and their inverses, in place, by BLAS and LAPACK without the interpreter's lock.

SciPy's wrappers hold the lock, so that searches in several threads would wait for each other.
"""

import ctypes
import functools
from collections.abc import Callable, Iterable
from itertools import combinations_with_replacement

import numpy as np
from numba.extending import get_cython_function_address

from binfeat._engine.policy import one_blas_thread, share_blocks

_SIDE, _FEWEST_TILED = 512, 2500  # of the tiles of a factor, and rows of a matrix that is worth tiles
_SMALL = 96  # columns of a triangle that LAPACK inverts; larger triangles are faster by products of their parts


@functools.cache
def _routine(library: str, name: str, n_arguments: int) -> Callable[..., None]:
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _call(library: str, name: str, dtype: np.dtype, *arguments: bytes | int | np.ndarray) -> None:
    """Call a routine of BLAS or LAPACK for a type with characters, whole numbers and arrays."""
    prefix = {"f": "s", "d": "d"}[dtype.char]
    _routine(library, prefix + name, len(arguments))(*map(_pointer, arguments))


def _pointer(argument: bytes | int | np.ndarray) -> object:
    if isinstance(argument, np.ndarray):
        return argument.__array_interface__["data"][0]
    return ctypes.byref(ctypes.c_int(argument)) if isinstance(argument, int) else argument


def factorise(A: np.ndarray, n_jobs: int | None = None) -> bool:
    """Replace the upper triangle of A, (n, n) in C order, by U with ``A = U' U``; whether A is positive definite.

    Of many rows it goes by tiles, each of which one thread works on, so that U is bitwise the same for any number of
    threads.
    """
    if len(A) < _FEWEST_TILED:
        return _factorise_whole(A)
    places = [slice(i, min(i + _SIDE, len(A))) for i in range(0, len(A), _SIDE)]
    for k, place in enumerate(places):
        corner, rest = A[place, place], places[k + 1 :]
        with one_blas_thread():
            if not _factorise_whole(corner):
                return False

        def solve(some: Iterable[slice], place: slice = place, corner: np.ndarray = corner) -> None:
            for columns in some:
                _solve(corner, A[place, columns])

        def subtract(some: Iterable[tuple[slice, slice]], place: slice = place) -> None:
            for rows, columns in some:
                _subtract_product(A[place, rows], A[place, columns], A[rows, columns])

        for work, tiles in ((solve, rest), (subtract, list(combinations_with_replacement(rest, 2)))):
            share_blocks(work, tiles, _SIDE**2 * len(tiles), n_jobs)
    return True


def _factorise_whole(A: np.ndarray) -> bool:
    info = np.zeros((), np.intc)
    # C's upper triangle is Fortran's lower triangle.
    _call("lapack", "potrf", A.dtype, b"L", len(A), A, _row(A), info)
    return bool(info == 0)


def _solve(U: np.ndarray, A: np.ndarray) -> None:
    """Multiply A in place by the inverse of U'."""
    one = np.ones((), A.dtype)
    _call("blas", "trsm", A.dtype, b"R", b"L", b"T", b"N", A.shape[1], len(A), one, U, _row(U), A, _row(A))


def _subtract_product(B: np.ndarray, C: np.ndarray, out: np.ndarray) -> None:
    """Subtract ``B' C`` in place; of a product with itself, in the upper triangle only."""
    one, minus = np.array(1.0, out.dtype), np.array(-1.0, out.dtype)
    n_rows, n_columns = out.shape
    if B.__array_interface__["data"] == C.__array_interface__["data"]:
        _call("blas", "syrk", B.dtype, b"L", b"N", n_rows, len(B), minus, B, _row(B), one, out, _row(out))
    else:
        sizes = n_columns, n_rows, len(B)
        _call("blas", "gemm", B.dtype, b"N", b"T", *sizes, minus, C, _row(C), B, _row(B), one, out, _row(out))


def invert_triangle(U: np.ndarray) -> None:
    """Invert an upper triangle in place, with zeros below: an array (n, n), or a view."""
    n = len(U)
    if n <= _SMALL:
        _call("lapack", "trtri", U.dtype, b"L", b"N", n, U, _row(U), np.zeros((), np.intc))
        return
    half = n // 2
    first, corner, last = U[:half, :half], U[:half, half:], U[half:, half:]
    invert_triangle(first)
    invert_triangle(last)
    _multiply(b"R", first, corner, -1.0)
    _multiply(b"L", last, corner, 1.0)


def _multiply(side: bytes, U: np.ndarray, A: np.ndarray, factor: float) -> None:
    """Multiply A in place by a factor and an upper triangle U; the side is Fortran's, which sees all transposed."""
    n_rows, n_columns = A.shape
    typed = np.array(factor, A.dtype)
    _call("blas", "trmm", A.dtype, side, b"L", b"N", b"N", n_columns, n_rows, typed, U, _row(U), A, _row(A))


def _row(A: np.ndarray) -> int:
    """Number of elements from the start of a row to the start of the next."""
    return A.strides[0] // A.itemsize
