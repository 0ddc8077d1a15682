"""Features of the rows of a source, as an operator that reads the source for every product."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from scipy import sparse

from binfeat._common.array_types import DTypeLike
from binfeat._common.memory import require_memory
from binfeat._common.sparse_tables import csr_container
from binfeat._common.subsets import numbered, places_in
from binfeat._common.validation import float_dtype
from binfeat._rows.products import ComputedFeatures, Features
from binfeat._rows.sources import RowBlocks, SourceSummary


class StreamedFeatures(ComputedFeatures):
    """Features of the rows of a source, read and computed again in blocks for every product.

    `compute` converts a block of `rows` to an array, CSR or a BinMatrix; `dense` is True for arrays.
    Targets `y` and `sample_weight` are from the source; `selected` contains the numbers of the selected rows.
    """

    def __init__(
        self,
        rows: RowBlocks,
        compute: Callable[[Any], Features],
        n_columns: int,
        dtype: DTypeLike,
        dense: bool,
        y: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        selected: np.ndarray | None = None,
    ) -> None:
        self._rows, self._compute, self._selected = rows, compute, selected
        self.dense, self.y, self.sample_weight = dense, y, sample_weight
        super().__init__(np.dtype(dtype), (rows.n_rows if selected is None else selected.size, n_columns))

    @classmethod
    def of(cls, summary: SourceSummary, compute: Callable[[Any], Features], n_columns: int, *, dense: bool) -> Self:
        """Return the features of all rows of a summarized source."""
        rows = summary.rows(width=n_columns if dense else 0)
        return cls(rows, compute, n_columns, float_dtype(summary.dtype), dense, summary.y, summary.sample_weight)

    @property
    def step(self) -> int:
        return self._rows.step

    def in_steps(self, step: int) -> "StreamedFeatures":
        """Return the same features, read in blocks of this many rows of the source."""
        rows = self._rows.in_steps(step)
        given = rows, self._compute, self.shape[1], self.dtype, self.dense, self.y, self.sample_weight, self._selected
        return StreamedFeatures(*given)

    def row_blocks(self) -> Iterator[tuple[slice, Any]]:
        """Return pairs of a slice of rows and their features."""
        blocks: Iterable[Any] = self._rows
        if self._selected is not None:
            blocks = (X[places] for X, places in places_in(self._rows, self._selected) if places.size)
        return numbered(map(self._compute, blocks))

    def toarray(self) -> np.ndarray:
        """Return all features as a dense array; MemoryError if it needs more than the available memory."""
        n_bytes = self.shape[0] * self.shape[1] * self.dtype.itemsize
        require_memory(n_bytes, "the array", "Use the features as they are.")
        out = np.empty(self.shape, self.dtype)
        for rows, Z in self.row_blocks():
            out[rows] = Z if self.dense else Z.toarray()
        return out

    def tocsr(self) -> sparse.csr_matrix | sparse.csr_array:
        """Return all features as one CSR matrix; its type follows scikit-learn's `sparse_interface` setting."""
        none = sparse.csr_array((0, self.shape[1]), dtype=self.dtype)
        parts = (sparse.csr_array(Z) if self.dense else Z.tocsr() for _, Z in self.row_blocks())
        return csr_container()(sparse.vstack([none, *parts], format="csr"))

    def take(self, rows: np.ndarray) -> "StreamedFeatures":
        """Select rows by increasing numbers."""
        rows = np.asarray(rows)
        if (np.diff(rows) < 0).any():
            raise ValueError("Rows of a source can be selected in ascending order only; sort the row numbers.")
        selected = rows if self._selected is None else self._selected[rows]
        return StreamedFeatures(self._rows, self._compute, self.shape[1], self.dtype, self.dense, selected=selected)
