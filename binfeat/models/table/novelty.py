"""What a column has that it had not in `fit`."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from binfeat._common.calendar import time_in_words
from binfeat.models.table.columns import Column
from binfeat.models.table.findings import CATEGORIES, CODES, MISSING, OUTSIDE, STRINGS, Finding, in_words
from binfeat.models.table.texts import NUMBERS


@dataclass(frozen=True, eq=False)
class SeenNumbers:
    """What a column of numbers had in `fit`."""

    least: float
    largest: float  # below the least one if all were missing
    times: str  # as `times_of` has it
    had_gaps: bool

    def news(self, column: Column, values: np.ndarray, words: np.ndarray, ends: np.ndarray) -> Iterator[Finding]:
        """By numbers, NaN where they are missing, a mask of those that are words, and the ends of what is near."""
        missing, beyond = np.isnan(values) & ~words, (values < ends[0]) | (values > ends[1])
        if missing.any() and not self.had_gaps:
            yield Finding(column.name, MISSING, int(missing.sum()), ("NaN",), "none")
        if beyond.any():
            shown = in_words(map(self._in_words, np.unique(values[beyond])))
            extremes = f"{self._in_words(self.least)} to {self._in_words(self.largest)}"
            known = extremes if self.least <= self.largest else "missing everywhere"
            yield Finding(column.name, OUTSIDE, int(beyond.sum()), shown, known)
        n_strings, strings = column.strings() if column.holds_strings else (0, ())
        if n_strings:
            yield Finding(column.name, STRINGS, n_strings, strings, "numbers")

    def _in_words(self, value: float) -> str:
        return f"{value:.6g}" if self.times in ("", NUMBERS) else time_in_words(value, self.times)


@dataclass(frozen=True, eq=False)
class SeenCategories:
    """What a column of categories had in `fit`."""

    n_categories: int  # 0 of an id

    def news(self, column: Column, codes: np.ndarray, words: np.ndarray, ends: np.ndarray) -> Iterator[Finding]:
        """By codes, of which those above the last end are unknown."""
        unknown = codes > ends[1]
        if not (unknown.any() and self.n_categories):
            return
        missing = column.missing() & unknown
        if missing.any():
            yield Finding(column.name, MISSING, int(missing.sum()), ("NaN",), "none")
        if missing.sum() < unknown.sum():
            numbers, strings, _ = column.at(unknown & ~missing).categories()
            fresh, known = [*numbers.tolist(), *strings.tolist()], f"{self.n_categories:,} categories"
            yield Finding(column.name, CATEGORIES, int((unknown & ~missing).sum()), in_words(map(repr, fresh)), known)


def unseen_codes(name: str, values: np.ndarray, known: np.ndarray) -> Iterator[Finding]:
    """Whole numbers of a column of codes that it had not: the number alone counts for them."""
    fresh = values[~np.isnan(values) & ~np.isin(values, known)]
    if fresh.size and (known == np.rint(known)).all():
        shown = in_words(f"{value:g}" for value in np.unique(fresh))
        yield Finding(name, CODES, fresh.size, shown, f"{known.size:,} codes")
