"""CSV files from spreadsheets: detected formats, options, and errors of damaged files."""

import gzip
import logging

import numpy as np
import pandas as pd
import pytest
from hard import hard

from binfeat import KernelMachineRegressor, RandomBinning, blocks
from binfeat._rows import datasets, text_files

pa = pytest.importorskip("pyarrow")

GERMAN = "Größe;Preis;Ort;y\n" + "".join(f"{i},5;{i + 1}.234,50;Köln;{i},25\n" for i in range(1, 9))


def put(path, content, encoding="utf-8"):
    """Write a file with this text, compressed according to its name."""
    data = content if isinstance(content, bytes) else content.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(path, **options):
    """Return X as a dictionary, and y."""
    parts = list(blocks(path, target="y", **options))
    table = pa.concat_tables([X for X, _ in parts])
    return table.to_pydict(), np.concatenate([y for _, y in parts])


@pytest.mark.parametrize("name", ["g.csv", "g.csv.gz", "g.tsv"])
@pytest.mark.parametrize(
    ("encoding", "words"),
    [("utf-8", "UTF-8"), ("utf-8-sig", "UTF-8"), ("utf-16", "UTF-16"), ("cp1252", "Windows-1252")],
)
def test_a_table_of_a_german_spreadsheet(tmp_path, caplog, name, encoding, words):
    with caplog.at_level(logging.INFO, "binfeat"):
        X, y = read(put(tmp_path / name, GERMAN, encoding))
    assert {
        "Größe": [i + 0.5 for i in range(1, 9)],
        "Preis": [1000.0 * (i + 1) + 234.5 for i in range(1, 9)],
        "Ort": ["Köln"] * 8,
    } == X
    np.testing.assert_array_equal(y, np.arange(1, 9) + 0.25)
    (line,) = caplog.messages
    assert line.endswith(
        f"{name}: columns separated by semicolons, decimal commas, encoding {words}, numbers with grouped digits in "
        "'Preis'"
    )


