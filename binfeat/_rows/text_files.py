"""Text files as datasets: columns of codes, and thousands separators."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from binfeat._common.words import LEADING_ZERO
from binfeat._rows.text_damage import first_fault, header_of, require_whole
from binfeat._rows.text_formats import GROUPS, TextFormat, encoding_name

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset, FileFormat

_ZERO = rf"^{LEADING_ZERO}\d*\s*$"  # digits only, because 01.5 is a number
_HEAD_ROWS, _BLOCK_ROWS = 10_000, 2**20  # minimum and maximum number of rows that decide between numbers and codes
_MISSING = "None", "<NA>"  # missing for pandas.read_csv, in addition to the words of pyarrow


@dataclass(frozen=True, eq=False)
class TextFiles:
    format: TextFormat
    codes: list[str]  # columns of digits with leading zeros, such as postal codes, read as strings
    grouped: list[str]  # columns of numbers with thousands separators
    _whole: set[str] = field(default_factory=set)  # files checked for lost lines

    @classmethod
    def of(cls, names: Sequence[str], usual: str, **options: str | None) -> Self:
        """Detect the options of files, given options of a `TextFormat`; ValueError or OSError for unreadable files."""
        import pyarrow as pa

        files = cls(TextFormat.of(names, usual, **options), [], [])
        own = files.opened(names).schema
        with files.naming_fault(names[0]):
            names_and_kinds = list(zip(own.names, own.types))
        for name, kind in names_and_kinds:
            if pa.types.is_binary(kind):
                raise ValueError(
                    f"File ({names[0]}) cannot be read: column {name!r} is not text in "
                    f"{encoding_name(files.format.encoding)}; give the encoding, such as 'windows-1252'."
                )
        numeric = [name for name, kind in names_and_kinds if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
        wanted = [name for name, _ in names_and_kinds]
        heads = files._heads(names, wanted)
        return cls(files.format, _codes(heads, numeric), _grouped(heads, wanted, files.format.decimal))

    def __str__(self) -> str:
        thousands = f", numbers with grouped digits in {', '.join(map(repr, self.grouped))}" if self.grouped else ""
        return f"{self.format}{thousands}"

    @property
    def differs(self) -> bool:
        """Return True if the format differs from the usual format of the file names."""
        return bool(self.grouped) or self.format.differs

    def opened(self, names: Sequence[str], base: Path | None = None) -> "Dataset":
        """Return the dataset of the files; OSError if the first file cannot be read.

        Names of folders below `base` become columns.
        """
        import pyarrow.dataset as ds

        with self.naming_fault(names[0]):
            file_format = self._file_format(self.codes, names)
            folders = {} if base is None else {"partitioning": "hive", "partition_base_dir": base.as_posix()}
            return ds.dataset(list(names), format=file_format, **folders)

    def _header(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns; ValueError if lines before the header are skipped and files differ."""
        header = header_of(names[0], self.format)
        others = names[1:] if self.format.n_skipped else []
        other = next((name for name in others if header_of(name, self.format) != header), None)
        if other is not None:
            raise ValueError(
                f"All files must have a first line such as 'sep=;' and the same header; {other} differs from "
                f"{names[0]}. Remove the first line of all files."
            )
        return header

    def _file_format(self, string_columns: Sequence[str], names: Sequence[str]) -> "FileFormat":
        import pyarrow as pa
        import pyarrow.dataset as ds
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

        header = self._header(names)
        # To find the names of columns, pyarrow also parses the skipped lines, which have another number of cells.
        named = {"column_names": header, "skip_rows": self.format.n_skipped, "skip_rows_after_names": 1}
        kinds = dict.fromkeys(string_columns, pa.string())
        options = ConvertOptions(column_types=kinds, strings_can_be_null=True, decimal_point=self.format.decimal)
        options.null_values = [*options.null_values, *_MISSING]
        encoding = "utf8" if self.format.encoding == "utf-8" else self.format.encoding
        return ds.CsvFileFormat(
            ParseOptions(
                delimiter=self.format.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(header) != 1,  # an empty line is a missing value of a single column
            ),
            read_options=ReadOptions(encoding=encoding, **(named if self.format.n_skipped else {})),
            convert_options=options,
        )

    def _heads(self, names: Sequence[str], wanted: list[str]) -> "list[pa.RecordBatch]":
        """Read the first rows of the files, with these columns as strings."""
        import pyarrow.dataset as ds

        heads, left = list[Any](), _HEAD_ROWS
        dataset = ds.dataset(list(names), format=self._file_format(wanted, names))
        for fragment in dataset.get_fragments():
            with self.naming_fault(fragment.path):
                batches = fragment.to_batches(schema=dataset.schema, columns=wanted, batch_size=_BLOCK_ROWS)
                heads += islice(batches, 1)  # the bytes from which pyarrow inferred types
            left -= len(heads[-1]) if heads else 0
            if left <= 0:
                break
        return heads

    def read_schema(self, schema: "pa.Schema") -> "pa.Schema":
        """Return the types with which columns are read, before `converted`."""
        import pyarrow as pa

        for name in self._numbers(schema):
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
        return schema

    def converted(self, batch: "pa.RecordBatch", schema: "pa.Schema") -> "pa.RecordBatch":
        """Convert strings with thousands separators to numbers, in the numeric columns of the schema.

        ValueError for other strings.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        for name in self._numbers(schema):
            place = batch.schema.get_field_index(name)
            if place < 0:
                continue
            column, (_, number) = batch.column(place), _patterns(self.format.decimal)
            other = column.filter(pc.invert(pc.match_substring_regex(column, number)))
            if len(other):
                raise ValueError(
                    f"CSV conversion error: {other[0].as_py()!r} is neither a plain number nor a number with digits in "
                    "groups of three, unlike the values in the first rows"
                )
            plain = pc.replace_substring_regex(pc.utf8_trim_whitespace(column), _groups(self.format.decimal), "")
            values = pc.replace_substring(plain, self.format.decimal, ".").cast(pa.float64())
            batch = batch.set_column(place, name, values)
        return batch

    def _numbers(self, schema: "pa.Schema") -> list[str]:
        import pyarrow as pa

        return [name for name in self.grouped if name in schema.names and pa.types.is_floating(schema.field(name).type)]

    @contextmanager
    def naming_fault(self, path: str) -> Iterator[None]:
        """Convert errors of reading a file to an OSError that names the file, the line and a remedy."""
        try:
            yield
        except (OSError, ValueError, csv.Error) as error:
            raise OSError(f"File ({path}) cannot be read: {first_fault(path, self.format) or error}") from error

    def require_whole(self, path: str, n_rows: int) -> None:
        """Raise ValueError if most lines of a file ended up inside cells, given its number of rows."""
        if path not in self._whole:
            require_whole(path, n_rows, self.format)
            self._whole.add(path)


def _codes(heads: "list[pa.RecordBatch]", numeric: list[str]) -> list[str]:
    import pyarrow.compute as pc

    return [
        name
        for name in numeric
        if any(pc.any(pc.match_substring_regex(head.column(name), _ZERO)).as_py() for head in heads)
    ]


def _groups(decimal: str) -> str:
    return f"[{GROUPS.replace(decimal, '')}]"


def _patterns(decimal: str) -> tuple[str, str]:
    """Return patterns of numbers with thousands separators, and of all numbers."""
    groups = rf"^\s*[+-]?[1-9]\d{{0,2}}({_groups(decimal)}\d{{3}})+(\{decimal}\d*)?\s*$"
    plain = rf"((0|[1-9]\d*)(\{decimal}\d*)?|\{decimal}\d+)([eE][+-]?\d+)?"
    return groups, rf"{groups}|^\s*[+-]?{plain}\s*$"


def _grouped(heads: "list[pa.RecordBatch]", string_columns: list[str], decimal: str) -> list[str]:
    """Return columns of strings that are all numbers, some with thousands separators."""
    import pyarrow as pa
    import pyarrow.compute as pc

    groups, number = _patterns(decimal)
    found = []
    for name in string_columns:
        values = pa.chunked_array([head.column(name) for head in heads], pa.string())
        has_groups = pc.any(pc.match_substring_regex(values, groups)).as_py()
        if has_groups and pc.all(pc.match_substring_regex(values, number)).as_py():
            found.append(name)
    return found
