"""Cholesky factors of float32 matrices and their inverses, in place, by LAPACK without the interpreter's lock.

SciPy's wrappers hold the lock, so that searches in several threads would wait for each other.
"""

import ctypes
import functools

import numpy as np
from numba.extending import get_cython_function_address

_SMALL = 96  # columns of a triangle that LAPACK inverts; larger ones are faster by products of their parts


@functools.cache
def _lapack(name, n_arguments):
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _call(name, *arguments):
    """Call a LAPACK routine with characters, integers and arrays; its `info`."""
    kept = [np.array(each, np.intc) if isinstance(each, int) else each for each in arguments]
    info = np.zeros(1, np.intc)
    pointers = [each.ctypes.data if isinstance(each, np.ndarray) else each for each in (*kept, info)]
    _lapack(name, len(pointers))(*pointers)
    return int(info[0])


def factorise(A):
    """Replace the upper triangle of A, (n, n) in C order, by U with ``A = U' U``; whether A is positive definite."""
    return _call("spotrf", b"L", len(A), A, len(A)) == 0  # what is the upper triangle here is Fortran's lower one


def invert_triangle(U):
    """Invert an upper triangle in place, with zeros below: an array (n, n) or a view of one."""
    n = len(U)
    if n <= _SMALL:
        _call("strtri", b"L", b"N", n, U, U.strides[0] // U.itemsize)
        return
    half = n // 2
    first, corner, last = U[:half, :half], U[:half, half:], U[half:, half:]
    invert_triangle(first)
    invert_triangle(last)
    np.matmul(first, corner @ last, out=corner)
    np.negative(corner, out=corner)
