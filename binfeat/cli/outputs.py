"""Tables that commands write, and the checks of all files that they write."""

import os
import sys
from contextlib import contextmanager, nullcontext
from itertools import chain

from binfeat._common.whole_files import require_writable, written
from binfeat.cli import models, tables
from binfeat.cli.messages import say
from binfeat.cli.streams import TerminalBytes
from binfeat.models.table.findings import NoveltyPolicy

_PARQUET = ".parquet", ".pq"
_OTHERS = ".feather", ".arrow", ".skops", ".html"  # endings of files that are no tables, or of kinds not written here


def require_output(path, *inputs):
    """OSError or ValueError if a file cannot be written, or would replace a file that the command reads."""
    require_writable(path)
    for name in chain.from_iterable(_files_of(given) for given in inputs if given is not None):
        if path.exists() and name.exists() and os.path.samefile(path, name):
            raise ValueError(f"{path} is read by this command, which would replace it; name another file.")


def _files_of(path):
    return path.rglob("*") if path.is_dir() else [path]


def opened(model, paths, text, out=None, others=None):
    """The machine of a file, and blocks of the rows of a table for it, once it is sure that `out` can be written.

    `others` is one more file that the command reads.
    """
    if out is not None:
        require_output(out, model, *paths, others)
        if out.suffix in _OTHERS:
            raise ValueError(
                f"{out} must end in .csv, .csv.gz, .tsv, {' or '.join(_PARQUET)}: a table is written to it."
            )
    table = tables.open_table(paths, text)
    machine = models.load(model)
    return machine, tables.read_in_blocks(tables.for_machine(table, machine))


@contextmanager
def finding_news(machine, blocks):
    """The blocks; in the end what the machine had not seen in any of them is said once, as a table."""
    policy = NoveltyPolicy(machine)
    if machine.on_unseen == "warn":
        machine.on_unseen = "ignore"
        blocks = _checked(machine, blocks, policy.report)
    yield blocks
    if policy.found:
        say("warning: the machine had not seen such values in fit:")
        for line in str(policy.found).splitlines():
            say(f"  {line}")


def _checked(machine, blocks, note):
    """The blocks as they are; `note` is called with what is new in them."""
    for X in blocks:
        note(machine.check(X))
        yield X


def write(blocks, out):
    """Write Arrow tables, one below the other, to the file `out` or to standard output."""
    endings = [] if out is None else out.suffixes
    with _output() if out is None else written(out) as stream:
        first = next(blocks, None)
        if first is None:
            raise ValueError("The table has no rows.")
        with _writer(stream, endings, first.schema) as writer:
            for block in chain([first], blocks):
                writer.write_table(block)


def _output():
    return nullcontext(TerminalBytes(sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer)


@contextmanager
def _writer(stream, endings, schema):
    """A writer of Arrow tables to a binary stream: Parquet, CSV or TSV, packed or not, by the endings of a name."""
    import pyarrow as pa
    from pyarrow.csv import CSVWriter, WriteOptions

    if endings and endings[-1] in _PARQUET:
        from pyarrow.parquet import ParquetWriter

        with ParquetWriter(stream, schema) as writer:
            yield writer
        return
    packed = pa.CompressedOutputStream(stream, "gzip") if endings[-1:] == [".gz"] else nullcontext(stream)
    mark = "\t" if ".tsv" in endings[-2:] else ","
    with packed as plain, CSVWriter(plain, schema, write_options=WriteOptions(delimiter=mark)) as writer:
        yield writer
