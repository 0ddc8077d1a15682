"""The random grids: how they are drawn, and the hashes of rows in them."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from binfeat._common.random_words import KEYS, PITCH, SHIFT, round_significant, stream, uniforms, words_at
from binfeat._common.subsets import slices
from binfeat._engine.hashing import BLOCK, FLAGS, STRIDE, hash_dense, hash_sparse
from binfeat._threads import thread_count

_SIGNIFICANT = 32  # bits of a scale that are kept, so that a last-digit difference between computers is lost
_LARGEST = 2.0**1000  # scales stay finite, so that a value of 0 stays in cell 0

_MOST_ROWS = 2**19  # rows hashed before their bins are looked up: as many as possible, for the tables' sake
_HASH_BYTES = 2**26  # memory for those hashes, used again and again
_LOAD_BYTES = 2**24  # rows converted to float64 at a time


@dataclass(frozen=True)
class Grids:
    """Scale, shift and hash keys of every grid and input; arrays of shape (n_grids, n_inputs).

    The cell of value x is ``ceil(x * scale - shift)``.
    """

    scale: np.ndarray
    shift: np.ndarray
    keys: np.ndarray
    nan_keys: np.ndarray

    @classmethod
    def draw(cls, kernel, gamma, n_grids, seed, categorical=None, inputs=None):
        """Draw grids from a kernel's pitch law, for a gamma (n_inputs,); grid p depends on `seed` and p alone.

        A grid ignores input j of the mask `categorical` with probability ``exp(-gamma_j)``. Rising numbers of `inputs`
        draw the grids of these inputs only, which are the same as among all inputs.
        """
        pitch, shift, keys = (_words(seed, n_grids, purpose, n, gamma.size, inputs) for purpose, n in _STREAMS)
        if inputs is not None:
            gamma, categorical = gamma[inputs], None if categorical is None else categorical[inputs]
        d = gamma.size
        u = uniforms(pitch)
        with np.errstate(over="ignore"):
            scale = np.minimum(gamma / kernel.pitch_quantile(u), _LARGEST)
        scale = round_significant(scale, _SIGNIFICANT)
        shift = (shift >> np.uint64(32)).astype(np.float64) * 2.0**-32
        if categorical is not None and categorical.any():
            scale[:, categorical] = u[:, categorical] >= np.exp(-gamma[categorical])
            shift[:, categorical] = 0.0
        keys, nan_keys = keys[:, :d] | np.uint64(1), keys[:, d:]
        return cls(scale, shift, np.ascontiguousarray(keys), np.ascontiguousarray(nan_keys))

    def __len__(self):
        return self.scale.shape[0]

    def __getitem__(self, part):
        return Grids(self.scale[part], self.shift[part], self.keys[part], self.nan_keys[part])

    @property
    def arrays(self):
        return self.scale, self.shift, self.keys, self.nan_keys

    def hash(self, X, n_jobs=None, out=None):
        """Hashes (n_grids, n_rows), uint64, of the rows of an ndarray or CSR (n_rows, n_inputs)."""
        hashes = np.empty((len(self), X.shape[0]), np.uint64) if out is None else out
        fill = self._hash_sparse if sparse.issparse(X) else self._hash_dense
        fill(X, hashes, n_jobs)
        return hashes

    def _hash_dense(self, X, hashes, n_jobs):
        n_rows, n_inputs = X.shape
        tasks = min(thread_count(n_jobs), -(-n_rows // BLOCK))
        scratch = np.empty((tasks, n_inputs, STRIDE)), np.empty((tasks, n_inputs))
        flags = np.empty((tasks, n_inputs, FLAGS), np.uint32)
        usable = X.dtype == np.float64 and X.flags.c_contiguous and X.dtype.isnative
        step = n_rows if usable else max(BLOCK * tasks, _LOAD_BYTES // (8 * n_inputs))
        for start in range(0, n_rows, step):
            block = np.asarray(X[start : start + step], dtype=np.float64, order="C").view()
            block.flags.writeable = False  # read-only or not, one compiled signature serves
            hash_dense(block, start, *self.arrays, *scratch, flags, hashes, n_jobs=n_jobs)

    def _hash_sparse(self, X, hashes, n_jobs):
        by_input = [np.ascontiguousarray(a.T) for a in self.arrays]
        totals = np.empty((thread_count(n_jobs), len(self)), np.uint64)
        rows = X.data.astype(np.float64), X.indices.astype(np.int64), X.indptr.astype(np.int64)
        hash_sparse(*rows, *by_input, totals, hashes, n_jobs=n_jobs)


_STREAMS = ((PITCH, 1), (SHIFT, 1), (KEYS, 2))  # words an input takes from each stream
_FEW_INPUTS = 64  # drawing all words is faster unless at most one input in so many is wanted


def _words(seed, n_grids, purpose, n_words, n_inputs, inputs):
    """Random words of each grid, (n_grids, n_words * number of inputs): `n_words` for each of all or some inputs."""
    if inputs is None:
        return np.stack([stream(seed, p, purpose).random_raw(n_words * n_inputs) for p in range(n_grids)])
    places = np.concatenate([k * n_inputs + inputs for k in range(n_words)])
    if inputs.size * _FEW_INPUTS <= n_inputs:
        return np.stack([words_at(seed, p, purpose, places) for p in range(n_grids)])
    return np.stack([stream(seed, p, purpose).random_raw(n_words * n_inputs)[places] for p in range(n_grids)])


def n_hash_blocks(n_grids, n_rows):
    """The number of blocks that `hash_blocks` makes of a single block of rows."""
    step, width = _sizes(n_grids, n_rows)
    return -(-n_grids // width) * -(-n_rows // step)


def _sizes(n_grids, n_rows):
    """How many rows, and how many grids, are hashed at a time for a block of `n_rows` rows."""
    step = -(-n_rows // -(-n_rows // _MOST_ROWS))
    width = min(n_grids, max(1, _HASH_BYTES // (8 * step)))
    return step, -(-n_grids // -(-n_grids // width))


def hash_blocks(grids, blocks, n_jobs=None):
    """Hash all rows in all grids: within each block of rows, group by group of grids, as the first block decides.

    Yields slices of the grids, the number of the first row, and hashes (n_grids, n_rows), overwritten by the next.
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
        first_row += X.shape[0]
