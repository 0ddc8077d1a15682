"""Rows of Dask collections as delayed chunks: checks, errors that name the chunk, sums in a tree."""

from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from traceback import clear_frames
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask import delayed
from distributed import client, futures_of
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker, NoValidWorkerError
from sklearn.utils.validation import validate_data

from binfeat._common.frames import unmasked
from binfeat._common.gamma_scale import Moments
from binfeat._common.persistence import Unfinished
from binfeat._common.sparse_tables import check_sparse
from binfeat._common.validation import canonical, check_weights, flat
from binfeat._rows import sources

_FLOAT64 = np.dtype(np.float64)
_FAN = 8  # results that one task of a tree takes in; neighbours seldom share a worker, so that pairs do not help
# Coefficients travel in the graph, so that they are not lost with a worker; Dask warns of graphs above 10 MB.
_OPTIONS = {"distributed.admin.large-graph-warning-threshold": "1 PB"}
_LOST = CancelledError, CommClosedError, getattr(client, "ClosedClientError", CancelledError)  # the last one is new
_GONE = (
    "{} lies on the workers of a distributed.Client that is closed or has lost it{}. Connect a client, make the "
    "collection again from its source, and persist it there."
)
_KILLED = (
    "Workers died while they ran {}, the last of them {}; in most cases memory was too little. Make chunks smaller, "
    "lower max_grids or n_grids in solver_params, or give workers more memory."
)
_NO_WORKER = "No worker was left to run {} for as long as the scheduler waits for one. Start workers, and fit again."


@dataclass
class Chunks:
    """The rows of a collection, a delayed chunk at a time."""

    blocks: list  # of Delayed
    name: str  # for errors
    kind: Any = None  # the _ArrayKind or _FrameKind that every chunk has to look like; None if that is known
    lengths: tuple | None = None  # None where they are not known
    width: int = 1  # columns; 1 where the chunks have one dimension
    dtype: np.dtype = _FLOAT64  # float32 if all of the collection is

    def each(self, function, *arguments, own=(), common=()):
        """Delayed results of ``function(chunk, *own, *arguments, *common)``; errors and Dask's keys name the chunk.

        `own` has sequences of an argument for each chunk; `common` has large arguments, sent out once and together.
        """
        call, name = delayed(_call), getattr(function, "__name__", "part").strip("_")
        common = shared(common) if common else ()
        return [
            call(
                *(function, f"Chunk {i} of {self.name}", self.kind, common, block, *own_arguments, *arguments),
                dask_key_name=f"{name}-chunk{i}-{uuid4().hex}",
            )
            for i, (block, *own_arguments) in enumerate(zip(self.blocks, *own, strict=True))
        ]

    def alive(self):
        """These chunks; RuntimeError if a block lies on a client that is closed."""
        for block in self.blocks:
            require_live(block, self.name)
        return self


@dataclass(frozen=True)
class _ArrayKind:
    """Columns and type of an array's chunks."""

    shape: tuple
    dtype: np.dtype

    def check(self, chunk):
        if chunk.shape[1:] != self.shape:
            raise ValueError(f"it must have the shape (n_rows, {self.shape[0]}), got {chunk.shape}.")
        if chunk.dtype != self.dtype and not chunk.dtype.kind == self.dtype.kind in "SU":
            raise TypeError(f"it must be of type {self.dtype}, as the collection says; got {chunk.dtype}.")


@dataclass(frozen=True)
class _FrameKind:
    """Names and types of a frame's columns; None is any type."""

    columns: dict

    def check(self, chunk):
        dtypes = {chunk.name: chunk.dtype} if chunk.ndim == 1 else dict(chunk.dtypes)
        if list(dtypes) != list(self.columns):
            raise ValueError(f"its columns must be {list(self.columns)}, got {list(dtypes)}.")
        for name, wanted in self.columns.items():
            if wanted is not None and dtypes[name] != wanted:
                raise TypeError(
                    f"column {name!r} must be of type {wanted!r}, as the collection says; got {dtypes[name]!r}."
                )


def _call(function, where, kind, common, chunk, *arguments):
    try:
        if kind is not None:
            check_sparse(chunk, "it")
            kind.check(chunk)
        return function(chunk, *arguments, *common)
    except (TypeError, ValueError, MemoryError) as error:
        error_type = next(known for known in (TypeError, ValueError, MemoryError) if isinstance(error, known))
        raise error_type(f"{where}: {error}") from error


def is_chunked(X):
    """Whether X is a Dask collection, or has its chunks ready."""
    return dask.is_dask_collection(X) or hasattr(X, "_as_chunks")


