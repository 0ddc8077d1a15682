"""Seconds in interleaved rounds and in new processes; peak memory."""

import gc
import multiprocessing
import os
import statistics
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from scipy import sparse


@dataclass(frozen=True)
class Times:
    """Seconds of each round."""

    seconds: tuple[float, ...]

    @property
    def best(self):
        return min(self.seconds)

    @property
    def spread(self):
        """Median divided by minimum."""
        return statistics.median(self.seconds) / self.best


def stopwatch(call):
    """Return a timer of a call: a function that runs it once and returns its seconds."""

    def seconds():
        gc.collect()
        start = perf_counter()
        _result = call()  # kept, so that its release is not timed
        return perf_counter() - start

    return seconds


def new_process(statement, setup="pass", environment=None):
    """Return a timer of a statement in a new interpreter; neither its start nor `setup` is timed.

    Parameters
    ----------
    statement, setup : str
    environment : dict of str to str, default=None
        Variables that differ from the environment of this process.
    """
    script = (
        f"from time import perf_counter\n{setup}\nstart = perf_counter()\n{statement}\nprint(perf_counter() - start)"
    )

    def seconds():
        own = os.environ | (environment or {})
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True, env=own)
        return float(done.stdout.splitlines()[-1])

    return seconds


def interleave(timers, repeats):
    """Run timers in rounds, so that a slow minute of the computer affects all of them.

    Parameters
    ----------
    timers : dict of str to callable
        Timers; see `stopwatch` and `new_process`.
    repeats : int or dict of str to int
        Number of runs of each timer. Fewer runs are spread over the rounds. A timer with several runs first runs once
        without being measured.

    Returns
    -------
    times : dict of str to Times
    """
    if isinstance(repeats, int):
        repeats = dict.fromkeys(timers, repeats)
    for name, timer in timers.items():
        if repeats[name] > 1:
            timer()
    rounds = max(repeats[name] for name in timers)
    seconds = {name: [] for name in timers}
    for done in range(rounds):
        for name, timer in timers.items():
            if (done + 1) * repeats[name] // rounds > done * repeats[name] // rounds:
                seconds[name].append(timer())
    return {name: Times(tuple(own)) for name, own in seconds.items()}


def bytes_of(Z):
    """Return the bytes of features: dense, CSR or codes."""
    return sum(part.nbytes for part in ((Z.data, Z.indices, Z.indptr) if sparse.issparse(Z) else (Z,)))


def peak_memory(prepare, *arguments):
    """Return the peak memory of a call in a new process, minus its memory before.

    Parameters
    ----------
    prepare : function of a module
        Loads the input, runs the call once on a small input so that everything is imported and compiled, and
        returns the call.
    *arguments
        Arguments of `prepare`.

    Returns
    -------
    n_bytes : int or None
        None on systems without Linux's /proc.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_peak_here, prepare, arguments).result()


def _peak_here(prepare, arguments):
    return with_peak(prepare(*arguments))[1]


def with_peak(call):
    """Return the result of a call and its peak memory in this process; see `peak_memory`."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current memory
    except OSError:
        return call(), None
    before = _peak_so_far()
    result = call()
    return result, _peak_so_far() - before


def _peak_so_far():
    # Not ru_maxrss of getrusage, because a child process starts with the value of its parent.
    status = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
