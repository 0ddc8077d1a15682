"""Exact and local models as ONNX graphs in float64."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from binfeat._common.array_types import ArrayLike, DTypeLike
from binfeat._common.calibration import SOFTNESS, Calibration
from binfeat._common.labels import LabelColumns, Labels
from binfeat.kernels.families import Laplacian, Matern
from binfeat.length_scales.matrices import Linear
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.expansion import placed, placement_of
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.kernel_algebra.level_effects import NO_COLUMN, LevelColumns
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.targets import Targets

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

Outputs = dict[str, tuple[str, DTypeLike, tuple]]  # value, type and shape of each output by name


class Graph:
    def __init__(self) -> None:
        import onnx  # late: an extra

        self._onnx = onnx
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, array: ArrayLike, dtype: DTypeLike = np.float64) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def add(self, kind: str, *operands: ArrayLike, **attributes: Any) -> str:
        """Add a node with one result; operands are names, or numbers and arrays in float64.

        The node has a name, because ONNX Runtime before 1.22 gives equal names to nodes derived from nodes without one.
        """
        names = [each if isinstance(each, str) else self.constant(each) for each in operands]
        name = f"v{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, names, [name], name, **attributes))
        return name

    def cast(self, value: str, dtype: DTypeLike) -> str:
        return self.add("Cast", value, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def columns(self, value: str, places: ArrayLike) -> str:
        return self.add("Gather", value, self.constant(places, np.int64), axis=1)

    def rows(self, table: np.ndarray, numbers: str) -> str:
        """Select entries of a constant along its first axis, by their numbers (n_rows,)."""
        dtype = np.float64 if table.dtype.kind == "f" else np.int64
        return self.add("Gather", self.constant(table, dtype), numbers, axis=0)

    def reshaped(self, value: str, *shape: int) -> str:
        return self.add("Reshape", value, self.constant(shape, np.int64))

    def total(self, value: str, axis: int) -> str:
        return self.add("ReduceSum", value, self.constant([axis], np.int64), keepdims=1)

    def model(self, n_inputs: int, outputs: Outputs, about: dict[str, str]) -> "ModelProto":
        """Return the model with the float64 input "X".

        `outputs` contains the value, type and shape of each output, `about` the metadata.
        """
        helper = self._onnx.helper
        for name, (value, *_) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))

        def info(name: str, dtype: DTypeLike, shape: tuple) -> "ValueInfoProto":
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

        graph = helper.make_graph(
            self._nodes,
            "binfeat",
            [info("X", np.float64, ("n_rows", n_inputs))],
            [info(name, dtype, shape) for name, (_, dtype, shape) in outputs.items()],
            self._constants,
        )
        model = helper.make_model(
            graph, producer_name="binfeat", opset_imports=[helper.make_opsetid("", 18)], ir_version=9
        )
        helper.set_model_props(model, about)
        return model


def function_of_kernels(graph: Graph, function: ExactFunction | LocalFunction, rows: str) -> str:
    """Return values (n_rows, n_targets) of an exact or local model, without the common intercept."""
    n_targets = len(function.coef)
    units = graph.add("Div", graph.add("Sub", rows, function.center), function.unit)
    rounded = graph.cast(graph.cast(units, np.float32), np.float64)
    if not isinstance(function, LocalFunction):
        support, coef = (table.T[np.newaxis] for table in function.expansion)
        values = _expansion(graph, function, rounded, support, coef, None)
        return graph.reshaped(values, -1, n_targets)
    support, coef = _by_cell(function)
    total = None
    for cells in _cells(graph, function.trees, rows):
        values = _expansion(graph, function, rounded, support, coef, cells)
        whole = graph.add("Add", graph.reshaped(values, -1, n_targets), graph.rows(function.cell_intercepts, cells))
        total = whole if total is None else graph.add("Add", total, whole)
    assert total is not None
    mean = graph.add("Div", total, float(function.n_trees))
    return mean if function.levels is None else _with_levels(graph, function.levels, function.effects, rows, mean)


def _with_levels(graph: Graph, levels: LevelColumns, effects: np.ndarray, rows: str, total: str) -> str:
    """Add effects of levels; unknown codes have no effect."""
    for j, start, stop in zip(levels.level_inputs, levels.level_starts, levels.level_starts[1:]):
        known = effects[np.append(levels.level_columns[start:stop], NO_COLUMN)]
        code = graph.add("Min", graph.reshaped(graph.columns(rows, [j]), -1), float(stop - start))
        total = graph.add("Add", total, graph.rows(known, graph.cast(code, np.int64)))
    return total


def _by_cell(function: LocalFunction) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n_cells, n_most, n_inputs) and coefficients (n_cells, n_most, n_targets), padded with zeros."""
    sizes = np.diff(function.starts)
    shape = sizes.size, sizes.max()
    support, coef = np.zeros((*shape, len(function.support))), np.zeros((*shape, len(function.coef)))
    for cell, (start, size) in enumerate(zip(function.starts, sizes)):
        place = slice(start, start + size)
        support[cell, :size], coef[cell, :size] = function.support[:, function.rows[place]].T, function.coef[:, place].T
    return support, coef


