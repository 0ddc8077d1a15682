"""`transform` without fit: inputs that occur, kept grids, categories, sources, threads."""

import tracemalloc
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import binfeat
from binfeat import RandomBinning, kernels, transform
from binfeat.features.binning.grids import Grids

FEW = {"gamma": 0.3, "n_grids": 6, "n_features": 600}


@pytest.mark.parametrize("n_inputs", [40, 5000])
def test_some_inputs_have_the_grids_of_all_inputs(n_inputs, rng):
    inputs, gamma = np.array([0, 7, 39]), rng.uniform(size=n_inputs)
    every = Grids.draw(kernels.Laplacian(), gamma, 5, 3)
    for of_some, of_all in zip(Grids.draw(kernels.Laplacian(), gamma, 5, 3, inputs=inputs).arrays, every.arrays):
        np.testing.assert_array_equal(of_some, of_all[:, inputs])


def test_wide_sparse_rows_are_binned_as_dense_ones(rng):
    X = sparse.random(40, 3000, density=0.003, random_state=0, format="csr")
    assert (transform(X, **FEW) != transform(X.toarray(), **FEW)).nnz == 0
    empty = sparse.csr_array((3, 3000))
    assert (transform(empty, **FEW) != transform(empty.toarray(), **FEW)).nnz == 0


def test_a_million_inputs_take_the_memory_of_those_that_occur(memory_of):
    rows = sparse.csr_array((np.ones(4), np.array([5, 2**20 - 1, 7, 5]), np.array([0, 2, 4])), shape=(2, 2**20))
    memory_of(2**26)
    Z = transform(rows, gamma=0.1)
    assert Z.nnz == 512
    assert 0 < (Z @ Z.T).toarray()[0, 1] < 1
    empty = sparse.csr_array((2, 2**20))
    assert transform(empty, gamma=0.1).nnz == 512


def test_grids_are_kept_for_the_next_call(rng, monkeypatch):
    X = rng.normal(size=(5, 3))
    expected = transform(X, **FEW)
    monkeypatch.setattr(Grids, "draw", None)
    assert (transform(X, **FEW) != expected).nnz == 0
    with pytest.raises(TypeError):
        transform(X, random_state=1, **FEW)


@dataclass
class Decay:
    """A profile that has no hash and can change."""

    rate: float

    def __call__(self, t):
        return 1 / (1 + self.rate * t)


class HashedDecay(Decay):
    __hash__ = object.__hash__


@pytest.mark.parametrize("profile", [Decay, HashedDecay])
@pytest.mark.parametrize("skips", [0, 1, 2])
def test_grids_follow_a_profile_that_changes(skips, profile, rng):
    X, decay = rng.normal(size=(5, 3)), profile(1.0)
    kernel = kernels.Product(decay)
    for _ in range(skips):
        kernel = kernels.Skip(kernel, 0.1)
    before = transform(X, kernel=kernel, **FEW)
    decay.rate = 50.0
    assert (transform(X, kernel=kernel, **FEW) != before).nnz > 0


def test_gamma_none_is_one_over_the_number_of_inputs(rng):
    X = rng.normal(size=(50, 4))
    assert (transform(X) != transform(X, gamma=0.25)).nnz == 0


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_labels_of_categories(frame, rng):
    labels = np.array(["u", "v", "w"])[rng.integers(3, size=80)]
    numbers = rng.normal(size=80)
    X = frame({"level": labels, "x": numbers})
    Z = transform(X, categorical_features=["level"], gamma=[0.5, 0.0], n_grids=400)
    products = (Z @ Z.T).toarray()
    alike = labels[:, None] == labels
    assert (products[alike] > 0.999).all()
    assert abs(products[~alike].mean() - np.exp(-0.5)) < 4 * np.sqrt(0.25 / 400)
    part = frame({"level": labels[:7], "x": numbers[:7]})
    again = transform(part, categorical_features=[0], gamma=[0.5, 0.0], n_grids=400)
    assert (again != Z[:7]).nnz == 0


def test_pandas_categories_dates_and_missing_labels(rng):
    X = pd.DataFrame({"a": pd.Categorical(["u", None, "v", "u"]), "b": [True, False, True, True]})
    Z = RandomBinning(gamma=2.0, categorical_features=["a", "b"], n_grids=30, random_state=0).fit_transform(X)
    products = (Z @ Z.T).toarray()
    assert products[0, 3] == pytest.approx(1)
    assert (products[1, [0, 2]] < 0.5).all()
    assert transform(X, categorical_features="a", **FEW).nnz == 24


