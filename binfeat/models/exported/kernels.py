"""Functions of kernel values as nodes of ONNX."""

from collections.abc import Callable

import numpy as np

from binfeat.kernels.families import Laplacian, Matern
from binfeat.length_scales.matrices import Linear
from binfeat.models.exported.graph import Graph
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.expansion import KernelCoordinates
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.level_effects import LevelEffects
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.kernel_algebra.levels import NO_COLUMN


def function_of_kernels(graph: Graph, function: KernelFunction, rows: str) -> str:
    """Return values (n_rows, n_targets) of an exact or local model, without the common intercept."""
    n_targets = len(function.coef)
    units = graph.add("Div", graph.add("Sub", rows, function.center), function.unit)
    rounded = graph.cast(graph.cast(units, np.float32), np.float64)
    if not isinstance(function, LocalFunction):
        support = function.support.T[np.newaxis]
        values = _expansion(graph, function, rounded, support, function.coef.T[np.newaxis], None)
        return graph.reshaped(values, -1, n_targets)
    support, coef = _by_cell(function)
    total = None
    for cells in _cells(graph, function.trees, rows):
        values = _expansion(graph, function, rounded, support, coef, cells)
        whole = graph.add("Add", graph.reshaped(values, -1, n_targets), graph.rows(function.cell_intercepts, cells))
        total = whole if total is None else graph.add("Add", total, whole)
    assert total is not None
    mean = graph.add("Div", total, float(function.n_trees))
    return mean if function.levels is None else _with_levels(graph, function.levels, rows, mean)


def _with_levels(graph: Graph, levels: LevelEffects, rows: str, total: str) -> str:
    """The same with effects of levels; codes beyond those of `fit` have none."""
    columns = levels.columns
    for j, start, stop in zip(columns.level_inputs, columns.level_starts, columns.level_starts[1:]):
        known = levels.padded[np.append(columns.level_columns[start:stop], NO_COLUMN)]
        code = graph.add("Min", graph.reshaped(graph.columns(rows, [j]), -1), float(stop - start))
        total = graph.add("Add", total, graph.rows(known, graph.cast(code, np.int64)))
    return total


