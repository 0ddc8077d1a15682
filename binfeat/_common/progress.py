"""How far a fit is, told to scikit-learn's callbacks: stages, and steps within them."""

from contextlib import contextmanager, nullcontext
from typing import Any


class _Task:
    """A task that callbacks see, and how many tasks of its own it has had."""

    def __init__(self, estimator, context, **given):
        self._estimator, self._n_begun = estimator, 0
        self._context = context.call_on_fit_task_begin(estimator=estimator, **given)

    def begin(self, name, n_tasks):
        """A task within, of so many tasks of its own if that is known."""
        if self._n_begun == self._context.max_subtasks:
            self._context.max_subtasks = None  # there are more than were foreseen
        self._n_begun += 1
        return _Task(self._estimator, self._context.subcontext(task_name=name, max_subtasks=n_tasks))

    def end(self, **given):
        """Whether callbacks let the tasks after it go on."""
        return not self._context.call_on_fit_task_end(estimator=self._estimator, **given)


class Progress:
    """The tasks of a fit that callbacks see: a callback that stops one at its end stops those after it.

    Parameters
    ----------
    estimator : estimator with `CallbackSupportMixin`
    X, y : of `fit`
        Handed on to callbacks that ask for them.
    """

    def __init__(self, estimator, X, y):
        self._estimator, self._given = estimator, {"X": X, "y": y}
        self._stage: Any = None
        self._compiling, self._stopped = None, False

    def begin(self, n_tasks=None):
        """Say that the fit begins, of so many stages at most, or steps if it has no stages; None is not known."""
        context = self._estimator._init_callback_context(max_subtasks=n_tasks)
        self._fit = self._stage = _Task(self._estimator, context, **self._given)

    def end(self):
        """Say that the fit is done."""
        self._fit.end(**self._given)

    @contextmanager
    def stage(self, name, n_steps=None):
        """A part of the fit, of so many steps if that is known."""
        self._stage = self._fit.begin(name, n_steps)
        yield
        stage, compiling = self._stage, self._compiling
        self._stage, self._compiling = self._fit, None
        if compiling is not None:
            compiling.end()
        self._stopped |= not stage.end()

    def step(self, name="step"):
        """Say that a step is done; whether callbacks let the fit go on."""
        return self._stage.begin(name, 0).end() and not self._stopped

    def compiling(self):
        """Say that kernels are compiled in this stage."""
        if self._compiling is None and self._stage is not None:
            self._compiling = self._stage.begin("compiling", None)


class Silent:
    """Stands for the `Progress` of a fit of which nothing is said; `goes_on` says whether it is to end at once."""

    def __init__(self, goes_on):
        self._goes_on = goes_on

    def stage(self, name, n_steps=None):
        return nullcontext()

    def step(self):
        return self._goes_on

    def begin(self, n_tasks=None):
        pass
