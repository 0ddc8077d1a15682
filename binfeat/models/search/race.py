"""Parallel searches for length scales; searches that fall behind are stopped."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from binfeat._threads import side_by_side
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF
from binfeat.length_scales.kernel_sum import Trial
from binfeat.length_scales.matrices import is_radial
from binfeat.length_scales.search import LengthScaleSearch
from binfeat.models.problem import Problem
from binfeat.models.run import Phase, Run
from binfeat.models.search.plan import CHUNK, MOST_ROWS, SearchPlan

_Result = TypeVar("_Result")

FAR = 1.12  # times the better kernel's leave-one-out error, beyond which another one is given up
_BETTER = 0.97  # maximum error of a radial kernel, relative to the kernel of the grids
_COMMON_ROWS = 1000  # on which kernels are compared
_MORE, _MUCH = 2, 0.9  # times the late rows, on which inputs are revived; share of the error, below which it was much


def kind_of(kernel: Kernel) -> str:
    """Return the kind of features for a kernel."""
    return "radial" if is_radial(kernel) else "binning"


def with_one_radial(searches: list[LengthScaleSearch]) -> list[LengthScaleSearch]:
    """The searches without the worse of two radial kernels."""
    radial = sorted((search for search in searches if is_radial(search.kernel)), key=lambda search: search.error)
    return [*(search for search in searches if not is_radial(search.kernel)), *radial[:1]]


class Race:
    """Searches of several kernels for one problem; `searches` are those that are not given up.

    Kernels of a `needed` kind are kept, even if others do far better. Errors that are negligible leave nothing to gain,
    unless rows belong together: then single ones that are left out tell neither that, nor that a kernel is far worse.
    """

    def __init__(self, needed: set[str], plan: SearchPlan, run: Run, problem: Problem) -> None:
        self.searches = list[LengthScaleSearch]()
        self._needed, self._plan, self._run = needed, plan, run
        self._negligible, self._far = (0.0, np.inf) if problem.is_grouped else (problem.negligible, FAR)

    @property
    def is_perfect(self) -> bool:
        """Return True if the error of a kernel is negligible."""
        return any(search.error < self._negligible for search in self.searches)

    def may_step(self) -> bool:
        """Return True if time and callbacks allow more steps, and these may help."""
        return not self.is_perfect and self._run.may_continue(Phase.SEARCH)

    def step(self, last: int, n_rows: int) -> None:
        """Run all searches to a step, side by side in threads, while there is time."""
        done = min(search.n_done for search in self.searches)
        for until in (*range(done + CHUNK, last, CHUNK), last):
            if done and not self.may_step():
                break
            done, gone = until, self._run.clock.gone(Phase.SEARCH)
            options = {"n_steps": self._plan.n_steps, "most_rows": n_rows, "until": until, "progress": gone}
            self._side_by_side(partial(LengthScaleSearch.run, **options))
            self._run.step()

    def run(self) -> list[Trial]:
        """Run the searches, stop those that fall behind, and compare the results."""
        plan, late_rows = self._plan, self._plan.late_rows
        if self._needed:
            self.step(plan.half, plan.rows)
            enough = _BETTER * min(search.error for search in self.searches if self._is_needed(search))
            self._drop(lambda search: not search.error < enough)
        self.step(plan.early, plan.rows)
        far = self._far * min(search.error for search in self.searches)
        self._drop(lambda search: search.error > far)
        if self.may_step() and self._revived(_MORE * late_rows):
            late_rows = max(late_rows, min(MOST_ROWS, _MORE * late_rows))
        is_open = self._run.settings.kernel is None
        radial = [search for search in self.searches if is_open and is_radial(search.kernel)]
        self.searches = [*self.searches, *(search.of_kernel(RBF(), plan.early) for search in radial)]
        self.step(plan.race, late_rows)
        self.searches = with_one_radial(self.searches)
        self.step(plan.n_steps, late_rows)
        return self._compared()

    def _side_by_side(self, act: Callable[[LengthScaleSearch], _Result]) -> list[_Result]:
        return side_by_side(act, self.searches, self._run.settings.n_jobs)

    def _is_needed(self, search: LengthScaleSearch) -> bool:
        return kind_of(search.kernel) in self._needed

    def _drop(self, is_behind: Callable[[LengthScaleSearch], bool]) -> None:
        """Give up the searches that are not needed and fall behind."""
        self.searches = [search for search in self.searches if self._is_needed(search) or not is_behind(search)]

    def _revived(self, n_rows: int) -> bool:
        """Return True if seemingly irrelevant inputs lower the error on this number of rows."""
        if not self._run.limits.mechanisms.revival:
            return False
        return min(self._side_by_side(lambda search: search.revive(n_rows))) < _MUCH

    def _compared(self) -> list[Trial]:
        """Return the results, with errors on the same rows."""
        errors = self._side_by_side(lambda search: search.error_on(_COMMON_ROWS))
        return [replace(search.found, error=error) for search, error in zip(self.searches, errors)]

    @property
    def histories(self) -> list[tuple[Kernel, np.ndarray, np.ndarray]]:
        """Each kernel with the errors and the gammas of all its steps."""
        whole = [(search, len(search.gammas)) for search in self.searches]  # Ctrl-C may come between the two
        return [(search.kernel, np.array(search.errors[:n]), np.array(search.gammas)) for search, n in whole if n]
