"""Raw tables as numbers: frames, arrays, categories, missing values, and errors."""

import datetime
import io
import re
import subprocess
import sys
import warnings
from importlib import resources

import numpy as np
import pytest
from memory import peak_bytes
from scipy import sparse
from scipy.stats import norm, rankdata
from sklearn.base import BaseEstimator

from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.inputs import name_of_category

pd = pytest.importorskip("pandas")


def fit(X, categorical_features="from_dtype"):
    estimator = BaseEstimator()
    return estimator, *TableEncoder.fit(estimator, X, categorical_features)


def polars(frame):
    pl = pytest.importorskip("polars")
    return pl.from_pandas(frame)


def arrow(frame):
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_pandas(frame, preserve_index=False)


FRAMES = {"pandas": lambda frame: frame, "polars": polars, "arrow": arrow}


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [31.0, np.nan, 45.0, 20.0],
            "rooms": np.array([3, 1, 2, 3], dtype=np.int32),
            "city": ["Rome", "Oslo", None, "Rome"],
            "size": pd.Categorical(["s", "m", None, "s"], categories=["s", "m", "never"]),
            "sold": [True, False, True, True],
            "maybe": pd.array([True, None, False, True], dtype="boolean"),
            "count": pd.array([5, None, 7, 9], dtype="Int64"),
        }
    )


MATRIX = [
    [31, 3, 1, 1, 1, 1, 5, 0, 0, 0],
    [31, 1, 0, 0, 0, 1, 7, 1, 1, 1],
    [45, 2, 2, 2, 1, 0, 7, 0, 0, 0],
    [20, 3, 1, 1, 1, 1, 9, 0, 0, 0],
]


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(frame, kind):
    X = FRAMES[kind](frame)
    estimator, columns, matrix = fit(X)
    np.testing.assert_array_equal(matrix, MATRIX)
    np.testing.assert_array_equal(columns.categorical, [False, False, True, True] + [False] * 6)
    np.testing.assert_array_equal(columns.source, [0, 1, 2, 3, 4, 5, 6, 0, 5, 6])
    np.testing.assert_array_equal(columns.transform(estimator, X), MATRIX)
    assert list(estimator.feature_names_in_) == list(frame.columns)
    assert estimator.n_features_in_ == 7
    for other in FRAMES.values():
        np.testing.assert_array_equal(columns.transform(estimator, other(frame)), MATRIX)
        np.testing.assert_array_equal(columns.transform(estimator, other(frame[1:2])), MATRIX[1:2])


def test_lazy_frames(frame):
    estimator, columns, matrix = fit(polars(frame).lazy())
    np.testing.assert_array_equal(matrix, MATRIX)
    np.testing.assert_array_equal(columns.transform(estimator, polars(frame).lazy()), MATRIX)


@pytest.mark.parametrize("kind", FRAMES)
def test_names_of_columns(frame, kind):
    estimator, columns, _ = fit(FRAMES[kind](frame))
    for other, message in (
        (frame[frame.columns[::-1]], "must be in the same order"),
        (frame.drop(columns="age"), "seen at fit time, yet now missing:\n- age"),
        (frame.assign(more=1), "unseen at fit time:\n- more"),
        (frame.rename(columns={"age": "old"}), "unseen at fit time:\n- old\n"),
    ):
        with pytest.raises(ValueError, match=message):
            columns.transform(estimator, FRAMES[kind](other))


def test_array_where_names_were_seen(rng):
    X = rng.normal(size=(5, 2))
    estimator, columns, _ = fit(pd.DataFrame(X, columns=["a", "b"]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(columns.transform(estimator, X), X)


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_, object, ">f8", str]
)
def test_arrays_of_every_type(rng, dtype):
    X = rng.integers(0, 2, (20, 3)).astype(dtype)
    estimator, columns, matrix = fit(X)
    assert matrix.dtype == np.float64
    assert not columns.categorical.any()
    np.testing.assert_array_equal(matrix, X.astype(np.float64))
    np.testing.assert_array_equal(columns.transform(estimator, X), matrix)
    np.testing.assert_array_equal(columns.transform(estimator, X.tolist()), matrix)


def test_other_frame_columns():
    frame = pd.DataFrame(
        {
            "mixed": pd.Series([1, "a", None, 1.0], dtype=object),
            "objects": pd.Series([1, 2.5, None, True], dtype=object),
            "bins": pd.cut([1, 2, 3, 4], 2),
            "years": pd.Categorical([2001, 1999, 2001, 2010]),
            "sparse": pd.arrays.SparseArray([0.0, 0.0, 1.0, np.nan]),
            "text": pd.Series(["b", pd.NA, "a", "b"], dtype="string"),
            "na": pd.Series([1, pd.NA, 2, 1], dtype=object),
        }
    )
    _, columns, matrix = fit(frame)
    np.testing.assert_array_equal(np.flatnonzero(columns.categorical), [0, 2, 3, 5])
    np.testing.assert_array_equal(matrix[:, 0], [0, 1, 2, 0])
    np.testing.assert_array_equal(matrix[:, 1], [1, 2.5, 1, 1])
    np.testing.assert_array_equal(matrix[:, 2], [0, 0, 1, 1])
    np.testing.assert_array_equal(matrix[:, 3], [1, 0, 1, 2])
    np.testing.assert_array_equal(matrix[:, 4], [0, 0, 1, 0])
    np.testing.assert_array_equal(matrix[:, 5], [1, 2, 0, 1])
    np.testing.assert_array_equal(matrix[:, 6], [1, 1, 2, 1])
    np.testing.assert_array_equal(columns.source[7:], [1, 4, 6])


