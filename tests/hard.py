"""Cases that take long and that others nearly cover."""

from collections.abc import Iterable

import pytest


def hard(*values):
    """Cases that `.ci/hard` runs and others skip."""
    return [pytest.param(*value if isinstance(value, tuple) else (value,), marks=pytest.mark.hard) for value in values]


def easy(values: Iterable, *first):
    """All values, of which those not named are hard."""
    values = list(values)
    return [*first, *hard(*(value for value in values if value not in first))]
