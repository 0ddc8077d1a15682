"""Estimate the gain from more rows by leave-one-out errors of quarters, halves and all of the rows."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._threads import side_by_side
from binfeat.length_scales.leave_one_out import precise_inverse_root, weighted_squares
from binfeat.length_scales.matrices import Linear
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction

FEWEST = 40  # rows; quarters of fewer rows are too small for an estimate
_MOST = 3000  # rows in a kernel matrix, which takes one or two seconds with all halves and quarters
_FEW_CELLS = 4
_FEWER_ROWS = (1.0, 1.0), (0.8, 1.5)  # factors of gamma and the penalty that are tried for fewer rows
_LEAST_RATIO, _MOST_RATIO = 0.25, 1.0  # bounds of the gain of a doubling relative to the doubling before
_LEAST_LEFT = 0.1  # lower bound of the share of the error that remains after an extrapolation to all rows
_GROUPS = 20  # jackknife groups

Sets = list[np.ndarray]  # row numbers of each model
Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows (n_inputs, n), targets (n, n_targets), weights (n,)


@dataclass(frozen=True, eq=False)
class _KnownRows:
    """Stored rows of a kernel expansion, and their split into quarters, halves and the whole."""

    function: KernelFunction
    X: np.ndarray  # (n_inputs, n)
    Y: np.ndarray  # (n, n_targets)
    weights: np.ndarray
    levels: list[Sets]
    doublings: float  # log2 of the number of training rows over the number of these rows

    def errors(self, sets: Sets, gamma: float, alpha: float, n_jobs: int | None) -> np.ndarray:
        """Compute the squared leave-one-out error of every row, (n,), in the model of its set."""
        whole, errors = self.function.kernel(1), np.empty(len(self.Y))
        gammas = [
            own if isinstance(matrix.kernel, Linear) else gamma * own
            for matrix, own in zip(whole.matrices, whole.gammas, strict=True)
        ]
        kernel = replace(whole, gammas=gammas)

        def measure(rows: np.ndarray) -> None:
            X, penalty = np.ascontiguousarray(self.X[:, rows]), alpha * float(self.function.alpha)
            own = self.weights[rows], self.Y[rows], precise_inverse_root
            errors[rows] = weighted_squares(kernel(X, X), penalty, *own).mean(axis=1, dtype=np.float64)

        side_by_side(measure, sets, n_jobs)
        return errors


def gain_of_twice_the_rows(
    function: KernelFunction, intercept: np.ndarray, n_jobs: int | None
) -> tuple[float, float] | None:
    """Estimate the relative reduction of the squared error by twice as many rows, and its standard error.

    The error is assumed to fall by a power of the number of rows towards a positive limit. The gains of successive
    doublings are then a geometric series, and its first two terms are measured.

    Returns
    -------
    gain : tuple of float, or None
        The reduction is negative if halves of the rows have a lower error than all rows. None if the error is 0.
    """
    if isinstance(function, LocalFunction):
        known = _of_cells(function)
    else:
        known = _of_rows(cast(ExactFunction, function), intercept)
    last = len(known.levels) - 1
    errors = []
    for level, sets in enumerate(known.levels):
        tries = [known.errors(sets, *changed, n_jobs) for changed in (_FEWER_ROWS if level < last else _FEWER_ROWS[:1])]
        errors.append(min(tries, key=np.mean))
    table = np.array(errors)
    if not table[-1].any():
        return None
    groups = np.random.default_rng(0).permutation(table.shape[1]) % _GROUPS
    estimates = [_gain(table[:, groups != group].mean(axis=1), known.doublings) for group in range(_GROUPS)]
    spread = np.sqrt((_GROUPS - 1) * np.var(estimates))
    return _gain(table.mean(axis=1), known.doublings), float(spread)


def _gain(errors: np.ndarray, doublings: float) -> float:
    """Extrapolate mean errors of a quarter, half and all of some rows to all training rows, and then to twice as many.

    The relative gain is at most the relative gain of the last measured doubling.
    """
    first, second = errors[:-1] - errors[1:]
    if second <= 0:
        return float(second / errors[-1])
    ratio = np.clip(second / first if first > 0 else np.inf, _LEAST_RATIO, _MOST_RATIO)
    steps = ratio ** np.arange(1, np.floor(doublings) + 1)
    gone = second * (steps.sum() + (doublings % 1) * ratio ** (np.floor(doublings) + 1))
    left = max(errors[-1] - gone, _LEAST_LEFT * errors[-1])
    return float(min(second * ratio ** (doublings + 1) / left, second / errors[1]))


def _of_rows(function: ExactFunction, intercept: np.ndarray) -> _KnownRows:
    """Select some rows of an exact model, and split them into quarters and halves."""
    chosen = evenly_spaced(function.n_rows, _MOST)
    order = np.random.default_rng(0).permutation(len(chosen))
    levels = [np.array_split(order, parts) for parts in (4, 2, 1)]
    doublings = float(np.log2(function.n_rows / len(chosen)))
    return _KnownRows(function, *_rows_with_targets(function, intercept, chosen), levels, doublings)


def _of_cells(function: LocalFunction) -> _KnownRows:
    """Select some neighboring cells of a local model; half of the rows then fill cells twice as large.

    If the model has few cells, only the first cell is used.
    """
    trees = function.trees
    node = _node_of_few_cells(trees)
    if node is None:
        return _of_rows(function.cell(0), function.cell_intercepts[0])
    numbers = trees.cells_below(node)
    parts = [_rows_with_targets(function.cell(k), function.cell_intercepts[k], slice(None)) for k in numbers]
    X, Y, weights = (np.concatenate(arrays, axis=axis) for arrays, axis in zip(zip(*parts), (1, 0, 0), strict=True))
    ends = np.cumsum([len(part[1]) for part in parts])
    cells = np.split(np.arange(len(Y)), ends[:-1])
    rng, n_first = np.random.default_rng(0), len(trees.cells_below(trees.children[node, 0]))
    children = [np.concatenate(cells[:n_first]), np.concatenate(cells[n_first:])]
    halves = [half for rows in children for half in np.array_split(rng.permutation(rows), min(2, len(rows)))]
    quarters = np.array_split(rng.permutation(len(Y)), 4)
    return _KnownRows(function, X, Y, weights, [quarters, halves, cells], 0.0)


def _rows_with_targets(function: ExactFunction, intercept: np.ndarray, chosen: np.ndarray | slice) -> Columns:
    """Return some rows of a function, their targets (predictions plus residuals) and their weights."""
    X, weights = np.ascontiguousarray(function.support[:, chosen]), function.weights[chosen]
    left = float(function.alpha) / weights[:, np.newaxis] * function.coef[:, chosen].T
    values = function.scores(X.T * function.unit + function.center, intercept)
    return X, (values + left).astype(np.float32), weights


def _node_of_few_cells(trees: CellTrees) -> int | None:
    """Return the deepest node of the first tree with at least four cells below it, along its larger side."""
    node = int(trees.roots[0])
    if len(trees.cells_below(node)) < _FEW_CELLS:
        return None
    while True:
        side = max(trees.children[node].tolist(), key=lambda child: len(trees.cells_below(child)))
        if len(trees.cells_below(side)) < _FEW_CELLS:
            return node
        node = side
