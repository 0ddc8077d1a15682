"""Parallel kernels: the lock, forks, and the number of threads."""

import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
import threadpoolctl
from hard import hard

from binfeat import RandomBinning, _threads

pytestmark = pytest.mark.engine


def test_thread_count(threads):
    available = numba.config.NUMBA_NUM_THREADS
    assert _threads.thread_count(None) == numba.get_num_threads()
    assert _threads.thread_count(1) == 1
    assert _threads.thread_count(10_000) == available
    assert _threads.thread_count(-1) == available
    assert _threads.thread_count(-10_000) == 1
    threads(1)
    assert _threads.thread_count(None) == 1
    with pytest.raises(ValueError, match=r"n_jobs must be None, .* got 0"):
        _threads.thread_count(0)
    for wrong in ("a", 1.5):
        with pytest.raises(TypeError, match=rf"n_jobs must be None or an integer, got {wrong!r}"):
            _threads.thread_count(wrong)


THREADS = "from binfeat import _threads\n"
WAITING_THREADS = f"""{THREADS}
import os

before = dict(os.environ)
_threads.thread_count(None)
print(all(os.environ.get(name) == before.get(name) for name in _threads._WAITING))
"""


@pytest.mark.parametrize(
    ("variables", "tries"),
    [({}, _threads._FEW_TRIES), *hard(({"GOMP_SPINCOUNT": "77"}, "77"), ({"OMP_WAIT_POLICY": "passive"}, "0"))],
)
def test_threads_wait_for_work_as_the_user_says_or_shortly(variables, tries):
    kept = {name: value for name, value in os.environ.items() if name not in _threads._WAITING}
    shown = {**kept, **variables, "OMP_DISPLAY_ENV": "verbose", "NUMBA_THREADING_LAYER": "omp"}
    run = subprocess.run([sys.executable, "-c", WAITING_THREADS], capture_output=True, text=True, check=True, env=shown)
    found = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", run.stderr)
    if not found:
        pytest.skip("Numba's threads are not those of GNU OpenMP.")
    assert tries in found
    assert run.stdout.startswith("True")


THREADS_UNDER_LIMIT = f"""{THREADS}
import threadpoolctl

def blas():
    return max(blas.num_threads for blas in _threads._blas().lib_controllers)

with threadpoolctl.threadpool_limits(4, "blas"):
    set_to = blas()
    with _threads.blas_threads(None):
        threads = _threads.thread_count(None)
        print(threads, _threads.thread_count(-1), _threads.thread_count(-2), blas() == min(set_to, threads))
"""


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"LOKY_MAX_CPU_COUNT": "1"}, "1 1 1 True"),  # like a cgroup of half a core
        *hard(({"LOKY_MAX_CPU_COUNT": "1", "NUMBA_NUM_THREADS": "3"}, "3 3 2 True")),
    ],
)
def test_number_of_threads_follows_the_limit_of_the_process(variables, expected):
    """It is not the number of cores, unless NUMBA_NUM_THREADS sets it; BLAS has no more threads either."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_NUM_THREADS"} | variables
    command = [sys.executable, "-c", THREADS_UNDER_LIMIT]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert result.stdout.strip() == expected


def test_little_work_is_done_by_one_thread(monkeypatch):
    monkeypatch.setattr(_threads._pool, "use", lambda *_: pytest.fail("threads for little work"))
    RandomBinning(n_grids=3, gamma=0.1).fit([[0.0], [1.0]])


def test_number_of_threads_is_restored(rng, threads):
    threads(1)
    RandomBinning(n_jobs=2, n_grids=3, gamma=0.1).fit(rng.normal(size=(50, 2)))
    assert numba.get_num_threads() == 1


def is_free():
    return _threads._pool.use(lambda: True, lambda: False)


def while_taken(call, here):
    """Return the outcome of a call while another thread, or this one, owns Numba's threads."""

    def hold():
        if here:
            return call()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(call).result()

    return _threads._pool.use(hold, lambda: pytest.fail("the right is taken"))


@pytest.mark.parametrize("here", [False, True])
def test_serial_twin_runs_while_the_right_is_taken(rng, threads, here):
    X = rng.normal(size=(2000, 3))

    def features():
        return RandomBinning(n_grids=5, gamma=0.1, random_state=0).fit_transform(X)

    expected = features()
    assert is_free()
    assert not while_taken(is_free, here)
    assert (expected != while_taken(features, here)).nnz == 0
    assert is_free()


