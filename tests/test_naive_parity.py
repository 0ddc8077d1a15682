"""The engine compared with plain Python: the same bins, order of columns, and matrix."""

import warnings

import naive
import numpy as np
import pytest
from hard import each_value_once
from scipy import sparse

from binfeat import RandomBinning, kernels

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:Grids are too")]

LAWS = {"laplacian": "laplacian", "hat": "hat", "gamma_pitch_8": kernels.GammaPitch(8)}


def table(rng, n=120, d=4):
    return rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 3.0][:d]


def with_nan(rng):
    X = table(rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 1] = np.where(rng.random(len(X)) < 0.1, np.nan, 0.0)
    return X


def with_flags(rng):
    X = table(rng, n=700, d=4)
    X[:, 1] = rng.random(700) < 0.05
    X[:, 2] = np.where(rng.random(700) < 0.1, 2.5, 0.0)
    X[:, 3] = np.where(rng.random(700) < 0.1, -2.5, 0.0)
    return X


def far_away(rng):
    X = table(rng)
    X[::7, 0], X[1::7, 0], X[2::7, 1], X[3::7, 1] = 1e300, -1e300, 1e17, -1e17
    X[4::7, 2], X[5::7, 2] = 5e-324, -0.0
    return X


TABLES = {
    "plain": table,
    "float32": lambda rng: table(rng).astype(np.float32),
    "int": lambda rng: rng.integers(-5, 6, size=(100, 3)),
    "bool": lambda rng: rng.random((100, 3)) < 0.5,
    "nan": with_nan,
    "flags": with_flags,
    "far": far_away,
    "zeros": lambda rng: np.where(rng.random((150, 4)) < 0.8, 0.0, table(rng, 150)),
    "constant": lambda rng: np.full((50, 3), 7.25),
    "one row": lambda rng: table(rng, n=1),
    "one column": lambda rng: table(rng, d=1),
    "duplicates": lambda rng: np.repeat(table(rng, n=20), 5, axis=0),
}
GAMMAS = {"medium": 0.3, "tiny": 1e-9, "huge": 1e9, "beyond": 1e300, "per input": None}


@pytest.mark.parametrize(("gamma", "name"), each_value_once(GAMMAS, TABLES))
def test_codes(rng, name, gamma):
    X = TABLES[name](rng)
    widths = np.array([0.5, 0.0, 2.0, 0.1])[: X.shape[1]] if GAMMAS[gamma] is None else GAMMAS[gamma]
    binning = RandomBinning(gamma=widths, n_grids=6, random_state=3, output="codes")
    expected, sizes = naive.codes(X, "laplacian", np.broadcast_to(widths, X.shape[1]), 6, 3)
    Z = binning.fit_transform(X)
    np.testing.assert_array_equal(Z.codes, expected)
    np.testing.assert_array_equal(np.diff(binning.bin_offsets_), sizes)
    np.testing.assert_array_equal(binning.encode(X).codes, expected)
    np.testing.assert_array_equal(Z.tocsr().toarray(), naive.dense_features(expected, sizes).astype(Z.dtype))


@pytest.mark.parametrize("law", LAWS)
def test_laws(rng, law):
    X = table(rng)
    Z = RandomBinning(kernel=LAWS[law], gamma=0.2, n_grids=8, random_state=1, output="codes").fit_transform(X)
    np.testing.assert_array_equal(Z.codes, naive.codes(X, law, np.full(4, 0.2), 8, 1)[0])


@pytest.mark.parametrize("name", ["plain", "float32", "nan", "far", "zeros", "one row"])
def test_csr_input(rng, name):
    X = TABLES[name](rng)
    gamma = [0.5, 0.0, 2.0, 0.1]
    Z = RandomBinning(gamma=gamma, n_grids=6, random_state=3, output="codes").fit_transform(sparse.csr_array(X))
    np.testing.assert_array_equal(Z.codes, naive.codes(X, "laplacian", np.array(gamma), 6, 3)[0])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_categories(rng, container):
    X = table(rng, n=200)
    X[:, 1] = rng.integers(-3, 4, 200)
    X[:, 3] = rng.integers(0, 2**40, 200) * (rng.random(200) < 0.5)
    X[::9, 1] = np.nan
    gamma = np.array([0.5, 0.7, 1.0, 0.4])
    binning = RandomBinning(gamma=gamma, n_grids=30, random_state=3, output="codes", categorical_features=[1, 3])
    expected, _ = naive.codes(X, "laplacian", gamma, 30, 3, categorical=(1, 3))
    np.testing.assert_array_equal(binning.fit_transform(container(X)).codes, expected)