FORMATS = {  # text, column a, separator, decimal character
    "usual": ("a,y\n1.5,1\n2,2\n", [1.5, 2.0], ",", "."),
    "French": ("a;y\n1\u202f234,5;1\n12;2\n1\u00a0234\u00a0567;3\n", [1234.5, 12.0, 1234567.0], ";", ","),
    "Swiss": ("a;y\n1'234.5;1\n12;2\n1’234’567;3\n", [1234.5, 12.0, 1234567.0], ";", "."),
    "American": ('a,y\n"1,234",1\n12,2\n"1,234,567.5",3\n', [1234.0, 12.0, 1234567.5], ",", "."),
    "exponents": ('a,y\n"1,234",1\n1e5,2\n.5,3\n', [1234.0, 1e5, 0.5], ",", "."),
    "quoted commas": ('a,y\n"1,5",1\n"2,25",2\n', [1.5, 2.25], ",", ","),
    "three decimals": ("a;y\n1,234;1\n2,345;2\n", [1.234, 2.345], ";", ","),
    "three decimals and points": ("a;y\n1.234;1\n2.345;2\n", [1.234, 2.345], ";", "."),
    "grouped by points": ("a;y\n1.234;1\n2.345.678;2\n", [1234.0, 2345678.0], ";", ","),
    "addresses": ("a,y\n192.168.1.1,1\n10.0.0.1,2\n", ["192.168.1.1", "10.0.0.1"], ",", "."),
    "dates": ("a;y\n31.12.2024;1,5\n1.2.2025;2,5\n", ["31.12.2024", "1.2.2025"], ";", ","),
    "hours": ("a;b;y\n1,5;12.30;1\n2,5;13.40;2\n", [1.5, 2.5], ";", ","),
    "codes": ("a;y\n01234;1,5\n12345;2,5\n", ["01234", "12345"], ";", ","),
    "prose": ('a,y\n"hello; world, this",1\n"foo; bar",2\n', ["hello; world, this", "foo; bar"], ",", "."),
    "declared": ("sep=;\r\na;y\r\n1,5;1\r\n2;2\r\n", [1.5, 2.0], ";", ","),
    "declared after a mark": ("\ufeffsep=|\r\na|y\r\n1.5|1\r\n2|2\r\n", [1.5, 2.0], "|", "."),
    "tabs": ("a\ty\n1,5\t1\n2\t2\n", [1.5, 2.0], "\t", ","),
    "decimals after many rows": ("a;y\n" + "12;1\n" * 20_000 + "1.234,5;1\n", [12.0] * 20_000 + [1234.5], ";", ","),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_formats_are_detected(tmp_path, kind):
    text, a, delimiter, decimal = FORMATS[kind]
    X, _ = read(put(tmp_path / "one.csv", text))
    assert X["a"] == a
    found = blocks(tmp_path / "one.csv", target="y").text.format
    assert (found.delimiter, found.decimal) == (delimiter, decimal)
    assert found.differs == (delimiter != "," or decimal != ".")


@pytest.mark.parametrize("delimiter", [",", *hard(";", "\t", "|")])
@pytest.mark.parametrize("end", ["\n", *hard("\r\n")])
@pytest.mark.parametrize("name", ["one.csv.gz", *hard("one.csv")])
@pytest.mark.parametrize("encoding", ["utf-8", *hard("utf-8-sig", "utf-16")])
def test_many_columns_after_a_declared_delimiter(tmp_path, name, encoding, end, delimiter):
    rows = [f"sep={delimiter}", *(delimiter.join(cells) for cells in (["a", "b", '"c\nd"', "y"], "1234", "5678")), ""]
    X, y = read(put(tmp_path / name, end.join(rows), encoding))
    assert X == {"a": [1, 5], "b": [2, 6], "c\nd": [3, 7]}
    np.testing.assert_array_equal(y, [4, 8])


def test_files_with_a_declared_delimiter_have_one_header(tmp_path):
    for name in "ab":
        put(tmp_path / f"{name}.csv", "sep=;\na;b;y\n1;2;3\n")
    assert read(tmp_path)[0] == {"a": [1, 1], "b": [2, 2]}
    put(tmp_path / "b.csv", "sep=;\nb;a;y\n1;2;3\n")
    with pytest.raises(OSError, match=r"cannot be read: All files .*b\.csv differs from .*a\.csv"):
        blocks(tmp_path, target="y")


def test_a_usual_file_is_read_without_a_word(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "binfeat"):
        read(put(tmp_path / "one.csv", FORMATS["usual"][0]))
    assert not caplog.messages


def test_missing_values_are_those_of_pandas(tmp_path):
    words = ["", "None", "<NA>", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "NULL", "null", "NaN", "nan", "-nan"]
    path = put(tmp_path / "one.csv", "a,b,y\n1.5,red,0\n" + "".join(f"{word},{word},1\n" for word in words))
    assert pd.read_csv(path)["b"].isna().sum() == len(words)
    assert read(path)[0] == {"a": [1.5, *[None] * len(words)], "b": ["red", *[None] * len(words)]}


@pytest.mark.parametrize("first", [[], ["sep=;"]])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_are_missing_values_of_a_single_column(tmp_path, first, end):
    path = put(tmp_path / "one.csv", end.join([*first, "b", "1", "", "2", "", ""]))
    ((_, found),) = blocks(path, target="b")
    np.testing.assert_array_equal(found, [1, np.nan, 2, np.nan])


def test_options_override(tmp_path):
    path = put(tmp_path / "one.csv", "a;y\n1.234;1\n2.345;2\n")
    assert read(path)[0]["a"] == [1.234, 2.345]
    assert read(path, decimal=",")[0]["a"] == [1234.0, 2345.0]
    assert read(path, delimiter=";", decimal=".", encoding="latin-1")[0]["a"] == [1.234, 2.345]
    path = put(tmp_path / "two.csv", "a/y\nü/1\n", "utf-16-le")
    assert read(path, delimiter="/", encoding="UTF-16LE")[0]["a"] == ["ü"]
    path = put(tmp_path / "three.csv", "a\ty;\nb\t1\n")
    assert blocks(path, target="y;", delimiter="tab").inputs == ["a"]


def test_folders_are_columns(tmp_path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        put(tmp_path / f"year={year}" / "one.csv", "a;y\n1.234,5;1\n")
    assert read(tmp_path)[0] == {"a": [1234.5] * 2, "year": [2023, 2024]}


def test_folders_outside_the_given_ones_are_no_columns(tmp_path, monkeypatch):
    for color in ("red", "blue"):
        (tmp_path / "y=7" / f"color={color}").mkdir(parents=True)
        put(tmp_path / "y=7" / f"color={color}" / "one.csv", f"a,y\n{color},1\n")
    assert read(tmp_path / "y=7")[0] == {"a": ["blue", "red"], "color": ["blue", "red"]}
    assert read(tmp_path / "y=7" / "color=red")[0] == read(tmp_path / "y=7" / "color=red" / "one.csv")[0]
    assert read(tmp_path / "y=7" / "color=red")[0] == {"a": ["red"]}
    monkeypatch.chdir(tmp_path / "y=7")
    for paths in (["color=red", "color=blue"], ["color=red/one.csv", "color=blue"], ["./color=red", "color=blue"]):
        assert datasets.opened(*paths)[0].to_table()["color"].to_pylist() == ["red", "blue"]


def test_hidden_folders_are_skipped(tmp_path):
    folder = tmp_path / ".cache"
    for name in ("_a=1/one.csv", "_a=2/.ipynb_checkpoints/one-checkpoint.csv", "_temporary/0/one.csv", ".one.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        put(folder / name, "b,y\n2,3\n")
    assert read(folder)[0] == {"b": [2], "_a": [1]}
    assert read(folder / ".one.csv")[0] == {"b": [2]}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("year", [2024, "this"])
@pytest.mark.parametrize("number", [1, 3], ids=["first file", "later file"])
def test_folders_with_the_name_of_a_column_are_refused(tmp_path, form, year, number):
    folder = tmp_path / f"year={year}" / "month=5"
    folder.mkdir(parents=True)
    for name, table in ((number, {"a": [1], "year": [1990], "y": [2]}), (2, {"a": [1], "y": [2]})):
        getattr(pd.DataFrame(table), f"to_{form}")(folder / f"{name}.{form}", index=False)
    with pytest.raises(ValueError, match=rf"^Column 'year' is in file \(.*{number}\.{form}\) and in .* 'year=\.\.\.'"):
        blocks(tmp_path, target="y")


def test_columns_that_are_also_names_of_folders(tmp_path):
    """As polars writes them; the files contain all values."""
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        table = pd.DataFrame({"year": [year], "a": [year - 2022], "y": [0]})
        table.to_parquet(tmp_path / f"year={year}" / "one.parquet", index=False)
    assert read(tmp_path)[0] == {"year": [2023, 2024], "a": [1, 2]}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"delimiter": "::"}, ValueError, "delimiter must be one ASCII character, .*, got '::'"),
        ({"delimiter": '"'}, ValueError, "delimiter must be one ASCII character"),
        ({"delimiter": 5}, TypeError, "delimiter must be a string or None, got 5"),
        ({"decimal": ";"}, ValueError, "decimal must be '.' or ',', got ';'"),
        ({"encoding": "utf-99"}, ValueError, "encoding must be known to Python, .* got 'utf-99'"),
        ({"encoding": "base64"}, ValueError, "encoding must be known to Python, .* got 'base64'"),
        ({"encoding": "utf-8"}, OSError, r"b'\\xf6' is not text in UTF-8; give the encoding"),
    ],
)
def test_bad_options(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        blocks(put(tmp_path / "one.csv", GERMAN, "cp1252"), target="y", **options)


def test_options_are_for_text(tmp_path):
    table = pd.DataFrame({"a": [1.0], "y": [2.0]})
    table.to_parquet(tmp_path / "one.parquet")
    with pytest.raises(ValueError, match="decimal must be None for files of the format parquet"):
        blocks(tmp_path / "one.parquet", target="y", decimal=",")
    with pytest.raises(ValueError, match="A table that is not read from a path does not accept encoding"):
        blocks(table, target="y", encoding="utf-8")


def test_encodings_of_several_files(tmp_path):
    for number, encoding in enumerate(("cp1252", "ascii", "latin-1")):
        put(tmp_path / f"{number}.csv", "a,y\nfür,1\n" if encoding != "ascii" else "a,y\nfuer,2\n", encoding)
    put(tmp_path / "3.csv", b"a,y\n\x81\xfc,4\n")  # not valid in Windows-1252
    assert read(tmp_path)[0]["a"] == ["für", "fuer", "für", "\x81ü"]
    put(tmp_path / "4.csv", "a,y\nfür,1\n")
    with pytest.raises(
        ValueError, match=r"must have one encoding; .*\.csv has Latin-1, and .*4\.csv has UTF-8\. Convert"
    ):
        blocks(tmp_path, target="y")


def test_an_encoding_that_shows_after_many_lines(tmp_path):
    X, _ = read(put(tmp_path / "one.csv", "a,y\n" + "abc,1\n" * 400_000 + "ü,2\n", "latin-1"))
    assert X["a"][-1] == "ü"


def test_a_single_letter_at_the_end_determines_the_encoding(tmp_path):
    X, _ = read(put(tmp_path / "one.csv", "y,a\n1,caf\n2,café", "windows-1252"))
    assert X["a"] == ["caf", "café"]
    (tmp_path / "cut.csv").write_bytes("y,a\n1,né\n2,café".encode()[:-1])
    with pytest.raises(ValueError, match="not text in UTF-8"):
        read(tmp_path / "cut.csv")


def test_tabs_beside_grouped_digits_are_ignored(tmp_path):
    path = put(tmp_path / "one.csv", "a;y\n1.234,5\t;1\n\t7;2\n")
    assert read(path, delimiter=";")[0]["a"] == [1234.5, 7.0]


def test_files_of_which_some_have_grouped_digits(tmp_path):
    put(tmp_path / "0.csv", "a;y\n12;1,5\n")
    put(tmp_path / "1.csv", "a;y\n1.234;1,5\n")
    put(tmp_path / "2.csv", "a;y\n1.234.567,5;1,5\n")
    source = blocks(tmp_path, target="y")
    assert read(tmp_path)[0]["a"] == [12.0, 1234.0, 1234567.5]
    assert [X.schema.types for X, _ in source] == [[pa.float64()]] * 3


@pytest.mark.parametrize("late", ["far", "3.5", "1.23", "1.2345,5", "12.11.2024", "007"])
def test_other_values_after_grouped_digits_are_named(tmp_path, monkeypatch, late):
    monkeypatch.setattr(text_files, "_BLOCK_ROWS", 3)
    monkeypatch.setattr(text_files, "_HEAD_ROWS", 3)
    path = put(tmp_path / "one.csv", "a;y\n" + "1.234,5;1\n" * 3 + f"{late};1\n")
    with pytest.raises(ValueError, match=rf"one.csv, column 'a', cannot be read: .*'{late}' is .* move its row to the"):
        read(path)


@pytest.mark.parametrize(
    ("usual", "late", "expected"),
    [("", "abc", ["abc", None]), ("7", "7.5", [7.5, 7.0]), ("7", "abc", ["abc", "7"]), ("true", "2", ["2", "true"])],
)
def test_values_of_another_type_after_the_first_megabyte_have_a_remedy(tmp_path, usual, late, expected):
    put(tmp_path / "0.csv", f"a,y\n{usual},1\n")
    many = put(tmp_path / "1.csv", "a,y\n" + f"{usual},1.00000\n" * 200_000 + f"{late},2\n")
    with pytest.raises(ValueError, match=rf"1\.csv.*'{late}'.*move its row to the start of the first file\.$"):
        read(tmp_path)
    put(many, many.read_text().removesuffix(f"{late},2\n"))
    put(tmp_path / "0.csv", f"a,y\n{late},2\n{usual},1\n")
    assert read(tmp_path)[0]["a"][:2] == expected


def test_a_model_of_a_german_table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) * 2000
    y = X[:, 0] / 1000 + np.sin(X[:, 1] / 1000)
    frame = pd.DataFrame(
        {"a": [f"{v:,.3f}".translate(str.maketrans(",.", ".,")) for v in X[:, 0]], "b": X[:, 1], "y": y}
    )
    frame.to_csv(tmp_path / "g.csv", sep=";", decimal=",", index=False)
    given = {"features": "binning", "gamma": "scale", "alpha": 0.1, "solver_params": {"n_grids": 20}, "random_state": 0}
    model = KernelMachineRegressor(**given).fit(blocks(tmp_path / "g.csv", target="y"))
    (own,) = blocks(tmp_path / "g.csv", target="y")
    known = KernelMachineRegressor(**given).fit(blocks(pd.DataFrame({"a": X[:, 0].round(3), "b": X[:, 1]}), y))
    np.testing.assert_allclose(model.predict(own[0]), known.predict(own[0]), rtol=1e-6)