def test_arrow_dictionaries_with_nulls():
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {
            "s": pa.array(["b", None, "a"]).dictionary_encode(),
            "i": pa.array([3, None, 1]).dictionary_encode(),
            "none": pa.nulls(3),
            "unsigned": pa.array(["b", None, "a"]).dictionary_encode().cast(pa.dictionary(pa.uint32(), pa.string())),
        }
    )
    _, columns, matrix = fit(table)
    np.testing.assert_array_equal(matrix, [[1, 1, 0, 1], [2, 2, 0, 2], [0, 0, 0, 0]])
    np.testing.assert_array_equal(columns.categorical, [True, True, False, True])


def test_polars_types():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "enum": pl.Series(["b", None, "a"], dtype=pl.Enum(["b", "a"])),
            "categorical": pl.Series(["b", None, "a"], dtype=pl.Categorical),
            "decimal": pl.Series([1, 2, 3]).cast(pl.Decimal(10, 2)),
            "none": [None] * 3,
        }
    )
    _, columns, matrix = fit(frame)
    np.testing.assert_array_equal(matrix, [[1, 1, 1, 0], [2, 2, 2, 0], [0, 0, 3, 0]])
    np.testing.assert_array_equal(columns.categorical, [True, True, False, False])


def test_unseen_categories():
    X = np.array([["b", 3], ["a", 1], ["b", "x"], ["c", 1.0]], dtype=object)
    estimator, columns, matrix = fit(X)
    np.testing.assert_array_equal(matrix, [[1, 1], [0, 0], [1, 2], [2, 0]])
    others = np.array([["zz", True], ["", 2], [7, "y"], [None, np.nan]], dtype=object)
    np.testing.assert_array_equal(columns.transform(estimator, others), [[3, 0], [3, 3], [3, 3], [3, 3]])


def test_missing_is_a_category_where_it_was_seen():
    estimator, columns, matrix = fit(np.array([["b"], [None], ["a"], [np.nan], [pd.NA], [pd.NaT]], dtype=object))
    np.testing.assert_array_equal(matrix[:, 0], [1, 2, 0, 2, 2, 2])
    np.testing.assert_array_equal(columns.transform(estimator, np.array([["c"], [None]], dtype=object)), [[3], [2]])
    estimator, columns, matrix = fit(np.array([[3.0], [np.nan], [-1.0]]), [0])
    np.testing.assert_array_equal(matrix[:, 0], [1, 2, 0])
    np.testing.assert_array_equal(columns.transform(estimator, np.array([[-1.0], [2.0], [np.nan]])), [[0], [3], [2]])


def test_category_of_a_column_that_was_empty():
    estimator, columns, matrix = fit(np.full((3, 1), np.nan), [0])
    np.testing.assert_array_equal(matrix, np.zeros((3, 1)))
    X = np.array([["a"], [np.nan]], dtype=object)
    np.testing.assert_array_equal(columns.transform(estimator, X), [[1], [0]])
    ((found,), _) = columns.compared(estimator, X)
    assert (found.found, found.n_rows, found.known) == ("unseen categories", 1, "missing everywhere")
    reported = []
    columns.transform(estimator, X, reported.append)
    assert reported == [[found]]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_of_ids_is_one_level(rng, kind):
    ids = np.array([f"id{k}" for k in range(100)])
    ids[:9] = "none"
    frame = pd.DataFrame({"x": np.arange(100), "id": ids, "often": [f"id{k // 2}" for k in range(100)]})
    message = r"Column 'id' of X has 92 different values in 100 rows, too many to generalize, .* is ignored. Drop it"
    with pytest.warns(UserWarning, match=message) as said:
        estimator, columns, matrix = fit(FRAMES[kind](frame))
    assert [warning.filename for warning in said] == [__file__]
    np.testing.assert_array_equal(matrix[:, 1], 0)
    assert np.unique(matrix[:, 2]).size == 50
    new = frame.assign(id=[None, *["new"] * 99])
    np.testing.assert_array_equal(columns.transform(estimator, FRAMES[kind](new)), matrix)
    np.testing.assert_array_equal(columns.categorical, [False, True, True])


def test_one_long_text_needs_no_memory_for_all_rows():
    X = np.array([[f"text {k}"] for k in range(2000)], dtype=object)
    X[7] = "long" * 5000
    with pytest.warns(UserWarning, match="2,000 different values in 2,000 rows, too many"):
        n_bytes, (estimator, columns, _) = peak_bytes(lambda: fit(X))
    assert n_bytes < 5e6
    assert peak_bytes(lambda: columns.transform(estimator, X))[0] < 5e6
    estimator, columns, _ = fit(X[:5])
    n_bytes, codes = peak_bytes(lambda: columns.transform(estimator, np.append(X, [["text 42"], ["text 4"]], axis=0)))
    np.testing.assert_array_equal(codes[:, 0], [0, 1, 2, 3, 4, *[5] * 1996, 4])
    assert n_bytes < 5e6


def test_errors_show_the_start_of_a_long_text():
    X = np.array([["long" * 2500], [1.0]], dtype=object)
    with pytest.raises(ValueError, match=r"could not convert string to float: '(long){13}") as caught:
        fit(X, None)
    assert len(str(caught.value)) < 250


def test_one_long_category_needs_no_memory_for_all_categories():
    X = np.array([[f"text {k // 2}"] for k in range(3000)], dtype=object)
    X[:2] = "long" * 2500
    n_bytes, (estimator, columns, matrix) = peak_bytes(lambda: fit(X))
    assert n_bytes < 5e6
    n_bytes, codes = peak_bytes(lambda: columns.transform(estimator, X))
    np.testing.assert_array_equal(codes, matrix)
    assert n_bytes < 5e6


def test_zeros_at_the_end_of_a_text_are_ignored():
    estimator, columns, matrix = fit(np.array([["b\0"], ["a"], ["b"], ["a\0\0"]], dtype=object))
    np.testing.assert_array_equal(matrix[:, 0], [1, 0, 1, 0])
    np.testing.assert_array_equal(columns.transform(estimator, np.array([["b"], ["a\0"]])), [[1], [0]])
    others = np.array([["b\0\0z"], ["a\0z"], ["bb"]], dtype=object)
    np.testing.assert_array_equal(columns.transform(estimator, others), np.full((3, 1), 2))


