"""Compiler options of all kernels."""

import functools
import hashlib
import inspect
import types
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from binfeat._engine.caches import cache_of
from binfeat._engine.compilation import compilations
from binfeat._threads import run_kernel

_OPTIONS: dict[str, Any] = {
    "nogil": True,  # Dask, joblib and Python threads run serial kernels at the same time
    "error_model": "numpy",  # division follows IEEE 754 instead of raising, so loops can be vectorized
    "boundscheck": None,  # off, unless NUMBA_BOUNDSCHECK=1 is set
    "no_cfunc_wrapper": True,  # nothing calls kernels from C, and the wrapper takes 5 % of the compilation
    # No fastmath anywhere: a reassociated or contracted cell expression would move rows between bins.
}

event.register("numba:compile", compilations)


@functools.cache
def _digest_of_sources():
    """Digest of all files of the engine: kernels call kernels of other files, which Numba's cache does not check."""
    content = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.blake2b(content, digest_size=4).hexdigest()


def _renamed(function, suffix):
    """Copy a function under another name, by which Numba's cache distinguishes compilations."""
    name = function.__name__ + suffix
    copy = types.FunctionType(function.__code__, function.__globals__, name, closure=function.__closure__)
    copy.__qualname__ = function.__qualname__ + suffix
    copy.__module__ = function.__module__
    copy.__doc__ = function.__doc__
    return copy


def jit(function, suffix="", **options):
    """Compile a serial kernel, or one with other options and a suffix of its name."""
    function = _renamed(function, f"{suffix}_{_digest_of_sources()}")
    kernel = numba.njit(**_OPTIONS, **options)(function)
    kernel._cache = cache_of(function)  # as njit(cache=True) sets it
    return kernel


def parallel_jit(work):
    """Compile a `prange` loop twice, serial and threaded, and choose at each call.

    The decorated function takes the loop's arguments and `n_jobs`. It runs the serial version for ``n_jobs=1``, for
    little work, while another call uses the threads, and in a forked child.

    Parameters
    ----------
    work : str
        Name of the array argument whose size is the amount of work.
    """

    def decorate(function):
        serial = jit(function)
        threaded = jit(function, "_threaded", parallel=True)
        measure = list(inspect.signature(function).parameters).index(work)

        @functools.wraps(function)
        def run(*arguments, n_jobs=None):
            return run_kernel(serial, threaded, arguments, arguments[measure].size, n_jobs)

        return run

    return decorate
