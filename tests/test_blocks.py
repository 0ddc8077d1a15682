"""Rows in blocks: merged bins, sources, and the same results as in memory."""

import errno
import gc
import os
import pickle
import warnings
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hard import easy, hard
from kernel_models import FIXED
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from binfeat import (
    CGRidge,
    CGRidgeClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    LabelSpreading,
    OutlierDetector,
    RandomBinning,
    RandomFourier,
    SpectralEmbedding,
    blocks,
)
from binfeat._engine.bin_tables import recode
from binfeat.features.binning import bins, code_store, tables

N_GRIDS = 7


def table(rng, n_rows=3000):
    X = rng.normal(size=(n_rows, 3)).round(1)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.1 * rng.normal(size=n_rows)


def cuts(rng, n_rows, n_blocks):
    return np.concatenate([[0], np.sort(rng.integers(0, n_rows + 1, n_blocks - 1)), [n_rows]])


def pieces(rng, n_blocks, *arrays):
    """Split the arrays at the same random rows; some pieces can be empty."""
    edges = cuts(rng, len(arrays[0]), n_blocks)
    return [tuple(own[i:j] for own in arrays) for i, j in pairwise(edges)]


def known_bins(binning):
    return bins.Bins(binning._bin_keys, binning.bin_counts_, binning.bin_offsets_)


