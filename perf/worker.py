"""One side of the gate: a process that runs micro cases on request, with the binfeat on its path.

A request is one line of JSON, ``{"case": "ridge", "threads": 1, "count": false}``. The reply is another line, with
"seconds" (and "counters" on request), or "error". The reply to a request without a case contains "signatures".
"""

import functools
import gc
import json
import sys
from contextlib import redirect_stdout
from time import perf_counter

import numba
from numba.core.registry import CPUDispatcher
from threadpoolctl import threadpool_limits

from perf import micro


@functools.cache
def _prepared(name):
    return micro.CASES[name].prepare()


def answer(request):
    """Run a case once, or count the signatures of kernels that were compiled or loaded."""
    if request["case"] is None:
        kernels = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
        ours = [each for each in kernels if each.py_func.__module__.startswith("binfeat.")]
        return {"signatures": sum(len(each.signatures) for each in ours)}
    numba.set_num_threads(request["threads"])
    with threadpool_limits(request["threads"]):
        call = _prepared(request["case"])
        gc.collect()
        start = perf_counter()
        result = call()
        seconds = perf_counter() - start
    counters = micro.CASES[request["case"]].count(result) if request["count"] else None
    return {"seconds": seconds, "counters": counters}


def main():
    replies = sys.stdout
    with redirect_stdout(sys.stderr):
        for line in sys.stdin:
            try:
                reply = answer(json.loads(line))
            except Exception as error:
                reply = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
