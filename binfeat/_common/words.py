"""Errors for strings and dates in numeric columns: they name the column and a remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from binfeat._common.frames import column_names

_FOR_LABELS = "for labels use a classifier, such as KernelMachineClassifier"
_FOR_DATES = "subtract a date from dates, and divide by np.timedelta64(1, 'D')"
_FOR_TARGETS = {"Interval": "replace intervals by their midpoints, for example by Series.array.mid"}
LEADING_ZERO = r"\s*[+-]?0\d"  # digits with a leading zero are names, such as postal codes


@contextmanager
def naming_words(values: Any, name: str) -> Iterator[None]:
    """Let a ValueError of checks of X or y name the first string that is not a number, its column, and a remedy."""
    try:
        yield
    except OverflowError:
        raise ValueError(
            f"Input {name} contains an integer beyond the range of floats, 1.8e308; divide it, or take its logarithm."
        ) from None
    except (TypeError, ValueError) as error:
        if "NA is ambiguous" in str(error):  # raised by pandas for its missing value
            raise ValueError(f"Input {name} contains NA, a missing value; remove these rows.") from None
        of_words = isinstance(error, np.exceptions.DTypePromotionError) or "could not convert string" in str(error)
        of_objects = name == "y" and "float() argument" in str(error)
        message = _message(values, name) if of_words or of_objects else None
        if message is None:
            raise
        raise ValueError(message) from None


def _message(values: Any, name: str) -> str | None:
    for column, column_values in _columns(values):
        for word in filter(_is_word, column_values):
            if name == "y":
                remedy = _FOR_LABELS if isinstance(word, str) else _FOR_TARGETS.get(type(word).__name__, _FOR_DATES)
                return f"y must contain numbers, got {word!r}; {remedy}."
            return (
                f"Column {column!r} of {name} contains {word!r}, which is not a number. Encode it, for example by "
                "sklearn.preprocessing.OneHotEncoder, or use a kernel model, which accepts categories."
            )
    return None


def _columns(values: Any) -> list[tuple[Any, list]]:
    array = np.asarray(values, dtype=object)
    if not array.size or not array.ndim:
        return []
    columns = array.reshape(len(array), -1).T.tolist()
    names = column_names(values)
    return list(zip(range(len(columns)) if names is None else names, columns, strict=True))


def _is_word(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return True
    except TypeError:
        return value is not None
    return False