def assert_same_bins(got, expected):
    for name in ("keys", "counts", "starts"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
        assert getattr(got, name).dtype == getattr(expected, name).dtype


@pytest.mark.parametrize("n_blocks", [1, 2, 5, 40])
def test_united_bins_are_those_of_all_rows(rng, n_blocks):
    X, _ = table(rng)
    binning = RandomBinning(gamma=1.5, n_grids=N_GRIDS, random_state=0).fit(X)
    parts, codes = [], []
    for (rows,) in pieces(rng, n_blocks, X):
        if not len(rows):
            parts.append(bins.Bins.none(N_GRIDS))
            continue
        codes.append(np.empty((N_GRIDS, len(rows)), np.uint32))
        parts.append(tables.count_bins(binning._grids, [rows], len(rows), codes=codes[-1]))
    united = bins.unite_bins(parts)
    backwards = bins.unite_bins([bins.unite_bins(parts[::2][::-1]), *parts[1::2]])
    assert_same_bins(backwards, united)
    united = bins.rank_bins(united).coded
    assert_same_bins(united, known_bins(binning))
    parts = [part for part in parts if part.keys.size]
    for part, own in zip(parts, codes, strict=True):
        recode(own, tables.codes_among(part, united), part.starts, own)
    np.testing.assert_array_equal(np.hstack(codes), binning.encode(X).codes)


@pytest.mark.engine
def test_codes_among_bins_that_lack_some():
    part = bins.Bins(np.array([7, 3, 9, 5], np.uint64), np.ones(4, np.int64), np.array([0, 3, 4]))
    united = bins.Bins(np.array([9, 7], np.uint64), np.ones(2, np.int64), np.array([0, 2, 2]))
    expected = np.array([1, -1, 0, -1], np.int64).astype(np.uint32)
    np.testing.assert_array_equal(tables.codes_among(part, united), expected)


@pytest.mark.engine
def test_bins_of_one_count_whose_hashes_share_their_top_bits():
    top = np.uint64(5 << 42)
    keys = top + np.array([9, 2, 7, 1], np.uint64)
    own = bins.Bins(keys, np.array([3, 4, 3, 3]), np.array([0, 4]))
    ranked = bins.rank_bins(own).coded
    np.testing.assert_array_equal(ranked.keys, top + np.array([2, 1, 7, 9], np.uint64))
    np.testing.assert_array_equal(ranked.counts, [4, 3, 3, 3])


# Sources.


@pytest.fixture
def folder(tmp_path, rng):
    """Return a folder of three Parquet files, and their rows."""
    X, y = table(rng, 900)
    own = tmp_path / "files"
    own.mkdir()
    for number, part in enumerate(np.split(np.arange(900), [100, 650])):
        columns = {"a": X[part, 0], "b": X[part, 1], "y": y[part], "c": X[part, 2], "w": np.ones(part.size)}
        pq.write_table(pa.table(columns), own / f"{number}.parquet", row_group_size=64)
    return own, X, y


def gathered(source):
    parts = list(source)
    return [np.concatenate([np.asarray(part[k]) for part in parts]) for k in range(len(parts[0]))]


def test_blocks_of_arrays(rng, tmp_path):
    X, y = table(rng, 250)
    np.save(tmp_path / "X.npy", X)
    source = blocks(np.load(tmp_path / "X.npy", mmap_mode="r"), y, np.arange(250), block_rows=100)
    for _ in range(2):
        assert [len(rows) for rows, _, _ in source] == [100, 100, 50]
        for got, expected in zip(gathered(source), (X, y, np.arange(250)), strict=True):
            np.testing.assert_array_equal(got, expected)
    listed = [(X[:10], y[:10]), (X[10:], y[10:])]
    assert list(blocks(listed)) == listed


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_blocks_of_sparse_matrices(form):
    X = sparse.random(100, 5, density=0.3, format="csr", random_state=0)
    parts = [part for part, _ in blocks(X.asformat(form), np.zeros(100), block_rows=30)]
    assert [part.shape[0] for part in parts] == [30, 30, 30, 10]
    np.testing.assert_array_equal(sparse.vstack(parts).toarray(), X.toarray())


@pytest.mark.parametrize("form", ["parquet", "feather", "csv"])
def test_blocks_of_a_dataset(folder, tmp_path, form):
    own, X, y = folder
    dataset = ds.dataset(own)
    if form != "parquet":
        own = tmp_path / form
        own.mkdir()
        for part in dataset.to_batches():
            write = pyarrow.csv.write_csv if form == "csv" else pyarrow.feather.write_feather
            write(pa.Table.from_batches([part]), str(own / f"{len(list(own.iterdir())):02}.{form}"))
        dataset = ds.dataset(own, format=form)
    source = blocks(dataset, target="y", weight="w", block_rows=200)
    assert next(iter(source))[0].column_names == ["a", "b", "c"]
    for _ in range(2):
        got = gathered(source)
        for part, expected in zip(got, (X, y, np.ones(900)), strict=True):
            np.testing.assert_allclose(part, expected, rtol=1e-15)
    two = next(iter(blocks(dataset, target=["y", "w"])))[1]
    np.testing.assert_allclose(two, np.column_stack([y, np.ones(900)])[: len(two)])


def test_partitions_are_columns(folder, tmp_path):
    own, _, y = folder
    ds.write_dataset(
        ds.dataset(own), tmp_path / "split", format="parquet", partitioning=["w"], partitioning_flavor="hive"
    )
    source = blocks(ds.dataset(tmp_path / "split", partitioning="hive"), target="y")
    assert "w" in next(iter(source))[0].column_names
    assert sum(len(targets) for _, targets in source) == y.size


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "path"])
@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_blocks_of_a_path(folder, tmp_path, kind, form):
    own, X, y = folder
    if form != "parquet":
        write = pyarrow.csv.write_csv if form == "csv" else pyarrow.feather.write_feather
        own = tmp_path / form
        own.mkdir()
        write(ds.dataset(folder[0]).to_table(), str(own / f"one.{form}"))
    (own / "README.md").write_text("No rows.")
    (own / f".hidden.{form}").write_text("No rows.")
    path, all_rows = next(own.glob("[0o]*")), blocks(kind(own), target="y", weight="w", block_rows=200)
    for got, expected in zip(gathered(all_rows), (X, y, np.ones(900)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-15)
    first = gathered(blocks(kind(path), target="y", weight="w"))
    np.testing.assert_allclose(first[0], X[: len(first[0])], rtol=1e-15)


@pytest.mark.skipif(int(pa.__version__.split(".")[0]) < 26, reason="older pyarrow may not convert views to strings")
def test_strings_in_arrow_files_of_polars(rng, tmp_path):
    words = rng.choice(["u", "a string of more than 12 bytes"], 200)
    frame = pl.DataFrame(
        {"word": words, "bytes": [b"1"] * 200, "number": rng.normal(size=200), "y": 1.0 * (words == "u")}
    )
    frame.write_ipc(tmp_path / "one.arrow")
    assert ds.dataset(tmp_path / "one.arrow", format="ipc").schema.field("word").type == pa.string_view()
    source = blocks(tmp_path / "one.arrow", target="y")
    assert next(iter(source))[0].schema.types == [pa.large_string(), pa.large_binary(), pa.float64()]
    frame.drop("bytes").write_ipc(tmp_path / "one.arrow")
    model = KernelMachineRegressor(**FIXED).fit(blocks(tmp_path / "one.arrow", target="y"))
    assert model.score(frame.drop("bytes", "y"), frame["y"]) > 0.9


@pytest.mark.parametrize(("name", "mark"), [("one.csv", ","), ("one.tsv", "\t")])
def test_digits_of_a_csv_that_begin_with_zeros_are_names(tmp_path, name, mark):
    rows = [("code", "whole", "hours", "y"), ("01003", 0, "-07", 0.5), ("", 10, 12, 0.25), ("25701", 20, 5, 0.0)]
    (tmp_path / name).write_text("".join(mark.join(map(str, row)) + "\n" for row in rows))
    ((table, y),) = blocks(tmp_path, target="y")
    assert table.schema.types == [pa.string(), pa.int64(), pa.string()]
    assert table.column("code").to_pylist() == ["01003", None, "25701"]
    assert table.column("hours").to_pylist() == ["-07", "12", "5"]
    np.testing.assert_array_equal(y, [0.5, 0.25, 0.0])


def test_codes_of_a_csv_that_look_like_floats_are_names(tmp_path):
    icd, long = ["0389", "250.01", "12E4"], [f"{'0123456789' * 3}{k}" for k in range(3)]
    padded = [1.5, 2.5, 0.25]
    rows = zip(["icd", *icd], ["long", *long], ["padded", "01.50", "02.50", "0.25"], "y123")
    (tmp_path / "one.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    ((table, _),) = blocks(tmp_path, target="y")
    assert table.to_pydict() == {"icd": icd, "long": long, "padded": padded}


def test_some_rows_of_a_csv_are_predicted_as_all_are(tmp_path):
    """Postal codes of some rows can look like numbers to readers."""
    rng = np.random.default_rng(0)
    codes = rng.choice(["01003", "10115", "25701"], size=300)
    y = np.where(codes == "10115", 1.0, -1.0) + 0.1 * rng.normal(size=300)
    lines = np.array([f"{code},{target}\n" for code, target in zip(codes, y)])
    for name, chosen in (("all.csv", codes != ""), ("some.csv", codes != "01003")):
        (tmp_path / name).write_text("code,y\n" + "".join(lines[chosen]))
    model = KernelMachineRegressor(random_state=0).fit(blocks(tmp_path / "all.csv", target="y"))
    some = blocks(tmp_path / "some.csv", target="y")
    assert [table.schema.types for table, _ in some] == [[pa.int64()]]
    assert model.score(some) > 0.95
    assert not model.check(next(iter(some))[0])


def test_folders_are_columns(folder, tmp_path):
    own, _, y = folder
    ds.write_dataset(
        ds.dataset(own), tmp_path / "split", format="parquet", partitioning=["w"], partitioning_flavor="hive"
    )
    parts = list(blocks(tmp_path / "split", target="y"))
    assert parts[0][0].column_names == ["a", "b", "c", "w"]
    assert sum(len(targets) for _, targets in parts) == y.size


def test_bad_paths(folder, tmp_path, without_package):
    own, _, _ = folder
    for path in (own / "none", tmp_path / "empty", __file__):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(FileNotFoundError, match=r"X must be a file or a folder of files that end in .parquet, .pq"):
            blocks(path, target="y")
    (own / "3.csv").write_text("a,b,y,c,w\n")
    with pytest.raises(ValueError, match=r"All files must have one format; .* have files of the formats csv, parquet"):
        blocks(own, target="y")
    (tmp_path / "broken.parquet").write_text("No rows.")
    with pytest.raises(OSError, match=r"File \(.*broken.parquet\) cannot be read"):
        blocks(tmp_path / "broken.parquet", target="y")
    for name, text in (("1.csv", "a,y\n1,2\n"), ("2.csv", "a,y\n3\n")):
        (tmp_path / "empty" / name).write_text(text)
    with pytest.raises(OSError, match=r"File \(.*2.csv\) cannot be read"):
        blocks(tmp_path / "empty", target="y")
    without_package("pyarrow.dataset")
    with pytest.raises(ImportError, match=r"Files are read by pyarrow. Install it: pip install 'binfeat\[parquet\]'"):
        blocks(own / "0.parquet", target="y")


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_blocks_of_a_frame(rng, kind):
    X, y = table(rng, 250)
    frame = pd.DataFrame(X, columns=list("abc"), index=np.linspace(0, 1, 250))
    weights = rng.random(250)
    whole = FRAMES[kind](frame.assign(y=y, w=weights))
    for source in (
        blocks(whole, target="y", weight="w", block_rows=100),
        blocks(FRAMES[kind](frame), pd.Series(y, frame.index), weights, block_rows=100),
    ):
        assert [rows.shape for rows, *_ in source] == [(100, 3), (100, 3), (50, 3)]
        for got, expected in zip(gathered(source), (X, y, weights), strict=True):
            np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(gathered(blocks(whole, target=["y", "w"]))[1], np.column_stack([y, weights]))
    binning = RandomBinning(gamma=1.0, n_grids=3, random_state=0)
    expected = binning.fit(X).bin_offsets_
    for source in (blocks(whole, target="y", weight="w"), blocks([(FRAMES[kind](frame), y)])):
        np.testing.assert_array_equal(binning.fit(source).bin_offsets_, expected)
    for arguments, message in (
        ({"weight": "w"}, r"weight requires target\. Pass the name of the target column, one of"),
        ({"target": "z"}, r"target and weight must be columns of X; \['z'\] are not in"),
        (
            {"target": "y", "sample_weight": weights},
            "A data frame without y does not accept sample_weight; name its weight column",
        ),
        ({"target": "y", "y": y}, "An array does not accept target; omit target"),
    ):
        with pytest.raises(ValueError, match=message):
            blocks(whole, **arguments)


@pytest.mark.parametrize("kind", FRAMES)
def test_classifier_of_a_frame(rng, kind):
    frame = pd.DataFrame({"x": np.arange(120.0) % 7, "kind": np.where(np.arange(120) % 3, "a", "b")})
    labels = np.where((frame["x"] > 3) ^ (frame["kind"] == "a"), "yes", "no")
    model = KernelMachineClassifier(**FIXED)
    for own in (frame.assign(label=labels), frame.assign(label=labels).astype({"label": "category"})):
        got = model.fit(blocks(FRAMES[kind](own), target="label", block_rows=50))
        assert got.score(FRAMES[kind](frame), labels) > 0.9


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_floats_and_more_bits_in_later_files(tmp_path, form):
    write = pyarrow.csv.write_csv if form == "csv" else pq.write_table
    columns = [[1, 2], [0.5, 2**40], [3, 4]]
    for number, values in enumerate(columns):
        own = pa.table({"a": values, "b": pa.array(values).cast(pa.float64()), "none": [None, None], "y": [1, 2]})
        if number:
            own = own.set_column(2, "none", pa.array([1.5, 2]))
        if number == 0 and form == "parquet":
            own = own.set_column(0, "a", pa.array(values, pa.int8()))
        write(own, tmp_path / f"{number}.{form}")
    X = gathered(blocks(tmp_path, target="y"))[0]
    np.testing.assert_array_equal(X[:, 0], np.concatenate(columns))
    np.testing.assert_array_equal(X[:, 1], np.concatenate(columns))
    np.testing.assert_array_equal(X[2:, 2], [1.5, 2, 1.5, 2])
    np.testing.assert_array_equal(blocks(tmp_path, target="a").schema.field("a").type, pa.float64())
    write(pa.table({"b": [1.0], "a": ["red"], "none": [1.0], "y": [1]}), tmp_path / f"3.{form}")
    with pytest.raises((ValueError, OSError), match=rf"Block 3 of the .*3.{form}, column 'a', cannot be read: .*red"):
        RandomBinning(gamma=1.0).fit(blocks(tmp_path, target="y"))


DAY, HOUR = pd.Timestamp("2024-05-05"), pd.Timestamp("2024-05-05 17:30:00.5")


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([True, False]), pa.array([5, 0])),
        (pa.array([True, False]), pa.array([5, 0], pa.int8())),
        (pa.array([True, False]), pa.array([0.25, 1.0])),
        (pa.array([7, 8], pa.decimal128(9, 0)), pa.array([0.25, 1.0])),
        (pa.array([Decimal("1.25")]), pa.array([Decimal("1.125")])),
        (pa.array([Decimal("1.13"), None]), pa.array([Decimal(10**15) + Decimal("0.0003")])),
        (pa.array([Decimal("1.25")], pa.decimal128(38, 2)), pa.array([Decimal(10) ** -20], pa.decimal128(38, 20))),
        (pa.array([Decimal("1.25")], pa.decimal256(70, 2)), pa.array([Decimal("0.5")], pa.decimal256(70, 30))),
        (pa.array([DAY.date()]), pa.array([HOUR], pa.timestamp("ms"))),
        (pa.array([DAY], pa.timestamp("s")), pa.array([HOUR], pa.timestamp("us"))),
        (pa.array([DAY], pa.date32()), pa.array([DAY], pa.date64())),
        (pa.array([HOUR - DAY], pa.duration("ms")), pa.array([HOUR - DAY], pa.duration("us"))),
        (pa.array([5, 6]).dictionary_encode(), pa.array([7, 8])),
    ],
    ids=str,
)
def test_values_of_other_types_in_later_files_are_kept(tmp_path, first, second, backwards):
    parts = [second, first] if backwards else [first, second]
    for number, part in enumerate(parts):
        pq.write_table(pa.table({"a": part, "y": np.arange(len(part))}), tmp_path / f"{number}.parquet")
    found, expected = (
        [pd.Timestamp(value) if isinstance(value, date) else value for part in all_parts for value in part.to_pylist()]
        for all_parts in ([X["a"] for X, _ in blocks(tmp_path, target="y")], parts)
    )
    assert found == expected


