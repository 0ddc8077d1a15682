"""Files that are there as a whole or not at all."""

import os
from contextlib import contextmanager


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
