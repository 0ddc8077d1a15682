"""Values that `fit` has not seen: counted, listed, reported in warnings or errors, or ignored on request."""

import datetime
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from limits import limited
from scipy import sparse
from sklearn.base import clone

import binfeat

N = 120
PARAMETERS = {"gamma": "scale", "alpha": 0.1, "random_state": 0}


def frame_of(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.uniform(1, 3, size=n_rows),
            "gaps": np.where(np.arange(n_rows) % 7 == 0, np.nan, rng.normal(size=n_rows)),
            "color": rng.choice(["red", "blue"], size=n_rows),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(30, size=n_rows), unit="D"),
            "same": 5.0,
        }
    )


@pytest.fixture(scope="module")
def model():
    frame = frame_of(N)
    with limited(n_steps=3):
        return binfeat.KernelMachineRegressor(features="exact", **PARAMETERS).fit(frame, frame["size"])


@pytest.fixture(scope="module")
def of_arrays():
    X = frame_of(N)[["size", "gaps"]].to_numpy()
    return binfeat.KernelMachineRegressor(features="exact", **PARAMETERS).fit(X, X[:, 0])


@pytest.fixture(scope="module")
def of_strings():
    frame = frame_of(N)[["size", "day"]]
    words = frame.assign(size=frame["size"].map("{:.4f}".format), day=frame["day"].dt.strftime("%Y-%m-%d"))
    with limited(n_steps=3), pytest.warns(UserWarning, match="as strings"):
        return binfeat.KernelMachineRegressor(features="exact", **PARAMETERS).fit(words, frame["size"]), words


def found_in(model, X):
    return {(each.column, each.found): (each.n_rows, each.examples, each.known) for each in model.check(X)}


def counted(X, known):
    """Slow twin: compare each value with all training values of its column; count rows by column and kind."""
    counts = {}
    for name in known:
        seen = [value for value in known[name] if not pd.isna(value)]
        for value in X[name]:
            if pd.isna(value):
                kind = None if known[name].isna().any() else "missing values"
            elif isinstance(value, str):
                kind = None if value in seen else "unseen categories"
            else:
                least, largest = min(seen), max(seen)
                width = largest - least
                slack = 0 * width if isinstance(value, pd.Timestamp) else 1e-6 * max(abs(least), abs(largest))
                inside = least - width - slack <= value <= largest + width + slack
                kind = None if inside else "far outside"
            if kind:
                counts[f"Column {name!r}", kind] = counts.get((f"Column {name!r}", kind), 0) + 1
    return counts


def test_rows_of_fit_have_nothing_new(model, of_arrays):
    frame = frame_of(N)
    found = model.check(frame)
    assert not found
    assert len(found) == 0
    assert found.n_rows == N
    lines = [
        "120 rows without differences from the training rows.",
        "The table has not drifted significantly: p = 1, squared MMD ",
    ]
    assert all(line.startswith(known) for line, known in zip(str(found).splitlines(), lines, strict=True))
    assert not of_arrays.check(frame[["size", "gaps"]].to_numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame)


def test_findings_are_those_of_the_twin(model, rng):
    frame = frame_of(300, seed=1)
    for name in frame:
        frame.loc[rng.random(300) < 0.1, name] = None
    frame.loc[rng.random(300) < 0.1, "size"] = 1e30
    frame.loc[rng.random(300) < 0.1, "gaps"] = -40.0
    frame.loc[rng.random(300) < 0.1, "color"] = "green"
    frame.loc[rng.random(300) < 0.1, "day"] = pd.Timestamp("2030-05-06")
    frame.loc[rng.random(300) < 0.1, "same"] = 5.1
    found = found_in(model, frame)
    assert {key: n_rows for key, (n_rows, *_) in found.items()} == counted(frame, frame_of(N))
    assert len(found) == 9
    assert found["Column 'size'", "far outside"][1] == ("1e+30",)
    assert found["Column 'color'", "unseen categories"][1:] == (("'green'",), "2 categories")
    assert found["Column 'day'", "far outside"][1:] == (("2030-05-06",), "2026-01-01 to 2026-01-30")
    assert found["Column 'same'", "far outside"][1:] == (("5.1",), "5 to 5")


