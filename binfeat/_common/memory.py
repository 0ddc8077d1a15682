"""How much memory there is, and refusing what would need more."""

import os
from contextlib import suppress
from pathlib import Path

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit():
    """Bytes this process may use at most: the machine's memory or its cgroup's limit; None if unknown."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # absent, or "max"
            limits.append(int(Path(path).read_text()))
    return min(limits, default=None)


def require_memory(n_bytes, what, remedy):
    """Refuse, before anything is allocated, what does not fit in memory.

    Raises
    ------
    MemoryError
        With the number of bytes, the limit, and what to change.
    """
    limit = memory_limit()
    if limit is not None and n_bytes > limit:
        raise MemoryError(f"{what} needs about {n_bytes:,} bytes and this machine has {limit:,}. {remedy}")
