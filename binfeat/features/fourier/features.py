"""The map from rows to random Fourier features, for given frequencies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from binfeat._common.array_types import DTypeLike
from binfeat._common.memory import require_memory
from binfeat._common.subsets import slices
from binfeat._common.validation import CheckedRows
from binfeat._engine.projections import project_fastfood, project_sparse
from binfeat._engine.trig import WRITERS
from binfeat._threads import share_blocks, thread_count
from binfeat.features.fourier.fastfood import Fastfood

_SCRATCH_BYTES = 2**20  # the projection of a block of rows fits in the second-level cache
_FEWEST_ROWS = 256  # minimum of rows in a block, because the matrix passes through the cache once per block
_SPARSE = 0.25  # density below which the kernel for CSR is faster than a matrix product of dense rows
OVERFLOW = "{} overflow {}. Scale X, decrease gamma, or pass float64 instead of float32."


@dataclass(frozen=True, eq=False)
class FourierMap:
    """Cosines and sines, or cosines with offsets, of the projections of rows on frequencies."""

    frequencies: np.ndarray | Fastfood  # (n_inputs, n_frequencies)
    offset: np.ndarray | None = None  # (n_frequencies,); None for pairs of cosine and sine
    n_jobs: int | None = None

    @property
    def n_frequencies(self) -> int:
        if isinstance(self.frequencies, Fastfood):
            return self.frequencies.norms.size
        return self.frequencies.shape[1]

    @property
    def n_components(self) -> int:
        return self.n_frequencies * (2 if self.offset is None else 1)

    def __call__(self, X: CheckedRows) -> np.ndarray:
        """Return features (n_rows, n_components) of an ndarray or CSR (n_rows, n_inputs), with its dtype.

        ValueError if projections overflow; MemoryError if the features do not fit in memory.
        """
        fast = isinstance(self.frequencies, Fastfood)
        n_rows, itemsize = X.shape[0], X.dtype.itemsize
        most = max(1 if fast else _FEWEST_ROWS, _SCRATCH_BYTES // (self.n_frequencies * itemsize))
        step = max(1, -(-n_rows // max(1, -(-n_rows // most))))
        require_memory(
            (n_rows * self.n_components + thread_count(self.n_jobs) * step * self.n_frequencies) * itemsize,
            f"making {self.n_components} features of {n_rows} rows",
            "Use fewer components, or fewer rows at a time.",
        )
        Z = np.empty((n_rows, self.n_components), X.dtype)
        frequencies = self.frequencies
        project = _by_fastfood(X, frequencies) if isinstance(frequencies, Fastfood) else _by_weights(X, frequencies)
        _fill(Z, project, _writer(self.offset, self.n_components, X.dtype), (step, self.n_frequencies), self.n_jobs)
        return Z


def _writer(offset: np.ndarray | None, n_components: int, dtype: np.dtype) -> Callable[[np.ndarray, np.ndarray], int]:
    """Return a function that writes the features of a projection, and returns the number of non-finite arguments."""
    write_pairs, write_shifted = WRITERS[dtype]
    scale = dtype.type(np.sqrt(2.0 / n_components))  # for pairs, too, which have two components per frequency
    if offset is None:
        return lambda projection, out: write_pairs(projection, scale, out)
    shift = _read_only(offset, dtype)
    return lambda projection, out: write_shifted(projection, shift, scale, out)


def _fill(
    Z: np.ndarray,
    project: Callable[[slice, np.ndarray], object],
    write: Callable[[np.ndarray, np.ndarray], int],
    scratch: tuple[int, int],
    n_jobs: int | None,
) -> None:
    """Compute features in blocks; `scratch` is the shape of the projection of a block."""

    def work(blocks: Iterator[slice]) -> None:
        memory = np.empty(scratch, Z.dtype)
        for rows in blocks:
            projection = memory[: rows.stop - rows.start]
            with np.errstate(over="ignore", invalid="ignore"):  # an overflow raises an error below
                project(rows, projection)
            if write(projection, Z[rows]):
                what = "X contains large values, and their products with the frequencies"
                raise ValueError(OVERFLOW.format(what, Z.dtype))

    share_blocks(work, slices(len(Z), scratch[0]), Z.size, n_jobs)


def _read_only(array: np.ndarray, dtype: DTypeLike | None = None) -> np.ndarray:
    """Return a read-only array in C order, so that kernels are compiled for one signature only."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _dense(X: CheckedRows, rows: slice) -> np.ndarray:
    return X[rows].toarray() if sparse.issparse(X) else np.ascontiguousarray(X[rows])


def _by_weights(X: CheckedRows, weights: np.ndarray) -> Callable[[slice, np.ndarray], object]:
    """Return a function ``(rows, out)`` that writes a slice of rows of X times weights (n_inputs, n_frequencies)."""
    weights = _read_only(weights, X.dtype)
    if not sparse.issparse(X) or X.nnz > _SPARSE * X.shape[0] * X.shape[1]:
        return lambda rows, out: np.matmul(_dense(X, rows), weights, out=out)
    values, inputs, starts = (_read_only(array) for array in (X.data, X.indices, X.indptr))
    return lambda rows, out: project_sparse(values, inputs, starts[rows.start : rows.stop + 1], weights, out)


def _by_fastfood(X: CheckedRows, frequencies: Fastfood) -> Callable[[slice, np.ndarray], object]:
    """Return the function of `_by_weights` for `Fastfood` frequencies."""
    signs, order, normals, norms = frequencies.arrays
    arrays = _read_only(signs, X.dtype), _read_only(order), _read_only(normals, X.dtype), _read_only(norms, X.dtype)

    def project(rows: slice, out: np.ndarray) -> None:
        first, second = np.empty((2, order.shape[1]), X.dtype)
        project_fastfood(_read_only(_dense(X, rows)), *arrays, first, second, out)

    return project
