"""Cases that take long and that others nearly cover."""

from collections.abc import Iterable
from itertools import product

import pytest


def hard(*values):
    """Cases that `.ci/hard` runs and others skip."""
    return [pytest.param(*value if isinstance(value, tuple) else (value,), marks=pytest.mark.hard) for value in values]


def each_value_once(*parameters: Iterable):
    """All combinations of the values of several parameters; those are easy that take every value at least once."""
    values = [list(own) for own in parameters]
    first = {tuple(k % len(own) for own in values) for k in range(max(map(len, values)))}
    places = product(*(range(len(own)) for own in values))
    combinations = ((place, tuple(own[k] for own, k in zip(values, place))) for place in places)
    return [own for place, each in combinations for own in ([each] if place in first else hard(each))]


def easy(values: Iterable, *first):
    """All values, of which those not named are hard."""
    values = list(values)
    return [*first, *hard(*(value for value in values if value not in first))]