class InterruptedLock:
    """A lock with Ctrl-C after one of its calls, where CPython handles signals."""

    def __init__(self, after):
        self.lock, self.after = threading.RLock(), after
        self.notify = threading.Condition(self.lock).notify

    def acquire(self, blocking):
        taken = self.lock.acquire(blocking=blocking)
        self.interrupt("acquire")
        return taken

    def release(self):
        self.lock.release()
        self.interrupt("release")

    def interrupt(self, after):
        if self.after == after:
            self.after = None
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", ["acquire", "release"])
def test_ctrl_c_leaves_the_right_to_others(after):
    pool = _threads._Pool()
    pool._lock = InterruptedLock(after)
    with pytest.raises(KeyboardInterrupt):
        pool.use(lambda: True, lambda: False)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(pool.use, lambda: True, lambda: False).result()


SIGNALS = f"""{THREADS}
import signal
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import threadpoolctl

def is_free():
    return _threads._pool.use(lambda: True, lambda: False)

def threads_of_blas():
    return {{blas.num_threads for blas in _threads._blas().lib_controllers}}

def limit_blas():
    with _threads.one_blas_thread():
        return threads_of_blas()

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
limited, seen = threadpoolctl.threadpool_limits(2, "blas"), 0
with ThreadPoolExecutor(1) as other:
    for moment in np.random.default_rng(0).uniform(1e-6, 4e-4, 1000):
        try:
            signal.setitimer(signal.ITIMER_REAL, moment)
            while True:
                ATTACKED()
        except KeyboardInterrupt:
            seen += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert other.submit(is_free).result(timeout=60)
        other.submit(limit_blas).result(timeout=60)
        assert (limit_blas(), threads_of_blas()) == ({{1}}, {{2}})
assert seen == 1000, seen
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("attacked", ["is_free", *hard("limit_blas")])
def test_real_signals_leave_the_threads_to_others(attacked):
    """It runs in a new process, because coverage in this one has locks, too."""
    subprocess.run([sys.executable, "-c", SIGNALS.replace("ATTACKED", attacked)], check=True, timeout=120)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="without JIT, threads wait for the interpreter")
def test_many_python_threads(rng, threads):
    X = rng.normal(size=(3000, 4))
    expected = RandomBinning(n_grids=8, gamma=0.1, random_state=0).fit_transform(X)
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        return [RandomBinning(n_grids=8, gamma=0.1, random_state=0).fit_transform(X) for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(work, range(8)):
            assert all((expected != Z).nnz == 0 for Z in results)


def transform_in_child(binning, X, queue):
    queue.put(binning.transform(X).indices)


@pytest.mark.skipif(not hasattr(multiprocessing, "get_context") or sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_forked_child_runs_serial(rng, threads):
    X = rng.normal(size=(2000, 3))
    binning = RandomBinning(n_grids=5, gamma=0.1, random_state=0).fit(X)
    expected = binning.transform(X).indices
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=transform_in_child, args=(binning, X, queue))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=120), expected)
    child.join(timeout=60)
    assert child.exitcode == 0


def test_after_fork_only_if_threads_were_used():
    pool = _threads._Pool()
    for expected in (True, False):
        pool.after_fork()
        assert pool.use(lambda: True, lambda: False) is expected


PAIR = min(2, numba.config.NUMBA_NUM_THREADS)


def shared(n_blocks, n_jobs, size=10**9, parties=1, fail_at=None):
    """Return each block with its thread and BLAS's threads meanwhile; `parties` threads must take part."""
    done, begun = [], threading.Barrier(parties)

    def work(blocks):
        for i, block in enumerate(blocks):
            if i == 0:
                begun.wait(timeout=60)
            if block == fail_at:
                raise RuntimeError(f"block {block}")
            done.append((block, threading.get_ident(), [blas["num_threads"] for blas in _threads._blas().info()]))

    _threads.share_blocks(work, range(n_blocks), size, n_jobs)
    return done


def test_blocks_are_shared_and_blas_has_one_thread_in_each():
    before = _threads._blas().info()
    done = shared(50, 2, parties=PAIR)
    assert sorted(block for block, _, _ in done) == list(range(50))
    assert len({thread for _, thread, _ in done}) == PAIR
    if PAIR > 1:
        assert all(n == 1 for _, _, blas in done for n in blas)
    assert _threads._blas().info() == before


@pytest.mark.parametrize("fail_at", range(4))
def test_an_error_in_any_block_is_raised(fail_at):
    before = _threads._blas().info()
    with pytest.raises(RuntimeError, match=f"block {fail_at}"):
        shared(4, 2, parties=PAIR, fail_at=fail_at)
    assert _threads._blas().info() == before
    assert is_free()


@pytest.mark.parametrize(("n_blocks", "n_jobs", "size"), [(3, 2, 1000), (3, 1, 10**9), (0, 2, 10**9), (1, 2, 10**9)])
def test_few_blocks_are_done_by_the_caller(n_blocks, n_jobs, size):
    before = [blas["num_threads"] for blas in _threads._blas().info()]
    blas = [1] * len(before) if n_jobs == 1 else before
    expected = [(block, threading.get_ident(), blas) for block in range(n_blocks)]
    assert shared(n_blocks, n_jobs, size) == expected


