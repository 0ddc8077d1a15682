"""Interface of the kinds of kernel models, their rows, and the solution that they return."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from binfeat._common.subsets import cached_parts, thinned
from binfeat._common.warned import warn
from binfeat._threads import side_by_side
from binfeat.length_scales.kernel_sum import KernelSum, Trial
from binfeat.length_scales.matrices import Standardizer
from binfeat.length_scales.search import MOST_INPUTS, mean_distances
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.cell_trees import CellTrees, split_into_cells
from binfeat.models.fitted.fitted import Function
from binfeat.models.fitted.kernel_function import HeldOutErrors
from binfeat.models.kernel_algebra.level_effects import LevelColumns
from binfeat.models.problem import Predict, Problem
from binfeat.models.run import Run
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.solvers.all_rows import AllRows
from binfeat.models.solvers.cells import Cell, CellFunction, SolvedCell
from binfeat.models.solvers.sizes import TUNING_ROWS

_LARGE = 0.01  # relative decrease by a further step, above which a loss has not converged
_STANDARDIZER_ROWS = 1500  # rows for the origin and the unit of inputs
_ROUNDING = 1e-6  # relative rounding error of a penalty that is divided by the mean weight and multiplied again


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved model, and its validation or leave-one-out predictions."""

    features: str
    kernel: KernelSum  # with the penalty for the caller's weights
    function: Function
    intercept: np.ndarray  # (n_targets,)
    rows: np.ndarray  # numbers of rows used for decisions
    predictions: np.ndarray  # (len(rows), n_targets), validation or leave-one-out predictions
    curve: list[tuple[int, float]]  # number of grids or trees, and the error, each time that some were added
    status: str
    errors: HeldOutErrors | None = None  # None if the function provides them
    samples: RidgePosterior | None = None
    known: tuple[np.ndarray, np.ndarray] | None = None  # rows of the model, and predictions for them, if available

    @property
    def error(self) -> float:
        return self.curve[-1][1]

    def predict(self, n_jobs: int | None) -> Predict:
        """Return the function that predicts the targets of encoded rows, (n_rows, n_targets), also on workers."""
        return partial(self.function.scores, intercept=self.intercept, n_jobs=n_jobs)

    def scores_of_all(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return predictions for all rows of the table; for a kernel matrix they follow from the coefficients."""
        if self.known is None:
            return self.predict(n_jobs)(X)
        rows, own = self.known
        out, others = np.empty((len(X), own.shape[1])), np.ones(len(X), bool)
        out[rows], others[rows] = own, False
        out[others] = self.predict(n_jobs)(X[others])
        return out


class KernelCandidate(ABC):
    """A model of kernel values for one problem; a known kernel is kept, with the effects of levels of its fit."""

    features: ClassVar[str]

    def __init__(
        self,
        problem: Problem,
        run: Run,
        kernels: ScaledKernels,
        known: Trial | None = None,
        earlier_levels: LevelColumns | None = None,  # of the fit with the known kernel
    ) -> None:
        self._problem, self._run, self._kernels, self._known = problem, run, kernels, known
        self._earlier_levels = earlier_levels
        self._rows = KernelRows.of(problem, run, unseen=kernels.unseen)

    @abstractmethod
    def solve(self, rows: AllRows, run: Run) -> Solution:
        """Return the model of all rows, or of the maximum number of rows."""

    def so_far(self) -> Solution | None:
        """Return the current model after Ctrl-C, if there is one."""
        return None

    def _for_weights(self, kernel: KernelSum, mean_weight: float) -> KernelSum:
        """Return the kernel with the penalty for weights of this mean, given the penalty for weights with mean 1.

        It is the user's penalty, unless the solver needed a larger one.
        """
        alpha, given = kernel.alpha * mean_weight, self._run.settings.alpha
        if given is not None and alpha <= given * (1 + _ROUNDING):
            alpha = given
        return replace(kernel, alpha=alpha)

    def _note_hyperparameters(self, solution: Solution) -> None:
        self._run.note("kernel", solution.kernel, solution.error)
        self._run.note("penalty", f"{solution.kernel.alpha:.3g}", solution.error)


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Rows of a problem, as columns of a kernel and in cells; arrays of rows are numbers of rows with positive weight.

    Decisions use validation rows, or leave-one-out predictions if there are none.
    """

    problem: Problem
    all: np.ndarray  # rows of the model
    known: np.ndarray  # rows for decisions, which trees split into cells
    held_out: np.ndarray  # validation rows
    standardizer: Standardizer

    spread_rows: ClassVar[int] = 1000  # rows for the spread of inputs in a node
    disorder: ClassVar[float] = 0.5  # random part of the splits of all trees except the first

    @classmethod
    def of(
        cls,
        problem: Problem,
        run: Run,
        standardizer: Standardizer | None = None,
        unseen: np.ndarray | None = None,
    ) -> Self:
        """Return the rows of a model. With ``refit=True``, the final model also uses the validation rows.

        Rows `unseen` by the search are the validation set for decisions, unless there are validation rows or groups.
        """
        train, held_out = (rows[problem.weighty(rows)] for rows in (problem.train, problem.held_out))
        every = np.append(train, held_out) if run.settings.refits else train
        is_apart = run.settings.has_cv and problem.groups is None  # separate validation rows
        known = train if is_apart else every
        validated = held_out[:0]
        if is_apart and len(train) + len(held_out) <= TUNING_ROWS:
            validated = held_out
        elif unseen is not None and problem.groups is None:
            known, validated = np.setdiff1d(known, unseen), unseen
        if standardizer is None:
            standardizer = Standardizer.of(problem.table[thinned(known, _STANDARDIZER_ROWS)], problem.categorical)
        return cls(problem, every, known, validated, standardizer)

    @property
    def validated(self) -> np.ndarray:
        """Rows for evaluating choices."""
        return self.held_out if self.held_out.size else self.known

    @property
    def is_high_dimensional(self) -> bool:
        """True for so many inputs that the search starts from a linear model, which must not be better."""
        return self.problem.table.shape[1] > MOST_INPUTS

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """Return rows with these numbers, (n_inputs, len(rows))."""
        out = np.empty((self.problem.table.shape[1], len(rows)), np.float32)
        for place in cached_parts(len(rows), len(out)):
            out[:, place] = self.standardizer.columns(self.problem.table[rows[place]])
        return out

    def part(self, rows: np.ndarray) -> Cell:
        return self.columns(rows), self.problem.Y[rows].astype(np.float32), self.problem.relative_weights(rows)

    def each_cell(self, function: CellFunction, cells: list[np.ndarray], n_jobs: int | None) -> list[SolvedCell]:
        return side_by_side(lambda rows: function(*self.part(rows)), cells, n_jobs)

    def split(self, kernel: KernelSum, most: int, seed: int, tree: int) -> tuple[CellTrees, list[np.ndarray]]:
        """Return a tree, and the known rows of its cells, up to a maximum unless rows are equal."""
        main, rng = kernel.main, np.random.default_rng([seed, tree])
        counts = np.any([part.gamma > 0 for part in kernel.parts], axis=0)

        def spread(rows: np.ndarray) -> np.ndarray:
            some = self.problem.table[thinned(rows, self.spread_rows)]
            exponents = main.gamma * mean_distances(some, self.problem.categorical, rng, main.kernel.power)
            if exponents.any():
                return exponents ** (1 / main.kernel.power)
            return (counts & (np.ptp(self.problem.table[rows], axis=0) > 0)).astype(float)

        return split_into_cells(self.problem.table, self.known, spread, most, rng, self.disorder if tree else 0.0)

    def samples(self, kernel: KernelSum, most: int, seed: int) -> list[np.ndarray]:
        """Return known rows of the cells of a first tree, up to a maximum for each."""
        return [thinned(cell, most) for cell in self.split(kernel, most, seed, 0)[1]]


def warn_of_steps(gain: float, loss: str) -> None:
    if gain > _LARGE:
        message = (
            f"loss={loss!r} did not converge: one more step would lower the objective by {gain:.1%}. Increase alpha."
        )
        warn(message, ConvergenceWarning)
