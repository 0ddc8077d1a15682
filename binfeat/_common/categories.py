"""Numbers of the categories in columns of strings, for maps that take category numbers."""

import hashlib
from typing import Any

import narwhals as nw
import numpy as np

from binfeat._common.frames import collected, is_frame

_BITS = 50  # a number below 2^50 is exact in float64, and its cell needs no saturation


def with_category_numbers(X: Any, categorical_features: Any) -> Any:
    """Replace labels in categorical columns of a data frame by numbers; return anything else unchanged.

    The number of a label is a hash of its text, so that it is the same in every call, process and computer. Columns of
    numbers and flags keep their values. A missing label becomes NaN.
    """
    X = collected(X)
    if categorical_features is None or not is_frame(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    named = _chosen(frame.columns, categorical_features)
    columns = [_numbered(frame[name]) for name in frame.columns if name in named and not _is_number(frame[name])]
    return frame.with_columns(*columns).to_native() if columns else X


def _chosen(names: list[str], categorical_features: Any) -> set[str]:
    """Return names of the columns selected by a mask, positions or names; invalid ones are refused elsewhere."""
    chosen = np.atleast_1d(np.asarray(categorical_features))
    if chosen.dtype.kind == "b":
        return {name for name, is_chosen in zip(names, chosen) if is_chosen}
    if chosen.dtype.kind in "iu":
        return {names[j] for j in chosen if -len(names) <= j < len(names)}
    return set(chosen.tolist())


def _is_number(column: nw.Series) -> bool:
    return column.dtype.is_numeric() or column.dtype == nw.Boolean


def _numbered(column: nw.Series) -> nw.Series:
    labels, places = np.unique([_text(label) for label in column.to_list()], return_inverse=True)
    numbers = np.array([_number(label) for label in labels.tolist()])
    return nw.new_series(column.name, numbers[places], nw.Float64, backend=column.implementation)


def _text(label: object) -> str:
    """Return the text of a label; "" for a missing label."""
    return "" if label is None or label != label else f"{type(label).__name__[0]}{label}"


def _number(text: str) -> float:
    if not text:
        return np.nan
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "little") >> (64 - _BITS))
