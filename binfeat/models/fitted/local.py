"""Functions of kernel values with the rows of a cell: local machines."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from binfeat._common.derived import Derived, made_once
from binfeat._threads import side_by_side
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.cell_trees import CellTrees, rows_by_cell
from binfeat.models.fitted.exact import ExactFunction, ExactPosterior
from binfeat.models.fitted.expansion import CellExpansions
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.score_function import HeldOutErrors

_OF_KERNEL = "nus", "shares", "gammas", "categorical", "center", "unit", "rotation"
_KEPT = 64  # factors of cells that a posterior keeps: half a gigabyte


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalFunction(KernelFunction):
    """The mean of several trees, of which each has an exact function in every cell."""

    inputs: np.ndarray
    places: np.ndarray
    children: np.ndarray
    roots: np.ndarray
    starts: np.ndarray  # (n_cells + 1,), int64: of the rows and the coefficients of each cell
    rows: np.ndarray  # (n_coefficients,), int32: of the support
    cell_alphas: np.ndarray  # (n_cells,)
    cell_intercepts: np.ndarray  # (n_cells, n_targets)

    @cached_property
    def trees(self) -> CellTrees:
        return CellTrees(self.inputs, self.places, self.children, self.roots)

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    def cell(self, number: int) -> ExactFunction:
        """The function of a cell, without its intercept."""
        place = slice(self.starts[number], self.starts[number + 1])
        rows = self.rows[place]
        return ExactFunction(
            **{name: getattr(self, name) for name in _OF_KERNEL},
            support=np.ascontiguousarray(self.support[:, rows]),
            alpha=self.cell_alphas[number],
            weights=self.weights[rows],
            coef=self.coef[:, place],
        )

    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> "LocalPosterior":
        assert errors is not None  # machines for numbers have them
        return LocalPosterior(self, errors, n_jobs)

    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        total = np.zeros((len(X), len(self.coef)))
        self._expansions.add(X, self.trees(X), total, n_jobs)
        total /= self.n_trees
        yield total

    @made_once
    def _expansions(self) -> CellExpansions:
        places = [slice(*ends) for ends in zip(self.starts, self.starts[1:])]
        cells = [(self.rows[place], self.coef[:, place]) for place in places]
        return CellExpansions(self.kernel(1), self.categorical, self.support, self.frame, cells, self.cell_intercepts)


class CellPosteriors:
    """Of the cells of a local machine's first tree, in closed form."""

    def __init__(self, function: LocalFunction, n_jobs: int | None) -> None:
        self._function, self._n_jobs = function, n_jobs
        self._known: dict[int, Derived] = {}

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Of the predictions for rows (n_rows, n_inputs), as multiples of the noise."""
        out = np.empty(len(X))

        def fill(group: tuple[int, np.ndarray]) -> None:
            number, rows = group
            out[rows] = self._of_cell(number).variances(X[rows])

        side_by_side(fill, self._groups(X), self._n_jobs)
        return out

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Samples of what the prediction is off by, (n_rows, n_samples): rows of one cell together."""
        out = np.empty((len(X), n_samples))
        for number, rows in self._groups(X):
            out[rows] = self._of_cell(number).deviations(X[rows], n_samples, rng)
        return out

    def _groups(self, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
        return rows_by_cell(self._function.trees(X)[0])

    def _of_cell(self, number: int) -> ExactPosterior:
        known = self._known.get(number)
        if known is None and len(self._known) < _KEPT:
            known = self._known.setdefault(number, Derived())
        return self._made(number) if known is None else known.get(self._function, lambda: self._made(number))

    def _made(self, number: int) -> ExactPosterior:
        return ExactPosterior(self._function.cell(number), 1)


class LocalPosterior(CellPosteriors):
    """How far a local machine may be off: the deviations of its first tree, and the errors of the mean of all trees.

    The mean varies less than one tree does; by how much depends on how often two rows share cells. As the errors of
    rows left out are measured by the same deviations, intervals hold what they should.
    """

    def __init__(self, function: LocalFunction, errors: HeldOutErrors, n_jobs: int | None) -> None:
        super().__init__(function, n_jobs)
        self.errors = errors
