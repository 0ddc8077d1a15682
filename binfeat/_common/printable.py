"""Text from users, such as names of columns, made safe for terminals, pages and pictures."""

_JOINERS = "\u200c\u200d"  # Persian words and emoji need these invisible characters


def printable(value: object) -> str:
    r"""Return a value as text on one line.

    White space of any kind becomes a space. Control characters, such as those that color a terminal or reverse the
    direction of writing, and halves of surrogate pairs become escape sequences such as ``\x1b``.
    """
    text = str(value)
    return text if text.isprintable() else "".join(map(_shown, text))


def printable_lines(value: object) -> str:
    """Return a value as text that keeps only line ends; see `printable`."""
    return "\n".join(map(printable, str(value).split("\n")))


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    return " " if character.isspace() else ascii(character)[1:-1]
