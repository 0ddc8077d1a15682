"""``binfeat outliers``: scores, labels and most unusual inputs of rows of files, and failures in one line."""

import numpy as np
import pytest

from binfeat.__main__ import main

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def table(rng):
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(30, size=400), unit="D")
    frame = pd.DataFrame({"miles": rng.normal(size=400), "carrier": rng.choice(["x", "y"], 400), "day": days})
    frame["empty"] = np.nan
    frame.loc[7, "miles"] = 40.0
    frame.loc[::20, "carrier"] = None
    return frame


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_scores_of_a_table(ending, table, tmp_path, capsys):
    path, out = tmp_path / f"table.{ending}", tmp_path / f"scores.{ending}"
    getattr(table, f"to_{ending}")(path, index=False)
    assert main(["outliers", str(path), "--out", str(out)]) == 0
    found = getattr(pd, f"read_{ending}")(out)
    assert list(found) == ["score", "outlier", "strangest_input"]
    assert found["score"].idxmin() == 7
    assert found.loc[7, "outlier"]
    assert found.loc[7, "strangest_input"] == "miles"
    assert found["strangest_input"].isna().sum() == (~found["outlier"]).sum()
    assert f"{found['outlier'].sum()} of 400 rows are outliers." in capsys.readouterr().err


def test_a_table_without_outliers(rng, tmp_path, capsys):
    path, out = tmp_path / "grid.csv", tmp_path / "scores.csv"
    pd.DataFrame({"size": rng.choice([1, 2, 3], 200), "color": rng.choice(list("rgb"), 200)}).to_csv(path, index=False)
    assert main(["outliers", str(path), "--out", str(out)]) == 0
    assert "0 of 200 rows are outliers." in capsys.readouterr().err
    assert pd.read_csv(out)["strangest_input"].isna().all()


def test_tables_without_rows_or_values(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("a,b\n")
    (tmp_path / "values.csv").write_text("a,b\n,\n,\n")
    for name, message in (("rows", "The table has no rows."), ("values", "The table has no column with values.")):
        assert main(["outliers", str(tmp_path / f"{name}.csv")]) == 1
        assert message in capsys.readouterr().err


def test_columns_with_infinite_numbers_are_named(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n2,inf\n")
    assert main(["outliers", str(tmp_path / "rows.csv")]) == 1
    assert "infinity or a value too large for dtype('float64'); it is in column 'b'." in capsys.readouterr().err


KINDS = (
    pa.time32("s"),
    pa.time64("ns"),
    pa.date32(),
    pa.timestamp("s"),
    pa.timestamp("us"),
    pa.duration("us"),
    pa.int64(),
)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_times_durations_and_ids_are_numbers(kind, rng, tmp_path):
    start = 2**53 if kind.bit_width == 64 and not pa.types.is_time(kind) else 40_000  # 2**53 us: the year 2255
    numbers = start + rng.integers(-3, 4, 300) * 1000 + rng.integers(-100, 101, 300)
    numbers[7] = start + 40_000
    column = pa.array(numbers, f"int{kind.bit_width}", mask=np.arange(300) % 20 == 0).cast(kind)
    pq.write_table(pa.table({"t": column}), tmp_path / "one.parquet")
    assert main(["outliers", str(tmp_path / "one.parquet"), "--out", str(tmp_path / "scores.csv")]) == 0
    assert pd.read_csv(tmp_path / "scores.csv")["score"].idxmin() == 7


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}], ids=["lists", "structs"])
def test_columns_of_lists_are_named(value, tmp_path, capsys):
    pq.write_table(pa.table({"size": [1.0, 2.0], "parts": [value] * 2}), tmp_path / "one.parquet")
    assert main(["outliers", str(tmp_path / "one.parquet")]) == 1
    assert "error: Column 'parts' has values of type " in capsys.readouterr().err
