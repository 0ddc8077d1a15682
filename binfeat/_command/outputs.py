"""What commands about the rows of a table read, and the tables that they write."""

import sys
from contextlib import nullcontext
from itertools import chain

from binfeat._command import models, tables
from binfeat._common.whole_files import require_writable, written

_PARQUET = ".parquet", ".pq"


def opened(model, paths, out=None):
    """The machine of a file, and blocks of the rows of a table for it, once it is sure that `out` can be written."""
    if out is not None:
        require_writable(out)
    table = tables.open_table(paths)
    machine = models.load(model)
    return machine, tables.read_in_blocks(tables.for_machine(table, machine))


def write(blocks, out):
    """Write Arrow tables, one below the other, to the file `out` or to standard output."""
    with nullcontext(sys.stdout.buffer) if out is None else written(out) as target:
        first = next(blocks, None)
        if first is None:
            raise ValueError("The table has no rows.")
        with _writer(target, first.schema) as writer:
            for block in chain([first], blocks):
                writer.write_table(block)


def _writer(target, schema):
    """A writer of Arrow tables to a stream or a file: Parquet by the ending of its name, else CSV."""
    if str(getattr(target, "suffix", "")) in _PARQUET:
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(target, schema)
    from pyarrow.csv import CSVWriter

    return CSVWriter(target, schema)
