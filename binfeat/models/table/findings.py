"""Warnings about new rows and questionable data, and strings that are numbers or dates."""

import datetime
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.calendar import in_zone, zone_in
from binfeat._common.frames import EXACT
from binfeat._common.text_tables import text_table
from binfeat._common.validation import check_choice
from binfeat._common.warned import warn
from binfeat._common.words import LEADING_ZERO
from binfeat.features.binning.two_samples import Drift
from binfeat.models.table.unique_rows import TableRows

RawValue: TypeAlias = Any  # an object in a column: a number, a string, a date, or missing

POLICIES = "warn", "ignore", "error"
_NAMED = 5  # maximum of findings in a warning


@dataclass(frozen=True)
class Finding:
    """Values of a column that differ from the training rows.

    Attributes
    ----------
    column : str
        Description of the column, for example "Column 'miles'".
    found : str
        "missing values", "unseen categories", "unseen codes" (predictions do not warn of these), "far outside",
        "numbers as strings", "no numbers" or "other columns"; the last two raise an error in predictions.
    n_rows : int
        Number of affected rows.
    examples : tuple of str
        Some of the values.
    known : str
        Values of the column in `fit`.
    """

    column: str
    found: str
    n_rows: int
    examples: tuple[str, ...]
    known: str

    @classmethod
    def among(cls, column: str, found: str, rows: np.ndarray, examples: Iterable[str], known: str) -> "list[Finding]":
        """Return the finding for a mask of rows, (n_rows,), or an empty list."""
        return [cls(column, found, int(rows.sum()), few(examples), known)] if rows.any() else []


class Findings(list[Finding]):
    """Differences between a table and the training rows: a list of `Finding` that prints as a table.

    Attributes
    ----------
    n_rows : int
        Number of rows of the table.
    drift : Drift or None
        Test whether the table as a whole is distributed as the training rows, with attributes `p_value`, `squared_mmd`,
        `input_shares`, `input_p_values`, `feature_names` and `is_significant`. None if the model stores no rows, or the
        table has fewer than 2 rows.
    """

    def __init__(self, found: Iterable[Finding] = (), n_rows: int = 0, drift: Drift | None = None) -> None:
        super().__init__(found)
        self.n_rows, self.drift = n_rows, drift

    def merged(self, other: "Findings") -> "Findings":
        both = {(each.column, each.found): each for each in self}
        for new in other:
            old = both.get((new.column, new.found), replace(new, n_rows=0))
            examples = few(dict.fromkeys(old.examples + new.examples))
            both[new.column, new.found] = replace(new, n_rows=old.n_rows + new.n_rows, examples=examples)
        return Findings(both.values(), self.n_rows + other.n_rows)

    def __repr__(self) -> str:
        text = f"{self.n_rows:,} rows without differences from the training rows."
        if self:
            cells = ((own.column, own.found, f"{own.n_rows:,}", ", ".join(own.examples), own.known) for own in self)
            text = text_table([("column", "found", "rows", "such as", "in fit"), *cells])
        return text if self.drift is None else f"{text}\n{self.drift}"

    @property
    def are_relevant(self) -> bool:
        """True for a new category, or a finding in at least 1 % of the rows and at least two rows."""
        return any(each.found == "unseen categories" or each.n_rows >= max(2.0, 0.01 * self.n_rows) for each in self)

    @property
    def words(self) -> str:
        named = [
            f"{each.column}: {each.found}, in {_rows(each.n_rows)}, such as {', '.join(each.examples)} "
            f"(training rows: {each.known})"
            for each in self[:_NAMED]
        ]
        return "; ".join(named + [f"{len(self) - _NAMED} more findings"] * (len(self) > _NAMED))


Report = Callable[[Findings], None] | None  # called with findings, unless they are ignored


