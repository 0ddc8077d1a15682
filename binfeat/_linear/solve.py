"""Ridge machines on rows anywhere: the one solver that all estimators call."""

from collections.abc import Iterator

import numpy as np

from binfeat._binning.bin_matrix import BinMatrix
from binfeat._binning.lone_bins import merge_lone_bins
from binfeat._linear.gram import GramSystem, gram_pays, gram_system
from binfeat._linear.merged import MergedEquations
from binfeat._linear.normal_equations import NormalEquations
from binfeat._linear.result import Penalties, Result, RidgeSystem, SolverOptions
from binfeat._rows.rows import LocalRows, Rows


def ridge_system(rows: Rows | GramSystem, n_alphas: int, options: SolverOptions) -> RidgeSystem:
    """The normal equations of rows in the form that suits this number of penalties.

    `rows` may be a `GramSystem`, where only that is kept of them.
    """
    if isinstance(rows, GramSystem):
        return rows
    if options.solver == "gram" or (options.solver == "auto" and gram_pays(rows, n_alphas, options.tol)):
        return gram_system(rows, options.fit_intercept)
    if isinstance(rows, LocalRows) and isinstance(rows.Z, BinMatrix):
        merged = merge_lone_bins(rows.Z)
        if merged is not None:
            return MergedEquations(merged, rows, options.fit_intercept)
    return NormalEquations(rows, options.fit_intercept)


def solve_ridge(
    rows: Rows | GramSystem, alphas: Penalties, options: SolverOptions, start: np.ndarray | None = None
) -> Iterator[Result]:
    """Minimise ``sum_i v_i |y_i - w' z_i - b|^2 + alpha |w|^2`` for each target and each of some penalties.

    Yields a result for each penalty, until a callback stops a solve. The first solve starts from `start`, by default
    from 0. SolveInterrupted at Ctrl-C, with the result of the solve so far; ValueError if sums of products, or
    coefficients, overflow.
    """
    yield from ridge_system(rows, len(alphas), options).solve(alphas, options, start)