def _cells(graph: Graph, trees: CellTrees, rows: str) -> list[str]:
    """Return the cell of each row, (n_rows,) int64, in each tree, with one step per level of the trees."""
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


def _depth(children: np.ndarray, root: int) -> int:
    nodes, depth = np.array([root]), 0
    while (nodes := nodes[nodes >= 0]).size:
        nodes, depth = children[nodes].ravel(), depth + 1
    return depth


def _expansion(
    graph: Graph, function: KernelFunction, rows: str, support: np.ndarray, coef: np.ndarray, cells: str | None
) -> str:
    """Return sums (1, n_rows, n_targets), or (n_rows, 1, n_targets) if each row has the support of its cell."""
    of_kernels, axis = function.kernel(1), 0 if cells is None else 1

    def known(table: np.ndarray) -> str:
        return graph.constant(table) if cells is None else graph.rows(table, cells)

    total = None
    for matrix, share, gamma in zip(of_kernels.matrices, of_kernels.shares, of_kernels.gammas, strict=True):
        placement, kernel = placement_of(matrix, gamma, function.categorical), matrix.kernel
        if not placement[0].size:  # only categories matter
            placement = np.zeros(1, np.int64), np.zeros(1), None
        own = np.stack([placed(cell, placement) for cell in support.astype(np.float64)])
        inputs, scales, linear_map = placement
        new = graph.add("Mul", graph.columns(rows, inputs), scales)
        new = new if linear_map is None else graph.add("MatMul", new, linear_map)
        asked = graph.add("Unsqueeze", new, graph.constant([axis], np.int64))
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


def _absolute(graph: Graph, asked: str, own: np.ndarray, known: Callable[[np.ndarray], str]) -> str:
    """Return sums of absolute differences, coordinate by coordinate, to save memory."""
    total = None
    for k in range(own.shape[2]):
        one = graph.add("Gather", asked, graph.constant([k], np.int64), axis=2)
        apart = graph.add("Abs", graph.add("Sub", one, known(own[:, np.newaxis, :, k])))
        total = apart if total is None else graph.add("Add", total, apart)
    assert total is not None
    return total


def _squared(graph: Graph, asked: str, own: np.ndarray, known: Callable[[np.ndarray], str]) -> str:
    """Return squared distances by products, which are accurate enough in float64."""
    products = graph.add("MatMul", asked, known(-2 * own.transpose(0, 2, 1)))
    squares = graph.add(
        "Add", graph.total(graph.add("Mul", asked, asked), 2), known((own**2).sum(axis=2)[:, np.newaxis])
    )
    return graph.add("Max", graph.add("Add", products, squares), 0.0)


def _decline(graph: Graph, kernel: object, distances: str) -> str:
    """Return values of a kernel at distances, or at squared distances."""
    if not isinstance(kernel, Matern):
        return graph.add("Exp", graph.add("Neg", distances))
    z = graph.add("Sqrt", graph.add("Mul", distances, 4 * kernel.nu))
    if kernel.nu == 0.5:
        return graph.add("Exp", graph.add("Neg", z))
    polynomial = graph.add("Add", z, 1.0)
    if kernel.nu == 2.5:
        polynomial = graph.add("Add", polynomial, graph.add("Div", graph.add("Mul", z, z), 3.0))
    return graph.add("Mul", polynomial, graph.add("Exp", graph.add("Neg", z)))


def model_of(fitted: Fitted) -> "ModelProto":
    """Return an ONNX model; ValueError for unsupported models."""
    if not isinstance(fitted.function, KernelFunction):
        raise ValueError(
            f"to_onnx supports exact and local models; this model has features_={fitted.features!r}. Fit a model with "
            "features='exact' or 'local'."
        )
    if fitted.scaler:
        raise ValueError("to_onnx does not support models of version 0.2.0 with scaled columns. Fit the model again.")
    if isinstance(fitted.targets, LabelColumns):
        raise ValueError("to_onnx supports one column of labels. Fit one model per column.")
    graph = Graph()
    rows = _encoded(graph, fitted.encoder)
    scores = graph.add("Add", function_of_kernels(graph, fitted.function, rows), fitted.intercept)
    if isinstance(fitted.targets, Labels):
        outputs, words = _classes(graph, fitted.targets, scores)
    else:
        outputs, words = _numbers(graph, fitted.targets, scores), {}
    return graph.model(fitted.encoder.inputs.n_inputs, outputs, words)


