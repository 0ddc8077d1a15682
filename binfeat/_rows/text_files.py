"""Text files as datasets: columns of codes, thousands separators, and error messages for damaged files."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from binfeat._common.frames import require_distinct
from binfeat._common.words import LEADING_ZERO
from binfeat._rows.text_formats import GROUPS, SCAN_BYTES, TextFormat, byte_chunks, encoding_name

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset, FileFormat

_ZERO = f"^{LEADING_ZERO}"
_HEAD_ROWS, _BLOCK_ROWS = 10_000, 2**20  # minimum and maximum number of rows that decide between numbers and codes


@dataclass(frozen=True, eq=False)
class TextFiles:
    """Options for reading text files of one format."""

    format: TextFormat
    codes: list[str]  # columns of digits with leading zeros, such as postal codes, read as strings
    grouped: list[str]  # columns of numbers with thousands separators
    _whole: set[str] = field(default_factory=set)  # files checked for lost lines

    @classmethod
    def of(cls, names: Sequence[str], usual: str, **options: str | None) -> Self:
        """Detect the options of files, given options of a `TextFormat`; ValueError or OSError for unreadable files."""
        import pyarrow as pa

        files = cls(TextFormat.of(names, usual, **options), [], [])
        with files.naming_fault(names[0]):
            own = files.opened(names, None).schema
            names_and_kinds = list(zip(own.names, own.types))
        for name, kind in names_and_kinds:
            if pa.types.is_binary(kind):
                raise ValueError(
                    f"File ({names[0]}) cannot be read: column {name!r} is not text in "
                    f"{encoding_name(files.format.encoding)}; give the encoding, such as 'windows-1252'."
                )
        digits = [name for name, kind in names_and_kinds if pa.types.is_integer(kind)]
        wanted = [name for name, _ in names_and_kinds]
        heads = files._heads(names, wanted)
        return cls(files.format, _codes(heads, digits), _grouped(heads, wanted, files.format.decimal))

    def __str__(self) -> str:
        thousands = f", numbers with grouped digits in {', '.join(map(repr, self.grouped))}" if self.grouped else ""
        return f"{self.format}{thousands}"

    @property
    def differs(self) -> bool:
        """Return True if the format differs from the usual format of the file names."""
        return bool(self.grouped) or self.format.differs

    def opened(self, names: Sequence[str], partitioning: str | None = "hive") -> "Dataset":
        """Return the dataset of the files; OSError if the first file cannot be read."""
        import pyarrow.dataset as ds

        with self.naming_fault(names[0]):
            return ds.dataset(list(names), format=self._file_format(self.codes), partitioning=partitioning)

    def _file_format(self, texts: Sequence[str]) -> "FileFormat":
        """Return CSV options that read the columns `texts` as strings."""
        import pyarrow as pa
        import pyarrow.dataset as ds
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

        kinds = dict.fromkeys(texts, pa.string())
        options = ConvertOptions(column_types=kinds, strings_can_be_null=True, decimal_point=self.format.decimal)
        encoding = "utf8" if self.format.encoding == "utf-8" else self.format.encoding
        return ds.CsvFileFormat(
            ParseOptions(delimiter=self.format.delimiter, newlines_in_values=True),
            read_options=ReadOptions(encoding=encoding, skip_rows=self.format.n_skipped),
            convert_options=options,
        )

    def _heads(self, names: Sequence[str], wanted: list[str]) -> "list[pa.RecordBatch]":
        """Read the first rows of the files, with these columns as strings."""
        import pyarrow.dataset as ds

        heads, left = list[Any](), _HEAD_ROWS
        dataset = ds.dataset(list(names), format=self._file_format(wanted))
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
        """Convert strings with thousands separators to numbers, in the numeric columns of the schema."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for name in self._numbers(schema):
            place = batch.schema.get_field_index(name)
            if place < 0:
                continue
            plain = pc.replace_substring_regex(batch.column(place), _groups(self.format.decimal), "")
            values = pc.replace_substring(plain, self.format.decimal, ".").cast(pa.float64())
            batch = batch.set_column(place, name, values)
        return batch

    def _numbers(self, schema: "pa.Schema") -> list[str]:
        import pyarrow as pa

        return [name for name in self.grouped if name in schema.names and pa.types.is_floating(schema.field(name).type)]

    def naming_fault(self, path: str) -> "_NamingFault":
        """Convert errors of reading a file to an OSError that names the file, the line and a remedy."""
        return _NamingFault(self, path)

    def fault(self, path: str) -> str | None:
        """Return a description of the first line that does not match the header, or None."""
        line = 1 + self.format.n_skipped
        try:
            with self._lines(path) as lines:
                rows = csv.reader(lines, delimiter=self.format.delimiter)
                header = next(rows, [])
                if not header:
                    return "it is empty; its first line must have the names of the columns."
                require_distinct(header, f"line {line}")
                n_lines = rows.line_num
                for row in rows:
                    if row and len(row) != len(header):
                        return self._ragged(line + n_lines, rows.line_num - n_lines, len(row), len(header))
                    n_lines = rows.line_num
        except csv.Error:
            return f"line {line + n_lines} has a cell of many lines; close its double quote."
        except UnicodeDecodeError as error:
            bad, encoding = error.object[error.start : error.end], encoding_name(self.format.encoding)
            return f"{bad!r} is not text in {encoding}; give the encoding, such as 'windows-1252'."
        except ValueError as error:
            return str(error)
        return None

    def _ragged(self, line: int, n_lines: int, n_cells: int, n_columns: int) -> str:
        where = f"line {line}" if n_lines == 1 else f"the row in lines {line} to {line + n_lines - 1}"
        remedy = "close its double quote" if n_lines > 1 else "put cells that contain it into double quotes"
        return (
            f"{where} has {n_cells} cells, and the header has {n_columns}. Columns are separated by "
            f"{self.format.delimiter!r}: {remedy}, add missing cells, or pass another delimiter."
        )

    def _lines(self, path: str) -> "io.TextIOWrapper":
        import pyarrow as pa

        lines = io.TextIOWrapper(pa.input_stream(path), encoding=self._python_encoding, newline="")
        for _ in islice(lines, self.format.n_skipped):
            pass
        return lines

    @property
    def _python_encoding(self) -> str:
        return "utf-8-sig" if self.format.encoding == "utf-8" else self.format.encoding

    def require_whole(self, path: str, n_rows: int) -> None:
        """Raise ValueError if most lines of a file ended up inside cells, given its number of rows."""
        if path in self._whole:
            return
        n_lines = sum(chunk.count(b"\n") for chunk in byte_chunks(path, SCAN_BYTES))
        if 2 * n_rows < n_lines - 1:
            self._require_few_swallowed(path, n_lines)
        self._whole.add(path)

    def _require_few_swallowed(self, path: str, n_lines: int) -> None:
        """Raise ValueError if most lines of a file are inside cells and have as many delimiters as the header."""
        with self._lines(path) as lines:
            rows = csv.reader(lines, delimiter=self.format.delimiter)
            n_marks, n_swallowed, start = len(next(rows, [])) - 1, 0, None
            before = rows.line_num
            for row in rows:
                if rows.line_num > before + 1:
                    inside = [line for cell in row for line in cell.split("\n")[1:-1]]
                    n_own = sum(line.count(self.format.delimiter) == n_marks for line in inside)
                    start = before + 1 if n_own and start is None else start
                    n_swallowed += n_own
                before = rows.line_num
        if 2 * n_swallowed > n_lines:
            raise ValueError(
                f"{n_swallowed:,} of {n_lines:,} lines are inside of cells. The file is damaged; close the double "
                f"quote in line {(start or 1) + self.format.n_skipped}."
            )


