"""Speed limits of this processor: memory, products, look-ups, terms of the hash, cosines and sines."""

from perf.floors import rates
from perf.record import Row

_UNITS = {"memory": (1e-9, "GB/s"), "SGEMM": (1e-9, "GFLOP/s"), "DGEMM": (1e-9, "GFLOP/s")}


def run(quick):
    for name, seconds in rates(quick).items():
        scale, unit = next((found for key, found in _UNITS.items() if name.startswith(key)), (None, None))
        if unit is None:
            yield Row(name, 1e9 * seconds, unit="ns")
        else:
            yield Row(name, scale / seconds, unit=unit)
