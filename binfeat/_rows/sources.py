"""Sources of row blocks: tables that are read a block of rows at a time, as often as needed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from os import PathLike
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from scipy import sparse

from binfeat._common.array_types import ArrayLike
from binfeat._common.frames import Source, collected, is_frame, is_source, unmasked
from binfeat._common.sparse_tables import check_sparse
from binfeat._common.subsets import slices
from binfeat._common.validation import check_integer, naming_column
from binfeat._rows.datasets import DatasetBlocks, FileBlock, is_dataset, opened, split_names

__all__ = ["Source", "blocks", "is_source"]

Table: TypeAlias = Any  # an array, a sparse matrix or a data frame, of any library

_PASS_BYTES = 2**25  # bytes of rows processed at a time
_PASS_ROWS = 2**12, 2**17  # minimum and maximum of these rows


def blocks(
    X: Table | Sequence[tuple] | str | PathLike,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    target: str | Iterable[str] | None = None,
    weight: str | None = None,
    block_rows: int = 2**17,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Source:
    """Create a source of row blocks, for tables that do not fit in memory.

    Estimators read a source several times. Any object with an ``__iter__`` that restarts a sequence of tuples
    ``(X,)``, ``(X, y)`` or ``(X, y, sample_weight)`` is also a source. Estimators without targets, such as
    `OutlierDetector`, accept all of these.

    Parameters
    ----------
    X : ndarray, memmap, sparse matrix, data frame, sequence of tuples, path, or pyarrow.dataset.Dataset
        A table with targets `y`; a data frame with a column `target`; a sequence of blocks, each a tuple ``(X,)``,
        ``(X, y)`` or ``(X, y, sample_weight)`` of arrays or frames; or a Parquet, Arrow or CSV file, or a folder of
        files, with a column `target`. Folder names like ``year=2024`` become columns. In CSV, a column with leading
        zeros in the first 10,000 rows, for example postal codes, is read as strings, even if it is the target. Empty
        fields, NA, NULL and similar words are missing values, as in ``pandas.read_csv``. Empty lines are skipped,
        except in files of one column, where they are missing values. Numbers with thousands separators, such as
        1.234,5 or "1,234.5", are numeric. A polars LazyFrame is collected in memory first.
    y : ndarray or memmap of shape (n_rows,) or (n_rows, n_targets), default=None
        Targets of a table. Without `y` and `target`, the source has no targets.
    sample_weight : ndarray or memmap of shape (n_rows,), default=None
        Weights of a table with targets.
    target : str or list of str, default=None
        Target columns of a data frame or of files. If None, all columns are inputs.
    weight : str, default=None
        Weight column of a data frame or of files with targets.
    block_rows : int, default=131072
        Maximum number of rows in a block of a table or a dataset.
    delimiter : str, default=None
        Character between the columns of CSV files. None detects commas, semicolons, tabs and vertical bars.
    decimal : {".", ","}, default=None
        Decimal sign of CSV files; None detects it.
    encoding : str, default=None
        Encoding of CSV files, such as "utf-8", "utf-16" or "windows-1252". None detects UTF-8, UTF-16 with a byte
        order mark, Windows-1252 and Latin-1.

    Returns
    -------
    source : iterable
        Results do not depend on the sizes of the blocks.

    Raises
    ------
    TypeError, ValueError
        If X is an iterator, which can be read only once, or arguments are missing, unused or inconsistent.
    OSError
        If a file does not exist or cannot be read.
    ImportError
        If X is a path and pyarrow is not installed.

    See Also
    --------
    RandomBinning, CGRidge, KernelMachineRegressor : Estimators that accept a source.

    Examples
    --------
    >>> import numpy as np
    >>> import binfeat
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> source = binfeat.blocks(X, np.sin(X[:, 0]), block_rows=300)
    >>> [len(rows) for rows, _ in source]
    [300, 300, 300, 100]
    """
    check_integer(block_rows, "block_rows", 1)
    options: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    text = None
    if isinstance(X, str | PathLike):
        X, text = opened(X, **options)
    else:
        _refuse("A table that is not read from a path", **options)
    table: Table = collected(X)
    if is_dataset(table):
        _refuse("A table in files", y=y, sample_weight=sample_weight)
        return DatasetBlocks.of(table, target, weight, block_rows, text)
    if is_frame(table) and y is None:
        _refuse("A data frame without y", "name its weight column by `weight`", sample_weight=sample_weight)
        frame = nw.from_native(table, eager_only=True)
        inputs, targets, weights = split_names(frame.columns, target, weight, "X")
        others = [frame[names[0] if len(names) == 1 else names].to_numpy() for names in (targets, weights) if names]
        return _ArrayBlocks((frame.select(inputs).to_native(), *others), block_rows)
    if isinstance(table, Sequence) and not isinstance(table, bytes):
        _refuse("A sequence of blocks", y=y, sample_weight=sample_weight, target=target, weight=weight)
        return _ListedBlocks(table)
    if not getattr(table, "shape", ()):
        if not hasattr(table, "shape"):
            check_source(table)
        raise TypeError(
            "X must be an array, a data frame, a sequence of blocks, a path or a pyarrow dataset, got "
            f"{type(table).__name__}. An object that iterates over blocks is a source already."
        )
    _refuse("An array", target=target, weight=weight)
    check_sparse(table)
    if y is None:
        _refuse("An array without y", sample_weight=sample_weight)
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        _require_dense(name, values)
        if values is not None and np.shape(values)[:1] != table.shape[:1]:
            got = f"shape {np.shape(values)}"
            raise ValueError(f"{name} must have one value for each of the {table.shape[0]} rows of X, got {got}.")
    table = table.tocsr() if sparse.issparse(table) else table  # other formats have slow or no slices of rows
    return _ArrayBlocks(tuple(values for values in (table, y, sample_weight) if values is not None), block_rows)


def _require_dense(name: str, values: object) -> None:
    if sparse.issparse(values):
        raise TypeError(f"{name} must be a dense array, got {type(values).__name__}. Pass {name}.toarray().")


def _refuse(kind: str, remedy: str = "", **arguments: object) -> None:
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        omitted = given[0] if len(given) == 1 else "them"
        raise ValueError(f"{kind} does not accept {', '.join(given)}; {remedy or f'omit {omitted}'}.")


@dataclass(frozen=True, eq=False)
class _ArrayBlocks:
    arrays: tuple  # X, perhaps y and weights
    block_rows: int

    def __iter__(self) -> Iterator[tuple]:
        for rows in slices(self.arrays[0].shape[0], self.block_rows):
            yield tuple(_rows_of(values, rows) for values in self.arrays)


def _rows_of(values: Any, rows: slice) -> Any:
    frame = nw.from_native(values, pass_through=True, allow_series=True)
    return values[rows] if frame is values else frame[rows].to_native()


@dataclass(frozen=True, eq=False)
class _ListedBlocks:
    listed: Sequence[tuple]

    def __iter__(self) -> Iterator[tuple]:
        return iter(self.listed)


def check_source(X: object) -> None:
    """Raise a TypeError for objects that are not iterable, or can be iterated over only once."""
    if hasattr(X, "__iter__") and iter(X) is X:
        raise TypeError(
            f"A source of blocks is read several times, but a {type(X).__name__} can be read only once. Pass an object "
            "with an __iter__ that restarts: binfeat.blocks(...) of arrays, a list of blocks or a pyarrow dataset."
        )


def check_alone(y: object, sample_weight: object) -> None:
    """Raise a ValueError for targets or weights in addition to a source."""
    if y is not None or sample_weight is not None:
        raise ValueError("y and sample_weight must be None for a source of blocks, which already provides them.")


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Prefix the message of an error with the place."""
    try:
        yield
    except (TypeError, ValueError, OSError) as error:
        kind = next(kind for kind in (TypeError, OSError, ValueError) if isinstance(error, kind))
        raise kind(f"{where}: {error}") from error


