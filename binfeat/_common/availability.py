"""Methods that an estimator has only with some of its parameters."""

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable)


class unavailable_if:
    """Decorate a method that an estimator lacks as long as ``reason(estimator)`` is a text.

    That is the message of the AttributeError, which `sklearn.utils.metaestimators.available_if` hides in its cause.
    """

    def __init__(self, reason: Callable[[Any], str | None]):
        self._reason = reason

    def __call__(self, method: _Method) -> _Method:
        self.method = method
        functools.update_wrapper(self, method)
        return self  # type: ignore[return-value]

    def __get__(self, estimator, owner=None):
        if estimator is None:
            return self.method
        reason = self._reason(estimator)
        if reason:
            raise AttributeError(reason)
        return MethodType(self.method, estimator)
