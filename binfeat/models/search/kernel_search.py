"""The search for length scales by leave-one-out errors of exact models of few rows."""

from binfeat._threads import one_blas_thread
from binfeat.length_scales.kernel_sum import Trial
from binfeat.length_scales.matrices import is_radial
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.linear_maps import LinearMapSearch
from binfeat.models.search.plan import SearchPlan
from binfeat.models.search.race import FAR, Race, kind_of, with_one_radial
from binfeat.models.search.scaled_kernels import ScaledKernels
from binfeat.models.search.setup import SearchSetup
from binfeat.models.table.scalers import NoScaler

_JUDGED = 2 / 3  # steps for a linear map, by those for length scales


class KernelSearch:
    """A gamma for each input: of the kernel of the grids, and of radial kernels.

    Kernels of the `kinds` "binning", "radial" or both are tried; those `needed` are kept, even if others do far better.
    If none is needed the model is exact or local. Length scales of local ones are learned on in cells, so that more
    rows than an exact model has ask for no longer search.
    """

    def __init__(self, problem: Problem, run: Run, kinds: set[str], needed: set[str]) -> None:
        self._problem, self._run, self._needed = problem, run, needed
        n_rows = len(problem.train) if needed else min(len(problem.train), run.limits.exact_rows)
        self._plan = SearchPlan.of(run.limits.n_steps, n_rows)
        self._setup = SearchSetup(problem, run.settings, self._plan, kinds)
        self._race = Race(needed, self._plan, run, problem)
        self._found: list[Trial] = []

    @property
    def n_stages(self) -> int:
        """Stages that callbacks see, at most."""
        return int(self._run.settings.learns_gamma)

    def run(self) -> ScaledKernels:
        """Return the kernels; given parameters are kept."""
        if not self._run.settings.learns_gamma:
            self._found = self._setup.given()
            return self._kernels()
        try:
            with one_blas_thread(), self._run.stage("length scales", self._plan.n_looks(bool(self._needed))):
                self._search()
        finally:
            if self._found:
                self._note()
        return self._kernels()

    def settled(self) -> ScaledKernels | None:
        """Return the current result after Ctrl-C, or None."""
        started = any(search.errors for search in self._race.searches)
        if not self._found and started:
            searches = [s for s in self._race.searches if s.errors or kind_of(s.kernel) in self._needed]
            self._found = [search.found for search in with_one_radial(searches)]
            self._note()
        return self._kernels() if self._found else None

    def _search(self) -> None:
        """Search for length scales, then for a linear map."""
        self._race.searches = [self._setup.search(kernel) for kernel in self._setup.kernels]
        self._found = self._race.run()
        linear_map = self._linear_map()
        if linear_map is None:
            return
        linear_map.run(int(_JUDGED * self._plan.n_steps), self._race.may_step)
        if linear_map.pays():
            self._run.note("linear map", "of all inputs", linear_map.error)
            self._found = [linear_map.found if is_radial(own.kernel.main.kernel) else own for own in self._found]

    def _linear_map(self) -> LinearMapSearch | None:
        """A search for a linear map of the inputs of the radial kernel."""
        if not self._run.limits.mechanisms.linear_maps:
            return None
        far = FAR * min(own.error for own in self._found)
        for own in self._found:
            kernel = own.kernel.main.kernel
            if is_radial(kernel) and own.error <= far:
                (search,) = (search for search in self._race.searches if search.kernel == kernel)
                if LinearMapSearch.suits(search, self._problem.categorical) and self._race.may_step():
                    return LinearMapSearch(search, self._run.settings.seed)
        return None

    def _kernels(self) -> ScaledKernels:
        problem, race, learned = self._problem, self._race, self._run.settings.learns_gamma
        scaling = "ranks" if problem.encoder.ranks.source.size else "standard"
        known = self._found, learned, race.is_perfect, race.histories
        return ScaledKernels(scaling, NoScaler(), problem.table, *known)

    def _note(self) -> None:
        best = min(self._found, key=lambda own: own.error)
        self._run.note("length scales", f"{best.kernel}, {best.n_steps} steps", best.error)
