"""Docstrings say what signatures do."""

import inspect
import re

import numpy
import pytest

import binfeat
import binfeat.distributed
from binfeat import kernels

PLACES = (binfeat, binfeat.distributed, kernels)
CALLS = [own for place in PLACES for name in place.__all__ if callable(own := getattr(place, name))]
METHODS = [
    method
    for own in CALLS
    if inspect.isclass(own)
    for name, method in inspect.getmembers(own, callable)
    if not name.startswith("_") and (method.__module__ or "").startswith("binfeat")
]


def stated(docstring):
    """What the docstring says of defaults, by parameter."""
    found = {}
    for line in re.findall(r"^([\w, ]+ : .*default=.*)$", inspect.cleandoc(docstring or ""), re.MULTILINE):
        names, _, rest = line.partition(" : ")
        found.update(dict.fromkeys(names.split(", "), rest.partition("default=")[2]))
    return found


@pytest.mark.parametrize("call", [*CALLS, *METHODS], ids=lambda own: getattr(own, "__qualname__", str(own)))
def test_defaults_are_those_of_the_docstring(call):
    parameters = inspect.signature(call).parameters
    for name, value in stated(call.__doc__).items():
        assert name in parameters, name
        default = parameters[name].default
        assert default == eval(value, {"numpy": numpy}), name
