"""Rows of Dask collections as delayed chunks, with checks, errors that name the chunk, and tree sums."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add, attrgetter
from traceback import clear_frames
from typing import Any, Self, cast
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.delayed import Delayed
from distributed import client, futures_of
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker, NoValidWorkerError
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from binfeat._common.array_types import DTypeLike
from binfeat._common.frames import unmasked, with_the_same_categories
from binfeat._common.gamma_scale import Moments
from binfeat._common.persistence import Unfinished
from binfeat._common.sparse_tables import check_sparse
from binfeat._common.validation import canonical, check_weights, float_dtype, is_word
from binfeat._rows import sources

_FLOAT64 = np.dtype(np.float64)
# Values combined by one task of a tree. Neighboring values are rarely on one worker, so pairs would not reduce traffic.
_FAN = 8
_NOT_SENT = "_skl_", "_kept", "_posterior"  # prefixes of attributes: callbacks, sums of partial_fit, error bars
# Coefficients travel in the graph, so that they are not lost with a worker; Dask warns of graphs above 10 MB.
_OPTIONS = {"distributed.admin.large-graph-warning-threshold": "1 PB"}
# Older versions of Dask have no ClosedClientError.
_LOST = CancelledError, CommClosedError, getattr(client, "ClosedClientError", CancelledError)
_GONE = (
    "{} was stored on the workers of a distributed.Client that is closed or has lost it{}. Connect a client, create "
    "the collection again from its source, and persist it there."
)
_KILLED = (
    "Workers died while they ran {}, the last of them {}, probably because they ran out of memory. Use smaller chunks, "
    "decrease max_grids or n_grids in solver_params, or use workers with more memory."
)
_NO_WORKER = "No worker was available to run {} within the time limit of the scheduler. Start workers, and fit again."


@dataclass
class Chunks:
    blocks: list[Delayed]
    name: str  # for errors
    check: Callable[[Any], None] | None = None  # raises an error for a wrong chunk; None for checked chunks
    lengths: tuple[int, ...] | None = None  # None if unknown
    width: int = 1  # number of columns; 1 for one-dimensional chunks
    dtype: np.dtype = _FLOAT64  # float32 if NumPy's common dtype of all columns is float32

    def each(
        self, function: Callable[..., Any], *arguments: Any, own: Iterable[Sequence] = (), common: tuple = ()
    ) -> list[Delayed]:
        """Return delayed results of ``function(chunk, *own, *arguments, *common)``; errors and keys name the chunk.

        `own` contains sequences with one argument per chunk; `common` contains large arguments, sent once and together.
        Calls have the caller's error state of NumPy, which threads and workers do not inherit.
        """
        call, name = delayed(_call), getattr(function, "__name__", "part").strip("_")
        sent = shared(common) if common else ()
        return [
            call(
                *(function, f"Chunk {i} of {self.name}", self.check, np.geterr(), sent, block),
                *(*own_arguments, *arguments),
                dask_key_name=f"{name}-chunk{i}-{uuid4().hex}",
            )
            for i, (block, *own_arguments) in enumerate(zip(self.blocks, *own, strict=True))
        ]

    def checked(self) -> Self:
        """Return these chunks; RuntimeError if a block belongs to a closed client."""
        for block in self.blocks:
            require_live(block, self.name)
        return self


def _check_array(shape: tuple, dtype: np.dtype, chunk: Any) -> None:
    if chunk.shape[1:] != shape:
        wanted = str(("n_rows", *shape)).replace("'", "")
        raise ValueError(f"it must have the shape {wanted}, got {chunk.shape}.")
    if chunk.dtype != dtype and not chunk.dtype.kind == dtype.kind in "SU":
        raise TypeError(f"it must have the dtype of the collection, {dtype}; got {chunk.dtype}.")


def _check_frame(columns: dict, chunk: Any) -> None:
    """Raise an error for other columns, or another dtype than the dtype of a column; None is any dtype."""
    dtypes = {chunk.name: chunk.dtype} if chunk.ndim == 1 else dict(chunk.dtypes)
    if list(dtypes) != list(columns):
        raise ValueError(f"its columns must be {list(columns)}, got {list(dtypes)}.")
    for name, wanted in columns.items():
        if wanted is not None and dtypes[name] != wanted:
            raise TypeError(f"column {name!r} must have the dtype of the collection, {wanted!r}; got {dtypes[name]!r}.")


def _call(
    function: Callable[..., Any],
    where: str,
    check: Callable[[Any], None] | None,
    state: dict[str, Any],
    common: tuple,
    chunk: Any,
    *arguments: Any,
) -> Any:
    try:
        if check is not None:
            check_sparse(chunk, "it")
            check(chunk)
        with np.errstate(**state):
            return function(chunk, *arguments, *common)
    except (TypeError, ValueError, MemoryError) as error:
        error_type = next(known for known in (TypeError, ValueError, MemoryError) if isinstance(error, known))
        raise error_type(f"{where}: {error}") from error


def is_chunked(X: object) -> bool:
    """Return True if X is a Dask collection or an object with delayed chunks."""
    return dask.is_dask_collection(X) or hasattr(X, "_as_chunks")


def chunks_of(X: Any, name: str) -> Chunks:
    """Return the chunks of a Dask array (with all columns in each) or dataframe.

    TypeError for other collections, RuntimeError if X belongs to a closed client.
    """
    if hasattr(X, "_as_chunks"):
        return X._as_chunks(name)
    require_live(X, name)
    if isinstance(X, da.Array) and X.ndim in (1, 2):
        X = X.rechunk({1: -1}) if X.ndim == 2 else X
        known = not np.isnan(X.chunks[0]).any()
        if known:
            require_rows(X.shape[0], name)
        check = partial(_check_array, X.shape[1:], X.dtype)
        blocks, lengths = list(X.to_delayed().ravel()), X.chunks[0] if known else None
        return Chunks(blocks, name, check, lengths, (*X.shape, 1)[1], _float_type([X.dtype]))
    if not hasattr(X, "to_delayed") or not hasattr(X, "dtypes"):
        raise TypeError(
            f"{name} must be a Dask array of one or two dimensions or a Dask dataframe, got {type(X).__name__}."
        )
    columns = {column.name: column for column in ([X] if X.ndim == 1 else (X[own] for own in X.columns))}
    dtypes = {own: column.dtype for own, column in columns.items()}
    unknown = [own for own, dtype in dtypes.items() if hasattr(dtype, "categories") and not columns[own].cat.known]
    check = partial(_check_frame, dtypes | dict.fromkeys(unknown))
    # Dask's optimization would put several files into one chunk if only few of their columns are read.
    blocks = X.simplify().to_delayed(optimize_graph=False)
    return Chunks(blocks, name, check, None, len(columns), _float_type(dtypes.values()))


def _float_type(dtypes: Collection[Any]) -> np.dtype:
    """Return the dtype of computations, float32 or float64, as scikit-learn selects it for the whole table."""
    are_numbers = all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)
    return float_dtype(np.result_type(np.bool_, *dtypes)) if are_numbers else _FLOAT64


def require_live(collection: Any, name: str) -> None:
    """Raise RuntimeError if a collection belongs to a closed client."""
    if any(future.client.status != "running" or future.cancelled() for future in futures_of(collection)):
        raise RuntimeError(_GONE.format(name, ""))


def split_like(chunks: Chunks, values: Any, name: str) -> Chunks:
    """Return delayed targets or weights, split like the chunks of rows; ValueError if lengths differ.

    Unknown lengths are computed on demand.
    """
    if not is_chunked(values):
        if values is None or (np.ndim(values) == 0 and name == "sample_weight"):
            return Chunks([values] * len(chunks.blocks), name)
        rows = np.asarray(unmasked(values))
        if rows.ndim == 0:
            raise ValueError(
                f"{name} must have at least one value per row of {chunks.name}, got {type(values).__name__}."
            )
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


def lengths_of(chunks: Chunks) -> tuple[int, ...]:
    """Return the number of rows of each chunk, computed if unknown."""
    return tuple(compute(chunks.each(_length))) if chunks.lengths is None else chunks.lengths


def _length(chunk: Any) -> int:
    return chunk.shape[0]


def _cut(chunks: Chunks, lengths: tuple[int, ...], wanted: tuple[int, ...]) -> Chunks:
    """Return the same rows in chunks of other lengths."""
    call, starts = delayed(_rows_among), np.cumsum([0, *lengths])
    blocks = []
    for stop, length in zip(np.cumsum(wanted).tolist(), wanted, strict=True):
        first = int(np.searchsorted(starts[1:-1], stop - length, side="right"))
        last = max(first, int(np.searchsorted(starts[1:-1], stop)))
        start = stop - length - int(starts[first])
        blocks.append(call(chunks.blocks[first : last + 1], start, start + length))
    return replace(chunks, blocks=blocks, lengths=tuple(wanted))


def _rows_among(parts: list[Any], start: int, stop: int) -> Any:
    rows = joined(parts)
    return rows.iloc[start:stop] if hasattr(rows, "iloc") else rows[start:stop]


def values_beside(chunks: Chunks, y: Any, sample_weight: Any) -> list[list[Delayed]]:
    """Return delayed targets and weights for the rows of each chunk, as arrays or None; errors name the chunk."""
    return [
        split_like(chunks, values, name).each(_same) for values, name in ((y, "y"), (sample_weight, "sample_weight"))
    ]


def _same(values: Any) -> Any:
    return values


def weights_of_chunk(weights: Any, y: Any, n_rows: int) -> np.ndarray:
    """Return checked weights (n_rows, 1) of a chunk, ones for None; ValueError if the length of y differs."""
    if len(y) != n_rows:
        raise ValueError(f"it has {n_rows} rows, and the chunk of y has {len(y)}.")
    checked = check_weights(weights, n_rows, some=False)
    return np.ones((n_rows, 1)) if checked is None else checked


def split_rows(rows: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
    """Split increasing row numbers by chunk, relative to the first row of the chunk."""
    ends = np.cumsum(lengths)
    parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
    return [part - (end - length) for part, end, length in zip(parts, ends, lengths, strict=True)]


def taken(chunks: Chunks, rows: np.ndarray, lengths: Sequence[int]) -> list[Delayed]:
    """Return delayed rows of each chunk by their global numbers; ValueError if the length of the chunk differs."""
    return chunks.each(_take, own=[split_rows(rows, lengths), lengths])


def _take(chunk: Any, rows: np.ndarray, length: int) -> Any:
    if chunk.shape[0] != length:
        raise ValueError(f"it must have {length} rows, as the chunk of X; got {chunk.shape[0]}.")
    return chunk.iloc[rows] if hasattr(chunk, "iloc") else chunk[rows]


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate chunks; masked values become NaN."""
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(with_the_same_categories(parts))
    return sources.joined([unmasked(part) for part in parts])  # NumPy would drop the masks


