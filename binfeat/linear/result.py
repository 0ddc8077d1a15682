"""What a solver is asked for, and what it gives back."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

Penalties: TypeAlias = Sequence[ArrayLike] | np.ndarray  # falling; every one a number, or one for each target

_ADVICE = {
    "max_iter": "Raise max_iter, alpha or tol.",
    "breakdown": "The system is not positive definite to working precision: raise alpha, or scale the features.",
}


def refuse_overflow(dtype: np.dtype, *values: np.ndarray) -> None:
    """Refuse, by a ValueError, what overflowed on the way from rows and targets to a solution in `dtype`."""
    with np.errstate(over="ignore"):
        finite = all(np.isfinite(array.astype(dtype, copy=False)).all() for array in values)
    if not finite:
        raise ValueError(
            f"X and y hold numbers whose sums of products, or whose coefficients, are beyond the range of {dtype}; "
            "divide them by constants."
        )


class Iterate(Protocol):
    """A solve under way, as callbacks see it."""

    @property
    def solution(self) -> np.ndarray: ...  # (n_columns, n_targets), which the next iteration overwrites
    @property
    def intercept(self) -> np.ndarray: ...  # (n_targets,)


@dataclass(frozen=True)
class SolverOptions:
    """How to solve."""

    tol: float | None = None  # of residuals, relative to the right-hand side; None for `ObjectiveRule`
    max_iter: int = 200
    fit_intercept: bool = True
    solver: str = "auto"  # "cg", "gram", or whichever is expected to cost less
    callback: Callable[[Iterate], bool] | None = None  # called after each iteration; True stops


@dataclass(frozen=True)
class Result:
    """Outcome of a solve; a solution that overflows its type is refused."""

    solution: np.ndarray  # the last iterate, (n_columns, n_targets)
    intercept: np.ndarray  # (n_targets,)
    n_iter: int  # at least 1
    residuals: np.ndarray  # norms relative to the right-hand side's, (n_iter + 1, n_targets)
    status: str  # why the solver stopped, as in `status_` of the estimators
    solver: str = "cg"  # or "gram", "newton-cg"

    def __post_init__(self) -> None:
        refuse_overflow(self.solution.dtype, self.solution, self.intercept)

    @property
    def advice(self) -> str:
        """What to do about the status; empty when there is nothing to do."""
        return _ADVICE.get(self.status, "")


class SolveInterrupted(KeyboardInterrupt):
    """Ctrl-C during a solve, with the result so far."""

    def __init__(self, result: Result) -> None:
        super().__init__("the solve was interrupted")
        self.result = result


class RidgeSystem(Protocol):
    """Normal equations of rows, in one of several forms."""

    def solve(self, alphas: Penalties, options: SolverOptions, start: np.ndarray | None = None) -> Iterator[Result]:
        """Results for falling penalties, of which the first solve begins at `start`; see `solve_ridge`."""
