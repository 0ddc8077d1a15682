"""The ridge solver of all estimators, for rows in memory, in files and on Dask."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from binfeat._rows.rows import ProcessRows, Rows
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.linear.gram import GramSystem, gram_pays, gram_system
from binfeat.linear.hinge import solve_hinge_path
from binfeat.linear.lone_bins import MergedBins, merge_lone_bins
from binfeat.linear.normal_equations import NormalEquations
from binfeat.linear.result import Iterate, Penalties, Result, RidgeSystem, SolveInterrupted, SolverOptions
from binfeat.linear.target_groups import GroupedTargets, targets_at_a_time


@dataclass
class _SpreadIterate:
    """State of a solve for callbacks: the coefficients of all bins, and the intercepts."""

    merged: MergedBins
    state: Iterate

    @property
    def solution(self) -> np.ndarray:
        return self.merged.spread(self.state.solution)

    @property
    def intercept(self) -> np.ndarray:
        return self.state.intercept


class MergedEquations:
    """`NormalEquations` for merged bins, with solutions for all bins."""

    def __init__(self, merged: MergedBins, rows: ProcessRows, fit_intercept: bool) -> None:
        self._merged = merged
        self._system = NormalEquations(ProcessRows(merged, rows.Y, rows.weights), fit_intercept)

    def solve(self, alphas: Penalties, options: SolverOptions, start: Result | None = None) -> Iterator[Result]:
        """Yield results for descending penalties; the first solve begins at `start`; see `solve_ridge`."""
        watch = options.callback
        if watch is not None:
            options = replace(options, callback=lambda state: watch(_SpreadIterate(self._merged, state)))
        if start is not None:
            start = replace(start, solution=self._merged.merge(start.solution))
        try:
            for result in self._system.solve(alphas, options, start):
                yield self._spread(result)
        except SolveInterrupted as error:
            raise SolveInterrupted(self._spread(error.result)) from error

    def _spread(self, result: Result) -> Result:
        return replace(result, solution=self._merged.spread(result.solution))


def uses_gram(rows: Rows, n_alphas: int, options: SolverOptions) -> bool:
    """Return True if the best form of the normal equations of rows is their Gram matrix."""
    is_open = options.solver == "auto" and rows.dense
    return options.solver == "gram" or (is_open and gram_pays(rows, n_alphas, options.tol))


def ridge_system(rows: Rows | GramSystem, n_alphas: int, options: SolverOptions) -> RidgeSystem:
    """Return the normal equations of rows in the best form for this number of penalties.

    `rows` may be a `GramSystem` if the rows are not stored.
    """
    if isinstance(rows, GramSystem):
        return rows
    if uses_gram(rows, n_alphas, options):
        return gram_system(rows, options.fit_intercept)
    n_together = options.targets_at_a_time or targets_at_a_time(rows)
    if n_together < rows.n_targets:
        return GroupedTargets(rows, n_together, lambda own: ridge_system(own, n_alphas, options))
    if isinstance(rows, ProcessRows) and isinstance(rows.Z, BinMatrix):
        merged = merge_lone_bins(rows.Z)
        if merged is not None:
            return MergedEquations(merged, rows, options.fit_intercept)
    return NormalEquations(rows, options.fit_intercept)


def solve_ridge(
    rows: Rows | GramSystem, alphas: Penalties, options: SolverOptions, start: Result | None = None
) -> Iterator[Result]:
    """Minimize ``sum_i v_i |y_i - w' z_i - b|^2 + alpha |w|^2`` for each target and each of some penalties.

    Yields a result for each penalty, unless a callback stops a solve. The first solve starts from a result, by default
    from 0. Ctrl-C raises SolveInterrupted, with the result so far; ValueError if sums of products, or
    coefficients, overflow.
    """
    yield from ridge_system(rows, len(alphas), options).solve(alphas, options, start)


def solve_linear(
    rows: Rows | GramSystem, alphas: Penalties, options: SolverOptions, start: Result | None = None
) -> Iterator[Result]:
    """Minimize the loss in `options` for descending penalties; the first solve starts from a result, by default from 0.

    See `solve_ridge` and `solve_hinge_path`. The squared hinge requires rows of this process.
    """
    if options.loss == "squared_hinge":
        return solve_hinge_path(cast(ProcessRows, rows), alphas, options, start)
    return solve_ridge(rows, alphas, options, start)


def solve_once(
    rows: Rows | GramSystem, alpha: np.ndarray, options: SolverOptions, start: Result | None = None
) -> Result:
    """Solve for given penalties, one per target; see `solve_linear`."""
    return next(solve_linear(rows, [alpha], options, start))
