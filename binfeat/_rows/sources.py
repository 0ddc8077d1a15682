"""Sources of row blocks: tables that are read a block of rows at a time, as often as needed."""

import sys
from collections.abc import Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.validation import check_integer

__all__ = ["blocks"]

_PASS_BYTES = 2**25  # of rows that estimators take at once
_PASS_ROWS = 2**12, 2**17  # the fewest and the most of them


def blocks(X, y=None, sample_weight=None, *, target=None, weight=None, block_rows=2**17):
    """Make a source of row blocks, for tables that do not fit in memory.

    The estimators that take a source read it several times. Any object will do whose ``__iter__`` begins again with
    the first of its tuples ``(X, y)`` or ``(X, y, sample_weight)``.

    Parameters
    ----------
    X : ndarray, memmap, sparse matrix, sequence of tuples, or pyarrow.dataset.Dataset
        A table with targets `y`; or blocks that are there already, each a tuple ``(X, y)`` or
        ``(X, y, sample_weight)`` of arrays; or a folder of Parquet, Arrow or CSV files with a column `target`.
    y : ndarray or memmap of shape (n_rows,) or (n_rows, n_targets), default=None
        Targets of a table.
    sample_weight : ndarray or memmap of shape (n_rows,), default=None
        Weights of a table.
    target : str or list of str, default=None
        Columns of a dataset that hold the targets.
    weight : str, default=None
        Column of a dataset that holds the weights.
    block_rows : int, default=131072
        Most rows in a block of a table or a dataset.

    Returns
    -------
    source : iterable
        Whose blocks may be of any size. Answers do not depend on it.

    Raises
    ------
    TypeError, ValueError
        If X is an iterator, which can be read only once, or arguments are missing, left over, or do not fit together.
    OSError
        If a file of a dataset cannot be read.

    See Also
    --------
    RandomBinning, CGRidge, KernelMachineRegressor : What takes a source.

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
    if _is_dataset(X):
        _refuse("a pyarrow dataset", y=y, sample_weight=sample_weight)
        inputs, targets, weights = _dataset_columns(X, target, weight)
        return _DatasetBlocks(X, inputs, targets, weights, block_rows)
    if isinstance(X, Sequence) and not isinstance(X, str | bytes):
        _refuse("a sequence of blocks", y=y, sample_weight=sample_weight, target=target, weight=weight)
        return _ListedBlocks(X)
    if not getattr(X, "shape", ()):
        if not hasattr(X, "shape"):
            check_source(X)
        raise TypeError(
            f"X must be an array, a sparse matrix, a sequence of blocks or a pyarrow dataset, got {type(X).__name__}. "
            "An object that iterates over blocks is a source already."
        )
    _refuse("an array", target=target, weight=weight)
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if (values is None and name == "y") or (values is not None and np.shape(values)[:1] != X.shape[:1]):
            got = None if values is None else f"shape {np.shape(values)}"
            raise ValueError(f"{name} must have one value for each of the {X.shape[0]} rows of X, got {got}.")
    return _ArrayBlocks(X, y, sample_weight, block_rows)


def _refuse(kind, **arguments):
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise ValueError(f"{' and '.join(given)} cannot go with {kind}; leave them out.")


@dataclass(frozen=True, eq=False)
class _ArrayBlocks:
    X: Any
    y: Any
    sample_weight: Any
    block_rows: int

    def __iter__(self):
        for start in range(0, self.X.shape[0], self.block_rows):
            rows = slice(start, start + self.block_rows)
            yield tuple(values[rows] for values in (self.X, self.y, self.sample_weight) if values is not None)


@dataclass(frozen=True, eq=False)
class _ListedBlocks:
    listed: Sequence

    def __iter__(self):
        return iter(self.listed)


@dataclass(frozen=True, eq=False)
class _DatasetBlocks:
    dataset: Any
    inputs: list
    targets: list
    weights: list
    block_rows: int

    def __iter__(self):
        import pyarrow as pa

        columns = [*self.inputs, *self.targets, *self.weights]
        # Files read ahead, or by several threads, of which each keeps memory for later, would take a gigabyte more.
        modest = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
        for batch in self.dataset.to_batches(columns=columns, batch_size=self.block_rows, **modest):
            targets, weights = ([_values(batch, name) for name in names] for names in (self.targets, self.weights))
            y = targets[0] if len(targets) == 1 else np.column_stack(targets)
            yield pa.Table.from_batches([batch.select(self.inputs)]), y, *weights


def _values(batch, name):
    return batch.column(name).to_numpy(zero_copy_only=False)


def _is_dataset(X):
    pyarrow_dataset = sys.modules.get("pyarrow.dataset")  # whoever has a dataset has imported it
    return pyarrow_dataset is not None and isinstance(X, pyarrow_dataset.Dataset)


def _dataset_columns(dataset, target, weight):
    """Names of inputs, targets and weights, all of which every file has."""
    if target is None:
        raise ValueError(f"target must name the column of the targets, one of {dataset.schema.names}.")
    targets = [target] if isinstance(target, str) else list(target)
    weights = [] if weight is None else [weight]
    unknown = [name for name in (*targets, *weights) if name not in dataset.schema.names]
    if unknown:
        raise ValueError(
            f"target and weight must be columns of the dataset; {unknown} are not in {dataset.schema.names}."
        )
    _check_files(dataset)
    return [name for name in dataset.schema.names if name not in (*targets, *weights)], targets, weights


def _check_files(dataset):
    """Refuse files that cannot be read or lack columns, where pyarrow would fill in nulls."""
    from pyarrow.dataset import get_partition_keys

    for number, fragment in enumerate(dataset.get_fragments()):
        path = getattr(fragment, "path", "in memory")
        try:
            names = fragment.physical_schema.names
        except (OSError, ValueError) as error:
            raise OSError(f"File {number} of the dataset ({path}) cannot be read: {error}") from error
        known = {*names, *get_partition_keys(fragment.partition_expression)}
        missing = [name for name in dataset.schema.names if name not in known]
        if missing:
            raise ValueError(f"File {number} of the dataset ({path}) has no columns {missing}; it has {names}.")


def is_source(X):
    """Whether X is read block by block, being no table itself."""
    return (
        hasattr(X, "__iter__")
        and not isinstance(X, Sequence | Mapping | Set)
        and not any(hasattr(X, name) for name in ("shape", "__array__", "__dataframe__"))
    )


def check_source(X):
    """Refuse iterators.

    Raises
    ------
    TypeError
        If X can be iterated over only once, or not at all.
    """
    if hasattr(X, "__iter__") and iter(X) is X:
        raise TypeError(
            f"A source of blocks is read several times, and a {type(X).__name__} is used up by the first. Give an "
            "object whose __iter__ begins again: binfeat.blocks(...) of arrays, a list of blocks or a pyarrow dataset."
        )


@contextmanager
def naming(number):
    """Say of an error which block it comes from."""
    try:
        yield
    except (TypeError, ValueError, OSError) as error:
        kind = next(kind for kind in (TypeError, OSError, ValueError) if isinstance(error, kind))
        raise kind(f"Block {number} of the source, counted from 0: {error}") from error


def _read(source):
    """Number, X, and a list of y and maybe weights, of each block that has rows."""
    number, left = 0, iter(source)
    while True:
        with naming(number):
            block = next(left, None)
            if block is None:
                return
            X, *others = _checked(block)
        if X.shape[0]:
            yield number, X, others
        number += 1


def _checked(block):
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        raise TypeError(f"it must be a tuple (X, y) or (X, y, sample_weight), got {type(block).__name__}.")
    X, *others = block
    X = X if hasattr(X, "shape") else np.asarray(X)
    if not X.shape:
        raise ValueError(f"X must have rows and inputs, got {X!r}.")
    others = [np.asarray(values) for values in others]
    for name, values in zip(("y", "sample_weight"), others):
        if values.ndim == 0 or len(values) != X.shape[0]:
            raise ValueError(f"{name} must have one value per row, {X.shape[0]}; got shape {values.shape}.")
    return X, *others


class Survey:
    """A first look at all blocks of a source: what they hold besides X, and whether they fit together.

    Parameters
    ----------
    source : iterable of tuples (X, y) or (X, y, sample_weight)
    check : callable
        ``check(X, reset)`` is called with every block that has rows, and gives it as an array or CSR; `reset` is true
        for the first of them.
    look : callable, default=None
        From a checked block to something that adds up.

    Attributes
    ----------
    sum : object
        What `look` gives of all blocks; None without.
    n_rows, n_inputs : int
    dtype : numpy.dtype
        Of all rows together.
    sparse : bool
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
    sample_weight : ndarray of shape (n_rows,), or None

    Raises
    ------
    TypeError, ValueError, OSError
        If the source is an iterator or has no rows, or for what is wrong with a block, which is then named.
    """

    def __init__(self, source, check, look=None):
        check_source(source)
        self._source, self._check, self.n_rows, self.sum = source, check, 0, None
        dtypes, kept = set(), list[list[np.ndarray]]()
        for number, X, others in _read(source):
            with naming(number):
                if kept:
                    _check_alike(others, kept[0])
                X = check(X, not kept)
                self._note(X, not kept)
                dtypes.add(getattr(X, "dtype", np.dtype(np.float64)))  # which frames do not have
                if look is not None:
                    self.sum = look(X) if self.sum is None else self.sum + look(X)
            self.n_rows += X.shape[0]
            kept.append([np.array(values) for values in others])
        if not kept:
            raise ValueError("The source has no rows; give at least one block that has some.")
        self.dtype = np.result_type(*dtypes)
        self.y, *weights = (np.concatenate(column) for column in zip(*kept))
        self.sample_weight = weights[0] if weights else None

    def _note(self, X, first):
        if first:
            self.sparse, self.n_inputs = sparse.issparse(X), X.shape[1]
        elif self.sparse != sparse.issparse(X):
            raise TypeError("X must be sparse in all blocks or in none.")

    def rows(self, check=None, width=0):
        """The rows again, for as many passes as wanted.

        Parameters
        ----------
        check : callable, default=None
            From the X of a block to an array or CSR; None is the one of the survey.
        width : int, default=0
            Numbers of 8 bytes that a row takes besides its inputs; rows come in equal blocks of about 32 MB.
        """
        step = int(np.clip(_PASS_BYTES // (8 * max(self.n_inputs, width)), *_PASS_ROWS))
        return Rows(self._source, check or (lambda X: self._check(X, False)), self.n_rows, step)


def _check_alike(others, first):
    if len(others) != len(first):
        raise ValueError("sample_weight must be in all blocks or in none.")
    for name, values, known in zip(("y", "sample_weight"), others, first):
        if values.shape[1:] != known.shape[1:] or (values.dtype.kind in "biuf") != (known.dtype.kind in "biuf"):
            raise ValueError(
                f"{name} has shape {values.shape} and type {values.dtype}, which does not go with {known.shape} and "
                f"{known.dtype} of the first block."
            )


class Rows:
    """The rows of a source in blocks of equal size, whatever the source's, except for the last."""

    def __init__(self, source, check, n_rows, step):
        self._source, self._check, self.n_rows, self.step = source, check, n_rows, step

    def _arrays(self):
        for number, X, _ in _read(self._source):
            with naming(number):
                X = self._check(X)
            yield X

    def __iter__(self):
        held, n_held, n_rows = [], 0, 0
        for X in self._arrays():
            held.append(X)
            n_held += X.shape[0]
            n_rows += X.shape[0]
            while n_held >= self.step:
                X = _joined(held)
                yield X[: self.step]
                held, n_held = [X[self.step :]], n_held - self.step
        if n_rows != self.n_rows:
            raise ValueError(f"The source had {self.n_rows} rows when it was first read, and has {n_rows} now.")
        if n_held:
            yield _joined(held)


def _joined(parts):
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
