"""Numbers and dates that are written as strings: detected in the values of a column, and converted."""

import datetime
import re
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from binfeat._common.calendar import in_zone, zone_in
from binfeat._common.words import LEADING_ZERO
from binfeat.models.table.findings import few

NUMBERS, DATES = "numbers as strings", "dates as strings"
_DATE, _TIME = r"\d{4}-\d\d-\d\d", r"[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
_FORMS = {
    NUMBERS: re.compile(rf"(?!{LEADING_ZERO})\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*"),
    DATES: re.compile(rf"{_DATE}(?:{_TIME})?"),
    in_zone("UTC"): re.compile(rf"{_DATE}{_TIME}(?:Z|[+-]\d\d:?\d\d)"),
}
_DAY_OR_YEAR_FIRST = r"\d\d?([./-])\d\d?\1(?:\d\d){1,2}|\d{4}([./-])\d\d?\2\d\d?"
_MONTH_IN_WORDS = r"\d\d? [A-Z][a-z]+\.? \d{4}|[A-Z][a-z]+\.? \d\d?, \d{4}"
_SEEMING = {
    "dates": (
        re.compile(rf"(?:{_DAY_OR_YEAR_FIRST}|{_MONTH_IN_WORDS})(?:[T ].*)?"),
        "Convert them, as pandas.to_datetime does, which may want to know where the month stands.",
    ),
    "numbers with commas": (
        re.compile(r"\s*[+-]?(?:\d+,\d+|\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d+)?)\s*"),
        "Convert them, as pandas.read_csv does with decimal or thousands.",
    ),
}
EXACT = 2**53  # float64 represents all integers up to here
_EXACT_DIGITS = 15  # float64 distinguishes all decimal numbers with this number of digits
_NUMBER: Any = Real, Decimal, np.bool_


def said_by(strings: Iterable[str]) -> str:
    """Return the content of a non-empty set of strings: numbers, dates, or "" for anything else."""
    known = list(strings)
    kind = next((kind for kind, form in _FORMS.items() if all(map(form.fullmatch, known))), "")
    try:
        fits = _keep_digits(known) if kind == NUMBERS else np.isfinite([day_of(own, zone_in(kind)) for own in known])
    except ValueError:
        return ""
    return kind if np.all(fits) else ""


def _keep_digits(strings: list[str]) -> bool:
    """Return True if float64 represents all integers among numeric strings, and keeps other numbers distinct."""
    numbers = {Decimal(own.strip()) for own in strings if len(own) > _EXACT_DIGITS}
    whole = {own for own in numbers if own.adjusted() < 300 and own == own.to_integral_value()}
    others = numbers - whole
    return all(float(own) == own for own in whole) and len(set(map(float, others))) == len(others)


def key_of(value: Any) -> float | str:
    """The key of a category: its number, or a string for other values and for numbers that float64 rounds."""
    if not isinstance(value, _NUMBER) or abs(value) > sys.float_info.max:
        return float(value) if isinstance(value, float | np.floating) else str(value)
    number = float(value)
    if abs(value) > EXACT and value == int(value):
        return str(int(value))
    return str(value) if isinstance(value, Decimal) and Decimal(repr(number)) != value else number


def doubt_of(strings: Sequence[str]) -> str:
    """Return a guess of the intended type of categories, as the end of a sentence, or ""."""
    words = [own for own in strings if not _FORMS[NUMBERS].fullmatch(own)]
    if words and _are_few(words, strings):
        return (
            f"has mostly numeric strings, and a few other strings, {_examples(words)}, so it is treated as "
            "categorical. If the other strings represent missing values, replace them by NaN."
        )
    for what, (form, remedy) in _SEEMING.items():
        seeming = list(filter(form.fullmatch, words))
        if seeming and _are_few([own for own in words if not form.fullmatch(own)], words):
            return f"has what seem to be {what}, {_examples(seeming)}: they are taken for categories. {remedy}"
    return ""


def _are_few(words: Sequence[str], strings: Sequence[str]) -> bool:
    return 11 * len(words) <= len(strings)


def _examples(strings: Sequence[str]) -> str:
    return ", ".join(few(map(repr, strings)))


def numbers_of_digits(strings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Increasing numbers that strings of digits represent, and their places; without numbers of several strings."""
    places = np.flatnonzero(np.char.isdecimal(strings) & (np.char.str_len(strings) <= _EXACT_DIGITS))
    numbers, first, counts = np.unique(strings[places].astype(np.float64), return_index=True, return_counts=True)
    return numbers[counts == 1], places[first[counts == 1]]


def day_of(date: object, zone: str = "") -> float:
    """Days since 1970 of a date, which is an object or a string in ISO format; in local time if there is a zone.

    ValueError if it is no date, or only one of date and `zone` has a time zone.
    """
    try:
        known = datetime.datetime.fromisoformat(date) if isinstance(date, str) else date
    except ValueError as error:
        raise ValueError(f"{date!r} is no date, {error}") from None
    has_zone = getattr(known, "tzinfo", None) is not None
    if not isinstance(known, datetime.date | np.datetime64) or has_zone != bool(zone):
        raise ValueError(f"{date!r} is no date {'with' if zone else 'without'} a time zone")
    if isinstance(known, datetime.datetime) and zone:
        known = known.astimezone(_zone_of(zone)).replace(tzinfo=None)
    return float((np.array(known, "M8[us]")[()] - np.datetime64(0, "us")) / np.timedelta64(1, "D"))


def _zone_of(name: str) -> datetime.tzinfo | None:
    """A time zone by its name, or by hours from UTC, for example UTC-05:00."""
    offset = re.fullmatch(r"UTC([+-]\d\d:\d\d)", name)
    return datetime.datetime.strptime(offset[1], "%z").tzinfo if offset else ZoneInfo(name)
