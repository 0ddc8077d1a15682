"""Fits that leave the estimator in a consistent state after errors and interrupts."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from binfeat._common.callbacks import with_callbacks

_KEPT = (
    "The interrupted {0} keeps its current state. Assign an estimator to a variable before the fit: "
    "`model = {0}(...)`, then `model.fit(X, y)`. In an interactive session, `sys.last_value.estimator` refers to it."
)
_Method = TypeVar("_Method", bound=Callable)


def all_or_nothing(fit: _Method) -> _Method:
    """Decorate a fit, so that the estimator is unchanged after an error or an interrupt.

    A fit that is interrupted by Ctrl-C can keep its result: it sets `status_` to "interrupted" as its last step. The
    exception then contains the estimator.
    """

    @functools.wraps(fit)
    def run(self: Any, *arguments: Any, **options: Any) -> Any:
        before = vars(self).copy()
        vars(self).pop("status_", None)
        try:
            return fit(self, *arguments, **options)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and vars(self).get("status_") == "interrupted":
                if not hasattr(error, "estimator"):
                    error.estimator = self  # type: ignore[attr-defined]
                    error.add_note(_KEPT.format(type(self).__name__))
            else:
                self.__dict__ = before
            raise

    return run  # type: ignore[return-value]


def fit_method(fit: _Method) -> _Method:
    """Decorate `fit` with callbacks of scikit-learn, and restore the estimator after an error."""
    return with_callbacks(all_or_nothing(fit))
