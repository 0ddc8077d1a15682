"""Methods that an estimator has only with some of its parameters."""

import functools
from types import MethodType


class unavailable_if:
    """Decorate a method that an estimator lacks as long as ``reason(estimator)`` is a text.

    That is the message of the AttributeError, which `sklearn.utils.metaestimators.available_if` hides in its cause.
    """

    def __init__(self, reason):
        self._reason = reason

    def __call__(self, method):
        self.method = method
        functools.update_wrapper(self, method)
        return self

    def __get__(self, estimator, owner=None):
        if estimator is None:
            return self.method
        reason = self._reason(estimator)
        if reason:
            raise AttributeError(reason)
        return MethodType(self.method, estimator)