_END: Any = object()


def read_blocks(source: Source) -> Iterator[tuple[str, Table, list[np.ndarray]]]:
    """Yield the place, X, and a list of y and weights (if any) of each non-empty block."""
    left = iter(source)
    for number in count():
        where = f"Block {number} of the source, counted from 0"
        with naming(where):
            block = next(left, _END)
            if block is _END:
                return
            X, *others = _checked(block)
        if X.shape[0]:
            yield f"{where} ({block.path})" if isinstance(block, FileBlock) else where, X, others


def _checked(block: Sequence) -> tuple:
    if not isinstance(block, tuple | list) or not 1 <= len(block) <= 3:
        raise TypeError(f"it must be a tuple (X,), (X, y) or (X, y, sample_weight), got {type(block).__name__}.")
    X, *others = block
    X = collected(X)
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"X must have rows and inputs, got {f'shape {X.shape}' if X.shape else repr(X)}.")
    names = ("y", "sample_weight")[: len(others)]
    for name, values in zip(names, others, strict=True):
        _require_dense(name, values)
    others = [np.asarray(unmasked(values)) for values in others]
    for name, values in zip(names, others, strict=True):
        if values.ndim == 0 or len(values) != X.shape[0]:
            raise ValueError(f"{name} must have one value per row, {X.shape[0]}; got shape {values.shape}.")
    return X, *others