def test_few_rows_or_some_repeated_values_are_no_ids(rng):
    for n_rows, n_levels in ((49, 49), (100, 90), (1000, 900)):
        _, _, matrix = fit(np.array([[f"id{k % n_levels}"] for k in range(n_rows)], dtype=object))
        assert np.unique(matrix[:, 0]).size == n_levels
    with pytest.warns(UserWarning, match="Column 0 of X has 100 different values in 100 rows, too many"):
        fit(rng.permutation(100)[:, None], [0])


@pytest.mark.parametrize("chosen", [["city", "rooms"], [2, 1], [False, True, True] + [False] * 4])
def test_categorical_features(frame, chosen):
    frame = frame.drop(columns="size").assign(last=1)
    _, columns, matrix = fit(frame, chosen)
    np.testing.assert_array_equal(np.flatnonzero(columns.categorical), [1, 2])
    np.testing.assert_array_equal(matrix[:, 1:3], [[2, 1], [0, 0], [1, 2], [2, 1]])


def test_categorical_features_of_arrays(rng):
    X = rng.integers(5, 9, (30, 3))
    for chosen in (None, "from_dtype", []):
        _, columns, matrix = fit(X, chosen)
        assert not columns.categorical.any()
    expected = np.column_stack([X[:, 0], np.unique(X[:, 1], return_inverse=True)[1], X[:, 2]])
    before = X.copy()
    for same in (X, X.astype(float), X.astype(np.float32), X.astype(object), sparse.csr_array(X)):
        estimator, columns, matrix = fit(same, [1])
        np.testing.assert_array_equal(matrix, expected)
        np.testing.assert_array_equal(columns.transform(estimator, same), expected)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("chosen", ["height", [7], [True, False], [0.5]])
def test_categorical_features_refused(frame, chosen):
    with pytest.raises(ValueError, match="categorical_features"):
        fit(frame, chosen)


def test_missing_numbers(rng):
    X = rng.normal(size=(40, 4))
    X[::3, 1] = np.nan
    X[:, 2] = np.nan
    estimator, columns, matrix = fit(X)
    gaps = np.isnan(X)
    expected = X.copy()
    expected[gaps[:, 1], 1] = np.nanmedian(X[:, 1])
    expected[:, 2] = 0
    np.testing.assert_array_equal(matrix, np.column_stack([expected, gaps[:, 1]]))
    np.testing.assert_array_equal(columns.source, [0, 1, 2, 3, 1])
    for same in (X, X.astype(object), sparse.csr_array(X), pd.DataFrame(X)):
        np.testing.assert_array_equal(columns.transform(estimator, same), matrix)
    row = np.array([[np.nan, 5, 6, np.nan]])
    np.testing.assert_array_equal(
        columns.transform(estimator, row), [[np.median(X[:, 0]), 5, 6, np.median(X[:, 3]), 0]]
    )
    np.testing.assert_array_equal(columns.transform(estimator, np.ones((2, 4))), [[1, 1, 1, 1, 0]] * 2)
    assert np.isnan(X).sum() == gaps.sum()


def test_median_of_evenly_spaced_rows(rng, monkeypatch):
    monkeypatch.setattr("binfeat.models.table.inputs._MEDIAN_ROWS", 10)
    X = rng.normal(size=(95, 1))
    estimator, columns, _ = fit(X)
    assert columns.transform(estimator, np.array([[np.nan]])) == np.median(X[np.linspace(0, 94, 10).astype(int)])
    X[:, 0] = np.arange(95) % 10 > 0
    assert fit(X)[1].inputs.medians == 1.0


def test_medians_of_a_short_table_copy_no_rows(rng, monkeypatch):
    monkeypatch.setattr("binfeat.models.table.inputs.thinned", None)
    X = rng.normal(size=(100, 3))
    np.testing.assert_array_equal(fit(X)[1].inputs.medians, np.median(X, axis=0))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values(rng, value):
    X = rng.normal(size=(10, 2))
    estimator, columns, _ = fit(X)
    wrong = X.copy()
    wrong[3, 1] = value
    message = re.escape("Input X contains infinity or a value too large for dtype('float64'); it is in column 1.")
    for same in (wrong, wrong.astype(np.float32), wrong.astype(object), sparse.csr_array(wrong), pd.DataFrame(wrong)):
        with pytest.raises(ValueError, match=message):
            fit(same)
        with pytest.raises(ValueError, match=message):
            fit(same, [1])
        with pytest.raises(ValueError, match=message):
            columns.transform(estimator, same)


def test_strings_among_numbers(frame):
    objects = frame.to_numpy()
    for X, column in ((frame, "Column 'city'"), (objects, "Column 2"), (objects.astype(str), "Column 2")):
        message = f"^{column} of X must contain numbers, or be listed in categorical_features: could not convert string"
        with pytest.raises(ValueError, match=message):
            fit(X, None)
    estimator, columns, _ = fit(frame[["age", "rooms"]])
    with pytest.raises(ValueError, match=r"Column 'rooms' of X must contain numbers, .* 'many'"):
        columns.transform(estimator, pd.DataFrame({"age": [1.0], "rooms": ["many"]}))
    np.testing.assert_array_equal(
        columns.transform(estimator, pd.DataFrame({"age": ["1.5"], "rooms": ["2"]})), [[1.5, 2, 0]]
    )