def chunks_of(X, name):
    """The chunks of a Dask array, with all columns in each, or of a dataframe.

    TypeError if X is another kind of collection, RuntimeError if it lies on a client that is closed.
    """
    if hasattr(X, "_as_chunks"):
        return X._as_chunks(name).alive()
    require_live(X, name)
    if isinstance(X, da.Array) and X.ndim in (1, 2):
        X = X.rechunk({1: -1}) if X.ndim == 2 else X
        known = not np.isnan(X.chunks[0]).any()
        if known and X.shape[0] == 0:
            raise ValueError(f"{name} has no rows in any chunk; at least one is needed.")
        kind: _ArrayKind | _FrameKind = _ArrayKind(X.shape[1:], X.dtype)
        blocks, lengths = list(X.to_delayed().ravel()), X.chunks[0] if known else None
        return Chunks(blocks, name, kind, lengths, (*X.shape, 1)[1], _float_type([X.dtype]))
    if not hasattr(X, "to_delayed") or not hasattr(X, "dtypes"):
        raise TypeError(
            f"{name} must be a Dask array of one or two dimensions or a Dask dataframe, got {type(X).__name__}."
        )
    columns = {column.name: column for column in ([X] if X.ndim == 1 else (X[own] for own in X.columns))}
    dtypes = {own: column.dtype for own, column in columns.items()}
    unknown = [own for own, dtype in dtypes.items() if hasattr(dtype, "categories") and not columns[own].cat.known]
    kind = _FrameKind(dtypes | dict.fromkeys(unknown))
    # Dask's own optimisation would put several files into one chunk where only few of their columns are read.
    blocks = X.simplify().to_delayed(optimize_graph=False)
    return Chunks(blocks, name, kind, None, len(columns), _float_type(dtypes.values()))


def _float_type(dtypes):
    return np.dtype(np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64)


def require_live(collection, name):
    """Refuse a collection that lies on a client which is closed."""
    if any(future.client.status != "running" or future.cancelled() for future in futures_of(collection)):
        raise RuntimeError(_GONE.format(name, ""))


def beside(chunks, values, name):
    """Delayed targets or weights for the rows of each chunk, cut where the chunks are; ValueError if lengths differ.

    Lengths that are not known are computed where they are needed.
    """
    if np.ndim(values) == 0 and not is_chunked(values):
        return Chunks([values] * len(chunks.blocks), name)
    if not is_chunked(values):
        rows = np.asarray(unmasked(values))
        if rows.ndim == 0:
            raise ValueError(f"{name} must have a value or more per row of {chunks.name}, got {type(values).__name__}.")
        values = da.from_array(rows, chunks=-1)
    own = chunks_of(values, name)
    if (chunks.lengths is None or own.lengths is None) and len(own.blocks) == len(chunks.blocks):
        return own
    wanted, lengths = lengths_of(chunks), lengths_of(own)
    if sum(lengths) != sum(wanted):
        raise ValueError(f"{chunks.name} has {sum(wanted)} rows, {name} has {sum(lengths)}.")
    if own.lengths is not None and isinstance(values, da.Array):
        return chunks_of(values.rechunk({0: wanted}), name)
    return own if lengths == wanted else _cut(own, lengths, wanted)


def lengths_of(chunks):
    """The number of rows of each chunk, computed if it is not known."""
    return tuple(compute(chunks.each(_length))) if chunks.lengths is None else chunks.lengths


def _length(chunk):
    return chunk.shape[0]


def _cut(chunks, lengths, wanted):
    """The same rows in chunks of other lengths."""
    call, starts = delayed(_rows_among), np.cumsum([0, *lengths])
    blocks = []
    for stop, length in zip(np.cumsum(wanted).tolist(), wanted, strict=True):
        first = int(np.searchsorted(starts[1:-1], stop - length, side="right"))
        last = max(first, int(np.searchsorted(starts[1:-1], stop)))
        start = stop - length - int(starts[first])
        blocks.append(call(chunks.blocks[first : last + 1], start, start + length))
    return replace(chunks, blocks=blocks, lengths=tuple(wanted))


def _rows_among(parts, start, stop):
    rows = joined(parts)
    return rows.iloc[start:stop] if hasattr(rows, "iloc") else rows[start:stop]


def values_beside(chunks, y, sample_weight):
    """Delayed targets, and delayed weights, for the rows of each chunk, as arrays or None; errors name their chunk."""
    return [beside(chunks, values, name).each(_same) for values, name in ((y, "y"), (sample_weight, "sample_weight"))]


def _same(values):
    return values


def weights_of_chunk(weights, y, n_rows):
    """Checked weights (n_rows, 1) of a chunk, ones for None; ValueError if y has another number of rows."""
    if len(y) != n_rows:
        raise ValueError(f"it has {n_rows} rows, and the chunk of y beside it {len(y)}.")
    weights = check_weights(weights, n_rows, some=False)
    return np.ones((n_rows, 1)) if weights is None else weights


