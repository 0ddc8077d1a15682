"""Local models: exact kernel models of the rows in each cell."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from binfeat._common.held_out import less_by
from binfeat._common.subsets import evenly_spaced
from binfeat.length_scales.kernel_sum import KernelSum
from binfeat.length_scales.search import MOST_ALPHA
from binfeat.models.fitted.kernel_function import HeldOutErrors
from binfeat.models.fitted.local import LocalPosterior
from binfeat.models.kernel_algebra.level_effects import LevelColumns
from binfeat.models.problem import Problem, counts_of, without_scoring
from binfeat.models.run import Phase, Run
from binfeat.models.solvers.all_rows import AllRows
from binfeat.models.solvers.candidate import KernelCandidate, KernelRows, Solution, warn_of_steps
from binfeat.models.solvers.cell_ensemble import CellEnsemble
from binfeat.models.solvers.cells import EachCell
from binfeat.models.solvers.learner import CELLS, Learner, descended, penalty_between
from binfeat.models.solvers.levels import KernelAndLevels, LevelSearch
from binfeat.models.solvers.sizes import cell_rows, may_double, most_trees, tree_seconds


class _Trees:
    """Trees of all rows, evaluated on validation rows of the table, or by leave-one-out predictions."""

    n_errors = 10_000  # number of stored residuals

    def __init__(
        self,
        problem: Problem,
        run: Run,
        rows: KernelRows,
        numbers: np.ndarray,  # numbers of the table's rows among all rows
        each_cell: EachCell | None,
        held_out: np.ndarray | None,  # validation rows of the table; None for leave-one-out predictions of `every`
        every: np.ndarray,
    ) -> None:
        self._problem, self._run, self._rows = problem, run, rows
        self.numbers, self._each_cell = numbers, each_cell
        self._leaves_out, self.validated_rows = held_out is None, every if held_out is None else held_out
        self.levels: LevelColumns | None = None  # levels with effects shared by all cells

    def first(self, kernel: KernelSum, most: int) -> CellEnsemble:
        """Return one tree with at most this many rows in a cell."""
        start, ensemble = self._run.clock.used, self._none(self._rows, kernel, most)
        self.grow(ensemble)
        ensemble.seconds = self._run.clock.used - start
        return ensemble

    def grow(self, ensemble: CellEnsemble) -> None:
        ensemble.grow()
        rows = self.validated_rows
        ensemble.error = float(self._problem.losses(rows)(self._predictions(ensemble, rows)).mean())

    def explained(self, ensemble: CellEnsemble) -> float:
        """Return how far the error is below the error of a constant, relative to the error."""
        rows, problem = self.validated_rows, without_scoring(self._problem)
        Y, losses_of = problem.Y[rows], problem.losses(rows)
        constant = np.broadcast_to(np.average(Y, axis=0, weights=problem.relative_weights(rows)), Y.shape)
        error = float(losses_of(self._predictions(ensemble, rows)).mean())
        return (float(losses_of(constant).mean()) - error) / max(error, np.finfo(float).tiny)

    def of_all_rows(self, like: CellEnsemble) -> CellEnsemble:
        """Return as many trees of all rows, including validation rows."""
        ensemble = self._none(replace(self._rows, known=np.sort(self._rows.all)), like.kernel, like.most)
        while ensemble.n_trees < like.n_trees:
            ensemble.grow()
        return ensemble

    def _none(self, rows: KernelRows, kernel: KernelSum, most: int) -> CellEnsemble:
        settings = self._run.settings
        return CellEnsemble(rows, kernel, most, settings.seed, settings.n_jobs, self._each_cell, self.levels)

    def validation(self, ensemble: CellEnsemble) -> tuple[np.ndarray, HeldOutErrors]:
        """Return predictions for the rows used for evaluation, and their errors."""
        rows = self.validated_rows
        predictions, some = self._predictions(ensemble, rows), evenly_spaced(len(rows), self.n_errors)
        residuals = self._problem.Y[rows[some]] - predictions[some]
        variances, weights = self._variances(ensemble, rows[some]), counts_of(self._problem, rows[some])
        is_robust = self._problem.loss.is_robust
        return predictions, HeldOutErrors.of(residuals, variances, weights=weights, is_robust=is_robust)

    def _predictions(self, ensemble: CellEnsemble, rows: np.ndarray) -> np.ndarray:
        if self._leaves_out:
            return ensemble.predictions(self.numbers[rows])
        X, intercept = self._problem.table[rows], np.zeros(self._problem.n_targets)
        return ensemble.function().scores(X, intercept, self._run.settings.n_jobs)

    def _variances(self, ensemble: CellEnsemble, rows: np.ndarray) -> np.ndarray:
        if self._leaves_out:
            return ensemble.variances[self.numbers[rows]]
        n_jobs = self._run.settings.n_jobs
        return LocalPosterior(ensemble.function(), None, n_jobs).variances(self._problem.table[rows], n_jobs)


class LocalSolver(KernelCandidate):
    """The mean of trees that split rows into cells, with kernel ridge regression in every cell."""

    features: ClassVar[str] = "local"
    least_alpha = 1e-5
    gain = 0.003  # share of the error that one more tree must remove
    weak = 0.3  # explained part, relative to the error, below which `gain` decreases in proportion
    weakest = 0.1  # least ratio of this decrease
    least_gain = 0.01  # least gain of a tree, in units of the negligible error
    few_cells = 8  # cells of the second tree that determine the number of trees
    fewest_levels = 20  # minimum levels of some category for effects; with fewer, cells have enough rows of each
    level_trees = 6  # maximum time of a tree with effects of levels, relative to a plain tree
    level_cost = 4  # required gain of one more tree with effects of levels, relative to `gain`
    level_cells = 2  # rows of a cell, relative to cells if effects replace categories

    _ensemble: CellEnsemble  # the trees so far, if `_curve` is not empty
    _curve: Sequence[tuple[int, float]] = ()
    _validation: tuple[np.ndarray, HeldOutErrors] | None = None  # before the refit with validation rows

    @property
    def _holds_out(self) -> bool:
        """Return True to evaluate on validation rows: for related rows, leave-one-out errors are too low."""
        return self._run.settings.has_cv or self._problem.groups is not None

    def solve(self, rows: AllRows, run: Run) -> Solution:
        with run.stage("cells"):
            self._take(rows, run)
            goes_on = self._double_cells(self._begin(run), rows, run)
            goes_on = self._add_trees(goes_on, run)
        if self._holds_out and run.settings.refits and goes_on:
            with run.stage("refit"):
                self._validation = self._trees.validation(self._ensemble)
                self._ensemble = self._trees.of_all_rows(self._ensemble)
        run.note("features", "local", self._curve[-1][1])
        ensemble = self._ensemble
        warn_of_steps(ensemble.gain, run.settings.loss)
        run.note("trees", f"{ensemble.n_trees}, with {ensemble.n_cells} cells in total", self._curve[-1][1])
        solution = self._solution("converged" if goes_on else "stopped")
        self._note_hyperparameters(solution)
        return solution

    def so_far(self) -> Solution | None:
        return self._solution("interrupted") if self._curve else None

    def _take(self, rows: AllRows, run: Run) -> None:
        """Get all rows (the table may be a sample of them), and the validation rows among them."""
        problem, numbers, each_cell = rows.whole(self._rows.standardizer)
        every, of_table = KernelRows.of(problem, run, self._rows.standardizer), self._rows.all
        known = np.intersect1d(problem.train, every.all) if self._holds_out else np.sort(every.all)
        self._rows, self._on_workers = replace(every, known=known), each_cell is not None
        held_out = self._problem.held_out[self._problem.weighty(self._problem.held_out)]
        given = numbers, each_cell, held_out if self._holds_out else None
        self._trees = _Trees(self._problem, run, self._rows, *given, of_table)
        self._most_trees, self._seconds = most_trees(rows, self._problem, run), tree_seconds(rows, self._problem, run)

    def _begin(self, run: Run) -> CellEnsemble:
        known = self._known
        if known is not None:  # its penalty refers to weights with mean 1 in the table
            ratio = self._problem.mean_weight / self._rows.problem.mean_weight
            known = replace(known, kernel=replace(known.kernel, alpha=known.kernel.alpha * ratio))
        learner, may_have = Learner(self._rows, self._kernels, run, CELLS, self.least_alpha), self._may_have_levels(run)
        if may_have and known is None and self._kernels.learned:
            # Smaller cells are enough, because the kernel has fewer inputs, and effects come from all rows.
            most = run.settings.cell_rows or run.limits.cell_rows // self.level_cells
            found = LevelSearch(self._rows, run, most, self.fewest_levels).instead(learner.unlearned())
            if found is not None:
                return self._first_with(found, most)
        tuned = learner.of(known, self._seconds)
        first = self._trees.first(tuned.kernel, cell_rows(run))
        if self._holds_out and run.settings.alpha is None:
            first = self._with_penalty_by_held_out(first)
        self._keep(first)
        return self._with_levels(first, run) if may_have else first

    def _keep(self, tree: CellEnsemble) -> None:
        self._ensemble, self._curve = tree, [(1, tree.error)]

    def _may_have_levels(self, run: Run) -> bool:
        is_plain = self._rows.problem.loss.is_squares and not self._holds_out
        return is_plain and run.limits.mechanisms.global_part

    def _with_levels(self, plain: CellEnsemble, run: Run) -> CellEnsemble:
        """Return the first tree with shared effects of levels, if these lower the leave-one-out error."""
        search, seconds = LevelSearch(self._rows, run, plain.most, self.fewest_levels), self.level_trees * plain.seconds
        found = search.run(plain.kernel, self._known is not None, self._earlier_levels, seconds)
        return plain if found is None else self._first_with(found, plain.most, plain)

    def _first_with(self, found: KernelAndLevels, most: int, plain: CellEnsemble | None = None) -> CellEnsemble:
        """Return the first tree with effects, unless it is hardly better than a plain tree."""
        kernel, self._trees.levels = found
        joint = self._trees.first(kernel, most)
        if plain is not None and joint.error > less_by(self.gain, plain.error):
            self._trees.levels = None
            return plain
        self._keep(joint)
        self._run.note("categories", f"additive effects, share {self._trees.levels.share:.2g}", joint.error)
        return joint

    def _with_penalty_by_held_out(self, start: CellEnsemble) -> CellEnsemble:
        """Select the penalty on validation groups with one tree, because leave-one-out errors select too small ones."""

        def may_gain(best: CellEnsemble) -> bool:
            is_open = best.error > self._problem.negligible and not self._kernels.is_perfect
            return is_open and self._run.may_continue(Phase.CELLS, self._seconds)

        def one_tree(kernel: KernelSum) -> CellEnsemble:
            return self._trees.first(kernel, start.most)

        return descended(start, [penalty_between(self.least_alpha, MOST_ALPHA)], one_tree, may_gain)

    def _double_cells(self, best: CellEnsemble, rows: AllRows, run: Run) -> bool:
        """Double the rows of a cell while there is time and the error decreases; False if callbacks stop the fit."""

        def may_gain(tree: CellEnsemble) -> bool:
            is_open = not self._on_workers and tree.error > self._problem.negligible
            return is_open and may_double(tree.most, tree.seconds, rows, self._problem, run)

        goes_on = run.step()
        while goes_on and may_gain(best):
            larger = self._trees.first(best.kernel, 2 * best.most)
            if larger.error > less_by(self.gain, best.error):
                break
            self._keep(larger)
            run.note("rows of a cell", f"{larger.most:,} at most", larger.error)
            best, goes_on = larger, run.step()
        return goes_on

    def _add_trees(self, goes_on: bool, run: Run) -> bool:
        """Add trees while that lowers the error; return True if callbacks let the fit continue."""
        ensemble, most = self._ensemble, self._most_trees
        if run.settings.n_trees is None and most > 1:
            is_one = self._kernels.is_perfect or not run.limits.mechanisms.averages
            wanted = self._worthwhile_trees() if run.limits.mechanisms.tree_choice else 4
            most = 1 if is_one else min(most, wanted)
        refits = self._holds_out and run.settings.refits

        def in_time() -> bool:
            n_left = 1 + refits * (ensemble.n_trees + 1)  # a refit grows all trees again
            return run.may_continue(Phase.SOLUTION, n_left * ensemble.seconds)

        while goes_on and ensemble.n_trees < most and in_time():
            self._trees.grow(ensemble)
            self._curve = [*self._curve, (ensemble.n_trees, ensemble.error)]
            goes_on = run.step()
        if goes_on and ensemble.n_trees < most:
            run.cut_short = run.cut_short or "the trees"
        return goes_on

    def _worthwhile_trees(self) -> int:
        """Add trees while each lowers the error by a minimum share, which is smaller for weak signals.

        The mean of T trees has the error ``E + V / T``, if V is the variance of predictions of single trees.
        """
        variance, error = 2 * self._ensemble.ambiguity(self.few_cells), self._curve[-1][1]
        if self._trees.levels is None:
            gain = self.gain * float(np.clip(self._trees.explained(self._ensemble) / self.weak, self.weakest, 1.0))
        else:
            gain = self.level_cost * self.gain
        least = max(gain, self.least_gain * self._problem.negligible / error) if error > 0 else gain
        return max(1, int(np.sqrt(variance / least + 0.25) + 0.5))

    def _solution(self, status: str) -> Solution:
        ensemble = self._ensemble
        predictions, errors = self._trees.validation(ensemble) if self._validation is None else self._validation
        return Solution(
            features=self.features,
            kernel=self._for_weights(ensemble.kernel, self._rows.problem.mean_weight),
            function=ensemble.function(),
            intercept=np.zeros(self._problem.n_targets),
            rows=self._trees.validated_rows,
            predictions=predictions,
            curve=list(self._curve),
            status=status,
            errors=errors,
            known=ensemble.known(self._trees.numbers),
        )