def _encoded(graph: Graph, encoder: TableEncoder) -> str:
    """Encode rows of the input X, with NaN for missing values."""
    categories = encoder.inputs.categories
    if (encoder.inputs.times != "").any() or any(strings.size for _, strings, _ in categories):
        raise ValueError(
            "to_onnx supports numeric columns only. Convert dates to numbers, and categories to codes, before fit."
        )
    n_inputs = encoder.inputs.n_inputs
    missing = graph.add("IsNaN", "X")
    full, flags = graph.add("Where", missing, encoder.inputs.medians, "X"), graph.cast(missing, np.float64)
    low, high = encoder.inputs.bounds
    full = graph.add("Max", graph.add("Min", full, high), low)
    columns = [graph.columns(full, [j]) for j in range(n_inputs)]
    marks = [graph.columns(flags, [j]) for j in range(n_inputs)]
    codes = [_codes(graph, columns[j], marks[j], categories[j][0], True) for j in encoder.coded]
    for j in np.flatnonzero(encoder.categorical[:n_inputs]):
        numbers, _, has_missing = categories[j]
        columns[j] = _codes(graph, columns[j], marks[j], numbers, has_missing)
    known, ranks = encoder.ranks, list[str]()
    for j, first, last in zip(known.columns, known.starts, known.starts[1:]):
        ranks.append(_interpolated(graph, columns[j], known.knots[first:last], known.ranks[first:last]))
    return graph.add("Concat", *columns, *(marks[j] for j in encoder.gaps), *ranks, *codes, axis=1)


def _codes(graph: Graph, column: str, flags: str, numbers: np.ndarray, has_missing: bool) -> str:
    """Return codes of numeric categories: the position among the categories of `fit`, then a code for all others."""
    other = float(numbers.size + has_missing)
    if not numbers.size:  # an id, or missing in all rows of `fit`
        return graph.add("Add", graph.add("Mul", flags, -float(has_missing)), other)
    found = graph.cast(graph.add("Equal", column, numbers), np.float64)
    code = graph.add("Add", graph.add("MatMul", found, (np.arange(numbers.size) - other)[:, np.newaxis]), other)
    return graph.add("Where", graph.cast(flags, np.bool_), float(numbers.size), code)


def _interpolated(graph: Graph, x: str, knots: np.ndarray, values: np.ndarray) -> str:
    """Interpolate linearly between knots: the part of each piece below a column (n_rows, 1), times its slope."""
    widths = np.diff(knots)
    passed = graph.add("Min", graph.add("Max", graph.add("Sub", x, knots[:-1]), 0.0), widths)
    return graph.add("Add", graph.add("MatMul", passed, (np.diff(values) / widths)[:, np.newaxis]), values[0])


def _numbers(graph: Graph, targets: Targets, scores: str) -> Outputs:
    transform, n_targets = targets.transform, targets.mean.size
    if transform.name == "given":
        raise ValueError(
            "to_onnx does not support a custom target_transform. Use target_transform=None or 'auto' in fit."
        )
    if not targets.is_plain:
        low, high = targets.limits
        scores = graph.add("Min", graph.add("Max", scores, low), high)
    apart = graph.add("Add", graph.reshaped(scores, -1, 1, n_targets), targets.shifts)  # (n_rows, n_shifts, n_targets)
    z = graph.add("Add", graph.add("Mul", apart, targets.std), targets.mean)
    if transform.name == "arcsinh":
        ends = graph.add("Exp", z), graph.add("Exp", graph.add("Neg", z))
        z = graph.add("Add", graph.add("Mul", graph.add("Sub", *ends), transform.unit / 2), transform.center)
    elif not targets.is_plain:
        z = graph.add("Exp", z)
    mean = graph.add("Div", graph.total(z, 1), float(len(targets.shifts)))
    shape = (-1,) if targets.flat else (-1, n_targets)
    return {"predictions": (graph.reshaped(mean, *shape), np.float64, ("n_rows", *shape[1:]))}


def _classes(graph: Graph, labels: Labels, scores: str) -> tuple[Outputs, dict[str, str]]:
    """Return the number of the most probable class, all probabilities, and a description of the classes."""
    if labels.is_multilabel:
        raise ValueError("to_onnx supports one label per row, not an indicator matrix. Fit one model per label.")
    if labels.classes.size == 2:
        scores = graph.add("MatMul", scores, np.array([[-1.0, 1.0]]))
    calibration = cast(Calibration, labels.calibration)
    features = graph.add("Concat", scores, _positive(graph, scores), axis=1)
    odds = graph.add("Add", graph.add("MatMul", features, np.hstack(list(calibration.coef)).T), calibration.intercept)
    number = graph.add("ArgMax", odds, axis=1, keepdims=0)
    outputs: Outputs = {
        "class_number": (number, np.int64, ("n_rows",)),
        "probabilities": (graph.add("Softmax", odds, axis=1), np.float64, ("n_rows", labels.classes.size)),
    }
    return outputs, {"classes": json.dumps(labels.classes.tolist())}


def _positive(graph: Graph, scores: str) -> str:
    """Return logarithms of shares, smoothly bounded away from 0, for `Calibration`."""
    shares = graph.add("Div", graph.add("Add", scores, 1.0), 2 * SOFTNESS)
    far = -15.0  # below, the logarithm of softplus equals its argument to seven digits
    near = graph.add("Max", shares, far)
    below = graph.add("Exp", graph.add("Neg", graph.add("Abs", near)))
    softplus = graph.add("Add", graph.add("Max", near, 0.0), graph.add("Log", graph.add("Add", below, 1.0)))
    return graph.add("Where", graph.add("Greater", shares, far), graph.add("Log", softplus), shares)
