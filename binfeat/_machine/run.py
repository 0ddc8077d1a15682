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


HEADER = "decision", "choice", "held-out error", "seconds"
_WIDTHS = 20, 32, 14, 7  # of lines that are printed before the others are known


def cells(what, choice, error, seconds):
    """A decision as words."""
    return what, choice, f"{error:.4g}", f"{seconds:.1f}"


def line(words, widths):
    """Words in columns."""
    return "  ".join(word.ljust(width) for word, width in zip(words, widths)).rstrip()


class Decisions:
    """What was decided, with the held-out error that followed and the seconds since the start.

    Each decision is logged if `logs`, and printed if `verbose`.
    """

    def __init__(self, budget, verbose=False, logs=True):
        self._budget, self._verbose, self._logs = budget, verbose, logs
        self._compiled, self.rows = False, []
        self._print(HEADER)

    def note(self, what, choice, error):
        row = what, str(choice), float(error), self._budget.used
        self.rows.append(row)
        if self._logs:
            _log.info("%s: %s, held-out error %.4g after %.1f s", *row)
        self._print(cells(*row))

    def compiling(self):
        """Print that kernels are compiled, the first time."""
        if not self._compiled:
            self._compiled = True
            self._print(("compiling", "once: the code is kept", "", f"{self._budget.used:.1f}"))

    def table(self):
        """Structured array with fields what, choice, error and seconds."""
        kinds = [("what", "U24"), ("choice", "U64"), ("error", np.float64), ("seconds", np.float64)]
        return np.array(self.rows, dtype=kinds)

    def _print(self, words):
        if self._verbose:
            print(line(words, _WIDTHS), flush=True)
