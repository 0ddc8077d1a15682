"""Text of users, such as names of columns, as it is safe to show: in a terminal, on a page, in a picture."""

_JOINERS = "\u200c\u200d"  # Persian words and emoji need these invisible characters


def printable(value: object) -> str:
    r"""A value as text on one line.

    White space of any kind becomes a space. Control characters, such as those that color a terminal or reverse the
    direction of writing, and halves of surrogate pairs become escape sequences such as ``\x1b``.
    """
    text = str(value)
    return text if text.isprintable() else "".join(map(_shown, text))


def printable_lines(value: object) -> str:
    """A value as text in which only the ends of lines are left as they are; see `printable`."""
    return "\n".join(map(printable, str(value).split("\n")))


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    return " " if character.isspace() else ascii(character)[1:-1]
