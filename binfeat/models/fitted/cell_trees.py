"""Trees that split rows into cells, and rows stored as columns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from binfeat._common.array_record import ArrayRecord
from binfeat._engine.trees import find_cells
from binfeat.length_scales.matrices import Standardizer


@dataclass(frozen=True, eq=False)
class ColumnRows:
    """Scaled rows, stored in float32 as standardized columns: half the memory, with the precision of kernels."""

    columns: np.ndarray  # (n_inputs, n_rows)
    standardizer: Standardizer

    @property
    def shape(self) -> tuple[int, int]:
        n_inputs, n_rows = self.columns.shape
        return n_rows, n_inputs

    def __len__(self) -> int:
        return self.columns.shape[1]

    def __getitem__(self, place: np.ndarray | slice | tuple[np.ndarray, int]) -> np.ndarray:
        """Return some rows, or one input of them, in float64; `place` is ``rows`` or ``rows, input``."""
        if not isinstance(place, tuple):
            return self.columns[:, place].T * self.standardizer.unit + self.standardizer.center
        rows, j = place
        return self.columns[j][rows].astype(np.float64) * self.standardizer.unit[j] + self.standardizer.center[j]


ScaledTable = np.ndarray | ColumnRows  # (n_rows, n_inputs)


_FULL = 0.87  # average size of cells as a share of the maximum; splits are not always at the median


@dataclass(frozen=True, eq=False)
class CellTrees(ArrayRecord):
    """Trees with consecutively numbered cells; see `find_cells`."""

    inputs: Annotated[np.ndarray, np.int32, "splits"]  # inputs of the splits
    places: Annotated[np.ndarray, np.float64, "splits"]
    children: Annotated[np.ndarray, np.int32, "splits", "two"]
    roots: Annotated[np.ndarray, np.int32, "trees"]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the numbers of the cells, (n_trees, n_rows), of scaled rows (n_rows, n_inputs)."""
        cells = np.empty((len(self.roots), len(X)), np.int32)
        find_cells(np.ascontiguousarray(X), self.inputs, self.places, self.children, self.roots, cells)
        return cells

    def cells_below(self, node: int) -> list[int]:
        """Return the numbers of the cells below a split, in order; negative numbers represent cells."""
        cells, waiting = list[int](), [node]
        while waiting:
            node = waiting.pop()
            if node < 0:
                cells.append(-node - 1)
            else:
                waiting += self.children[node, ::-1].tolist()
        return cells

    @classmethod
    def joined(cls, trees: list["CellTrees"]) -> "CellTrees":
        inputs, places = (np.concatenate([getattr(tree, name) for tree in trees]) for name in ("inputs", "places"))
        children, roots, n_splits, n_cells = list[np.ndarray](), list[np.ndarray](), 0, 0
        for tree in trees:
            for numbers, moved in ((tree.children, children), (tree.roots, roots)):
                moved.append(np.where(numbers < 0, numbers - n_cells, numbers + n_splits).astype(np.int32))
            n_splits, n_cells = n_splits + len(tree.inputs), n_cells + len(tree.inputs) + 1
        return cls(inputs, places, np.concatenate(children), np.concatenate(roots))


def split_into_cells(
    X: ScaledTable,
    rows: np.ndarray,
    spread: Callable[[np.ndarray], np.ndarray],
    most: int,
    rng: np.random.Generator,
    disorder: float = 0.0,
) -> tuple[CellTrees, list[np.ndarray]]:
    """Return a tree for rows of X, (n_rows, n_inputs), and the rows of each cell.

    A cell has at most `most` rows, unless all its rows are equal. A split uses the input with the widest spread among
    the rows of a node, times a random factor with this `disorder`. It is near their median, or fills cells well.
    `spread` returns the spread of all inputs for some rows.
    """
    splits: list[tuple[int, float]] = []
    children: list[list[int]] = []
    cells: list[np.ndarray] = []
    roots = [0]
    waiting = [(rows, roots, 0)]  # rows of a node, and its place in the list of a pair of children
    while waiting:
        rows, siblings, side = waiting.pop()
        split = None if len(rows) <= most else _split(X, rows, spread(rows), most, rng, disorder)
        if split is None:
            cells.append(rows)
            siblings[side] = -len(cells)
            continue
        siblings[side], beyond = len(splits), X[rows, split[0]] > split[1]
        splits.append(split)
        children.append([0, 0])
        waiting += [(rows[beyond], children[-1], 1), (rows[~beyond], children[-1], 0)]
    inputs, places = np.array([own[0] for own in splits], np.int32), np.array([own[1] for own in splits], np.float64)
    return CellTrees(inputs, places, np.array(children, np.int32).reshape(-1, 2), np.array(roots, np.int32)), cells


def cells_of_columns(columns: np.ndarray, scales: np.ndarray, most: int) -> tuple[CellTrees, list[np.ndarray]]:
    """Return a tree that splits rows, (n_inputs, n_rows), by inputs times `scales`, and up to `most` rows per cell."""
    X, rng = columns.T.astype(np.float64), np.random.default_rng(0)
    tree, cells = split_into_cells(X, np.arange(len(X)), lambda rows: scales * X[rows].std(axis=0), most, rng)
    return tree, [rows[:most] for rows in cells]


def _split(
    X: ScaledTable, rows: np.ndarray, spread: np.ndarray, most: int, rng: np.random.Generator, disorder: float
) -> tuple[int, float] | None:
    """Return an input, and a place with rows on both sides; None if all rows are equal."""
    n_cells = max(2, int(np.ceil(len(rows) / (_FULL * most))))
    share = n_cells // 2 / n_cells + disorder / 8 * rng.uniform(-1, 1)
    for j in np.argsort(-spread * np.exp(disorder * rng.standard_normal(len(spread))), kind="stable"):
        place = _place(X[rows, j], share) if spread[j] > 0 else None
        if place is not None:
            return int(j), place
    return None


def _place(values: np.ndarray, share: float) -> float | None:
    """Return a place between two of the values, with about this share of them below; None if all are equal."""
    middle = np.partition(values, int(share * len(values)))[int(share * len(values))]
    below, above = values[values < middle], values[values > middle]
    between = []
    if below.size:
        between.append((abs(below.size / len(values) - share), _between(below.max(), middle)))
    if above.size:
        between.append((abs(1 - above.size / len(values) - share), _between(middle, above.min())))
    return min(between)[1] if between else None


def _between(low: float, high: float) -> float:
    """Return the mean, or the lower value if the mean is rounded to the higher one."""
    middle = low + (high - low) / 2
    return float(middle if low <= middle < high else low)


def rows_by_cell(cells: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return each cell with rows, and their numbers, in order."""
    order = np.argsort(cells, kind="stable")
    present, starts = np.unique(cells[order], return_index=True)
    return list(zip(present.tolist(), np.split(order, starts[1:]), strict=True))
