"""What inputs do for the loss of a machine: how far errors of rows left out rise when an input is shuffled."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol, cast

import numpy as np

from binfeat._common.subsets import evenly_spaced, slices
from binfeat._engine.policy import one_blas_thread, side_by_side
from binfeat._machine.fitted.cell_trees import cells_of_columns
from binfeat._machine.fitted.exact import ExactFunction
from binfeat._machine.fitted.features import FeatureFunction
from binfeat._machine.fitted.kernel_function import KernelFunction
from binfeat._machine.fitted.local import LocalFunction
from binfeat._machine.kernel_algebra.changed_inputs import ChangedInputs
from binfeat._machine.kernel_algebra.leave_one_out import precise_inverse_root

ROWS, _FEWEST = 1000, 200  # that are judged, at most and at least
_VALUES = 10**9  # of kernels, for all judged rows and inputs
_TERMS = 2 * 10**9  # of features, which are sums over inputs: some tenths of a second
_CELL_ROWS, _CELLS = 1500, 4  # in which rows are left out, of a machine of more rows
_SHUFFLES = 2
_TILE = 128  # rows whose kernel values fit in a cache
_ALL = slice(None)


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

    def after(self, fallen: np.ndarray, values: np.ndarray, rows: slice = _ALL) -> np.ndarray:
        """Residuals of some rows where predictions fall by so much, for kernel values (n_rows, n_cell)."""
        columns = self._columns[rows]
        counts = np.einsum("ij,ij->i", values, columns) + columns.sum(axis=1)
        return self._inside[rows] + fallen + counts[:, np.newaxis] * self.residuals[rows]


class _ExactRows:
    """Rows of an exact machine; of many, those of a cell, without them in the cell."""

    def __init__(self, function: ExactFunction, rows: np.ndarray, n_judged: int) -> None:
        places = evenly_spaced(len(rows), n_judged)
        own = {"support": np.ascontiguousarray(function.support[:, rows]), "weights": function.weights[rows]}
        cell = replace(function, **own, coef=function.coef[:, rows])
        self._left_out, self._coef = _LeftOut(cell, places), function.coef.T.astype(np.float32)
        self._cell = _ALL if len(rows) == function.n_rows else rows
        self._values = ChangedInputs(function.kernel(1), cell.support[:, places], function.support)
        nothing = np.zeros(len(function.support), bool)
        self._before = self._values(_ALL, nothing, np.empty((0, len(places)))) @ self._coef
        self.weights, self.residuals = self._left_out.weights, self._left_out.residuals

    def after(self, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        out = np.empty(self.residuals.shape)
        for rows in slices(len(out), _TILE):
            values = self._values(rows, changed, own[:, rows])
            fallen = self._before[rows] - values @ self._coef
            out[rows] = self._left_out.after(fallen, values[:, self._cell], rows)
        return out


class _LocalRows:
    """Rows of a cell of a local machine with one tree."""

    def __init__(self, function: LocalFunction, number: int, n_judged: int) -> None:
        self._function, self._number, self._cell = function, number, function.cell(number)
        places = evenly_spaced(self._cell.n_rows, n_judged)
        self._left_out, self._columns = _LeftOut(self._cell, places), self._cell.support[:, places]
        self._before = self._scores(self._rows(self._columns))
        self.weights, self.residuals = self._left_out.weights, self._left_out.residuals

    def after(self, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        columns = self._columns.copy()
        columns[changed] = own
        rows, values = self._rows(columns), self._cell.kernel(1)(columns, self._cell.support)
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
    n_judged = int(np.clip(_VALUES // (n_rows * n_inputs), _FEWEST, ROWS))
    cells = [np.arange(n_rows)]
    if n_rows > _CELL_ROWS:
        _, cells = cells_of_columns(function.support, function.scales, _CELL_ROWS)
    chosen = evenly_spaced(len(cells), _CELLS)
    for number in chosen:
        yield _ExactRows(function, cells[number], n_judged // len(chosen))


def _of_local(function: LocalFunction) -> Iterator[_Judged]:
    """Of the cells of the first tree."""
    cells = function.trees.cells_below(int(function.roots[0]))
    chosen = evenly_spaced(len(cells), _CELLS)
    for place in chosen:
        yield _LocalRows(function, cells[place], ROWS // len(chosen))