LINES = "1,2\n" * 50
DAMAGED = {
    "NUL bytes": (f"a,y\n{LINES}1,\0\0\n{LINES}", ValueError, r"line 52 has NUL bytes. The file is damaged"),
    "UTF-16 without a mark": ("a,y\n1,2\n".encode("utf-16-le"), ValueError, "then give the encoding, 'utf-16-le'"),
    "more cells": (
        f"a,y\n1,2\n\n1,2,3\n{LINES}",
        OSError,
        "line 4 has 3 cells, and the header has 2. .* double quotes",
    ),
    "fewer cells": ("a,b,y\n1,2,3\n1,2\n", OSError, "line 3 has 2 cells, and the header has 3"),
    "late": ("a,y\n" + "1,2\n" * 300_000 + "1,2,3\n", OSError, "line 300002 has 3 cells, and the header has 2"),
    "declared": ("sep=,\na,y\n1,2,3\n", OSError, "line 3 has 3 cells, and the header has 2"),
    "declared, with more cells": ("sep=;\na;b;y\n1;2\n", OSError, r"^[^(]*\(.*\) cannot be read: line 3 has 2 cells"),
    "declared and nothing else": ("sep=;\n", OSError, "it is empty; its first line must have the names"),
    "an open quote": (f'a,y\n1,2\n"x,2\n{LINES}', OSError, "the row in lines 3 to 53 has 1 cells, .* close its double"),
    "a quote too many": (
        'a,y\np,1\n"5 pipe,2\n' + "p,1\n" * 500 + '7" pipe,3\n',
        ValueError,
        "500 of 504 lines are inside quoted cells. The file is damaged; close the double quote in line 3",
    ),
    "an open quote in a long header": ('"a,y\n' + "1,2\n" * 40_000, OSError, "line 1 has a cell that spans many lines"),
    "a quote too many before a cell that is too long for csv": (
        'a,y\np,1\n"5 pipe,2\n' + "p,1\n" * 40_000 + '7" pipe,3\n',
        ValueError,
        "line 3 has a cell that spans many lines; close its double quote",
    ),
    "a long cell": (
        f"a,y\n1,2\n{'x' * 3_000_000},2\n",
        OSError,
        "line 3 has a cell that is longer than 131,072 .*Parquet",
    ),
    "a long name": (f"{'x' * 3_000_000},y\n1,2\n", OSError, "line 1 has a cell that is longer than 131,072 characters"),
    "names that repeat": ("a,b,a,y\n1,2,3,4\n", OSError, r"line 1 has 2 columns named 'a' \(columns 1, 3\); rename"),
    "nothing": ("", OSError, "it is empty; its first line must have the names"),
}


