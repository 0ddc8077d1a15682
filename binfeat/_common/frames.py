"""Data frames of any kind, and sources of blocks."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeAlias, TypeGuard

import narwhals as nw

Source: TypeAlias = Iterable[tuple]  # of (X, y) or (X, y, sample_weight), that can be read several times


def collected(X):
    """A polars LazyFrame as a DataFrame; anything else as it is. ValueError if two columns have the same name."""
    if nw.dependencies.is_polars_lazyframe(X):
        return X.collect()
    names = getattr(X, "column_names", getattr(X, "columns", None))  # of Arrow, and of other frames
    if names is not None and is_frame(X):
        require_distinct(list(names), "X")
    return X


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


def require_distinct(names, table):
    """Refuse column names that repeat with a ValueError."""
    if len(set(names)) == len(names):
        return
    name, n = Counter(names).most_common(1)[0]
    places = [str(place) for place, other in enumerate(names, 1) if other == name]
    raise ValueError(
        f"{table} has {n} columns named {name!r} (columns {', '.join(places)}); rename or remove all but one of them."
    )
