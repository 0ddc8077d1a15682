"""The memory of the computer, and errors if work needs more."""

import ctypes
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit() -> int | None:
    """Return the memory of the computer in bytes, or the limit of the container (cgroup) if lower; None if unknown."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # file absent, or "max"
            limits.append(int(Path(path).read_text()))
    return min(limits, default=None)


def allowed_bytes(max_bytes: float | None, part: float) -> int | Any:  # infinity is a float
    """Return a limit in bytes: `max_bytes`, or the computer's memory divided by `part`."""
    if max_bytes is not None:
        return max_bytes
    limit = memory_limit()
    return math.inf if limit is None else limit // part


def give_back_memory() -> None:
    """Give freed memory back to the system. The GNU C library keeps up to 64 MB of it; others need no call."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def require_bytes(n_bytes: float, max_bytes: float | None, what: str, remedy: str) -> None:
    """Raise ValueError for work that needs more than `max_bytes`; use `require_memory` if that is None."""
    if max_bytes is None:
        require_memory(n_bytes, what, remedy)
    elif n_bytes > max_bytes:
        raise ValueError(f"max_bytes must be at least {n_bytes:,} for {what}; got {max_bytes:,}. {remedy}")


def require_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise MemoryError, with a remedy, for work that does not fit in memory, before anything is allocated."""
    limit = memory_limit()
    if limit is not None and n_bytes > limit:
        raise MemoryError(f"{what} needs about {n_bytes:,} bytes and this computer has {limit:,}. {remedy}")
