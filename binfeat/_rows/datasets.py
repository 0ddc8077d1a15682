"""Files of rows, read block by block through `pyarrow.dataset`."""

import logging
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeGuard

import numpy as np

from binfeat._common.frames import require_distinct
from binfeat._rows.text_damage import first_fault
from binfeat._rows.text_files import TextFiles
from binfeat._rows.text_formats import reading

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset, Fragment

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "ipc",
    ".arrow": "ipc",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
}
FileState: TypeAlias = tuple[int, int]  # size and modification time
_log = logging.getLogger("binfeat")
_MARKS = {"csv": ",", "tsv": "\t"}  # default delimiters of text files
_SAME_TYPE = (
    ". The value does not fit the type of the column: correct it, or write the column with the same type in all files."
)
_REMEDIES = {  # of errors that contain these words
    "CSV conversion error": ". The first megabyte of each file determines the types of its columns: correct the value, "
    "or move its row to the start of the first file.",
    "not in range": _SAME_TYPE,
    "Failed to parse": _SAME_TYPE,
}


def is_dataset(X: object) -> "TypeGuard[Dataset]":
    pyarrow_dataset = sys.modules.get("pyarrow.dataset")  # if X is a dataset, it has been imported
    return pyarrow_dataset is not None and isinstance(X, pyarrow_dataset.Dataset)


def opened(*paths: str | PathLike, **options: str | None) -> "tuple[Dataset, TextFiles | None]":
    """Open files of one format, or all files in folders, as a dataset, and return the format of text files.

    The options are the options of `TextFormat`. ImportError without pyarrow; FileNotFoundError if there is no file of a
    known format, ValueError if files differ.

    Folder names like ``year=2024`` become columns if they are below the deepest folder that contains all paths.
    """
    try:
        import pyarrow.dataset as ds
    except ImportError as error:
        raise ImportError("Files are read by pyarrow. Install it: pip install 'binfeat[parquet]'.") from error
    files = [name for path in paths for name in _files_of(Path(path))]
    formats = sorted({_FORMATS[_ending(name)] for name in files})
    if len(formats) > 1:
        places = ", ".join(f"'{path}'" for path in paths)
        raise ValueError(f"All files must have one format; {places} have files of the formats {', '.join(formats)}.")
    names = [str(name) for name in files]
    base = _common_folder([Path(path) for path in paths])
    keys = {part.partition("=")[0] for name in files for part in name.parts[len(base.parts) : -1] if "=" in part}
    if formats[0] in _MARKS:
        text = TextFiles.of(names, _MARKS[formats[0]], **options)
        if text.differs:
            _log.info("%s: %s", paths[0], text)
        dataset = text.opened(names)
        return text.opened(names, base) if _are_columns(keys, dataset.schema.names, names[0]) else dataset, text
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{' and '.join(given)} must be None for files of the format {formats[0]}, which have none.")
    with reading(files[0]):
        columns = _names_in(names[0], formats[0])
        require_distinct(columns, "it")
    are_columns = _are_columns(keys, columns, names[0])
    folders = {"partitioning": "hive", "partition_base_dir": base.as_posix()} if are_columns else {}
    with reading(files[0]):
        return ds.dataset(names, format=formats[0], **folders), None


def _common_folder(paths: list[Path]) -> Path:
    """Return the deepest folder that contains all files and folders; it is "." if they have none in common."""
    folders = [path.parent if path.is_file() else path for path in paths]
    levels = takewhile(lambda parts: len(set(parts)) == 1, zip(*(folder.parts for folder in folders)))
    return Path(*(parts[0] for parts in levels))


def _are_columns(keys: set[str], columns: list[str], path: str) -> bool:
    """Return True if names of folders, such as ``key=value``, are columns, and False if the file contains all of them.

    ValueError if the file contains only some of them.
    """
    if keys.issubset(columns):
        return False
    _require_columns_apart(keys, columns, path)
    return True


def _require_columns_apart(keys: Iterable[str], columns: Iterable[str], path: str) -> None:
    """Raise ValueError if the name of a folder is a value of a column of the file: pyarrow would replace the column."""
    repeated = sorted({*keys} & {*columns})
    if repeated:
        raise ValueError(
            f"Column {repeated[0]!r} is in file ({path}) and in the name of a folder, '{repeated[0]}=...'. Rename the "
            "folder, or remove the column."
        )


def _names_in(name: str, kind: str) -> list[str]:
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    file_format = ds.ParquetFileFormat() if kind == "parquet" else ds.IpcFileFormat()
    return file_format.inspect(name, LocalFileSystem()).names


def _ending(path: Path) -> str:
    """Return the ending of a name in lower case, including the ending before .gz if the file is compressed.

    pyarrow decompresses .gz, but not .GZ.
    """
    return "".join(path.suffixes[-2:] if path.suffix == ".gz" else [path.suffix]).lower()


