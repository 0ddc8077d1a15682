"""Categories of the columns of a table."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from binfeat._common.array_record import ArrayRecord
from binfeat.models.table.columns import NO_CATEGORIES, Categories


@dataclass(frozen=True, eq=False)
class Levels(ArrayRecord):
    """Categories of each column: numbers in rising order, then strings, then missing, if it was seen in `fit`."""

    numbers: np.ndarray
    number_starts: np.ndarray  # of each column, (n_inputs + 1,)
    strings: np.ndarray
    string_starts: np.ndarray
    missing: np.ndarray  # mask of the columns in which missing is a category

    @classmethod
    def of_columns(cls, categories: list[Categories]) -> Self:
        """The levels of all columns, `NO_CATEGORIES` of a column of numbers."""
        numbers, strings, missing = zip(NO_CATEGORIES, *categories)
        return cls(
            np.concatenate(numbers),
            np.cumsum([part.size for part in numbers]),
            np.concatenate(strings),
            np.cumsum([part.size for part in strings]),
            np.array(missing[1:], dtype=bool),
        )

    def of(self, j: int) -> Categories:
        """The categories of a column."""
        own_numbers = self.numbers[self.number_starts[j] : self.number_starts[j + 1]]
        own_strings = self.strings[self.string_starts[j] : self.string_starts[j + 1]]
        return own_numbers, own_strings, bool(self.missing[j])

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of categories of each column."""
        return np.diff(self.number_starts) + np.diff(self.string_starts) + self.missing

    @cached_property
    def have_numbers(self) -> np.ndarray:
        """Mask of the columns with categories that are numbers."""
        return np.diff(self.number_starts) > 0

    def name(self, j: int, code: int) -> str:
        """The category of a code."""
        numbers, strings, _ = self.of(j)
        known = [*(f"{number:g}" for number in numbers), *strings.tolist()]
        return known[code] if code < len(known) else "missing" if self.missing[j] and code == len(known) else "unknown"

    def with_numbers(self, numbers: list[np.ndarray]) -> Self:
        """The same strings, and other numbers of each column."""
        return replace(
            self,
            numbers=np.concatenate(numbers),
            number_starts=np.append(0, np.cumsum([levels.size for levels in numbers])),
        )
