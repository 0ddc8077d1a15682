"""Learning the length scales, the shares and the penalty of a kernel for a number of rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from binfeat._common.arrays import Scratch
from binfeat._common.held_out import n_independent, squared_errors
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.kernels.families import RBF, Matern
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, SumWithSlopes, Trial
from binfeat.length_scales.leave_one_out import (
    LeaveOneOut,
    SingularKernelError,
    leave_one_out,
    precise_inverse_root,
)
from binfeat.length_scales.limits import SEARCH
from binfeat.length_scales.search import MOST_ALPHA, KernelSteps
from binfeat.models.problem import Problem, relative_alpha, rows_of
from binfeat.models.run import Phase, Run
from binfeat.models.search.high_dimensional import high_dimensional_losses
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.settings import PENALTY_FACTOR
from binfeat.models.solvers.candidate import KernelRows
from binfeat.models.solvers.cell_ensemble import CellEnsemble
from binfeat.models.solvers.cells import is_constant

_Trial = TypeVar("_Trial", Trial, CellEnsemble)
Move = tuple[Callable[[KernelSum, float], KernelSum], float]  # a move by a factor, and its usual factor


@dataclass(frozen=True)
class Plan:
    """Steps of a learner, and the sets of rows that determine them."""

    set_rows: int  # maximum rows of a set
    n_sets: int  # sets of a step
    n_steps: int
    noisy_steps: int  # steps for noisy targets; all for cells, because their length scales change more
    n_trees: int  # number of successive trees for many rows; each splits rows by the current kernel
    alpha_rate: float  # rate of the penalty, relative to the rate of length scales
    factor_rate: float  # the same for the common factor of the length scales of a kernel
    takes_cells: bool  # sets are cells of the trees
    takes_samples: bool  # sets are random rows
    phase: Phase  # the phase with the time limit of the steps


FEW_ROWS = Plan(750, 2, 8, 4, 1, 4.0, 3.0, False, True, Phase.SOLUTION)  # all rows select the penalty at the end
ALL_ROWS = Plan(750, 2, 30, 15, 1, 2.0, 1.0, True, True, Phase.EXACT)  # inputs split by a tree hardly vary in a cell
CELLS = Plan(500, 2, 60, 60, 3, 2.0, 1.0, True, False, Phase.CELLS)  # for local models, with cells of the final kernel
_LONGER = 0.3  # gamma of a second kernel of the same kind, relative to the first


class Learner:
    """Adam on the gammas of all parts of a kernel, their shares and the penalty, by the leave-one-out error.

    A step uses some sets of rows: cells, in which rows are as dense as in the table, random rows, or both in turn. For
    few rows, and for losses other than squared errors, validation or leave-one-out losses select the penalty at the
    end.
    """

    start_share = 0.75  # share of the better kernel at the start
    start_penalty = 0.2  # penalty at the start, relative to the penalty of a sample of rows
    rate = 0.15  # longest steps of logarithms at the start
    last_rate = 0.1  # share of the rate at the end
    prior = 50.0  # weight of squared deviations of log gamma from their mean, in rows
    looks = 6  # readings of the clock during the steps
    noisy = 0.3  # share of the variance; with a larger error of the search there is less to learn
    fewest_cell_rows = 150  # minimum rows of a cell for steps
    least_worth = 0.05  # minimum share of a kernel in differences of rows
    scored_cells = 8  # cells that select the penalty of losses other than squared
    group_penalties = 0.1, 1.0, 10.0  # further initial penalties for groups and folds
    constant_penalty = 1e6  # for groups: predictions are constant
    factor = 1.5  # ratio of two factors of all gammas, for groups and many inputs

    def __init__(self, rows: KernelRows, kernels: ScaledKernels, run: Run, plan: Plan, least_alpha: float) -> None:
        self._rows, self._problem, self._kernels, self._run = rows, rows.problem, kernels, run
        self._plan, self._least_alpha = plan, least_alpha
        self._learns_alpha = run.settings.alpha is None
        self._holds_out = not plan.takes_cells and rows.held_out.size > 0
        self._lanes: list[tuple[SumWithSlopes, Scratch]] = []  # one per set of a step

    def of(self, known: Trial | None, seconds: float) -> Trial:
        """Learn the kernel and the penalty, or only the penalty of a known kernel, leaving at least `seconds`.

        The error of the result is a mean squared error. The result contains predictions if the plan uses all rows
        instead of cells.
        """
        rows, is_few = self._rows, not self._plan.takes_cells
        is_open = known is None and not rows.is_high_dimensional  # steps with many inputs take long
        start = self._start(is_open) if known is None else known
        kernel, cells = start.kernel, self._cells(start.kernel)
        error = start.error if known is None else np.nan  # earlier errors can be minus a score
        is_open &= self._run.limits.mechanisms.fine_tuning and (self._kernels.learned or len(kernel.parts) > 1)
        if not self._kernels.is_perfect and (is_open or (self._learns_alpha and not is_few)):
            kernel, error = self._stepped(start, cells, is_open, seconds)
        moves = [penalty_between(self._least_alpha, np.inf if is_few else MOST_ALPHA)] if self._learns_alpha else []
        if is_few:
            is_uncertain = rows.is_high_dimensional or self._problem.groups is not None
            if known is None and self._kernels.learned and is_uncertain:
                moves = 2 * [*moves, (KernelSum.scaled, self.factor)]
            is_again = known is not None and len(rows.known) <= kernel.n_rows
            best = self._selected(kernel, cells, [] if is_again else moves, seconds)
            return replace(best, error=self._squared_error(best, cells))
        if not self._problem.uses_squared_errors:
            kernel = self._selected(kernel, cells[: self.scored_cells], moves, seconds).kernel
        if np.isnan(error):
            some = cells[: self._plan.n_sets]
            error = self._squared_error(self._tried(kernel, some, self._matrices(kernel, some)), some)
        return Trial(kernel, error)

    def unlearned(self) -> KernelSum:
        """Return the initial kernel, with the penalty of a sample of rows."""
        kernel = self._start(not self._rows.is_high_dimensional).kernel
        return (
            replace(kernel, alpha=min(kernel.alpha / self.start_penalty, MOST_ALPHA)) if self._learns_alpha else kernel
        )

    def _start(self, may_add: bool) -> Trial:
        """Return the initial sum: more of the better kernel; a single kernel can get a second one."""
        rows, run, settings = self._rows, self._run, self._run.settings
        found, has_second = self._kernels.found, run.limits.mechanisms.second_kernel
        if len(found) > 1 and any(np.isnan(own.error) for own in found):  # given gammas
            cells = [self._cells(own.kernel)[: self.scored_cells] for own in found]
            moves = [penalty_between(self._least_alpha, MOST_ALPHA)] if self._learns_alpha else []
            found = [self._selected(own.kernel, some, moves, 0.0) for own, some in zip(found, cells)]
        found = sorted(found, key=lambda own: own.error)
        kernels = [own.kernel for own in (found if has_second else found[:1])]
        if has_second and len(kernels) == 1 and settings.kernel is None and may_add and self._kernels.learned:
            kernels.append(replace(kernels[0], parts=[second_kernel(kernels[0].main)]))
        shares = [1.0] if len(kernels) == 1 else [self.start_share, 1 - self.start_share]
        parts = [replace(own.main, share=share) for own, share in zip(kernels, shares, strict=True)]
        alpha = relative_alpha(rows.problem, settings.alpha)
        if alpha is None:
            mean = float(np.exp(sum(share * np.log(own.alpha) for own, share in zip(kernels, shares))))
            alpha = self.start_penalty * mean
        return Trial(replace(kernels[0], parts=parts, alpha=alpha), found[0].error)

    def _cells(self, kernel: KernelSum) -> list[np.ndarray]:
        """Return the rows of cells for steps, in random order; all rows if there are few."""
        if not self._plan.takes_cells:
            return [self._rows.known]
        seed = self._run.settings.seed
        cells = self._rows.samples(kernel, self._plan.set_rows, seed)
        large = [own for own in cells if len(own) >= self.fewest_cell_rows]
        known = [own for own in large if not is_constant(self._problem.Y[own])] or cells
        return [known[number] for number in np.random.default_rng(seed).permutation(len(known))]

    def _stepped(self, start: Trial, cells: list[np.ndarray], is_open: bool, seconds: float) -> tuple[KernelSum, float]:
        """Return the kernel after steps within the time, and the last error; only the penalty if not open."""
        plan, run, kernel = self._plan, self._run, start.kernel
        matrices = kernel.matrices(self._problem.categorical, 1)
        is_noisy = is_open and start.error > self.noisy * self._problem.Y[self._rows.known].var(axis=0).mean()
        n_steps = plan.noisy_steps if is_noisy else plan.n_steps
        learns_gamma = is_open and self._kernels.learned
        splits_again = learns_gamma and len(self._rows.known) > SEARCH.many_rows  # given gammas split the same cells
        n_trees = plan.n_trees if splits_again and run.limits.mechanisms.resplitting else 1
        steps, error, sets = self._steps(kernel, learns_gamma, is_open), np.nan, self._sets(cells)
        self._lanes = [(SumWithSlopes(matrices), Scratch()) for _ in range(plan.n_sets)]
        for k in range(n_steps):
            is_look = k > 0 and not k % max(1, n_steps // self.looks)
            if is_look and not (run.step() and run.may_continue(plan.phase, seconds)):
                break
            if k and not k % (n_steps // n_trees):
                sets = self._sets(self._cells(self._learned(kernel, steps)))
            left_out = self._left_out(steps, [next(sets) for _ in self._lanes], k)
            if left_out:
                error = float(np.mean([own.error for own in left_out]))
                for own in [left_out] if plan.takes_cells else [[own] for own in left_out]:  # few rows: a move per set
                    steps.step(own, self.rate * (1 - (1 - self.last_rate) * k / n_steps))
        return self._learned(kernel, steps), error

    def _steps(self, kernel: KernelSum, learns_gamma: bool, learns_shares: bool) -> KernelSteps:
        return KernelSteps(
            kernel.gammas(self._rows.standardizer),
            np.array([part.share for part in kernel.parts]),
            max(kernel.alpha, self._least_alpha),
            prior=self.prior / n_independent(self._rows.known, self._problem.related),
            least_alpha=self._least_alpha,
            alpha_rate=self._plan.alpha_rate,
            factor_rate=self._plan.factor_rate,
            keeps_proportions=True,
            learns_gamma=learns_gamma,
            learns_shares=learns_shares,
            learns_alpha=self._learns_alpha,
        )

    def _sets(self, cells: list[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield sets of rows without end.

        With cells: each cell once per round; if `plan` requires it, a random sample follows each cell. Without cells,
        these are the first and the last rows of random orders.
        """
        plan, rows, rng = self._plan, self._rows.known, np.random.default_rng(self._run.settings.seed)
        n_rows = min(plan.set_rows, len(rows))
        while not plan.takes_cells:
            order = rng.permutation(rows)
            yield order[:n_rows]
            yield order[-n_rows:]
        while True:
            for number in rng.permutation(len(cells)):
                yield cells[number]
                if plan.takes_samples:
                    some = rng.choice(rows, n_rows, replace=False)
                    if not is_constant(self._problem.Y[some]):
                        yield some

    def _left_out(self, steps: KernelSteps, sets: list[np.ndarray], number: int) -> list[LeaveOneOut]:
        """Compute positive errors and slopes of the sets of a step, in threads."""
        parameters = np.append(steps.gammas.ravel(), steps.shares)

        def of_lane(lane: int) -> LeaveOneOut | None:
            rng = np.random.default_rng([self._run.settings.seed, number, lane])
            matrix, scratch = self._lanes[lane]
            try:
                given = *self._rows.part(sets[lane]), parameters, steps.alpha, rng, scratch
                return leave_one_out(matrix, *given, rows_of(self._problem.related, sets[lane]))
            except SingularKernelError:
                return None

        found = side_by_side(of_lane, range(len(sets)), self._run.settings.n_jobs)
        return [left_out for left_out in found if left_out is not None and left_out.error > 0]

    def _learned(self, start: KernelSum, steps: KernelSteps) -> KernelSum:
        """Return the kernel after the steps so far, without negligible parts."""
        parts = [
            replace(part, gamma=gamma / self._rows.standardizer.gamma(part.kernel, 1.0), share=float(share))
            for part, gamma, share in zip(start.parts, steps.gammas, steps.shares, strict=True)
        ]
        spreads = steps.shares * np.sum([matrix.spreads for matrix, _ in self._lanes], axis=0)
        worths = spreads / spreads.sum() if spreads.sum() > 0 else steps.shares
        main = replace(start, parts=parts).main
        kept = [part for part, own in zip(parts, worths, strict=True) if part is main or own >= self.least_worth]
        total = sum(part.share for part in kept)
        alpha = steps.alpha if self._learns_alpha else start.alpha
        return replace(start, parts=[replace(part, share=part.share / total) for part in kept], alpha=alpha)

    def _selected(self, kernel: KernelSum, cells: list[np.ndarray], moves: list[Move], seconds: float) -> Trial:
        """Follow moves of the penalty, or of all gammas, by losses of rows of some cells, while `seconds` are left."""
        start, parts, K = self._run.clock.used, kernel.parts, self._matrices(kernel, cells)

        def tried(kernel: KernelSum) -> Trial:
            return self._tried(kernel, cells, K if kernel.parts is parts else self._matrices(kernel, cells))

        def may_try(best: Trial) -> bool:
            is_near = self._kernels.is_perfect or best.error <= self._problem.negligible
            return not is_near and self._run.may_continue(self._plan.phase, seconds)

        with one_blas_thread():
            trials = [tried(kernel)]
            seconds += self._run.clock.used - start
            if moves and self._learns_alpha and self._problem.groups is not None:
                constant = [] if self._problem.related is None else [self.constant_penalty]
                trials += [tried(replace(kernel, alpha=alpha)) for alpha in (*self.group_penalties, *constant)]
            return descended(min(trials, key=lambda own: own.error), moves, tried, may_try)

    def _tried(self, kernel: KernelSum, cells: list[np.ndarray], K: list[np.ndarray]) -> Trial:
        """Return the kernel with predictions for the validation rows, or leave-one-out predictions."""
        problem, known, validated = self._problem, self._rows.known, self._validated(cells)
        try:
            if self._holds_out:
                predictions = problem.predicted(known, K[0], kernel.alpha, precise_inverse_root)
            else:
                left_out = [problem.left_out(*pair, kernel.alpha, precise_inverse_root) for pair in zip(cells, K)]
                predictions = np.concatenate(left_out)
        except SingularKernelError:
            return Trial(kernel, np.inf, predictions=np.zeros((len(validated), problem.n_targets)))
        losses_of = high_dimensional_losses if self._rows.is_high_dimensional else Problem.losses
        losses = losses_of(problem, validated)
        return Trial(kernel, float(losses(predictions).mean()), predictions=predictions)

    def _squared_error(self, trial: Trial, cells: list[np.ndarray]) -> float:
        validated = self._validated(cells)
        squares = squared_errors(self._problem.Y[validated], rows_of(self._problem.weights, validated))
        return float(squares(cast(np.ndarray, trial.predictions)).mean())

    def _validated(self, cells: list[np.ndarray]) -> np.ndarray:
        return self._rows.held_out if self._holds_out else np.concatenate(cells)

    def _matrices(self, kernel: KernelSum, cells: list[np.ndarray]) -> list[np.ndarray]:
        """Return kernel values of the rows of each cell, or of the known rows followed by validation rows."""
        values = kernel.values(self._rows.standardizer, self._problem.categorical, self._run.settings.n_jobs)
        sets = [np.append(self._rows.known, self._rows.held_out)] if self._holds_out else cells
        return [values(X, X) for X in map(self._rows.columns, sets)]


def descended(
    start: _Trial, moves: list[Move], make: Callable[[KernelSum], _Trial], may_try: Callable[[_Trial], bool]
) -> _Trial:
    """Follow each move down by its factor while that lowers the error, otherwise up."""
    best = start
    for move, factor in moves:
        first = best
        for step in (1 / factor, factor):
            while may_try(best):
                kernel = move(best.kernel, step)
                other = best if kernel is best.kernel else make(kernel)
                if not other.error < best.error:
                    break
                best = other
            if best is not first:
                break
    return best


def penalty_between(least: float, most: float) -> Move:
    """Return moves of the penalty between two bounds."""

    def move(kernel: KernelSum, step: float) -> KernelSum:
        alpha = min(max(kernel.alpha * step, least), most)
        return kernel if np.float32(alpha) == np.float32(kernel.alpha) else replace(kernel, alpha=alpha)

    return move, PENALTY_FACTOR


def second_kernel(part: KernelPart) -> KernelPart:
    """Return the second kernel of a sum: the same with longer scales, or a rough one next to a smooth one."""
    if isinstance(part.kernel, RBF):
        return replace(part, kernel=Matern(1.5))
    return replace(part, gamma=_LONGER * part.gamma)