@pytest.mark.parametrize("form", [lambda X: X, lambda X: X.tolist(), sparse.csr_array], ids=["array", "list", "sparse"])
def test_what_is_far_outside_is_as_far_as_it_may_be(of_arrays, form):
    """Values are clipped to one width beyond the training range; missing values in the row stay missing."""
    known = frame_of(N)[["size", "gaps"]].to_numpy()
    width = np.ptp(known[:, 0])
    far, ends = known[:4].copy(), known[:4].copy()
    far[:, 0] = 1e9, -1e9, 1e30, known[:, 0].max() + 0.9 * width
    ends[:3, 0] = known[:, 0].max() + width, known[:, 0].min() - width, known[:, 0].max() + width
    ends[3, 0] = far[3, 0]
    assert np.isnan(far[:, 1]).any()
    quiet = clone(of_arrays).set_params(on_unseen="ignore")
    quiet.__dict__ |= {name: value for name, value in vars(of_arrays).items() if name.endswith("_") or name[0] == "_"}
    before = far.copy()
    np.testing.assert_allclose(quiet.predict(form(far)), quiet.predict(ends), rtol=1e-6)
    np.testing.assert_array_equal(far, before)


def test_targets_are_not_followed_to_anywhere(rng):
    X = rng.uniform(size=(200, 3))
    model = binfeat.KernelMachineRegressor(random_state=0, on_unseen="ignore").fit(X, X @ [1.0, 2.0, 3.0])
    assert model.predict([[1.5] * 3])[0] > 7.0
    assert model.predict([[1e6] * 3])[0] < 12.5


def test_the_table_of_findings(model):
    frame = frame_of(3, seed=1).assign(color=["green", None, "red"])
    text = str(model.check(frame))
    assert [line.split()[0] for line in text.splitlines()[:4]] == ["column", "Column", "Column", "The"]
    assert "'green'" in text
    assert repr(model.check(frame)) == text
    assert [each.n_rows for each in model.check(frame)] == [1, 1]
    assert model.check(frame)[1].found == "unseen categories"
    assert "Column 'color': unseen categories, in 1 row, such as 'green'" in model.check(frame).words


@pytest.mark.parametrize("convert", [pl.from_pandas, lambda frame: pl.from_pandas(frame).lazy(), lambda frame: frame])
def test_any_frame(model, convert):
    frame = frame_of(20, seed=1).assign(color="green")
    assert found_in(model, convert(frame)) == {
        ("Column 'color'", "unseen categories"): (20, ("'green'",), "2 categories")
    }


def test_arrays_and_sparse_matrices(of_arrays):
    X = frame_of(20, seed=1)[["size", "gaps"]].fillna(0.0).to_numpy().copy()
    X[3:5, 0], X[5, 0], X[6, 1] = np.nan, 99.0, np.nan
    for rows in (X, X.astype(np.float32), np.asfortranarray(X), X.tolist(), sparse.csr_array(X)):
        found = found_in(of_arrays, rows)
        assert found["Column 0", "missing values"] == (2, ("NaN",), "none")
        assert found["Column 0", "far outside"][:2] == (1, ("99",))
        assert len(found) == 2
        own = pickle.loads(pickle.dumps(of_arrays))
        with pytest.warns(UserWarning, match=r"0: missing values, in 2 rows, such as NaN \(training rows: none\); "):
            own.predict(rows)


