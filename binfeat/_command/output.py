"""Checks of the names of output files."""

import os


def require_writable(path):
    """Raise OSError before any work is done if a file of this name cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written: its folder is read-only.")
