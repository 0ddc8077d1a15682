"""A callback for the tests of fits."""


class Callback:
    """Counts tasks of a name, or all of them; stops the fit at one of them, or raises an error there."""

    def __init__(self, task_name=None, *, stop_at=None, fail_at=None, error=None):
        self.task_name, self.stop_at, self.fail_at, self.error = task_name, stop_at, fail_at, error
        self.n_tasks, self.ended = 0, False

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.ended = True

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.n_tasks += self.task_name in (None, context.task_name)
        if self.error is not None and self.n_tasks == self.fail_at:
            raise self.error
        return self.stop_at is not None and self.n_tasks >= self.stop_at