def inputs_of(estimator: BaseEstimator, X: Any, reset: bool) -> Chunks:
    """Return the chunks of X; check `n_features_in_` and `feature_names_in_`, or set them if `reset`."""
    chunks = chunks_of(X, "X")
    if getattr(X, "ndim", 2) != 2:
        raise ValueError("X must have two dimensions, (n_rows, n_inputs), got one. Pass X[:, None] or X.to_frame().")
    rows = X._meta if hasattr(X, "columns") else np.empty((0, chunks.width))
    validate_data(estimator, rows, reset=reset, skip_check_array=True)
    return chunks


def moments_for_gamma(chunks: Chunks, estimator: BaseEstimator, kind: Any, sample_weight: Any) -> Moments | None:
    """Return the `Moments` of all rows for ``gamma="scale"``, otherwise None; check the weights for any gamma."""
    weights = [] if sample_weight is None else [split_like(chunks, sample_weight, "sample_weight")]
    if is_word(estimator.gamma, "scale"):
        own = [each.blocks for each in weights]
        lengths, totals, moments = zip(*compute(chunks.each(_moments, on_worker(estimator, kind), own=own)))
        require_rows(sum(lengths), chunks.name)
    else:  # X is read only if its lengths are unknown
        counted = [each.each(_total, own=[lengths_of(chunks)]) for each in weights]
        moments, totals = (), tuple(total for each in counted for total in compute(each))
    if weights:
        check_weights(totals, len(totals))
    return reduce(add, moments) if moments else None


