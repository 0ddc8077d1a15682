"""Integers beyond float64: categories distinguish them, and numeric columns warn."""

import warnings
from decimal import Decimal

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from binfeat import KernelMachineRegressor, blocks
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.findings import NUMBERS, content_of, key_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

LONG = 2**53 + np.arange(20)
ROWS = np.arange(200) % 20
KINDS = {
    "categorical of integers": lambda ids: pd.DataFrame({"id": pd.Categorical(ids)}),
    "categorical of unsigned integers": lambda ids: pd.DataFrame({"id": pd.Categorical(ids.astype(np.uint64))}),
    "strings": lambda ids: pd.DataFrame({"id": ids.astype(str).astype(object)}),
    "decimals": lambda ids: pd.DataFrame({"id": pd.Categorical([Decimal(int(own)) / 10 for own in ids])}),
    "Python integers": lambda ids: pd.DataFrame({"id": pd.Categorical([10**30 + int(own) for own in ids])}),
    "polars strings": lambda ids: pl.DataFrame({"id": ids.astype(str)}),
}
CHOSEN = {
    "array": lambda ids: ids.reshape(-1, 1),
    "unsigned array": lambda ids: ids.astype(np.uint64).reshape(-1, 1),
    "objects": lambda ids: ids.astype(object).reshape(-1, 1),
    "frame": lambda ids: pd.DataFrame({"id": ids}),
    "nullable": lambda ids: pd.DataFrame({"id": pd.array(ids, dtype="Int64")}),
    "polars": lambda ids: pl.DataFrame({"id": ids}),
    "Arrow": lambda ids: pa.table({"id": ids}),
    "unsigned Arrow": lambda ids: pa.table({"id": ids.astype(np.uint64)}),
}


def encoded(X):
    encoder, table = TableEncoder.fit(BaseEstimator(), X, "from_dtype")
    return encoder, table[:, 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sign", [1, -1])
def test_categories_of_long_numbers_are_kept_apart(kind, sign):
    if sign < 0 and "unsigned" in kind:
        pytest.skip("these have no sign")
    estimator = BaseEstimator()
    encoder, table = TableEncoder.fit(estimator, KINDS[kind](sign * LONG[ROWS]), "from_dtype")
    codes = table[:, 0]
    assert encoder.categorical[0]
    assert np.unique(codes).size == 20
    other = encoder.transform(estimator, KINDS[kind](sign * LONG[ROWS][:20]))[:, 0]
    np.testing.assert_array_equal(other, codes[:20])


@pytest.mark.parametrize("categorical", [["a"], "from_dtype"])
def test_decimals_are_the_same_numbers_in_all_frames(categorical):
    decimals = [Decimal(k % 50 + 100) / 100 for k in range(200)]
    arrow = pa.table({"a": pa.array(decimals, pa.decimal128(5, 2))})
    frames = pd.DataFrame({"a": decimals}), arrow, pl.from_arrow(arrow), arrow.to_pandas(types_mapper=pd.ArrowDtype)
    estimator = BaseEstimator()
    encoder, expected = TableEncoder.fit(estimator, pd.DataFrame({"a": list(map(float, decimals))}), categorical)
    for frame in frames:
        np.testing.assert_array_equal(encoder.transform(estimator, frame), expected)


def test_decimals_in_blocks_with_floats_are_rounded_correctly():
    prices, others = np.resize([1.13, 1.38], 60), np.resize([2.5, 3.5], 60)
    decimals = pa.array([Decimal(str(price)) for price in prices], pa.decimal128(5, 2))
    source = blocks([(pa.table({"a": decimals}), prices), (pa.table({"a": others}), others)])
    model = KernelMachineRegressor(categorical_features=["a"], on_unseen="error", random_state=0).fit(source)
    np.testing.assert_allclose(model.predict(pd.DataFrame({"a": prices})), prices, atol=1e-3)


@pytest.mark.parametrize("kind", CHOSEN)
def test_chosen_columns_of_long_integers_are_kept_apart(kind):
    X, estimator = CHOSEN[kind](LONG[ROWS]), BaseEstimator()
    encoder, table = TableEncoder.fit(estimator, X, [0])
    assert np.unique(table[:, 0]).size == 20
    np.testing.assert_array_equal(encoder.transform(estimator, X), table)


@pytest.mark.parametrize("kind", CHOSEN)
def test_numeric_columns_that_lose_digits_warn(kind):
    with pytest.warns(UserWarning, match=r"olumn .* of X has 19 different numbers beyond 2\^53, but only"):
        encoded(CHOSEN[kind](LONG[ROWS]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded(CHOSEN[kind](2**53 + 2 * ROWS))
        encoded(CHOSEN[kind](LONG[ROWS] - 2**53))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_long_integers_are_nan(frame):
    ids = [2**53 + 2, None, 3]
    X = frame({"id": pd.array(ids, dtype="Int64") if frame is pd.DataFrame else ids})
    floats = pd.DataFrame({"id": [2.0**53 + 2, np.nan, 3.0]})
    np.testing.assert_array_equal(encoded(X)[1], encoded(floats)[1])


def test_models_learn_ids():
    y = np.random.default_rng(0).normal(size=20)[ROWS]
    for kind in ("categorical of integers", "strings"):
        X = KINDS[kind](LONG[ROWS])
        model = KernelMachineRegressor(gamma="scale", alpha=0.01, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.99


@pytest.mark.parametrize(
    ("strings", "kind"),
    [
        (["1", "2.5", "-3e4"], NUMBERS),
        ([str(2**53), "1"], NUMBERS),
        ([str(2**53 + 1)], ""),
        ([str(2**54)], NUMBERS),
        ([" 9007199254740993 "], ""),
        (["9007199254740993.0"], ""),
        (["0.12345678901234568", "0.1234567890123456"], NUMBERS),
        (["0.123456789012345671", "0.123456789012345672"], ""),
        (["1e400", "1"], NUMBERS),
    ],
)
def test_strings_are_numbers_where_nothing_is_lost(strings, kind):
    assert content_of(strings) == kind


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (1, 1.0),
        (True, 1.0),
        (np.bool_(False), 0.0),
        (2**53, 2.0**53),
        (2**53 + 1, "9007199254740993"),
        (2.0**60, str(2**60)),
        (2**60, str(2**60)),
        (10**400, str(10**400)),
        (Decimal("1.50"), 1.5),
        (Decimal("0.1"), 0.1),
        (Decimal("0.1000000000000000000001"), "0.1000000000000000000001"),
        (np.inf, np.inf),
        ("1", "1"),
    ],
)
def test_keys_of_categories(value, key):
    assert key_of(value) == key
    assert type(key_of(value)) is type(key)
