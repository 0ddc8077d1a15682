"""Ctrl-C at a chosen moment."""

from contextlib import contextmanager
from importlib import import_module

import pytest

from binfeat.length_scales.search import LengthScaleSearch

SEARCH_STEP, SEARCH_START = (LengthScaleSearch, "_step"), (LengthScaleSearch, "__init__")


@contextmanager
def interrupted(home, name, call=1, *, once=False):
    """Press Ctrl-C at the n-th call of a function, counted from 1, and optionally at all later calls.

    `home` is a class, a module or the name of a module.
    """
    home = import_module(home) if isinstance(home, str) else home
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
