"""Normal equations in which bins that hold one row are merged, so that solutions are shorter while they are sought."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from binfeat._binning.lone_bins import MergedBins
from binfeat._linear.normal_equations import NormalEquations
from binfeat._linear.result import Iterate, Penalties, Result, SolveInterrupted, SolverOptions
from binfeat._rows.rows import LocalRows


@dataclass
class _SpreadIterate:
    """What callbacks see of a solve: the coefficients of all bins, and the intercepts."""

    merged: MergedBins
    state: Iterate

    @property
    def solution(self) -> np.ndarray:
        return self.merged.spread(self.state.solution)

    @property
    def intercept(self) -> np.ndarray:
        return self.state.intercept


class MergedEquations:
    """`NormalEquations` of the merged bins of rows, with solutions for all bins."""

    def __init__(self, merged: MergedBins, rows: LocalRows, fit_intercept: bool) -> None:
        self._merged = merged
        self._system = NormalEquations(LocalRows(merged, rows.Y, rows.weights), fit_intercept)

    def solve(self, alphas: Penalties, options: SolverOptions, start: np.ndarray | None = None) -> Iterator[Result]:
        """Results for falling penalties, of which the first solve begins at `start`; see `solve_ridge`."""
        watch = options.callback
        if watch is not None:
            options = replace(options, callback=lambda state: watch(_SpreadIterate(self._merged, state)))
        if start is not None:
            start = self._merged.merge(start)
        try:
            for result in self._system.solve(alphas, options, start):
                yield self._spread(result)
        except SolveInterrupted as error:
            raise SolveInterrupted(self._spread(error.result)) from error

    def _spread(self, result: Result) -> Result:
        return replace(result, solution=self._merged.spread(result.solution))
