"""Tables written by the command, and checks of all output files."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from binfeat._common.whole_files import require_writable, written
from binfeat.cli import models, tables
from binfeat.cli.messages import say
from binfeat.cli.streams import TerminalBytes
from binfeat.cli.tables import TextOptions
from binfeat.models.estimator import KernelMachineBase
from binfeat.models.served.estimator import compared
from binfeat.models.table.findings import NoveltyPolicy

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

BinaryStream: TypeAlias = IO[bytes] | TerminalBytes
_ENDINGS = ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq"  # in lower or upper case


def require_output(path: Path, *inputs: Path | None) -> None:
    """Raise OSError if a file cannot be written, and ValueError if it would replace a file that the command reads."""
    require_writable(path)
    for name in chain.from_iterable(_files_of(given) for given in inputs if given is not None):
        if path.exists() and name.exists() and os.path.samefile(path, name):
            raise ValueError(f"The output {path} is also an input of this command. Pass another file.")


def require_table_output(out: Path | None, *inputs: Path | None) -> None:
    """Raise errors as `require_output`, also if the ending of the name is not the ending of a format of tables.

    Names without an ending receive CSV.
    """
    if out is not None:
        require_output(out, *inputs)
        _require_ending(out, "table", _ENDINGS)


def require_model_output(out: Path, *inputs: Path) -> None:
    """Raise errors as `require_output`, also if the name has another ending than .skops."""
    require_output(out, *inputs)
    _require_ending(out, "model", (".skops",))


def _require_ending(out: Path, kind: str, endings: tuple[str, ...]) -> None:
    """Raise a ValueError for other endings of a file; pipes, devices and names without an ending are allowed."""
    is_file = out.is_file() or not out.exists()
    if is_file and out.suffix and not out.name.lower().endswith(endings):
        known = ", ".join(endings[:-1]) + " or " * (len(endings) > 1) + endings[-1]
        raise ValueError(f"The output {out} is a {kind}, so its name must end in {known}, or have no ending.")


def _files_of(path: Path) -> Iterable[Path]:
    return path.rglob("*") if path.is_dir() else [path]


def opened(
    model: Path, paths: list[Path], text: TextOptions, out: Path | None = None, others: Path | None = None
) -> "tuple[KernelMachineBase, Iterator[pa.Table]]":
    """Check that `out` can be written, and return the model of a file and blocks of the rows of a table.

    `others` is another input file of the command.
    """
    require_table_output(out, model, *paths, others)
    table = tables.open_table(paths, text)
    fitted = models.load(model)
    return fitted, tables.read_in_blocks(tables.for_model(table, fitted))


@contextmanager
def warning_of_differences(fitted: KernelMachineBase, blocks: "Iterator[pa.Table]") -> "Iterator[Iterator[pa.Table]]":
    """Yield the blocks, and print one warning at the end if they differ from the training rows."""
    policy, warns = NoveltyPolicy(fitted), fitted.on_unseen == "warn"

    def checked() -> "Iterator[pa.Table]":
        for X in blocks:
            policy.report(compared(fitted, X)[0])
            yield X

    if warns:
        fitted.on_unseen = "ignore"
    yield checked() if warns else blocks
    if policy.found:
        say("warning: the table differs from the training table, so some predictions are extrapolations:")
        for line in str(policy.found).splitlines():
            say(f"  {line}")


def write(blocks: "Iterator[pa.Table]", out: Path | None) -> None:
    """Write the rows of all Arrow tables to the file `out` or to standard output."""
    name = "" if out is None else out.name.lower()
    with _output() if out is None else written(out) as stream:
        first = next(blocks, None)
        if first is None:
            raise ValueError("The table has no rows. Pass a table with at least one row.")
        with _writer(stream, name, first.schema) as writer:
            for block in chain([first], blocks):
                writer.write_table(block)


def _output() -> AbstractContextManager[BinaryStream]:
    return nullcontext(TerminalBytes(sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer)


@contextmanager
def _writer(stream: BinaryStream, name: str, schema: "pa.Schema") -> "Iterator[CSVWriter | ParquetWriter]":
    """Return a writer of Arrow tables to a binary stream; the ending of the file name determines the format."""
    import pyarrow as pa
    from pyarrow.csv import CSVWriter, WriteOptions

    if name.endswith((".parquet", ".pq")):
        from pyarrow.parquet import ParquetWriter

        with ParquetWriter(stream, schema) as writer:
            yield writer
        return
    packed = pa.CompressedOutputStream(stream, "gzip") if name.endswith(".gz") else nullcontext(stream)
    mark = "\t" if name.endswith((".tsv", ".tsv.gz")) else ","
    with packed as plain, CSVWriter(plain, schema, write_options=WriteOptions(delimiter=mark)) as writer:
        yield writer
