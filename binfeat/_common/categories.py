"""Numbers of the categories in columns of strings, for maps that take category numbers."""

import hashlib
from typing import Any

import narwhals as nw
import numpy as np

from binfeat._common.frames import EXACT, collected, is_frame, is_missing, is_numeric

_BITS = 50  # a number below 2^50 is exact in float64, and its cell needs no saturation


def with_category_numbers(X: Any, categorical_features: Any) -> Any:
    """Replace labels in categorical columns of a data frame by numbers; return anything else unchanged.

    Integers and flags keep their values in columns of any type. The number of another label is a hash of its text, so
    that it is the same in every call, process and computer. A missing label becomes NaN.
    """
    X = collected(X)
    if categorical_features is None or not is_frame(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    named = _chosen(frame.columns, categorical_features)
    chosen = [frame.get_column(name) for name in frame.columns if name in named]
    columns = [_numbered(column) for column in chosen if not is_numeric(column)]
    return frame.with_columns(*columns).to_native() if columns else X


def _chosen(names: list[str], categorical_features: Any) -> set[str]:
    """Return names of the columns selected by a mask, positions or names; invalid ones are refused elsewhere."""
    chosen = np.atleast_1d(np.asarray(categorical_features))
    if chosen.dtype.kind == "b":
        return {name for name, is_chosen in zip(names, chosen) if is_chosen}
    if chosen.dtype.kind in "iu":
        return {names[j] for j in chosen if -len(names) <= j < len(names)}
    return set(chosen.tolist())


def _numbered(column: nw.Series) -> nw.Series:
    labels, places = np.unique([_text(label, column.name) for label in column.to_list()], return_inverse=True)
    numbers = np.array([_number(label) for label in labels.tolist()])
    return nw.new_series(column.name, numbers[places], nw.Float64, backend=column.implementation)


def _text(label: Any, name: str) -> str:
    """Return the text of a label: "" for a missing label, "=" and an integer for integers and flags.

    TypeError for labels with different texts in other processes.
    """
    if is_missing(label):
        return ""
    if _is_whole(label):
        return f"={int(label)}"
    kind = type(label)
    if isinstance(label, set | frozenset) or (kind.__str__, kind.__repr__) == (object.__str__, object.__repr__):
        raise TypeError(f"X has a label of type {kind.__name__} in column {name!r}. Convert the labels to strings.")
    return f"{kind.__name__[0]}{label}"


def _is_whole(label: Any) -> bool:
    """Return True for a flag or an integer that float64 represents."""
    types = bool | np.bool_ | int | np.integer | float | np.floating
    is_number = isinstance(label, types) and not isinstance(label, np.timedelta64)
    return bool(is_number and abs(label) < EXACT and label % 1 == 0)


def _number(text: str) -> float:
    if not text:
        return np.nan
    if text[0] == "=":
        return float(text[1:])
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "little") >> (64 - _BITS))
