"""Interrupts at any line, callbacks that raise, lack of memory: a complete estimator, or the previous one."""

import copy
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from callbacks import Callback
from hard import easy
from sklearn.exceptions import NotFittedError

import binfeat

PACKAGE = str(Path(binfeat.__file__).parent)
LONG = int(os.environ.get("BINFEAT_INTERRUPTS", "5"))  # interrupts of each call


class Lines:
    """Count executed lines of the package's Python code, and raise KeyboardInterrupt at one of them.

    Locks are excluded, because signals arrive only after calls there; see test_threads.py.
    """

    _LOCKED = "_Pool.use", "_BlasLimits._set"

    def __init__(self, stop=None):
        self.stop, self.n = stop, 0

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *error):
        sys.settrace(self._before)

    def _on_call(self, frame, event, argument):
        code = frame.f_code
        own = code.co_filename.startswith(PACKAGE) and code.co_qualname not in self._LOCKED
        return self._on_line if own else None

    def _on_line(self, frame, event, argument):
        if event == "line":
            self.n += 1
            if self.n == self.stop:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._on_line


def table(seed, n_inputs):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n_inputs))
    return X, (X[:, 0] > 0).astype(int)


FIRST, SECOND = table(0, 3), table(1, 4)
FOURIER = binfeat.RandomFourier(n_components=8, random_state=0)
UNION = binfeat.RandomFeatureUnion([("bins", binfeat.RandomBinning(n_grids=3, random_state=0)), ("fourier", FOURIER)])
MACHINE = {"solver_params": {"n_grids": 5, "max_grids": 8}, "random_state": 0}
CALLS = {
    "binning": (binfeat.RandomBinning(n_grids=3, random_state=0), "fit"),
    "binning, rare bins": (binfeat.RandomBinning(n_grids=3, min_count=2, random_state=0), "fit_transform"),
    "binning, hashed": (binfeat.RandomBinning(n_grids=3, n_features=100, random_state=0), "fit"),
    "fourier": (FOURIER, "fit"),
    "fastfood": (binfeat.RandomFourier(n_components=8, sampler="fastfood", phase="offset", random_state=0), "fit"),
    "union": (UNION, "fit"),
    "union, both": (UNION, "fit_transform"),
    "ridge": (binfeat.CGRidge(), "fit"),
    "path": (binfeat.CGRidge(alphas=[0.1, 1.0, 10.0], tol=1e-8, random_state=0), "fit"),
    "early stop": (binfeat.CGRidgeClassifier(early_stopping=True, random_state=0), "fit"),
    "hinge": (binfeat.CGRidgeClassifier(loss="squared_hinge"), "fit"),
    "model": (binfeat.KernelMachineRegressor(**MACHINE), "fit"),
    "exact": (binfeat.KernelMachineRegressor(features="exact", gamma="scale", random_state=0), "fit"),
    "classifier": (binfeat.KernelMachineClassifier(features="binning", gamma="scale", **MACHINE), "fit"),
}


def answer(estimator, X):
    """Return the result of the estimator for rows, or the name of the error."""
    method = getattr(estimator, "transform", None) or estimator.predict
    try:
        Z = method(X)
    except (NotFittedError, ValueError) as error:
        return type(error).__name__
    return Z.toarray() if hasattr(Z, "toarray") else Z


def same(a, b):
    return a == b if isinstance(a, str) and isinstance(b, str) else np.array_equal(a, b)


@pytest.fixture
def small_searches(limits):
    limits(n_steps=5, sample_grids=(5, 20), n_fourier=16)


def moments(n_lines, seed):
    return sorted(random.Random(seed).sample(range(1, n_lines + 1), min(LONG, n_lines)))