class SourceSummary:
    """First pass over all blocks of a source: checks that they match, and collects their targets and weights.

    ``check(X, reset)`` is called with every non-empty block, and returns it as an array or CSR; `reset` is True for the
    first of these blocks. ``inspect(X)``, or ``inspect(X, sample_weight)`` if the source has weights, returns a summand
    for a checked block; `sum` is the total.

    Raises TypeError, ValueError or OSError if the source is an iterator or has no rows, or for an invalid block, with
    the position of the block.
    """

    def __init__(
        self, source: Source, check: Callable[[Table, bool], Table], inspect: Callable[..., Any] | None = None
    ) -> None:
        check_source(source)
        self._source, self._check, self.n_rows = source, check, 0
        self.sum: Any = None
        dtypes, kept = set(), list[list[np.ndarray]]()
        for where, X, others in read_blocks(source):
            with naming(where):
                if kept:
                    _check_alike(others, kept[0])
                with naming_column(X):
                    X = check(X, not kept)
                self._note(X, not kept)
                dtypes.add(getattr(X, "dtype", np.dtype(np.float64)))  # frames have no dtype
                if inspect is not None:
                    found = inspect(X, *others[1:])
                    self.sum = found if self.sum is None else self.sum + found
            self.n_rows += X.shape[0]
            kept.append([np.array(values) for values in others])
        if not kept:
            raise ValueError("The source has no rows; at least one block must have rows.")
        self.dtype = np.result_type(*dtypes)
        columns = map(np.concatenate, zip(*kept))
        self.y: np.ndarray | None = next(columns, None)
        self.sample_weight: np.ndarray | None = next(columns, None)

    @classmethod
    def of_fitted(cls, source: Source, check: Callable[[Table], Table]) -> "SourceSummary":
        """Summarize new rows; `check` compares each block with the names and number of inputs from `fit`."""
        return cls(source, partial(_without_reset, check))

    def _note(self, X: Table, first: bool) -> None:
        if first:
            self.sparse, self.n_inputs = sparse.issparse(X), X.shape[1]
        elif self.sparse != sparse.issparse(X):
            raise TypeError("X must be sparse in all blocks or in none.")

    def rows(self, check: Callable[[Table], Table] | None = None, width: int = 0) -> "RowBlocks":
        """Return the rows for further passes, in equal blocks of about 32 MB, with `width` more values per row."""
        step = _rows_of_pass(max(self.n_inputs, width))
        return RowBlocks(self._source, check or partial(_again, self._check), self.n_rows, step)


# Functions instead of lambdas, which cannot be pickled.
def _without_reset(check: Callable[[Table], Table], X: Table, reset: bool) -> Table:
    return check(X)


def _again(check: Callable[[Table, bool], Table], X: Table) -> Table:
    return check(X, False)


def _rows_of_pass(width: int) -> int:
    return int(np.clip(_PASS_BYTES // (8 * width), *_PASS_ROWS))


def _check_alike(others: list[np.ndarray], first: list[np.ndarray]) -> None:
    if len(others) != len(first):
        raise ValueError("y and sample_weight must be in all blocks or in none.")
    for name, values, known in zip(("y", "sample_weight"), others, first):
        if values.shape[1:] != known.shape[1:] or (values.dtype.kind in "biuf") != (known.dtype.kind in "biuf"):
            raise ValueError(
                f"{name} has shape {values.shape} and type {values.dtype}, which does not match {known.shape} and "
                f"{known.dtype} of the first block."
            )


class RowBlocks:
    """The rows of a source in blocks of equal size (except for the last), for any sizes in the source."""

    def __init__(self, source: Source, check: Callable[[Table], Table], n_rows: int, step: int) -> None:
        self._source, self._check, self.n_rows, self.step = source, check, n_rows, step

    def narrowed(self, width: int) -> "RowBlocks":
        """Return the same rows in blocks that are small enough for `width` more values per row."""
        return self.in_steps(min(self.step, _rows_of_pass(width)))

    def in_steps(self, step: int) -> "RowBlocks":
        """Return the same rows in blocks of this many rows."""
        return RowBlocks(self._source, self._check, self.n_rows, step)

    def __iter__(self) -> Iterator[Table]:
        held, n_held, n_rows = list[Table](), 0, 0
        for where, X, _ in read_blocks(self._source):
            with naming(where):
                X = self._check(X)
            held.append(X)
            n_held += X.shape[0]
            n_rows += X.shape[0]
            if n_rows > self.n_rows:  # before a consumer writes them beyond the end of its arrays
                raise rows_changed("The source", self.n_rows, "more")
            if n_held >= self.step:
                X, end = joined(held), n_held - n_held % self.step
                for start in range(0, end, self.step):
                    yield X[start : start + self.step]
                held, n_held = [X[end:]] if end < n_held else [], n_held - end
        if n_rows < self.n_rows:
            raise rows_changed("The source", self.n_rows, n_rows)
        if n_held:
            yield joined(held)


def rows_changed(what: str, n_rows: int, now: int | str) -> ValueError:
    return ValueError(f"{what} had {n_rows} rows when it was first read, and has {now} now.")


def joined(parts: Sequence[Table]) -> Table:
    """Concatenate arrays or sparse matrices vertically."""
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if any(map(sparse.issparse, parts)) else np.concatenate(parts)
