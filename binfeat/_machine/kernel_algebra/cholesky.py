"""Cholesky factors of matrices and their inverses, in place, by BLAS and LAPACK without the interpreter's lock.

SciPy's wrappers hold the lock, so that searches in several threads would wait for each other.
"""

import ctypes
import functools
from collections.abc import Callable, Iterable

import numpy as np
from numba.extending import get_cython_function_address

from binfeat._common.subsets import slices
from binfeat._engine.policy import one_blas_thread, share_blocks

_SIDE, _MANY = 512, 2048  # of a tile, and columns with which tiles are worth it
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


def factorise(A: np.ndarray, n_jobs: int | None = 1) -> bool:
    """Replace the upper triangle of A, (n, n) in C order, by U with ``A = U' U``; whether A is positive definite.

    A large matrix is factorised by tiles of a fixed size, in threads: BLAS's own threads split sums by their number.
    """
    if len(A) < _MANY:
        return _factorise(A)
    cuts = slices(len(A), _SIDE)
    with one_blas_thread():
        for k, own in enumerate(cuts):
            if not _factorise(A[own, own]):
                return False
            _eliminate(A, own, cuts[k + 1 :], n_jobs)
    return True


def _factorise(A: np.ndarray) -> bool:
    info = np.zeros((), np.intc)
    _call("lapack", "potrf", A.dtype, b"L", len(A), A, _row(A), info)  # C's upper triangle is Fortran's lower triangle
    return bool(info == 0)


def _eliminate(A: np.ndarray, own: slice, others: list[slice], n_jobs: int | None) -> None:
    """Take what rows with a factor, U at A[own, own], tell of the columns behind them, and leave the rest to factorise.

    The sides and triangles are Fortran's, which sees all transposed.
    """
    one, minus, row, n_own = np.array(1.0, A.dtype), np.array(-1.0, A.dtype), _row(A), own.stop - own.start

    def solve(tiles: Iterable[slice]) -> None:
        for tile in tiles:
            width, right = tile.stop - tile.start, A[own, tile]
            _call("blas", "trsm", A.dtype, b"R", b"L", b"T", b"N", width, n_own, one, A[own, own], row, right, row)

    def subtract(tiles: Iterable[tuple[slice, slice]]) -> None:
        for rows, columns in tiles:
            left, right, rest = A[own, rows], A[own, columns], A[rows, columns]
            height, width = rest.shape
            if rows == columns:  # of which the lower triangle stays as it is
                _call("blas", "syrk", A.dtype, b"L", b"N", width, n_own, minus, left, row, one, rest, row)
            else:
                sizes = width, height, n_own
                _call("blas", "gemm", A.dtype, b"N", b"T", *sizes, minus, right, row, left, row, one, rest, row)

    share_blocks(solve, others, n_own * len(A), n_jobs)
    pairs = [(rows, columns) for place, rows in enumerate(others) for columns in others[place:]]
    share_blocks(subtract, pairs, n_own * len(A), n_jobs)


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
