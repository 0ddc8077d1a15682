"""What is made of attributes when it is first needed, by one thread while others wait."""

import functools
import os
from threading import RLock


class Derived:
    """What is made of an estimator's attributes when it is first needed. It is left out of files and copies."""

    def __init__(self):
        self._made: tuple = (None, None)
        self.has_warned = False  # of values that training rows do not have
        self._locks: dict[int, RLock] = {}  # by process: a fork may leave its parent's lock taken for ever

    def get(self, source, make):
        """What ``make()`` gives, by one thread while others wait; again when the source is another object."""
        made = self._made
        if made[0] is not source:
            with self._locks.setdefault(os.getpid(), RLock()):
                made = self._made
                if made[0] is not source:
                    made = self._made = source, make()
        return made[1]

    def __reduce__(self):
        return Derived, ()


class made_once(functools.cached_property):
    """A cached property that one thread makes while others wait, which those of newer Pythons do not."""

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        derived = instance.__dict__.setdefault(f"_made_once_{self.attrname}", Derived())
        return instance.__dict__.setdefault(self.attrname, derived.get(self, lambda: self.func(instance)))
