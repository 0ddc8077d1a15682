"""Thread pools of Numba and BLAS: the number of threads of a call, and access to them."""

import functools
import numbers
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import numba
from threadpoolctl import LibController, ThreadpoolController

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


_MANY_COLUMNS = 2500  # columns of a matrix that several threads factorize faster
_SPINS = "GOMP_SPINCOUNT"
_WAITING = _SPINS, "OMP_WAIT_POLICY"
_FEW_TRIES = "10000"  # fewer spins cost 5 % if parallel regions are short
_WORTH_THREADS = 2**17  # elements; fewer take less time than the wait for a busy core


class _Pool:
    """Access to Numba's threads: one caller at a time, none after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Condition()  # its lock knows its owner
        self._used = False
        self._forked = False

    def use(self, in_threads: Callable[[], _Result], serially: Callable[[], _Result]) -> _Result:
        """Call `in_threads`, or `serially` after a fork and while another thread or an enclosing call uses the threads.

        Ctrl-C can arrive after any call. So the lock knows its owner, it is acquired within the ``try``, and the first
        call in ``finally`` is its `release`, which fails for a thread that does not own it.
        """
        if self._forked or self._is_callers():
            return serially()
        release = self._lock.release
        try:
            if self._lock.acquire(blocking=False):
                self._used = True
                return in_threads()
        finally:
            try:  # noqa: SIM105
                release()
            except RuntimeError:
                pass
        return serially()

    def _is_callers(self) -> bool:
        try:
            self._lock.notify()  # nothing waits for it
        except RuntimeError:
            return False
        return True

    def after_fork(self) -> None:
        # The threads of the parent do not exist in the child: OpenMP kills a child that uses them.
        self._lock = threading.Condition()
        self._forked = self._used


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.after_fork)


@functools.cache
def _cores() -> int:
    """Return the number of cores for this process, by affinity and cgroup. Numba considers only the affinity."""
    from joblib import cpu_count  # imported late because it takes a tenth of a second

    config = vars(numba.config)
    threads, by_default = config["NUMBA_NUM_THREADS"], config["NUMBA_DEFAULT_NUM_THREADS"]
    return cpu_count() if threads == by_default else threads  # the user has set NUMBA_NUM_THREADS


@functools.cache
def _start_threads() -> None:
    """Let Numba load its threads, with few spins, so that idle threads soon release their cores.

    By default, threads of GNU OpenMP spin for a millisecond. The variable is read when they are loaded. A value set by
    the user is kept.
    """
    is_open = not any(name in os.environ for name in _WAITING)
    if is_open:
        os.environ[_SPINS] = _FEW_TRIES
    try:
        numba.get_num_threads()
    finally:
        if is_open:
            os.environ.pop(_SPINS, None)  # another thread may have removed it


def _numba_threads() -> int:
    """Return Numba's current number of threads."""
    _start_threads()
    return numba.get_num_threads()


def thread_count(n_jobs: object) -> int:
    """Return the number of threads for `n_jobs`.

    None is Numba's current number, -1 all threads; both are at most one per core.

    Raises
    ------
    TypeError, ValueError
        If `n_jobs` is not an integer, or 0.
    """
    if n_jobs is None:
        return min(_numba_threads(), _cores())
    if not isinstance(n_jobs, numbers.Integral):
        raise TypeError(f"n_jobs must be None or an integer, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs must be None, a positive integer, or negative to count back from all threads; got 0.")
    wanted, available = int(n_jobs), vars(numba.config)["NUMBA_NUM_THREADS"]
    return max(1, min(wanted, available) if wanted > 0 else min(available, _cores()) + 1 + wanted)


_every_version = ContextVar("every_version", default=False)


@contextmanager
def every_version() -> Iterator[None]:
    """Also compile the threaded version of each parallel kernel that runs in this context.

    It is compiled without a run, because a forked child, or a thread without access, must not use Numba's threads.
    """
    token = _every_version.set(True)
    try:
        yield
    finally:
        _every_version.reset(token)


def with_threads(n: int, function: Callable[..., _Result], arguments: tuple) -> _Result:
    """Call a function with this number of Numba's threads, which is set for the calling thread only."""
    before = _numba_threads()
    if n == before:
        return function(*arguments)
    try:
        numba.set_num_threads(n)
        return function(*arguments)
    finally:
        numba.set_num_threads(before)


def run_kernel(
    serial: Callable[..., _Result],
    threaded: Any,  # a dispatcher of Numba
    arguments: tuple,
    size: int,
    n_jobs: int | None,
) -> _Result:
    """Call the threaded version of a kernel, or the serial one for one thread, little work, or without access."""
    is_small = size < _WORTH_THREADS
    threads = 1 if is_small and n_jobs is None else thread_count(n_jobs)
    if _every_version.get() and not vars(numba.config)["DISABLE_JIT"]:
        threaded.compile(tuple(map(threaded.typeof_pyval, arguments)))
    if is_small or threads == 1:
        return serial(*arguments)
    return _pool.use(lambda: with_threads(threads, threaded, arguments), lambda: serial(*arguments))


