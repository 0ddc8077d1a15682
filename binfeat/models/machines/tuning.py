"""The choice of shares, overall length scale and penalty of a kernel, for few rows and in cells of many rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

import numpy as np

from binfeat._common.held_out import SquaredErrors
from binfeat._threads import one_blas_thread, side_by_side, threads_are_free
from binfeat.kernels.families import RBF, Matern
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.leave_one_out import (
    SingularKernelError,
    inverse_root,
    least_alpha,
    precise_inverse_root,
    residuals,
)
from binfeat.length_scales.search import MOST_ALPHA
from binfeat.models.kernel_algebra.loss import SquaredError
from binfeat.models.machines.candidate import KernelRows
from binfeat.models.machines.cells import Cell, CellSearch, is_constant
from binfeat.models.machines.limits import TUNING
from binfeat.models.problem import relative_alpha, rows_of
from binfeat.models.run import Phase, Run
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.search.wide import wide_losses

_Trial = TypeVar("_Trial", bound=Trial)
Move = Callable[[KernelSum, float], KernelSum]  # by a factor


def place(kernel: KernelSum) -> tuple[np.float32, ...]:
    """What differs between kernels of one descent, up to rounding."""
    return *(np.float32(part.factor) for part in kernel.parts), np.float32(kernel.alpha)


class Descent(Generic[_Trial]):
    """Step down while that helps, otherwise up; hyperparameters that were not better are not tried again.

    `make` tries a kernel next to a trial that is known, which may have the same parts. `may_try` decides by the best
    trial so far whether another one may gain something. Penalties stay between two ends. A descent that looks ahead
    makes the trial that may follow in another thread, if a thread is free.
    """

    def __init__(
        self,
        make: Callable[[KernelSum, _Trial], _Trial],
        may_try: Callable[[_Trial], bool],
        alphas: tuple[float, float],
        n_jobs: int | None = 1,
        looks_ahead: bool = False,
    ) -> None:
        self._make, self._may_try, self._alphas, self._n_jobs = make, may_try, alphas, n_jobs
        self._looks_ahead = looks_ahead
        self._seen: set[tuple[np.float32, ...]] = set()
        self._ahead: dict[tuple[np.float32, ...], _Trial] = {}

    def in_turn(self, start: _Trial, learns_alpha: bool, learns_factor: bool) -> _Trial:
        """The best penalty and the best overall factor, each in turn."""
        best = start
        for _ in range(TUNING.rounds):
            before = best
            if learns_alpha:
                best = self.penalty(best)
            if learns_factor:
                best = self._best(best, KernelSum.scaled, TUNING.factor)
            if best is before:
                break
        return best

    def penalty(self, start: _Trial) -> _Trial:
        """The best penalty."""
        return self._best(start, self._with_alpha, TUNING.penalty_factor)

    def _with_alpha(self, kernel: KernelSum, step: float) -> KernelSum:
        return replace(kernel, alpha=min(max(kernel.alpha * step, self._alphas[0]), self._alphas[1]))

    def _best(self, start: _Trial, move: Move, step: float) -> _Trial:
        """The best of the trials that a move leads to from `start`."""
        self._seen.add(place(start.kernel))
        for factor in (1 / step, step):
            best = start
            while self._may_try(best):
                kernel = move(best.kernel, factor)
                if place(kernel) in self._seen:
                    break
                self._seen.add(place(kernel))
                following = move(best.kernel, step) if best is start else move(kernel, factor)
                other = self._tried(kernel, following, best)
                if other.error >= best.error:
                    break
                best = other
            if best is not start:
                break
        self._ahead.clear()
        return best

    def _tried(self, kernel: KernelSum, following: KernelSum, near: _Trial) -> _Trial:
        if place(kernel) not in self._ahead:
            wanted = {place(kernel): kernel}
            if self._looks_ahead and place(following) not in self._seen and threads_are_free(self._n_jobs):
                wanted[place(following)] = following
            made = side_by_side(lambda own: self._make(own, near), wanted.values(), self._n_jobs)
            self._ahead |= zip(wanted, made, strict=True)
        return self._ahead.pop(place(kernel))


class ExactTuning:
    """Trials with validation or leave-one-out predictions, for few rows in float64."""

    def __init__(self, rows: KernelRows, run: Run, kernels: ScaledKernels, solution_seconds: float) -> None:
        self._rows, self._problem, self._run, self._kernels = rows, rows.problem, run, kernels
        self._solution_seconds = solution_seconds
        self._least_alpha = least_alpha(len(rows.all))
        self._try_seconds = 0.0  # of the longest try so far

    def best(self) -> Trial:
        """Return the tuned kernel or sum with the lowest error; for other losses only the penalty is tuned."""
        if self._problem.loss.needs_matrix:
            rows = replace(self._rows, problem=replace(self._problem, loss=SquaredError()))
            squares = ExactTuning(rows, self._run, self._kernels, self._solution_seconds).best()
            return self.of(squares.kernel)
        with one_blas_thread():
            tuned = side_by_side(self._tuned, self._kernels.found, self._run.settings.n_jobs)
            return self._result(self._best_sum(*sorted(tuned, key=lambda each: each.error)))

    def of(self, known: KernelSum) -> Trial:
        """Known kernels. The penalty is tuned where there are more rows to judge it than it came from."""
        with one_blas_thread():
            tuned = self._try(known)
            if self._run.settings.alpha is None and len(self._rows.known) > known.n_rows:
                tuned = self._descent().penalty(tuned)
            return self._result(tuned)

    def _result(self, tuned: Trial) -> Trial:
        """The trial with its squared error, whatever judged it."""
        problem, rows, predictions = self._problem, self._rows.judged, cast(np.ndarray, tuned.predictions)
        squares = SquaredErrors(problem.Y[rows], rows_of(problem.weights, rows))(predictions)
        return replace(tuned, error=squares.mean(), K=None)

    def _tuned(self, found: Trial) -> Trial:
        """The overall factor and the penalty, each in turn, that the leave-one-out predictions are best with."""
        given = relative_alpha(self._problem, self._run.settings.alpha)
        alpha = max(self._least_alpha, found.kernel.alpha) if given is None else given
        first = self._try(replace(found.kernel, alpha=alpha))
        others = TUNING.group_penalties if given is None and self._problem.groups is not None else ()
        tries = [first, *(self._try(replace(first.kernel, alpha=own), first) for own in others)]
        start = min(tries, key=lambda each: each.error)
        descent = self._descent(is_alone=len(self._kernels.found) == 1)
        return descent.in_turn(start, learns_alpha=given is None, learns_factor=self._kernels.learned)

    def _descent(self, is_alone: bool = True) -> Descent[Trial]:
        def may_gain(best: Trial) -> bool:
            return best.error > self._problem.negligible and self._may_try()

        looks_ahead = is_alone and len(self._rows.known) >= TUNING.parallel_rows
        return Descent(self._try, may_gain, (self._least_alpha, np.inf), self._run.settings.n_jobs, looks_ahead)

    def _may_try(self) -> bool:
        """Return True if one more trial may help, and there is time for it and for the solution."""
        seconds = self._try_seconds + self._solution_seconds
        return not self._kernels.is_perfect and self._run.may_continue(Phase.SOLUTION, seconds)

    def _best_sum(self, best: Trial, *others: Trial) -> Trial:
        """Increase the share of the second kernel while that lowers the error."""
        first = best
        for other in others if self._run.limits.mechanisms.second_kernel and self._may_try() else ():

            def mix(share: float, other: Trial = other) -> Trial:
                (one,), (two,) = first.kernel.parts, other.kernel.parts
                parts = [replace(one, share=share), replace(two, share=1 - share)]
                alpha = first.kernel.alpha**share * other.kernel.alpha ** (1 - share)
                K = _mixed(share, cast(np.ndarray, first.K), 1 - share, cast(np.ndarray, other.K))
                return self._tried(replace(first.kernel, parts=parts, alpha=alpha), K)

            for mixed in side_by_side(mix, TUNING.shares, self._run.settings.n_jobs):
                if mixed.error >= best.error:
                    break
                best = mixed
        return best

    def _try(self, kernel: KernelSum, near: Trial | None = None) -> Trial:
        """The kernel with its predictions for the rows that judge; a trial with the same parts has the matrix."""
        same = near is not None and near.kernel.parts is kernel.parts
        return self._tried(kernel, near.K if near is not None and same else None)

    def _tried(self, kernel: KernelSum, K: np.ndarray | None) -> Trial:
        problem, rows, start = self._problem, self._rows.judged, self._run.clock.used
        K, alpha = self._matrix(kernel) if K is None else K, kernel.alpha
        try:
            if self._rows.held_out.size:
                predictions = problem.predicted(self._rows.known, K, alpha, precise_inverse_root)
            else:
                predictions = problem.left_out(rows, K, alpha, precise_inverse_root)
        except SingularKernelError:
            return Trial(kernel, np.inf, predictions=np.zeros((len(rows), problem.n_targets)), K=K)
        self._try_seconds = max(self._try_seconds, self._run.clock.used - start)
        losses = wide_losses(problem, rows) if self._rows.is_wide else problem.losses(rows)
        return Trial(kernel, float(losses(predictions).mean()), predictions=predictions, K=K)

    def _matrix(self, kernel: KernelSum) -> np.ndarray:
        columns = self._rows.columns(np.append(self._rows.known, self._rows.held_out))
        values = kernel.values(self._rows.frame, self._problem.categorical, self._run.settings.n_jobs)
        return values(columns, columns)


def _mixed(share: float, K: np.ndarray, other_share: float, other_K: np.ndarray) -> np.ndarray:
    """A weighted sum of two kernel matrices."""
    mixed = np.float32(share) * K
    mixed += np.float32(other_share) * other_K
    return mixed


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
            kernel = replace(kernel, alpha=self._scored(cells[: TUNING.scored_cells], kernel, seconds))
        return Trial(kernel, self._error(cells[: TUNING.step_cells], kernel) if np.isnan(error) else error)

    def _start(self) -> Trial:
        """More of the better kernel than of the other."""
        rows, run, settings = self._rows, self._run, self._run.settings
        found, has_second = sorted(self._kernels.found, key=lambda own: own.error), run.limits.mechanisms.second_kernel
        kernels = [own.kernel for own in (found if has_second else found[:1])]
        if has_second and len(kernels) == 1 and settings.kernel is None and self._kernels.learned:
            kernels.append(replace(kernels[0], parts=[second_kernel(kernels[0].main)]))
        shares = [1.0] if len(kernels) == 1 else [TUNING.start_share, 1 - TUNING.start_share]
        parts = [replace(own.main, share=share) for own, share in zip(kernels, shares, strict=True)]
        alpha = relative_alpha(rows.problem, settings.alpha)
        if alpha is None:
            mean = float(np.exp(sum(share * np.log(own.alpha) for own, share in zip(kernels, shares))))
            alpha = TUNING.start_penalty * mean
        return Trial(replace(kernels[0], parts=parts, alpha=alpha), found[0].error)

    def _cells(self, kernel: KernelSum) -> list[np.ndarray]:
        """Rows of cells that may be learned from, in random order."""
        seed = self._run.settings.seed
        cells = self._cell_rows.samples(kernel, self._plan.set_rows, seed)
        large = [own for own in cells if len(own) >= TUNING.fewest_cell_rows]
        known = [own for own in large if not is_constant(self._rows.problem.Y[own])] or cells
        return [known[number] for number in np.random.default_rng(seed).permutation(len(known))]

    def _search(self, search: CellSearch, cells: list[np.ndarray], n_trees: int, goes_on: Callable[[], bool]) -> None:
        sets, n_steps = self._sets(cells), self._plan.n_steps
        for k in range(n_steps):
            if k and not k % (n_steps // TUNING.looks) and not goes_on():
                break
            if k and not k % (n_steps // n_trees):
                sets = self._sets(self._cells(search.kernel))
            search.step([next(sets) for _ in range(TUNING.step_cells)], k / n_steps, k)

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

        for move in (1 / TUNING.penalty_factor, TUNING.penalty_factor):
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
    return replace(part, base=TUNING.longer * part.base)
