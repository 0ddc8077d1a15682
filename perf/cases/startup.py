"""Import and first calls in new processes, kernels cached and not; number of compiled signatures."""

from pathlib import Path
from tempfile import TemporaryDirectory

from perf.measure import Times, interleave, new_process
from perf.record import Row
from perf.suite import guarded

_TABLE = "import numpy as np; X = np.random.default_rng(0).normal(size=(1_000, 10)); y = X[:, 0] > 0"
_MAP = "RandomBinning().fit_transform(X)"
_MODEL = "KernelMachineClassifier(solver_params={'max_grids': 32}, random_state=0).fit(X, y).predict(X)"


def run(quick):
    yield from guarded("cached", _cached, quick)
    if not quick:
        yield from guarded("cold, the map", _cold, "fit_transform", "RandomBinning", _MAP, 3)
        yield from guarded("cold, the kernel model", _cold, "model", "KernelMachineClassifier", _MODEL, 1)


def _setup(name):
    return f"{_TABLE}; from binfeat import {name}"


def _cached(quick):
    timers = {
        "ours": new_process("import binfeat; binfeat.RandomBinning; binfeat.CGRidge"),
        "sklearn": new_process("import sklearn.linear_model"),
        "first": new_process(_MAP, _setup("RandomBinning")),
        "import and first": new_process(f"from binfeat import RandomBinning; {_MAP}", _TABLE),
    }
    if not quick:
        timers["model"] = new_process(_MODEL, _setup("KernelMachineClassifier"))
    times = interleave(timers, 1 if quick else 9)
    yield Row("import / sklearn.linear_model", times["ours"], times["sklearn"], ("<=", 1.3))
    yield Row("fit_transform, first call in a new process, cached", times["first"], reach=("<=", 0.3))
    yield Row("import and fit_transform, cached", times["import and first"])
    if not quick:
        yield Row("model, first fit and predict in a new process, cached", times["model"])


def _cold(what, name, statement, repeats):
    """Yield the seconds of a call with an empty cache, and the number of signatures that it compiles."""
    seconds, compiled = [], set()
    for _ in range(repeats):
        with TemporaryDirectory() as cache:
            seconds.append(new_process(statement, _setup(name), {"NUMBA_CACHE_DIR": cache})())
            compiled.add(sum(1 for _ in Path(cache).rglob("*.nbc")))
    yield Row(f"{what}, first call, not cached", Times(tuple(seconds)))
    if len(compiled) > 1:
        raise RuntimeError(f"The same call compiled {sorted(compiled)} signatures.")
    yield Row(f"{what}, compiled signatures", compiled.pop(), unit="")