def test_objects_that_are_no_numbers(rng):
    X = rng.normal(size=(5, 2)).astype(object)
    for value in ({"foo": "bar"}, [1]):
        X[0, 0] = value
        with pytest.raises(TypeError, match="Column 0 of X has several values per row; use one column per value"):
            fit(X)
    for value in (1j, datetime.date(2020, 1, 1)):
        X[0, 0] = value
        with pytest.raises(
            TypeError, match=r"Column 0 of X must contain numbers, .*argument must be .* string.* number"
        ):
            fit(X)
    X[0, 0] = 10**400
    with pytest.raises(ValueError, match=r"Column 0 of X must contain numbers, .* too large"):
        fit(X)


@pytest.fixture
def dates():
    """Return two years of Mondays and Tuesdays, at two times of day, and a missing date."""
    days = pd.to_datetime("2023-01-02") + pd.to_timedelta(np.arange(104) * 7 + np.arange(104) % 2, unit="D")
    when = pd.Series(days + pd.to_timedelta(np.where(np.arange(104) % 3, 6.5, 18), unit="h"))
    when[5] = pd.NaT
    return pd.DataFrame({"when": when, "x": np.arange(104.0), "lasted": when - when[0]})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", FRAMES)
def test_dates_are_days_and_parts_of_the_calendar(dates, kind, unit):
    X = FRAMES[kind](dates.astype({"when": f"M8[{unit}]", "lasted": f"m8[{unit}]"}))
    estimator, columns, matrix = fit(X)
    when = dates["when"].fillna(dates["when"].median()).dt
    there = dates["when"].notna().to_numpy()
    np.testing.assert_array_equal(columns.source, [0, 1, 2, 0, 0, 0, 0, 2])
    np.testing.assert_array_equal(columns.parts, ["day of year", "day of week", "hour"])
    seconds = (dates["when"] - pd.Timestamp(0)).dt.total_seconds()
    np.testing.assert_allclose(matrix[there, 0], seconds[there] / 86400, rtol=1e-15)
    np.testing.assert_allclose(matrix[there, 2], dates["lasted"].dt.total_seconds()[there] / 86400, rtol=1e-15)
    np.testing.assert_array_equal(matrix[there, 3], when.dayofyear[there])
    np.testing.assert_array_equal(matrix[there, 4], when.dayofweek[there])
    np.testing.assert_array_equal(matrix[there, 5], (when.hour + when.minute / 60)[there])
    np.testing.assert_array_equal(matrix[:, 6], ~there)
    assert matrix[5, 0] == np.median(matrix[there, 0])
    assert not columns.categorical.any()
    again = TableEncoder.from_arrays(columns.arrays())
    for other in FRAMES.values():
        np.testing.assert_array_equal(again.transform(estimator, other(dates)), matrix)
        np.testing.assert_array_equal(again.transform(estimator, other(dates[7:8])), matrix[7:8])


@pytest.mark.parametrize(
    ("first", "last", "frequency", "parts"),
    [
        ("2020-01-01", "2024-01-01", "YS", ["day of week"]),
        ("2020-01-01 12:00", "2020-12-01 12:00", "7D", []),
        ("2020-01-01", "2020-01-07", "D", []),
        ("2020-01-01", "2020-02-01", "D", ["day of week"]),
        ("2020-01-01 05:00", "2020-01-01 20:00", "h", []),
        ("2020-01-01 05:00", "2020-01-04", "h", ["hour"]),
        ("1931-05-01", "1937-05-01", "D", ["day of year", "day of week"]),
    ],
)
def test_parts_that_come_back(first, last, frequency, parts):
    when = pd.Series(pd.date_range(first, last, freq=frequency))
    _, columns, matrix = fit(pd.DataFrame({"when": when}))
    assert list(columns.parts) == parts
    for j, part in enumerate(parts, 1):
        np.testing.assert_array_equal(matrix[:, j], getattr(when.dt, part.replace(" ", "")))


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("zone", ["Europe/Rome", "America/New_York", "Etc/GMT+5"])
def test_time_zones(kind, zone):
    when = pd.Series(pd.date_range("2024-03-29", periods=96, freq="h", tz=zone))
    estimator, columns, matrix = fit(FRAMES[kind](pd.DataFrame({"when": when})))
    assert list(columns.inputs.times) == [f"dates in {zone}"]
    np.testing.assert_array_equal(matrix[:, 1], when.dt.hour)
    for other in ("Asia/Tokyo", "America/Los_Angeles"):
        elsewhere = pd.DataFrame({"when": when.dt.tz_convert(other)})
        np.testing.assert_array_equal(columns.transform(estimator, FRAMES[kind](elsewhere)), matrix)
    for values in (when.astype(object), [time.isoformat() for time in when.dt.tz_convert("UTC")]):
        np.testing.assert_allclose(columns.transform(estimator, pd.DataFrame({"when": values})), matrix, atol=1e-9)
    with pytest.raises(
        ValueError, match=r"Column 'when' of X must contain dates.*'2024-03-29' is not a date with a time zone"
    ):
        columns.transform(estimator, pd.DataFrame({"when": ["2024-03-29"] * 96}))


def test_hours_from_utc():
    when = pd.Series(
        pd.date_range("2024-03-29", periods=96, freq="h", tz=datetime.timezone(datetime.timedelta(hours=-5)))
    )
    estimator, columns, matrix = fit(pd.DataFrame({"when": when}))
    np.testing.assert_array_equal(matrix[:, 1], when.dt.hour)
    values = [time.isoformat() for time in when]
    np.testing.assert_allclose(columns.transform(estimator, pd.DataFrame({"when": values})), matrix, atol=1e-9)


def test_zones_of_dateutil():
    zones = pytest.importorskip("dateutil.tz")
    when = pd.Series(pd.date_range("2024-03-29", periods=96, freq="h", tz="Europe/Berlin"))
    named = ["dateutil/Europe/Berlin"] if hasattr(zones.gettz("Europe/Berlin"), "key") else []  # new versions
    for zone in (*named, zones.tzoffset("winter", 3600)):
        own = when.dt.tz_convert(zone)
        estimator, columns, matrix = fit(pd.DataFrame({"when": own}))
        local = when if zone in named else own  # pandas 2 has no hours in zones of new versions
        np.testing.assert_array_equal(matrix[:, 1], local.dt.hour)
        np.testing.assert_array_equal(columns.transform(estimator, pd.DataFrame({"when": when})), matrix)


