"""RandomBinning and transform: estimates, promises, errors, and use within scikit-learn."""

import hashlib
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
import tables
from hard import easy, hard
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import binfeat
from binfeat import BinMatrix, CGRidge, CGRidgeClassifier, RandomBinning, kernels, transform
from binfeat.features.binning.grids import Grids

KERNELS = {
    "laplacian": kernels.Laplacian(),
    "hat": kernels.Hat(),
    "gamma pitch 1.3": kernels.GammaPitch(1.3),
    "gamma pitch 8": kernels.GammaPitch(8),
    "gamma pitch inf": kernels.GammaPitch(np.inf),
    "rational": kernels.Product(lambda t: 1 / (1 + t)),
    "skip": kernels.Skip(kernels.Laplacian(), 0.3),
}
quiet = pytest.mark.filterwarnings("ignore:Grids are too")


def distances(d):
    """Return pairs along an axis and along the diagonal, from very near to far."""
    lengths = np.geomspace(0.01, 6, 25)
    X = np.vstack([np.zeros((50, d))])
    Y = np.vstack([np.outer(lengths, np.eye(d)[0]), np.outer(lengths, np.ones(d) / d)])
    return X + 0.3, Y + 0.3


def share_of_common_bins(kernel, X, Y, gamma, n_grids, seed=0):
    """Return the mean over grids of z(x)'z(y) for each pair of rows."""
    binning = RandomBinning(kernel=kernel, gamma=gamma, n_grids=n_grids, random_state=seed, output="codes")
    codes = binning.fit_transform(np.vstack([X, Y])).codes
    return (codes[:, : len(X)] == codes[:, len(X) :]).mean(axis=0)


def worst_z(estimate, exact, n_grids):
    """Return the largest deviation of means of 0/1 variables, in standard errors."""
    return np.max(np.abs(estimate - exact) / np.sqrt(np.maximum(exact * (1 - exact), 1 / n_grids) / n_grids))


@quiet
@pytest.mark.parametrize("name", easy(KERNELS, "laplacian", "skip"))
def test_unbiased(name):
    X, Y = distances(3)
    gamma, n_grids = [2.0, 0.0, 0.7], 4000
    exact = np.diag(KERNELS[name](X, Y, gamma=gamma))
    assert worst_z(share_of_common_bins(KERNELS[name], X, Y, gamma, n_grids), exact, n_grids) < 4


@quiet
def test_unbiased_against_sklearn(rng):
    X, Y = rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    exact = np.diag(laplacian_kernel(X, Y, gamma=0.2))
    assert worst_z(share_of_common_bins("laplacian", X, Y, 0.2, 3000), exact, 3000) < 4


@quiet
@pytest.mark.parametrize("law", ["normal", *hard("cauchy", "exponential")])
def test_a_wrong_pitch_law_would_be_noticed(law):
    """The same check fails for similar laws."""

    class Wrong(kernels.Laplacian):
        def pitch_quantile(self, u):
            return {"normal": stats.halfnorm, "cauchy": stats.halfcauchy, "exponential": stats.expon}[law].ppf(u)

    X, Y = distances(3)
    exact = np.diag(kernels.Laplacian()(X, Y))
    assert worst_z(share_of_common_bins(Wrong(), X, Y, 1.0, 3000), exact, 3000) > 4


@quiet
def test_mismatched_categories_multiply_the_kernel(rng):
    X = np.array([[0.0, 1.0, 0.2], [3.0, 1.0, 0.2], [0.0, 7.0, 0.2], [3.0, 7.0, 0.5]])
    gamma = [0.4, 1.1, 1.0]
    binning = RandomBinning(gamma=gamma, n_grids=3000, random_state=0, output="codes", categorical_features=[0, 1])
    codes = binning.fit_transform(X).codes
    exact = np.exp([-0.4, -1.1, -0.4 - 1.1 - 0.3])
    assert worst_z((codes[:, 1:] == codes[:, :1]).mean(axis=0), exact, 3000) < 4


