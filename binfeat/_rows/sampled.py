"""A seeded sample of the rows of a table that does not fit in memory."""

from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dtypes import DType
from scipy import sparse
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.calendar import times_of, zone_in
from binfeat._common.frames import in_float64, is_frame, is_numeric, with_the_same_categories
from binfeat._common.gamma_scale import checked_moments
from binfeat._common.subsets import places_in
from binfeat._common.validation import INFINITE, check_weights, checked_rows, is_word
from binfeat._rows.sources import Source, SourceSummary, Table, check_alone, joined

_MOST_ROWS = 200_000  # enough for the decisions of a kernel model
_MOST_BYTES = 2**29
_NUMBERS = "biuf"
_KEYS = 2**20  # keys drawn at a time


class SampledSource:
    """One pass over a source of blocks of a raw table: its `summary`, and a `sample` of its rows in increasing order.

    The sample depends on the rows, their order and the seed, not on the blocks. The pass sets `n_features_in_` and
    `feature_names_in_` of the estimator.
    """

    def __init__(self, estimator: BaseEstimator, source: Source, seed: int) -> None:
        self._estimator, self._rng = estimator, np.random.default_rng(seed)
        self._parts: list[tuple[np.ndarray, np.ndarray, Table]] = []
        self._n_rows, self._bound = 0, 1.0
        self.summary = SourceSummary(source, self._look)
        self._thin()
        _, rows, tables = zip(*self._parts)
        self.rows, self.sample = np.concatenate(rows), _joined_tables(tables)
        self._parts = []

    @property
    def is_whole(self) -> bool:
        return self.rows.size == self.summary.n_rows

    def sampled(self, *arrays: ArrayLike | None) -> Iterator[np.ndarray | None]:
        """Select the sampled rows of an array with one value per row; None remains None."""
        return (None if values is None else np.asarray(values)[self.rows] for values in arrays)

    def _look(self, X: Table, first: bool) -> Table:
        checked_rows(self._estimator, X, reset=first, skip_check_array=True)
        types = checked_types(X)
        if first:
            self._types, self._most = types, _most_rows(X.shape[1])
        self._types = require_alike(types, self._types, "an earlier block")
        keys = self._rng.random(X.shape[0])
        chosen = np.flatnonzero(keys < self._bound)
        self._parts.append((keys[chosen], self._n_rows + chosen, take_rows(X, chosen)))
        self._n_rows += X.shape[0]
        if sum(len(keys) for keys, _, _ in self._parts) > 2 * self._most:
            self._thin()
        return X

    def _thin(self) -> None:
        """Keep the rows with the lowest keys."""
        self._bound = _bound_of(np.concatenate([keys for keys, _, _ in self._parts]), self._most)
        kept = [keys < self._bound for keys, _, _ in self._parts]
        self._parts = [
            (keys[keep], rows[keep], take_rows(X, np.flatnonzero(keep)))
            for keep, (keys, rows, X) in zip(kept, self._parts, strict=True)
        ]


def summary_for_gamma(estimator: Any, X: Source, y: object, sample_weight: object) -> SourceSummary:
    """Return the summary of a source for a map, with the `Moments` of its rows for ``gamma="scale"``."""
    check_alone(y, sample_weight)
    summary = SourceSummary(X, estimator._check, checked_moments if is_word(estimator.gamma, "scale") else None)
    check_weights(summary.sample_weight, summary.n_rows)
    return summary


def rows_of_summary(summary: SourceSummary) -> tuple[Table, np.ndarray | None, np.ndarray | None]:
    """Return a sample of the rows of a summarized source, with targets and weights if it has them."""
    wanted = sampled_rows(summary.n_rows, summary.n_inputs, 0)
    parts = [X[places] for X, places in places_in(summary.rows(), wanted)]
    y, weights = (None if values is None else values[wanted] for values in (summary.y, summary.sample_weight))
    return joined(parts), y, weights


def sampled_rows(n_rows: int, n_inputs: int, seed: int) -> np.ndarray:
    """Return the increasing numbers of the rows in the sample of a source with this number of rows and inputs."""
    rng, most = np.random.default_rng(seed), _most_rows(n_inputs)
    keys, rows, bound = np.empty(0), np.empty(0, np.int64), 1.0
    for start in range(0, n_rows, _KEYS):
        fresh = rng.random(min(_KEYS, n_rows - start))
        chosen = np.flatnonzero(fresh < bound)
        keys, rows = np.append(keys, fresh[chosen]), np.append(rows, start + chosen)
        bound = _bound_of(keys, most)
        keys, rows = keys[keys < bound], rows[keys < bound]
    return rows


