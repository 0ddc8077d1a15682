"""Comparison of kernel models with other models on many tables.

`TABLES` contains a loader per name, which returns an object with a method `split(seed)`. `load` also
loads drawn tables and those of `packages.KEEL`.
"""

from perf.tables import drawn, files, made, packages

TABLES = {**files.TABLES, **packages.TABLES, **made.TABLES}


def load(name):
    """Return the table with a name."""
    named = {**TABLES, **packages.KEEL}
    return named[name]() if name in named else drawn.load(name)