def _moments(X: Any, *own: Any) -> tuple[int, float, Moments]:
    *weights, twin = own
    X = canonical(twin._check(X)) if X.shape[0] else np.empty((0, X.shape[1]))
    checked = [_flat_weights(each, X.shape[0]) for each in weights]
    return X.shape[0], sum(each.sum() for each in checked), Moments.of(X, *checked)


def _total(weights: Any, n_rows: int) -> float:
    return _flat_weights(weights, n_rows).sum()


def _flat_weights(weights: Any, n_rows: int) -> np.ndarray:
    return cast(np.ndarray, check_weights(weights, n_rows, some=False))[:, 0]


def require_rows(n_rows: int, name: str = "X") -> None:
    if n_rows == 0:
        raise ValueError(f"{name} has no rows in any chunk; at least one is needed.")


def array_of(blocks: list[Delayed], lengths: Sequence[float] | None, tail: tuple[int, ...], meta: Any) -> da.Array:
    """Return a Dask array of concatenated delayed blocks, each of shape ``(n_rows, *tail)``."""
    lengths = [np.nan] * len(blocks) if lengths is None else lengths
    parts = [da.from_delayed(block, (length, *tail), meta=meta) for block, length in zip(blocks, lengths, strict=True)]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def results_of(chunks: Chunks, twin: Delayed, method: str, tail: tuple[int, ...], dtype: DTypeLike) -> da.Array:
    """Return a Dask array of the results of a method of `twin` per chunk, each of shape ``(n_rows, *tail)``."""
    meta = np.empty((0,) * (1 + len(tail)), dtype)
    return array_of(chunks.each(_call_method, twin, method, tail, meta.dtype), chunks.lengths, tail, meta)


