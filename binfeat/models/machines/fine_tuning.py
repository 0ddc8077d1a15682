"""Kernels and penalty for many rows: from what samples of them are best with to what rows as dense as all need."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from binfeat.kernels.families import RBF, Matern
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.leave_one_out import inverse_root, residuals
from binfeat.length_scales.search import MOST_ALPHA
from binfeat.models.machines.cell_search import Cell, CellSearch
from binfeat.models.machines.cell_solver import is_constant
from binfeat.models.machines.kernel_rows import KernelRows
from binfeat.models.run import Phase, Run
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
    n_trees: int  # number of successive trees; each splits rows by the current kernel
    takes_samples: bool  # random sets in addition to cells
    phase: Phase  # the phase with the time limit of the solution


CELLS = Plan(500, 60, 3, False, Phase.CELLS)  # for local models, with cells of the final kernel
ALL_ROWS = Plan(750, 30, 1, True, Phase.EXACT)  # inputs that the tree splits hardly vary within a cell


class FineTuning:
    """The search for kernels and penalty in cells of rows, or in cells and in samples of all rows in turn."""

    def __init__(self, rows: KernelRows, kernels: ScaledKernels, run: Run, plan: Plan, least_alpha: float) -> None:
        self._rows, self._kernels, self._run, self._plan, self._least_alpha = rows, kernels, run, plan, least_alpha
        self._cell_rows = rows.cells(rows.known)
        self._learns_alpha = run.settings.alpha is None

    def of(self, known: Trial | None, seconds: float) -> Trial:
        """Learn kernels (length scales are kept if given) and the penalty, leaving at least `seconds`."""
        rows, run = self._rows, self._run
        start = self._start() if known is None else known
        kernel, error = start.kernel, start.error
        learns_gamma = known is None and self._kernels.learned and run.limits.mechanisms.fine_tuning
        cells = self._cells(kernel)
        if not self._kernels.is_perfect and (learns_gamma or self._learns_alpha):
            search = CellSearch(
                kernel,
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
            kernel, error = search.kernel, search.error
        if not rows.problem.is_judged_by_squares and self._learns_alpha:
            kernel = replace(kernel, alpha=self._scored(cells[:_SCORED], kernel, seconds))
        return Trial(kernel, self._error(cells[:_LANES], kernel) if np.isnan(error) else error)

    def _start(self) -> Trial:
        """More of the better kernel than of the other."""
        rows, run, settings = self._rows, self._run, self._run.settings
        found, has_second = sorted(self._kernels.found, key=lambda own: own.error), run.limits.mechanisms.second_kernel
        kernels = [own.kernel for own in (found if has_second else found[:1])]
        if has_second and len(kernels) == 1 and settings.kernel is None and self._kernels.learned:
            kernels.append(replace(kernels[0], parts=[second_kernel(kernels[0].main)]))
        shares = [1.0] if len(kernels) == 1 else [_BETTER_SHARE, 1 - _BETTER_SHARE]
        parts = [replace(own.main, share=share) for own, share in zip(kernels, shares, strict=True)]
        alpha = rows.problem.relative_alpha(settings.alpha)
        if alpha is None:
            alpha = _DENSER * float(np.exp(sum(share * np.log(own.alpha) for own, share in zip(kernels, shares))))
        return Trial(replace(kernels[0], parts=parts, alpha=alpha), found[0].error)

    def _cells(self, kernel: KernelSum) -> list[np.ndarray]:
        """Rows of cells that may be learned from, in random order."""
        seed = self._run.settings.seed
        cells = self._cell_rows.samples(kernel, self._plan.set_rows, seed)
        known = [own for own in cells if len(own) >= _FEWEST and not is_constant(self._rows.problem.Y[own])] or cells
        return [known[number] for number in np.random.default_rng(seed).permutation(len(known))]

    def _search(self, search: CellSearch, cells: list[np.ndarray], n_trees: int, goes_on: Callable[[], bool]) -> None:
        sets, n_steps = self._sets(cells), self._plan.n_steps
        for k in range(n_steps):
            if k and not k % (n_steps // _LOOKS) and not goes_on():
                break
            if k and not k % (n_steps // n_trees):
                sets = self._sets(self._cells(search.kernel))
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

    def _error(self, cells: list[np.ndarray], kernel: KernelSum) -> float:
        """Squared leave-one-out error of rows in some cells, where nothing was learned that tells it."""
        values = kernel.values(self._rows.frame, self._rows.problem.categorical, 1)
        known = map(self._cell_rows.part, cells)
        left = [residuals(values(X, X), kernel.alpha, weights, Y) for X, Y, weights in known]
        return float(np.mean(np.concatenate(left) ** 2))

    def _scored(self, cells: list[np.ndarray], kernel: KernelSum, seconds: float) -> float:
        """Select the penalty by the leave-one-out loss, from the best penalty for squared errors.

        It is as good as time allows: `seconds` have to be left.
        """
        problem, numbers, alpha = self._rows.problem, np.concatenate(cells), kernel.alpha
        values, losses = kernel.values(self._rows.frame, problem.categorical, 1), problem.losses(numbers)
        known = [values(X, X) for X in map(self._rows.columns, cells)]

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


def second_kernel(part: KernelPart) -> KernelPart:
    """Beside a kernel that is alone: the same with longer scales; or a rough one, where few rows found a smooth one."""
    if isinstance(part.kernel, RBF):
        return replace(part, kernel=Matern(1.5))
    return replace(part, base=_LONGER * part.base)
