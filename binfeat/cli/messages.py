"""Messages of the command while it works: lines on standard error."""

import logging
import sys
import warnings
from contextlib import contextmanager

from binfeat._common.printable import printable, printable_lines


def say(text):
    """Print a line on standard error."""
    print(f"binfeat: {printable(text)}", file=sys.stderr, flush=True)


def one_line(words):
    """A text, or the text of an error, in one line."""
    return " ".join(str(words).split()) or type(words).__name__


@contextmanager
def spoken_warnings():
    """Context in which warnings are printed as lines."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: say(f"warning: {one_line(message)}")
        yield


@contextmanager
def shown_progress(machine):
    """Context of a fit: a progress bar on a terminal, if rich is installed; else a line for each decision."""
    bar = _progress_bar() if sys.stdout.isatty() and sys.stderr.isatty() else None
    if bar is None:
        with _logged():
            yield
        return
    machine.set_callbacks(bar)
    try:
        yield
    finally:
        machine.set_callbacks()


def _progress_bar():
    try:
        from sklearn.callback import ProgressBar

        return ProgressBar()
    except ImportError:  # scikit-learn before 1.9, or no rich
        return None


class _Lines(logging.Formatter):
    def format(self, record):
        return printable_lines(super().format(record))


@contextmanager
def _logged():
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