def test_decimals_beside_floats_in_files_are_rounded_correctly(tmp_path):
    parts = [pa.array([Decimal("1.13"), None], pa.decimal128(5, 2)), pa.array([1.13, 2.5])]
    for number, part in enumerate(parts):
        pq.write_table(pa.table({"a": part, "y": part}), tmp_path / f"{number}.parquet")
    (X, y), _ = blocks(tmp_path, target="y")
    np.testing.assert_array_equal(X["a"].to_numpy(), [1.13, np.nan])
    np.testing.assert_array_equal(y, [1.13, np.nan])


def test_types_without_a_common_type_are_refused(tmp_path):
    for number, values in enumerate((pa.array([HOUR]), pa.array([5]))):
        pq.write_table(pa.table({"a": values, "y": [1.0]}), tmp_path / f"{number}.parquet")
    with pytest.raises(TypeError, match=r"Column 'a' contains int64 in file 1 .* in earlier files. Write the"):
        blocks(tmp_path, target="y")


def test_a_block_of_none_is_refused(rng):
    X, y = rng.normal(size=(200, 3)), np.arange(200.0)
    source = blocks([(X[:100], y[:100]), None, (X[100:], y[100:])])
    with pytest.raises(TypeError, match=r"Block 1 of the source.*must be a tuple \(X,\), \(X, y\) .*, got NoneType"):
        CGRidge().fit(source)


@pytest.mark.parametrize(
    "names", ["float32 float64", "uint64 int64", *hard("float32 int64", "uint8 int8", "int32 uint32", "int64 float32")]
)
@pytest.mark.parametrize("backwards", [False, True])
def test_numbers_of_other_types_in_later_files(tmp_path, names, backwards):
    columns = {
        "float32": np.array([0.5, 2.0], np.float32),
        "float64": np.array([1 + 2.0**-40, -1.0]),
        "int8": np.array([-7, 100], np.int8),
        "int32": np.array([-7, 2**30 + 1], np.int32),
        "int64": np.array([-7, 2**24 + 1]),
        "uint8": np.array([0, 200], np.uint8),
        "uint32": np.array([0, 2**32 - 1], np.uint32),
        "uint64": np.array([0, 2**40 + 1], np.uint64),
    }
    parts = [columns[name] for name in names.split()][:: -1 if backwards else 1]
    for number, values in enumerate(parts):
        pq.write_table(pa.table({"a": values, "y": [1.0, 2.0]}), tmp_path / f"{number}.parquet")
    X = gathered(blocks(tmp_path, target="y"))[0]
    np.testing.assert_array_equal(X[:, 0], np.concatenate([values.astype(float) for values in parts]))


@pytest.mark.parametrize("other", [pa.array([-1]), pa.array(["red"]), pa.array([0.5])], ids=str)
def test_values_beyond_the_common_type_of_all_files_are_refused_with_a_remedy(tmp_path, other):
    for number, part in enumerate((pa.array([2**63 + 5], pa.uint64()), other)):
        pq.write_table(pa.table({"a": part, "y": [1.0]}), tmp_path / f"{number}.parquet")
    with pytest.raises(
        ValueError, match=r"\d.parquet, column 'a', cannot be read: .*: correct it, or write the column with the same"
    ):
        list(blocks(tmp_path, target="y"))