def split_rows(rows, lengths):
    """Rising numbers of rows, in each chunk those within it."""
    ends = np.cumsum(lengths)
    parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
    return [part - (end - length) for part, end, length in zip(parts, ends, lengths, strict=True)]


def taken(chunks, rows, lengths):
    """Delayed rows of each chunk, by their numbers in all of them; ValueError if the chunk has another length."""
    return chunks.each(_take, own=[split_rows(rows, lengths), lengths])


def _take(chunk, rows, length):
    if chunk.shape[0] != length:
        raise ValueError(f"it must have {length} rows, as many as that of X; got {chunk.shape[0]}.")
    return chunk.iloc[rows] if hasattr(chunk, "iloc") else chunk[rows]


def joined(parts):
    """Chunks one below the other."""
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    return sources.joined(parts)


def inputs_of(estimator, X, reset):
    """The chunks of X, by whose columns `n_features_in_` and `feature_names_in_` are checked or, by `reset`, set."""
    chunks = chunks_of(X, "X")
    rows = X._meta if hasattr(X, "columns") else np.empty((0, chunks.width))
    validate_data(estimator, rows, reset=reset, skip_check_array=True)
    return chunks


def moments_of(chunks, twin, sample_weight=None):
    """The `Moments` of all rows, with weights, which the estimator `twin` checks."""
    weights = [] if sample_weight is None else [beside(chunks, sample_weight, "sample_weight").blocks]
    return sum(compute(chunks.each(_moments, twin, own=weights)), Moments.none(chunks.width))


def _moments(X, *own):
    *weights, twin = own
    X = canonical(twin._check(X)) if X.shape[0] else np.empty((0, X.shape[1]))
    return Moments.of(X, *(flat(check_weights(each, X.shape[0], some=False)) for each in weights))


def array_of(blocks, lengths, tail, meta):
    """Dask array of delayed blocks one below the other, each of shape ``(n_rows, *tail)``."""
    lengths = [np.nan] * len(blocks) if lengths is None else lengths
    parts = [da.from_delayed(block, (length, *tail), meta=meta) for block, length in zip(blocks, lengths, strict=True)]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def results_of(chunks, twin, method, tail, dtype):
    """Dask array of the results of a method of `twin` for each chunk, each of shape ``(n_rows, *tail)``."""
    meta = np.empty((0,) * (1 + len(tail)), dtype)
    return array_of(chunks.each(_call_method, twin, method, tail, meta.dtype), chunks.lengths, tail, meta)


def _call_method(X, twin, method, tail, dtype):
    if not X.shape[0]:
        return np.empty((0, *tail), dtype)
    return getattr(twin, method)(X).astype(dtype, copy=False)


def on_worker(estimator, kind):
    """The estimator of this class, for rows in memory, with the same attributes and one thread; sent out once."""
    twin = kind.__new__(kind)
    vars(twin).update(vars(estimator), n_jobs=1, _unfinished=Unfinished())
    return shared(twin)


def shared(value):
    """A value that many tasks take, sent out once."""
    return delayed(value, traverse=False)


@contextmanager
def _explaining_losses():
    """Set Dask's options, and explain its errors about workers and clients that are lost."""
    try:
        with dask.config.set(_OPTIONS):
            yield
    except _LOST as error:
        reason = getattr(error, "reason", "")
        raise RuntimeError(_GONE.format("X", f" (Dask's reason: {reason})" if reason else "")) from error
    except KilledWorker as error:
        raise RuntimeError(_KILLED.format(error.task, error.last_worker.address)) from error
    except NoValidWorkerError as error:
        raise RuntimeError(_NO_WORKER.format(error.task)) from error


@contextmanager
def letting_go():
    """Release data on workers when an error is raised: who keeps the error would keep the variables of its frames."""
    try:
        yield
    except BaseException as error:
        link: BaseException | None = error
        while link is not None:
            clear_frames(link.__traceback__)
            link = link.__cause__ or link.__context__
        raise


def compute(values):
    """The results of a list of delayed values."""
    with _explaining_losses():
        return list(dask.compute(*values))


def gathered(chunks, *names):
    """Arrays of all rows, fetched, that are attributes of the chunks by these names, of which None stays None."""
    found = zip(*compute(chunks.each(attrgetter(*names))), strict=True)
    return [None if own[0] is None else np.concatenate(own) for own in found]


def persist(values):
    """The delayed values, computed and kept where they are; values that are lost with a worker are made again."""
    with _explaining_losses():
        return list(dask.persist(*values))


def reduce_in_tree(values, combine):
    """Combine delayed values in a tree whose shape depends on their number alone.

    `combine` takes a list of some, or of one, and makes something new of them.
    """
    call = delayed(combine)
    while True:
        values = [call(values[i : i + _FAN]) for i in range(0, len(values), _FAN)]
        if len(values) == 1:
            return compute(values)[0]