@pytest.mark.parametrize("here", [False, True])
def test_blocks_are_done_by_the_caller_while_the_right_is_taken(here):
    """With one thread of BLAS, as in several threads."""
    done = while_taken(lambda: shared(5, 2), here)
    assert [block for block, _, _ in done] == list(range(5))
    assert len({thread for _, thread, _ in done}) == 1
    if PAIR > 1:
        assert all(n == 1 for _, _, blas in done for n in blas)


def warm_up_in_child(serial, threaded, out, queue):
    with _threads.every_version():
        _threads.run_kernel(serial, threaded, (out,), out.size, None)
    queue.put((out.tolist(), len(threaded.signatures)))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.skipif(not hasattr(multiprocessing, "get_context") or sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_compiles_both_versions_and_runs_the_serial_one(rng, threads):
    RandomBinning(n_grids=5, gamma=0.1).fit(rng.normal(size=(2000, 3)))  # in threads, before the fork

    @numba.njit
    def serial(out):
        for i in range(out.size):
            out[i] += 1

    @numba.njit(parallel=True)
    def threaded(out):
        for i in numba.prange(out.size):
            out[i] += 10

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=warm_up_in_child, args=(serial, threaded, np.zeros(2), queue))
    child.start()
    child.join(timeout=60)
    assert child.exitcode == 0
    assert queue.get(timeout=60) == ([1.0, 1.0], 1)


def test_works_without_any_place_for_a_cache(tmp_path):
    code = (
        "import numba.core.caching as caching\n"
        "for owner in vars(caching).values():\n"
        "    if hasattr(owner, '_locator_classes'):\n"
        "        owner._locator_classes = []\n"
        "from numba import njit\n"
        "import numpy as np\n"
        "from binfeat._engine import policy\n"
        "@policy.jit\n"
        "def double(x):\n"
        "    return 2 * x\n"
        "print(double(21.0))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "42.0", run.stderr


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_items_side_by_side(threads, n_jobs):
    """Each item is processed once, with one thread for BLAS."""
    threads(2)
    done = []
    _threads.side_by_side(done.append, range(5), n_jobs)
    assert sorted(done) == list(range(5))
    with _threads.one_blas_thread():
        assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"} <= {1}


def blas_now():
    return {pool["num_threads"] for pool in _threads._blas().info()}


@pytest.fixture
def two_for_blas():
    """Set BLAS to two threads, for any environment."""
    with threadpoolctl.threadpool_limits(2, "blas"):
        if blas_now() != {2}:
            pytest.skip("BLAS has one thread only")
        yield


@pytest.mark.parametrize(("n_jobs", "expected"), [(1, {1}), (2, {2}), (None, {2})])
def test_blas_keeps_to_n_jobs(threads, two_for_blas, n_jobs, expected):
    with _threads.blas_threads(n_jobs):
        assert blas_now() == expected
    assert blas_now() == {2}


def test_any_thread_limits_blas(two_for_blas):
    """One after the other: OpenBLAS does not belong to the first of them."""

    def limited():
        with _threads.one_blas_thread():
            by_one = blas_now()
        with _threads.blas_threads(1):
            return by_one | blas_now(), threading.get_ident()

    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        seen = [limited(), *(pool.submit(limited).result() for pool in (first, second, first)), limited()]
    assert [threads for threads, _ in seen] == [{1}] * 5
    assert len({caller for _, caller in seen}) == 3
    assert blas_now() == {2}


def test_limits_of_blas_side_by_side_last_until_the_last_has_ended(two_for_blas):
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(_threads.one_blas_thread())
        second.enter_context(_threads.one_blas_thread())
        first.close()
        assert blas_now() == {1}
        second.close()
        assert blas_now() == {2}


def test_a_fork_leaves_limits_of_other_threads_behind(two_for_blas):
    limits = _threads._BlasLimits()
    with ThreadPoolExecutor(1) as other, contextlib.ExitStack() as never_ends:
        other.submit(never_ends.enter_context, limits.limit(1)).result()
        limits.after_fork()
        with limits.limit(1):
            assert blas_now() == {1}
        assert blas_now() == {2}


def test_small_matrices_are_factorized_by_one_thread():
    before = [blas["num_threads"] for blas in _threads._blas().info()]
    for n, expected in ((10, [1] * len(before)), (5000, before)):
        with _threads.threads_to_factorize(n):
            assert [blas["num_threads"] for blas in _threads._blas().info()] == expected
    assert [blas["num_threads"] for blas in _threads._blas().info()] == before
