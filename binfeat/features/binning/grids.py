"""Random grids, and hashes of rows in them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self, cast

import numpy as np
from scipy import sparse

from binfeat._common.random_words import KEYS, PITCH, SHIFT, round_significant, stream, uniforms, words_at
from binfeat._common.subsets import slices
from binfeat._common.validation import CheckedRows
from binfeat._engine.hashing import BLOCK, BORDER, FLAGS, STRIDE, hash_dense, hash_sparse
from binfeat._threads import thread_count
from binfeat.kernels.base import Kernel, PitchKernel

_SIGNIFICANT = 32  # bits of a scale, so that last digits do not differ between computers
_LARGEST = 2.0**1000  # scales stay finite, so that a value of 0 stays in cell 0

_MOST_ROWS = 2**19  # rows hashed before their bins are looked up; large blocks use hash tables better
_HASH_BYTES = 2**26  # reused memory for these hashes
_LOAD_BYTES = 2**24  # rows converted to float64 at a time


@dataclass(frozen=True)
class Grids:
    """Scale, shift and hash keys of every grid and input; arrays of shape (n_grids, n_inputs).

    The cell of value x is ``ceil(x * scale - shift)``. Where the scale is infinite, each value has its own cell.
    """

    scale: np.ndarray
    shift: np.ndarray
    keys: np.ndarray
    nan_keys: np.ndarray

    @classmethod
    def draw(
        cls,
        kernel: Kernel,
        gamma: np.ndarray,
        n_grids: int,
        seed: int,
        categorical: np.ndarray | None = None,
        inputs: np.ndarray | None = None,
    ) -> Self:
        """Draw grids from a kernel's pitch law for a gamma (n_inputs,); grid p depends only on `seed` and p.

        A grid ignores input j of the mask `categorical` with probability ``exp(-gamma_j)``. If `inputs`
        contains increasing input numbers, only these inputs are drawn. Their values are the same as in a draw of all
        inputs.
        """
        pitch, shift, keys = (_words(seed, n_grids, purpose, n, gamma.size, inputs) for purpose, n in _STREAMS)
        if inputs is not None:
            gamma, categorical = gamma[inputs], None if categorical is None else categorical[inputs]
        d = gamma.size
        u, law = uniforms(pitch), cast(PitchKernel, kernel)
        with np.errstate(over="ignore"):
            scale = finite_scale(gamma / law.pitch_quantile(u))
        shift = (shift >> np.uint64(32)).astype(np.float64) * 2.0**-32
        if categorical is not None and categorical.any():
            scale[:, categorical] = u[:, categorical] >= np.exp(-gamma[categorical])
            shift[:, categorical] = 0.0
        keys, nan_keys = keys[:, :d] | np.uint64(1), keys[:, d:]
        return cls(scale, shift, np.ascontiguousarray(keys), np.ascontiguousarray(nan_keys))

    def __len__(self) -> int:
        return self.scale.shape[0]

    def __getitem__(self, part: slice) -> "Grids":
        return Grids(self.scale[part], self.shift[part], self.keys[part], self.nan_keys[part])

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.scale, self.shift, self.keys, self.nan_keys

    def box(self, p: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds (n_inputs,) of the bin of a row x in grid p, ``lower < x <= upper``.

        They are infinite for ignored inputs and beyond the outermost cells.
        """
        scale, shift = self.scale[p], self.shift[p]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            cells = np.clip(np.ceil(x * scale - shift), -BORDER, BORDER)
            lower, upper = (cells - 1 + shift) / scale, (cells + shift) / scale
        lower = np.where((scale == 0) | (cells == -BORDER), -np.inf, lower)
        return lower, np.where((scale == 0) | (cells == BORDER), np.inf, upper)

    def hash(self, X: CheckedRows, n_jobs: int | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return hashes (n_grids, n_rows), uint64, of the rows of an ndarray or CSR (n_rows, n_inputs)."""
        hashes = np.empty((len(self), X.shape[0]), np.uint64) if out is None else out
        fill = self._hash_sparse if sparse.issparse(X) else self._hash_dense
        fill(X, hashes, n_jobs)
        return hashes

    def _hash_dense(self, X: np.ndarray, hashes: np.ndarray, n_jobs: int | None) -> None:
        n_rows, n_inputs = X.shape
        tasks = min(thread_count(n_jobs), -(-n_rows // BLOCK))
        scratch = np.empty((tasks, n_inputs, STRIDE)), np.empty((tasks, n_inputs))
        flags = np.empty((tasks, n_inputs, FLAGS), np.uint32)
        usable = X.dtype == np.float64 and X.flags.c_contiguous and X.dtype.isnative
        step = n_rows if usable else max(BLOCK * tasks, _LOAD_BYTES // (8 * n_inputs))
        for start in range(0, n_rows, max(step, 1)):
            block = np.asarray(X[start : start + step], dtype=np.float64, order="C").view()
            block.flags.writeable = False  # read-only arrays, so that one compiled signature is enough
            hash_dense(block, start, *self.arrays, *scratch, flags, hashes, n_jobs=n_jobs)

    def _hash_sparse(self, X: sparse.csr_matrix, hashes: np.ndarray, n_jobs: int | None) -> None:
        by_input = [np.ascontiguousarray(a.T) for a in self.arrays]
        totals = np.empty((thread_count(n_jobs), len(self)), np.uint64)
        rows = X.data.astype(np.float64), X.indices.astype(np.int64), X.indptr.astype(np.int64)
        hash_sparse(*rows, *by_input, totals, hashes, n_jobs=n_jobs)


def finite_scale(scale: np.ndarray) -> np.ndarray:
    """Limit scales, and round them to the same numbers on every computer."""
    return round_significant(np.minimum(scale, _LARGEST), _SIGNIFICANT)


_STREAMS = ((PITCH, 1), (SHIFT, 1), (KEYS, 2))  # number of words per input from each stream
_FEW_INPUTS = 64  # drawing all words is faster unless at most one of 64 inputs is needed


def _words(seed: int, n_grids: int, purpose: int, n_words: int, n_inputs: int, inputs: np.ndarray | None) -> np.ndarray:
    """Return random words (n_grids, n_words * number of inputs): `n_words` for each of all or some inputs."""
    if inputs is None:
        return np.stack([stream(seed, p, purpose).random_raw(n_words * n_inputs) for p in range(n_grids)])
    places = np.concatenate([k * n_inputs + inputs for k in range(n_words)])
    if inputs.size * _FEW_INPUTS <= n_inputs:
        return np.stack([words_at(seed, p, purpose, places) for p in range(n_grids)])
    return np.stack([stream(seed, p, purpose).random_raw(n_words * n_inputs)[places] for p in range(n_grids)])


def n_hash_blocks(n_grids: int, n_rows: int) -> int:
    """Return the number of blocks into which `hash_blocks` splits a single block of rows."""
    step, width = _sizes(n_grids, n_rows)
    return -(-n_grids // width) * -(-n_rows // step)


def _sizes(n_grids: int, n_rows: int) -> tuple[int, int]:
    """Return the number of rows and of grids that are hashed at a time for a block of `n_rows` rows."""
    step = -(-n_rows // -(-n_rows // _MOST_ROWS))
    width = min(n_grids, max(1, _HASH_BYTES // (8 * step)))
    return step, -(-n_grids // -(-n_grids // width))


def hash_blocks(
    grids: Grids,
    blocks: Iterable[CheckedRows],
    n_jobs: int | None = None,
    on_block: Callable[[], object] | None = None,
) -> Iterator[tuple[slice, int, np.ndarray]]:
    """Hash all rows in all grids, for one group of grids and one block of rows at a time.

    The first block determines the size of the groups. Yields the slice of the grids, the number of the first row, and
    their hashes (n_grids, n_rows). The next iteration overwrites the hashes. `on_block` is called after each iteration.
    """
    memory, first_row, width = np.empty(0, np.uint64), 0, 0
    for X in blocks:
        step, own_width = _sizes(len(grids), X.shape[0])
        width = width or own_width
        if memory.size < width * step:
            memory = np.empty(width * step, np.uint64)
        for part in slices(len(grids), width):
            for start in range(0, X.shape[0], step):
                shape = part.stop - part.start, min(step, X.shape[0] - start)
                hashes = memory[: shape[0] * shape[1]].reshape(shape)
                yield part, first_row + start, grids[part].hash(X[start : start + step], n_jobs, out=hashes)
                if on_block is not None:
                    on_block()
        first_row += X.shape[0]
