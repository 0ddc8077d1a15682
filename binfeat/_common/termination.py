"""Signals that end the process, as exceptions."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_received: list[int] = []  # the number of the last signal


class Terminated(BaseException):
    """The process has received a signal to end; its number is the argument."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` on signals that end the process, so that incomplete files are removed.

    Imports can drop the exception, or replace it by an ImportError. Therefore it is raised again at the end.
    """
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
        if _received:
            raise Terminated(_received.pop())


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    _received[:] = [number]
    raise Terminated(number)


def require_running() -> None:
    """Raise `Terminated` if `terminable` has received a signal, because the first exception may be lost."""
    if _received:
        raise Terminated(_received[0])
