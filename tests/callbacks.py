"""Callbacks for tests of fits; before scikit-learn 1.9, which has none, tests that use one are skipped."""

import pytest


def _needs_callbacks():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks before version 1.9")


class Callback:
    """Count the tasks with a name, or all; stop the fit at the task with a given number, or raise an error there."""

    def __init__(self, task_name=None, *, stop_at=None, fail_at=None, error=None):
        _needs_callbacks()
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


class Recorder:
    """Record the started tasks, and the completed share of the fit at the end of each, as a progress bar shows it."""

    def __init__(self):
        _needs_callbacks()
        self.tasks, self.shares, self._done = [], [], {}

    def setup(self, estimator, context):
        self.root = context

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(context)

    def on_fit_task_end(self, estimator, context):
        self._done[context] = 1.0
        self.shares.append(self._share(self.root))

    def _share(self, task):
        own = [self._share(child) for child in task._children_map.values()]
        return self._done.get(task, sum(own) / task.max_subtasks if own and task.max_subtasks else 0.0)

    def stages(self):
        """Name of each stage, with its numbers of steps and of announced steps."""
        names = {}
        for stage in self.root._children_map.values():
            names[stage.task_name] = len(stage._children_map), stage.max_subtasks
        return names