def test_errors_in_files_name_the_file(folder):
    own, _, _ = folder
    bad = pa.table({"a": [1.0, np.inf], "b": [1.0, 2.0], "y": [1.0, 2.0], "c": [1.0, 2.0], "w": [1.0, 1.0]})
    pq.write_table(bad, own / "3.parquet")
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match=r"Block \d+ of .* 0 \(.*3.parquet\): column 'a' of X: .*infinity"):
            estimator.fit(blocks(own, target="y", weight="w"))


@pytest.mark.parametrize("kind", FRAMES)
def test_errors_in_frames_name_the_column(kind):
    frame = pd.DataFrame({"x": np.ones(9), "city": "Rome", "gap": [*range(8), np.nan], "y": 1.0})
    for estimator in ESTIMATORS[:3]:
        with pytest.raises(
            ValueError, match="Block 0 of the source, counted from 0: Column 'city' of X contains 'Rome'"
        ):
            estimator.fit(blocks(FRAMES[kind](frame), target="y"))
    with pytest.raises(
        ValueError, match="Block 0 of the source, counted from 0: column 'gap' of X: Input X contains NaN"
    ):
        CGRidge().fit(blocks(FRAMES[kind](frame.drop(columns="city")), target="y"))


X_small, y_small = np.zeros((4, 2)), np.zeros(4)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((iter([]),), {}, TypeError, "can be read only once"),
        ((X_small, None, y_small), {}, ValueError, "An array without y does not accept sample_weight; omit"),
        ((X_small, y_small[:3]), {}, ValueError, "y must have one value for each of the 4 rows of X, got shape"),
        ((X_small, y_small, [1.0]), {}, ValueError, "sample_weight must have one value for each of the 4 rows"),
        ((X_small, y_small), {"target": "y"}, ValueError, "An array does not accept target; omit target"),
        (([(X_small, y_small)], y_small), {}, ValueError, "A sequence of blocks does not accept y; omit y"),
        (
            ([(X_small, y_small)], y_small),
            {"target": "y"},
            ValueError,
            r"A sequence of blocks does not accept y, target; omit them\.",
        ),
        ((X_small, y_small), {"block_rows": 0}, ValueError, "block_rows must be at least 1"),
        ((object(),), {}, TypeError, "X must be an array"),
        (
            (pd.DataFrame(X_small),),
            {"target": 1},
            TypeError,
            "target must be the name of a column or a list of names, got 1",
        ),
        ((pd.DataFrame(X_small),), {"target": b"y"}, TypeError, "target must be the name of a column or a list"),
    ],
)
def test_bad_arguments(arguments, options, error, message):
    with pytest.raises(error, match=message):
        blocks(*arguments, **options)


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("kind", ["array", "sparse", "frame", "blocks", "folder"])
def test_sources_without_targets(rng, tmp_path, kind):
    X, y = table(rng, 250)
    frame = pd.DataFrame(X, columns=list("abc"))
    for k in range(2):
        frame[125 * k : 125 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet")
    forms = {"array": X, "sparse": sparse.csr_array(X), "frame": frame, "blocks": [(X[:99],), (X[99:],)]}
    source = blocks(forms.get(kind, tmp_path), block_rows=100)
    assert [len(block) for block in source][1:] in ([1], [1, 1], [1, 1, 1])
    detector = OutlierDetector(random_state=0).fit(source)
    plain = OutlierDetector(random_state=0).fit(X)
    np.testing.assert_array_equal(detector.score_samples(source), plain.score_samples(X))
    binning = RandomBinning(gamma="scale", n_grids=3, random_state=0).fit(source)
    np.testing.assert_array_equal(binning.gamma_, RandomBinning(gamma="scale", n_grids=3, random_state=0).fit(X).gamma_)
    maps = [SpectralEmbedding(n_components=1, random_state=0).fit_transform(rows) for rows in (source, X)]
    np.testing.assert_allclose(maps[0], maps[1], atol=1e-5)
    with pytest.raises(ValueError, match="gamma='learn' needs targets"):
        RandomBinning(gamma="learn", random_state=0).fit(source)
    model = CGRidge().fit(X, y)
    uses = model.fit, model.score, KernelMachineRegressor().fit, make_pipeline(binning, CGRidge()).fit
    for use in uses:
        with pytest.raises(ValueError, match=r"y is None. For a source, pass y to blocks\(\)"):
            use(source)


def test_bad_datasets(folder):
    own, X, _ = folder
    with pytest.raises(ValueError, match=r"weight requires target\. Pass the name of the target column, one of"):
        blocks(ds.dataset(own), weight="w")
    with pytest.raises(ValueError, match=r"target and weight must be columns of the dataset; \['z'\] are not in"):
        blocks(ds.dataset(own), target="y", weight="z")
    with pytest.raises(ValueError, match="A table in files does not accept y; omit y"):
        blocks(ds.dataset(own), X, target="y")
    pq.write_table(pa.table({"a": [1.0], "y": [2.0]}), own / "3.parquet")
    with pytest.raises(ValueError, match=r"File 3 of the dataset .*3.parquet\) has no columns \['b', 'c', 'w'\]"):
        blocks(ds.dataset(own), target="y")


@pytest.mark.parametrize("kind", ["frame", "file"])
@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"target": []}, "target must name at least one column"),
        ({"target": ["y", "y"]}, "target and weight must name different columns, got 'y' twice"),
        ({"target": "y", "weight": "y"}, "target and weight must name different columns, got 'y' twice"),
    ],
)
def test_names_of_no_or_equal_columns(tmp_path, kind, names, message):
    frame = pd.DataFrame({"a": [0.0, 1.0], "y": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=message):
        blocks(frame if kind == "frame" else tmp_path / "rows.parquet", **names)


def test_file_cut_short(folder):
    own, _, _ = folder
    content = (own / "2.parquet").read_bytes()
    (own / "2.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(OSError, match=r"File 2 of the dataset .*2.parquet\) cannot be read"):
        blocks(ds.dataset(own), target="y")
    (own / "2.parquet").write_bytes(content[:4] + bytes(200) + content[204:])
    with pytest.raises(
        OSError, match=r"Block \d+ of the source, counted from 0: .*2\.parquet, column 'a', cannot be read"
    ):
        RandomBinning(gamma=1.0).fit(blocks(ds.dataset(own), target="y", weight="w"))


@pytest.mark.parametrize("form", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("place", ["file", "folder", *(["link"] if os.name == "posix" else []), "dataset", "pickle"])
def test_files_that_change_after_blocks(tmp_path, form, place):
    frame = pd.DataFrame({"a": np.zeros(5), "b": np.ones(5), "t": np.arange(5.0)})
    path = tmp_path / f"rows.{form}"
    write = {"csv": lambda X: X.to_csv(path, index=False)}.get(form, lambda X: getattr(X, f"to_{form}")(path))
    write(frame)
    given = {"folder": tmp_path, "dataset": ds.dataset(path, format=form)}.get(place, path)
    if place == "link":
        given = tmp_path / f"link.{form}"
        given.symlink_to(path)
    source = blocks(given, target="t")
    source = pickle.loads(pickle.dumps(source)) if place == "pickle" else source
    assert len(list(source)) == len(list(source)) == 1
    write(frame[["b", "a", "t"]])
    os.utime(path, ns=(0, 0))  # the clock of some file systems is coarse
    with pytest.raises(ValueError, match=rf"\.{form} has changed since blocks\(\) was called; call blocks"):
        list(source)
    write(frame[["b", "t"]])
    with pytest.raises(ValueError, match=rf"\.{form} has changed since blocks"):
        RandomBinning(gamma=1.0).fit(source)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"{form}"):
        list(source)
    write(frame[["b", "t"]])
    assert [X.column_names for X, _ in blocks(path, target="t")] == [["b"]]


# The same results as in memory.

MACHINES = {
    "bins": (lambda **options: RandomBinning(gamma="scale", **options), CGRidge(alpha=0.1, tol=1e-2)),
    "frequent bins": (lambda **options: RandomBinning(gamma=2.0, min_count=3, **options), CGRidge(alpha=0.1)),
    "hashed": (lambda **options: RandomBinning(gamma=1.0, n_features=700, **options), CGRidge(alpha=0.1)),
    "a path": (
        lambda **options: RandomBinning(gamma=1.0, **options),
        CGRidge(alphas=[0.1, 1.0], tol=1e-2, random_state=0),
    ),
    "stopped early": (
        lambda **options: RandomBinning(gamma=1.0, **options),
        CGRidge(early_stopping=True, random_state=0),
    ),
}


@pytest.mark.parametrize("max_bytes", [None, 100], ids=["memory", "scratch"])
@pytest.mark.parametrize("name", MACHINES)
def test_same_bins_and_coefficients(rng, rows_of_a_pass, name, max_bytes):
    rows_of_a_pass(700)
    new_binning, ridge = MACHINES[name]
    X, y = table(rng)
    binning = new_binning(n_grids=N_GRIDS, output="codes", random_state=0)
    Z = binning.fit_transform(X)
    expected = ridge.fit(Z, y).coef_.copy()
    for n_blocks in (1, 17):
        own = new_binning(n_grids=N_GRIDS, max_bytes=max_bytes, random_state=0)
        got = own.fit_transform(blocks(pieces(rng, n_blocks, X, y)))
        np.testing.assert_array_equal(own.bin_offsets_, binning.bin_offsets_)
        np.testing.assert_array_equal(got.codes, Z.codes)
        assert got.codes.dtype == Z.codes.dtype
        np.testing.assert_allclose(ridge.fit(got).coef_, expected, rtol=1e-9, atol=1e-11)
        if max_bytes is None:
            np.testing.assert_array_equal(ridge.fit(got).coef_, expected)
        if "hashed" not in name:
            assert_same_bins(known_bins(own), known_bins(binning))
            assert_same_bins(known_bins(own.fit(blocks(pieces(rng, n_blocks, X, y)))), known_bins(binning))


def test_hashed_codes_are_made_again_where_no_disk_has_room(rng, monkeypatch):
    X, y = table(rng)
    full_disk(monkeypatch)
    source = blocks(pieces(rng, 4, X, y))
    binning = RandomBinning(gamma=1.0, n_features=700, n_grids=N_GRIDS, max_bytes=10, output="codes", random_state=0)
    for ridge in (CGRidge(), CGRidge(early_stopping=True, random_state=0), CGRidge(alphas=[0.3, 1.0], random_state=0)):
        got = ridge.fit(binning.fit_transform(source)).coef_.copy()
        np.testing.assert_allclose(got, ridge.fit(binning.fit_transform(X), y).coef_, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("ridge", [CGRidge(), CGRidge(alphas=[1.0, 10.0], random_state=0)])
def test_blocks_of_features(rng, kind, ridge):
    X, y = table(rng)
    weights = rng.random(len(X))
    expected = ridge.fit(kind(X), y, weights)
    coef, intercept = expected.coef_.copy(), expected.intercept_
    got = ridge.fit(blocks([(kind(rows), *others) for rows, *others in pieces(rng, 9, X, y, weights)]))
    np.testing.assert_allclose(got.coef_, coef, rtol=1e-9)
    np.testing.assert_allclose(got.intercept_, intercept, rtol=1e-9)


@pytest.mark.parametrize("kind", [RandomBinning, RandomFourier])
def test_features_of_a_source_can_be_pickled(rng, kind):
    X, y = table(rng, 60)
    Z = kind(gamma=1.0, random_state=0).fit(X).transform(blocks(X, y, block_rows=25))
    W = rng.normal(size=Z.shape[1])
    for features in (Z, Z.take(np.arange(5, 40))):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)) @ W, features @ W)


