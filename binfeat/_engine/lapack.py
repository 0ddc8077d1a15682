"""Kernels that call BLAS and LAPACK without the interpreter's lock.

SciPy's wrappers hold the lock, and each switch between threads takes some microseconds. Arrays are in C order, which
Fortran sees transposed: an upper triangle is its lower one, and sides are swapped.
"""

import ctypes

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from binfeat._engine.policy import jit

_SMALL = 96  # columns of triangles inverted by LAPACK; larger ones are faster by products of blocks
_LEFT, _RIGHT, _LOWER, _UPPER, _AS_IS, _TRANSPOSED = (np.uint8(ord(letter)) for letter in "LRLUNT")


def _call(address, arguments):
    """Call the routine at an address with a tuple of arrays and numbers, all by reference."""
    places = [np.asarray(argument) for argument in arguments]
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(places))(address)
    routine(*(place.ctypes.data for place in places))


@overload(_call)
def _compiled(address, arguments):
    return lambda address, arguments: _called(address, arguments)  # type: ignore[call-arg]


@intrinsic
def _called(_, address, arguments):
    def generate(context, builder, signature, values):
        address, packed = values
        pointers = []
        for number, kind in enumerate(signature.args[1]):
            value = builder.extract_value(packed, number)
            if isinstance(kind, types.Array):
                place = context.make_array(kind)(context, builder, value).data
            else:
                place = cgutils.alloca_once_value(builder, value)
            pointers.append(builder.bitcast(place, cgutils.voidptr_t))
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t] * len(pointers))
        builder.call(builder.inttoptr(address, kind.as_pointer()), pointers)
        return context.get_dummy_value()

    return types.void(address, arguments), generate


@jit
def _row(A):
    """Return the number of elements from the start of a row to the start of the next."""
    return np.int32(A.strides[0] // A.itemsize)


@jit
def _sizes(A):
    """Return the numbers of rows and columns of A for Fortran."""
    return np.int32(A.shape[1]), np.int32(A.shape[0])


@jit
def factorize(A, potrf):
    """Replace the upper triangle of A by U with ``A = U' U``.

    Parameters
    ----------
    A : (n, n) float32 or float64, updated
    potrf : int
        Address.

    Returns
    -------
    is_definite : bool
    """
    info = np.zeros(1, np.int32)
    _call(potrf, (_LOWER, np.int32(len(A)), A, _row(A), info))
    return info[0] == 0


@jit
def invert_triangle(U, begin, end, trtri, trmm):
    """Invert a block on the diagonal of an upper triangle in place.

    Parameters
    ----------
    U : (n, n) float32 or float64, updated
        With zeros below the diagonal.
    begin, end : int
        Rows and columns of the block.
    trtri, trmm : int
        Addresses.
    """
    if end - begin <= _SMALL:
        _call(trtri, (_LOWER, _AS_IS, np.int32(end - begin), U[begin:end, begin:end], _row(U), np.int32(0)))
        return
    middle = begin + (end - begin) // 2
    invert_triangle(U, begin, middle, trtri, trmm)
    invert_triangle(U, middle, end, trtri, trmm)
    first, corner, last = U[begin:middle, begin:middle], U[begin:middle, middle:end], U[middle:end, middle:end]
    _apply(trmm, corner, _RIGHT, first, _AS_IS, -1.0)
    _apply(trmm, corner, _LEFT, last, _AS_IS, 1.0)


@jit
def _apply(routine, A, side, U, form, factor):
    """Multiply A in place by a factor and an upper triangle U, or by its inverse if the routine is `trsm`, not `trmm`.

    The side, and whether U is transposed, are Fortran's.
    """
    _call(routine, (side, _LOWER, form, _AS_IS, *_sizes(A), U.dtype.type(factor), U, _row(U), A, _row(A)))


@jit
def times_square(B, A, trmm):
    """Replace A by ``B B' A``.

    Parameters
    ----------
    B : (n, n) float32 or float64
        Upper triangle with zeros below the diagonal.
    A : (n, m) of the same type, updated
    trmm : int
        Address.
    """
    _apply(trmm, A, _RIGHT, B, _TRANSPOSED, 1.0)
    _apply(trmm, A, _RIGHT, B, _AS_IS, 1.0)


@jit
def solve_triangle(U, A, trsm):
    """Replace A, (n, m), by ``U'^-1 A``, with an upper triangle U, (n, n).

    Parameters
    ----------
    U, A : float32 or float64, A updated
    trsm : int
        Address.
    """
    _apply(trsm, A, _RIGHT, U, _TRANSPOSED, 1.0)


@jit
def subtract_square(A, C, syrk):
    """Subtract ``A' A`` from the upper triangle of C, (n, n), with A, (m, n).

    Parameters
    ----------
    A, C : float32 or float64, C updated
    syrk : int
        Address.
    """
    one = A.dtype.type(1.0)
    _call(syrk, (_LOWER, _AS_IS, *_sizes(A), -one, A, _row(A), one, C, _row(C)))


@jit
def subtract_product(A, B, C, gemm):
    """Subtract ``A' B`` from C, (n, m), with A, (k, n), and B, (k, m).

    Parameters
    ----------
    A, B, C : float32 or float64, C updated
    gemm : int
        Address.
    """
    one = A.dtype.type(1.0)
    _call(gemm, (_AS_IS, _TRANSPOSED, *_sizes(C), np.int32(len(A)), -one, B, _row(B), A, _row(A), one, C, _row(C)))


@jit
def pair_weights(B, c, g, shares, probes, trmm, syr2k):
    """Replace B by the weights of pairs of rows in the slopes of a leave-one-out error.

    M is defined in `leave_one_out`. Entries below the diagonal are ``M_ab + M_ba``, the diagonal is ``M_aa``, and
    entries above are 0.

    Parameters
    ----------
    B : (n, n) float32 or float64, updated
        Upper triangle with zeros below the diagonal, and ``G = B B'``.
    c : (n, n_targets) of the same type
        ``G Y``.
    g : (n,) of the same type
        Diagonal of G.
    shares : (n,) of the same type
        Weights of rows.
    probes : (n, n_probes) float32
    trmm, syr2k : int
        Addresses.

    Returns
    -------
    error : float
        Weighted mean squared residual.
    """
    (n, n_targets), n_probes, error = c.shape, probes.shape[1], 0.0
    n_left = n_probes + n_targets
    sides = np.empty((n, n_left + n_probes), B.dtype)
    for i in range(n):
        w = B.dtype.type(0.0)
        for j in range(n_targets):
            r = c[i, j] / g[i]
            error += shares[i] * r * r
            sides[i, n_probes + j] = shares[i] * r / g[i]
            w += sides[i, n_probes + j] * c[i, j]
        w /= n_targets * g[i]
        for j in range(n_probes):
            sides[i, j] = w * probes[i, j]
            sides[i, n_left + j] = probes[i, j]
    times_square(B, sides, trmm)
    right = np.empty((n, n_left), B.dtype)
    for i in range(n):
        for j in range(n_probes):
            right[i, j] = sides[i, n_left + j] / n_probes
        for j in range(n_targets):
            right[i, n_probes + j] = -c[i, j] / n_targets
    one, zero = B.dtype.type(1.0), B.dtype.type(0.0)
    operands = right, _row(right), sides, _row(sides)
    _call(syr2k, (_UPPER, _TRANSPOSED, np.int32(n), np.int32(n_left), one, *operands, zero, B, _row(B)))
    for i in range(n):
        B[i, i] /= 2
        B[i, i + 1 :] = zero
    return error / (n * n_targets)