def test_numbers_as_strings_are_read_and_said(model):
    frame = frame_of(20, seed=1)
    strings = frame.assign(size=frame["size"].astype(str))
    assert found_in(model, strings)["Column 'size'", "numbers as strings"][0] == 20
    own = pickle.loads(pickle.dumps(model))
    with pytest.warns(UserWarning, match="numbers as strings, in 20 rows"):
        found = own.predict(strings)
    np.testing.assert_array_equal(found, model.predict(frame))


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_words_among_numbers_are_listed_and_refused_by_predictions(model, convert):
    sizes = frame_of(20, seed=1)["size"].astype(str)
    sizes[[3, 4, 11]] = "Z9", "", "Z9"
    frame = convert(frame_of(20, seed=1).assign(size=sizes))
    found = found_in(model, frame)
    assert found.pop(("Column 'size'", "no numbers")) == (3, ("'Z9'", "''"), "numbers")
    assert found.pop(("Column 'size'", "numbers as strings"))[0] == 17
    assert not any(column == "Column 'size'" for column, _ in found)
    with pytest.raises(ValueError, match="Column 'size' of X must contain numbers"):
        model.predict(frame)


@pytest.mark.parametrize(
    ("column", "values", "examples", "known"),
    [
        ("size", ["Z9", "inf"], ("'Z9'", "'inf'"), "numbers"),
        ("size", [b"Z9", np.inf], ("b'Z9'", "inf"), "numbers"),
        ("day", ["soon", 3.0], ("'soon'", "3.0"), "dates"),
    ],
)
def test_words_among_strings_that_said_numbers_or_dates_are_listed(of_strings, column, values, examples, known):
    model, frame = of_strings
    rows = frame[column].astype(object).to_numpy(copy=True)
    rows[[2, 5]] = values
    with_words = frame.assign(**{column: rows})
    assert found_in(model, with_words) == {(f"Column '{column}'", "no numbers"): (2, examples, known)}
    with pytest.raises((TypeError, ValueError), match=f"Column '{column}' of X|infinity; it is in column '{column}'"):
        model.predict(with_words)


