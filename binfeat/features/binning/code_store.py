"""Where codes are kept while they are made and used: in memory, or in a scratch file without a name."""

import mmap
import os
import tempfile
import weakref

import numpy as np

from binfeat._common.memory import allowed_bytes
from binfeat._engine.bin_tables import recode

_ZEROS = 2**24  # bytes written at a time where a file cannot be given its space at once


def code_budget(max_bytes):
    """Bytes that codes may take in memory: `max_bytes`, or half of the computer's memory."""
    return allowed_bytes(max_bytes, 2)


class CodeStore:
    """Codes of rows in grids, of 2 bytes each until some grid has too many bins for that.

    The codes are in memory while they take at most `max_bytes`, otherwise in a file in the folder that
    `tempfile.gettempdir` names. The file has no name, or is removed with its last user, so that nothing is left of it
    whatever happens. Its space on disk is taken before anything is written; OSError, from `widen` and `grow` too, if
    the disk has no room.
    """

    def __init__(self, n_rows, n_grids, max_bytes=np.inf, dtype=np.uint16):
        self._n_rows, self._n_grids, self.max_bytes = n_rows, n_grids, max_bytes
        self._dtype = np.dtype(dtype)
        self._file = None
        self._buffer = np.empty(0, np.uint8)
        self._make_room()

    @property
    def array(self):
        """The codes, (n_grids, n_rows)."""
        return self._as(self._dtype)

    @property
    def in_file(self):
        """Whether the codes are in a scratch file."""
        return self._file is not None

    def __getitem__(self, grids):
        return self.array[grids]

    def _as(self, dtype):
        shape = self._n_grids, self._n_rows
        return self._buffer[: shape[0] * shape[1] * dtype.itemsize].view(dtype).reshape(shape)

    def grow(self, n_grids):
        """Add grids behind those that are there."""
        self._n_grids = n_grids
        self._make_room()

    def widen(self):
        """Give every code 4 bytes instead of 2, in place."""
        narrow, self._dtype = self._dtype, np.dtype(np.uint32)
        self._make_room()
        self._move(narrow, reversed(range(self._n_grids)))

    def recode(self, new_codes, starts, dtype, n_jobs=None):
        """Replace each grid's codes, in place, by ``new_codes[starts[p] + code]``, and end with codes of this type."""
        recode(self.array, new_codes, starts, self.array, n_jobs=n_jobs)
        if self._dtype != dtype:
            wide, self._dtype = self._dtype, np.dtype(dtype)
            self._move(wide, range(self._n_grids))

    def _move(self, before, grids):
        """Convert codes in an order of the grids in which none is overwritten before its turn."""
        old, new = self._as(before), self.array
        for p in grids:
            new[p] = old[p].copy()  # grid 0 overlaps itself

    def _make_room(self):
        n_codes = self._n_grids * self._n_rows
        n_bytes = n_codes * self._dtype.itemsize
        if self._file is None and n_bytes <= self.max_bytes:
            if n_bytes > self._buffer.size:  # room for 4 bytes a code: what is not touched takes no memory
                self._buffer = _copied(self._buffer, np.empty(int(min(4 * n_codes, self.max_bytes)), np.uint8))
        elif self._file is None:
            self._file = tempfile.TemporaryFile(prefix="binfeat-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)  # who still has codes has the mapping
            self._buffer = _copied(self._buffer, _mapped(self._file, n_bytes))
        else:
            self._buffer = _mapped(self._file, n_bytes)


def _copied(old, new):
    new[: old.size] = old
    return new


def _mapped(file, n_bytes):
    """The file in memory, made so long and given its space on disk: writing to it cannot fail later."""
    try:
        _allocate(file, n_bytes)
    except OSError as error:
        raise OSError(
            error.errno,
            f"The codes need a scratch file of {n_bytes:,} bytes in {tempfile.gettempdir()}: {error.strerror}. Set the "
            "environment variable TMPDIR to a folder with room, raise max_bytes, or use fewer grids.",
        ) from error
    return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), np.uint8)


def _allocate(file, n_bytes):
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    file.seek(0, os.SEEK_END)
    while file.tell() < n_bytes:
        file.write(bytes(min(_ZEROS, n_bytes - file.tell())))
    file.flush()
