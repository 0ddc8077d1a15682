"""What inputs do for the loss of a machine: how far errors of rows left out rise when an input is shuffled."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol, cast

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.models.fitted.cell_trees import cells_of_columns
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.kernel_algebra.leave_one_out import precise_inverse_root

ROWS, _FEWEST = 1000, 200  # that are judged, at most and at least
_TERMS = 2 * 10**9  # of kernel values or features, which are sums over inputs: some tenths of a second
_CELL_ROWS, _CELLS = 1500, 4  # in which rows are left out, of a machine of more rows
_SHUFFLES = 2


class _Judged(Protocol):
    """Rows that a machine is judged by, each without that row in it."""

    weights: np.ndarray  # (n_rows,)
    residuals: np.ndarray  # (n_rows, n_targets)

    def after(self, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Residuals with other values, (n_changed, n_rows), of the columns of a mask."""


def rises_of_kernels(function: KernelFunction, source: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Rise of the mean squared error for each input, to which `source` assigns columns; of a function of kernel values.

    Residuals are those of rows that are left out, by the inverse of the kernel matrix; of many rows by that of a few
    cells, and of a local machine by those of its first tree.
    """
    with one_blas_thread():
        if isinstance(function, LocalFunction):
            judged = list(_of_local(replace(function, roots=function.roots[:1])))
        else:
            judged = list(_of_exact(cast(ExactFunction, function)))
    donors = function.support[:, evenly_spaced(function.n_rows, ROWS)]
    live = np.any(function.gammas > 0, axis=0)
    return _rises(judged, donors, source, live, n_jobs)


def rises_of_features(
    function: FeatureFunction,
    X: np.ndarray,
    residuals: np.ndarray,
    weights: np.ndarray,
    source: np.ndarray,
    gamma: np.ndarray,
    n_jobs: int | None,
) -> np.ndarray | None:
    """The same of random features, by scaled rows (n_rows, n_columns) whose residuals are known without them.

    None for so many inputs that too few rows could be judged in the time.
    """
    n_rows = min(ROWS, _TERMS // (max(1, function.n_grids + function.n_fourier) * X.shape[1] ** 2))
    if n_rows < min(_FEWEST, len(X)):
        return None
    some = evenly_spaced(len(X), n_rows)
    own = _FeatureRows(function, X[some], residuals[some], weights[some], n_jobs)
    return _rises([own], X[some].T, source, gamma > 0, 1)


def _rises(
    judged: list[_Judged], donors: np.ndarray, source: np.ndarray, live: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """Of some rows, by the columns of others; columns that are not `live` have no part in the function."""
    rises, total = np.zeros(source.max() + 1), sum(own.weights.sum() for own in judged)

    def shuffle(j: int) -> None:
        changed, rng = source == j, np.random.default_rng(j)
        for own in judged:
            for _ in range(_SHUFFLES):
                values = donors[changed][:, rng.permutation(donors.shape[1])[: len(own.weights)]]
                squares = own.after(changed, values) ** 2 - own.residuals**2
                rises[j] += own.weights @ squares.mean(axis=1) / (_SHUFFLES * total)

    side_by_side(shuffle, [j for j in range(len(rises)) if live[source == j].any()], n_jobs)
    return rises


class _LeftOut:
    """Some rows of a cell, each without that row in it.

    With the inverse G of the cell's kernel matrix and coefficients c, what is left of row i is ``r_i = c_i / G_ii``. In
    a prediction for a row with kernel values k its target counts ``(k + 1)' G e_i``: that part of r_i is left, too.
    """

    def __init__(self, cell: ExactFunction, places: np.ndarray) -> None:
        self.weights = cell.weights[places]
        B, alpha = precise_inverse_root(cell.kernel(1)(cell.support, cell.support), float(cell.alpha), cell.weights)
        self._columns = B[places] @ B.T
        coef, g = cell.coef[:, places].T, self._columns[np.arange(len(places)), places]
        self.residuals, self._inside = coef / g[:, np.newaxis], alpha / self.weights[:, np.newaxis] * coef

    def after(self, fallen: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Residuals where predictions fall by so much, for kernel values (n_rows, n_cell)."""
        counts = np.einsum("ij,ij->i", values, self._columns) + self._columns.sum(axis=1)
        return self._inside + fallen + counts[:, np.newaxis] * self.residuals


class _KernelRows:
    """Rows of a cell, without them in the cell; of a small exact machine all rows are one cell.

    `number` is the place of the cell in a local machine with one tree.
    """

    def __init__(self, function: KernelFunction, cell: ExactFunction, n_judged: int, number: int | None = None) -> None:
        self._function, self._cell, self._number = function, cell, number
        places = evenly_spaced(cell.n_rows, n_judged)
        self._left_out, self._columns = _LeftOut(cell, places), cell.support[:, places]
        self._before = self._scores(self._rows(self._columns))
        self.weights, self.residuals = self._left_out.weights, self._left_out.residuals

    def after(self, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        columns = self._columns.copy()
        columns[changed] = own
        rows, values = self._rows(columns), self._cell.kernel(1)(columns, self._cell.support)
        if isinstance(self._function, LocalFunction):
            values[self._function.trees(rows)[0] != self._number] = -1.0  # in a cell that has never had the row
        return self._left_out.after(self._before - self._scores(rows), values)

    def _rows(self, columns: np.ndarray) -> np.ndarray:
        return columns.T * self._function.unit + self._function.center

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        return self._function.scores(rows, np.zeros(len(self._function.coef)), 1)


class _FeatureRows:
    """Rows that had been held out; what predictions of the machine of all rows fall by is left without them, too."""

    def __init__(
        self, function: FeatureFunction, X: np.ndarray, residuals: np.ndarray, weights: np.ndarray, n_jobs: int | None
    ) -> None:
        self._function, self._X, self.residuals, self.weights, self._n_jobs = function, X, residuals, weights, n_jobs
        self._before = self._scores(X)

    def after(self, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        X = self._X.copy()
        X[:, changed] = own.T
        return self.residuals + self._before - self._scores(X)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return self._function.scores(X, np.zeros(self.residuals.shape[1]), self._n_jobs)


def _of_exact(function: ExactFunction) -> Iterator[_Judged]:
    n_rows, n_inputs = function.n_rows, len(function.support)
    n_judged = int(np.clip(_TERMS // (n_rows * n_inputs**2), _FEWEST, ROWS))
    cells = [np.arange(n_rows)]
    if n_rows > _CELL_ROWS:
        _, cells = cells_of_columns(function.support, function.scales, _CELL_ROWS)
    chosen = evenly_spaced(len(cells), _CELLS)
    for rows in (cells[number] for number in chosen):
        own = {"support": np.ascontiguousarray(function.support[:, rows]), "weights": function.weights[rows]}
        yield _KernelRows(function, replace(function, **own, coef=function.coef[:, rows]), n_judged // len(chosen))


def _of_local(function: LocalFunction) -> Iterator[_Judged]:
    """Of the cells of the first tree."""
    cells = function.trees.cells_below(int(function.roots[0]))
    chosen = evenly_spaced(len(cells), _CELLS)
    for number in (cells[place] for place in chosen):
        yield _KernelRows(function, function.cell(number), ROWS // len(chosen), number)
