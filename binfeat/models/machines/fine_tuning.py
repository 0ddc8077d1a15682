"""Kernels and penalty for many rows: from what samples of them are best with to what rows as dense as all need."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from binfeat.kernels.families import RBF, Matern
from binfeat.models.fitted.kernel_function import KernelPart, kernel_sum
from binfeat.models.kernel_algebra.leave_one_out import inverse_root, residuals
from binfeat.models.machines.cell_search import Cell, CellSearch
from binfeat.models.machines.cell_solver import is_constant
from binfeat.models.machines.descent import Hyperparameters
from binfeat.models.machines.exact_tuning import Tuned
from binfeat.models.machines.kernel_rows import KernelRows
from binfeat.models.run import Phase, Run
from binfeat.models.search.length_scales import MOST_ALPHA, LengthScales
from binfeat.models.search.scaled_kernels import ScaledKernels

_FEWEST = 150  # rows of a cell that is learned from
_LANES = 2  # sets of rows of a step
_LOOKS = 6  # at the clock
_BETTER_SHARE = 0.75  # to start with
_LONGER = 0.3  # times gamma, of a second kernel of the same kind
_DENSER = 0.2  # times the penalty of a sample of rows, to start with
_DECREASE = np.sqrt(10.0)  # between two penalties that a score is asked for
_SCORED = 8  # cells


@dataclass(frozen=True)
class Plan:
    """Steps of a search, and the sets of rows that they go by."""

    set_rows: int  # at most
    n_steps: int
    n_trees: int  # one after the other, whose cells sets come from: each splits rows by the kernel so far
    takes_samples: bool  # beside cells
    phase: Phase  # in which the machine has to be solved


CELLS = Plan(500, 60, 3, False, Phase.CELLS)  # for machines that have cells, too, of the last kernel
ALL_ROWS = Plan(750, 30, 1, True, Phase.EXACT)  # inputs that the tree splits hardly vary within a cell


class FineTuning:
    """The search for kernels and penalty in cells of rows, or in cells and in samples of all rows in turn."""

    def __init__(self, rows: KernelRows, kernels: ScaledKernels, run: Run, plan: Plan, least_alpha: float) -> None:
        self._rows, self._kernels, self._run, self._plan, self._least_alpha = rows, kernels, run, plan, least_alpha
        self._cell_rows = rows.cells(rows.known)
        self._learns_alpha = run.settings.alpha is None

    def of(self, known: Hyperparameters | None, seconds: float) -> Tuned:
        """Kernels, whose length scales are kept if they are known, and the penalty; `seconds` have to be left."""
        rows, run = self._rows, self._run
        start = self._start() if known is None else known
        parts, alpha = start.parts, start.alpha
        learns_gamma = known is None and self._kernels.learned and run.limits.mechanisms.fine_tuning
        error = min(part.scales.error for part in parts)
        cells = self._cells(parts)
        if not self._kernels.is_perfect and (learns_gamma or self._learns_alpha):
            search = CellSearch(
                parts,
                alpha,
                rows.frame,
                rows.problem.categorical,
                n_rows=len(rows.known),
                least_alpha=self._least_alpha,
                learns_gamma=learns_gamma,
                learns_alpha=self._learns_alpha,
                seed=run.settings.seed,
                n_jobs=run.settings.n_jobs,
            )
            n_trees = self._plan.n_trees if learns_gamma else 1  # given length scales would split the same cells
            self._search(search, cells, n_trees, lambda: run.step() and run.may_continue(self._plan.phase, seconds))
            parts, alpha, error = search.parts, search.alpha, search.error
        if not rows.problem.is_judged_by_squares and self._learns_alpha:
            alpha = self._scored(cells[:_SCORED], parts, alpha, seconds)
        return Tuned(parts, alpha, self._error(cells[:_LANES], parts, alpha) if np.isnan(error) else error)

    def _start(self) -> Hyperparameters:
        """More of the better kernel than of the other."""
        rows, run, settings = self._rows, self._run, self._run.settings
        scales, mechanisms = sorted(self._kernels.scales, key=lambda scales: scales.error), run.limits.mechanisms
        scales = scales if mechanisms.second_kernel else scales[:1]
        if mechanisms.second_kernel and len(scales) == 1 and settings.kernel is None and self._kernels.learned:
            scales.append(second_kernel(scales[0]))
        shares = [1.0] if len(scales) == 1 else [_BETTER_SHARE, 1 - _BETTER_SHARE]
        parts = [KernelPart(own, 1.0, share) for own, share in zip(scales, shares, strict=True)]
        given = rows.problem.relative_alpha(settings.alpha)
        if given is not None:
            return Hyperparameters(parts, given)
        alpha = _DENSER * float(np.exp(sum(part.share * np.log(part.scales.alpha) for part in parts)))
        return Hyperparameters(parts, alpha)

    def _cells(self, parts: list[KernelPart]) -> list[np.ndarray]:
        """Rows of cells that may be learned from, in random order."""
        seed = self._run.settings.seed
        cells = self._cell_rows.samples(parts, self._plan.set_rows, seed)
        known = [own for own in cells if len(own) >= _FEWEST and not is_constant(self._rows.problem.Y[own])] or cells
        return [known[number] for number in np.random.default_rng(seed).permutation(len(known))]

    def _search(self, search: CellSearch, cells: list[np.ndarray], n_trees: int, goes_on: Callable[[], bool]) -> None:
        sets, n_steps = self._sets(cells), self._plan.n_steps
        for k in range(n_steps):
            if k and not k % (n_steps // _LOOKS) and not goes_on():
                break
            if k and not k % (n_steps // n_trees):
                sets = self._sets(self._cells(search.parts))
            search.step([next(sets) for _ in range(_LANES)], k / n_steps, k)

    def _sets(self, cells: list[np.ndarray]) -> Iterator[Cell]:
        """Sets of rows for steps, without end: every cell once before any comes again."""
        rng, rows, Y = np.random.default_rng(self._run.settings.seed), self._rows.known, self._rows.problem.Y
        while True:
            for number in rng.permutation(len(cells)):
                yield self._cell_rows.part(cells[number])
                if self._plan.takes_samples:
                    some = rng.choice(rows, min(self._plan.set_rows, len(rows)), replace=False)
                    if not is_constant(Y[some]):
                        yield self._cell_rows.part(some)

    def _error(self, cells: list[np.ndarray], parts: list[KernelPart], alpha: float) -> float:
        """Squared leave-one-out error of rows in some cells, where nothing was learned that tells it."""
        kernel = kernel_sum(parts, self._rows.frame, self._rows.problem.categorical, 1)
        known = map(self._cell_rows.part, cells)
        left = [residuals(kernel(X, X), alpha, weights, Y) for X, Y, weights in known]
        return float(np.mean(np.concatenate(left) ** 2))

    def _scored(self, cells: list[np.ndarray], parts: list[KernelPart], alpha: float, seconds: float) -> float:
        """The penalty by what rows left out are judged by, from one that squared errors are best with.

        It is as good as time allows: `seconds` have to be left.
        """
        problem, numbers = self._rows.problem, np.concatenate(cells)
        kernel, losses = kernel_sum(parts, self._rows.frame, problem.categorical, 1), problem.losses(numbers)
        known = [kernel(X, X) for X in map(self._rows.columns, cells)]

        def loss(alpha: float) -> float:
            left = [problem.left_out(rows, K, alpha, inverse_root) for rows, K in zip(cells, known, strict=True)]
            return float(losses(np.concatenate(left)).mean())

        start = self._run.clock.used
        best = loss(alpha)
        seconds += self._run.clock.used - start

        def may_try(alpha: float) -> bool:
            return self._least_alpha <= alpha <= MOST_ALPHA and self._run.may_continue(self._plan.phase, seconds)

        for move in (1 / _DECREASE, _DECREASE):
            before = alpha
            while may_try(alpha * move) and (other := loss(alpha * move)) < best:
                alpha, best = alpha * move, other
            if alpha != before:
                break
        return alpha


def second_kernel(scales: LengthScales) -> LengthScales:
    """Beside a kernel that is alone: the same with longer scales; or a rough one, where few rows found a smooth one."""
    if isinstance(scales.kernel, RBF):
        return replace(scales, kernel=Matern(1.5))
    return replace(scales, gamma=_LONGER * scales.gamma)
