"""Ctrl-C at a moment that a test chooses."""

from contextlib import contextmanager

import pytest

from binfeat.length_scales.search import LengthScaleSearch

SEARCH_STEP, SEARCH_START = (LengthScaleSearch, "_step"), (LengthScaleSearch, "__init__")


@contextmanager
def interrupted(home, name, call=1, *, once=False):
    """Press Ctrl-C at a call of a function, counted from 1, and at every later call unless it is pressed once only."""
    real, n_calls = getattr(home, name), 0

    def stop(*args, **kwargs):
        nonlocal n_calls
        n_calls += 1
        if n_calls == call or (n_calls > call and not once):
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, name, stop)
        yield