def _is_hidden(name: str) -> bool:
    """Return True for copies and logs of other programs; ``_key=value`` is a folder of rows."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _files_of(path: Path) -> list[Path]:
    names = [path] if path.is_file() else sorted(name for name in path.rglob("*") if name.is_file())
    files = [
        name for name in names if _ending(name) in _FORMATS and not any(map(_is_hidden, name.relative_to(path).parts))
    ]
    if not files:
        raise FileNotFoundError(
            f"X must be a file or a folder of files that end in {', '.join(_FORMATS)}; got '{path}'."
        )
    return files


class FileBlock(tuple):
    """A block (X,), (X, y) or (X, y, sample_weight) with the name of its file."""

    path = ""


@dataclass(frozen=True, eq=False)
class DatasetBlocks:
    dataset: "Dataset"
    schema: "pa.Schema"  # types that hold the values of all files
    inputs: list[str]
    targets: list[str]
    weights: list[str]
    block_rows: int
    text: TextFiles | None = None  # format of text files
    states: dict[str, FileState] = field(default_factory=dict)  # of the files when the source was created

    @classmethod
    def of(
        cls,
        dataset: "Dataset",
        target: str | Iterable[str] | None,
        weight: str | None,
        block_rows: int,
        text: TextFiles | None = None,
    ) -> Self:
        """Select columns by name; ValueError if a file lacks a column, OSError if a file cannot be read."""
        names, targets, weights = split_names(dataset.schema.names, target, weight, "the dataset")
        inputs, states = without_index(dataset.schema, names), _local_files(dataset)
        return cls(dataset, common_schema(dataset, text), inputs, targets, weights, block_rows, text, states)

    def __iter__(self) -> "Iterator[FileBlock]":
        import pyarrow as pa

        for batch, path in self.batches():
            targets, weights = (
                [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
                for names in (self.targets, self.weights)
            )
            y = [np.column_stack(targets)] if len(targets) > 1 else targets
            block = FileBlock((pa.Table.from_batches([batch.select(self.inputs)]), *y, *weights))
            block.path = path
            yield block

    def batches(self) -> "Iterator[tuple[pa.RecordBatch, str]]":
        """Yield record batches of the columns, with the names of their files; ValueError if one has changed."""
        for fragment in self.dataset.get_fragments():
            path = getattr(fragment, "path", "")
            if path in self.states and _state_of(path) != self.states[path]:
                raise ValueError(f"{path} has changed since blocks() was called; call blocks() again.")
            n_rows = 0
            try:
                for batch in self._batches(fragment, [*self.inputs, *self.targets, *self.weights]):
                    n_rows += batch.num_rows
                    yield batch, path
                if self.text is not None:
                    self.text.require_whole(path, n_rows)
            except (OSError, ValueError) as error:
                kind = OSError if isinstance(error, OSError) else ValueError
                fault = None if self.text is None else first_fault(path, self.text.format)
                place = self._place_of(fragment) if fault is None else f"File ({path})"
                remedy = next((own for words, own in _REMEDIES.items() if words in str(error)), "")
                raise kind(f"{place} cannot be read: {fault or f'{error}{remedy}'}") from error

    def _batches(self, fragment: "Fragment", columns: list[str]) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        # Read-ahead and several threads would need a gigabyte more, because every thread caches memory.
        in_turn = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
        schema = self._read_schema(fragment) if self.text is None else self.text.read_schema(self.schema)
        final = pa.schema([self.schema.field(name) for name in columns])
        for batch in fragment.to_batches(schema=schema, columns=columns, batch_size=self.block_rows, **in_turn):
            yield batch.cast(final) if self.text is None else self.text.converted(batch, self.schema)

    def _read_schema(self, fragment: "Fragment") -> "pa.Schema":
        """Return a schema with strings for decimals that become floats, because Arrow rounds only strings correctly."""
        import pyarrow as pa

        schema = self.schema
        for own in fragment.physical_schema:
            place = schema.get_field_index(own.name)
            if pa.types.is_decimal(own.type) and place >= 0 and pa.types.is_floating(schema.field(place).type):
                schema = schema.set(place, pa.field(own.name, pa.string()))
        return schema

    def _place_of(self, fragment: "Fragment") -> str:
        """Return the file of a batch that could not be read, and the first invalid column."""
        path = getattr(fragment, "path", "A table in memory")
        for name in (*self.inputs, *self.targets, *self.weights):
            try:
                for _ in self._batches(fragment, [name]):
                    pass
            except (OSError, ValueError):
                return f"{path}, column {name!r},"
        return path


def _local_files(dataset: "Dataset") -> dict[str, FileState]:
    """Return the states of local files; pyarrow would read changed files with the metadata of the first pass."""
    from pyarrow.fs import LocalFileSystem

    fragments = [
        own for own in dataset.get_fragments() if isinstance(getattr(own, "filesystem", None), LocalFileSystem)
    ]
    return {fragment.path: _state_of(fragment.path) for fragment in fragments}


def _state_of(path: str) -> FileState:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def split_names(
    names: list[str], target: Any, weight: str | None, table: str
) -> tuple[list[str], list[str], list[str]]:
    """Return names of inputs, targets and weights.

    Without `target`, all columns are inputs. TypeError or ValueError if `target` is no name, there are weights without
    targets, or some names are unknown or repeated.
    """
    if target is None:
        if weight is not None:
            raise ValueError(f"weight requires target. Pass the name of the target column, one of {names}.")
        return names, [], []
    if isinstance(target, bytes) or not isinstance(target, str | Iterable):
        raise TypeError(f"target must be the name of a column or a list of names, got {target!r}.")
    targets = [target] if isinstance(target, str) else list(target)
    weights = [] if weight is None else [weight]
    if not targets:
        raise ValueError(f"target must name at least one column, got {target!r}. The columns are {names}.")
    chosen = [*targets, *weights]
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(f"target and weight must be columns of {table}; {unknown} are not in {names}.")
    repeated = next((name for name in chosen if chosen.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"target and weight must name different columns, got {repeated!r} twice. Name it once.")
    return [name for name in names if name not in chosen], targets, weights


def without_index(schema: "pa.Schema", names: list[str]) -> list[str]:
    """Return the column names without the index that pandas writes, which has no name in CSV."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for k, name in enumerate(names) if name not in index and (k or name)]


