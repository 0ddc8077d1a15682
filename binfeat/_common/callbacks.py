"""scikit-learn's callbacks; before version 1.9, which has none, fits run without them."""

from collections.abc import Callable
from typing import Self, TypeVar

import sklearn

_Method = TypeVar("_Method", bound=Callable)

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Estimators without callbacks."""

        def set_callbacks(self, *callbacks: object) -> Self:
            """Refuse callbacks."""
            if callbacks:
                raise ImportError(f"callbacks need scikit-learn 1.9 or later; got {sklearn.__version__}: upgrade it.")
            return self

        def _init_callback_context(self, **given: object) -> "_NoContext":
            return _NoContext()

    class _NoContext:
        max_subtasks = None

        def call_on_fit_task_begin(self, **given: object) -> Self:
            return self

        def call_on_fit_task_end(self, **given: object) -> bool:
            return False

        def subcontext(self, **given: object) -> Self:
            return self

    def with_callbacks(method: _Method) -> _Method:
        """The method itself."""
        return method


__all__ = ["CallbackSupportMixin", "with_callbacks"]
