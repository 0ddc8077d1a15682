"""Reports of compilations, which happen if the cache on disk has no entry for a kernel."""

import logging
import re
from contextlib import contextmanager

from numba.core import event

_log = logging.getLogger("binfeat")
_FIRST = (
    "binfeat is compiling kernels, so this call takes several seconds longer. Later calls and processes reuse them; "
    "binfeat.warm_up() compiles them in advance."
)


class _Compilations(event.Listener):
    """Log each compilation of a kernel of binfeat, and call the listeners.

    The first one in a process is logged as a warning, which Python shows by default, because the call takes seconds.
    """

    def __init__(self):
        self._listeners = []
        self._announced = False

    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        if kernel.__module__.startswith("binfeat."):
            if not self._announced:
                self._announced = True
                _log.warning(_FIRST)
            name = re.sub("_[0-9a-f]{8}$", "", kernel.__name__)  # the digest of the sources, if the name contains it
            _log.info("compiling %s, which the cache does not have yet", name)
            for listener in tuple(self._listeners):
                listener()

    def on_end(self, event):
        pass

    @contextmanager
    def notifying(self, *listeners):
        """Call the listeners at each compilation in this context, in any thread."""
        self._listeners += listeners
        try:
            yield
        finally:
            for listener in listeners:
                self._listeners.remove(listener)

    @contextmanager
    def announced(self):
        """Suppress the warning in a call that is known to compile."""
        before, self._announced = self._announced, True
        try:
            yield
        finally:
            self._announced = before


compilations = _Compilations()
