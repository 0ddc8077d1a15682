"""Memory of calls."""

import gc
import tracemalloc


def peak_bytes(work):
    """Return the peak memory of a call minus the memory before, and the result of the call."""
    gc.collect()
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()
