"""The selection of kernels by searches for length scales, and its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.arrays import quotients
from binfeat._common.subsets import thinned
from binfeat._common.validation import WIDEST, check_gamma
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.length_scales.codes import clip_codes
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.limits import SEARCH
from binfeat.length_scales.matrices import is_radial
from binfeat.length_scales.search import LengthScaleSearch, SearchPlan, exponent_shares, mean_distances
from binfeat.models.problem import Problem, relative_alpha, rows_of
from binfeat.models.run import Phase, Run
from binfeat.models.search.linear_maps import LinearMapSearch


@dataclass(frozen=True, eq=False)
class ScaledKernels:
    """Kernels with one gamma per input of the encoded table, with errors on the same rows."""

    found: list[Trial]  # first the kernel of the grids, if any, then a radial one
    learned: bool = False  # True if length scales are learned from this table
    is_perfect: bool = False  # True if the error of a kernel is negligible
    histories: list[tuple[Kernel, np.ndarray, np.ndarray]] = field(default_factory=list)  # of each kernel
    unseen: np.ndarray | None = None  # rows for validation, if steps overfit the other rows

    @property
    def binning(self) -> KernelSum:
        """Kernel of the grids."""
        return self.found[0].kernel

    @property
    def has_radial(self) -> bool:
        return any(is_radial(own.kernel.main.kernel) for own in self.found)

    @property
    def radial(self) -> KernelSum:
        """Radial kernel."""
        return next(own.kernel for own in self.found if is_radial(own.kernel.main.kernel))

    @property
    def vary(self) -> bool:
        """Return True if an input varies; otherwise the model is constant."""
        return any(own.kernel.main.gamma.any() for own in self.found)

    def history(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        """Return errors (n_steps,) and gammas (n_steps, n_inputs) of the steps to a kernel; empty without a search.

        Grids can have another kernel with the length scales of the search.
        """
        own = [(errors, gammas) for known, errors, gammas in self.histories if known == kernel]
        if not is_radial(kernel):
            own += [(errors, gammas) for known, errors, gammas in self.histories if not is_radial(known)]
        return own[0] if own else (np.empty(0), np.empty((0, self.binning.main.gamma.size)))

    def relevances(self, problem: Problem, part: KernelPart, n_rows: int, seed: int) -> np.ndarray:
        """Return the share of each input in the mean exponent of a kernel, on a limited number of rows."""
        rows, rng = problem.train[:n_rows], np.random.default_rng(seed)
        distances = mean_distances(problem.table[rows], problem.categorical, rng, part.kernel.power)
        return exponent_shares(part.gamma, distances)


def _with_one_radial(searches: list[LengthScaleSearch]) -> list[LengthScaleSearch]:
    """Return the searches without the worse of two radial kernels."""
    radial = sorted((search for search in searches if is_radial(search.kernel)), key=lambda search: search.error)
    return [*(search for search in searches if not is_radial(search.kernel)), *radial[:1]]


def advance(
    searches: list[LengthScaleSearch], plan: SearchPlan, last: int, n_rows: int, run: Run, may_step: Callable[[], bool]
) -> None:
    """Run searches to a step, with this many rows per step, side by side in threads, while `may_step()`."""
    done = min(search.n_done for search in searches)
    for until in (*range(done + SEARCH.look_steps, last, SEARCH.look_steps), last):
        if done and not may_step():
            break
        done, share_used = until, run.clock.share_used(Phase.SEARCH)
        options = {"n_steps": plan.n_steps, "most_rows": n_rows, "until": until, "progress": share_used}
        side_by_side(partial(LengthScaleSearch.run, **options), searches, run.settings.n_jobs)
        run.step()


def histories_of(searches: list[LengthScaleSearch]) -> list[tuple[Kernel, np.ndarray, np.ndarray]]:
    """Return each kernel with the errors and gammas of its steps."""
    whole = [(search, len(search.gammas)) for search in searches]  # Ctrl-C can arrive between the two
    return [(search.kernel, np.array(search.errors[:n]), np.array(search.gammas)) for search, n in whole if n]


def negligible_error(problem: Problem) -> float:
    """Return the error at which a search ends; 0 for groups, because few groups can have a small error by chance."""
    return 0.0 if problem.groups is not None else problem.negligible


class KernelSearch:
    """Search for a gamma per input, for the kernel of the grids and for radial kernels.

    It tries the `kinds` "binning", "radial" or both. `needed` kinds are kept, even if others are far better. If none is
    needed, the model is exact or local. Local models continue to learn length scales in cells, so more rows need no
    longer search. If a kind is needed, kernels of other kinds are dropped after half of the steps unless they are 3 %
    better. Without groups, a kernel that is not needed and is far worse than the best is dropped later.

    `n_train` is the number of training rows of the final model; the problem may contain only a sample of them.
    """

    def __init__(self, problem: Problem, run: Run, kinds: set[str], needed: set[str], n_train: int) -> None:
        self._problem, self._run, self._needed = problem, run, needed
        n_rows = n_train if needed else min(n_train, run.limits.exact_rows)
        self._plan = SearchPlan.of(run.limits.n_steps, n_rows)
        self._kernels_tried = _kernels_of(run.settings.kernel, kinds)
        self._searches: list[LengthScaleSearch] = []  # searches that continue
        self._found: list[Trial] = []

    @property
    def n_stages(self) -> int:
        """Maximum number of stages for callbacks."""
        return int(self._run.settings.learns_gamma)

    def run(self) -> ScaledKernels:
        """Return the kernels; given parameters are kept."""
        if not self._run.settings.learns_gamma:
            self._found = [self._given(kernel) for kernel in self._kernels_tried]
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
        if not self._found and any(search.errors for search in self._searches):
            searches = [search for search in self._searches if search.errors or self._is_needed(search)]
            self._found = [search.found for search in _with_one_radial(searches)]
            self._note()
        return self._kernels() if self._found else None

    def _search(self) -> None:
        """Search for length scales, then for a linear map."""
        problem, settings, plan = self._problem, self._run.settings, self._plan
        rows = problem.train[: plan.n_steps * max(SEARCH.most_step_rows, plan.late_rows)]
        X = problem.table[rows]
        if not settings.may_take_ranks:  # ranks resolve the other values of inputs with codes
            X = clip_codes(X, problem.categorical, settings.seed)
        table = X, problem.Y[rows], problem.relative_weights(rows), problem.categorical
        begin = partial(
            LengthScaleSearch,
            alpha=relative_alpha(problem, settings.alpha),
            starts_shorter=self._run.limits.mechanisms.shorter_starts,
            groups=rows_of(problem.related, rows),
            n_jobs=settings.n_jobs,
        )
        self._searches = [begin(kernel, *table, settings.seed) for kernel in self._kernels_tried]
        self._found = self._select_kernels()
        linear_map = self._linear_map()
        if linear_map is None:
            return
        linear_map.run(int(2 / 3 * self._plan.n_steps), self._may_step)
        if linear_map.is_better():
            self._run.note("linear map", "of all inputs", linear_map.error)
            self._found = [
                linear_map.found if is_radial(search.kernel) else search.found_on(linear_map.unseen)
                for search in self._searches
            ]

    def _select_kernels(self) -> list[Trial]:
        """Run the searches, stop those that fall behind, and return the results, with errors on the same rows."""
        plan = self._plan
        if self._needed:
            self._advance(plan.half, plan.rows)
            enough = SEARCH.better_error * min(own.error for own in self._searches if self._is_needed(own))
            self._drop(lambda search: not search.error < enough)
        self._advance(plan.early, plan.rows)
        if self._problem.groups is None:
            far = SEARCH.far_error * min(search.error for search in self._searches)
            self._drop(lambda search: search.error > far)
        is_open = self._run.settings.kernel is None and self._run.limits.mechanisms.rbf
        radial = [search for search in self._searches if is_open and is_radial(search.kernel)]
        self._searches = [*self._searches, *(search.of_kernel(RBF(), plan.early) for search in radial)]
        self._advance(plan.kernel_selection, plan.late_rows)
        self._searches = _with_one_radial(self._searches)
        self._advance(plan.n_steps, plan.late_rows)
        rows = thinned(self._searches[0].used, SEARCH.compared_rows)
        return side_by_side(lambda search: search.found_on(rows), self._searches, self._run.settings.n_jobs)

    def _advance(self, last: int, n_rows: int) -> None:
        advance(self._searches, self._plan, last, n_rows, self._run, self._may_step)

    def _may_step(self) -> bool:
        """Return True if time and callbacks allow more steps, and these may help."""
        return not self._is_perfect and self._run.may_continue(Phase.SEARCH)

    @property
    def _is_perfect(self) -> bool:
        """Return True if the error of a kernel is negligible."""
        return any(search.error < negligible_error(self._problem) for search in self._searches)

    def _is_needed(self, search: LengthScaleSearch) -> bool:
        return ("radial" if is_radial(search.kernel) else "binning") in self._needed

    def _drop(self, is_behind: Callable[[LengthScaleSearch], bool]) -> None:
        """Drop searches that are not needed and far worse."""
        self._searches = [search for search in self._searches if self._is_needed(search) or not is_behind(search)]

    def _given(self, kernel: Kernel) -> Trial:
        """Return the kernel with a gamma that is not learned."""
        part = KernelPart(kernel, _given_gamma(self._problem, self._run.settings.gamma, kernel.power))
        return Trial(KernelSum([part], 0.3), np.nan)

    def _linear_map(self) -> LinearMapSearch | None:
        """Search for a linear map of the inputs of the radial kernel."""
        if not self._run.limits.mechanisms.linear_maps:
            return None
        far = SEARCH.far_error * min(own.error for own in self._found)
        for own in self._found:
            kernel = own.kernel.main.kernel
            if is_radial(kernel) and own.error <= far:
                (search,) = (search for search in self._searches if search.kernel == kernel)
                if LinearMapSearch.suits(search, self._problem.categorical) and self._may_step():
                    return LinearMapSearch(search, self._run.settings.seed)
        return None

    def _kernels(self) -> ScaledKernels:
        learned, histories = self._run.settings.learns_gamma, histories_of(self._searches)
        return ScaledKernels(self._found, learned, self._is_perfect, histories)

    def _note(self) -> None:
        best = min(self._found, key=lambda own: own.error)
        self._run.note("length scales", f"{best.kernel}, {best.n_steps} steps", best.error)


def _kernels_of(given: Kernel | None, kinds: set[str]) -> list[Kernel]:
    """Return the kernel of the grids, then a radial kernel, if their kind is requested."""
    binning, radial = Laplacian() if given is None else given, given if is_radial(given) else Matern(1.5)
    return [kernel for kind, kernel in (("binning", binning), ("radial", radial)) if kind in kinds]


def _given_gamma(problem: Problem, given: ArrayLike | None, power: int) -> np.ndarray:
    """Return ``1 / (n_columns * std**power)``, or the user's gamma for inputs or encoded columns."""
    encoder = problem.encoder
    if given is None:
        std = np.where(problem.categorical, 1.0, problem.table.std(axis=0))
        return quotients(1.0, std**power * std.size)
    if np.shape(given) == encoder.source.shape:  # such as `gamma_` of another model
        own = check_gamma(given, encoder.source.size, power=None)  # models may compare kernels of both powers
    else:
        own = check_gamma(given, encoder.inputs.n_inputs, power=None)[encoder.source]
    _check_size(problem, own, power)
    return own


def _check_size(problem: Problem, gamma: np.ndarray, power: int) -> None:
    """Refuse a gamma beyond the range of float32 with a ValueError."""
    spread = np.where(problem.categorical, 1.0, problem.table.std(axis=0) ** power)
    large = np.flatnonzero(gamma / WIDEST * spread > 1)
    if large.size:
        raise ValueError(
            f"gamma must be at most {WIDEST} over the spread of an input; got {gamma[large[0]]:.6g} for input "
            f"{problem.encoder.source[large[0]]}. Decrease gamma, or use gamma='learn'."
        )
