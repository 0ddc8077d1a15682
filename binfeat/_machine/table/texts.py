"""Numbers and dates that stand as strings in a column: told from names, and read."""

import datetime
import re
from collections.abc import Iterable

import numpy as np

from binfeat._common.words import LEADING_ZERO

NUMBERS, DATES = "numbers as strings", "dates as strings"
_FORMS = {
    NUMBERS: re.compile(rf"(?!{LEADING_ZERO})\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*"),
    DATES: re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?"),
}
_MOST_DIGITS = 15  # of a number that a float has exactly
_DAY = np.timedelta64(1, "D")


def said_by(strings: Iterable[str]) -> str:
    """What all of some strings, of which there is at least one, say: numbers, dates, or "" for anything else."""
    known = list(strings)
    for kind, form in _FORMS.items():
        if all(map(form.fullmatch, known)):
            return kind if kind == NUMBERS or _are_dates(known) else ""
    return ""


def numbers_of_digits(strings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, rising, that strings of digits say, and the places of these; without numbers that several say."""
    places = np.flatnonzero(np.char.isdecimal(strings) & (np.char.str_len(strings) <= _MOST_DIGITS))
    numbers, first, counts = np.unique(strings[places].astype(np.float64), return_index=True, return_counts=True)
    return numbers[counts == 1], places[first[counts == 1]]


def day_of(date: object) -> float:
    """Days since 1970, of a date as an object or in ISO's form; ValueError if it is none, or of a time zone."""
    if not isinstance(date, str | datetime.date | np.datetime64) or getattr(date, "tzinfo", None):
        raise ValueError(f"{date!r} is no date without a time zone")
    return float((np.array(date, "M8[us]")[()] - np.datetime64(0, "us")) / _DAY)


def _are_dates(strings: list[str]) -> bool:
    try:
        return bool(np.isfinite([day_of(text) for text in strings]).all())
    except ValueError:
        return False