def common_schema(dataset: "Dataset", text: TextFiles | None = None) -> "pa.Schema":
    """Return a schema for all files, with types that hold all values; numbers with thousands separators are floats.

    Files that cannot be read or lack columns are refused, because pyarrow would fill in nulls. Types without a common
    type are refused as well; for text, only values that do not fit are refused.
    """
    import pyarrow as pa
    from pyarrow.dataset import get_partition_keys

    names = dataset.schema.names
    require_distinct(names, "The dataset")
    types = dict(zip(names, dataset.schema.types))
    for number, fragment in enumerate(dataset.get_fragments()):
        path = getattr(fragment, "path", "in memory")
        with reading(path, f"File {number} of the dataset ") if text is None else text.naming_fault(path):
            own = fragment.physical_schema
        keys = get_partition_keys(fragment.partition_expression)
        _require_columns_apart(keys, own.names, path)
        known = {*own.names, *keys}
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(f"File {number} of the dataset ({path}) has no columns {missing}; it has {own.names}.")
        for name, found in zip(own.names, own.types):
            if name not in types or types[name] == found:
                continue
            wider = _wider(types[name], found)
            if wider is None and text is None:
                raise TypeError(
                    f"Column {name!r} contains {found} in file {number} of the dataset ({path}), and {types[name]} in "
                    "earlier files. Write the column with the same type in all files."
                )
            types[name] = wider or types[name]
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}  # pyarrow takes no rows of views
    types = {name: plain.get(own, own) for name, own in types.items()}
    grouped = [] if text is None else text.grouped
    return pa.schema((types | dict.fromkeys(grouped, pa.float64())).items())


def _wider(known: "pa.DataType", found: "pa.DataType") -> "pa.DataType | None":
    """Return a type that holds values of type `found` (this file) and of type `known` (earlier files), if there is one.

    Flags are integers, and dates are times at midnight.
    """
    import pyarrow as pa

    types = [_plain(known), _plain(found)]
    if any(map(pa.types.is_null, types)):
        return found if pa.types.is_null(known) else known
    if types[0] == types[1]:
        return types[0] if pa.types.is_boolean(known) else known
    if any(map(_is_text, types)):  # reading refuses a word among numbers
        return known
    for are_times in (_is_date_or_time, pa.types.is_duration, pa.types.is_time):
        if all(map(are_times, types)):
            have_zones = {own.tz is not None for own in types if pa.types.is_timestamp(own)}
            units = None, "s", "ms", "us", "ns"
            return None if len(have_zones) > 1 else max(types, key=lambda own: units.index(getattr(own, "unit", None)))
    if not all(pa.types.is_integer(own) or pa.types.is_floating(own) or pa.types.is_decimal(own) for own in types):
        return None
    if not all(map(pa.types.is_integer, types)):
        return _wider_decimal(*types) if all(map(pa.types.is_decimal, types)) else pa.float64()
    if len(set(map(pa.types.is_signed_integer, types))) > 1:
        return pa.int64()
    return max(types, key=lambda own: own.bit_width)


def _wider_decimal(*types: "pa.DataType") -> "pa.DataType":
    """Return the shortest decimal type that holds the digits of all these, or float64 if there is none."""
    import pyarrow as pa

    scale = max(own.scale for own in types)
    digits = scale + max(own.precision - own.scale for own in types)
    if digits > 76:
        return pa.float64()
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _plain(own: "pa.DataType") -> "pa.DataType":
    """Return the type of the values of a dictionary, and int8 for flags."""
    import pyarrow as pa

    own = own.value_type if pa.types.is_dictionary(own) else own
    return pa.int8() if pa.types.is_boolean(own) else own


def _is_text(own: "pa.DataType") -> bool:
    import pyarrow as pa

    return any(is_kind(own) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_date_or_time(own: "pa.DataType") -> bool:
    import pyarrow as pa

    return pa.types.is_date(own) or pa.types.is_timestamp(own)