def test_time_zones_without_a_name_are_refused():
    zones = pytest.importorskip("dateutil.tz")
    content = resources.files(pytest.importorskip("tzdata")).joinpath("zoneinfo", "Europe", "Berlin").read_bytes()
    zone = zones.tzfile(io.BytesIO(content), "my zone")
    when = pd.date_range("2024-03-29", periods=96, freq="h", tz="UTC").tz_convert(zone)
    with pytest.raises(TypeError, match=r"column 'when' of X has the time zone .*my zone.*, which has no name"):
        fit(pd.DataFrame({"when": when}))


def test_strings_with_hours_from_utc_are_dates_in_utc():
    when = pd.Series(pd.date_range("2024-03-29", periods=96, freq="h", tz="Asia/Tokyo"))
    texts = pd.DataFrame({"when": [time.isoformat() for time in when]})
    with pytest.warns(UserWarning, match="Column 'when' of X contains dates in UTC, which are converted"):
        estimator, columns, matrix = fit(texts)
    np.testing.assert_array_equal(matrix[:, 1], when.dt.tz_convert("UTC").dt.hour)
    for same in (pd.DataFrame({"when": when}), texts["when"].str.replace("+09:00", "+0900").to_frame()):
        np.testing.assert_allclose(columns.transform(estimator, same), matrix, atol=1e-9)


def test_strings_with_hours_from_utc_are_no_dates_without_a_zone():
    days = pd.DataFrame({"when": pd.date_range("2024-03-29", periods=96, freq="h")})
    estimator, columns, _ = fit(days)
    for text in ("2024-03-29T12:00:00+06:00", "2024-03-29T12:00:00Z"):
        with pytest.raises(ValueError, match="is not a date without a time zone"):
            columns.transform(estimator, pd.DataFrame({"when": [text] * 96}))


def test_days_without_times():
    pl = pytest.importorskip("polars")
    days = [datetime.date(1969, 12, 30) + datetime.timedelta(k) for k in range(20)]
    frame = pl.DataFrame({"day": [*days, None]})
    estimator, columns, matrix = fit(frame)
    np.testing.assert_array_equal(matrix[:20, 0], np.arange(-2, 18))
    np.testing.assert_array_equal(matrix[:20, 1], [day.weekday() for day in days])
    for same in (frame.cast(pl.Datetime), frame.to_arrow(), frame.to_pandas()):
        np.testing.assert_array_equal(columns.transform(estimator, same), matrix)
    own = frame.to_pandas(use_pyarrow_extension_array=True)
    np.testing.assert_array_equal(columns.transform(estimator, own), matrix)


def test_dates_that_are_categories(dates):
    dates = dates[:40]
    estimator, columns, matrix = fit(dates[["when"]], ["when"])
    np.testing.assert_array_equal(columns.source, [0])
    np.testing.assert_array_equal(np.delete(matrix[:, 0], 5), np.arange(39))
    np.testing.assert_array_equal(columns.transform(estimator, dates[["when"]][::-1]), matrix[::-1])
    ((found,), _) = columns.compared(estimator, pd.DataFrame({"when": [pd.Timestamp("2030-05-06")]}))
    assert found.examples == ("2030-05-06",)
    first = dates["when"].min().isoformat().removesuffix("T00:00:00")
    assert name_of_category(columns.inputs.categories[0], 0, "dates") == first


def test_names_of_categories_have_all_digits():
    estimator, columns, _ = fit(np.array([[4111111111111111.0], [0.1], [1234567.0], [np.nan]]), [0])
    names = [name_of_category(columns.inputs.categories[0], code, "") for code in range(5)]
    assert names == ["0.1", "1234567", "4111111111111111", "missing", "unknown"]
    ((found,), _) = columns.compared(estimator, np.array([[1234568.0]]))
    assert found.examples == ("1234568",)


@pytest.mark.parametrize("kind", ["when", "lasted", "zoned"])
def test_categories_that_are_dates_or_durations_have_the_keys_of_listed_columns(dates, kind):
    frame = dates.assign(zoned=dates["when"].dt.tz_localize("Europe/Berlin"))[[kind]][:40]
    _, _, expected = fit(frame, [kind])
    categories = frame.astype("category")
    estimator, columns, matrix = fit(categories, "from_dtype")
    assert columns.categorical.all()
    np.testing.assert_array_equal(matrix, expected)
    for same in (frame, frame.astype(object), frame.to_numpy(dtype=object)):
        np.testing.assert_array_equal(columns.transform(estimator, same), matrix)
    pa = pytest.importorskip("pyarrow")
    coded = pa.table({kind: pa.array(frame[kind]).dictionary_encode()})
    np.testing.assert_array_equal(fit(coded, "from_dtype")[2], expected)


@pytest.mark.parametrize("listed", [["when", "lasted"], None])
def test_objects_that_are_dates_or_durations_are_read_as_columns_of_times(dates, listed):
    typed = dates[["when", "lasted"]][:40]
    objects = typed.astype(object)
    forms = {"typed": typed, "objects": objects, "array": typed.to_numpy(dtype=object)}
    for known in (typed, objects):
        estimator, columns, matrix = fit(known, listed)
        for new in forms.values():
            np.testing.assert_array_equal(columns.transform(estimator, new), matrix)
    estimator, columns, _ = fit(typed, None)
    with pytest.raises(ValueError, match="Column 'lasted' of X must contain durations: 'long' is not a duration"):
        columns.transform(estimator, typed.assign(lasted="long"))


