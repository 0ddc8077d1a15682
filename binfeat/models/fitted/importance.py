"""Importance of inputs: the increase of the leave-one-out error when an input is shuffled."""

from collections.abc import Callable, Iterator

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.models.fitted.cell_trees import cells_of_columns
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction, inverse_of_levels
from binfeat.models.kernel_algebra.level_effects import LevelColumns, inverse_times_levels, one_hot

ROWS, _FEWEST = 1000, 200  # maximum and minimum of evaluated rows
_TERMS = 2 * 10**9  # terms of kernel values or features: some tenths of a second
_CELL_ROWS, _CELLS = 1500, 4  # cells for leave-one-out errors of larger models; more cells if they are small
_SHUFFLES = 2

# Weights and residuals of rows, and their residuals with other values (n_changed, n_rows) of the columns of a mask.
_Validated = tuple[np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray], np.ndarray]]


def rises_of_kernels(function: ExactFunction | LocalFunction, source: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the increase of the mean squared error for each input, given the input of each column in `source`.

    Residuals are leave-one-out residuals from the inverse of the kernel matrix; for many rows, from a few
    cells, and for a local model from the cells of its first tree.
    """
    with one_blas_thread():
        validated = list(_of_local(function, n_jobs) if isinstance(function, LocalFunction) else _of_exact(function))
    donors = _donors(function.support, function.weights if function.weights_are_counts else None)
    live = np.any(function.gammas > 0, axis=0)
    return _rises(validated, donors, source, live, n_jobs)


def rises_of_features(
    function: FeatureFunction,
    X: np.ndarray,
    residuals: np.ndarray,
    weights: np.ndarray,
    counts: np.ndarray | None,
    source: np.ndarray,
    gamma: np.ndarray,
    n_jobs: int | None,
) -> np.ndarray | None:
    """Return importances of a model of random features, from scaled rows (n_rows, n_columns) with validation residuals.

    Changes of predictions are from the model of all rows. Values are shuffled among rows drawn by their counts,
    (n_rows,), or among all rows. None if there are too many inputs for the time.
    """
    n_rows = min(ROWS, _TERMS // (max(1, function.n_grids + function.n_fourier) * X.shape[1] ** 2))
    if n_rows < min(_FEWEST, len(X)):
        return None
    some = evenly_spaced(len(X), n_rows)
    X, residuals = X[some], residuals[some]
    donors = _donors(X.T, None if counts is None else counts[some])

    def scores(rows: np.ndarray) -> np.ndarray:
        return function.scores(rows, np.zeros(residuals.shape[1]), n_jobs)

    before = scores(X)

    def after(changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        rows = X.copy()
        rows[:, changed] = own.T
        return residuals + before - scores(rows)

    return _rises([(weights[some], residuals, after)], donors, source, gamma > 0, 1)


def _donors(columns: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return up to `ROWS` rows of columns (n_inputs, n_rows), as often as their weights (n_rows,), or evenly spaced.

    Rows are sorted by their weights, because weights can depend on the order of the rows.
    """
    n_rows = columns.shape[1]
    if weights is None:
        return columns[:, evenly_spaced(n_rows, ROWS)]
    order, n_donors = np.argsort(weights, kind="stable"), min(n_rows, ROWS)
    totals = np.cumsum(weights[order])
    return columns[:, order[np.searchsorted(totals, (np.arange(n_donors) + 0.5) / n_donors * totals[-1])]]


def _rises(
    validated: list[_Validated], donors: np.ndarray, source: np.ndarray, live: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """Return the increase of the error of the evaluated rows when each input has values of other rows, `donors`.

    Columns that are not `live` have no effect. `permutation_importance` of scikit-learn computes the same means up to
    sampling error, but shuffles only among the validated rows, and needs an estimator per cell.
    """
    rises, total = np.zeros(source.max() + 1), sum(weights.sum() for weights, *_ in validated)

    def shuffle(j: int) -> None:
        changed, rng = source == j, np.random.default_rng(j)
        for weights, residuals, after in validated:
            for _ in range(_SHUFFLES):
                values = donors[changed][:, rng.permutation(donors.shape[1])[: len(weights)]]
                squares = after(changed, values) ** 2 - residuals**2
                rises[j] += weights @ squares.mean(axis=1) / (_SHUFFLES * total)

    side_by_side(shuffle, [j for j in range(len(rises)) if live[source == j].any()], n_jobs)
    return rises


def _of_cell(
    function: KernelFunction,
    cell: ExactFunction,
    n_validated: int,
    n_represented: int,
    number: int | None = None,
    of_levels: np.ndarray | None = None,
) -> _Validated:
    """Return some rows of a cell with leave-one-out predictions; for a small exact model all rows are one cell.

    With the inverse G of the cell's kernel matrix and coefficients c, the residual of row i is ``r_i = c_i / G_ii``. A
    prediction with kernel values k depends on the target of row i by ``(k + 1)' G e_i``, which multiplies r_i here.
    With effects of levels, predictions also depend on it by the effects, which change by ``M^-1 V' e_i``. These changes
    change functions of other cells, too, which is neglected.

    The weights of the rows are multiplied so that they count as `n_represented` rows. `number` is the number of the
    cell in a local model with one tree, and `of_levels` is ``M^-1``.
    """
    places = evenly_spaced(cell.n_rows, n_validated)
    weights, validated = cell.weights[places], cell.support[:, places]
    levels = function.levels if isinstance(function, LocalFunction) else None
    inverse, changes, alpha = _rows_of_inverse(cell, places, levels, of_levels)
    coef, g = cell.coef[:, places].T, inverse[np.arange(len(places)), places]
    residuals, inside = coef / g[:, np.newaxis], alpha / weights[:, np.newaxis] * coef

    def rows_and_scores(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = columns.T * function.unit + function.center
        return rows, function.scores(rows, np.zeros(len(function.coef)), 1)

    _, before = rows_and_scores(validated)

    def after(changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        columns = validated.copy()
        columns[changed] = own
        (rows, scores), values = rows_and_scores(columns), cell.kernel(1)(columns, cell.support)
        if isinstance(function, LocalFunction):
            values[function.trees(rows)[0] != number] = -1.0  # in a cell that has never contained the row
        counts = np.einsum("ij,ij->i", values, inverse) + inverse.sum(axis=1)
        if levels is not None:
            padded = np.pad(changes, ((0, 0), (0, 1)))
            counts = counts + sum(padded[np.arange(len(counts)), each] for each in levels.of_rows(columns))
        return inside + (before - scores) + counts[:, np.newaxis] * residuals

    return n_represented / len(places) * weights, residuals, after


def _rows_of_inverse(
    cell: ExactFunction, places: np.ndarray, levels: LevelColumns | None, of_levels: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return some rows of G, changes of all effects of levels, (n_places, n_columns), and the alpha of the inverse."""
    B, alpha = cell.inverse_root()
    inverse = B[places] @ B.T
    if levels is None or of_levels is None:
        return inverse, inverse[:, :0], alpha
    present, Z = one_hot(levels.of_rows(cell.support))
    V = inverse_times_levels(B, Z)
    changes = V[places] @ of_levels[present]
    return inverse - changes[:, present] @ V.T, changes, alpha


def _of_exact(function: ExactFunction) -> Iterator[_Validated]:
    n_rows, n_inputs = function.n_rows, len(function.support)
    n_validated = int(np.clip(_TERMS // (n_rows * n_inputs**2), _FEWEST, ROWS))
    cells = [np.arange(n_rows)]
    if n_rows > _CELL_ROWS:
        _, cells = cells_of_columns(function.support, function.scales, _CELL_ROWS)
    for place, n_own, n_represented in _chosen(np.array([len(rows) for rows in cells]), n_validated):
        yield _of_cell(function, function.of_rows(cells[place]), n_own, n_represented)


def _of_local(function: LocalFunction, n_jobs: int | None = None) -> Iterator[_Validated]:
    """Yield rows of some cells of the first tree."""
    first, cells = function.first_tree()
    of_levels = None if first.levels is None else inverse_of_levels(first, cells, n_jobs)
    for place, n_own, n_represented in _chosen(np.diff(first.starts)[cells], ROWS):
        number = cells[place]
        yield _of_cell(first, first.cell(number), n_own, n_represented, number, of_levels)


def _chosen(sizes: np.ndarray, n_validated: int) -> Iterator[tuple[int, int, int]]:
    """Yield the places of some cells, with their numbers of validated rows and of the rows that they represent.

    Each represents some neighboring cells. Cells of less than half the size of the largest, such as cells of a rare
    level, take little time, and represent only each other.
    """
    small, most = 2 * sizes < sizes.max(), max(_CELLS, n_validated // int(sizes.max()))
    for group in (np.flatnonzero(~small), np.flatnonzero(small)):
        for part in np.array_split(group, min(most, len(group))) if group.size else ():
            n_represented = int(sizes[part].sum())
            yield int(part[len(part) // 2]), max(1, n_validated * n_represented // int(sizes.sum())), n_represented
