"""Caches of compiled kernels on disk: Numba's caches, and filled read-only ones.

Numba skips a folder that it cannot write to, although the kernels in it are usable, for example in a container image
with read-only files.
"""

import os
import warnings
from contextlib import suppress
from typing import Any, ClassVar

from numba.core import config
from numba.core.caching import FunctionCache, NullCache

_warned = False


def _readable(locator):
    """A locator for folders that Numba skips because it cannot write to them."""

    def ensure_cache_path(self):
        path = self.get_cache_path()
        if not os.path.isdir(path) or os.access(path, os.W_OK):
            raise OSError(f"{path} is not a read-only folder.")

    return type(locator.__name__, (locator,), {"ensure_cache_path": ensure_cache_path})


_Impl: Any = FunctionCache._impl_class


class _ReadableImpl(_Impl):
    # The folder set by the user, and the folder next to the source.
    _locator_classes: ClassVar = [_readable(own) for own in _Impl._locator_classes[:2]]


class _ReadableCache(FunctionCache):
    _impl_class = _ReadableImpl


class _Unwritten(NullCache):
    """No folder is writable: compiled kernels are lost with the process, and a warning mentions it."""

    def save_overload(self, sig, cres):
        _warn()


class _FilledFirst:
    """A read-only cache, and another one for kernels that it lacks."""

    def __init__(self, filled, own):
        self._filled, self._own = filled, own
        self.cache_path = own.cache_path

    def load_overload(self, signature, context):
        found = self._filled.load_overload(signature, context)
        return self._own.load_overload(signature, context) if found is None else found

    def save_overload(self, signature, compiled):
        self._own.save_overload(signature, compiled)

    def flush(self):
        self._own.flush()


def cache_of(function):
    """Return the cache of a function's compilations: a filled read-only folder, and a writable one."""
    filled: Any = NullCache()
    own: Any = _Unwritten()
    if not getattr(config, "CACHE_LOCATOR_CLASSES", ""):  # the user has set the location of caches
        with suppress(RuntimeError):
            filled = _ReadableCache(function)
    has_filled = filled.cache_path is not None and os.path.exists(filled._cache_file._index_path)
    with suppress(RuntimeError):
        own = FunctionCache(function)
    return _FilledFirst(filled, own) if has_filled else own


def _warn():
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "binfeat's kernels are compiled anew in each process, which takes seconds: no folder for them can be "
            "written to, and none has been filled. Set NUMBA_CACHE_DIR to a folder, and fill it by binfeat.warm_up().",
            RuntimeWarning,
            stacklevel=2,
        )
