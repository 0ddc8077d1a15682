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