class _NamingFault:
    def __init__(self, files: TextFiles, path: str) -> None:
        self._files, self._path = files, path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if isinstance(error, OSError | ValueError):
            words = self._files.fault(self._path) or error
            raise OSError(f"File ({self._path}) cannot be read: {words}") from error


def _codes(heads: "list[pa.RecordBatch]", digits: list[str]) -> list[str]:
    import pyarrow.compute as pc

    return [
        name
        for name in digits
        if any(pc.any(pc.match_substring_regex(head.column(name), _ZERO)).as_py() for head in heads)
    ]


def _groups(decimal: str) -> str:
    return f"[{GROUPS.replace(decimal, '')}]"


def _grouped(heads: "list[pa.RecordBatch]", texts: list[str], decimal: str) -> list[str]:
    """Return columns of strings that are all numbers, some with thousands separators."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fraction = rf"(\{decimal}\d*)?\s*$"
    groups = rf"^\s*[+-]?[1-9]\d{{0,2}}({_groups(decimal)}\d{{3}})+{fraction}"
    number = rf"{groups}|^\s*[+-]?(0|[1-9]\d*){fraction}"
    found = []
    for name in texts:
        values = pa.chunked_array([head.column(name) for head in heads], pa.string())
        has_groups = pc.any(pc.match_substring_regex(values, groups)).as_py()
        if has_groups and pc.all(pc.match_substring_regex(values, number)).as_py():
            found.append(name)
    return found
