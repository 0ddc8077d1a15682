"""Random binning features of the rows of a Dask collection."""

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter
from typing import Any, Self

import numpy as np
from dask.delayed import Delayed
from dask.sizeof import sizeof
from sklearn.utils.validation import check_is_fitted

from binfeat._common.availability import unavailable_if
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.sparse_tables import csr_container
from binfeat._common.validation import CheckedRows, check_categorical
from binfeat._engine.bin_tables import recode
from binfeat.distributed._chunks import (
    Chunks,
    array_of,
    compute,
    inputs_of,
    is_chunked,
    moments_for_gamma,
    on_worker,
    persist,
    reduce_in_tree,
    require_rows,
    results_of,
)
from binfeat.distributed.relevance import checked_sample
from binfeat.features.binning.base import as_output, lacks_bins, lacks_gamma
from binfeat.features.binning.bin_matrix import BinMatrix, code_dtype_of
from binfeat.features.binning.bins import Bins, rank_bins, unite_bins
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.input_checks import require_grids_memory
from binfeat.features.binning.random_binning import RandomBinning as InMemory
from binfeat.features.binning.tables import codes_among, count_bins

# Dask schedules tasks by these sizes; its default is a few bytes for both types.
sizeof.register(BinMatrix, lambda Z: Z.nbytes)
sizeof.register(Bins, lambda bins: bins.keys.nbytes + bins.counts.nbytes + bins.starts.nbytes)


def number_bins(X: CheckedRows, grids: Grids, n_jobs: int | None = 1) -> tuple[Bins, np.ndarray]:
    """Return the bins of rows, and the number of the bin of each row in each grid."""
    store = CodeStore(X.shape[0], len(grids))
    return count_bins(grids, [X], X.shape[0], codes=store, n_jobs=n_jobs), store.array


def renumber(codes: np.ndarray, bins: Bins, united: Bins, out: np.ndarray, n_jobs: int | None = 1) -> None:
    """Write the numbers of merged bins for rows with the numbers `codes` among `bins`."""
    recode(codes, codes_among(bins, united, n_jobs), bins.starts, out, n_jobs=n_jobs)


class BinBlocks:
    """Random binning features of many rows as codes, a `BinMatrix` for each chunk of rows.

    `RandomBinning` returns it with ``output="codes"``, and from `encode`. Pass it to `CGRidge` or `CGRidgeClassifier`
    of `binfeat.distributed`. Each block stays on the worker that computed it.

    Parameters
    ----------
    blocks : list of Delayed
        Blocks that compute to a `BinMatrix` with the same columns.
    lengths : tuple of int, or None
        Number of rows of every block, if known.
    n_columns : int
    dtype : numpy.dtype

    Attributes
    ----------
    shape : tuple of (int or nan, int)
    dtype : numpy.dtype
        Type of the entries.
    """

    def __init__(self, blocks: Iterable, lengths: tuple[int, ...] | None, n_columns: int, dtype: np.dtype) -> None:
        self._blocks, self._lengths = list(blocks), lengths
        self.shape = (np.nan if lengths is None else sum(lengths), n_columns)
        self.dtype = dtype

    def to_delayed(self) -> list:
        """Return the blocks as a list of Dask's Delayed."""
        return list(self._blocks)

    def _as_chunks(self, name: str) -> Chunks:
        return Chunks(self._blocks, name, None, self._lengths, self.shape[1], self.dtype).checked()

    def persist(self) -> "BinBlocks":
        """Compute all blocks and keep them on the workers.

        Returns
        -------
        Z : BinBlocks
        """
        return BinBlocks(persist(self._as_chunks("Z").blocks), self._lengths, self.shape[1], self.dtype)

    def compute(self) -> BinMatrix:
        """Compute all rows, and return one `BinMatrix` in this process.

        Returns
        -------
        Z : BinMatrix of shape (n_rows, n_columns)
        """
        blocks = compute(self._as_chunks("Z").blocks)
        codes = np.concatenate([block.codes for block in blocks], axis=1)
        return BinMatrix._trusted(codes, blocks[0].offsets, self.dtype, None)

    def tocsr(self) -> Any:
        """Convert to a Dask array of CSR chunks.

        Returns
        -------
        Z : dask.array.Array of shape (n_rows, n_columns)
        """
        blocks = self._as_chunks("Z").each(BinMatrix.tocsr)
        return array_of(blocks, self._lengths, self.shape[1:], csr_container()((0, 0), dtype=self.dtype))


