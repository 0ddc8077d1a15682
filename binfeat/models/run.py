"""The context of the fit of a kernel model: settings, limits, clock, callbacks, and decisions."""

import logging
import time
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from enum import Enum

import numpy as np

from binfeat._common.progress import Progress, Silent
from binfeat._common.text_tables import text_line
from binfeat.models.settings import Limits, Settings

_log = logging.getLogger("binfeat")
_clock = time.monotonic
FEWER_ROWS = "the rows"  # can be reduced by a time limit


class Phase(Enum):
    """Parts of a fit, with the share of the time limit until which they can continue."""

    TARGETS = 0.1
    SEARCH = 1 / 3
    EXACT = 1 / 2
    CELLS = 0.8
    OVERALL_FACTOR = 0.6
    SOLUTION = 1.0


class Clock:
    def __init__(self, seconds: float | None) -> None:
        self._start, self._seconds = _clock(), np.inf if seconds is None else seconds

    @property
    def used(self) -> float:
        return _clock() - self._start

    def allows(self, phase: Phase, seconds: float) -> bool:
        """Return True if this many more seconds stay within the limit of a phase."""
        return self.used + seconds <= phase.value * self._seconds

    def left_of(self, phase: Phase) -> float:
        """Return the remaining seconds of a phase, infinity without a limit."""
        return phase.value * self._seconds - self.used

    def share_used(self, phase: Phase) -> float:
        """Return the used share of the time of a phase, from 0 to 1, rounded down to a tenth.

        Rounding makes fits far from their limit reproducible.
        """
        share = min(1.0, self.used / max(phase.value * self._seconds, np.finfo(float).eps))
        return np.floor(10 * share) / 10


HEADER = "decision", "choice", "validation error", "seconds"
_WIDTHS = 20, 32, 14, 7  # column widths, because lines are printed one by one


def decision_words(what: str, choice: str, error: float, seconds: float) -> tuple[str, str, str, str]:
    return what, choice, "" if np.isnan(error) else f"{error:.4g}", f"{seconds:.1f}"


class Run:
    """A fit: settings, limits, clock and callbacks. It records decisions, logs them, and prints them if `verbose`.

    `is_quiet` is True for an auxiliary fit, without messages.
    """

    def __init__(
        self, settings: Settings, limits: Limits, clock: Clock, progress: Progress | Silent, is_quiet: bool = False
    ) -> None:
        self.settings, self.limits, self.clock = settings, limits, clock
        self._progress, self._may_go_on, self._is_quiet = progress, True, is_quiet
        self._whole_clock, self._compiled = clock, False  # the clock of decisions
        self._decisions: list[tuple[str, str, float, float]] = []
        self.cut_short = ""  # the first step that the time limit ended, if any
        self.interrupt: KeyboardInterrupt | None = None  # Ctrl-C that ended the fit
        self._print(HEADER)

    def note(self, what: str, choice: object, error: float) -> None:
        """Record a decision, with the resulting validation error and the seconds since the start."""
        row = what, str(choice), float(error), self._whole_clock.used
        self._decisions.append(row)
        if not self._is_quiet:
            _log.info("%s: %s, validation error %.4g after %.1f s", *row)
        self._print(decision_words(*row))

    def compiling(self) -> None:
        """Print that kernels are compiled, the first time."""
        if not self._compiled:
            self._compiled = True
            self._print(("compiling", "once; then cached on disk", "", f"{self._whole_clock.used:.1f}"))

    def decisions(self) -> np.ndarray:
        kinds = [("what", "U24"), ("choice", "U64"), ("error", np.float64), ("seconds", np.float64)]
        return np.array(self._decisions, dtype=kinds)

    def _print(self, words: tuple[str, ...]) -> None:
        if self.settings.verbose and not self._is_quiet:
            print(text_line(words, _WIDTHS), flush=True)

    def note_memory(self, most: str) -> None:
        words, known = f"max_bytes: {most} at most", self._decisions
        if all(choice != words for _, choice, *_ in known):
            self.note("memory", words, known[-1][2] if known else np.nan)

    def may_continue(self, phase: Phase, seconds: float = 0.0) -> bool:
        """Return True if the time limit and the callbacks let a phase continue for this many seconds.

        Callbacks can end only the phases SEARCH and OVERALL_FACTOR here.
        """
        in_time = self.clock.allows(phase, seconds)
        if phase is Phase.SEARCH and not in_time:
            self.cut_short = self.cut_short or "the search for length scales"
        return in_time and (self._may_go_on or phase not in (Phase.SEARCH, Phase.OVERALL_FACTOR))

    def step(self) -> bool:
        """Report a completed step; return True if callbacks allow the fit to continue."""
        self._may_go_on = self._progress.step()
        return self._may_go_on

    def stage(self, name: str, n_steps: int | None = None) -> AbstractContextManager[None]:
        """Begin a part of the fit for callbacks, with its number of steps if known."""
        left = self.clock.left_of(Phase.SOLUTION)
        return self._progress.stage(name if np.isinf(left) else f"{name}, {max(0, left):.0f} s left", n_steps)

    def begin(self, n_stages: int) -> None:
        self._progress.begin(n_stages)

    def quiet(self, n_steps: int, settings: Settings | None = None) -> "Run":
        """Return the context of an auxiliary fit, with other settings, few search steps and no messages."""
        limits = replace(self.limits, n_steps=min(n_steps, self.limits.n_steps))
        own = self.settings if settings is None else settings
        return Run(own, limits, self.clock, Silent(goes_on=True), is_quiet=True)

    def finishing(self) -> "Run":
        """Return the context of a fit that should end in about a second."""
        run = copy(self)
        run.clock, run._progress, run._may_go_on = Clock(self.limits.finish_seconds), Silent(goes_on=False), True
        return run