class NoveltyPolicy:
    """The reaction to findings of a prediction, which can consist of several blocks.

    ``with NoveltyPolicy(model) as report`` warns at the end if the findings matter, once per fitted model. It is not a
    generator, because the frame of another module would end the search for the caller's line.
    """

    def __init__(self, model: BaseEstimator) -> None:
        self._model, self.found = model, Findings()
        self._policy = check_choice(model.on_unseen, "on_unseen", POLICIES)

    def report(self, found: Findings) -> None:
        """Collect findings; ValueError if they are errors."""
        if self._policy == "error" and found:
            raise ValueError(f"X differs from the training rows, and on_unseen is 'error'. {found.words}.")
        self.found = self.found.merged(found)

    def __enter__(self) -> Report:
        return None if self._policy == "ignore" else self.report

    def __exit__(self, failed: object, *_: object) -> None:
        if not (failed or self._model._derived.has_warned) and self.found.are_relevant:
            self._model._derived.has_warned = True
            warn(
                f"X differs from the training rows, so some predictions for its {_rows(self.found.n_rows)} are "
                f"extrapolations. {self.found.words}. Call check(X) for details, or set on_unseen to 'ignore' or "
                "'error'."
            )


def _rows(n_rows: int) -> str:
    return f"{n_rows:,} row{'s' * (n_rows != 1)}"


