"""What a solver gives back."""

from dataclasses import dataclass

import numpy as np

ADVICE = {
    "converged": "",
    "max_iter": "Raise max_iter, alpha or tol.",
    "breakdown": "The system is not positive definite to working precision: raise alpha, or scale the features.",
    "stopped": "",
    "interrupted": "The best coefficients so far are kept.",
}


def refuse_overflow(dtype, *values):
    """Refuse what overflowed on the way from rows and targets to a solution in `dtype`.

    Raises
    ------
    ValueError
        If one of the values is not finite.
    """
    with np.errstate(over="ignore"):
        finite = all(np.isfinite(own.astype(dtype, copy=False)).all() for own in values)
    if not finite:
        raise ValueError(
            f"X and y hold numbers whose sums of products, or whose coefficients, are beyond the range of {dtype}; "
            "divide them by constants."
        )


@dataclass(frozen=True)
class Result:
    """Outcome of a solve.

    Attributes
    ----------
    solution : ndarray of shape (n, n_columns)
        The last iterate.
    n_iter : int
        Iterations made, at least 1.
    residuals : ndarray of shape (n_iter + 1, n_columns)
        Preconditioned residual norms relative to the right-hand side's, a row for each iteration.
    status : {"converged", "max_iter", "breakdown", "stopped", "interrupted"}
        Why the solver stopped.
    """

    solution: np.ndarray
    n_iter: int
    residuals: np.ndarray
    status: str

    @property
    def advice(self):
        """What to do about the status; empty when there is nothing to do."""
        return ADVICE[self.status]
