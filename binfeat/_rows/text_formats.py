"""Formats of text files: encoding, delimiter and decimal separator, detected or given."""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

_DELIMITERS = ",", ";", "\t", "|"
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_ENCODINGS = {"utf-8": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252", "iso8859-1": "Latin-1"}
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # bytes without a character in Windows-1252
_HEAD_BYTES = 2**20  # pyarrow infers column types from this number of bytes
_HEAD_ROWS = 1000  # rows for the detection of the delimiter
_VOTES = 1000
_WIDE = "utf-16", "utf-32"  # encodings with NUL bytes
_CHUNK = 2**22
SCAN_BYTES = 2**28  # scanned in a quarter of a second
_DECLARED = re.compile(r"sep=(.)\r?\n")  # first line of some files written by Excel
GROUPS = " .,'’\u00a0\u202f"  # possible thousands separators; the decimal separator is excluded
_NUMBER = re.compile(rf"[+-]?\d[\d{GROUPS}]*([eE][+-]?\d+)?%?")
_PLAIN = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class TextFormat:
    delimiter: str
    decimal: str
    encoding: str
    n_skipped: int  # lines before the header
    usual: str  # the delimiter that the names of the files suggest

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        usual: str,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> Self:
        """Return the format of files; options that are None are detected in the first lines of the first file.

        TypeError or ValueError for bad options, and ValueError for damaged files.
        """
        _check_options(delimiter, decimal, encoding)
        encoding = None if encoding is None else codecs.lookup(encoding).name.removesuffix("-sig")
        if encoding is None or not encoding.startswith(_WIDE):
            found = _encodings(names)  # refuses NUL bytes, even if the encoding is given
            encoding = _one_of(found) if encoding is None else encoding
        text = _head(names[0], encoding)
        declared = _DECLARED.match(text)
        if declared is not None:
            text = text[declared.end() :]
            delimiter = declared[1] if delimiter is None else delimiter
        delimiter = _delimiter_of(text, usual) if delimiter is None else _mark_of(delimiter)
        if decimal is None:
            decimal = _decimal_of(text, delimiter)
        return cls(delimiter, decimal, encoding, 0 if declared is None else 1, usual)

    @property
    def differs(self) -> bool:
        """Return True if the format differs from the usual one: delimiter of the file name, UTF-8, decimal points."""
        return (self.delimiter, self.decimal, self.encoding) != (self.usual, ".", "utf-8")

    def __str__(self) -> str:
        mark = _NAMES.get(self.delimiter, repr(self.delimiter))
        sign = "points" if self.decimal == "." else "commas"
        return f"columns separated by {mark}, decimal {sign}, encoding {encoding_name(self.encoding)}"


def encoding_name(encoding: str) -> str:
    return _ENCODINGS.get(encoding, encoding)


def _check_options(delimiter: str | None, decimal: str | None, encoding: str | None) -> None:
    for name, value in (("delimiter", delimiter), ("decimal", decimal), ("encoding", encoding)):
        if not isinstance(value, str | None):
            raise TypeError(f"{name} must be a string or None, got {value!r}.")
    if delimiter is not None and (len(_mark_of(delimiter)) != 1 or delimiter in '"\r\n' or not delimiter.isascii()):
        raise ValueError(f"delimiter must be one ASCII character, such as ',', ';' or tab, got {delimiter!r}.")
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    if encoding is not None:
        with suppress(LookupError, ValueError):
            if codecs.lookup(encoding)._is_text_encoding:
                return
        raise ValueError(
            f"encoding must be known to Python, such as 'utf-8', 'utf-16', 'windows-1252' or 'latin-1', got "
            f"{encoding!r}."
        )


def _mark_of(delimiter: str) -> str:
    return "\t" if delimiter in ("tab", "\\t") else delimiter


def _encodings(names: Sequence[str]) -> dict[str, str]:
    """Return the encodings of files, with the first file of each; ValueError for NUL bytes."""
    found, left = dict[str, str](), SCAN_BYTES
    for name in names:
        own, n_bytes = _scanned(name, left)
        found.setdefault(own, name)
        left -= n_bytes
        if left <= 0:
            break
    return found


def _one_of(found: dict[str, str]) -> str:
    """Return the encoding of all files; ValueError if they differ."""
    found.pop("ascii", None)
    if "iso8859-1" in found:  # like Windows-1252, with control characters instead of some signs
        found.pop("cp1252", None)
    if len(found) > 1:
        (one, first), (other, second) = list(found.items())[:2]
        raise ValueError(
            f"All files must have one encoding; {first} has {encoding_name(one)}, and {second} has "
            f"{encoding_name(other)}. Convert them to UTF-8."
        )
    return next(iter(found), "utf-8")


def _scanned(name: str, most: int) -> tuple[str, int]:
    """Return the encoding of the first bytes of a file ("ascii" if many encodings agree), and the number of bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    n_bytes, n_lines, encoding, first = 0, 0, "ascii", b""
    for chunk in byte_chunks(name, most):
        if not n_bytes:
            mark = next((mark for mark in _MARKS if chunk.startswith(mark)), b"")
            if _MARKS.get(mark) == "utf-16":
                return "utf-16", len(chunk)
            encoding = _MARKS.get(mark, encoding)
        nul = chunk.find(0)
        if nul >= 0:
            line = n_lines + chunk.count(b"\n", 0, nul) + 1
            raise ValueError(
                f"File ({name}) cannot be read: line {line} has NUL bytes. The file is damaged, or its encoding is "
                "UTF-16 without a byte order mark; then give the encoding, 'utf-16-le' or 'utf-16-be'."
            )
        if encoding in ("ascii", "utf-8") and not (encoding == "ascii" and chunk.isascii()):
            first = first or chunk  # This is the first chunk that is not ASCII.
            encoding = _after(decoder, chunk)
        if encoding == "cp1252" and _UNDEFINED.search(chunk):
            encoding = "iso8859-1"
        n_lines += chunk.count(b"\n")
        n_bytes += len(chunk)
    cut = decoder.getstate()[0]
    if encoding == "utf-8" and cut and n_bytes < most and first.removesuffix(cut).isascii():
        # The only non-ASCII bytes are an incomplete character at the end, so the file is not UTF-8.
        encoding = "cp1252"
    return encoding, n_bytes


def _after(decoder: codecs.IncrementalDecoder, chunk: bytes) -> str:
    try:
        decoder.decode(chunk)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def byte_chunks(name: str, most: int) -> Iterator[bytes]:
    """Read the first bytes of a file, decompressed if its name ends in .gz; OSError if it cannot be read."""
    import pyarrow as pa

    with reading(name), pa.input_stream(name) as file:
        while most > 0 and (chunk := file.read(min(_CHUNK, most))):
            yield chunk
            most -= len(chunk)


@contextmanager
def reading(path: str | Path, prefix: str = "File ") -> Iterator[None]:
    """Convert errors of reading a file to an OSError that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise OSError(f"{prefix}({path}) cannot be read: {error}") from error


def _head(name: str, encoding: str) -> str:
    """Read the first lines of a file, without a byte order mark."""
    head = next(byte_chunks(name, _HEAD_BYTES), b"")
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    text = text.removeprefix("\ufeff")
    return text[: text.rfind("\n") + 1] if len(head) == _HEAD_BYTES and "\n" in text else text


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    with suppress(csv.Error):  # a cell is too long; use the rows before it
        yield from filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def _delimiter_of(text: str, usual: str) -> str:
    """Return the delimiter for which the largest share of rows has as many cells as the header.

    The share of numeric cells decides ties. The header must have at least two cells.
    """
    marks = usual, *(mark for mark in _DELIMITERS if mark != usual)
    rows = {mark: list(islice(_rows(text, mark), _HEAD_ROWS)) for mark in marks}
    several = [mark for mark in marks if rows[mark] and len(rows[mark][0]) > 1]
    return max(several, key=lambda mark: _score(*rows[mark]), default=usual)


def _score(header: list[str], *rows: list[str]) -> tuple[float, float]:
    """Return the share of rows with as many cells as the header, and the share of numeric cells."""
    cells = [cell for row in rows for cell in row if cell]
    n_fit = sum(len(row) == len(header) for row in rows)
    return n_fit / max(1, len(rows)), sum(map(_is_number, cells)) / max(1, len(cells))


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None


def _decimal_of(text: str, delimiter: str) -> str:
    """Return the decimal separator of most unambiguous numbers; "," if all numbers with commas are ambiguous."""
    if delimiter == "," and '"' not in text:
        return "."
    votes, doubtful = {".": 0, ",": 0}, {".": 0, ",": 0}
    for row in islice(_rows(text, delimiter), 1, None):
        for cell in row:
            sign, sure = _sign_of(cell.strip())
            if sign:
                (votes if sure else doubtful)[sign] += 1
        if sum(votes.values()) >= _VOTES:
            break
    if not any(votes.values()):
        return "," if doubtful[","] and not doubtful["."] and delimiter != "," else "."
    return "," if votes[","] > votes["."] - (delimiter != ",") else "."


def _sign_of(cell: str) -> tuple[str, bool]:
    """Return the decimal separator of a number ("" if none), and True if it cannot be a thousands separator."""
    if not ("." in cell or "," in cell) or not _is_number(cell):
        return "", False
    plain = _PLAIN.fullmatch(cell)
    if plain is not None:
        whole, _, fraction = cell.lstrip("+-").partition(plain[1])
        return plain[1], len(fraction) != 3 or not 1 <= len(whole) <= 3 or whole.startswith("0")
    for sign, other in ((",", "."), (".", ",")):
        groups = f"[{GROUPS.replace(sign, '')}]"
        if re.fullmatch(rf"[+-]?\d{{1,3}}({groups}\d{{3}})+({re.escape(sign)}\d*)?", cell):
            return sign, other in cell or sign in cell
    return "", False