class RandomBinning(InMemory):
    """`binfeat.RandomBinning` for the rows of a Dask array or dataframe.

    For the same rows, grids, bins and columns are the same as with `binfeat.RandomBinning`, for any chunks. A fitted
    map accepts Dask collections and rows in memory. For a Dask collection, `transform` returns a lazy Dask array of CSR
    chunks, or lazy `BinBlocks` with ``output="codes"``. `binfeat.RandomBinning` describes parameters and attributes.

    See Also
    --------
    binfeat.RandomBinning : Parameters, attributes, and the map for rows in memory.

    Notes
    -----
    Each worker counts the bins of its chunks, with one thread per task, and the bins of chunks are merged in a tree.
    ``gamma="scale"`` reads the rows one more time. Hashed columns (an int `n_features`) need no pass over the rows.
    `fit_transform` hashes each row once, and keeps the codes on the workers: 2 or 4 bytes per row and grid.
    `max_bytes` has no effect for Dask collections.

    Examples
    --------
    >>> import dask.array as da
    >>> from binfeat.distributed import RandomBinning
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(300, 2))
    >>> Z = RandomBinning(n_grids=50, output="codes", random_state=0).fit_transform(X)
    >>> Z.shape[0], len(Z.to_delayed())
    (1000, 4)
    """

    __module__ = "binfeat.distributed"  # as saved files name it

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the grids and find the occupied bins, as `binfeat.RandomBinning` does."""
        if not is_chunked(X):
            return super().fit(X, y, sample_weight)
        chunks = self._begin_chunks(X, y, sample_weight)
        if not self._hashed:
            self._unite(chunks.each(_count, on_worker(self, InMemory)))
        return self

    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and transform. The features of a Dask collection stay on the workers."""
        if not is_chunked(X):
            return super().fit_transform(X, y, sample_weight)
        chunks = self._begin_chunks(X, y, sample_weight)
        if self._hashed:
            return as_output(self.encode(X).persist(), self.output)
        numbered = replace(chunks, blocks=persist(chunks.each(_number, on_worker(self, InMemory))), check=None)
        self._unite(numbered.each(itemgetter(0)))
        blocks = numbered.each(_renumber, on_worker(self, InMemory), chunks.dtype)
        return as_output(BinBlocks(blocks, chunks.lengths, self.n_bins_, chunks.dtype).persist(), self.output)

    @unavailable_if(lacks_gamma)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Append bins as in `binfeat.RandomBinning.partial_fit`. A Dask collection raises a TypeError."""
        if is_chunked(X):
            raise TypeError("partial_fit requires rows in memory, got a Dask collection. Pass the collection to fit.")
        return super().partial_fit(X)

    def encode(self, X: Any) -> Any:
        """Map rows to codes; for a Dask collection, lazy `BinBlocks`."""
        if not is_chunked(X):
            return super().encode(X)
        check_is_fitted(self)
        chunks = inputs_of(self, X, reset=False)
        blocks = chunks.each(_encode, on_worker(self, InMemory), chunks.dtype)
        return BinBlocks(blocks, chunks.lengths, int(self.bin_offsets_[-1]), chunks.dtype)

    @unavailable_if(lacks_bins)
    def unseen_shares(self, X: Any) -> Any:
        """Return shares as in `binfeat.RandomBinning.unseen_shares`; for a Dask collection, a lazy Dask array."""
        if not is_chunked(X):
            return super().unseen_shares(X)
        check_is_fitted(self)
        return results_of(inputs_of(self, X, reset=False), on_worker(self, InMemory), "unseen_shares", (), np.float64)

    def _begin_chunks(self, X: Any, y: Any, sample_weight: Any) -> Chunks:
        """Check parameters, draw the grids, and return the chunks of X."""
        self._check_parameters()
        if self.warm_start:
            raise TypeError("warm_start=True requires rows in memory or a source of blocks; set it to False on Dask.")
        chunks = inputs_of(self, X, reset=True)
        self._categorical = check_categorical(self.categorical_features, self)
        require_grids_memory(int(self.n_grids), self.n_features_in_)
        moments = moments_for_gamma(chunks, self, InMemory, sample_weight)
        self._draw(self._chosen_gamma(None, moments, checked_sample, self, X, y, sample_weight))
        return chunks

    def _unite(self, counted: list[Delayed]) -> None:
        united = reduce_in_tree(counted, unite_bins)
        require_rows(united.counts[: united.starts[1]].sum())
        self._keep(rank_bins(united, self.min_count, n_jobs=self.n_jobs))


def _count(X: Any, twin: InMemory) -> Bins:
    if not X.shape[0]:
        return Bins.none(len(twin._grids))
    return count_bins(twin._grids, [twin._check(X)], X.shape[0], n_jobs=1)


def _number(X: Any, twin: InMemory) -> tuple[Bins, np.ndarray]:
    """Return the bins of a chunk, and the number of the bin of each row."""
    if not X.shape[0]:
        n_grids = len(twin._grids)
        return Bins.none(n_grids), CodeStore(0, n_grids).array
    X = twin._check(X)
    twin._require_memory(X, len(twin._scale))
    return number_bins(X, twin._grids)


def _renumber(numbered: tuple[Bins, np.ndarray], twin: InMemory, dtype: np.dtype) -> BinMatrix:
    bins, codes = numbered
    known = Bins(twin._bin_keys, twin.bin_counts_, twin.bin_offsets_)
    out = np.empty(codes.shape, code_dtype_of(twin.bin_offsets_))
    renumber(codes, bins, known, out)
    return BinMatrix._trusted(out, twin.bin_offsets_, dtype, 1)


def _encode(X: Any, twin: InMemory, dtype: np.dtype) -> BinMatrix:
    codes = twin.encode(X).codes if X.shape[0] else np.empty((len(twin._grids), 0), code_dtype_of(twin.bin_offsets_))
    return BinMatrix._trusted(codes, twin.bin_offsets_, dtype, 1)
