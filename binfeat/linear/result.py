"""Options and results of solvers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.array_types import ArrayLike
from binfeat._common.warned import warn

Penalties: TypeAlias = Sequence[ArrayLike] | np.ndarray  # descending; each is a number, or one number per target

_ADVICE = {
    "max_iter": "Increase max_iter, alpha or tol.",
    "breakdown": (
        "Rounding errors prevent further progress, for example because the system is not positive definite to working "
        "precision: increase tol or alpha, or scale the features."
    ),
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
    loss: str = "squared_error"  # or "squared_hinge"
    solver: str = "auto"  # "cg", "gram", or "auto" for the cheaper one
    targets_at_a_time: int | None = None  # by "cg"; None: all with vectors that need a quarter of the memory
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

    @classmethod
    def of_attributes(cls, coef: np.ndarray, intercept: float | np.ndarray) -> Self:
        """Return the result with the attributes `coef_` and `intercept_` of a fitted model, as start of a solve."""
        solution, intercepts = np.atleast_2d(coef).T, np.atleast_1d(intercept).astype(np.float64)
        return cls(solution, intercepts, 1, np.empty((0, 0)), "converged")

    def of_targets(self, targets: slice) -> Self:
        """Return the solution and the intercepts of some targets, as start of a solve."""
        return replace(self, solution=self.solution[:, targets], intercept=self.intercept[targets])

    @property
    def advice(self) -> str:
        """Return advice about the status, or an empty string."""
        return _ADVICE.get(self.status, "")

    def attributes(self, flat: bool) -> dict[str, object]:
        """Return the attributes of a fitted model; `flat` is for one-dimensional predictions."""
        of_solver = {"n_iter_": self.n_iter, "solver_": self.solver, "status_": self.status}
        return coefficients(self.solution, self.intercept, flat) | of_solver

    def warn_unless_done(self, tol: float | None) -> None:
        """Warn if the solver stopped before it reached `tol`."""
        if self.advice:
            above = "before the objective settled" if tol is None else f"above tol={tol:.2g}"
            warn(
                f"Conjugate gradients stopped after {self.n_iter} iterations with status {self.status!r} and a "
                f"relative residual of {self.residuals[-1].max():.2g}, {above}. {self.advice}",
                ConvergenceWarning,
            )


def coefficients(solution: np.ndarray, intercept: np.ndarray, flat: bool) -> dict[str, object]:
    """Return the attributes `coef_` and `intercept_` of a solution.

    Intercepts are float64, because a target can be large relative to its variation.
    """
    if flat:
        return {"coef_": solution[:, 0], "intercept_": intercept[0]}
    return {"coef_": np.ascontiguousarray(solution.T), "intercept_": intercept}


class SolveInterrupted(KeyboardInterrupt):
    """Ctrl-C in a solve, with the result so far."""

    def __init__(self, result: Result) -> None:
        super().__init__("the solve was interrupted")
        self.result = result


class RidgeSystem(Protocol):
    """Normal equations of rows, in any form."""

    def solve(self, alphas: Penalties, options: SolverOptions, start: Result | None = None) -> Iterator[Result]:
        """Yield results for descending penalties; the first solve begins at `start`; see `solve_ridge`."""
