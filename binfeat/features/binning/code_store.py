"""Storage of codes: in memory, or in a scratch file without a name."""

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable
from typing import IO

import numpy as np

from binfeat._common.array_types import DTypeLike
from binfeat._engine.bin_tables import recode

_ZEROS = 2**24  # bytes written at a time if space cannot be allocated


class CodeStore:
    """Codes of rows in grids, with 2 bytes each until a grid has too many bins.

    The codes are in memory while they need at most `max_bytes`, otherwise in a file in the folder
    `tempfile.gettempdir`. The file has no name, or is removed with its last user, so that it never remains on
    disk. Its space is allocated before anything is written. The constructor, `widen` and `grow` raise an OSError if
    the disk is full.
    """

    def __init__(self, n_rows: int, n_grids: int, max_bytes: float = np.inf, dtype: DTypeLike = np.uint16) -> None:
        self._n_rows, self._n_grids, self.max_bytes = n_rows, n_grids, max_bytes
        self._dtype = np.dtype(dtype)
        self._file: IO[bytes] | None = None
        self._buffer = np.empty(0, np.uint8)
        self._make_room()

    @property
    def array(self) -> np.ndarray:
        """Return the codes, (n_grids, n_rows)."""
        return self._as(self._dtype)

    @property
    def in_file(self) -> bool:
        return self._file is not None

    def __getitem__(self, grids: slice) -> np.ndarray:
        return self.array[grids]

    def _as(self, dtype: np.dtype) -> np.ndarray:
        shape = self._n_grids, self._n_rows
        return self._buffer[: shape[0] * shape[1] * dtype.itemsize].view(dtype).reshape(shape)

    def grow(self, n_grids: int) -> None:
        self._n_grids = n_grids
        self._make_room()

    def widen(self) -> None:
        """Convert codes from 2 to 4 bytes in place."""
        narrow, self._dtype = self._dtype, np.dtype(np.uint32)
        self._make_room()
        self._move(narrow, reversed(range(self._n_grids)))

    def recode(self, new_codes: np.ndarray, starts: np.ndarray, dtype: DTypeLike, n_jobs: int | None = None) -> None:
        """Replace the codes of each grid in place by ``new_codes[starts[p] + code]``, with this dtype."""
        recode(self.array, new_codes, starts, self.array, n_jobs=n_jobs)
        if self._dtype != dtype:
            wide, self._dtype = self._dtype, np.dtype(dtype)
            self._move(wide, range(self._n_grids))

    def _move(self, before: np.dtype, grids: Iterable[int]) -> None:
        """Convert codes in an order of the grids that overwrites no grid before its conversion."""
        old, new = self._as(before), self.array
        for p in grids:
            new[p] = old[p].copy()  # grid 0 overlaps itself

    def _make_room(self) -> None:
        n_codes = self._n_grids * self._n_rows
        n_bytes = n_codes * self._dtype.itemsize
        if self._file is None and n_bytes <= self.max_bytes:
            if n_bytes > self._buffer.size:  # room for 4 bytes per code; untouched pages need no memory
                self._buffer = _copied(self._buffer, np.empty(int(min(4 * n_codes, self.max_bytes)), np.uint8))
        elif self._file is None:
            self._file = tempfile.TemporaryFile(prefix="binfeat-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)  # users of codes keep the mapping alive
            self._buffer = _copied(self._buffer, _mapped(self._file, n_bytes))
        else:
            self._buffer = _mapped(self._file, n_bytes)


def _copied(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    new[: old.size] = old
    return new


def _mapped(file: IO[bytes], n_bytes: int) -> np.ndarray:
    """Map the file after allocating its space on disk, so that writing cannot fail later."""
    try:
        _allocate(file, n_bytes)
    except OSError as error:
        raise OSError(
            error.errno,
            f"The codes need a scratch file of {n_bytes:,} bytes in {tempfile.gettempdir()}: {error.strerror}. Set the "
            "environment variable TMPDIR to a folder with enough space, increase max_bytes, or use fewer grids.",
        ) from error
    return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), np.uint8)


def _allocate(file: IO[bytes], n_bytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    file.seek(0, os.SEEK_END)
    while file.tell() < n_bytes:
        file.write(bytes(min(_ZEROS, n_bytes - file.tell())))
    file.flush()
