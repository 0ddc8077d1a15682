"""Triangles of square matrices."""

from binfeat._engine.policy import jit


@jit
def clear_below_diagonal(A):
    """Set what is below the diagonal to zero.

    Parameters
    ----------
    A : (n, n) float32 or float64, updated
    """
    for i in range(1, A.shape[0]):
        A[i, :i] = 0.0


@jit
def mirror_below_diagonal(A):
    """Copy what is below the diagonal to what is above it.

    Parameters
    ----------
    A : (n, n) float32 or float64, updated
    """
    for i in range(1, A.shape[0]):
        A[:i, i] = A[i, :i]
