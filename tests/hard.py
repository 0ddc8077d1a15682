"""Long cases that shorter ones nearly cover."""

from collections.abc import Iterable
from itertools import product

import pytest


def hard(*values):
    """Mark cases that only `.ci/hard` runs."""
    return [pytest.param(*value if isinstance(value, tuple) else (value,), marks=pytest.mark.hard) for value in values]


def each_value_once(*parameters: Iterable):
    """Return all combinations of parameter values; all are hard except a few that contain each value at least once."""
    values = [list(own) for own in parameters]
    first = {tuple(k % len(own) for own in values) for k in range(max(map(len, values)))}
    places = product(*(range(len(own)) for own in values))
    combinations = ((place, tuple(own[k] for own, k in zip(values, place))) for place in places)
    return [own for place, each in combinations for own in ([each] if place in first else hard(each))]


def easy(values: Iterable, *first):
    """Return all values; values that are not named are hard."""
    values = list(values)
    return [*first, *hard(*(value for value in values if value not in first))]
