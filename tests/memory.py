"""What calls take in memory."""

import gc
import tracemalloc


def peak_bytes(work):
    """Most bytes that a call holds beyond those held before it, and what it returns."""
    gc.collect()
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()