def test_rows_of_a_source_are_taken_in_their_order(rng):
    X, y = table(rng)
    fourier = RandomFourier(n_components=4, gamma=1.0, random_state=0)
    Z, expected = fourier.fit_transform(blocks(pieces(rng, 4, X, y))), fourier.transform(X)
    rows = [3, 40, len(X) - 1]
    np.testing.assert_allclose(Z[rows] @ np.eye(4), expected[rows], rtol=1e-6)
    with pytest.raises(ValueError, match="Rows of a source can be selected in ascending order only"):
        Z[rows[::-1]]


def test_pipelines(rng):
    X, y = table(rng)
    source = blocks(pieces(rng, 6, X, y > 0))
    for features in (RandomBinning(output="codes", random_state=0), RandomFourier(n_components=64, random_state=0)):
        model = make_pipeline(features, CGRidgeClassifier())
        expected = model.fit(X, y > 0).decision_function(X)
        np.testing.assert_allclose(model.fit(source).decision_function(X), expected, atol=1e-9)
        np.testing.assert_array_equal(model.predict(source), model.predict(X))


def test_a_grid_that_needs_wide_codes_in_a_later_block(rng, rows_of_a_pass):
    rows_of_a_pass(40_000)
    X = np.concatenate([rng.integers(0, 100, (80_000, 1)), np.arange(70_000)[:, None]]).astype(float)
    options = {"kernel": "hat", "gamma": 10.0, "n_grids": 3, "output": "codes", "random_state": 0}
    Z = RandomBinning(**options).fit_transform(X)
    for max_bytes in (None, 500_000, 0):
        got = RandomBinning(**options, max_bytes=max_bytes).fit_transform(blocks(X, X[:, 0], block_rows=30_001))
        assert got.codes.dtype == np.uint32
        np.testing.assert_array_equal(got.codes, Z.codes)


@pytest.mark.parametrize("max_bytes", [np.inf, 30])
def test_store(max_bytes):
    store = code_store.CodeStore(5, 1, max_bytes)
    store.array[:] = np.arange(5)
    store.grow(3)
    store.array[1:] = [[5], [6]]
    assert store.array.dtype == np.uint16
    store.widen()
    np.testing.assert_array_equal(store.array, [np.arange(5), [5] * 5, [6] * 5])
    starts, new_codes = np.array([0, 5, 11, 18]), np.arange(18, dtype=np.uint32)
    store.recode(new_codes, starts, np.uint16)
    np.testing.assert_array_equal(store[:], [np.arange(5), [10] * 5, [17] * 5])
    assert store.array.dtype == np.uint16


# Errors.