def test_dates_that_are_all_missing():
    _, columns, matrix = fit(pd.DataFrame({"when": pd.to_datetime([None, None])}))
    np.testing.assert_array_equal(matrix, [[0], [0]])
    assert not columns.parts.size


def test_times_where_others_were(dates):
    estimator, columns, _ = fit(dates)
    zoned = dates["when"].dt.tz_localize("UTC")
    for name, values, message in (
        ("when", zoned, "Column 'when' of X contains dates in UTC, but contained dates in fit"),
        ("when", dates["lasted"], "Column 'when' of X contains durations, but contained dates in fit"),
        (
            "when",
            dates["x"],
            "Column 'when' of X contains no times, but contained dates in fit. Convert it, for example by",
        ),
        ("x", dates["when"], "Column 'x' of X contains dates, but contained no times in fit"),
    ):
        with pytest.raises(TypeError, match=message):
            columns.transform(estimator, dates.assign(**{name: values}))
    estimator, columns, matrix = fit(pd.DataFrame({0: dates["when"]}))
    with pytest.raises(TypeError, match="Column 0 of X contains no times, but contained dates in fit"):
        columns.transform(estimator, matrix[:, :1])


@pytest.mark.parametrize(("zone", "other"), [(None, "UTC"), ("UTC", None)])
def test_remedies_for_dates_with_and_without_a_time_zone(dates, zone, other):
    known = dates[["when"]].assign(when=dates["when"].dt.tz_localize(zone))
    estimator, columns, matrix = fit(known)
    new = known.assign(when=dates["when"].dt.tz_localize(other))
    with pytest.raises(TypeError, match=re.escape(f"by Series.dt.tz_localize({zone!r}).")):
        columns.transform(estimator, new)
    remedied = new.assign(when=new["when"].dt.tz_localize(zone))
    np.testing.assert_array_equal(columns.transform(estimator, remedied), matrix)


def test_times_of_arrays_and_complex_numbers():
    with pytest.raises(TypeError, match=r"Column 0 of X has type timedelta64.*; convert it to numbers"):
        fit(np.ones((2, 2), dtype="m8[s]"))
    for X in (np.full((2, 2), 1j), sparse.csr_array(np.full((2, 2), 1j))):
        with pytest.raises(ValueError, match="Complex data not supported"):
            fit(X)