@pytest.mark.parametrize(
    ("name", "refit"),
    easy(product(CALLS, [False, True]), *((name, len(name) % 2 == 1) for name in CALLS if name != "model")),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("small_searches")
def test_interrupts_leave_all_or_nothing(name, refit):
    made, method = CALLS[name]

    def fresh():
        estimator = made.__class__(**made.get_params(deep=False))
        return estimator.fit(*FIRST) if refit else estimator

    before = [answer(fresh(), X) for X, _ in (FIRST, SECOND)]
    with Lines() as lines:
        getattr(fresh(), method)(*SECOND)
    after = [answer(fresh().fit(*SECOND), X) for X, _ in (FIRST, SECOND)]
    n_kept = 0
    for moment in moments(lines.n, len(name) + refit):
        estimator = fresh()
        with Lines(moment), suppress(KeyboardInterrupt):
            getattr(estimator, method)(*SECOND)
        found = [answer(estimator, X) for X, _ in (FIRST, SECOND)]
        if getattr(estimator, "status_", None) == "interrupted":
            n_kept += 1
            assert np.shape(found[1]) == np.shape(after[1])
            continue
        whole = [all(map(same, found, either)) for either in (before, after)]
        assert any(whole), f"line {moment} of {lines.n}: {found}"
    assert n_kept <= LONG


@pytest.mark.parametrize("name", ["binning", "fourier", "ridge", "model", "exact"])
@pytest.mark.usefixtures("small_searches")
def test_interrupts_of_predictions_change_nothing(name):
    made, _ = CALLS[name]
    fitted = made.__class__(**made.get_params(deep=False)).fit(*FIRST)
    expected = answer(copy.deepcopy(fitted), FIRST[0])
    estimator = copy.deepcopy(fitted)
    with Lines() as lines:
        answer(estimator, FIRST[0])
    for moment in moments(lines.n, 7):
        estimator = copy.deepcopy(fitted)
        with Lines(moment), pytest.raises(KeyboardInterrupt):
            answer(estimator, FIRST[0])
        assert same(answer(estimator, FIRST[0]), expected)


@pytest.fixture
def listening():
    """Handle signals as in a terminal: processes started in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def ctrl_c_after(seconds):
    """Send a real signal, as Ctrl-C does."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
        timer.join()
        time.sleep(0.01)  # a late signal arrives here
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX signals")
@pytest.mark.usefixtures("listening")
def test_real_ctrl_c_at_random_moments():
    """Arrays are large enough for threads."""
    X = np.random.default_rng(0).normal(size=(40_000, 5))
    binning = binfeat.RandomBinning(gamma=0.5, n_grids=32, random_state=0, output="codes").fit(X)
    expected = binning.transform(X).codes
    start = time.perf_counter()
    binning.transform(X)
    seconds = time.perf_counter() - start
    seen = 0
    for moment in np.random.default_rng(1).uniform(0, 2 * seconds, LONG):
        try:
            with ctrl_c_after(moment):
                binning.fit(X)
                binning.transform(X)
        except KeyboardInterrupt:
            seen += 1
        np.testing.assert_array_equal(binning.transform(X).codes, expected)
    assert seen


@pytest.mark.parametrize("name", ["ridge", "model"])
def test_callbacks_that_raise_leave_the_estimator_as_it_was(name):
    made, _ = CALLS[name]
    estimator = made.__class__(**made.get_params(deep=False)).fit(*FIRST)
    expected = answer(estimator, FIRST[0])
    estimator.set_callbacks(Callback(fail_at=1, error=ZeroDivisionError("in a callback")))
    with pytest.raises(ZeroDivisionError):
        estimator.fit(*SECOND)
    assert same(answer(estimator, FIRST[0]), expected)


STARVED = """
import resource, sys
import numpy as np
import binfeat
rng = np.random.default_rng(0)
X = rng.normal(size=(100_000, 4))
binning = binfeat.RandomBinning(gamma=0.3, n_grids=8, n_jobs=1, random_state=0)
model = binfeat.CGRidge()
small = binning.fit_transform(X)
model.fit(small, X[:, 0])
before = model.predict(small)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**26, resource.RLIM_INFINITY))
refused = 0
for call in (lambda: binning.set_params(n_grids=400).fit(X), lambda: binning.transform(np.tile(X, (20, 1))),
             lambda: model.fit(np.ones((100_000, 300)), X[:, 0])):
    try:
        call()
    except MemoryError:
        refused += 1
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert np.array_equal(model.predict(small), before)
assert (binning.set_params(n_grids=8).transform(X) != small).nnz == 0
print("refused", refused)
"""


@pytest.mark.hard
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits a child's memory")
def test_out_of_memory_in_a_child():
    run = subprocess.run([sys.executable, "-c", STARVED], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["refused", "3"], run.stderr
