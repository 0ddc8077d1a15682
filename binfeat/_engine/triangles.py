"""Triangles of square matrices."""

from binfeat._engine.policy import jit


@jit
def clear_below_diagonal(A):
    """Set what is below the diagonal to zero.

    Parameters
    ----------
    A : (n, n) float32, updated
    """
    for i in range(1, A.shape[0]):
        A[i, :i] = 0.0
