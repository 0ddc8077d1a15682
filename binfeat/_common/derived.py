"""Values derived from attributes on first use, by one thread while other threads wait."""

import functools
import os
from collections.abc import Callable
from threading import RLock
from typing import Any


class Derived:
    """Cache of values derived from the attributes of an estimator. It is not part of files and copies."""

    def __init__(self) -> None:
        self._made: tuple = (None, None)
        self.has_warned = False  # about values that differ from the training rows
        self._locks: dict[int, RLock] = {}  # by process, because a fork may copy a locked lock

    def get(self, source: object, make: Callable[[], Any]) -> Any:
        """Return the cached result of ``make()``, computed by one thread, and again if the source is another object."""
        made = self._made
        if made[0] is not source:
            with self._locks.setdefault(os.getpid(), RLock()):
                made = self._made
                if made[0] is not source:
                    made = self._made = source, make()
        return made[1]

    def __reduce__(self) -> tuple[type["Derived"], tuple]:
        return Derived, ()


class locked_cached_property(functools.cached_property):
    """A cached property with a lock, which `functools.cached_property` does not have from Python 3.12 on."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        derived = instance.__dict__.setdefault(f"_made_once_{self.attrname}", Derived())
        return instance.__dict__.setdefault(self.attrname, derived.get(self, lambda: self.func(instance)))
