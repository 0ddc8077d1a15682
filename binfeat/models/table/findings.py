"""Differences between a table and the training rows, and the reaction to them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from binfeat._common.text_tables import text_table
from binfeat._common.validation import check_choice
from binfeat._common.warned import warn

MISSING, CATEGORIES, CODES, OUTSIDE, STRINGS, WORDS, ORDER = (
    "missing values",
    "unseen categories",
    "unseen codes",
    "far outside",
    "numbers as strings",
    "no numbers",
    "other columns",
)
POLICIES = "warn", "ignore", "error"
_SHOWN = 3  # examples of a finding
_NAMED = 5  # findings of a warning
_SHARE = 0.01  # of the rows, below which findings do not warn
_HEAD = "column", "found", "rows", "such as", "in fit"


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

    def cells(self) -> tuple[str, ...]:
        """A line of a table."""
        return self.column, self.found, f"{self.n_rows:,}", ", ".join(self.examples), self.known


@dataclass(eq=False)
class Findings:
    """Differences between a table and the training rows: a list of `Finding` that prints as a table.

    Attributes
    ----------
    n_rows : int
        Number of rows of the table.
    """

    n_rows: int = 0
    _found: dict[tuple[str, str], Finding] = field(default_factory=dict)

    @classmethod
    def of(cls, n_rows: int, found: Iterable[Finding]) -> Self:
        """The findings in a table with this number of rows."""
        return cls(n_rows, {(each.column, each.found): each for each in found})

    def __add__(self, other: "Findings") -> "Findings":
        """The findings in two parts of a table."""
        both = dict(self._found)
        for key, new in other._found.items():
            old = both.get(key)
            if old is not None:
                examples = tuple(dict.fromkeys(old.examples + new.examples))[:_SHOWN]
                new = Finding(new.column, new.found, old.n_rows + new.n_rows, examples, new.known)
            both[key] = new
        return Findings(self.n_rows + other.n_rows, both)

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found.values())

    def __getitem__(self, number: int) -> Finding:
        return list(self)[number]

    def __repr__(self) -> str:
        if not self:
            return f"{self.n_rows:,} rows, in which nothing is new."
        return text_table([_HEAD, *(each.cells() for each in self)])

    @property
    def matter(self) -> bool:
        """True for a new category, or a finding in more than 1 % of the rows (at least two)."""
        least = max(2.0, _SHARE * self.n_rows)
        return any(each.found == CATEGORIES or each.n_rows >= least for each in self)

    @property
    def words(self) -> str:
        """All findings in one line."""
        named = [
            f"{each.column}: {each.found}, in {each.n_rows:,} rows, such as {', '.join(each.examples)} "
            f"(training rows: {each.known})"
            for each in list(self)[:_NAMED]
        ]
        more = [f"{len(self) - _NAMED} more findings"] if len(self) > _NAMED else []
        return "; ".join(named + more)


Report = Callable[[Findings], None] | None  # called with findings, unless they are ignored


class NoveltyPolicy:
    """The reaction to findings of a prediction, which can consist of several blocks.

    ``with NoveltyPolicy(model) as report`` warns at the end if the findings matter, once per fitted model. It is not a
    generator, because the frame of another module would end the search for the caller's line.
    """

    def __init__(self, machine: Any) -> None:
        self._machine, self.found = machine, Findings()
        self._policy = check_choice(machine.on_unseen, "on_unseen", POLICIES)

    @property
    def report(self) -> Report:
        """The function to call with findings; None if they are ignored."""
        return None if self._policy == "ignore" else self._reported

    def _reported(self, found: Findings) -> None:
        if self._policy == "error" and found:
            raise ValueError(f"X differs from the training rows, and on_unseen is 'error'. {found.words}.")
        self.found += found

    def __enter__(self) -> Report:
        return self.report

    def __exit__(self, failed: object, *_: object) -> None:
        if failed or self._machine._derived.has_warned or not self.found.matter:
            return
        self._machine._derived.has_warned = True
        warn(
            f"X differs from the training rows, so predictions for some of its {self.found.n_rows:,} rows are "
            f"extrapolations. {self.found.words}. Call check(X) for details, or set on_unseen to 'ignore' or 'error'."
        )


def in_words(values: Iterable[str]) -> tuple[str, ...]:
    """Some of the values."""
    return tuple(list(values)[:_SHOWN])
