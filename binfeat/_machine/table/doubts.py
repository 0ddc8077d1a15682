"""Warnings with which a fit ends: of tables and targets whose errors may mislead, and of a limit that was not kept."""

import numpy as np

from binfeat._common.warned import warn
from binfeat._machine.table.copies import GivenRows

_FEW_ROWS, _FEW_GRIDS = 5, 10
_MANY_CLASSES = 20  # of numbers with a decimal point
_COPIES = 0.1  # share of rows, above which held-out errors say too little
_LATE = 1.25  # times the limit


def doubt_rows(rows: GivenRows, apart: bool) -> None:
    """Warn of a constant table, of few rows, or of many copies.

    Copies do no harm where the caller says which rows are held out together (`apart`).
    """
    if rows.are_equal:
        warn("All rows of X are equal, so that predictions are constant. Give inputs that differ between rows.")
        return
    if len(rows) < _FEW_ROWS:
        warn(f"X has {len(rows)} rows; length scales and penalty are chosen by so few that they are left to chance.")
    if not apart and rows.share_of_copies > _COPIES and rows.are_fine:
        warn(
            f"{rows.share_of_copies:.0%} of the rows are copies of other rows, targets included. Copies of rows held "
            "out make errors too good: drop them, or give groups to fit, so that copies are held out together."
        )


def doubt_classes(classes: np.ndarray, counts: np.ndarray) -> None:
    """Warn of a class of one row, by the counts of rows, or of numbers that are hardly labels."""
    if counts.min() == 1:
        lone = classes[counts == 1].tolist()
        warn(f"y has a single row of {len(lone)} of the classes, such as {lone[0]!r}; no choice can be judged by it.")
    if classes.dtype.kind == "f" and classes.size > _MANY_CLASSES:
        warn(
            f"y holds {classes.size} different floats, and each is a class of its own. To predict numbers use "
            "KernelMachineRegressor; for classes give integers or strings."
        )


def doubt_grids(n_grids: int) -> None:
    """Warn of so few grids that predictions are hardly better than a constant."""
    if n_grids < _FEW_GRIDS:
        warn(f"max_bytes leaves room for a machine of {n_grids} grids, which tell little: give more.")


def doubt_limit(seconds: float | None, used: float) -> None:
    """Warn of a limit of time that could not be kept; `seconds` may be None."""
    if seconds is not None and used > _LATE * seconds:
        warn(
            f"max_seconds={seconds:g} is less than the {used:.2g} s that this fit took at least. The first run on a "
            "computer compiles the kernels, and caches them: that is part of it."
        )
