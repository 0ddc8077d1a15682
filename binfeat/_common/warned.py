"""Warnings that point to the caller's line."""

import sys
import warnings


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line that called binfeat, also if it did so through scikit-learn."""
    warnings.warn(message, category, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return the `stacklevel` for a warning that points outside binfeat and scikit-learn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("binfeat", "numpy", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level