ESTIMATORS = (
    RandomBinning(gamma=1.0),
    RandomFourier(gamma=1.0),
    CGRidge(),
    KernelMachineRegressor(gamma="scale", features="binning", solver_params={"n_grids": 2}, alpha=1.0),
)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda own: type(own).__name__)
def test_bad_blocks(rng, estimator):
    X, y = table(rng, 60)
    good = X[:20], y[:20]
    strings = np.full((20, 3), "red")
    for bad, error, message in (
        ((X[20:40, :2], y[20:40]), ValueError, "2 features"),
        ((X[20:40], y[20:39]), ValueError, "y must have one value per row, 20"),
        ((X[20:40], y[20:40], np.ones(20)), ValueError, "y and sample_weight must be in all blocks or in none"),
        ((X[20:40], np.full(20, "a")), ValueError, "y has shape"),
        ([1.0, 2.0], ValueError, "X must have rows and inputs"),
        ((np.float64(1.0), y[20:40]), ValueError, "X must have rows and inputs"),
        ((X[20:40, 0], y[20:40]), ValueError, r"X must have rows and inputs, got shape \(20,\)"),
        (X[20:40], TypeError, r"must be a tuple \(X,\), \(X, y\) or"),
        ((sparse.csr_matrix(X[20:40]), y[20:40]), TypeError, "sparse in all blocks or in none"),
        ((strings, y[20:40]), (TypeError, ValueError), ""),
        ((np.full((20, 3), np.inf), y[20:40]), ValueError, "infinity"),
    ):
        with pytest.raises(error, match=f"Block 2 of the source, counted from 0: .*{message}"):
            estimator.fit(blocks([good, (X[:0], y[:0]), bad]))
    for empty in (blocks([(X[:0], y[:0])]), blocks(X[:0], y[:0])):
        with pytest.raises(ValueError, match="no rows"):
            estimator.fit(empty)
    with pytest.raises(TypeError, match="can be read only once"):
        estimator.fit(rows for rows in [good])


@pytest.mark.parametrize("gamma", ["scale", "learn", 1.0])
@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=lambda own: type(own).__name__)
def test_bad_weights_of_blocks_are_refused_by_maps(rng, estimator, gamma):
    X, y = table(rng, 40)
    estimator = clone(estimator).set_params(gamma=gamma)
    for weights, error, message in (
        (np.append(np.ones(19), -1.0), ValueError, "sample_weight must be finite and non-negative"),
        (np.append(np.ones(19), np.nan), ValueError, "sample_weight must be finite and non-negative"),
        (np.ones((20, 1)), ValueError, "sample_weight must have one value per row"),
        (np.full(20, "a"), TypeError, "sample_weight must be numbers"),
        (np.zeros(20), ValueError, "sample_weight is zero for every row"),
    ):
        with pytest.raises(error, match=message):
            estimator.fit(blocks([(X[:20], y[:20], weights), (X[20:], y[20:], weights)]))
    estimator.fit(blocks([(X[:20], y[:20], np.zeros(20)), (X[20:], y[20:], np.ones(20))]))


def test_column_names_of_blocks(rng):
    X, y = table(rng, 40)
    first, second = pd.DataFrame(X[:20], columns=list("abc")), pd.DataFrame(X[20:], columns=list("abd"))
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match=r"(?s)Block 1 of the source, counted from 0: .*feature names"):
            estimator.fit(blocks([(first, y[:20]), (second, y[20:])]))


@pytest.mark.filterwarnings("error:X does not have valid feature names")
def test_features_of_blocks_with_names(rng, monkeypatch):
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("aby"))
    source = blocks(frame, target="y")
    model = make_pipeline(RandomBinning(n_grids=N_GRIDS, random_state=0), CGRidge()).fit(source)
    np.testing.assert_allclose(model.predict(source), model.predict(frame[["a", "b"]]), atol=1e-12)
    full_disk(monkeypatch)
    Z = RandomBinning(n_grids=N_GRIDS, n_features=7000, max_bytes=10, random_state=0).fit_transform(source)
    assert (Z @ np.ones(Z.shape[1])).shape == (300,)


def test_a_source_brings_its_targets(rng):
    X, y = table(rng, 40)
    for estimator in ESTIMATORS[2:]:
        with pytest.raises(ValueError, match="must be None for a source"):
            estimator.fit(blocks(X, y), y)


def test_score_of_a_source(rng, small_samples):
    """R^2 or accuracy with the weights of the source, for models and pipelines."""
    X, y = table(rng, 900)
    weights = rng.uniform(size=900)
    source = blocks(X, y, weights, block_rows=250)
    model = KernelMachineRegressor(features="binning", gamma=0.3, solver_params={"max_grids": 10}, random_state=0).fit(
        X, y
    )
    assert model.score(source) == model.score(X, y, weights)
    ridge = CGRidge(alpha=0.1).fit(X, y)
    assert ridge.score(source) == pytest.approx(ridge.score(X, y, weights), rel=1e-12)
    pipeline = make_pipeline(RandomBinning(gamma=0.3, random_state=0), CGRidgeClassifier(alpha=0.1)).fit(X, y > 0)
    assert pipeline.score(blocks(X, y > 0, block_rows=250)) == pipeline.score(X, y > 0)
    labels = KernelMachineClassifier(
        features="binning", gamma=0.3, solver_params={"max_grids": 10}, random_state=0
    ).fit(X, y > 0)
    assert labels.score(blocks(X, y > 0, block_rows=250)) == labels.score(X, y > 0)
    for estimator in (model, ridge, labels):
        with pytest.raises(ValueError, match="must be None for a source"):
            estimator.score(source, y)
    np.testing.assert_allclose(model.predict(source), model.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(labels.predict(source), labels.predict(X))
    with pytest.raises(ValueError, match=r"KernelMachineRegressor\.score requires y"):
        model.score(X)


@pytest.mark.parametrize("model", [CGRidge(), KernelMachineRegressor(gamma="scale", alpha=1.0)])
def test_a_column_of_a_frame_is_no_target_in_scores(rng, model):
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "y"])
    model.fit(frame, frame["a"])
    with pytest.raises(ValueError, match=r"score requires y"):
        model.score(frame)
    Z = RandomBinning(gamma=1.0).fit_transform(blocks(frame, target="y"))
    ridge = CGRidge().fit(Z)
    assert ridge.score(Z) == ridge.score(Z, frame["y"])
    with pytest.raises(ValueError, match=r"score requires y"):
        ridge.score(Z, sample_weight=np.ones(30))  # weights without targets


def test_blocks_of_one_dimension_have_no_scores_and_predictions(rng):
    X, y = table(rng, 40)
    source = blocks([(X, y), (X[:, 0], y)])
    for call in (CGRidge().fit(X, y).score, KernelMachineRegressor(**FIXED).fit(X, y).predict):
        with pytest.raises(ValueError, match=r"Block 1 of .*X must have rows and inputs, got shape \(40,\)"):
            call(source)


class Shrinking:
    """A source with one block less in each pass."""

    def __init__(self, X, y):
        self.n_blocks, self.X, self.y = 3, X, y

    def __iter__(self):
        self.n_blocks -= 1
        return iter([(self.X, self.y)] * (self.n_blocks + 1))


def test_a_source_that_changes(rng):
    with pytest.raises(ValueError, match="had 80 rows when it was first read, and has 40 now"):
        RandomBinning(gamma=1.0).fit(Shrinking(*table(rng, 40)))


