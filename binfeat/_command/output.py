"""Files that are there as a whole or not at all."""

import os
from contextlib import contextmanager


def require_writable(path):
    """Refuse a name that no file can get, before any work is done. OSError says why."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written: its folder is read-only.")


@contextmanager
def written(path):
    """Context that gives a name beside `path`, which becomes `path` at the end, and is removed after an error."""
    part = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
