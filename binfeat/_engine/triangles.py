"""Triangles of square matrices."""

from binfeat._engine.policy import jit
from binfeat._engine.vectors import dot

_SIDE = 16  # side of a tile; its rows share cache lines


@jit
def clear_below_diagonal(A):
    """Set the entries below the diagonal to zero.

    Parameters
    ----------
    A : (n, n) float32 or float64, updated
    """
    for i in range(1, A.shape[0]):
        A[i, :i] = 0.0


@jit
def mirror_below_diagonal(A):
    """Copy the lower triangle to the upper one.

    Parameters
    ----------
    A : (n, n) float32 or float64, updated
    """
    n = A.shape[0]
    for top in range(0, n, _SIDE):
        for left in range(0, top + 1, _SIDE):
            for i in range(top, min(top + _SIDE, n)):
                for j in range(left, min(left + _SIDE, i)):
                    A[j, i] = A[i, j]


@jit
def squared_row_norms(U, out):
    """Squared norms of the rows of an upper triangle.

    Parameters
    ----------
    U : (n, n) float32 or float64
        Entries below the diagonal are not read.
    out : (n,) float64, written
    """
    for i in range(U.shape[0]):
        out[i] = dot(U[i, i:], U[i, i:])