def _call_method(X: Any, twin: BaseEstimator, method: str, tail: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if not X.shape[0]:
        return np.empty((0, *tail), dtype)
    return getattr(twin, method)(X).astype(dtype, copy=False)


def on_worker(estimator: BaseEstimator, kind: Any) -> Delayed:  # kind: the class in memory
    """Return the in-memory estimator with the attributes that its methods need and one thread, sent to workers once."""
    twin = kind.__new__(kind)
    sent = {name: value for name, value in vars(estimator).items() if not name.startswith(_NOT_SENT)}
    vars(twin).update(sent, n_jobs=1, _unfinished=Unfinished())
    return shared(twin)


def shared(value: object) -> Delayed:
    """Return a value for many tasks, sent once."""
    return delayed(value, traverse=False)


@contextmanager
def _explaining_losses() -> Iterator[None]:
    """Set Dask's options, and explain its errors about lost workers and clients."""
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
def releasing_data() -> Iterator[None]:
    """Release data on workers when an error is raised, because its traceback would keep local variables alive."""
    try:
        yield
    except BaseException as error:
        link: BaseException | None = error
        while link is not None:
            clear_frames(link.__traceback__)
            link = link.__cause__ or link.__context__
        raise


def compute(values: Iterable[Any]) -> list[Any]:
    with _explaining_losses():
        return list(dask.compute(*values))


def gathered(chunks: Chunks, *names: str) -> list[Any]:
    """Fetch arrays of all rows from attributes of the chunks; None remains None."""
    found = zip(*compute(chunks.each(attrgetter(*names))), strict=True)
    return [None if own[0] is None else np.concatenate(own) for own in found]


def persist(values: Iterable[Delayed]) -> list[Delayed]:
    """Persist delayed values on the workers; values of lost workers are computed again."""
    with _explaining_losses():
        return list(dask.persist(*values))


def reduce_in_tree(values: list[Delayed], combine: Callable[..., Any]) -> Any:
    """Combine delayed values in a tree; its shape depends only on their number.

    `combine` accepts a list of one or more values, and returns a new object.
    """
    call = delayed(combine)
    while True:
        values = [call(values[i : i + _FAN]) for i in range(0, len(values), _FAN)]
        if len(values) == 1:
            return compute(values)[0]
