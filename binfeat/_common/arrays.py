"""Quotients of arrays, and space for arrays that are made again and again."""

import numpy as np

from binfeat._common.array_types import DTypeLike


def quotients(a: np.ndarray | float, b: np.ndarray) -> np.ndarray:
    """``a / b``, and 0 where b is not above 0."""
    out = np.zeros(np.broadcast_shapes(np.shape(a), b.shape), np.result_type(a, b))
    return np.divide(a, b, out=out, where=b > 0)


class Scratch:
    """Arrays in Fortran order that are made once and used again and again."""

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
        """Space of this shape; what it held under the same name is lost."""
        kept = self._kept.get(name)
        if kept is None or kept.dtype != dtype or kept.shape[0] != shape[0] or kept.shape[1] < shape[1]:
            kept = self._kept[name] = np.empty(shape, dtype, order="F")
        return kept[:, : shape[1]]
