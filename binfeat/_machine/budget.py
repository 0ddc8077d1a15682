"""The seconds of a fit, and the record of what was decided in them."""

import logging
import time

import numpy as np

_log = logging.getLogger("binfeat")
_clock = time.monotonic


class Budget:
    """Seconds that are left; None is as many as it takes."""

    def __init__(self, seconds):
        self._start, self._seconds = _clock(), np.inf if seconds is None else seconds

    @property
    def used(self):
        return _clock() - self._start

    @property
    def left(self):
        return self._seconds - self.used

    def allows(self, seconds, share=1.0):
        """Whether so many seconds more stay within a share of the budget."""
        return self.used + seconds <= share * self._seconds

    def gone(self, share):
        """How much of a share of the budget is gone, from 0 to 1."""
        return min(1.0, self.used / max(share * self._seconds, np.finfo(float).tiny))


class Decisions:
    """What was decided, with the held-out error that followed and the seconds since the start."""

    def __init__(self, budget, logs=True):
        self._budget, self._logs, self.rows = budget, logs, []

    def note(self, what, choice, error):
        self.rows.append((what, str(choice), float(error), self._budget.used))
        if self._logs:
            _log.info("%s: %s, held-out error %.4g after %.1f s", what, choice, error, self._budget.used)

    def table(self):
        """Structured array with fields what, choice, error and seconds."""
        kinds = [("what", "U24"), ("choice", "U64"), ("error", np.float64), ("seconds", np.float64)]
        return np.array(self.rows, dtype=kinds)
