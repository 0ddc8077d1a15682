"""The contest of the kernel machines with their peers on many tables.

`TABLES` holds a loader for every name; what it returns has a method `split(seed)`.
"""

from perf.tables import files, made, packages

TABLES = {**files.TABLES, **packages.TABLES, **made.TABLES}
