"""What more rows would bring, by leave-one-out errors of a machine with quarters, halves and all of its rows."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._threads import side_by_side
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.kernel_algebra.leave_one_out import precise_inverse_root, weighted_squares
from binfeat.models.kernel_algebra.matrices import Linear

FEWEST = 40  # rows: of quarters of fewer nothing can be told
_MOST = 3000  # whose matrix is factorised: a second or two with all halves and quarters
_FEW_CELLS = 4
_FEWER_ROWS = (1.0, 1.0), (0.8, 1.5)  # gamma and penalty, as multiples, that suit fewer rows
_LEAST_RATIO, _MOST_RATIO = 0.25, 1.0  # of the gains of two doublings, the later by the earlier one
_LEAST_LEFT = 0.1  # of the error, where it is followed to more rows than there are matrices of
_GROUPS = 20  # of the jackknife

Sets = list[np.ndarray]  # places of rows, of a machine each
Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows (n_inputs, n), targets (n, n_targets), weights (n,)


@dataclass(frozen=True, eq=False)
class _KnownRows:
    """Rows that a function of kernel values keeps, and the machines of a quarter, of half and of all of them."""

    function: KernelFunction
    X: np.ndarray  # (n_inputs, n)
    Y: np.ndarray  # (n, n_targets)
    weights: np.ndarray
    levels: list[Sets]
    doublings: float  # of these rows, that all rows of the machine are

    def errors(self, sets: Sets, gamma: float, alpha: float, n_jobs: int | None) -> np.ndarray:
        """Squared leave-one-out error of every row, (n,), in the machine that has it."""
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
    """Share of the squared error that twice as many rows would take away, and its standard error; None without error.

    It is below 0 where halves of the rows do better than all.

    Errors fall by some power of the number of rows towards what no number of rows takes away. So gains of doublings are
    a geometric series, of which two terms are measured, for all rows at once.
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
    left_out = [_gain(table[:, groups != group].mean(axis=1), known.doublings) for group in range(_GROUPS)]
    spread = np.sqrt((_GROUPS - 1) * np.var(left_out))
    return _gain(table.mean(axis=1), known.doublings), float(spread)


def _gain(errors: np.ndarray, doublings: float) -> float:
    """By mean errors of a quarter, half and all of some rows, for twice of more rows than these.

    No doubling takes a larger share of the error than the last one.
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
    """Of an exact machine: some of its rows, and of them quarters and halves."""
    chosen = evenly_spaced(function.n_rows, _MOST)
    order = np.random.default_rng(0).permutation(len(chosen))
    levels = [np.array_split(order, parts) for parts in (4, 2, 1)]
    doublings = float(np.log2(function.n_rows / len(chosen)))
    return _KnownRows(function, *_rows_with_targets(function, intercept, chosen), levels, doublings)


def _of_cells(function: LocalFunction) -> _KnownRows:
    """Of a local machine: some neighbouring cells; half of the rows are in cells twice as large.

    Of a machine of few cells the first one stands for all.
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
    halves = [half for rows in children for half in np.array_split(rng.permutation(rows), 2)]
    quarters = np.array_split(rng.permutation(len(Y)), 4)
    return _KnownRows(function, X, Y, weights, [quarters, halves, cells], 0.0)


def _rows_with_targets(function: ExactFunction, intercept: np.ndarray, chosen: np.ndarray | slice) -> Columns:
    """Some rows of a function, their targets and weights: targets are predictions plus what coefficients leave."""
    X, weights = np.ascontiguousarray(function.support[:, chosen]), function.weights[chosen]
    left = float(function.alpha) / weights[:, np.newaxis] * function.coef[:, chosen].T
    values = function(X.T * function.unit + function.center)
    return X, (values + intercept + left).astype(np.float32), weights


def _node_of_few_cells(trees: CellTrees) -> int | None:
    """The split of the first tree that has at least four cells, but neither side of it has."""
    node = int(trees.roots[0])
    if len(trees.cells_below(node)) < _FEW_CELLS:
        return None
    while True:
        side = max(trees.children[node].tolist(), key=lambda child: len(trees.cells_below(child)))
        if len(trees.cells_below(side)) < _FEW_CELLS:
            return node
        node = side
