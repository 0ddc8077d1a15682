"""What a solver is asked for, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

ADVICE = {
    "converged": "",
    "max_iter": "Raise max_iter, alpha or tol.",
    "breakdown": "The system is not positive definite to working precision: raise alpha, or scale the features.",
    "stopped": "",
    "early_stopped": "",
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
        finite = all(np.isfinite(array.astype(dtype, copy=False)).all() for array in values)
    if not finite:
        raise ValueError(
            f"X and y hold numbers whose sums of products, or whose coefficients, are beyond the range of {dtype}; "
            "divide them by constants."
        )


@dataclass(frozen=True)
class SolverOptions:
    """How to solve.

    Attributes
    ----------
    tol : float
        A target is done when the residual of its normal equations is at most `tol` times their right-hand side.
    max_iter : int
    fit_intercept : bool
    solver : {"auto", "cg", "gram"}
        "auto" forms the Gram matrix of dense features where that is expected to cost less.
    callback : callable, default=None
        ``callback(state)`` is called after each iteration of `cg`, and stops the solve by giving True.
    """

    tol: float = 1e-2
    max_iter: int = 200
    fit_intercept: bool = True
    solver: str = "auto"
    callback: Callable[[Any], bool] | None = None


@dataclass(frozen=True)
class Result:
    """Outcome of a solve.

    Attributes
    ----------
    solution : ndarray of shape (n_columns, n_targets)
        The last iterate.
    intercept : ndarray of shape (n_targets,)
    n_iter : int
        Iterations made, at least 1.
    residuals : ndarray of shape (n_iter + 1, n_targets)
        Residual norms relative to the right-hand side's, a row for each iteration.
    status : {"converged", "max_iter", "breakdown", "stopped", "early_stopped", "interrupted"}
        Why the solver stopped.
    solver : {"cg", "gram", "newton-cg"}

    Raises
    ------
    ValueError
        If the solution overflows its type.
    """

    solution: np.ndarray
    intercept: np.ndarray
    n_iter: int
    residuals: np.ndarray
    status: str
    solver: str = "cg"

    def __post_init__(self):
        refuse_overflow(self.solution.dtype, self.solution, self.intercept)

    @property
    def advice(self):
        """What to do about the status; empty when there is nothing to do."""
        return ADVICE[self.status]


class SolveInterrupted(KeyboardInterrupt):
    """Ctrl-C during a solve.

    Attributes
    ----------
    result : Result
        The last iterate, of status "interrupted".
    """

    def __init__(self, result):
        super().__init__("the solve was interrupted")
        self.result = result
