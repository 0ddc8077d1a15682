"""Rows, features and solvers of estimators, for tests without an estimator."""

from binfeat._rows.lazy import LazyFeatures
from binfeat._rows.rows import ProcessRows
from binfeat._rows.stacked import StackedFeatures
from binfeat.linear.normal_equations import NormalEquations
from binfeat.linear.result import SolveInterrupted, SolverOptions
from binfeat.linear.solve import ridge_system, solve_ridge

__all__ = [
    "LazyFeatures",
    "NormalEquations",
    "ProcessRows",
    "SolveInterrupted",
    "SolverOptions",
    "StackedFeatures",
    "computed_features",
    "ridge_system",
    "solve_ridge",
]


def computed_features(Z):
    """Return features that are computed on demand, a block of rows at a time."""
    return LazyFeatures(lambda X: X, Z, Z.shape[1])
