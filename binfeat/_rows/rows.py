"""Features, targets and weights of rows: the interface between solvers and data."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, TypeAlias, TypeVar

import numpy as np

from binfeat._common.array_types import DTypeLike
from binfeat._common.arrays import Scratch
from binfeat._common.validation import float_dtype
from binfeat._rows.products import BlockFeatures, Features, is_computed, is_dense
from binfeat._rows.vectors import column_dots

T = TypeVar("T")
Join: TypeAlias = Callable[[Any, Any], Any]  # maps a total and a part to the new total

_COMPUTED_VISIT = 9  # cost of computing features again, relative to a product with them


@dataclass
class Part:
    """A block of rows in memory."""

    Z: Features | Any  # (n_rows, n_columns); None without rows
    Y: np.ndarray  # (n_rows, n_targets), float64
    weights: np.ndarray | None  # (n_rows, 1) or (n_rows, n_targets), float64; None for ones
    n_jobs: int | None = None  # threads for operations on vectors
    scratch: Scratch | None = field(default=None, repr=False)  # None: allocate arrays for each product

    def take(self, rows: np.ndarray) -> "Part":
        return Part(self.Z[rows], self.Y[rows], None if self.weights is None else self.weights[rows], self.n_jobs)

    def of_targets(self, targets: slice) -> "Part":
        weights = self.weights if self.weights is None or self.weights.shape[1] == 1 else self.weights[:, targets]
        return Part(self.Z, self.Y[:, targets], weights, self.n_jobs)

    def space(self, name: str, shape: tuple[int, int], dtype: DTypeLike) -> np.ndarray:
        """Return an output array in Fortran order; it may be the array returned before for the same name."""
        return np.empty(shape, dtype, order="F") if self.scratch is None else self.scratch.array(name, shape, dtype)

    @property
    def known_weights(self) -> np.ndarray:
        """Return the weights in Fortran order, with a column of ones for None."""
        return np.ones((self.Z.shape[0], 1)) if self.weights is None else self._ordered_weights

    @property
    def typed_weights(self) -> np.ndarray:
        """Return the known weights with the dtype of the products."""
        return self.known_weights.astype(float_dtype(self.Z.dtype), copy=False)

    @cached_property
    def _ordered_weights(self) -> np.ndarray:
        return np.asfortranarray(self.weights)

    @cached_property
    def total_weight(self) -> np.ndarray:
        """Return the sum of the known weights, at least the smallest positive number."""
        return np.maximum(self.known_weights.sum(axis=0), np.finfo(float).tiny)


def add_arrays(total: list[np.ndarray], part: list[np.ndarray]) -> list[np.ndarray]:
    """Add a list of arrays to the total, in place."""
    for mine, other in zip(total, part, strict=True):
        mine += other
    return total


class Rows(ABC):
    """Rows of a ridge model."""

    shape: tuple[int, int]  # rows and columns
    n_targets: int
    dtype: np.dtype  # of computations, float32 or float64
    dense: bool  # True for arrays, and for features that are computed as arrays
    visit_cost: float = 0.0  # cost of reading all features, relative to a product
    whole: bool = False  # True if all rows are one part

    @property
    @abstractmethod
    def design(self) -> Features:
        """Return the features for predictions: ``design @ W``."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> "Rows":
        """Select rows by increasing numbers."""

    @abstractmethod
    def of_targets(self, targets: slice) -> "Rows":
        """Return the same rows with some of the targets."""

    @abstractmethod
    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the total weight, of shape (1,) or (n_targets,), and the weighted sum of each target."""

    @abstractmethod
    def sum(self, function: Callable[..., T], *arguments: Any, join: Join = add_arrays, in_blocks: bool = False) -> T:
        """Sum ``function(part, *arguments)`` over the parts, in an order that depends only on their number.

        The function returns a list of arrays, or a summand for ``join(total, part)``, which may write to the total. It
        is called once for all rows in memory if it iterates over blocks itself (`in_blocks`). If the rows are one part,
        the arrays may be scratch, which the next sum overwrites.
        """


class ProcessRows(Rows):
    """Rows of this process: one `Part` in memory, or blocks that are computed or read again."""

    def __init__(
        self, Z: Features | Any, Y: np.ndarray, weights: np.ndarray | None = None, *, scratch: Scratch | None = None
    ) -> None:
        self.Z, self.Y, self.weights = Z, Y, weights
        self.shape, self.n_targets, self.dtype = Z.shape, Y.shape[1], float_dtype(Z.dtype)
        self.dense, self.whole = is_dense(Z), not is_computed(Z)
        self.visit_cost = 0.0 if self.whole else _COMPUTED_VISIT
        self._scratch = Scratch() if scratch is None else scratch
        self._part = Part(Z, Y, weights, scratch=self._scratch)

    @property
    def design(self) -> Features:
        return self.Z

    def weighted(self, weights: np.ndarray) -> "ProcessRows":
        """Return the same rows with other weights."""
        return ProcessRows(self.Z, self.Y, weights, scratch=self._scratch)

    def take(self, rows: np.ndarray) -> "ProcessRows":
        part = self._part.take(rows)
        return ProcessRows(part.Z, part.Y, part.weights)

    def of_targets(self, targets: slice) -> "ProcessRows":
        part = self._part.of_targets(targets)
        return ProcessRows(part.Z, part.Y, part.weights, scratch=self._scratch)

    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        weights = self._part.known_weights
        return weights.sum(axis=0), column_dots(self.Y, weights)

    def _blocks(self, features: BlockFeatures) -> Iterator[Part]:
        for rows, Z in features.row_blocks():
            weights = None if self.weights is None else self.weights[rows]
            yield Part(Z, self.Y[rows], weights, scratch=self._scratch)

    def sum(self, function: Callable[..., T], *arguments: Any, join: Join = add_arrays, in_blocks: bool = False) -> T:
        if not is_computed(self.Z) or in_blocks:
            return function(self._part, *arguments)
        results = (function(part, *arguments) for part in self._blocks(self.Z))
        first = next(results)
        total: Any = [array.copy(order="K") for array in first] if isinstance(first, list) else first
        return reduce(join, results, total)
