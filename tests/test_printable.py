"""Names of users in terminals, on pages and in pictures."""

import pytest

from binfeat._common.printable import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, größer, 日本, 🙂", "plain, größer, 日本, 🙂"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("evil\u202egnp.exe", r"evil\u202egnp.exe"),
        ("\u2066isolated\u2069", r"\u2066isolated\u2069"),
        ("half \udc80", r"half \udc80"),
        ("\x9b31m", r"\x9b31m"),
        ("a\tb\nc\r\u2028d\u00a0e", "a b c  d e"),
        ("می\u200cخواهم, 👩\u200d🚀", "می\u200cخواهم, 👩\u200d🚀"),
        (12.5, "12.5"),
    ],
)
def test_names(text, shown):
    assert printable(text) == shown
    printable(text).encode()


def test_ends_of_lines():
    assert printable_lines("a\x1b\nb\r\n") == "a\\x1b\nb \n"
