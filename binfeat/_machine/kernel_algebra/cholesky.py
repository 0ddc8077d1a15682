"""Cholesky factors of matrices and their inverses, in place, by BLAS and LAPACK without the interpreter's lock.

SciPy's wrappers hold the lock, so that searches in several threads would wait for each other.
"""

import ctypes
import functools
from collections.abc import Callable

import numpy as np
from numba.extending import get_cython_function_address

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


def factorise(A: np.ndarray) -> bool:
    """Replace the upper triangle of A, (n, n) in C order, by U with ``A = U' U``; whether A is positive definite."""
    info = np.zeros((), np.intc)
    _call("lapack", "potrf", A.dtype, b"L", len(A), A, len(A), info)  # C's upper triangle is Fortran's lower triangle
    return bool(info == 0)


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
