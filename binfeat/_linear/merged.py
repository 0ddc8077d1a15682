"""Normal equations in which bins that hold one row are merged, so that solutions are shorter until they are known."""

from dataclasses import dataclass, replace

from binfeat._binning.lone_bins import MergedBins
from binfeat._linear.cg import State
from binfeat._linear.normal_equations import NormalEquations
from binfeat._linear.result import SolveInterrupted
from binfeat._rows.rows import LocalRows


@dataclass
class _Iterate:
    """What callbacks see of a solve: the coefficients of all bins so far, and intercepts."""

    merged: MergedBins
    state: State

    @property
    def solution(self):
        return self.merged.spread(self.state.solution)

    @property
    def intercept(self):
        return self.state.intercept


class MergedEquations:
    """`NormalEquations` of merged bins, with solutions for all bins.

    Parameters
    ----------
    merged : MergedBins
    rows : LocalRows
        Whose features they are.
    fit_intercept : bool
    """

    def __init__(self, merged, rows, fit_intercept):
        self._merged = merged
        self._system = NormalEquations(LocalRows(merged, rows.Y, rows.weights), fit_intercept)

    def solve(self, alphas, options, start=None):
        """Results for falling penalties, of which the first solve begins at `start`; see `solve_ridge`."""
        watch = options.callback
        if watch is not None:
            options = replace(options, callback=lambda state: watch(_Iterate(self._merged, state)))
        if start is not None:
            start = self._merged.merge(start)
        try:
            for result in self._system.solve(alphas, options, start):
                yield self._spread(result)
        except SolveInterrupted as error:
            raise SolveInterrupted(self._spread(error.result)) from error

    def _spread(self, result):
        return replace(result, solution=self._merged.spread(result.solution))
