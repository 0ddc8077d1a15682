"""Concatenated features of several maps, as one operator."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from binfeat._common.memory import require_memory
from binfeat._common.sparse_tables import csr_container
from binfeat._common.subsets import slices
from binfeat._common.validation import canonical, check_row_weights
from binfeat._rows.products import (
    Design,
    Features,
    RowMatrix,
    gram_diagonal,
    is_computed,
    is_dense,
    product,
    transposed_product,
    unseen_shares,
)
from binfeat._rows.streamed import StreamedFeatures

_BLOCK_BYTES = 2**26  # computed features in memory at a time
_MOST_ROWS = 2**17


class StackedFeatures(RowMatrix):
    """Concatenation of scaled blocks of features of the same rows; nothing is copied or densified.

    It is `dense` if all blocks are arrays or computed as arrays, and `computed` if a block is computed or read in every
    pass; then iterate over blocks of rows. Each block that reads a source reads it in every pass. The source provides
    the targets `y` and the `sample_weight`.
    """

    _instead = "output='csr' in all maps, or its tocsr() or toarray()"

    def __init__(self, blocks: Iterable[Design], scales: Iterable[float]) -> None:
        self.blocks, self.scales = list(map(as_block, blocks)), [float(scale) for scale in scales]
        of_source = next((block for block in self.blocks if getattr(block, "y", None) is not None), None)
        self.y, self.sample_weight = getattr(of_source, "y", None), getattr(of_source, "sample_weight", None)
        self._starts = np.cumsum([0, *(block.shape[1] for block in self.blocks)])
        self.dense = all(map(is_dense, self.blocks))
        self.computed = any(map(is_computed, self.blocks))
        dtype = np.result_type(*(block.dtype for block in self.blocks))
        super().__init__(dtype, (self.blocks[0].shape[0], int(self._starts[-1])))

    def _parts(self) -> Iterator[tuple[Features, float, slice]]:
        """Yield every block with its scale and its columns."""
        return zip(self.blocks, self.scales, map(slice, self._starts[:-1], self._starts[1:]), strict=True)

    def take(self, rows: np.ndarray | slice) -> "StackedFeatures":
        """Select rows by number, as blocks."""
        return StackedFeatures([block[rows] for block in self.blocks], self.scales)

    def row_blocks(self) -> Iterator[tuple[slice, Features]]:
        """Yield pairs of a slice of rows and their features; computed features stay in memory until the next pair."""
        streamed = [block for block in self.blocks if isinstance(block, StreamedFeatures)]
        step = min((block.step for block in streamed), default=0)
        passes = [block.in_steps(step).row_blocks() for block in streamed]
        for own in zip(*passes) if streamed else self._slices():
            rows, read = own[0][0], iter(own)
            held = [
                next(read)[1] if isinstance(block, StreamedFeatures) else _held(block[rows]) for block in self.blocks
            ]
            yield rows, StackedFeatures(held, self.scales)

    def _slices(self) -> Iterator[tuple[tuple[slice, Any]]]:
        width = sum(block.shape[1] for block in self.blocks if is_computed(block) and is_dense(block))
        step = int(np.clip(_BLOCK_BYTES // (self.dtype.itemsize * max(1, width)), 1, _MOST_ROWS))
        return (((rows, None),) for rows in slices(self.shape[0], step))

    def toarray(self) -> np.ndarray:
        """Return all features as a dense array.

        Raises
        ------
        MemoryError
            If the array needs more than the available memory.
        """
        require_memory(self.shape[0] * self.shape[1] * self.dtype.itemsize, "the array", "Use the blocks as they are.")
        out = np.empty(self.shape, self.dtype)
        for block, scale, columns in self._parts():
            out[:, columns] = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
            out[:, columns] *= scale
        return out

    def tocsr(self) -> sparse.csr_matrix | sparse.csr_array:
        """Return all features as one CSR matrix; its type follows scikit-learn's `sparse_interface` setting."""
        parts = []
        for block, scale, _ in self._parts():
            block = _held(block)
            parts.append((block.tocsr() if hasattr(block, "tocsr") else sparse.csr_array(block)) * scale)
        return csr_container()(sparse.hstack(parts, format="csr", dtype=self.dtype))

    def gram_diagonal(self, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Diagonal of ``Z.T @ Z``; see `BinMatrix.gram_diagonal`."""
        weights = None if sample_weight is None else check_row_weights(sample_weight, self.shape[0])[:, np.newaxis]
        parts = [gram_diagonal(block, weights).ravel() * scale**2 for block, scale, _ in self._parts()]
        return np.concatenate(parts)

    def _unseen_shares(self) -> np.ndarray:
        shares = (scale**2 * unseen_shares(block) for block, scale, _ in self._parts())
        return sum(shares, start=np.zeros(self.shape[0]))

    def _matmat_into(self, W: np.ndarray, out: np.ndarray) -> None:
        part = np.empty_like(out)
        for i, (block, scale, columns) in enumerate(self._parts()):
            product(block, np.asfortranarray(W[columns] * W.dtype.type(scale)), part if i else out)
            if i:
                out += part

    def _rmatmat_into(self, V: np.ndarray, out: np.ndarray) -> None:
        for block, scale, columns in self._parts():
            part = np.empty((block.shape[1], V.shape[1]), V.dtype, order="F")
            transposed_product(block, V, part)
            np.multiply(part, V.dtype.type(scale), out=out[columns])


def as_block(Z: Design) -> Features:
    """Return an operator unchanged, and anything else as an array or CSR of floats."""
    if isinstance(Z, LinearOperator):
        return Z
    block = canonical(Z.tocsr()) if sparse.issparse(Z) else np.asarray(Z)
    return block if block.dtype.kind == "f" else block.astype(np.float64)  # integers, flags, and nullable types


def _held(block: Features) -> Features:
    return block.toarray() if is_computed(block) and is_dense(block) else block