def _by_cell(function: LocalFunction) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n_cells, n_most, n_inputs) and coefficients (n_cells, n_most, n_targets), filled up with zeros."""
    sizes = np.diff(function.starts)
    shape = sizes.size, sizes.max()
    support, coef = np.zeros((*shape, len(function.support))), np.zeros((*shape, len(function.coef)))
    for cell, (start, size) in enumerate(zip(function.starts, sizes)):
        place = slice(start, start + size)
        support[cell, :size], coef[cell, :size] = function.support[:, function.rows[place]].T, function.coef[:, place].T
    return support, coef


def _cells(graph: Graph, trees: CellTrees, rows: str) -> list[str]:
    """The cell of each row, (n_rows,) int64, in each tree: as many steps as the trees are deep."""
    n_rows = graph.add("Shape", rows, start=0, end=1)
    cells = []
    for root in trees.roots:
        node = graph.add("Expand", graph.constant([root], np.int64), n_rows)
        for _ in range(_depth(trees.children, int(root))):
            inner = graph.add("Max", node, graph.constant(0, np.int64))
            place = graph.reshaped(graph.rows(trees.inputs, inner), -1, 1)
            value = graph.reshaped(graph.add("GatherElements", rows, place, axis=1), -1)
            beyond = graph.cast(graph.add("Greater", value, graph.rows(trees.places, inner)), np.int64)
            step = graph.add("Add", graph.add("Mul", inner, graph.constant(2, np.int64)), beyond)
            is_inner = graph.add("GreaterOrEqual", node, graph.constant(0, np.int64))
            node = graph.add("Where", is_inner, graph.rows(trees.children.ravel(), step), node)
        cells.append(graph.add("Sub", graph.constant(-1, np.int64), node))
    return cells


def _depth(children: np.ndarray, node: int) -> int:
    return 0 if node < 0 else 1 + max(_depth(children, int(child)) for child in children[node])


def _expansion(
    graph: Graph, function: KernelFunction, rows: str, support: np.ndarray, coef: np.ndarray, cells: str | None
) -> str:
    """Sums (1, n_rows, n_targets), or (n_rows, 1, n_targets) where rows have cells, with their own support."""
    of_kernels, axis = function.kernel(1), 0 if cells is None else 1

    def known(table: np.ndarray) -> str:
        return graph.constant(table) if cells is None else graph.rows(table, cells)

    total = None
    for matrix, share, gamma in zip(of_kernels.matrices, of_kernels.shares, of_kernels.gammas, strict=True):
        part, kernel = KernelCoordinates(matrix, gamma, function.categorical), matrix.kernel
        own = np.stack([part.of(cell) for cell in support.astype(np.float64)])
        asked = graph.add("Unsqueeze", _placed(graph, part, rows), graph.constant([axis], np.int64))
        if isinstance(kernel, Linear):
            values = graph.add("MatMul", asked, known(own.transpose(0, 2, 1)))
        else:
            distances = (_absolute if isinstance(kernel, Laplacian) else _squared)(graph, asked, own, known)
            for j in np.flatnonzero(function.categorical):
                codes = graph.add("Unsqueeze", graph.columns(rows, [j]), graph.constant([axis], np.int64))
                same = graph.cast(graph.add("Equal", codes, known(support[:, np.newaxis, :, j])), np.float64)
                jump = graph.add("Mul", graph.add("Sub", 1.0, same), float(gamma[j]))
                distances = graph.add("Add", distances, jump)
            values = _decline(graph, kernel, distances)
        values = graph.add("Mul", values, float(share))
        total = values if total is None else graph.add("Add", total, values)
    assert total is not None
    return graph.add("MatMul", total, known(coef))


def _placed(graph: Graph, part: KernelCoordinates, rows: str) -> str:
    """Coordinates of rows for a kernel."""
    scaled = graph.add("Mul", graph.columns(rows, part.inputs), part.scales)
    return scaled if part.linear_map is None else graph.add("MatMul", scaled, part.linear_map)


def _absolute(graph: Graph, asked: str, own: np.ndarray, known: Callable[[np.ndarray], str]) -> str:
    """Sums of absolute differences, coordinate by coordinate, so that no array has all of them."""
    total = None
    for k in range(own.shape[2]):
        one = graph.add("Gather", asked, graph.constant([k], np.int64), axis=2)
        apart = graph.add("Abs", graph.add("Sub", one, known(own[:, np.newaxis, :, k])))
        total = apart if total is None else graph.add("Add", total, apart)
    assert total is not None
    return total


def _squared(graph: Graph, asked: str, own: np.ndarray, known: Callable[[np.ndarray], str]) -> str:
    """Squared distances by products, which float64 can."""
    products = graph.add("MatMul", asked, known(-2 * own.transpose(0, 2, 1)))
    squares = graph.add(
        "Add", graph.total(graph.add("Mul", asked, asked), 2), known((own**2).sum(axis=2)[:, np.newaxis])
    )
    return graph.add("Max", graph.add("Add", products, squares), 0.0)


def _decline(graph: Graph, kernel: object, distances: str) -> str:
    """Values of a kernel at distances, or at squared distances."""
    if not isinstance(kernel, Matern):
        return graph.add("Exp", graph.add("Neg", distances))
    z = graph.add("Sqrt", graph.add("Mul", distances, 4 * kernel.nu))
    if kernel.nu == 0.5:
        return graph.add("Exp", graph.add("Neg", z))
    polynomial = graph.add("Add", z, 1.0)
    if kernel.nu == 2.5:
        polynomial = graph.add("Add", polynomial, graph.add("Div", graph.add("Mul", z, z), 3.0))
    return graph.add("Mul", polynomial, graph.add("Exp", graph.add("Neg", z)))
