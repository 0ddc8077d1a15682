"""Where compiled kernels are kept on disk: in Numba's caches, and in filled ones that may only be read.

Numba passes over a folder that it cannot write to, although the kernels in it would serve, as in an image of a
container whose files are read-only.
"""

import os
import warnings
from contextlib import suppress
from typing import Any, ClassVar

from numba.core import config
from numba.core.caching import FunctionCache, NullCache

_warned = False


def _readable(locator):
    """One of Numba's locators, for folders that it passes over because they cannot be written to."""

    def ensure_cache_path(self):
        path = self.get_cache_path()
        if not os.path.isdir(path) or os.access(path, os.W_OK):
            raise OSError(f"{path} is no read-only folder.")

    return type(locator.__name__, (locator,), {"ensure_cache_path": ensure_cache_path})


_Impl: Any = FunctionCache._impl_class


class _ReadableImpl(_Impl):
    # The folder that the user names, and the one beside the source.
    _locator_classes: ClassVar = [_readable(own) for own in _Impl._locator_classes[:2]]


class _ReadableCache(FunctionCache):
    _impl_class = _ReadableImpl


class _Unwritten(NullCache):
    """No folder can be written to: what is compiled is lost with the process, which is said."""

    def save_overload(self, sig, cres):
        _warn()


class _FilledFirst:
    """A cache that may only be read, and another one for what it lacks."""

    def __init__(self, filled, own):
        self._filled, self._own = filled, own
        self.cache_path = own.cache_path

    def load_overload(self, signature, context):
        found = self._filled.load_overload(signature, context)
        return self._own.load_overload(signature, context) if found is None else found

    def save_overload(self, signature, compiled):
        self._own.save_overload(signature, compiled)

    def enable(self):
        self._own.enable()

    def disable(self):
        self._own.disable()

    def flush(self):
        self._own.flush()


def cache_of(function):
    """The cache of a function's compilations: a filled folder that is read-only, and one that can be written."""
    filled: Any = NullCache()
    own: Any = _Unwritten()
    if not getattr(config, "CACHE_LOCATOR_CLASSES", ""):  # by which the user says where caches are
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
