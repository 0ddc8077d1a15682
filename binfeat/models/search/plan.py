"""The plan of a search for length scales: its steps, their rows, and the steps after which searches are compared."""

from dataclasses import dataclass
from typing import Self

import numpy as np

CHUNK = 5  # steps between looks at the clock
MOST_ROWS = 1000  # of a step
_ROWS = 300  # of a step: more steps of fewer rows do better in the same time
_TABLE_ROWS = 40  # of the table, for a row of a step: many rows take finer kernels, which need more rows of a step
_LATE_ROWS, _LATE_TABLE_ROWS = 500, 8  # of the last steps: an eighth of the table, if that is more, up to 500 rows
_MANY_ROWS, _TIMES_STEPS = 150_000, 2.5  # steps grow with more rows than that, and by this factor at most
_LATE = 3  # radial kernels race in the last third of the steps


@dataclass(frozen=True)
class SearchPlan:
    """Numbers of steps, and of rows of a step; and the steps after which searches are compared."""

    n_steps: int
    rows: int
    late_rows: int  # of the last steps

    @classmethod
    def of(cls, n_steps: int, n_rows: int) -> Self:
        """Plan for a table of `n_rows` rows: `n_steps` steps, or more for the finer kernels that many rows take."""
        times = np.clip(n_rows / _MANY_ROWS, 1.0, _TIMES_STEPS)
        rows = int(np.clip(n_rows // _TABLE_ROWS, _ROWS, MOST_ROWS))
        return cls(round(n_steps * times), rows, max(rows, min(_LATE_ROWS, n_rows // _LATE_TABLE_ROWS)))

    @property
    def half(self) -> int:
        """The step after which kernels that are not needed have to be better."""
        return self.n_steps // 2

    @property
    def early(self) -> int:
        """The step after which kernels are compared."""
        return self.n_steps - self.n_steps // _LATE

    @property
    def race(self) -> int:
        """The step after which radial kernels are compared."""
        return min(self.early + CHUNK, self.n_steps)

    def n_looks(self, needs_kernel: bool) -> int:
        """Number of looks at the clock in a race, if a kernel is needed or none is."""
        ends = 0, *([self.half] if needs_kernel else []), self.early, self.race, self.n_steps
        return sum(map(n_chunks, ends[:-1], ends[1:]))


def n_chunks(done: int, last: int) -> int:
    """Number of chunks of steps, with a look at the clock after every chunk."""
    return max(1, -(-(last - done) // CHUNK))
