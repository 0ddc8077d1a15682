"""Exact and local models as graphs of ONNX: matrix products and elementwise functions, in float64."""

import json
from typing import Any

import numpy as np

from binfeat._common.calibration import SOFTNESS
from binfeat._common.labels import LabelColumns, Labels
from binfeat.models.exported.graph import Graph, function_of_kernels
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.scalers import Arcsinh, InputScaler, NoScaler, Quantiles
from binfeat.models.target.targets import Targets
from binfeat.models.target.transforms import ArcsinhTarget, CallersTransform

_FAR = -15.0  # below it the logarithm of softplus is its argument, to seven digits

Outputs = dict[str, tuple[str, Any, tuple]]


def model_of(fitted: Fitted) -> Any:
    """Return an ONNX model; ValueError for unsupported models."""
    if not isinstance(fitted.function, KernelFunction):
        raise ValueError(
            f"to_onnx supports exact and local models; this model has features_={fitted.features!r}. Fit a model with "
            "features='exact' or 'local'."
        )
    if isinstance(fitted.targets, LabelColumns):
        raise ValueError("to_onnx supports one column of labels. Fit one model per column.")
    graph = Graph()
    rows = _scaled(graph, fitted.scaler, _encoded(graph, fitted.encoder), fitted.encoder.source.size)
    scores = graph.add("Add", function_of_kernels(graph, fitted.function, rows), fitted.intercept)
    if isinstance(fitted.targets, Labels):
        outputs, words = _classes(graph, fitted.targets, scores)
    else:
        outputs, words = _numbers(graph, fitted.targets, scores), {}
    return graph.model(fitted.encoder.inputs.n_inputs, outputs, words)


def _encoded(graph: Graph, encoder: TableEncoder) -> str:
    """Encoded rows of the input X, in which NaN is a missing value."""
    if (encoder.inputs.times != "").any() or encoder.inputs.levels.strings.size:
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
    codes = [_codes(graph, columns[j], marks[j], encoder.inputs.levels.of(j)[0], True) for j in encoder.codes.source]
    for j in np.flatnonzero(encoder.categorical[:n_inputs]):
        numbers, _, has_missing = encoder.inputs.levels.of(int(j))
        columns[j] = _codes(graph, columns[j], marks[j], numbers, has_missing)
    flagged, ranked = encoder.gaps.source, encoder.ranks.source
    ranks = [_interpolated(graph, columns[j], *knots) for j, knots in zip(ranked, encoder.ranks.maps)]
    return graph.add("Concat", *columns, *(marks[j] for j in flagged), *ranks, *codes, axis=1)


def _codes(graph: Graph, column: str, flags: str, numbers: np.ndarray, has_missing: bool) -> str:
    """Return codes of numeric categories: the position among the categories of `fit`, then a code for all others."""
    other = float(numbers.size + has_missing)
    if not numbers.size:  # an id
        return graph.add("Add", graph.add("Mul", flags, 0.0), other)
    found = graph.cast(graph.add("Equal", column, numbers), np.float64)
    code = graph.add("Add", graph.add("MatMul", found, (np.arange(numbers.size) - other)[:, np.newaxis]), other)
    return graph.add("Where", graph.cast(flags, np.bool_), float(numbers.size), code)


def _scaled(graph: Graph, scaler: InputScaler, rows: str, n_columns: int) -> str:
    """Rows as the kernels see them."""
    if isinstance(scaler, NoScaler):
        return rows
    columns = [graph.columns(rows, [j]) for j in range(n_columns)]
    if isinstance(scaler, Arcsinh):
        for j, center, unit in zip(scaler.columns, scaler.centers, scaler.units):
            columns[j] = _arcsinh(graph, graph.add("Div", graph.add("Sub", columns[j], center), unit))
    else:
        assert isinstance(scaler, Quantiles)
        for j, *ends in zip(scaler.columns, scaler.starts, scaler.starts[1:]):
            columns[j] = _interpolated(graph, columns[j], scaler.knots[slice(*ends)], scaler.ranks[slice(*ends)])
    return graph.add("Concat", *columns, axis=1)


def _arcsinh(graph: Graph, x: str) -> str:
    size = graph.add("Abs", x)
    root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", x, x), 1.0))
    return graph.add("Mul", graph.add("Sign", x), graph.add("Log", graph.add("Add", size, root)))


def _interpolated(graph: Graph, x: str, knots: np.ndarray, values: np.ndarray) -> str:
    """Linear between knots: what a column (n_rows, 1) has passed of each piece, times its slope."""
    widths = np.diff(knots)
    passed = graph.add("Min", graph.add("Max", graph.add("Sub", x, knots[:-1]), 0.0), widths)
    return graph.add("Add", graph.add("MatMul", passed, (np.diff(values) / widths)[:, np.newaxis]), values[0])


def _numbers(graph: Graph, targets: Targets, scores: str) -> Outputs:
    """Predictions of numbers."""
    transform, n_targets = targets.transform, targets.mean.size
    if isinstance(transform, CallersTransform):
        raise ValueError(
            "to_onnx does not support a custom target_transform. Use target_transform=None or 'auto' in fit."
        )
    if not targets.is_plain:
        low, high = targets.limits
        scores = graph.add("Min", graph.add("Max", scores, low), high)
    apart = graph.add("Add", graph.reshaped(scores, -1, 1, n_targets), targets.shifts)  # (n_rows, n_shifts, n_targets)
    z = graph.add("Add", graph.add("Mul", apart, targets.std), targets.mean)
    if isinstance(transform, ArcsinhTarget):
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
    calibration: Any = labels.calibration
    features = graph.add("Concat", scores, _positive(graph, scores), axis=1)
    odds = graph.add("Add", graph.add("MatMul", features, np.hstack(list(calibration.coef)).T), calibration.intercept)
    number = graph.add("ArgMax", odds, axis=1, keepdims=0)
    outputs = {
        "class_number": (number, np.int64, ("n_rows",)),
        "probabilities": (graph.add("Softmax", odds, axis=1), np.float64, ("n_rows", labels.classes.size)),
    }
    return outputs, {"classes": json.dumps(labels.classes.tolist())}


def _positive(graph: Graph, scores: str) -> str:
    """Logarithms of shares, smoothly kept above 0, as `Calibration` takes them."""
    shares = graph.add("Div", graph.add("Add", scores, 1.0), 2 * SOFTNESS)
    near = graph.add("Max", shares, _FAR)
    below = graph.add("Exp", graph.add("Neg", graph.add("Abs", near)))
    softplus = graph.add("Add", graph.add("Max", near, 0.0), graph.add("Log", graph.add("Add", below, 1.0)))
    return graph.add("Where", graph.add("Greater", shares, _FAR), graph.add("Log", softplus), shares)