@pytest.mark.parametrize("day", [None, np.nan, datetime.date(2026, 2, 1), datetime.datetime(2026, 2, 1), "2026-02-01"])
def test_a_row_alone_with_dates_as_objects_or_without_any(model, day):
    """As in a service: its types are not informative."""
    frame = frame_of(N).assign(size=np.nan)
    frame.loc[::5, "day"] = pd.NaT
    model = clone(model).fit(frame, np.arange(N))
    row = {**frame.iloc[1].to_dict(), "size": None, "day": day}
    typed = frame.iloc[[1]].assign(day=pd.to_datetime(pd.Series([day], index=[1])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict(pd.DataFrame([row]))
    np.testing.assert_array_equal(found, model.predict(typed))
    assert not model.check(pd.DataFrame([row]))


def test_examples_of_dates_are_exact_to_the_second(model):
    times = pd.Timestamp("2030-01-01") + pd.to_timedelta([*range(1, 40), 86_399.6], unit="s")
    for time in times:
        found = found_in(model, frame_of(1).assign(day=time))
        (examples,) = (examples for (column, _), (_, examples, _) in found.items() if column == "Column 'day'")
        assert examples == (time.round("s").isoformat().removesuffix("T00:00:00"),)


def test_dates_of_a_time_zone_and_numbers_are_no_dates_as_objects(model):
    for value in (datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC), 3):
        frame = frame_of(2).assign(day=np.array([value, "2026-01-07"], dtype=object))
        assert found_in(model, frame)["Column 'day'", "no numbers"][0] == 1
        with pytest.raises(ValueError, match="Column 'day' of X must contain dates"):
            model.predict(frame)


def test_infinity_is_listed(of_arrays):
    X = np.zeros((5, 2))
    X[[1, 3], 1] = np.inf, -np.inf
    assert found_in(of_arrays, X)["Column 1", "no numbers"] == (2, ("-inf", "inf"), "numbers")


def test_words_in_a_column_that_was_missing_everywhere_are_words(rng):
    X = pd.DataFrame({"a": rng.normal(size=30), "b": np.full(30, np.nan)})
    model = binfeat.KernelMachineRegressor(random_state=0).fit(X, X["a"])
    found = found_in(model, X.assign(b=["Z9", *[None] * 29]))
    assert found == {("Column 'b'", "no numbers"): (1, ("'Z9'",), "numbers")}


def test_strings_of_fit_are_numbers_and_dates(of_strings):
    model, frame = of_strings
    assert len(model.check(frame)) == 0
    typed = frame.assign(size=frame["size"].astype(float), day=pd.to_datetime(frame["day"]))
    assert len(model.check(typed)) == 0
    far = frame.assign(size=["99.5", *frame["size"][1:]], day=[*frame["day"][:-1], "2031-01-01"])
    ends = [f"{end:.6g}" for end in (typed["size"].min(), typed["size"].max())]
    assert found_in(model, far) == {
        ("Column 'size'", "far outside"): (1, ("99.5",), " to ".join(ends)),
        ("Column 'day'", "far outside"): (1, ("2031-01-01",), "2026-01-01 to 2026-01-30"),
    }
    missing = frame.assign(size=[None, *frame["size"][1:]])
    for each in (model, pickle.loads(pickle.dumps(model)).compact()):
        assert found_in(each, missing) == {("Column 'size'", "missing values"): (1, ("NaN",), "none")}


def test_other_columns_are_listed_and_refused_by_predictions(model):
    frame = frame_of(20, seed=1)
    for other, example in ((frame.assign(more=1), "'more'"), (frame[frame.columns[::-1]], "another order")):
        assert found_in(model, other)["All columns", "other columns"] == (20, (example,), "not so")
        with pytest.raises(ValueError, match="feature names"):
            model.predict(other)
    with pytest.raises(ValueError, match="missing"):
        model.check(frame.drop(columns="day"))


METHODS = {
    "predict": lambda model, X: model.predict(X),
    "std": lambda model, X: model.predict(X, return_std=True),
    "quantiles": lambda model, X: model.predict_quantiles(X),
    "interval": lambda model, X: model.predict_interval(X),
    "samples": lambda model, X: model.sample_y(X),
    "shapley": lambda model, X: model.shapley_values(X),
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_warns_once(model, method):
    """A fitted model warns once for all methods; "error" and "ignore" apply to each call."""
    frame = frame_of(10, seed=1).assign(size=77.0)
    own = pickle.loads(pickle.dumps(model))
    with pytest.warns(UserWarning, match="Column 'size': far outside, in 10 rows, such as 77") as told:
        METHODS[method](own, frame)
    assert len([one for one in told if "differs from the training rows" in str(one.message)]) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        METHODS[method](own, frame)
        METHODS[method](pickle.loads(pickle.dumps(model)).set_params(on_unseen="ignore"), frame)
    with pytest.raises(ValueError, match=r"on_unseen is 'error'. Column 'size': far outside"):
        METHODS[method](own.set_params(on_unseen="error"), frame)


@pytest.mark.parametrize(
    ("n_rows", "n_far", "color", "warns"),
    [
        (1, 1, "red", False),
        (300, 1, "red", False),
        (300, 3, "red", True),
        (300, 2, "red", False),
        (20, 2, "red", True),
        (300, 0, "green", True),
        (1, 0, "green", True),
    ],
)
def test_few_differences_do_not_warn(model, n_rows, n_far, color, warns):
    """More than 1 % of the rows and at least two, or a category that no training row has."""
    frame = frame_of(n_rows, seed=1)
    known = frame_of(N)
    frame = pd.DataFrame({name: known[name].iloc[np.arange(n_rows) % N].to_numpy() for name in frame})
    frame.loc[frame.index < n_far, "size"] = 77.0
    frame.loc[0, "color"] = color if color == "green" else frame.loc[0, "color"]
    own = pickle.loads(pickle.dumps(model))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        own.predict(frame)
    assert any("differs from the training rows" in str(one.message) for one in seen) == warns
    assert len(own.check(frame)) == (n_far > 0) + (color == "green")


def test_rare_words_of_texts_are_no_news(few_steps):
    """In a sparse matrix, values are far outside only if they exceed the range of all columns."""
    X = sparse.csr_array(sparse.random(200, 40, density=0.05, random_state=0))
    model = binfeat.KernelMachineRegressor(**PARAMETERS).fit(X, X.sum(axis=1))
    rare = sparse.csr_array(X).copy()
    rare = X.copy()
    rare.data[:] = X.data.max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(rare)
        assert not model.check(rare)
    with pytest.warns(UserWarning, match="far outside"):
        model.predict(10 * X)


def test_of_several_blocks_it_is_said_once(of_arrays):
    X = frame_of(60, seed=1)[["size", "gaps"]].to_numpy().copy()
    X[::20, 0] = 99.0
    source = binfeat.blocks(X, np.zeros(60), block_rows=10)
    of_arrays = pickle.loads(pickle.dumps(of_arrays))
    with pytest.warns(UserWarning, match="Column 0: far outside, in 3 rows") as told:
        found = of_arrays.predict(source)
    assert len(told) == 1
    np.testing.assert_allclose(found, of_arrays.set_params(on_unseen="ignore").predict(X), rtol=1e-6)
    of_arrays.set_params(on_unseen="warn")
    assert found_in(of_arrays, source)["Column 0", "far outside"][0] == 3
    assert of_arrays.check(source).n_rows == 60


@pytest.mark.parametrize("features", ["exact", "local", "binning", "fourier"])
def test_every_kind_of_model_and_files(features, few_steps):
    X = frame_of(N)[["size", "gaps"]].to_numpy()
    n_grids = {"solver_params": {"n_grids": 8}} if features == "binning" else {}
    model = binfeat.KernelMachineClassifier(features=features, **n_grids, **PARAMETERS).fit(X, X[:, 0] > 2)
    X = X[:9].copy()
    X[:2, 0] = 1e30
    methods = "predict", "predict_proba", "decision_function", *(["apply"] if features == "local" else [])
    for method in methods:
        loaded = pickle.loads(pickle.dumps(model))
        with pytest.warns(UserWarning, match=r"far outside, in 2 rows, such as 1e\+30"):
            assert not pd.isna(getattr(loaded, method)(X)).any()


def test_columns_of_nothing_but_gaps_and_of_ids(rng):
    frame = pd.DataFrame({"x": rng.normal(size=N), "empty": np.nan, "id": [f"row {i}" for i in range(N)]})
    with pytest.warns(UserWarning, match="different values in .* too many to generalize"):
        model = binfeat.KernelMachineRegressor(features="exact", **PARAMETERS).fit(frame, frame["x"])
    assert not model.check(frame.assign(id="another"))
    found = found_in(model, frame.assign(empty=0.0))
    assert found == {("Column 'empty'", "far outside"): (N, ("0",), "missing everywhere")}


def test_far_outside_little_is_known(rng):
    X = rng.normal(size=(300, 2))
    y = 7 + np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(size=300) / 5
    given = {"features": "exact", "kernel": "rbf", "gamma": "scale", "alpha": 0.1, "on_unseen": "ignore"}
    model = binfeat.KernelMachineRegressor(**given).fit(X, y)
    far = np.array([[1e9, -1e9], [1e9, -1e12]])
    outside, std = model.predict(far, return_std=True)
    assert outside[0] == outside[1]
    assert abs(outside[0] - y.mean()) < 0.5 * y.std()
    assert std.min() > 2 * model.predict(X, return_std=True)[1].max()


def test_a_wrong_policy_is_refused(model):
    for wrong in ("warning", None, 3):
        with pytest.raises(ValueError, match="on_unseen must be 'warn', 'ignore' or 'error', got"):
            clone(model).set_params(on_unseen=wrong).fit(frame_of(N), np.arange(N))