def test_categories_of_a_fitted_map_are_those_of_new_frames(rng):
    X = pd.DataFrame({"a": pd.Categorical(["u", "v", "w"] * 10), "x": np.arange(30.0)})
    binning = RandomBinning(categorical_features=["a"], n_grids=20, random_state=0).fit(X)
    part = X[5:9].copy()
    part["a"] = part["a"].cat.remove_unused_categories()[::-1][::-1].astype(str)
    assert (binning.transform(part) != binning.transform(X)[5:9]).nnz == 0


@pytest.mark.parametrize("function", [transform, partial(binfeat.learn_gamma, y=[])])
def test_errors_name_the_function(function):
    name = getattr(function, "func", function).__name__
    with pytest.raises(ValueError, match=rf"a minimum of 1 is required by {name}\."):
        function(np.zeros((0, 2)))


def test_threads_and_wrong_arguments(rng):
    X = rng.normal(size=(300, 3))
    assert (transform(X, n_jobs=1, **FEW) != transform(X, n_jobs=2, **FEW)).nnz == 0
    with pytest.raises(ValueError, match="n_jobs must be None"):
        transform(X, n_jobs=0)
    with pytest.raises(ValueError, match=r"categorical_features has .* not column names"):
        transform(X, categorical_features=["a"])
    with pytest.raises(ValueError, match="Input 0 is in categorical_features, so it must contain category numbers"):
        transform(X, categorical_features=[0])
    with pytest.raises(
        TypeError, match=r"X must be rows in memory, and is a source of blocks\. Call transform for each"
    ):
        transform(binfeat.blocks(X, X[:, 0]))


def test_bounds_of_bins(rng):
    X = rng.normal(size=(200, 3))
    binning = RandomBinning(gamma=[1.0, 0.0, 2.0], n_grids=7, random_state=0, output="codes").fit(X)
    Z = binning.encode(X)
    for column in (0, 5, Z.shape[1] - 1):
        lower, upper = binning.bin_bounds(X, column)
        inside = ((lower < X) & (upper >= X)).all(axis=1)
        np.testing.assert_array_equal(inside, Z.tocsr().toarray()[:, column] > 0)
        assert np.isinf(lower[1])
        assert np.isinf(upper[1])
    grid = np.searchsorted(binning.bin_offsets_, column, side="right") - 1
    np.testing.assert_allclose((upper - lower)[[0, 2]], 1 / binning._scale[grid, [0, 2]])
    with pytest.raises(ValueError, match="column must be at most"):
        binning.bin_bounds(X, Z.shape[1])
    with pytest.raises(ValueError, match="No row of X lies in the bin of column 0"):
        binning.bin_bounds(X + 50, 0)


@pytest.mark.filterwarnings("error")
def test_bounds_of_bins_of_a_data_frame(rng):
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    assert RandomBinning(n_grids=3, random_state=0).fit(frame).bin_bounds(frame, 0)[0].shape == (2,)


def test_bounds_of_the_outermost_bins():
    X = np.array([[0.0], [1e20], [2e20], [-1e300]])
    binning = RandomBinning(gamma=1.0, n_grids=3, random_state=0, output="codes").fit(X)
    columns = binning.encode(X).tocsr().indices.reshape(4, 3)
    for column, (low, high) in zip(columns.T, [(1e10, np.inf)] * 3, strict=True):
        assert column[1] == column[2]
        lower, upper = binning.bin_bounds(X, column[1])
        assert low < lower[0] < 1e20
        assert upper[0] == high
        assert binning.bin_bounds(X, column[3])[0][0] == -np.inf


def test_numbers_of_grids_and_components():
    assert RandomBinning.min_grids(0.05) == 100
    assert RandomBinning.min_grids(0.01, 0.9) == 900
    assert binfeat.RandomFourier.min_components(0.1) == 200
    for wrong in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="standard_error must be"):
            RandomBinning.min_grids(wrong)
        with pytest.raises(ValueError, match="standard_error must be"):
            binfeat.RandomFourier.min_components(wrong)


def test_kernel_estimates_have_the_wanted_error(rng):
    X = np.array([[0.0], [np.log(2.0)]])  # a kernel value of one half
    n_grids = RandomBinning.min_grids(0.05)
    maps = (RandomBinning(gamma=1.0, n_grids=n_grids, random_state=seed, output="codes") for seed in range(60))
    estimates = [np.mean(np.equal(*own.fit_transform(X).codes.T)) for own in maps]
    assert np.std(estimates) == pytest.approx(0.05, rel=4 / np.sqrt(2 * 60))


