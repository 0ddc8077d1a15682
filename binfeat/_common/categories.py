"""Numbers of the categories in columns of strings, for maps that take category numbers."""

import datetime
import hashlib
import sys
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np

from binfeat._common.frames import EXACT, collected, is_frame, is_missing, is_numeric

_BITS = 50  # a number below 2^50 is exact in float64, and its cell needs no saturation
_NUMBER: Any = Real, Decimal, np.bool_


def with_category_numbers(X: Any, categorical_features: Any) -> Any:
    """Replace labels in categorical columns of a data frame by numbers; return anything else unchanged.

    Flags and integers below 2^53 in magnitude keep their values in columns of any type. The number of another label is
    a hash of its text. It is the same in every call and on every computer, for frames of any library. Dates and
    durations are rounded down to microseconds. A missing label becomes NaN.
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
    """Return names of the columns selected by a mask, positions or names; anything else is refused elsewhere."""
    chosen = np.atleast_1d(np.asarray(categorical_features))
    if chosen.dtype.kind == "b":
        return {name for name, is_chosen in zip(names, chosen) if is_chosen}
    if chosen.dtype.kind in "iu":
        return {names[j] for j in chosen if -len(names) <= j < len(names)}
    return {name for name in chosen.tolist() if isinstance(name, str)}


def _numbered(column: nw.Series) -> nw.Series:
    texts = [_text(label, column.name) for label in column.to_list()]
    numbers = {text: _number(text) for text in set(texts)}
    values = np.array([numbers[text] for text in texts])
    return nw.new_series(column.name, values, nw.Float64, backend=column.implementation)


def _text(label: Any, name: str) -> str:
    """Return the text of a label.

    It is "" for a missing label, "=" and the integer for flags and integers below 2^53 in magnitude, and "i" and the
    integer for larger ones.

    Equal numbers, dates and durations have the same text, because data frames return objects of different types.
    TypeError for labels with different texts in other processes.
    """
    if is_missing(label):
        return ""
    if isinstance(label, datetime.timedelta | np.timedelta64):
        return f"t{np.asarray(label).astype('m8[us]').astype(np.int64)}"
    if isinstance(label, datetime.date | np.datetime64):
        date: Any = label
        has_zone = getattr(date, "tzinfo", None) is not None
        local = date.astimezone(datetime.UTC).replace(tzinfo=None) if has_zone else date
        return f"d{np.asarray(local).astype('M8[us]')}{'Z' * has_zone}"
    if isinstance(label, _NUMBER):
        return _text_of_number(label)
    kind = type(label)
    if isinstance(label, set | frozenset) or (kind.__str__, kind.__repr__) == (object.__str__, object.__repr__):
        raise TypeError(f"X has a label of type {kind.__name__} in column {name!r}. Convert the labels to strings.")
    return f"{kind.__name__[0]}{label}"


def _text_of_number(label: Any) -> str:
    if isinstance(label, Integral) or (abs(label) < sys.float_info.max and label == int(label)):
        return f"{'=' if abs(label) < EXACT else 'i'}{int(label)}"
    return f"f{float(label)}"


def _number(text: str) -> float:
    if not text:
        return np.nan
    if text[0] == "=":
        return float(text[1:])
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(digest, "little") >> (64 - _BITS))
