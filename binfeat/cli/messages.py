"""Messages of the command: lines on standard error."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from binfeat._common.printable import printable, printable_lines

if TYPE_CHECKING:
    from sklearn.callback import ProgressBar

    from binfeat.models.estimator import KernelMachineBase


def say(text: object) -> None:
    print(f"binfeat: {printable(text)}", file=sys.stderr, flush=True)


def one_line(words: object) -> str:
    """Return a text, or the text of an error, as one line."""
    return " ".join(str(words).split()) or type(words).__name__


@contextmanager
def printed_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: say(f"warning: {one_line(message)}")
        yield


@contextmanager
def shown_progress(model: "KernelMachineBase") -> Iterator[None]:
    """Show the progress of a fit: as a bar on a terminal if rich is installed, otherwise as a line per decision."""
    bar = _progress_bar() if sys.stdout.isatty() and sys.stderr.isatty() else None
    if bar is None:
        with _logged():
            yield
        return
    model.set_callbacks(bar)
    try:
        yield
    finally:
        model.set_callbacks()


def _progress_bar() -> "ProgressBar | None":
    try:
        from sklearn.callback import ProgressBar

        return ProgressBar()
    except ImportError:  # scikit-learn before 1.9, or no rich
        return None


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


@contextmanager
def _logged() -> Iterator[None]:
    log, handler = logging.getLogger("binfeat"), logging.StreamHandler(sys.stderr)
    level = log.level
    handler.setFormatter(_Lines("binfeat: %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