class Growing:
    """A source with more rows in each pass."""

    def __init__(self, n_rows):
        self.n_rows = n_rows

    def __iter__(self):
        n_rows, self.n_rows = self.n_rows, 8 * self.n_rows
        X = np.random.default_rng(0).normal(size=(n_rows, 3))
        yield X, X[:, 0]


@pytest.mark.parametrize("features", [None, "binning", "fourier", "local"])
def test_a_source_that_grows(features, small_samples):
    estimator = RandomBinning(n_grids=3, gamma=1.0)
    if features is not None:
        kernel = "rbf" if features == "fourier" else "laplacian"
        estimator = KernelMachineRegressor(features=features, gamma=1.0, kernel=kernel)
    with pytest.raises(ValueError, match="had 1000 rows when it was first read, and has more now"):
        estimator.fit(Growing(1000))


def full_disk(monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(code_store, "_allocate", refuse)


def test_full_disk(rng, monkeypatch, scratch_folder):
    full_disk(monkeypatch)
    X, y = table(rng)
    before = X.copy(), y.copy()
    with pytest.raises(OSError, match=r"No space left.*Set the environment variable TMPDIR") as error:
        RandomBinning(gamma=1.0, max_bytes=100).fit_transform(blocks(X, y))
    assert error.value.errno == errno.ENOSPC
    del error
    gc.collect()
    assert not list(scratch_folder.iterdir())
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_scratch_leaves_nothing(rng, scratch_folder):
    X, y = table(rng)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Z = RandomBinning(gamma=1.0, max_bytes=100, random_state=0).fit_transform(blocks(X, y))
        gc.collect()
    assert not said
    if os.name == "posix":
        assert not list(scratch_folder.iterdir())
    assert Z.take(np.arange(50)).shape[0] == 50
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        del Z
        gc.collect()
    assert not said
    assert not list(scratch_folder.iterdir())


def test_space_where_the_system_cannot_reserve_it(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(code_store, "_ZEROS", 7)
    with open(tmp_path / "file", "w+b") as file:
        code_store._allocate(file, 20)
        code_store._allocate(file, 25)
    assert (tmp_path / "file").stat().st_size == 25


# Kernel models.


@pytest.fixture
def small_samples(sampled_rows, limits, rows_of_a_pass):
    """Use samples of 800 rows, a short search, and few grids."""
    limits(n_steps=20, sample_grids=(5, 20), sample_rows=300, n_fourier=256, fourier_products=1e9)
    sampled_rows(800)
    rows_of_a_pass(700)


def streamed(rng, monkeypatch, X, y, weights, **options):
    """Return the same model from one block with codes in memory, and from nine with codes in a scratch file."""
    models = []
    for n_blocks, own_bytes in ((1, np.inf), (9, 0)):
        monkeypatch.setattr("binfeat.models.solvers.growth.CodeStore", partial(fixed_store, own_bytes))
        models.append(KernelMachineRegressor(**options).fit(blocks(pieces(rng, n_blocks, X, y, weights))))
    np.testing.assert_allclose(models[0].feature_coef_, models[1].feature_coef_, rtol=1e-9, atol=1e-10)
    return models[0]


def test_streamed_model_of_given_widths(rng, small_samples, monkeypatch):
    X, y = table(rng)
    weights = rng.random(len(X))
    options = {
        "gamma": [1.0, 0.5, 0.5],
        "alpha": 1.0,
        "solver_params": {"n_grids": 30},
        "features": "binning",
        "random_state": 0,
    }
    options["kernel"] = "laplacian"
    whole = KernelMachineRegressor(**options).fit(X, y, weights)
    model = streamed(rng, monkeypatch, X, y, weights, **options)
    assert model.feature_coef_.shape == whole.feature_coef_.shape
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("features", ["binning", *hard("fourier")])
def test_streamed_model_that_learns(rng, small_samples, monkeypatch, features):
    X, y = table(rng, 4000)
    options = {"features": features, "solver_params": {"max_grids": 30}, "random_state": 0}
    model = streamed(rng, monkeypatch, X[:3000], y[:3000], np.ones(3000), **options)
    assert model.score(X[3000:], y[3000:]) > 0.8
    assert model.features_ == features


def fixed_store(own_bytes, n_rows, n_grids, max_bytes):
    return code_store.CodeStore(n_rows, n_grids, own_bytes)


@pytest.mark.parametrize("features", ["exact", *hard("binning")])
def test_a_source_that_is_all_sample(rng, small_samples, features):
    X, y = table(rng, 500)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "up", "down")})
    expected = KernelMachineClassifier(features=features, solver_params={"max_grids": 10}, random_state=0).fit(
        frame, y > 0
    )
    parts = [(frame[i : i + 90], y[i : i + 90] > 0) for i in range(0, 500, 90)]
    got = KernelMachineClassifier(features=features, solver_params={"max_grids": 10}, random_state=0).fit(blocks(parts))
    np.testing.assert_array_equal(got.predict_proba(frame), expected.predict_proba(frame))


@pytest.mark.hard
def test_streamed_classifier_of_frames(rng, small_samples, folder):
    own, X, y = folder
    labels = np.where(y > 1, "high", np.where(y < -1, "low", "mid"))
    pq.write_table(pa.table({**{f"x{j}": X[:, j] for j in range(3)}, "label": labels}), own.parent / "one.parquet")
    source = blocks(ds.dataset(own.parent / "one.parquet"), target="label", block_rows=250)
    model = KernelMachineClassifier(solver_params={"max_grids": 20}, random_state=0).fit(source)
    assert list(model.feature_names_in_) == ["x0", "x1", "x2"]
    assert model.score(pd.DataFrame(X, columns=["x0", "x1", "x2"]), labels) > 0.8
    assert model.predict_proba(pd.DataFrame(X[:5], columns=["x0", "x1", "x2"])).shape == (5, 3)


def test_what_a_model_cannot_do_with_a_source(rng, small_samples):
    X, y = table(rng)
    with pytest.raises(ValueError, match="features='exact' requires all rows in memory"):
        KernelMachineRegressor(features="exact").fit(blocks(X, y))
    with pytest.raises(ValueError, match="max_bytes must be more than"):
        KernelMachineRegressor(max_bytes=1000).fit(blocks(X, y))
    bad = X[2000:2500].copy()
    bad[7, 1] = np.inf
    with pytest.raises(ValueError, match=r"Block 2 of the source, counted from 0: .*infinity"):
        KernelMachineRegressor(solver_params={"max_grids": 5}, gamma="scale").fit(
            blocks([(X[:1000], y[:1000]), (X[1000:2000], y[1000:2000]), (bad, y[2000:2500])])
        )


@pytest.mark.parametrize("kind", easy(FRAMES, "pandas"))
def test_dates_and_whole_numbers_in_blocks_of_frames(rng, small_samples, kind):
    """A later block has floats where the first has integers."""
    when = pd.Series(pd.date_range("2022-01-01", periods=600, freq="31h", tz="Europe/Rome"))
    counts = np.append(np.arange(300) % 7, np.arange(300) % 7 + 0.5)
    frame, y = pd.DataFrame({"when": when, "count": counts}), np.sin(when.dt.dayofyear.to_numpy() / 30) + counts
    parts = [frame[:300].astype({"count": int}), frame[300:]]
    assert parts[0]["count"].dtype != parts[1]["count"].dtype
    options = {"solver_params": {"max_grids": 10}, "random_state": 0}
    got = KernelMachineRegressor(**options).fit(blocks([(FRAMES[kind](X), y[X.index]) for X in parts]))
    expected = KernelMachineRegressor(**options).fit(frame, y)
    assert got.gamma_.size == 5
    np.testing.assert_array_equal(got.predict(FRAMES[kind](frame)), expected.predict(frame))
    assert got.feature_relevances_.shape == (2,)


