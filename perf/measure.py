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
    """Seconds of every round."""

    seconds: tuple[float, ...]

    @property
    def best(self):
        return min(self.seconds)

    @property
    def spread(self):
        """Median over minimum."""
        return statistics.median(self.seconds) / self.best


def stopwatch(call):
    """Timer of a call: a function that runs it once and returns its seconds."""

    def seconds():
        gc.collect()
        start = perf_counter()
        _result = call()  # held, so that its release is not timed
        return perf_counter() - start

    return seconds


def new_process(statement, setup="pass", environment=None):
    """Timer of a statement in a new interpreter; neither its start nor `setup` is timed.

    Parameters
    ----------
    statement, setup : str
    environment : dict of str to str, default=None
        Variables that differ from those of this process.
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
    """Run timers in rounds, so that a slow minute of the computer falls on all of them.

    Parameters
    ----------
    timers : dict of str to callable
        Each returns the seconds of one run; see `stopwatch` and `new_process`.
    repeats : int or dict of str to int
        How often each timer runs. Fewer runs are spread over the rounds. A timer that runs more than once also runs
        once before, unmeasured.

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
    """Bytes of the arrays of features: dense, CSR or codes."""
    return sum(part.nbytes for part in ((Z.data, Z.indices, Z.indptr) if sparse.issparse(Z) else (Z,)))


def peak_memory(prepare, *arguments):
    """Peak memory of a call in a new process, beyond what the process held before.

    Parameters
    ----------
    prepare : function of a module
        Loads the input, runs the call once on a small input so that everything is imported and compiled, and
        returns the call.
    *arguments
        Of `prepare`.

    Returns
    -------
    n_bytes : int or None
        None where the system does not say: it takes Linux's /proc.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_peak_here, prepare, arguments).result()


def _peak_here(prepare, arguments):
    return with_peak(prepare(*arguments))[1]


def with_peak(call):
    """What a call returns, and its peak memory in this process beyond what was held before; see `peak_memory`."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to what is held now
    except OSError:
        return call(), None
    before = _peak_so_far()
    result = call()
    return result, _peak_so_far() - before


def _peak_so_far():
    # Not getrusage's ru_maxrss: a child starts with its parent's.
    status = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
