"""scikit-learn's callbacks; where it has none, before version 1.9, fits run without them."""

import sklearn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Estimators without callbacks."""

        def set_callbacks(self, *callbacks):
            """Refuse callbacks."""
            if callbacks:
                raise ImportError(f"callbacks need scikit-learn 1.9 or later; got {sklearn.__version__}: upgrade it.")
            return self

        def _init_callback_context(self, **given):
            return _NoContext()

    class _NoContext:
        max_subtasks = None

        def call_on_fit_task_begin(self, **given):
            return self

        def call_on_fit_task_end(self, **given):
            return False

        def subcontext(self, **given):
            return self

    def with_callbacks(method):
        """The method itself."""
        return method


__all__ = ["CallbackSupportMixin", "with_callbacks"]
