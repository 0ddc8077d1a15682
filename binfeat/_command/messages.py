"""What the command says while it works: on standard error, a line each."""

import logging
import sys
import warnings
from contextlib import contextmanager


def say(text):
    """A line about what happens."""
    print(f"binfeat: {text}", file=sys.stderr, flush=True)


def one_line(words):
    """A text, or an error's, in one line."""
    return " ".join(str(words).split()) or type(words).__name__


@contextmanager
def spoken_warnings():
    """Context in which a warning is a line."""
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
    from sklearn.callback import ProgressBar

    try:
        return ProgressBar()
    except ImportError:
        return None


@contextmanager
def _logged():
    log, handler = logging.getLogger("binfeat"), logging.StreamHandler(sys.stderr)
    level = log.level
    handler.setFormatter(logging.Formatter("binfeat: %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
