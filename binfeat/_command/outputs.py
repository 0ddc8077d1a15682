"""What commands about the rows of a table read, and the tables that they write."""

import sys
from contextlib import contextmanager, nullcontext
from itertools import chain

from binfeat._command import models, tables
from binfeat._command.messages import say
from binfeat._common.whole_files import require_writable, written
from binfeat._machine.table.findings import Attention

_PARQUET = ".parquet", ".pq"


def opened(model, paths, out=None):
    """The machine of a file, and blocks of the rows of a table for it, once it is sure that `out` can be written."""
    if out is not None:
        require_writable(out)
    table = tables.open_table(paths)
    machine = models.load(model)
    return machine, tables.read_in_blocks(tables.for_machine(table, machine))


@contextmanager
def finding_news(machine, blocks):
    """The blocks; in the end what the machine had not seen in any of them is said once, as a table."""
    attention = Attention(machine.on_unseen)
    if machine.on_unseen == "warn":
        machine.on_unseen = "ignore"
        blocks = _checked(machine, blocks, attention.note)
    yield blocks
    if attention.found:
        say("warning: the machine had not seen such values in fit:")
        for line in str(attention.found).splitlines():
            say(f"  {line}")


def _checked(machine, blocks, note):
    """The blocks as they are; `note` is called with what is new in them."""
    for X in blocks:
        note(machine.check(X))
        yield X


def write(blocks, out):
    """Write Arrow tables, one below the other, to the file `out` or to standard output."""
    with nullcontext(sys.stdout.buffer) if out is None else written(out) as target:
        first = next(blocks, None)
        if first is None:
            raise ValueError("The table has no rows.")
        with _writer(target, first.schema) as writer:
            for block in chain([first], blocks):
                writer.write_table(block)


@contextmanager
def _writer(target, schema):
    """A writer of Arrow tables to a stream or a file: by the ending of its name Parquet, compressed CSV, or CSV."""
    from pyarrow import output_stream
    from pyarrow.csv import CSVWriter

    if str(getattr(target, "suffix", "")) in _PARQUET:
        from pyarrow.parquet import ParquetWriter

        with ParquetWriter(target, schema) as writer:
            yield writer
        return
    stream = nullcontext(target) if target is sys.stdout.buffer else output_stream(target)
    with stream as own, CSVWriter(own, schema) as writer:
        yield writer