@pytest.mark.parametrize("n_scanned", [2**28, *hard(1000)])
def test_a_truncated_compressed_file_is_named(tmp_path, monkeypatch, n_scanned):
    monkeypatch.setattr("binfeat._rows.text_formats.SCAN_BYTES", n_scanned)
    path = put(tmp_path / "one.csv.gz", "a,y\n" + "".join(f"{i},{i * i % 97}\n" for i in range(300_000)))
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(OSError, match=r"^File \(.*one\.csv\.gz\) cannot be read: Truncated compressed stream$"):
        read(path)


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files(tmp_path, kind):
    content, error, message = DAMAGED[kind]
    path = put(tmp_path / "one.csv", content)
    with pytest.raises(error, match=message) as raised:
        read(path)
    assert "one.csv" in str(raised.value)


def test_nul_bytes_where_the_encoding_is_given(tmp_path):
    with pytest.raises(ValueError, match="line 52 has NUL bytes"):
        blocks(put(tmp_path / "one.csv", DAMAGED["NUL bytes"][0]), target="y", encoding="utf-8")


@pytest.mark.parametrize("mark", ["\r\r\n", *hard("\n")])
def test_cells_of_many_lines_and_blank_lines_are_no_damage(tmp_path, mark):
    rows = [f'"text {i},{mark}more, lines,{mark} of{mark} text, and\n",{i}{mark}{mark}' for i in range(60_000)]
    X, y = read(put(tmp_path / "one.csv", f"a,y{mark}" + "".join(rows)))  # more than a block of pyarrow
    np.testing.assert_array_equal(y, np.arange(60_000))
    assert X["a"][7].startswith("text 7,")


