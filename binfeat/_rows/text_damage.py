"""Finds damage in text files: ragged rows, open quotes, and bytes in another encoding."""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from binfeat._common.frames import require_distinct
from binfeat._rows.text_formats import SCAN_BYTES, TextFormat, byte_chunks, encoding_name


def first_fault(path: str, format: TextFormat) -> str | None:
    """Return a description of the first line that does not match the header, or None."""
    line, n_lines = 1 + format.n_skipped, 0
    try:
        with _lines(path, format) as lines:
            rows = csv.reader(lines, delimiter=format.delimiter)
            header = next(rows, [])
            if not header:
                return "it is empty; its first line must have the names of the columns."
            require_distinct(header, f"line {line}")
            n_lines = rows.line_num
            for row in rows:
                if row and len(row) != len(header):
                    return _ragged(line + n_lines, rows.line_num - n_lines, len(row), len(header), format)
                n_lines = rows.line_num
    except csv.Error:
        where = f"line {line + n_lines} has a cell that"
        if rows.line_num - n_lines > 1:
            return f"{where} spans many lines; close its double quote."
        return (
            f"{where} is longer than {csv.field_size_limit():,} characters; shorten it, or save the table as Parquet."
        )
    except UnicodeDecodeError as error:
        bad, encoding = error.object[error.start : error.end], encoding_name(format.encoding)
        return f"{bad!r} is not text in {encoding}; give the encoding, such as 'windows-1252'."
    except (OSError, ValueError) as error:
        return str(error)
    return None


def header_of(path: str, format: TextFormat) -> list[str]:
    """Return the names of the columns of a file; csv.Error or ValueError if they cannot be read."""
    with _lines(path, format) as lines:
        return next(csv.reader(lines, delimiter=format.delimiter), [])


def require_whole(path: str, n_rows: int, format: TextFormat) -> None:
    """Raise ValueError if most lines of a file ended up inside cells, given its number of rows.

    These lines have as many delimiters as the header.
    """
    n_lines = sum(chunk.count(b"\n") for chunk in byte_chunks(path, SCAN_BYTES))
    if 2 * n_rows >= n_lines - 1:
        return
    pieces, n_swallowed, start = _inner_lines(path, format), 0, None
    _, n_columns, _ = next(pieces)
    for line, _, inside in pieces:
        n_own = sum(own.count(format.delimiter) == n_columns - 1 for own in inside)
        start = line if n_own and start is None else start
        n_swallowed += n_own
    if 2 * n_swallowed > n_lines:
        raise ValueError(
            f"{n_swallowed:,} of {n_lines:,} lines are inside quoted cells. The file is damaged; close the double "
            f"quote in line {start}."
        )


def _inner_lines(path: str, format: TextFormat) -> Iterator[tuple[int, int, Iterable[str]]]:
    """Yield, for each row, the number of its first line, its number of cells, and its lines except the first and last.

    If a cell is too long for `csv.reader`, all further lines are yielded as lines of this row.
    """
    line, own = 1 + format.n_skipped, list[str]()

    def noted(lines: Iterable[str]) -> Iterator[str]:
        for text in lines:
            own.append(text)
            yield text

    with _lines(path, format) as lines:
        try:
            for row in csv.reader(noted(lines), delimiter=format.delimiter):
                yield line, len(row), own[1:-1]
                line += len(own)
                own.clear()
        except csv.Error:
            yield line, 0, chain(own[1:], lines)


def _ragged(line: int, n_lines: int, n_cells: int, n_columns: int, format: TextFormat) -> str:
    """Describe a row with more or fewer cells than the header."""
    where = f"line {line}" if n_lines == 1 else f"the row in lines {line} to {line + n_lines - 1}"
    remedy = "close its double quote" if n_lines > 1 else "put cells that contain it into double quotes"
    return (
        f"{where} has {n_cells} cells, and the header has {n_columns}. Columns are separated by "
        f"{format.delimiter!r}: {remedy}, add missing cells, or pass another delimiter."
    )


def _lines(path: str, format: TextFormat) -> io.TextIOWrapper:
    import pyarrow as pa

    encoding = "utf-8-sig" if format.encoding == "utf-8" else format.encoding
    lines = io.TextIOWrapper(pa.input_stream(path), encoding=encoding, newline="")
    for _ in islice(lines, format.n_skipped):
        pass
    return lines
