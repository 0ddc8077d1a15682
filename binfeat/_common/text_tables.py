"""Tables as text."""

from collections.abc import Iterable, Sequence


def text_line(words: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(map(str.ljust, words, widths)).rstrip()


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a line per row, with columns as wide as their longest words."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(text_line(row, widths) for row in rows)