def test_min_count_drops_the_tail(rng):
    X = table(rng, n=300)
    binning = RandomBinning(gamma=0.5, n_grids=6, random_state=3, min_count=3, output="codes")
    expected, sizes = naive.codes(X, "laplacian", np.full(4, 0.5), 6, 3, min_count=3)
    Z = binning.fit_transform(X)
    none = np.iinfo(Z.codes.dtype).max
    np.testing.assert_array_equal(Z.codes, [[none if c is None else c for c in grid] for grid in expected])
    np.testing.assert_array_equal(binning.encode(X).codes, Z.codes)
    np.testing.assert_array_equal(Z.tocsr().toarray(), naive.dense_features(expected, sizes))
    assert min(binning.bin_counts_) >= 3


def test_partial_fit_appends(rng):
    """Codes of earlier batches stay; new bins of each batch follow by decreasing count."""
    X = table(rng, n=300)
    whole = naive.cells(X, "laplacian", np.full(4, 0.5), 5, 3)
    binning = RandomBinning(gamma=0.5, n_grids=5, random_state=3, output="codes")
    first = binning.partial_fit(X[:100]).encode(X[:100]).codes
    np.testing.assert_array_equal(first, naive.codes(X[:100], "laplacian", np.full(4, 0.5), 5, 3)[0])
    binning.partial_fit(X[100:])
    np.testing.assert_array_equal(binning.encode(X[:100]).codes, first)
    codes = binning.encode(X).codes
    for p in range(5):
        assert naive.same_partition(codes[p].tolist(), whole[p])
        counts = np.bincount(codes[p])
        np.testing.assert_array_equal(counts, binning.bin_counts_[slice(*binning.bin_offsets_[p : p + 2])])
        new = counts[first[p].max() + 1 :]
        assert (np.diff(new) <= 0).all()


@pytest.mark.parametrize("min_count", [2, 4])
def test_partial_fit_counts_rows_of_all_batches(rng, min_count):
    """A bin gets a column as soon as all batches together have enough of its rows."""
    X = table(rng, n=400)
    binning = RandomBinning(gamma=0.3, n_grids=4, random_state=5, min_count=min_count)
    for start in range(0, 400, 50):
        binning.partial_fit(X[start : start + 50])
    whole = RandomBinning(gamma=0.3, n_grids=4, random_state=5, min_count=min_count).fit(X)
    np.testing.assert_array_equal(binning.bin_offsets_, whole.bin_offsets_)
    for p in range(4):
        own = slice(*whole.bin_offsets_[p : p + 2])
        np.testing.assert_array_equal(np.sort(binning.bin_counts_[own]), np.sort(whole.bin_counts_[own]))


def test_unseen_bins_give_no_entry(rng):
    X, new = table(rng, n=150), table(rng, n=150) * 3
    binning = RandomBinning(gamma=0.5, n_grids=6, random_state=3).fit(X)
    seen = naive.cells(X, "laplacian", np.full(4, 0.5), 6, 3)
    asked = naive.cells(new, "laplacian", np.full(4, 0.5), 6, 3)
    expected = [sum(asked[p][i] in set(seen[p]) for p in range(6)) for i in range(150)]
    assert 0 < sum(expected) < 900
    np.testing.assert_array_equal(np.diff(binning.transform(new).indptr), expected)


def test_hashed_columns(rng):
    X = table(rng)
    Z = RandomBinning(gamma=0.5, n_grids=6, random_state=3, n_features=100).fit_transform(X)
    cells = naive.cells(X, "laplacian", np.full(4, 0.5), 6, 3)
    for p in range(6):
        parameters = naive.grid("laplacian", np.full(4, 0.5), 3, p)
        slots = [p * 16 + ((naive.hashed(c, parameters) >> 32) * 16 >> 32) for c in cells[p]]
        np.testing.assert_array_equal(Z.indices.reshape(-1, 6)[:, p], slots)
    assert Z.shape == (120, 100)


def test_gamma_zero_ignores_an_input(rng):
    X = table(rng)
    other = X.copy()
    other[:, 2] = np.where(rng.random(len(X)) < 0.5, np.nan, 1e300)
    binning = RandomBinning(gamma=[1, 1, 0, 1], n_grids=10, random_state=0)
    assert (binning.fit_transform(X) != binning.transform(other)).nnz == 0


def test_nan_matches_nan_and_nothing_else():
    X = np.array([[0.0], [np.nan], [1e300], [-1e300], [-np.nan]])
    codes = RandomBinning(gamma=1e-6, n_grids=50, random_state=0, output="codes").fit_transform(X).codes
    assert (codes[:, 1] == codes[:, 4]).all()
    for other in (0, 2, 3):
        assert (codes[:, 1] != codes[:, other]).all()


def test_no_warning_without_jit(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RandomBinning(gamma=0.05, n_grids=3, random_state=0).fit_transform(table(rng))