@functools.cache
def _loaded_blas(with_scipy: bool) -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def _blas() -> ThreadpoolController:
    """Return the BLAS libraries of this process; SciPy and NumPy have different ones."""
    return _loaded_blas("scipy.linalg" in sys.modules)


def _set_threads(blas: LibController, threads: int) -> None:
    """Set the number of threads of a library.

    For OpenBLAS, threadpoolctl accepts only one controlling Python thread, so it is released.
    """
    blas.set_num_threads(threads)
    if hasattr(blas, "clear_controlling_thread"):  # OpenBLAS, since threadpoolctl 3.8
        blas.clear_controlling_thread()


class _Caller:
    """A caller that limits BLAS's threads, while the limit lasts."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class _BlasLimits:
    """Limits of concurrent callers on BLAS's threads: the lowest one applies, until the last caller ends.

    The whole process shares the setting, so callers that restored the previous value could restore the limits of
    others. If Ctrl-C prevents a caller from removing its limit, the limit ends with the caller.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits = weakref.WeakKeyDictionary[_Caller, int]()
        self._before: dict[str, int] = {}  # threads of each library without limits

    @contextmanager
    def limit(self, threads: int) -> Iterator[None]:
        """Limit BLAS to this number of threads in this context."""
        caller = _Caller()
        try:
            self._set(self._limits.__setitem__, caller, threads)
            yield
        finally:
            self._set(self._limits.pop, caller, None)

    def _set(self, change: Callable[..., object], *arguments: object) -> None:
        with self._lock:
            change(*arguments)
            for blas in _blas().lib_controllers:
                now = blas.num_threads
                threads = min([self._before.setdefault(blas.filepath, now), *self._limits.values()])
                if threads != now:
                    _set_threads(blas, threads)
                if not self._limits and blas.num_threads == threads:  # unless another thread has its own limit
                    del self._before[blas.filepath]

    def after_fork(self) -> None:
        # Other threads of the parent do not exist in the child, and one of them may have had the lock.
        self._lock, own = threading.Lock(), threading.get_ident()
        for caller in [caller for caller in self._limits if caller.thread != own]:
            del self._limits[caller]


_blas_limits = _BlasLimits()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limits.after_fork)


def one_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS to one thread: small factorizations are slower with more, and far slower on busy cores."""
    return _blas_limits.limit(1)


def threads_to_factorize(n: int) -> AbstractContextManager[None]:
    """Limit BLAS for factorizing a matrix (n, n): to one thread if it is small; see `one_blas_thread`."""
    return one_blas_thread() if n < _MANY_COLUMNS else blas_threads(None)


def blas_threads(n_jobs: int | None) -> AbstractContextManager[None]:
    """Limit BLAS to `n_jobs` threads in the whole process, and never increase its threads."""
    return _blas_limits.limit(thread_count(n_jobs))


def _taken_from(queue: deque[_Item]) -> Iterator[_Item]:
    with suppress(IndexError):  # the queue is empty
        while True:
            yield queue.popleft()


def share_blocks(
    work: Callable[[Iterator[_Item]], object], blocks: Iterable[_Item], size: int, n_jobs: int | None = None
) -> None:
    """Work on blocks in Python threads, where each block needs matrix products and serial kernels in turn.

    BLAS uses one thread meanwhile. A parallel kernel after each product would be slow, because threads of Numba and of
    BLAS spin for a while after their work, on cores that the others then need. The calling thread works too, so signals
    are handled between blocks.

    Parameters
    ----------
    work : callable
        Called once in each thread, with an iterator over blocks.
    blocks : iterable
    size : int
        Number of elements written; few are not worth threads.
    n_jobs : int, default=None
    """
    queue = deque(blocks)
    threads = min(thread_count(n_jobs), len(queue))
    if threads <= 1 or size < _WORTH_THREADS:
        with blas_threads(n_jobs):
            work(_taken_from(queue))
    else:
        with one_blas_thread():
            _pool.use(lambda: _share(work, queue, threads), lambda: work(_taken_from(queue)))


def side_by_side(work: Callable[[_Item], _Result], items: Iterable[_Item], n_jobs: int | None = None) -> list[_Result]:
    """Return the results of a function for each item, in order; uses Python threads, with one thread for BLAS.

    See `share_blocks`.
    """
    known, results = list(items), dict[int, _Result]()

    def work_on(numbers: Iterator[int]) -> None:
        for number in numbers:
            results[number] = work(known[number])

    with one_blas_thread():  # also for a single caller, because sums of BLAS depend on its threads
        share_blocks(work_on, range(len(known)), _WORTH_THREADS, n_jobs)
    return [results[number] for number in range(len(known))]


def _share(work: Callable[[Iterator[_Item]], object], queue: deque[_Item], threads: int) -> None:
    with ThreadPoolExecutor(threads - 1) as others:
        running = [others.submit(work, _taken_from(queue)) for _ in range(threads - 1)]
        try:
            work(_taken_from(queue))
        finally:
            queue.clear()  # after an error the other threads stop at their next block
        for each in running:
            each.result()