def _most_rows(n_inputs: int) -> int:
    return max(2, min(_MOST_ROWS, _MOST_BYTES // (8 * n_inputs)))


def _bound_of(keys: np.ndarray, most: int) -> float:
    """Return a number that is above exactly `most` keys, or 1 if there are at most `most` keys."""
    return np.partition(keys, most)[most] if keys.size > most else 1.0


def require_alike(types: list[tuple[str, str]], known: list[tuple[str, str]], where: str) -> list[tuple[str, str]]:
    """Return the kinds of all columns (see `checked_types`) in these and earlier blocks; TypeError if they differ."""
    for (name, kind), (_, other) in zip(types, known, strict=True):
        if kind and other and kind != other:
            raise TypeError(f"{name} of X contains {kind}, but {other} in {where}. Convert the column to one type.")
    return [(name, other or kind) for (name, kind), (_, other) in zip(types, known, strict=True)]


def checked_types(X: Table) -> list[tuple[str, str]]:
    """Return the kind of each column (numbers, categories or times) by name; "" if all values are missing.

    ValueError for infinite numbers.
    """
    if is_frame(X):
        return [_frame_type(column) for column in nw.from_native(X, eager_only=True).iter_columns()]
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(INFINITE)
    return [(f"column {j}", "numbers" if values.dtype.kind in _NUMBERS else "categories") for j in range(X.shape[1])]


def _frame_type(column: nw.Series) -> tuple[str, str]:
    name = f"column {column.name!r}"
    if column.dtype.is_float() and np.isinf(column.to_numpy()).any():
        raise ValueError(INFINITE)
    if times := times_of(column):
        return name, times
    if column.is_null().all():
        return name, ""
    return name, "numbers" if is_numeric(column) else "categories"


def take_rows(X: Table, rows: np.ndarray) -> Table:
    """Copy rows of a data frame, sparse matrix or array-like by their numbers."""
    if is_frame(X):
        return nw.from_native(X, eager_only=True)[rows.tolist()].to_native()
    return (X.tocsr() if sparse.issparse(X) else np.asarray(X))[rows]


def _joined_tables(tables: tuple[Table, ...]) -> Table:
    if not is_frame(tables[0]):
        return joined(tables)
    if hasattr(tables[0], "iloc"):
        tables = tuple(with_the_same_categories(tables))
    frames = [nw.from_native(table, eager_only=True) for table in tables]
    for name in frames[0].columns:
        common = _common_type([frame.get_column(name) for frame in frames])
        if common is not None:
            frames = [_converted(frame, name, common, i) for i, frame in enumerate(frames)]
    return nw.concat(frames).to_native()


def _common_type(columns: list[nw.Series]) -> DType | None:
    """Return the type to which a column of all frames must be converted before they are joined; None if to none.

    Numbers in days are as exact as microseconds. pandas joins other types than numbers itself.
    """
    is_pandas = columns[0].implementation.is_pandas_like()
    types = [column.dtype if is_pandas else _native_type(column.to_native()) for column in columns]
    if all(own == types[0] for own in types):
        return None
    filled = [column for column in columns if not column.is_null().all()] or columns
    known, times = [column.dtype for column in filled], times_of(filled[0])
    if is_numeric(filled[0]):
        return nw.Float64()
    if is_pandas:
        return None
    if times == "durations":
        return nw.Duration("us")
    if times:
        return nw.Datetime("us", zone_in(times) or None)
    return nw.Categorical() if nw.Categorical in known or nw.Enum in known else nw.String()


def _native_type(column: Any) -> Any:
    return column.type if hasattr(column, "type") else column.dtype  # Arrow, polars


def _converted(frame: nw.DataFrame, name: str, common: DType, block: int) -> nw.DataFrame:
    column = frame.get_column(name)
    try:
        return frame.with_columns(in_float64(column) if common == nw.Float64 else column.cast(common))
    except Exception as error:  # each library has its own
        raise TypeError(
            f"Block {block} of the source, counted from 0: column {name!r} of X has the type {column.dtype}, which "
            f"cannot be converted to {common}, the common type of all blocks: {error}. Convert the column to one type."
        ) from error
