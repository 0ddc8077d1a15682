"""The search for scaling and length scales, by leave-one-out errors of exact machines on few rows."""

import numpy as np

from binfeat._engine.policy import one_blas_thread
from binfeat._machine.problem import Problem
from binfeat._machine.run import Run
from binfeat._machine.search.length_scales import LengthScales
from binfeat._machine.search.linear_maps import LinearMapSearch
from binfeat._machine.search.plan import SearchPlan, n_chunks
from binfeat._machine.search.race import FAR, Race, kind_of, with_one_radial
from binfeat._machine.search.scaled_kernels import ScaledKernels
from binfeat._machine.search.setup import Scaling, SearchSetup

_GAIN = 0.97  # share of the first scaling's error that another one has to be below
_JUDGED = 2 / 3  # steps for a linear map, by those for length scales


class KernelSearch:
    """How inputs are scaled, and a gamma for each input: of the kernel of the grids, and of radial kernels.

    Kernels of the `kinds` "binning", "radial" or both are tried; those `needed` are kept, even if others do far better.
    If none is needed the machine is exact or local. Length scales of local ones are learned on in cells, so that more
    rows than an exact machine has ask for no longer search.
    """

    def __init__(self, problem: Problem, run: Run, kinds: set[str], needed: set[str]) -> None:
        self._problem, self._run, self._needed = problem, run, needed
        n_rows = len(problem.train) if needed else min(len(problem.train), run.limits.exact_rows)
        self._plan = SearchPlan.of(run.limits.n_steps, n_rows)
        self._setup = SearchSetup(problem, run.settings, self._plan, kinds)
        self._on_trial: list[Scaling] = []
        self._scaling: Scaling  # that is taken
        self._race = Race(needed, self._plan, run, problem)
        self._scales: list[LengthScales] = []

    @property
    def n_stages(self) -> int:
        """Stages that callbacks see, at most."""
        return int(self._run.settings.learns_gamma)

    def run(self) -> ScaledKernels:
        """What scales the inputs, and the kernels, as far as the user leaves that open."""
        names = self._setup.scalings
        if not self._run.settings.learns_gamma:
            self._scaling = self._setup.scaling(names[0])
            X = self._scaling.scaler.transform(self._problem.table)
            self._scales = self._setup.given(X)
            return self._kernels(X)
        try:
            with one_blas_thread():
                self._search("scaling and length scales" if len(names) > 1 else "length scales", names)
        finally:
            if self._scales:
                self._note()
        return self._kernels(self._scaling.scaler.transform(self._problem.table))

    def settled(self) -> ScaledKernels | None:
        """After Ctrl-C: what was found so far, or None if that is nothing."""
        started = any(search.errors for search in self._race.searches)
        if not self._scales and started:
            if self._on_trial:
                self._scaling = self._take_best()
            searches = [s for s in self._race.searches if s.errors or kind_of(s) in self._needed]
            self._scales = [search.scales for search in with_one_radial(searches)]
            self._note()
        return self._kernels(self._scaling.scaler.transform(self._problem.table)) if self._scales else None

    def _search(self, stage: str, names: list[str]) -> None:
        """Search for scaling and length scales, then for a linear map."""
        run = self._run
        with run.stage(stage, self._n_looks(len(names))):
            self._learn(names)
            linear_map = self._linear_map()
            if linear_map is not None:
                linear_map.run(int(_JUDGED * self._plan.n_steps), self._race.may_step)
        if linear_map is not None and linear_map.pays():
            run.note("linear map", "of all inputs", linear_map.error)
            self._scales = [linear_map.scales if kind_of(scales) == "radial" else scales for scales in self._scales]

    def _learn(self, names: list[str]) -> None:
        """The first search: scalings on trial, if there are several, then the kernels with the best of them."""
        scalings, kernels = [self._setup.scaling(name) for name in names], self._setup.kernels
        if len(scalings) == 1:
            (self._scaling,) = scalings
            self._race.searches = [self._setup.search(kernel, self._scaling) for kernel in kernels]
        else:
            self._on_trial = scalings
            self._race.searches = [self._setup.search(kernels[0], scaling) for scaling in scalings]
            self._race.step(self._plan.trial, self._plan.rows)
            self._scaling = self._take_best()
        self._scales = self._race.run()

    def _take_best(self) -> Scaling:
        """The scaling that did best in its trial, and a search with it for each kernel."""
        searches = self._race.searches
        errors = [np.inf if np.isnan(search.error) else search.error for search in searches]
        best = min(range(len(errors)), key=lambda k: errors[k] / (1.0 if k == 0 else _GAIN))
        scaling, self._on_trial = self._on_trial[best], []
        self._run.note("scaling", scaling.name, searches[best].error)
        others = [self._setup.search(kernel, scaling) for kernel in self._setup.kernels[1:]]
        self._race.searches = [searches[best], *others]
        return scaling

    def _linear_map(self) -> LinearMapSearch | None:
        """A search for a linear map of the inputs of the radial kernel."""
        if not self._run.limits.mechanisms.linear_maps:
            return None
        far = FAR * _least_error(self._scales)
        for scales in self._scales:
            if kind_of(scales) == "radial" and scales.error <= far:
                (search,) = (search for search in self._race.searches if search.kernel == scales.kernel)
                if LinearMapSearch.suits(search, self._problem.categorical) and self._race.may_step():
                    return LinearMapSearch(search, self._run.settings.seed)
        return None

    def _n_looks(self, n_scalings: int) -> int:
        """How often it is asked whether to go on with the first search, if nothing ends it."""
        plan, needs_kernel = self._plan, bool(self._needed)
        if n_scalings == 1:
            return plan.n_looks(0, needs_kernel)
        begin = 0 if len(self._setup.kernels) > 1 else plan.trial
        return n_chunks(0, plan.trial) + plan.n_looks(begin, needs_kernel)

    def _kernels(self, X: np.ndarray) -> ScaledKernels:
        scaling, race, learned = self._scaling, self._race, self._run.settings.learns_gamma
        known = scaling.name, scaling.scaler, X, self._scales, learned, race.is_perfect, race.histories
        return ScaledKernels(*known)

    def _note(self) -> None:
        best = min(self._scales, key=lambda scales: scales.error)
        self._run.note("length scales", f"{best.kernel!r}, {best.n_steps} steps", best.error)


def _least_error(found: list[LengthScales]) -> float:
    return min(scales.error for scales in found)
