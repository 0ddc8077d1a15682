"""The progress of a fit for scikit-learn's callbacks: stages, and steps within stages."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any


class _Task:
    """A task for callbacks, and the number of its own tasks that have begun."""

    def __init__(self, estimator: Any, context: Any, **given: Any) -> None:
        self._estimator, self._n_begun = estimator, 0
        self._context = context.call_on_fit_task_begin(estimator=estimator, **given)

    def begin(self, name: str, n_tasks: int | None) -> "_Task":
        """Begin a task within this task; `n_tasks` is the number of its own tasks, None if unknown."""
        if self._n_begun == self._context.max_subtasks:
            self._context.max_subtasks = None  # there are more than expected
        self._n_begun += 1
        return _Task(self._estimator, self._context.subcontext(task_name=name, max_subtasks=n_tasks))

    def end(self, **given: Any) -> bool:
        """End the task; return True if callbacks allow later tasks."""
        return not self._context.call_on_fit_task_end(estimator=self._estimator, **given)


class Progress:
    """The tasks of a fit for callbacks; a callback that stops a task at its end stops all later tasks.

    X and y are passed to callbacks that require them.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self._estimator, self._given = estimator, {"X": X, "y": y}
        self._stage: Any = None
        self._compiling, self._stopped = None, False

    def begin(self, n_tasks: int | None = None) -> None:
        """Begin the fit; `n_tasks` is the maximum number of stages (or steps without stages), None if unknown."""
        context = self._estimator._init_callback_context(max_subtasks=n_tasks)
        self._fit = self._stage = _Task(self._estimator, context, **self._given)

    def end(self) -> None:
        self._fit.end(**self._given)

    @contextmanager
    def stage(self, name: str, n_steps: int | None = None) -> Iterator[None]:
        """Run a part of the fit in this context; `n_steps` is its number of steps, None if unknown."""
        self._stage = self._fit.begin(name, n_steps)
        yield
        stage, compiling = self._stage, self._compiling
        self._stage, self._compiling = self._fit, None
        if compiling is not None:
            compiling.end()
        self._stopped |= not stage.end()

    def step(self, name: str = "step") -> bool:
        """Report a step; return True if callbacks allow the fit to continue."""
        return self._stage.begin(name, 0).end() and not self._stopped

    def compiling(self) -> None:
        """Report that kernels are compiled in this stage."""
        if self._compiling is None and self._stage is not None:
            self._compiling = self._stage.begin("compiling", None)


class Silent:
    """A `Progress` without reports; `goes_on` is False to stop the fit after the first step."""

    def __init__(self, goes_on: bool) -> None:
        self._goes_on = goes_on

    def stage(self, name: str, n_steps: int | None = None) -> AbstractContextManager[None]:
        return nullcontext()

    def step(self) -> bool:
        return self._goes_on

    def begin(self, n_tasks: int | None = None) -> None:
        pass
