"""Graphs of ONNX, node by node."""

from typing import Any

import numpy as np

_OPSET, _IR = 18, 9  # which runtimes since 2023 read


class Graph:
    """A graph under way; values are known by their names."""

    def __init__(self) -> None:
        import onnx  # late: an extra

        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, array: Any, dtype: Any = np.float64) -> str:
        """A number or an array."""
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def add(self, kind: str, *operands: Any, **attributes: Any) -> str:
        """A node of one result; operands are names, or numbers and arrays in float64."""
        names = [each if isinstance(each, str) else self.constant(each) for each in operands]
        name = f"v{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, names, [name], **attributes))
        return name

    def cast(self, value: str, dtype: Any) -> str:
        """A value in another type."""
        return self.add("Cast", value, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def columns(self, value: str, places: Any) -> str:
        """Some columns of a matrix."""
        return self.add("Gather", value, self.constant(places, np.int64), axis=1)

    def rows(self, table: np.ndarray, numbers: str) -> str:
        """Entries of a constant along its first axis, by their numbers (n_rows,)."""
        dtype = np.float64 if table.dtype.kind == "f" else np.int64
        return self.add("Gather", self.constant(table, dtype), numbers, axis=0)

    def reshaped(self, value: str, *shape: int) -> str:
        """Reshape a value; -1 is the remaining size."""
        return self.add("Reshape", value, self.constant(shape, np.int64))

    def total(self, value: str, axis: int) -> str:
        """The sum along an axis, which is kept."""
        return self.add("ReduceSum", value, self.constant([axis], np.int64), keepdims=1)

    def model(self, n_inputs: int, outputs: dict[str, tuple[str, Any, tuple]], about: dict[str, str]) -> Any:
        """Return the model with the float64 input "X", given value, type, shape and description of each output."""
        helper = self._onnx.helper
        for name, (value, *_) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))

        def info(name: str, dtype: Any, shape: tuple) -> Any:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

        graph = helper.make_graph(
            self._nodes,
            "binfeat",
            [info("X", np.float64, ("n_rows", n_inputs))],
            [info(name, dtype, shape) for name, (_, dtype, shape) in outputs.items()],
            self._constants,
        )
        model = helper.make_model(
            graph, producer_name="binfeat", opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR
        )
        helper.set_model_props(model, about)
        return model