def test_wrong_shapes(rng):
    X = rng.normal(size=(6, 3))
    estimator, columns, _ = fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but BaseEstimator is expecting 3 features as input"):
        columns.transform(estimator, X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        columns.transform(estimator, X[0])
    for empty in (X[:0], pd.DataFrame(X[:0])):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            columns.transform(estimator, empty)
    for empty in (X[:, :0], pd.DataFrame(index=[0, 1])):
        with pytest.raises(ValueError, match=r"0 (feature|sample)\(s\)"):
            fit(empty)


def test_sparse_that_does_not_fit(memory_of):
    X = sparse.csr_array((1000, 1000))
    memory_of(10**6)
    with pytest.raises(MemoryError, match=r"a dense copy of X, \(1000, 1000\), needs about 8,000,000 bytes"):
        fit(X)


def test_layouts(rng):
    X = rng.normal(size=(30, 4))
    estimator, columns, matrix = fit(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    for same in (X, frozen, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1][::-1]):
        for got in (columns.transform(estimator, same), fit(same)[2]):
            assert got.flags.carray
            np.testing.assert_array_equal(got, matrix)


def test_plain_rows_meet_no_check(rng, monkeypatch):
    """A single row is checked without a call to scikit-learn."""
    X = rng.normal(size=(30, 4))
    X[::2, 1] = np.nan
    estimator, columns, matrix = fit(X)
    for check in ("columns.checked_rows", "inputs.checked_array"):
        monkeypatch.setattr(f"binfeat.models.table.{check}", lambda *_, **__: pytest.fail("slow"))
    np.testing.assert_array_equal(columns.transform(estimator, X), matrix)
    np.testing.assert_allclose(columns.transform(estimator, X.astype(np.float32)), matrix, rtol=1e-6)


def test_arrays_round_trip(frame):
    estimator, columns, matrix = fit(frame)
    arrays = columns.arrays()
    assert all(isinstance(a, np.ndarray) and a.dtype.kind in "biufU" for a in arrays.values())
    again = TableEncoder.from_arrays({name: array.copy() for name, array in arrays.items()})
    np.testing.assert_array_equal(again.transform(estimator, frame), matrix)
    np.testing.assert_array_equal(again.categorical, columns.categorical)
    np.testing.assert_array_equal(again.source, columns.source)


def test_frames_are_imported_by_their_users_alone():
    """Only users and scikit-learn import them; displays do not import Matplotlib in advance."""
    code = (
        "import sys, sklearn.utils\n"
        "before = set(sys.modules)\n"
        "from binfeat import KernelMachineRegressor, RelevanceDisplay\n"
        "others = {'pandas', 'polars', 'pyarrow', 'matplotlib'}\n"
        "print({name.partition('.')[0] for name in set(sys.modules) - before} & others)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


@pytest.fixture
def words():
    """Return numbers and dates stored as strings, and strings that only look like them."""
    days = pd.to_datetime("2024-02-01") + pd.to_timedelta(np.arange(40) * 5, unit="D")
    return pd.DataFrame(
        {
            "price": [f"{value:.2f}" for value in np.linspace(-9, 9, 40)],
            "day": days.strftime("%Y-%m-%d"),
            "minute": (days + pd.to_timedelta(np.arange(40), unit="min")).strftime("%Y-%m-%d %H:%M"),
            "zip": [f"{value % 7:05d}" for value in range(40)],
            "word": ["7", "many"] * 20,
            "kind": pd.Categorical(["1", "2"] * 20),
        }
    )


@pytest.mark.parametrize("kind", FRAMES)
def test_numbers_and_dates_as_strings(words, kind):
    words.loc[3, ["price", "day"]] = None
    X = FRAMES[kind](words)
    with pytest.warns(UserWarning, match="as strings") as warned:
        estimator, columns, matrix = fit(X)
    assert [str(warning.message).partition(",")[0] for warning in warned] == [
        "Column 'price' of X contains numbers as strings",
        "Column 'day' of X contains dates as strings",
        "Column 'minute' of X contains dates as strings",
    ]
    assert columns.categorical[:6].tolist() == [False, False, False, True, True, True]
    there = words["price"].notna()
    np.testing.assert_array_equal(matrix[there, 0], words["price"][there].astype(float))
    for j, name in ((1, "day"), (2, "minute")):
        days = (pd.to_datetime(words[name]) - pd.Timestamp(0)) / pd.Timedelta(days=1)
        np.testing.assert_allclose(matrix[there, j], days[there], rtol=1e-15)
    assert {"day of week", "hour"} <= set(columns.parts)
    typed = words.assign(
        price=words["price"].astype(float), day=pd.to_datetime(words["day"]), minute=pd.to_datetime(words["minute"])
    )
    for same in (X, FRAMES[kind](typed)):
        np.testing.assert_array_equal(columns.transform(estimator, same), matrix)
    for name, value in (("price", "dear"), ("day", "2024-02-30"), ("minute", "noon")):
        with pytest.raises(ValueError, match=f"Column '{name}' of X .*'?{value}"):
            columns.transform(estimator, FRAMES[kind](words.assign(**{name: value})))


def test_strings_in_categorical_features_are_names(words):
    _, columns, _ = fit(words, list(words))
    assert columns.categorical.all()
    with pytest.warns(UserWarning, match="Column 0 of X contains numbers as strings"):
        _, columns, matrix = fit(words[["price", "word"]].to_numpy(dtype=object))
    np.testing.assert_array_equal(matrix[:, 0], words["price"].astype(float))
    assert columns.categorical.tolist() == [False, True]


@pytest.mark.parametrize(
    ("values", "conversion"),
    [
        (pd.period_range("2024-01", periods=5, freq="M"), r"\.dt\.to_timestamp\(\)"),
        ([*(datetime.date(2024, 1, day) for day in range(1, 5)), 5], r"pandas\.to_datetime"),
        ([datetime.time(hour) for hour in range(5)], r"hours"),
        (pd.interval_range(0, 5), r"\.array\.mid"),
    ],
)
def test_conversions_are_named(values, conversion):
    with pytest.raises(TypeError, match=f"Column 'when' of X must contain numbers.*{conversion}"):
        fit(pd.DataFrame({"x": np.arange(5.0), "when": values}))


def test_infinite_columns_are_named(frame):
    with pytest.raises(ValueError, match=r"Input X contains infinity .*; it is in columns 'age' and 'count'\."):
        fit(frame.assign(age=np.inf, count=[1.0, -np.inf, 2.0, 3.0]))
    with pytest.raises(ValueError, match="; it is in column 'size'"):
        fit(frame[["count"]].assign(size=[np.inf, 1.0, 2.0, 3.0]), ["size"])


def test_numbers_far_from_normal_have_normal_scores(rng):
    """Scores use mean ranks of equal values, as in `scipy.stats.rankdata`, up to three standard deviations."""
    n = 400
    some = np.where(rng.random(n) < 0.6, 0.0, rng.gamma(3, size=n))
    few = np.exp(rng.integers(0, 5, size=n))
    X = np.column_stack([rng.lognormal(size=n), rng.normal(size=n), some, rng.uniform(size=n), few, few])
    X[::9, 0] = np.nan
    estimator = BaseEstimator()
    columns, matrix = TableEncoder.fit(estimator, X, [5], takes_ranks=True)
    plain, encoded = TableEncoder.fit(estimator, X, [5])
    assert (columns.ranks.columns.size, plain.ranks.columns.size) == (2, 0)
    np.testing.assert_array_equal(columns.source, [0, 1, 2, 3, 4, 5, 0, 0, 2])
    np.testing.assert_array_equal(matrix[:, :-2], encoded)
    filled = np.where(np.isnan(X[:, 0]), np.nanmedian(X[:, 0]), X[:, 0])
    for values, ranks in ((filled, matrix[:, -2]), (some, matrix[:, -1])):
        scores = norm.ppf((rankdata(values) - 0.5) / n).clip(-3, 3)
        np.testing.assert_allclose(ranks, scores, rtol=1e-12, atol=1e-12)
    again = TableEncoder.from_arrays(columns.arrays())
    np.testing.assert_array_equal(again.transform(estimator, X), matrix)
    np.testing.assert_array_equal(again.transform(estimator, X[:1]), matrix[:1])
    moved, same = X.copy(), columns.with_value(matrix, 0, 2.5)
    moved[:, 0] = 2.5
    np.testing.assert_array_equal(same, columns.transform(estimator, moved))
    wide, _ = TableEncoder.fit(estimator, np.tile(some, (65, 1)).T, None, takes_ranks=True)
    assert wide.ranks.columns.size == 0  # a bag of words


def test_columns_with_a_period_are_ranked_by_the_rows_that_select_them(rng, monkeypatch):
    monkeypatch.setattr("binfeat.models.table.derived.RANKED_ROWS", 300)
    X = np.zeros((500, 1))
    X[1::2, 0] = rng.lognormal(size=250)
    columns, _ = TableEncoder.fit(BaseEstimator(), X, None, takes_ranks=True)
    assert columns.ranks.knots.size > 100


def test_text_that_is_not_decoded_is_refused_with_a_hint(rng):
    X = pd.DataFrame({"a": [b"caf\xe9", b"bar"] * 10, "b": rng.normal(size=20)})
    with pytest.raises(
        ValueError, match=r"Column 'a' of X must contain numbers.* Decode it; text in files must be UTF-8\."
    ):
        TableEncoder.fit(BaseEstimator(), X, "from_dtype")


def test_digits_are_the_category_of_the_number_that_they_say(rng):
    """Integers in CSV can be read as strings, if other values of their column are words."""
    X = pd.DataFrame({"code": pd.Categorical(rng.choice([1, 2, 30], size=100))})
    owner = BaseEstimator()
    encoder, _ = TableEncoder.fit(owner, X, "from_dtype")
    numbers, texts = (
        pd.DataFrame({"code": pd.Categorical(values)}) for values in ([30, 1, 2, -1], ["30", "1", "2", "x"])
    )
    np.testing.assert_array_equal(encoder.transform(owner, texts), encoder.transform(owner, numbers))
    (found,) = encoder.compared(owner, texts)[0]
    assert (found.found, found.n_rows, found.examples) == ("unseen categories", 1, ("'x'",))


@pytest.mark.parametrize(
    ("known", "texts"),
    [
        ([0.5, -1.0, 0.1 + 0.2], ["0.50", "-1", "0.30000000000000004"]),
        ([True, False], ["True", "False"]),
        ([True, False], ["true", "FALSE"]),
    ],
)
def test_a_text_is_the_category_of_its_number_or_flag(known, texts):
    """Files of text contain floats and flags as text, and the command reads columns of categories as strings."""
    owner = BaseEstimator()
    as_values, as_texts = (pd.DataFrame({"code": pd.Categorical(own * 10)}) for own in (known, texts))
    for own, other in ((as_values, as_texts), (as_texts, as_values)):
        encoder, _ = TableEncoder.fit(owner, own, "from_dtype")
        np.testing.assert_array_equal(encoder.transform(owner, other), encoder.transform(owner, own))
        assert not encoder.compared(owner, other)[0]


def test_the_category_of_a_text_does_not_depend_on_other_rows():
    estimator, columns, _ = fit(np.array([[1.0], [0.5], [3.0]]), [0])
    texts = np.array([["1"], ["1.0"], ["01"], ["0.5"], ["0.50"], [0.5], ["x"]], dtype=object)
    np.testing.assert_array_equal(columns.transform(estimator, texts)[:, 0], [1, 1, 1, 0, 0, 0, 3])


def test_a_number_is_the_category_of_the_digits_that_say_it(rng):
    """Readers of a few rows read digits as numbers; a number that matches two categories matches neither."""
    X = pd.DataFrame({"code": pd.Categorical(rng.choice(["007", "12", "3", "03", "x"], size=100))})
    owner = BaseEstimator()
    encoder, _ = TableEncoder.fit(owner, X, "from_dtype")
    numbers, texts = (pd.DataFrame({"code": values}) for values in ([7, 12, 3, 8], ["007", "12", "?", "?"]))
    np.testing.assert_array_equal(encoder.transform(owner, numbers), encoder.transform(owner, texts))
    (found,) = encoder.compared(owner, numbers)[0]
    assert (found.found, found.n_rows, found.examples) == ("unseen categories", 2, ("3", "8"))


@pytest.mark.parametrize("kind", FRAMES)
def test_few_words_among_numbers_are_named(kind):
    texts = [f"{k % 50 / 10}" for k in range(200)]
    texts[20] = texts[30] = "?"
    with pytest.warns(UserWarning, match="Column 'a' of X has mostly numeric strings, and a few other strings, '\\?'"):
        fit(FRAMES[kind](pd.DataFrame({"a": texts})))
    texts[:60] = [f"{k % 20}b" for k in range(60)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(FRAMES[kind](pd.DataFrame({"a": texts})))
        fit(pd.DataFrame({"a": pd.Categorical([*texts[60:], "?"])}))


@pytest.mark.parametrize(
    "date",
    [
        "{d}.{m}.2024",
        "{m:02d}/{d:02d}/2024",
        "2024/{m}/{d} 10:00",
        "{d}-{m}-2024T00:00",
        "{d}.{m}.24",
        "{d} Dec 20{m:02d}",
    ],
)
def test_dates_of_other_forms_are_named(date):
    days = [date.format(d=k % 28 + 1, m=k % 12 + 1) for k in range(100)]
    with pytest.warns(UserWarning, match=r"Column 'a' of X has strings that look like dates, .*treated as categorical"):
        fit(pd.DataFrame({"a": days}))
    with pytest.warns(UserWarning, match=r"strings that look like dates, .*treated as categorical"):
        fit(pd.DataFrame({"a": [*days[:50], "n/a", "soon", *days[:48]]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(pd.DataFrame({"a": ["1.2.3", "10.0.12", "10 May"] * 50}))


@pytest.mark.parametrize("number", ["{},5", "1.{:03d},25", "1,{:03d}", "-{},0"])
def test_numbers_with_commas_are_named(number):
    with pytest.warns(UserWarning, match=r"has strings that look like numbers with commas, .* of pandas.read_csv"):
        fit(pd.DataFrame({"a": [number.format(k) for k in range(100)]}))


def test_few_words_among_dates_are_named():
    days = [f"2024-01-{k % 28 + 1:02d}" for k in range(100)]
    with pytest.warns(UserWarning, match=r"Column 'a' of X contains dates as strings, which are converted"):
        fit(pd.DataFrame({"a": days}))
    with pytest.warns(UserWarning, match=r"Column 'a' of X has strings that look like dates, '2024-01-01'"):
        fit(pd.DataFrame({"a": ["n/a", *days]}))


def test_columns_of_tiny_numbers_are_named():
    X = np.random.default_rng(0).normal(size=(50, 3))
    fit(X * [1.0, 1e-90, 0.0])
    with pytest.raises(ValueError, match=r"Column 1 of X has no number of 1e-100 or more in magnitude; multiply it"):
        fit(X * [1.0, 1e-160, 0.0])