def features_of(labels):
    return transform(pd.DataFrame({"k": labels}), categorical_features=["k"], gamma=3.0, n_features=2**16).toarray()


def test_integers_and_flags_have_the_same_number_in_columns_of_any_type():
    """A missing flag makes a column of objects."""
    flags, some_missing = [True, False], pd.Series([True, False, None], dtype=object)
    np.testing.assert_array_equal(features_of(some_missing)[:2], features_of(flags))
    numbers, expected = pd.Series([1, 2.0, np.int8(3), "x"], dtype=object), features_of([1, 2, 3])
    np.testing.assert_array_equal(features_of(numbers)[:3], expected)
    np.testing.assert_array_equal(features_of(pd.Categorical([1, 2, 3])), expected)
    assert (features_of(["1"]) != features_of([1])).any()
    intervals = pd.cut([1, 2, 3], [0, 1, 2, 3])
    np.testing.assert_array_equal(features_of(intervals[:2]), features_of(intervals)[:2])


def test_missing_labels_of_all_types_are_missing():
    expected = features_of([0.0, np.nan])[1]
    strings, times = pd.array(["a", None], "string"), pd.Series(["a", pd.NaT], dtype=object)
    others = pd.Series(["a", np.datetime64("NaT")], dtype=object)
    for missing in (strings, times, others, ["a", np.nan], ["a", None]):
        np.testing.assert_array_equal(features_of(missing)[1], expected)


def test_durations_and_long_integers_are_labels():
    labels = pd.Series([np.timedelta64(3, "D"), 2**60, 2**60 + 1, 3], dtype=object)
    features = features_of(labels)
    assert len(np.unique(features, axis=0)) == 4
    np.testing.assert_array_equal(features_of(labels[:3]), features[:3])


def test_dates_durations_and_decimals_are_the_same_categories_in_frames_of_any_type():
    """Frames of pandas return Timestamps, those of Arrow and polars datetimes, and objects are of any type."""
    days = pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02"] * 20))
    values = {
        "day": days,
        "zoned": days.dt.tz_localize("Europe/Berlin"),
        "duration": days - pd.Timestamp("2026-01-01"),
        "decimal": pd.Series([Decimal(1), Decimal(2)] * 20),
    }
    rows = pd.DataFrame({"x": [0.0, 1, 2, 3] * 10, **values})
    binning = RandomBinning(n_grids=8, categorical_features=list(values), random_state=0)
    expected = binning.fit_transform(rows)
    objects = rows.assign(
        day=days.dt.date.astype(object),
        zoned=rows["zoned"].dt.tz_convert("UTC"),
        duration=pd.Series(list(rows["duration"].to_numpy()), dtype=object),
        decimal=[1.0, 2.0] * 20,
    )
    for other in (pl.from_pandas(rows), pa.Table.from_pandas(rows), objects):
        assert (binning.transform(other) != expected).nnz == 0
    with_fractions = pd.Series([Decimal("1.50"), 1.5, 2**60, Decimal(2**60), "x"], dtype=object)
    assert len(np.unique(features_of(with_fractions), axis=0)) == 3


@pytest.mark.parametrize("features", [{"k"}, {"k": 1}, [["k"]]])
def test_categorical_features_in_sets_are_refused(features):
    for fit in (RandomBinning(categorical_features=features).fit, partial(transform, categorical_features=features)):
        for X in (pd.DataFrame({"k": ["a", "b"]}), pd.DataFrame({"k": [1, 2]}), [[1.0], [2.0]]):
            with pytest.raises(ValueError, match=r"(categorical_features must be a mask of length 1|'a'.*Encode it)"):
                fit(X)


def test_columns_can_have_numbers_as_names():
    rows = pd.DataFrame([["a", 1.0], ["b", 2.0], ["a", 1.0]])
    Z = transform(rows, categorical_features=[0], **FEW)
    assert (Z[0] != Z[2]).nnz == 0
    assert (Z[0] != Z[1]).nnz > 0


def test_labels_whose_text_depends_on_the_process_are_refused():
    with pytest.raises(TypeError, match=r"X has a label of type frozenset in column 'k'\. Convert the"):
        features_of([frozenset("ab")])
    with pytest.raises(TypeError, match="X has a label of type object in column 'k'"):
        features_of([object()])


def test_one_long_label_takes_little_memory():
    X = pd.DataFrame({"town": [*map(str, range(1000)), "x" * 10_000]})
    tracemalloc.start()
    transform(X, n_grids=2, categorical_features=[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e7
