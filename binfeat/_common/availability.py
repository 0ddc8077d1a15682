"""Methods that are available only for some parameters."""

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable)


class unavailable_if:
    """Decorate a method that is unavailable while ``reason(estimator)`` is a string.

    The string is the message of the AttributeError. `sklearn.utils.metaestimators.available_if` hides it in the cause.
    """

    def __init__(self, reason: Callable[[Any], str | None]):
        self._reason = reason

    def __call__(self, method: _Method) -> _Method:
        self.method = method
        functools.update_wrapper(self, method)
        return self  # type: ignore[return-value]

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        reason = self._reason(estimator)
        if reason:
            raise AttributeError(reason)
        return MethodType(self.method, estimator)
