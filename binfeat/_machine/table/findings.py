"""What a table has that `fit` had not seen, and what is done about it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

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
_HEAD = "column", "found", "rows", "such as", "in fit"


@dataclass(frozen=True)
class Finding:
    """Values of a column such as `fit` had not seen.

    Attributes
    ----------
    column : str
        The column in words, such as "Column 'miles'".
    found : str
        "missing values", "unseen categories", "unseen codes" (of which predictions do not warn), "far outside",
        "numbers as strings", "no numbers" or "other columns"; predictions refuse the last two.
    n_rows : int
        Rows that have such values.
    examples : tuple of str
        Some of the values.
    known : str
        What the column had in `fit`.
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
    """What a table has that `fit` had not seen: a list of `Finding`, and as text a table of them.

    Attributes
    ----------
    n_rows : int
        Rows of the table.
    """

    n_rows: int = 0
    _found: dict[tuple[str, str], Finding] = field(default_factory=dict)

    @classmethod
    def of(cls, n_rows: int, found: Iterable[Finding]) -> Self:
        """The findings in a table of so many rows."""
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
    def words(self) -> str:
        """All findings in one line."""
        named = [
            f"{each.column}: {each.found}, in {each.n_rows:,} rows, such as {', '.join(each.examples)} "
            f"({each.known} in fit)"
            for each in list(self)[:_NAMED]
        ]
        more = [f"{len(self) - _NAMED} more findings"] if len(self) > _NAMED else []
        return "; ".join(named + more)


Note = Callable[[Findings], None] | None  # what is called with findings, if anybody wants to know them


class Attention:
    """What is done about findings of a prediction, which may come in several blocks.

    ``with Attention(on_unseen) as note`` warns at its end of what was noted, once for all blocks. It is no generator,
    whose frame of another module would stop the search for the caller's line.
    """

    def __init__(self, on_unseen: str) -> None:
        self._on_unseen, self.found = check_choice(on_unseen, "on_unseen", POLICIES), Findings()

    @property
    def note(self) -> Note:
        """What is called with findings; None if nobody wants to know them."""
        return None if self._on_unseen == "ignore" else self._noted

    def _noted(self, found: Findings) -> None:
        if self._on_unseen == "error" and found:
            raise ValueError(f"X has what fit had not seen, and on_unseen is 'error'. {found.words}.")
        self.found += found

    def __enter__(self) -> Note:
        return self.note

    def __exit__(self, failed: object, *_: object) -> None:
        if self.found and not failed:
            warn(
                f"X has what fit had not seen; predictions there are guesses. {self.found.words}. check(X) lists it; "
                "on_unseen='ignore' or 'error' says what else to do.",
            )


def in_words(values: Iterable[str]) -> tuple[str, ...]:
    """Some of the values."""
    return tuple(list(values)[:_SHOWN])
