"""Warnings at the end of a fit: misleading errors, and limits that were exceeded."""

import numpy as np

from binfeat._common.warned import warn
from binfeat.models.table.unique_rows import TableRows

_FEW_ROWS, _FEW_GRIDS = 5, 10
_MANY_CLASSES = 20  # of numbers with a decimal point
_COPIES = 0.1  # share of duplicate rows above which validation errors are unreliable
_LATE = 1.25  # times the limit


def doubt_rows(rows: TableRows, apart: bool) -> None:
    """Warn of a constant table, of few rows, or of many copies.

    Copies are harmless if the caller selects related rows or validation rows (`apart`).
    """
    if rows.are_equal:
        warn("All rows of X are equal, so predictions are constant. Pass inputs that differ between rows.")
        return
    if len(rows) < _FEW_ROWS:
        warn(
            f"{len(rows)} rows are too few to estimate length scales and the penalty; predictions may be unreliable. "
            "Fit the model to more rows."
        )
    if not apart and rows.share_of_copies > _COPIES and rows.are_fine:
        warn(
            f"{rows.share_of_copies:.0%} of the rows are copies of other rows, targets included, so validation errors "
            "can be too low. Drop the copies, or pass groups to fit, so that copies are in the same split."
        )


def doubt_classes(classes: np.ndarray, counts: np.ndarray) -> None:
    """Warn of a class of one row, by the counts of rows, or of numbers that are hardly labels."""
    if counts.min() == 1:
        lone = classes[counts == 1].tolist()
        warn(
            f"{len(lone)} of {classes.size} classes have a single row, for example {lone[0]!r}, and cannot be "
            "validated. Add rows, or drop or merge these classes."
        )
    if classes.dtype.kind == "f" and classes.size > _MANY_CLASSES:
        warn(
            f"y contains {classes.size} different floats, and each is treated as a class. To predict numbers use "
            "KernelMachineRegressor; pass classes as integers or strings."
        )


def doubt_grids(n_grids: int) -> None:
    """Warn of so few grids that predictions are hardly better than a constant."""
    if n_grids < _FEW_GRIDS:
        warn(f"Only {n_grids} grids fit into max_bytes, so predictions may be poor. Increase max_bytes.")


def doubt_limit(seconds: float | None, used: float) -> None:
    """Warn of a limit of time that could not be kept; `seconds` may be None."""
    if seconds is not None and used > _LATE * seconds:
        warn(
            f"max_seconds={seconds:g} was exceeded: the fit took {used:.2g} s. Increase max_seconds, or fit again if "
            "this was the first run on this computer, which compiles and caches kernels."
        )