def few(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(islice(values, 3))


def warn_of_training_rows(rows: TableRows, apart: bool) -> None:
    """Warn of a constant table, of few rows, or of many copies, unless the caller splits the rows (`apart`)."""
    if rows.are_equal:
        warn("All rows of X are equal, so predictions are constant. Pass inputs that differ between rows.")
        return
    if len(rows) < 5:
        warn(
            f"{len(rows)} rows are too few to estimate length scales and the penalty; predictions may be unreliable. "
            "Fit the model to more rows."
        )
    if not apart and rows.share_of_copies > 0.1 and rows.copies_are_fine:
        warn(
            f"{rows.share_of_copies:.0%} of the rows are copies of other rows, targets included, so errors and "
            "intervals are too small for other rows. Drop the copies, or pass groups to fit, so that copies are in the "
            "same split, unless new rows are copies, too."
        )


def warn_of_unequal_weights(weights: np.ndarray | None) -> None:
    """Warn if a few rows have nearly all the weight of many rows, by the effective number of rows (Kish 1965)."""
    if weights is None or (n_rows := np.count_nonzero(weights)) < 50:
        return
    relative = weights / weights.max()
    n_effective = relative.sum() ** 2 / (relative**2).sum()
    if n_effective < 10:
        warn(
            f"Weights of rows are very unequal: {n_rows:,} rows count like {n_effective:.0f} rows of equal weight, so "
            "predictions may be unreliable. Limit the largest weights."
        )


def warn_of_rare_classes(classes: np.ndarray, counts: np.ndarray) -> None:
    if counts.min() == 1:
        lone = classes[counts == 1].tolist()
        warn(
            f"{len(lone)} of {classes.size} classes have a single row, for example {lone[0]!r}, and cannot be "
            "validated. Add rows, or drop or merge these classes."
        )
    if classes.dtype.kind == "f" and classes.size > 20:
        warn(
            f"y contains {classes.size} different floats, and each is treated as a class. To predict numbers use "
            "KernelMachineRegressor; pass classes as integers or strings."
        )


def warn_of_few_grids(n_grids: int) -> None:
    """Warn of too few grids, with predictions hardly better than a constant."""
    if n_grids < 10:
        warn(f"Only {n_grids} grids fit into max_bytes, so predictions may be poor. Increase max_bytes.")


def warn_of_time_limit(seconds: float | None, used: float) -> None:
    """Warn of a time limit that was exceeded by more than a fourth."""
    if seconds is not None and used > 1.25 * seconds:
        warn(
            f"max_seconds={seconds:g} was exceeded: the fit took {used:.2g} s. Increase max_seconds, or fit again if "
            "this was the first run on this computer, which compiles and caches kernels."
        )


NUMBERS, DATES = "numbers as strings", "dates as strings"
_NUMBER_FORM = r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*"
_DATE, _TIME = r"\d{4}-\d\d-\d\d", r"[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
_FORMS = {
    NUMBERS: re.compile(rf"(?!{LEADING_ZERO}){_NUMBER_FORM}"),
    DATES: re.compile(rf"{_DATE}(?:{_TIME})?"),
    in_zone("UTC"): re.compile(rf"{_DATE}{_TIME}(?:Z|[+-]\d\d:?\d\d)"),
}
_SEEMING = {
    "dates": (
        re.compile(
            r"(?:\d\d?([./-])\d\d?\1(?:\d\d){1,2}|\d{4}([./-])\d\d?\2\d\d?"  # the day or the year first
            r"|\d\d? [A-Z][a-z]+\.? \d{4}|[A-Z][a-z]+\.? \d\d?, \d{4})(?:[T ].*)?"  # month names
        ),
        "Convert them with pandas.to_datetime; pass its format if day and month can be confused.",
    ),
    "numbers with commas": (
        re.compile(r"\s*[+-]?(?:\d+,\d+|\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d+)?)\s*"),
        "Convert them, for example with the parameters decimal and thousands of pandas.read_csv.",
    ),
}
_EXACT_DIGITS = 15  # float64 distinguishes all decimal numbers with this number of digits
_NUMBER: Any = Real, Decimal, np.bool_


def content_of(strings: Iterable[str]) -> str:
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


def key_of(value: RawValue) -> float | str:
    """Return the key of a category: its number, or a string for other values and for numbers that float64 rounds."""
    if not isinstance(value, _NUMBER) or abs(value) > sys.float_info.max:
        return float(value) if isinstance(value, float | np.floating) else str(value)
    number = float(value)
    if abs(value) > EXACT and value == int(value):
        return str(int(value))
    return str(value) if isinstance(value, Decimal) and Decimal(repr(number)) != value else number


def guess_type(strings: Sequence[str]) -> str:
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
            return f"has strings that look like {what}, {_examples(seeming)}, so it is treated as categorical. {remedy}"
    return ""


def _are_few(words: Sequence[str], strings: Sequence[str]) -> bool:
    return 11 * len(words) <= len(strings)


def _examples(strings: Sequence[str]) -> str:
    return ", ".join(few(map(repr, strings)))


def numbers_of_text(strings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return increasing numbers that strings represent, and the places of the strings; ambiguous numbers are omitted.

    True is 1, and False is 0, as in `key_of`.
    """
    known = np.array([number_of_text(own) for own in strings.tolist()])
    places = np.flatnonzero(~np.isnan(known))
    numbers, first, counts = np.unique(known[places], return_index=True, return_counts=True)
    return numbers[counts == 1], places[first[counts == 1]]


def number_of_text(text: str) -> float:
    """Return the number that a string represents, or NaN if it represents none, or if float64 could round it."""
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    number = float(text) if re.fullmatch(_NUMBER_FORM, text) else np.nan
    return number if len(text) <= _EXACT_DIGITS or repr(number) == text else np.nan


def day_of(date: object, zone: str = "") -> float:
    """Return days since 1970 of a date (object or ISO string), in local time if there is a zone.

    ValueError if it is not a date, or only one of date and `zone` has a time zone.
    """
    try:
        known = datetime.datetime.fromisoformat(date) if isinstance(date, str) else date
    except ValueError as error:
        raise ValueError(f"{date!r} is not a date: {error}") from None
    has_zone = getattr(known, "tzinfo", None) is not None
    if not isinstance(known, datetime.date | np.datetime64) or has_zone != bool(zone):
        raise ValueError(f"{date!r} is not a date {'with' if zone else 'without'} a time zone")
    if isinstance(known, datetime.datetime) and zone:
        known = known.astimezone(_zone_of(zone)).replace(tzinfo=None)
    return float((np.array(known, "M8[us]")[()] - np.datetime64(0, "us")) / np.timedelta64(1, "D"))


def days_in(duration: object) -> float:
    """Return a duration in days; ValueError if it is not a duration."""
    if not isinstance(duration, datetime.timedelta | np.timedelta64):
        raise ValueError(f"{duration!r} is not a duration")
    return float(np.asarray(duration).astype("m8[us]") / np.timedelta64(1, "D"))


def _zone_of(name: str) -> datetime.tzinfo | None:
    """Return a time zone by its name, or by hours from UTC, for example UTC-05:00."""
    offset = re.fullmatch(r"UTC([+-]\d\d:\d\d)", name)
    return datetime.datetime.strptime(offset[1], "%z").tzinfo if offset else ZoneInfo(name)
