"""The gate: compare base and head, and report reasons to reject a change. See README.md in this folder."""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import partial

from perf import judge, micro, sides
from perf.measure import Times

THREADS = (1, 2) if (os.cpu_count() or 1) > 1 else (1,)
_ASKS = (
    "A shut gate asks that every failure above is removed: make slow cases as fast as base, make all cases run, and "
    "undo changed counters or give the reason for each in perf/accepted.txt, as a line 'CASE COUNTER: REASON'."
)


@dataclass(frozen=True)
class Comparison:
    """Result of the gate: failures as sentences, changed counters, and the measured times."""

    failures: list
    changes: dict  # from (case, counter) to the values in base and in head
    looks: list  # of dicts from (case, threads) to judge.Pair

    def as_dict(self):
        """Return the result for `json`."""
        return {
            "open": not self.failures,
            "failures": self.failures,
            "changes": [
                {"case": case, "counter": counter, "base": was, "head": now}
                for (case, counter), (was, now) in self.changes.items()
            ],
            "looks": [[_times(*key, pair) for key, pair in look.items()] for look in self.looks],
        }


def _times(name, threads, pair):
    seconds = {"base": pair.base.seconds, "head": pair.head.seconds}
    return {"case": name, "threads": threads, "ratio": pair.ratio, "lost": pair.lost, "seconds": seconds}


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m perf gate", description="Compare this tree with a revision.")
    parser.add_argument("base", metavar="BASE", help="revision to compare with, such as HEAD or main")
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"cases among {', '.join(micro.CASES)} (default: all)")
    parser.add_argument("--threshold", type=float, default=15.0, help="percent that is too slow (default: 15)")
    parser.add_argument("--json", action="store_true", help="print one JSON object; other output goes to stderr")
    parser.add_argument("--repository", default=sides.HEAD, help="git repository with BASE (default: this tree)")
    options = parser.parse_intermixed_args(arguments)
    unknown = [name for name in options.names if name not in micro.CASES]
    if unknown:
        parser.error(f"unknown case {', '.join(unknown)}; there are: {', '.join(micro.CASES)}")
    try:
        with redirect_stdout(sys.stderr) if options.json else nullcontext():
            with sides.both(options.base, options.repository) as (base, head):
                found = _compare(base, head, options.names or list(micro.CASES), options.threshold)
            _print_verdict(found.failures)
    except sides.GateError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(found.as_dict(), indent=1))
    return 1 if found.failures else 0


def _print_verdict(failures):
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"The gate is shut. {_ASKS}" if failures else "The gate is open.")


def _compare(base, head, names, threshold):
    """Compare cases of both sides."""
    if base.dependencies != head.dependencies:
        print("base names other dependencies; both sides run with those that are installed.")
    with ThreadPoolExecutor(2) as pool:  # compiling takes most of the time
        counted, errors = zip(*pool.map(lambda side: _count(side, names), (base, head)))
    failures = [f"{name} does not run: {error}" for name, error in errors[1].items()]
    for name, error in errors[0].items():
        print(f"{name} does not run in base, not compared: {error}")
    shared = [name for name in names if name not in errors[0] | errors[1]]
    comparable = [*shared, *(["all"] if shared == names else [])]
    own = [{key: value for key, value in counters.items() if key[0] in comparable} for counters in counted]
    failures += _changed(*own, judge.accepted(base.reasons, head.reasons))
    keys = [(name, threads) for name in shared for threads in THREADS]
    looks, slower = judge.twice_slower(keys, partial(_look, base, head), threshold)
    _print_looks(looks)
    what = "{} with {} threads is slower by more than {:g} % and {:g} ms, twice in a row"
    failures += [what.format(*key, threshold, 1e3 * judge.FLOOR) for key in slower]
    return Comparison(failures, judge.changes(*own), looks)


def _count(side, names):
    """Run each case once with each number of threads, which compiles it.

    Returns
    -------
    counters : dict of (case, counter) to int or str
        With one thread; signatures of kernels have the case "all".
    errors : dict of str to str
        For cases that fail.
    """
    counters, errors = {}, {}
    for name in names:
        replies = [side.ask(name, threads, count=threads == 1) for threads in THREADS]
        said = [reply["error"] for reply in replies if "error" in reply]
        if said:
            errors[name] = said[0]
        else:
            counters |= {(name, key): value for key, value in replies[0]["counters"].items()}
    return counters | {("all", "signatures"): side.n_signatures}, errors


def _changed(base, head, reasons):
    """Return sentences on counters that changed without a reason; print counters that changed with one."""
    failures = []
    for (case, counter), (was, now) in judge.changes(base, head).items():
        what = f"{case} {counter} changed from {was} to {now}"
        if (case, counter) in reasons:
            print(f"{what}: {reasons[case, counter]}")
        else:
            failures.append(f"{what}; if that is meant, say why in perf/accepted.txt: {case} {counter}: REASON")
    return failures


def _look(base, head, keys, rounds):
    """Measure both sides alternately; their processes end afterwards, so a second measurement uses new ones."""
    pairs = {key: _alternate(base, head, *key, rounds) for key in keys}
    for side in (base, head):
        side.stop()
    return pairs


def _alternate(base, head, name, threads, rounds):
    seconds = {base: [], head: []}
    for done in range(-1, rounds):
        for side in (base, head) if done % 2 else (head, base):
            reply = side.ask(name, threads)
            if "error" in reply:
                raise sides.GateError(f"{side.name} ran {name} before and does not now: {reply['error']}")
            if done >= 0:  # a new process first loads the compiled kernels
                seconds[side].append(reply["seconds"])
    return judge.Pair(*(Times(tuple(own)) for own in seconds.values()))


def _print_looks(looks):
    for number, look in enumerate(looks, 1):
        print(f"Look {number}, minimum in ms (median / minimum), ratio, rounds that head lost")
        for (name, threads), pair in look.items():
            times = " | ".join(f"{1e3 * own.best:8.2f} ({own.spread:.2f})" for own in (pair.base, pair.head))
            print(f"  {name:14} {threads} threads | base {times} head | {pair.ratio:.3f}x | {pair.lost:.0%}")
