"""What calls take in memory."""

import gc
import tracemalloc


def peak_bytes(work):
    """The most bytes that a call holds beyond the bytes held before the call, and what the call returns."""
    gc.collect()
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()
