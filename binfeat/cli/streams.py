"""Standard streams of the command."""

import codecs
import os
import sys
from io import TextIOWrapper
from typing import TextIO

from binfeat._common.printable import printable_lines


def open_closed_streams() -> None:
    """Replace closed standard streams by the null device, because the next file would get their number."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115, used to the end


def escape_unknown_characters() -> None:
    """Print characters that the encoding of standard output lacks as escape sequences, as on standard error."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def drop_output() -> None:
    """Discard output that cannot be written, because Python would try again at exit and print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class TerminalBytes:
    """A binary stream to a terminal that prints control characters as escape sequences."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self.closed = stream, False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def write(self, content: bytes | memoryview) -> int:
        self._stream.write(printable_lines(self._decoder.decode(bytes(content))))
        return len(content)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Leave the terminal open."""
        self.closed = True
