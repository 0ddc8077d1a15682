"""Values of a column that differ from the training rows, as findings."""

from collections.abc import Iterator

import numpy as np

from binfeat._common.calendar import time_in_words
from binfeat.models.table.columns import Column
from binfeat.models.table.findings import CATEGORIES, CODES, MISSING, OUTSIDE, STRINGS, Finding, in_words
from binfeat.models.table.texts import NUMBERS


def unseen_numbers(
    column: Column, values: np.ndarray, ends: np.ndarray, least: float, largest: float, times: str
) -> Iterator[Finding]:
    """Numbers beyond `ends`, and numbers as strings; values are NaN if they are missing or words.

    The training rows have numbers from `least` to `largest`, which is below `least` if all of them are missing.
    """

    def shown(value: float) -> str:
        return f"{value:.6g}" if times in ("", NUMBERS) else time_in_words(value, times)

    beyond = (values < ends[0]) | (values > ends[1])
    if beyond.any():
        known = f"{shown(least)} to {shown(largest)}" if least <= largest else "missing everywhere"
        examples = in_words(map(shown, np.unique(values[beyond])))
        yield Finding(column.name, OUTSIDE, int(beyond.sum()), examples, known)
    n_strings, strings = column.strings() if column.holds_strings else (0, ())
    if n_strings:
        yield Finding(column.name, STRINGS, n_strings, strings, "numbers")


def unseen_categories(column: Column, unknown: np.ndarray, n_categories: int) -> Iterator[Finding]:
    """New categories, by a mask of the unknown ones; not of a column of ids, which has no known categories."""
    if not (n_categories and unknown.any()):
        return
    missing = column.missing() & unknown
    yield from unseen_gaps(column, missing)
    fresh = unknown & ~missing
    if fresh.any():
        numbers, strings, _ = column.at(fresh).categories()
        examples = in_words(map(repr, [*numbers.tolist(), *strings.tolist()]))
        yield Finding(column.name, CATEGORIES, int(fresh.sum()), examples, f"{n_categories:,} categories")


def unseen_gaps(column: Column, missing: np.ndarray) -> Iterator[Finding]:
    """Missing values of a column that was complete."""
    if missing.any():
        yield Finding(column.name, MISSING, int(missing.sum()), ("NaN",), "none")


def unseen_codes(name: str, values: np.ndarray, known: np.ndarray) -> Iterator[Finding]:
    """New whole numbers of a column that is also encoded as categories; they count as numbers only."""
    fresh = values[~np.isnan(values) & ~np.isin(values, known)]
    if fresh.size and (known == np.rint(known)).all():
        shown = in_words(f"{value:g}" for value in np.unique(fresh))
        yield Finding(name, CODES, fresh.size, shown, f"{known.size:,} codes")