@pytest.mark.hard
@quiet
def test_hoeffding_and_rate():
    """Pr(|z'z - k| >= e) <= 2 exp(-2 P e^2), and the error falls as P^(-1/2)."""
    X, Y = distances(2)
    exact = np.diag(kernels.Laplacian()(X, Y))
    sizes, n_runs = np.array([25, 50, 100]), 100
    binning = RandomBinning(gamma=1.0, n_grids=n_runs * sizes[-1], random_state=0, output="codes")
    codes = binning.fit_transform(np.vstack([X, Y])).codes
    common = codes[:, : len(X)] == codes[:, len(X) :]
    errors = []
    for n_grids in sizes:
        runs = common.reshape(n_runs, -1, len(X))[:, :n_grids].mean(axis=1) - exact
        for e in (0.5, 1.0, 1.5) / np.sqrt(n_grids):
            bound = 2 * np.exp(-2 * n_grids * e**2)
            share = np.mean(np.abs(runs) >= e, axis=0)
            assert (share <= bound + 4 * np.sqrt(bound / n_runs)).all()
        errors.append(np.sqrt(np.mean(runs**2)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)


def mixed_table(rng, n=1500):
    X = rng.normal(size=(n, 6)).astype(np.float32)
    X[:, 2] *= rng.random(n) < 0.1
    X[:, 4] = rng.random(n) < 0.05
    X[rng.random((n, 6)) < 0.02] = np.nan
    return X


def encode(X, **parameters):
    parameters = {"gamma": 0.3, "n_grids": 9, "random_state": 4, "output": "codes"} | parameters
    return RandomBinning(**parameters).fit_transform(X).codes


FORMS = {
    **tables.FORMS,
    "float64": lambda X: X.astype(np.float64),
    "csr float64": lambda X: sparse.csr_array(X.astype(np.float64)),
}


@pytest.mark.parametrize("form", FORMS)
def test_same_bins_in_every_form(rng, form):
    X = mixed_table(rng)
    np.testing.assert_array_equal(encode(FORMS[form](X)), encode(X))


@pytest.mark.parametrize("form", FORMS)
def test_same_scale_in_every_form(rng, form):
    X = mixed_table(rng)
    np.testing.assert_array_equal(encode(FORMS[form](X), gamma="scale"), encode(X, gamma="scale"))


def test_same_bins_for_any_number_of_threads(rng, threads):
    X = mixed_table(rng, 5000)
    expected = encode(X, n_jobs=1)
    for n_jobs in (None, 2, -1):
        np.testing.assert_array_equal(encode(X, n_jobs=n_jobs), expected)
    threads(1)
    np.testing.assert_array_equal(encode(X), expected)


def test_same_bins_for_any_split_into_batches(rng):
    X = mixed_table(rng, 300)
    binning = RandomBinning(gamma=0.3, n_grids=9, random_state=4, output="codes")
    whole = binning.fit_transform(X).codes
    for step in (1, 7, 128, 299):
        parts = [binning.transform(X[i : i + step]).codes for i in range(0, len(X), step)]
        np.testing.assert_array_equal(np.hstack(parts), whole)


@pytest.mark.engine
def test_small_blocks_of_rows_and_grids_change_nothing(rng, monkeypatch, hashed_at_a_time):
    X = mixed_table(rng, 300)
    expected = encode(X)
    sparse_expected = encode(sparse.csr_array(X))
    hashed_at_a_time(70, 4)
    monkeypatch.setattr("binfeat.features.binning.tables._FIRST_BITS", 3)
    np.testing.assert_array_equal(encode(X), expected)
    np.testing.assert_array_equal(encode(sparse.csr_array(X)), sparse_expected)
    binning = RandomBinning(gamma=0.3, n_grids=9, random_state=4).fit(X)
    assert binning.n_bins_ == sum(len(set(codes)) for codes in expected)


def test_grids_are_the_same_whatever_their_number(rng):
    X = mixed_table(rng)
    few, many = encode(X, n_grids=5), encode(X, n_grids=50)
    np.testing.assert_array_equal(many[:5], few)


def test_columns_do_not_depend_on_the_order_of_rows(rng):
    X = mixed_table(rng)
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(encode(X[order]), encode(X)[:, order])


def test_columns_fall_in_count(rng):
    X = mixed_table(rng)
    binning = RandomBinning(gamma=0.3, n_grids=9, random_state=4)
    Z = binning.fit_transform(X)
    counts = np.bincount(Z.indices, minlength=Z.shape[1])
    np.testing.assert_array_equal(counts, binning.bin_counts_)
    for p in range(9):
        assert (np.diff(counts[slice(*binning.bin_offsets_[p : p + 2])]) <= 0).all()


GOLDEN = {
    "laplacian": "a31448c7a365bebc",
    "hat": "a3dd503ef580a4ba",
    "gamma pitch 8": "7a8c53da1fa01561",
    "hashed": "5433613d542d547a",
}


def golden_outputs():
    X = np.arange(3000, dtype=np.float64).reshape(1000, 3) * [0.01, 0.002, -0.003] % 1.7
    yield "laplacian", encode(X, gamma=2.0)
    yield "hat", encode(X, gamma=0.5, kernel="hat")
    yield "gamma pitch 8", encode(X, gamma=[1, 2, 3], kernel=kernels.GammaPitch(8))
    yield "hashed", transform(X, gamma=3.0, n_grids=64).indices


def digest(codes):
    return hashlib.sha256(np.ascontiguousarray(codes, dtype="<u4").tobytes()).hexdigest()[:16]


def test_golden_hashes():
    """Bins are the same on all computers, with all versions of NumPy, and in all releases."""
    assert {name: digest(codes) for name, codes in golden_outputs()} == GOLDEN


@pytest.mark.hard
def test_same_bins_in_a_second_process():
    code = (
        "import numpy as np, hashlib, binfeat\n"
        "X = np.arange(3000, dtype=np.float64).reshape(1000, 3) * [0.01, 0.002, -0.003] % 1.7\n"
        "Z = binfeat.transform(X, gamma=3.0, n_grids=64)\n"
        "print(hashlib.sha256(Z.indices.astype('<u4').tobytes()).hexdigest()[:16])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == GOLDEN["hashed"]


def distinct_cells(kind, rng, side):
    if kind == "random":
        return rng.integers(-(2**50), 2**50, size=(side**3, 2)).astype(np.float64)
    lattice = np.stack(np.unravel_index(np.arange(side**3), (side,) * 3), axis=1).astype(np.float64)
    return lattice if kind == "lattice" else lattice * 2.0**16 - 2.0**23


@pytest.mark.parametrize("side", [100, *hard(216)])
@pytest.mark.parametrize("kind", ["random", "lattice", "powers of two"])
def test_collisions(rng, kind, side):
    """At most one pair of 10^6 or 10^7 distinct cells has the same hash, in a grid of pitch 1 without shift."""
    X = distinct_cells(kind, rng, side)
    drawn = Grids.draw(kernels.Hat(), np.ones(X.shape[1]), 1, 0)
    hashes = Grids(drawn.scale, np.zeros_like(drawn.shift), drawn.keys, drawn.nan_keys).hash(X)[0]
    hashes.sort()
    assert np.count_nonzero(hashes[1:] == hashes[:-1]) <= 1


def test_avalanche(rng):
    """The next cell of any input, or a flipped bit of a cell, flips each bit of the hash half the time."""
    n = 20_000
    drawn = Grids.draw(kernels.Hat(), np.ones(3), 1, 0)
    grids = Grids(drawn.scale, np.zeros_like(drawn.shift), drawn.keys, drawn.nan_keys)
    X = rng.integers(-(2**30), 2**30, size=(n, 3)).astype(np.float64)
    before = grids.hash(X)[0]
    for bit in (0, 1, 7, 20, 29):
        for j in range(3):
            moved = X.copy()
            moved[:, j] += 2.0**bit
            flips = before ^ grids.hash(moved)[0]
            share = [np.mean(flips >> np.uint64(k) & np.uint64(1)) for k in range(64)]
            assert np.abs(np.array(share) - 0.5).max() < 5 * 0.5 / np.sqrt(n)


def test_hashed_slots_are_even(rng):
    """Chi-square of the slots that 10^5 lattice cells fall in, over the share of rows per slot."""
    X = np.stack(np.unravel_index(np.arange(100_000), (50, 50, 40)), axis=1).astype(float)
    Z = transform(X, kernel="hat", gamma=1.0, n_grids=1, n_features=1024)
    counts = np.bincount(Z.indices, minlength=1024)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert stats.chi2(1023).sf(statistic) > 1e-4


def test_transform_equals_hashed_estimator(rng):
    X = mixed_table(rng)
    Z = transform(X, gamma=0.3, n_grids=9, n_features=900, random_state=4)
    other = RandomBinning(gamma=0.3, n_grids=9, n_features=900, random_state=4).fit(X[:1]).transform(X)
    assert (other != Z).nnz == 0
    assert Z.shape == (1500, 900)
    assert (transform(X[::-1], gamma=0.3, n_grids=9, n_features=900, random_state=4)[::-1] != Z).nnz == 0


@pytest.mark.parametrize("output", ["csr", "codes"])
@pytest.mark.parametrize("n_features", [None, 500])
def test_fit_transform_is_fit_then_transform(rng, output, n_features):
    X = mixed_table(rng)
    binning = RandomBinning(gamma=0.3, n_grids=9, random_state=4, output=output, n_features=n_features)
    a, b = binning.fit_transform(X), clone(binning).fit(X).transform(X)
    a, b = (z.tocsr() if output == "codes" else z for z in (a, b))
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_types(rng):
    X = mixed_table(rng)
    binning = RandomBinning(gamma=0.3, n_grids=9, random_state=4).fit(X)
    for given, expected in ((np.float32, np.float32), (np.float64, np.float64), (np.float16, np.float64)):
        Z = binning.transform(X.astype(given))
        assert Z.dtype == expected
        assert Z.indices.dtype == Z.indptr.dtype == np.int32
    assert transform(X).dtype == np.float32
    assert transform(X, dtype=np.float64).dtype == np.float64
    assert transform(np.ones((2, 2), dtype=int)).dtype == np.float64
    assert isinstance(Z, sparse.csr_matrix)


@pytest.mark.skipif("sparse_interface" not in sklearn.get_config(), reason="a setting of scikit-learn from 1.9 on")
def test_sparse_arrays_where_scikit_learn_is_set_to_them(rng):
    X = rng.normal(size=(40, 3))
    binning = RandomBinning(gamma=0.3, n_grids=9, random_state=4).fit(X)
    with sklearn.config_context(sparse_interface="sparray"):
        assert isinstance(binning.transform(X), sparse.csr_array)
        assert isinstance(transform(X), sparse.csr_array)


def test_attributes(rng):
    X = mixed_table(rng)
    binning = RandomBinning(gamma=0.3, n_grids=9, random_state=4)
    Z = binning.fit_transform(X)
    assert binning.n_bins_ == Z.shape[1] == binning.bin_offsets_[-1] == len(binning.bin_counts_)
    assert binning.bin_offsets_.shape == (10,)
    assert binning.kappa_ == Z.shape[1] / 9
    np.testing.assert_array_equal(binning.gamma_, np.full(6, 0.3))
    names = binning.get_feature_names_out()
    assert len(names) == Z.shape[1]
    assert names[0] == "randombinning_0_0"
    assert names[binning.bin_offsets_[3] + 2] == "randombinning_3_2"


def test_attributes_hold_arrays_numbers_and_strings_only(rng):
    binning = RandomBinning(n_grids=3, random_state=0).fit(rng.normal(size=(30, 2)))
    binning.transform(rng.normal(size=(30, 2)))
    fitted = {k: v for k, v in binning.__getstate__().items() if k not in binning.get_params()}
    assert all(isinstance(v, np.ndarray | np.generic | int | float | str) for v in fitted.values())


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_gamma_scale(rng, container):
    X = rng.normal(size=(200, 4)) * [4.0, 1e-3, 1e300, 0.0] + [1.0, 0.0, 0.0, 5.0]
    X[3, 1] = np.nan
    X[::3, 0] = 0.0
    std = [np.nanstd(X[:, 0]), np.nanstd(X[:, 1]), np.std(X[:, 2] / 1e300) * 1e300, 1.0]
    assert RandomBinning().fit(container(X)).gamma_ == pytest.approx(1 / (4 * np.array(std)), rel=1e-6)
    assert (RandomBinning().fit(container(np.ones((5, 2)))).gamma_ == 1 / 2).all()
    X[:, 0] = rng.integers(0, 9, 200)
    gamma = RandomBinning(categorical_features=[0]).fit(container(X)).gamma_
    assert gamma == pytest.approx([1 / 4, *(1 / (4 * np.array(std[1:])))], rel=1e-6)


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_gamma_scale_of_a_constant_input_with_weights(container, weight):
    X = np.ones((8, 2))
    X[::2, 1] = 0.0
    binning = RandomBinning(n_grids=2).fit(container(X), sample_weight=np.full(8, weight))
    assert binning.gamma_ == pytest.approx([1 / 2, 1.0], rel=1e-6)


def test_categorical_features_by_mask_position_and_name(rng):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": rng.normal(size=90), "b": rng.integers(0, 4, 90), "c": rng.normal(size=90)})
    by = [
        encode(X, categorical_features=chosen)
        for chosen in ([1], [-2], [False, True, False], np.array(["b"]), ["b"], "b")
    ]
    for codes in by:
        np.testing.assert_array_equal(codes, by[0])


def test_duplicate_and_unsorted_csr_entries_are_summed():
    X = sparse.csr_array((np.array([1.0, 2.0, 0.5, 3.0]), [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    np.testing.assert_array_equal(encode(X), encode(X.toarray()))
    for a, b in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_output_trains_linear_models():
    X, y = load_digits(return_X_y=True)
    for linear, floor in (
        (LinearSVC(), 0.88),
        (SGDClassifier(random_state=0), 0.88),
        (LogisticRegression(max_iter=200), 0.88),
        (Ridge(), 0.6),
        (CGRidgeClassifier(), 0.88),
    ):
        pipeline = make_pipeline(RandomBinning(n_grids=40, gamma=0.005, random_state=0), linear)
        searched = isinstance(linear, CGRidgeClassifier)
        model = GridSearchCV(pipeline, {"randombinning__gamma": [0.001, 0.005]}, cv=2) if searched else pipeline
        assert model.fit(X[:900], y[:900]).score(X[900:], y[900:]) > floor, linear


def test_codes_in_a_pipeline_under_cross_validation():
    X, y = load_digits(return_X_y=True)
    codes = make_pipeline(RandomBinning(n_grids=40, gamma=0.005, random_state=0, output="codes"), CGRidge(tol=1e-8))
    csr = clone(codes).set_params(randombinning__output="csr")
    scores = cross_val_score(codes, X, y, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(csr, X, y, cv=3), rtol=1e-6)
    assert scores.min() > 0.6


def test_pickle(rng):
    X = mixed_table(rng)
    binning = RandomBinning(gamma=0.3, n_grids=9, random_state=4, output="codes").fit(X)
    copy = pickle.loads(pickle.dumps(binning))
    np.testing.assert_array_equal(copy.encode(X).codes, binning.encode(X).codes)
    binning.fit(X[:700])
    np.testing.assert_array_equal(binning.encode(X[:700]).codes, encode(X[:700]))


def test_package_face():
    assert set(binfeat.__all__) <= set(dir(binfeat))
    assert binfeat.BinMatrix is BinMatrix
    assert binfeat.__version__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = binfeat.nothing


X = np.arange(12.0).reshape(6, 2)
BAD_PARAMETERS = [
    ({"n_grids": 0}, ValueError, "n_grids must be at least 1, got 0"),
    ({"n_grids": 2.5}, TypeError, "n_grids must be an integer of at least 1, got 2.5"),
    ({"n_grids": True}, TypeError, "n_grids must be an integer"),
    ({"gamma": -1.0}, ValueError, "gamma must be finite and non-negative"),
    ({"gamma": np.nan}, ValueError, "gamma must be finite and non-negative"),
    ({"gamma": np.inf}, ValueError, "gamma must be finite and non-negative"),
    ({"gamma": 0.0}, ValueError, "gamma must be positive for at least one input"),
    ({"gamma": [0.0, 0.0]}, ValueError, "gamma must be positive for at least one input"),
    ({"gamma": [1.0, 2.0, 3.0]}, ValueError, r"gamma must be a number or have one value per input, 2 of them"),
    ({"gamma": [[1.0, 2.0]]}, ValueError, "gamma must be a number or have one value per input"),
    ({"gamma": "auto"}, TypeError, "gamma must be a number, one number per input, 'scale', or 'learn'; got 'auto'"),
    ({"gamma": 1j}, TypeError, "gamma must be a number"),
    ({"kernel": "rbf"}, ValueError, "kernel='rbf' cannot be approximated by random binning"),
    ({"kernel": "cosine"}, ValueError, "kernel must be 'laplacian'"),
    ({"n_features": 7, "n_grids": 4}, ValueError, r"n_features must be at least 2 \* n_grids, 8; got 7"),
    ({"n_features": 2**40, "n_grids": 1}, ValueError, "n_features must be below 2"),
    ({"n_features": "many"}, TypeError, "n_features must be an integer"),
    ({"random_state": -1}, ValueError, None),
]
BAD_ESTIMATOR_PARAMETERS = [
    ({"gamma": None}, TypeError, "gamma must be a number.* one number per input.*; got None"),
    ({"gamma": "learn"}, ValueError, r"gamma='learn' needs targets: call fit\(X, y\)"),
    ({"min_count": 0}, ValueError, "min_count must be at least 1"),
    ({"output": "dense"}, ValueError, "output must be 'csr' or 'codes', got 'dense'"),
    ({"n_jobs": 0}, ValueError, "n_jobs must be None"),
    ({"categorical_features": [2]}, ValueError, "categorical_features must be a mask of length 2"),
    ({"categorical_features": [0.5]}, ValueError, "categorical_features must be a mask of length 2"),
    ({"categorical_features": [True]}, ValueError, "categorical_features must be a mask of length 2"),
    ({"categorical_features": ["a"]}, ValueError, "not column names of X"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), BAD_PARAMETERS + BAD_ESTIMATOR_PARAMETERS)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        RandomBinning(**parameters).fit(X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        *BAD_PARAMETERS,
        (
            {"gamma": "scale"},
            ValueError,
            r"fits nothing; got 'scale'. Use RandomBinning\(gamma='scale'\)",
        ),
        ({"dtype": np.int32}, ValueError, "dtype must be float32 or float64, got"),
        ({"random_state": None}, TypeError, "random_state must be an integer"),
    ],
)
def test_bad_parameters_of_transform(parameters, error, message):
    if parameters.get("gamma") == "auto":
        error, message = ValueError, "gamma must be None, a number or one number per input"
    with pytest.raises(error, match=message):
        transform(X, **parameters)


BAD_TABLES = [
    (np.array([[1.0, np.inf]]), ValueError, "infinity"),
    (np.array([[1.0, -np.inf]]), ValueError, "infinity"),
    (sparse.csr_array([[1.0, np.inf]]), ValueError, "infinity"),
    (np.array([["a", "b"]]), ValueError, "^Column 0 of X contains 'a', which is not a number. Encode it"),
    (np.array([[1j, 2]]), ValueError, "Complex data not supported"),
    (np.empty((0, 2)), ValueError, "0 sample"),
    (np.empty((2, 0)), ValueError, "0 feature"),
    (np.zeros((2, 2, 2)), ValueError, "dim 3|3 dim"),
    (np.zeros(3), ValueError, "1D array"),
    (np.array([[np.longdouble("1e400"), 1]]), ValueError, "infinity"),
]


@pytest.mark.parametrize(("table", "error", "message"), BAD_TABLES)
def test_bad_tables(table, error, message):
    with np.errstate(over="ignore"):
        with pytest.raises(error, match=message):
            RandomBinning().fit(table)
        with pytest.raises(error, match=message):
            transform(table)


def test_wrong_number_of_inputs():
    binning = RandomBinning().fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but RandomBinning is expecting 2 features"):
        binning.transform(np.ones((4, 3)))


@pytest.mark.parametrize("value", [0.5, 2.0**51, -(2.0**60)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_bad_categories(value, container):
    binning = RandomBinning(categorical_features=[1], n_grids=2)
    with pytest.raises(ValueError, match="Input 1 is in categorical_features, so it must contain category numbers"):
        binning.fit(container([[1.0, value], [2.0, 3.0]]))
    with pytest.raises(ValueError, match="Input 1 is in categorical_features"):
        binning.fit(X).transform(container([[1.0, value]]))


def test_names_are_checked(rng):
    binning = RandomBinning().fit(X)
    with pytest.raises(ValueError, match="should have length equal"):
        binning.get_feature_names_out(["a"])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        RandomBinning().get_feature_names_out()
    named = RandomBinning(n_grids=2).fit(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    np.testing.assert_array_equal(named.get_feature_names_out(["a", "b"]), named.get_feature_names_out())
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        named.get_feature_names_out(["b", "a"])


def test_partial_fit_needs_a_gamma():
    assert not hasattr(RandomBinning(), "partial_fit")
    with pytest.raises(AttributeError, match="gamma='scale' needs all rows at once; partial_fit needs gamma as"):
        RandomBinning().partial_fit(X)
    assert RandomBinning(gamma=1.0).partial_fit(X).n_bins_ > 1


def test_new_bins_get_columns_if_earlier_bins_have_too_few_rows_for_a_larger_min_count():
    first, second = np.repeat([0.0, 10.0, 20.0], [4, 1, 1]), np.repeat([30.0, 40.0, 50.0], [3, 2, 1])
    binning = RandomBinning(gamma=1.0, n_grids=1, min_count=1, random_state=0).partial_fit(first[:, None])
    binning.set_params(min_count=2).partial_fit(second[:, None])
    np.testing.assert_array_equal(binning.bin_counts_, [4, 1, 1, 3, 2])
    np.testing.assert_array_equal(binning.transform(second[:, None]).getnnz(axis=1), [1, 1, 1, 1, 1, 0])


def test_rows_are_added_to_a_map_from_a_file_of_version_0_2_0():
    binning = RandomBinning(gamma=1.0, n_grids=3, random_state=0).partial_fit(X[:2])
    state = binning.__getstate__()
    state.pop("_has_warned")
    old = RandomBinning()
    old.__setstate__(state)
    np.testing.assert_array_equal(old.partial_fit(X).bin_counts_, binning.partial_fit(X).bin_counts_)


def test_hashed_partial_fit_keeps_columns():
    binning = RandomBinning(gamma=0.3, n_features=100, n_grids=5, random_state=0)
    before = binning.partial_fit(X[:2]).transform(X)
    assert (binning.partial_fit(X).transform(X) != before).nnz == 0


def test_memory_is_estimated_first(memory_of):
    with pytest.raises(MemoryError, match=r"drawing 10+ grids of \d inputs needs about [\d,]+ bytes.*fewer grids"):
        RandomBinning(n_grids=10**12, gamma=1.0).fit(X)
    with pytest.raises(MemoryError, match=r"binning \d rows in 10+ grids needs about [\d,]+ bytes.*fewer grids"):
        transform(X, n_grids=10**12, n_features=10**13)
    binning = RandomBinning(n_grids=10, gamma=1.0).fit(X)
    memory_of(2000)
    with pytest.raises(MemoryError, match="this computer has 2,000"):
        binning.transform(X)
    memory_of(None)
    binning.transform(X)


def test_each_fit_starts_anew(rng):
    """`fit` discards the state of an earlier partial_fit, and stores the state for the next one."""
    A, B, C = (rng.normal(size=(100, 2)) for _ in range(3))
    binning = RandomBinning(gamma=1.0, n_grids=8, min_count=2, random_state=0).partial_fit(A)
    used = binning.set_params(n_grids=5).fit(B).partial_fit(C)
    fresh = RandomBinning(gamma=1.0, n_grids=5, min_count=2, random_state=0).partial_fit(B).partial_fit(C)
    np.testing.assert_array_equal(used.bin_offsets_, fresh.bin_offsets_)
    np.testing.assert_array_equal(used.bin_counts_, fresh.bin_counts_)


def test_parameters_changed_after_fit_wait_for_the_next(rng):
    A, B = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    binning = RandomBinning(gamma=1.0, n_grids=8, random_state=0).fit(A)
    expected = binning.transform(B)
    binning.set_params(n_features=64, n_grids=3, kernel="hat", gamma=2.0)
    assert (binning.transform(B) != expected).nnz == 0


def test_signaling_nan_is_missing(rng):
    """Other programs can write it. NumPy warns about it, and its `fmax` loses the largest value before it."""
    X = rng.normal(size=(50, 2))
    X[10] = np.nan
    signals = X.copy()
    signals.view(np.uint64)[10] = 0x7FF0000000000001
    with np.errstate(all="raise"):
        maps = [RandomBinning(n_grids=5, random_state=0).fit(rows) for rows in (X, signals)]
    np.testing.assert_array_equal(maps[0].gamma_, maps[1].gamma_)
    np.testing.assert_array_equal(maps[0].transform(X).toarray(), maps[1].transform(signals).toarray())
