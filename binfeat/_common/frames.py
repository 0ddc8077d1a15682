"""Data frames of any kind, and sources of blocks."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeAlias, TypeGuard

import narwhals as nw

Source: TypeAlias = Iterable[tuple]  # of (X, y) or (X, y, sample_weight), that can be read several times


def collected(X):
    """A polars LazyFrame as a DataFrame; anything else as it is."""
    return X.collect() if nw.dependencies.is_polars_lazyframe(X) else X


def is_frame(X):
    """Whether X is a data frame in memory."""
    return nw.dependencies.is_into_dataframe(X)


def is_source(X: object) -> TypeGuard[Source]:
    """Whether X is read block by block, being no table itself."""
    return (
        hasattr(X, "__iter__")
        and not any(hasattr(X, name) for name in ("shape", "__array__", "__dataframe__"))
        and not isinstance(X, Sequence | Mapping | Set)
    )
