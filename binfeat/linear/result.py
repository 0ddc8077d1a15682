"""Options and results of solvers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from binfeat._common.array_types import ArrayLike

Penalties: TypeAlias = Sequence[ArrayLike] | np.ndarray  # descending; each is a number, or one number per target

_ADVICE = {
    "max_iter": "Increase max_iter, alpha or tol.",
    "breakdown": "The system is not positive definite to working precision: increase alpha, or scale the features.",
}


def refuse_overflow(dtype: np.dtype, *values: np.ndarray) -> None:
    """Raise ValueError if a sum, or a solution in `dtype`, has overflowed."""
    with np.errstate(over="ignore"):
        finite = all(np.isfinite(array.astype(dtype, copy=False)).all() for array in values)
    if not finite:
        raise ValueError(
            f"Sums of products of X and y, or coefficients, exceed the range of {dtype}. Divide X and y by constants."
        )


class Iterate(Protocol):
    """The current state of a solve, for callbacks."""

    @property
    def solution(self) -> np.ndarray: ...  # (n_columns, n_targets), which the next iteration overwrites
    @property
    def intercept(self) -> np.ndarray: ...  # (n_targets,)


@dataclass(frozen=True)
class SolverOptions:
    """Options of a solver."""

    tol: float | None = None  # for residuals relative to the right-hand side; None: `ObjectiveRule`
    max_iter: int = 200
    fit_intercept: bool = True
    solver: str = "auto"  # "cg", "gram", or "auto" for the cheaper one
    callback: Callable[[Iterate], bool] | None = None  # called after each iteration; True stops


@dataclass(frozen=True)
class Result:
    """Result of a solve; an overflow in the solution raises an error."""

    solution: np.ndarray  # the last iterate, (n_columns, n_targets)
    intercept: np.ndarray  # (n_targets,)
    n_iter: int  # at least 1
    residuals: np.ndarray  # norms relative to the right-hand side, (n_iter + 1, n_targets)
    status: str  # why the solver stopped, as in `status_` of the estimators
    solver: str = "cg"  # or "gram", "newton-cg"

    def __post_init__(self) -> None:
        refuse_overflow(self.solution.dtype, self.solution, self.intercept)

    @property
    def advice(self) -> str:
        """Return advice about the status, or an empty string."""
        return _ADVICE.get(self.status, "")


class SolveInterrupted(KeyboardInterrupt):
    """Ctrl-C in a solve, with the result so far."""

    def __init__(self, result: Result) -> None:
        super().__init__("the solve was interrupted")
        self.result = result


class RidgeSystem(Protocol):
    """Normal equations of rows, in any form."""

    def solve(self, alphas: Penalties, options: SolverOptions, start: np.ndarray | None = None) -> Iterator[Result]:
        """Yield results for descending penalties; the first solve begins at `start`; see `solve_ridge`."""
