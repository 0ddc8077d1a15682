"""Columns scaled by ranks: slow twin and properties."""

import naive
import numpy as np
import pytest

from binfeat.models.table.derived import Quantiles, scaled_in_older_files

pytestmark = pytest.mark.engine


def all_columns(X):
    return np.arange(X.shape[1])


@pytest.fixture
def table(rng):
    """Return columns: continuous, heavy-tailed, few values, half zeros, a flag, constant, categories."""
    n = 700
    columns = [
        rng.normal(size=n),
        rng.standard_cauchy(n),
        rng.integers(0, 5, n),
        np.maximum(rng.normal(size=n), 0),
        rng.integers(0, 2, n),
        np.full(n, 3.0),
        rng.integers(0, 9, n),
    ]
    return np.column_stack(columns).astype(float), np.array([0, 1, 2, 3])


@pytest.mark.parametrize("n_quantiles", [2, 17, 1000])
def test_slow_twin(rng, table, n_quantiles):
    X, columns = table
    quantiles = Quantiles.fit(X, columns, n_quantiles)
    np.testing.assert_array_equal(quantiles.columns, columns)
    rows = np.concatenate([X[:40], X[:40] + rng.normal(size=(40, 7)), [[-1e9] * 7, [1e9] * 7]])
    got = quantiles.transform(rows)
    for j in range(7):
        mapping = naive.ranks(X[:, j], n_quantiles) if j < 4 else float
        np.testing.assert_allclose(got[:, j], [mapping(x) for x in rows[:, j]], rtol=1e-12, atol=1e-15)


def test_equal_values_have_their_mid_rank():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [2.0], [7.0], [8.0]])
    ranks = Quantiles.fit(X, all_columns(X)).transform(np.array([[0.0], [1.0], [2.0], [7.0], [7.5], [-3.0], [99.0]]))
    np.testing.assert_allclose(ranks[:, 0] * 16, [3, 7, 10, 13, 14, 3, 15])


def test_monotone_and_bounded(rng):
    X = np.concatenate([rng.standard_cauchy((500, 1)), np.repeat(rng.normal(size=(5, 1)), 40, axis=0)])
    ranks = Quantiles.fit(X, all_columns(X), 30).transform(np.sort(rng.standard_cauchy((5000, 1)) * 3, axis=0))
    assert (np.diff(ranks[:, 0]) >= 0).all()
    assert 0 <= ranks.min() < ranks.max() <= 1


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # from NumPy, without JIT
def test_extreme_values():
    """Differences overflow or are subnormal."""
    largest, smallest = np.finfo(float).max, 5e-324
    X = np.array([[-largest, 0.0], [largest, smallest], [0.0, 2 * smallest]])
    ranks = Quantiles.fit(X, all_columns(X), 3).transform(X)
    np.testing.assert_allclose(ranks * 6, [[1, 1], [5, 3], [3, 5]])
    X = np.array([[-largest], [-largest], [largest], [largest], [largest * 0.9]])
    ranks = Quantiles.fit(X, all_columns(X), 2).transform(np.array([[-0.5], [0.0], [0.5], [1.0]]) * largest)
    assert (np.diff(ranks[:, 0]) >= 0).all()


def test_nothing_to_map(rng):
    X = rng.integers(0, 2, (50, 3)).astype(float)
    np.testing.assert_array_equal(Quantiles.fit(X, np.empty(0, np.int64)).transform(X), X)


def test_many_rows_are_ranked_by_evenly_spaced_ones(rng, monkeypatch):
    X = rng.normal(size=(1000, 2))
    monkeypatch.setattr("binfeat.models.table.derived.RANKED_ROWS", 300)
    some = X[np.linspace(0, 999, 300).astype(int)]
    few, same = Quantiles.fit(X, all_columns(X)), Quantiles.fit(some, all_columns(X))
    np.testing.assert_array_equal(few.knots, same.knots)
    np.testing.assert_array_equal(few.ranks, same.ranks)


def test_threads_layouts_and_arrays(rng, threads):
    X = rng.normal(size=(1500, 4))
    quantiles = Quantiles.from_arrays(Quantiles.fit(X, all_columns(X)).arrays())
    expected = quantiles.transform(X, n_jobs=1)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    for same in (X, frozen, np.asfortranarray(X), wide):
        np.testing.assert_array_equal(quantiles.transform(same, n_jobs=2), expected)
    np.testing.assert_array_equal(np.concatenate([quantiles.transform(X[i : i + 1]) for i in range(20)]), expected[:20])
    for name, array in quantiles.arrays().items():
        assert array.dtype.kind in "if", name


def test_columns_that_files_of_older_versions_map_by_arcsinh(rng):
    X = rng.standard_cauchy((20, 3))
    arrays = {"columns": np.array([1]), "centers": np.array([2.0]), "units": np.array([0.5])}
    got = scaled_in_older_files(X, "arcsinh", arrays)
    np.testing.assert_allclose(got[:, 1], np.arcsinh((X[:, 1] - 2.0) / 0.5))
    np.testing.assert_array_equal(got[:, [0, 2]], X[:, [0, 2]])
