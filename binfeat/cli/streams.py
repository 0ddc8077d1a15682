"""Standard streams and signals of the command."""

import codecs
import os
import signal
import sys
import threading
from contextlib import contextmanager

from binfeat._common.printable import printable_lines

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(BaseException):
    """A signal asks the process to end; its number is the argument."""


@contextmanager
def terminable():
    """Context in which signals that end a process raise `Terminated`, so that files half-written are removed."""
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


def _terminate(number, _):
    raise Terminated(number)


def open_closed_streams():
    """Open the null device in place of closed standard streams: the next file would get the number of one."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115, used to the end


def drop_output():
    """Forget output that cannot be written: Python would try again, and complain, when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class TerminalBytes:
    """A binary stream to a terminal, in which control characters of a table are printed as escape sequences."""

    def __init__(self, stream):
        self._stream, self.closed = stream, False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def write(self, content):
        """Print bytes of UTF-8."""
        self._stream.write(printable_lines(self._decoder.decode(bytes(content))))
        return len(content)

    def flush(self):
        """Write to the terminal at once."""
        self._stream.flush()

    def close(self):
        """Leave the terminal open."""
        self.closed = True
