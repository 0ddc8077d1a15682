"""Data frames of any kind, masked arrays, and sources of blocks."""

import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias, TypeGuard

import narwhals as nw
import numpy as np

EXACT = 2**53  # larger integers lose digits as floats
LONG_INTEGERS = nw.Int128, nw.UInt128

Source: TypeAlias = Iterable[tuple]  # tuples (X,), (X, y) or (X, y, sample_weight), readable several times


def collected(X: Any) -> Any:
    """Convert a polars LazyFrame to a DataFrame, an Arrow batch to a table, and masked arrays as `unmasked`.

    Anything else is returned unchanged. ValueError if two columns of a frame have the same name.
    """
    arrow = nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(X, arrow.RecordBatch):  # a frame for neither narwhals nor scikit-learn
        X = arrow.Table.from_batches([X])
    if nw.dependencies.is_polars_lazyframe(X):
        return X.collect()
    names = column_names(X)
    if names is not None and is_frame(X):
        require_distinct(list(names), "X")
    return unmasked(X)


def column_names(X: Any) -> Any:
    """Return the column names of a data frame, or None; a column of pandas may be named "column_names", too."""
    return X.column_names if hasattr(type(X), "column_names") else getattr(X, "columns", None)


def values_of(series: nw.Series) -> np.ndarray:
    """Return the values of a column, with None where they are missing."""
    native, arrow = series.to_native(), nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(native, arrow.ChunkedArray) and arrow.types.is_dictionary(native.type):
        # polars and narwhals write unsigned indices, which pyarrow before 26 does not convert
        values = native.cast(arrow.dictionary(arrow.int64(), native.type.value_type)).to_numpy()
    else:
        values = series.to_numpy()
    missing = series.is_null().to_numpy()
    if missing.any():
        values = values.astype(object)
        values[missing] = None  # NumPy and Arrow dictionaries have other values there
    return values


def without_long_integers(X: Any) -> Any:
    """Convert integers of 128 bits in polars, which NumPy does not have, to floats; return anything else unchanged."""
    if nw.dependencies.is_polars_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        long = [name for name, dtype in frame.schema.items() if dtype in LONG_INTEGERS]
        return frame.with_columns(nw.col(*long).cast(nw.Float64)).to_native() if long else X
    if nw.dependencies.is_polars_series(X) and (series := nw.from_native(X, series_only=True)).dtype in LONG_INTEGERS:
        return series.cast(nw.Float64).to_native()
    return X


def is_frame(X: object) -> bool:
    return nw.dependencies.is_into_dataframe(X)


def is_numeric(column: nw.Series) -> bool:
    """Return True for a column of numbers or flags."""
    return column.dtype.is_numeric() or column.dtype == nw.Boolean


def in_float64(column: nw.Series) -> nw.Series:
    """Convert numbers to float64, and decimals by way of strings, because Arrow does not round decimals correctly."""
    return (column.cast(nw.String) if column.dtype == nw.Decimal else column).cast(nw.Float64)


def is_missing(value: object) -> bool:
    if isinstance(value, float | np.floating | Decimal):
        return value != value
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # pandas'


def is_source(X: object) -> TypeGuard[Source]:
    """Return True if X is a source of blocks, not a table."""
    return (
        hasattr(X, "__iter__")
        and not any(hasattr(X, name) for name in ("shape", "__array__", "__dataframe__"))
        and not isinstance(X, Sequence | Mapping | Set)
    )


def require_distinct(names: Sequence[object], table: str) -> None:
    if len(set(names)) == len(names):
        return
    name, n = Counter(names).most_common(1)[0]
    places = [str(place) for place, other in enumerate(names, 1) if other == name]
    raise ValueError(
        f"{table} has {n} columns named {name!r} (columns {', '.join(places)}); rename or remove all but one of them."
    )


def unmasked(values: Any) -> Any:
    """Convert masked arrays, and complete numbers of pandas' extension types, to arrays; return others unchanged.

    A sequence of masked arrays becomes one array. Masked values become NaN: masked integers and bools become floats,
    masked strings objects, masked times NaT. Numbers and bools of pandas' nullable, Arrow and categorical types get
    NumPy's dtype if none is missing.
    """
    if isinstance(values, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in values):
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray) or values.dtype.names:
        return values if (plain := plain_type(values)) is None else values.to_numpy(dtype=plain)
    if not np.ma.is_masked(values):
        return np.array(values.data, copy=None)
    if values.dtype.kind in "mM":
        return values.filled(values.dtype.type("NaT"))
    ends = (values.min(), values.max()) if values.dtype.kind in "iu" else ()
    is_long = any(abs(int(end)) > EXACT for end in ends if end is not np.ma.masked)
    if values.dtype.kind not in "fc":
        values = values.astype(np.float64 if values.dtype.kind in "biu" and not is_long else object)
    return values.filled(np.nan)


def with_the_same_categories(parts: Sequence[Any]) -> list[Any]:
    """Copy data frames of pandas with the union of the categories of each categorical column.

    `pandas.concat` converts categorical columns to plain values if categories differ or a part has only missing values
    of another type.
    """
    frames = [part.copy(deep=False) for part in parts]
    for name in frames[0].columns if frames[0].ndim == 2 else ():
        columns = [frame[name] for frame in frames]
        dtypes = [column.dtype for column in columns if hasattr(column.dtype, "categories")]
        others = [column for column in columns if not hasattr(column.dtype, "categories")]
        if dtypes and (others or len(set(dtypes)) > 1) and all(column.isna().all() for column in others):
            known = [dtype.categories for dtype in dtypes if len(dtype.categories)]
            categories = reduce(lambda one, other: one.union(other, sort=False), known or [dtypes[0].categories])
            for frame in frames:
                frame[name] = frame[name].astype(type(dtypes[0])(categories))
    return frames


def plain_type(values: Any) -> np.dtype | None:
    """Return NumPy's dtype for numbers or bools of an extension type of pandas, or None."""
    dtype = getattr(values, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not hasattr(values, "isna"):
        return None
    own = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    plain = own if isinstance(own, np.dtype) else getattr(own, "numpy_dtype", None)
    return None if plain is None or plain.kind not in "biuf" or values.isna().any() else plain


def typed_objects(y: Any) -> Any:
    """Convert objects that are all bools, or all integers, to an array of NumPy's type; return others unchanged."""
    dtype = getattr(y, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind != "O":
        return y
    values = np.asarray(y)
    kinds, bools = set(map(type, values.ravel().tolist())), {bool, np.bool_}
    if kinds <= bools:
        return values.astype(bool)
    if kinds & bools or not all(issubclass(kind, numbers.Integral) for kind in kinds):
        return y
    typed = np.array(values.tolist())
    return y if typed.dtype.kind not in "iu" else typed