def test_columns_of_blocks_that_do_not_go_together(rng):
    when = pd.Series(pd.date_range("2022-01-01", periods=20))
    first = pd.DataFrame({"x": np.arange(20.0), "when": when})
    for wrong, message in (
        ({"when": when.dt.tz_localize("UTC")}, "column 'when' of X contains dates in UTC, but dates in"),
        ({"when": when - when[0]}, "column 'when' of X contains durations, but dates in an earlier"),
        ({"x": when}, "column 'x' of X contains dates, but numbers in an earlier block"),
        ({"x": "a"}, "column 'x' of X contains categories, but numbers in an earlier block"),
    ):
        with pytest.raises(TypeError, match=f"Block 1 of the source, counted from 0: {message}"):
            KernelMachineRegressor().fit(blocks([(first, np.arange(20)), (first.assign(**wrong), np.arange(20))]))
    infinite = first.assign(x=np.inf)
    with pytest.raises(ValueError, match=r"Block 1 of the source, counted from 0: column 'x' of X: .*infinity"):
        KernelMachineRegressor().fit(blocks([(first, np.arange(20)), (infinite, np.arange(20))]))


@pytest.mark.parametrize("kind", [int, str])
def test_categories_that_differ_among_blocks(rng, kind):
    """Numbers and strings of digits stay categories; one block has no categories at all."""
    codes = rng.integers(12, size=300)
    codes[:100] %= 5
    table = pd.DataFrame({"code": pd.Series(codes.astype(kind).tolist()), "x": rng.normal(size=300)})
    table = table.astype({"code": "Int64" if kind is int else object})
    table.loc[200:, "code"] = None
    y, parts = np.sin(codes), [table[start : start + 100].astype({"code": "category"}) for start in (0, 100, 200)]
    options = {"features": "exact", "kernel": "laplacian", "random_state": 0}
    model = KernelMachineRegressor(**options).fit(blocks([(part, y[part.index]) for part in parts]))
    whole = table.astype({"code": "category"})
    expected = KernelMachineRegressor(**options).fit(whole, y)
    np.testing.assert_array_equal(model.predict(whole), expected.predict(whole))


DAYS = pd.Series(pd.date_range("2026-01-01", periods=80, freq="7h"))
WORDS = pd.Series(["a", "b", "c", "d"] * 20, dtype=object)
NAMES, NUMBERS, GAPS = WORDS.astype("category"), pd.Series(np.arange(80.0)), pd.Series([None] * 80, dtype=object)
CODES = pd.Series(pd.Categorical(np.arange(80) % 4, ordered=True))
PAIRS = {  # a column in two blocks, and the values of both
    "Date, Datetime": (pl.Series(DAYS).cast(pl.Date), pl.Series(DAYS), [DAYS.dt.floor("D"), DAYS]),
    "two units": (pl.Series(DAYS).cast(pl.Datetime("us")), pl.Series(DAYS).cast(pl.Datetime("ns")), [DAYS, DAYS]),
    "String, Categorical": (pl.Series(WORDS), pl.Series(WORDS).cast(pl.Categorical), [NAMES, NAMES]),
    "Enums": (*(pl.Series(WORDS).cast(pl.Enum(list(own))) for own in ("abcd", "dcbae")), [NAMES, NAMES]),
    "numbers, missing": (pl.Series(NUMBERS), pl.Series([None] * 80), [NUMBERS, NUMBERS * np.nan]),
    "missing, Categorical": (pl.Series([None] * 80), pl.Series(WORDS).cast(pl.Categorical), [GAPS, WORDS]),
    "string, large_string": (pa.array(WORDS, pa.string()), pa.array(WORDS, pa.large_string()), [NAMES, NAMES]),
    "date32, timestamp": (pa.array(DAYS.dt.date), pa.array(DAYS), [DAYS.dt.floor("D"), DAYS]),
    "missing, dictionary": (pa.nulls(80), pa.array(WORDS).dictionary_encode(), [GAPS, WORDS]),
    "floats, categories of integers": (NUMBERS * np.nan, CODES, [CODES.mask(CODES >= 0), CODES]),
    "objects, numbers": (GAPS, NUMBERS, [NUMBERS * np.nan, NUMBERS]),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_similar_types_of_blocks_are_joined(kind):
    *own, values = PAIRS[kind]
    frame = {pl.Series: pl.DataFrame, pd.Series: pd.DataFrame}.get(type(own[0]), pa.table)
    x, y = np.sin(np.arange(160)), np.arange(160) % 4 + np.arange(160) / 80
    whole = pd.DataFrame({"x": x, "own": pd.concat(values, ignore_index=True)})
    options = {"features": "exact", "gamma": "scale", "alpha": 0.1, "random_state": 0}
    parts = [(frame({"x": x[rows], "own": column}), y[rows]) for rows, column in zip((slice(80), slice(80, 160)), own)]
    model = KernelMachineRegressor(**options).fit(blocks(parts))
    np.testing.assert_allclose(model.predict(whole), KernelMachineRegressor(**options).fit(whole, y).predict(whole))


def test_types_of_blocks_that_cannot_be_joined_are_named():
    exact = pa.table({"x": pa.array([1] * 20, pa.timestamp("us"))})
    finer = pa.table({"x": pa.array([1] * 20, pa.timestamp("ns"))})
    with pytest.raises(
        TypeError, match=r"Block 1 of the source, counted from 0: column 'x' of X has the type Datetime"
    ):
        KernelMachineRegressor().fit(blocks([(exact, np.arange(20)), (finer, np.arange(20))]))


@pytest.mark.parametrize("index", [None, "id"])
def test_the_index_of_a_data_frame_is_no_input(tmp_path, index):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": np.arange(30.0), "y": np.arange(30) % 7}).sample(frac=1, random_state=0)
    frame.rename_axis(index).to_parquet(tmp_path / "rows.parquet")
    for path in (tmp_path / "rows.parquet", tmp_path):
        assert blocks(path, target="y").inputs == ["a"]
    frame.reset_index(drop=True).assign(id=3).to_parquet(tmp_path / "rows.parquet")
    assert blocks(tmp_path, target="y").inputs == ["a", "id"]


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (CGRidge(), "partial_fit"),
        (CGRidge(), "predict"),
        (CGRidgeClassifier(), "partial_fit"),
        (CGRidgeClassifier(), "decision_function"),
        (OutlierDetector(n_grids=5), "contributions"),
        (LabelSpreading(), "fit"),
        (LabelSpreading(), "predict"),
        (SpectralEmbedding(), "transform"),
    ],
)
def test_methods_that_require_rows_in_memory_refuse_a_source(rng, model, method):
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    model = clone(model)
    if not method.endswith("fit"):
        model.fit(X, y)
    with pytest.raises(TypeError, match=r"in memory.*(of blocks|ArrayBlocks)"):
        getattr(model, method)(blocks(X, y))
