"""The contest of the kernel machines with their peers on many tables.

`TABLES` holds a loader for every name; what it returns has a method `split(seed)`. `load` knows drawn tables too.
"""

from perf.tables import drawn, files, made, packages

TABLES = {**files.TABLES, **packages.TABLES, **made.TABLES}


def load(name):
    """The table of a name."""
    return TABLES[name]() if name in TABLES else drawn.load(name)
