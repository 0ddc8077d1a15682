"""Files that are written completely or not at all."""

import os
from contextlib import contextmanager


@contextmanager
def written(path):
    """Context with the name of a new file beside `path`, which replaces `path` at the end, or is removed on error."""
    part = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def require_writable(path):
    """Raise OSError before any work is done if a file of this name cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written: its folder is read-only.")
