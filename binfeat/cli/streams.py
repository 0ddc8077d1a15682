"""Standard streams and signals of the command."""

import codecs
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TextIO

from binfeat._common.printable import printable_lines

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(BaseException):
    """The process has received a signal to end; its number is the argument."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` on signals that end the process, so that incomplete files are removed."""
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    handlers = {number: known for number, known in handlers.items() if known is signal.SIG_DFL}  # not under nohup
    for number in handlers:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number, known in handlers.items():
            signal.signal(number, known)


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    raise Terminated(number)


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
