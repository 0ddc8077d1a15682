"""Files that are written atomically."""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from binfeat._common.termination import require_running

_DESCRIPTOR = re.compile(r"/dev/std(in|out|err)|/(?:dev|proc/self)/fd/(\d+)")
_STANDARD = {"in": 0, "out": 1, "err": 2}
_MOST_LINKS = 40  # as in Linux


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces the file `path` at the end of the context.

    After an error the file at `path` is unchanged, and no other file remains. Mode and owner are kept, if
    the system allows it, and symbolic links are followed. A pipe, a device, or an open file, such as /dev/stdout, is
    written directly.
    """
    path = _linked(path)
    if not _is_replaced(path):
        number = _descriptor(path)
        with open(path, "wb") if number is None else os.fdopen(os.dup(number), "wb") as out:
            yield out
        return
    part = path.with_name(f".{secrets.token_hex(8)}.part")  # process numbers repeat in containers with a shared folder
    try:
        with os.fdopen(_new_file(part, path), "wb") as out:
            yield out
        require_running()
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def require_writable(path: Path) -> None:
    """Raise OSError before any work is done if a file of this name cannot be written."""
    path = _linked(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    number = _descriptor(path)
    if number is not None:
        os.fstat(number)
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} for the file {path.name} does not exist.")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} is write-protected; name another file, or allow writing.")
    if _is_replaced(path) and not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written: its folder is read-only.")


def _linked(path: Path) -> Path:
    """Follow symbolic links, except for names of open files, which are also links."""
    for _ in range(_MOST_LINKS):
        if _descriptor(path) is not None or not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    return path


def _descriptor(path: Path) -> int | None:
    """Return the file descriptor of a path such as /dev/stdout, or None."""
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None:
        return None
    return _STANDARD[match[1]] if match[2] is None else int(match[2])


def _is_replaced(path: Path) -> bool:
    """Return True if a path is a regular file or does not exist; other kinds of files can only be written to."""
    return _descriptor(path) is None and (path.is_file() or not path.exists())


def _new_file(part: Path, path: Path) -> int:
    """Create a file with the mode and the owner of the file at `path`, if it exists, and return its descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        known = os.stat(path)
    except FileNotFoundError:
        return os.open(part, flags, 0o666)
    number = os.open(part, flags, 0o600)  # no other user may open it before its mode is set
    if hasattr(os, "fchown"):
        for owner in ((known.st_uid, known.st_gid), (-1, known.st_gid)):
            with suppress(PermissionError):
                os.fchown(number, *owner)
                break
        os.fchmod(number, stat.S_IMODE(known.st_mode) & 0o777)
    return number