def test_long_cells_of_many_lines_are_no_damage(tmp_path):
    """Cells of more than 131,072 characters, which the reader of `csv` refuses."""
    text = "a line, of two cells\n" * 8_000
    X, y = read(put(tmp_path / "one.csv", "a,b,y\n" + "".join(f'"{text}",{i},{2 * i}\n' for i in range(5))))
    np.testing.assert_array_equal(y, 2 * np.arange(5))
    assert X["a"] == [text] * 5


def twice_named():
    rows = np.arange(40.0).reshape(20, 2)
    return {
        "pandas": pd.DataFrame(rows, columns=["a", "a"]),
        "arrow": pa.Table.from_arrays([pa.array(column) for column in rows.T], names=["a", "a"]),
    }


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_names_that_repeat_in_frames_are_named(kind):
    X, y = twice_named()[kind], np.arange(20.0)
    message = r"X has 2 columns named 'a' \(columns 1, 2\); rename or remove all but one of them"
    known = KernelMachineRegressor(
        random_state=0, features="binning", gamma="scale", alpha=1.0, solver_params={"n_grids": 5}
    )
    known.fit(pd.DataFrame({"a": y, "b": y}), y)
    for use in (
        lambda: KernelMachineRegressor().fit(X, y),
        lambda: RandomBinning().fit(X),
        lambda: blocks(X, y),
        lambda: blocks(X, target="a"),
        lambda: known.predict(X),
        lambda: known.check(X),
    ):
        with pytest.raises(ValueError, match=message) as raised:
            use()
        assert type(raised.value) is ValueError


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_names_that_repeat_in_files_are_named(tmp_path, form):
    table, path = twice_named()["arrow"], tmp_path / f"one.{form}"
    if form == "parquet":
        pa.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as out:
            out.write_table(table)
    with pytest.raises(OSError, match=r"one.* has 2 columns named 'a' \(columns 1, 2\)"):
        blocks(path, target="a")
