"""The plan of a search for length scales: its steps, their rows, and after which of them what is compared."""

from dataclasses import dataclass

import numpy as np

CHUNK = 5  # steps between looks at the clock
MOST_ROWS = 1000  # of a step
_ROWS = 300  # of a step: more steps of fewer rows do better in the same time
_ROWS_FOR_EACH = 40  # many rows take finer kernels, which more rows of a step tell of
_LATE_ROWS, _LATE_ROWS_FOR_EACH = 500, 8  # of the last steps: an eighth of the rows, if that is more, up to so many
_ROWS_FOR_MORE_STEPS, _TIMES_STEPS = 150_000, 2.5  # from which on steps grow with the rows, and up to how many times
_TRIAL, _LATE = 4, 3  # scalings race in the first fourth of the steps, radial kernels in the last third


@dataclass(frozen=True)
class SearchPlan:
    """Numbers of steps, and of rows of a step; and the steps after which something is compared."""

    n_steps: int
    rows: int
    late_rows: int  # of the last steps

    @classmethod
    def of(cls, n_steps, n_rows):
        """For a table of so many rows, with so many steps or more: many rows take finer kernels, which more lead to."""
        times = np.clip(n_rows / _ROWS_FOR_MORE_STEPS, 1.0, _TIMES_STEPS)
        rows = int(np.clip(n_rows // _ROWS_FOR_EACH, _ROWS, MOST_ROWS))
        return cls(round(n_steps * times), rows, max(rows, min(_LATE_ROWS, n_rows // _LATE_ROWS_FOR_EACH)))

    @property
    def trial(self):
        """Scalings are compared."""
        return self.n_steps // _TRIAL

    @property
    def early(self):
        """Kernels are."""
        return self.n_steps - self.n_steps // _LATE

    @property
    def race(self):
        """Radial kernels are."""
        return min(self.early + CHUNK, self.n_steps)

    def n_looks(self, begin, needs_one):
        """Looks at the clock of a race that begins after so many steps, with a kernel that is needed or none."""
        first = (begin, 2 * self.trial, self.early) if needs_one else (begin, self.early)
        ends = *first, self.race, self.n_steps
        return sum(map(n_chunks, ends[:-1], ends[1:]))


def n_chunks(done, last):
    """Chunks of steps, after each of which the clock is looked at."""
    return max(1, -(-(last - done) // CHUNK))
