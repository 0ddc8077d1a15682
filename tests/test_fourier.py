"""RandomFourier: estimates, promises, errors, and use within scikit-learn."""

import copy
import multiprocessing
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pytest
import tables
from hard import each_value_once
from memory import peak_bytes
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from binfeat import RandomFourier, kernels
from binfeat.features.fourier.fastfood import Fastfood

KERNELS = [
    kernels.RBF(),
    kernels.Matern(0.5),
    kernels.Matern(2.5),
    kernels.Laplacian(),
    kernels.Cauchy(),
    kernels.Hat(),
]
SAMPLERS = [(kernel, sampler) for kernel in KERNELS for sampler in kernel.samplers]
# Each law in pairs, and each sampler with offsets, which do not depend on the law.
LAWS = [(*each, "pair") for each in SAMPLERS] + [(KERNELS[0], name, "offset") for name in KERNELS[0].samplers]
PHASES = pytest.mark.parametrize("phase", ["pair", "offset"])
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def estimates(X, Y, seeds, **parameters):
    """Return z(x)'z(y) of each pair of rows for each seed."""
    both, n = np.vstack([X, Y]), len(X)
    Z = (RandomFourier(random_state=seed, **parameters).fit_transform(both) for seed in seeds)
    return np.array([np.sum(z[:n] * z[n:], axis=1) for z in Z])


def worst_z(runs, exact):
    """Return the largest deviation of the mean over runs, in standard errors."""
    return np.max(np.abs(runs.mean(axis=0) - exact) / (runs.std(axis=0, ddof=1) / np.sqrt(len(runs))))


def pairs_of_rows(rng, n=12, d=3):
    X = rng.normal(size=(n, d))
    return X, X + rng.normal(size=(n, d)) * np.geomspace(0.05, 2, n)[:, None]


@pytest.mark.parametrize(("kernel", "sampler", "phase"), LAWS, ids=["-".join(map(str, each)) for each in LAWS])
def test_unbiased(rng, kernel, sampler, phase):
    X, Y = pairs_of_rows(rng)
    gamma = [0.2, 0.0, 0.7]
    runs = estimates(X, Y, range(50), kernel=kernel, sampler=sampler, phase=phase, gamma=gamma, n_components=60)
    assert worst_z(runs, np.diag(kernel(X, Y, gamma=gamma))) < 4


@PHASES
def test_unbiased_with_a_callers_law(rng, phase):
    X, Y = pairs_of_rows(rng)
    law = kernels.Spectral(lambda n_frequencies, n_inputs, rng: rng.normal(size=(n_frequencies, n_inputs)))
    runs = estimates(X, Y, range(100), kernel=law, phase=phase, gamma=0.6, n_components=60)
    assert worst_z(runs, np.diag(kernels.RBF()(X, Y, gamma=0.18))) < 4


@PHASES
def test_a_wrong_width_would_be_noticed(rng, phase):
    X, Y = pairs_of_rows(rng)
    runs = estimates(X, Y, range(100), sampler="iid", phase=phase, gamma=0.5, n_components=60)
    assert worst_z(runs, np.diag(kernels.RBF()(X, Y, gamma=0.6))) > 4


@pytest.mark.hard
def test_hoeffding_and_rate(rng):
    """Pr(|z'z - k| >= e) <= 2 exp(-D e^2 / 2), and the error falls as D^(-1/2)."""
    X, Y = pairs_of_rows(rng)
    exact = np.diag(kernels.RBF()(X, Y, gamma=0.5))
    sizes, n_runs, errors = np.array([25, 50, 100, 200]), 150, []
    for n_frequencies in sizes:
        seeds = range(1000 * n_frequencies, 1000 * n_frequencies + n_runs)
        runs = estimates(X, Y, seeds, sampler="iid", gamma=0.5, n_components=2 * n_frequencies) - exact
        for e in (1.0, 2.0, 3.0) / np.sqrt(n_frequencies):
            bound = 2 * np.exp(-n_frequencies * e**2 / 2)
            assert (np.mean(np.abs(runs) >= e, axis=0) <= bound + 4 * np.sqrt(bound / n_runs)).all()
        errors.append(np.sqrt(np.mean(runs**2)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)


@DTYPES
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_offset_equals_rbf_sampler(rng, dtype, container):
    X = container(rng.normal(size=(300, 7)).astype(dtype))
    theirs = RBFSampler(gamma=0.3, n_components=101, random_state=0).fit(X)
    ours = RandomFourier(gamma=0.3, n_components=101, phase="offset").fit(X)
    assert ours.random_weights_.shape == theirs.random_weights_.shape
    assert ours.random_offset_.shape == theirs.random_offset_.shape
    ours.random_weights_, ours.random_offset_ = theirs.random_weights_, theirs.random_offset_
    Z, expected = ours.transform(X), theirs.transform(X)
    assert Z.dtype == expected.dtype == dtype
    np.testing.assert_allclose(Z, expected, rtol=0, atol=50 * np.finfo(dtype).eps)


def test_pair_is_the_papers_formula(rng):
    X = rng.normal(size=(40, 5))
    fourier = RandomFourier(gamma=0.3, n_components=16, random_state=0)
    Z = fourier.fit_transform(X)
    projection = X @ fourier.random_weights_
    np.testing.assert_allclose(Z, np.hstack([np.cos(projection), np.sin(projection)]) / np.sqrt(8), atol=1e-14)


@pytest.mark.engine
@pytest.mark.parametrize(("n_inputs", "n_frequencies"), [(1, 3), (5, 8), (5, 29), (8, 16), (16, 40)])
def test_fastfood_against_its_matrices(rng, n_inputs, n_frequencies):
    X = rng.normal(size=(6, n_inputs))
    fourier = RandomFourier(gamma=0.1, n_components=2 * n_frequencies, sampler="fastfood", random_state=0)
    Z = fourier.fit_transform(X)
    parts = fourier.fastfood_signs_, fourier.fastfood_order_, fourier.fastfood_normals_, fourier.fastfood_norms_
    projection = X @ naive.fastfood_frequencies(*parts).T
    expected = np.hstack([np.cos(projection), np.sin(projection)]) / np.sqrt(n_frequencies)
    np.testing.assert_allclose(Z, expected, atol=1e-13)


def test_fastfood_has_the_laws_norms_and_even_directions():
    """With 8 inputs, which need no padding, a coordinate of a uniform direction follows a beta law."""
    drawn = [Fastfood.draw(kernels.RBF(), np.ones(8), 8, seed) for seed in range(300)]
    w = np.array([naive.fastfood_frequencies(*parts.arrays)[3] for parts in drawn])
    norms = np.linalg.norm(w, axis=1)
    assert stats.kstest(norms, stats.chi(8).cdf).pvalue > 1e-4
    assert stats.kstest((w[:, 2] / norms + 1) / 2, stats.beta(3.5, 3.5).cdf).pvalue > 1e-4
    assert stats.kstest(w.ravel(), stats.norm.cdf).pvalue > 1e-4


@pytest.mark.parametrize("sampler", ["iid", "fastfood"])
def test_first_frequencies_do_not_depend_on_their_number(rng, sampler):
    X = rng.normal(size=(20, 5))
    few, many = (
        RandomFourier(gamma=0.3, n_components=n, sampler=sampler, random_state=0).fit_transform(X) for n in (30, 60)
    )
    np.testing.assert_allclose(np.sqrt(2) * many[:, :15], few[:, :15], atol=1e-12)


def table(rng, n=700, d=9):
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[rng.random((n, d)) < 0.85] = 0
    return X


def features(X, **parameters):
    return RandomFourier(**{"gamma": 0.3, "n_components": 50, "random_state": 4} | parameters).fit_transform(X)


def read_only_csr(X):
    X = sparse.csr_array(X)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X


def with_duplicates(X):
    """Return each entry as two halves, in decreasing order of inputs."""
    X = sparse.csr_array(X)
    backwards = [np.repeat(X.indices[a:b], 2)[::-1] for a, b in zip(X.indptr, X.indptr[1:])]
    values = [np.repeat(X.data[a:b] / 2, 2)[::-1] for a, b in zip(X.indptr, X.indptr[1:])]
    return sparse.csr_array((np.concatenate(values), np.concatenate(backwards), 2 * X.indptr), shape=X.shape)


FORMS = {
    **tables.FORMS,
    "list": lambda X: X.astype(np.float64).tolist(),
    "csr read-only": read_only_csr,
    "csr with duplicates": with_duplicates,
}


@DTYPES
@pytest.mark.parametrize("sampler", ["iid", "fastfood"])
@pytest.mark.parametrize("form", FORMS)
def test_same_features_in_every_form(rng, form, sampler, dtype):
    X = table(rng).astype(dtype)
    Z = features(FORMS[form](X), sampler=sampler)
    assert Z.flags.c_contiguous
    np.testing.assert_allclose(Z, features(X, sampler=sampler), rtol=0, atol=30 * np.finfo(dtype).eps)


@pytest.mark.engine
@PHASES
@pytest.mark.parametrize("density", [0.0, 0.1, 0.9])
def test_csr_of_any_density(rng, density, phase):
    X = rng.normal(size=(20, 8)) * (rng.random((20, 8)) < density)
    expected = features(X, phase=phase, n_components=6)
    np.testing.assert_allclose(features(sparse.csr_array(X), phase=phase, n_components=6), expected, atol=1e-13)


@pytest.mark.parametrize("sampler", ["orthogonal", "fastfood"])
def test_a_rows_features_are_its_own(rng, sampler):
    """They do not depend on other rows and their order, except for rounding."""
    X = rng.normal(size=(60, 7))
    fourier = RandomFourier(sampler=sampler, n_components=2, random_state=0).fit(X)
    Z, order = fourier.transform(X), rng.permutation(60)
    np.testing.assert_allclose(fourier.transform(X[order]), Z[order], rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.vstack([fourier.transform(x[None]) for x in X]), Z, rtol=0, atol=1e-14)


@pytest.mark.parametrize("sampler", ["iid", "orthogonal", "qmc", "fastfood"])
@pytest.mark.parametrize("shape", [(1, 4), (5, 1), (1, 1)])
def test_one_row_or_one_input(rng, sampler, shape):
    before = vars(RandomFourier(sampler=sampler, n_components=2))
    fourier = RandomFourier(sampler=sampler, n_components=2).fit(rng.normal(size=shape))
    assert fourier.transform(rng.normal(size=shape)).shape == (shape[0], 2)
    public = {name for name in vars(fourier) if not name.endswith("_") and not name.startswith("_")}
    assert public == set(before)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        fourier.transform(np.ones(shape[1]))


def test_scale_in_every_form(rng):
    X = table(rng)
    expected = RandomFourier().fit(X).gamma_
    assert expected == pytest.approx(1 / (9 * X.astype(np.float64).var(axis=0)), rel=1e-6)
    for form in FORMS.values():
        np.testing.assert_array_equal(RandomFourier().fit(form(X)).gamma_, expected)
    laplacian = RandomFourier(kernel="laplacian").fit(X)
    assert laplacian.gamma_ == pytest.approx(1 / (9 * X.std(axis=0, dtype=np.float64)), rel=1e-6)
    assert RandomFourier().fit(np.ones((5, 2))).gamma_ == pytest.approx(0.5)


def test_types(rng):
    X = rng.normal(size=(30, 4))
    for fitted_on in (np.float32, np.float64):
        fourier = RandomFourier(gamma=0.3, phase="offset", random_state=0).fit(X.astype(fitted_on))
        assert fourier.random_weights_.dtype == fourier.random_offset_.dtype == fitted_on
        for given, expected in ((np.float32, np.float32), (np.float64, np.float64), (np.float16, np.float64)):
            assert fourier.transform(X.astype(given)).dtype == expected
    assert features(np.arange(8).reshape(4, 2)).dtype == np.float64


@pytest.mark.parametrize("sampler", ["orthogonal", "fastfood"])
@PHASES
def test_float32_is_near_float64(rng, sampler, phase):
    X = rng.normal(size=(100, 20)).astype(np.float32)
    Z, exact = (features(x, sampler=sampler, phase=phase) for x in (X, X.astype(np.float64)))
    np.testing.assert_allclose(Z, exact, rtol=0, atol=2e-6)


@pytest.mark.parametrize(("phase", "dtype"), each_value_once(["pair", "offset"], [np.float32, np.float64]))
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("sampler", ["iid", "fastfood"])
def test_same_features_for_any_number_of_threads(rng, threads, sampler, container, phase, dtype):
    """Bitwise without products of BLAS, which rounds differently with other threads."""
    X = container(table(rng, 3000).astype(dtype))
    parameters = {"sampler": sampler, "phase": phase, "n_components": 200}
    expected = features(X, n_jobs=1, **parameters)
    by_blas = sampler == "iid" and container is np.asarray
    for n_jobs in (None, 2, -1):
        Z = features(X, n_jobs=n_jobs, **parameters)
        np.testing.assert_allclose(Z, expected, rtol=0, atol=30 * np.finfo(dtype).eps if by_blas else 0)


def test_many_python_threads(rng, threads):
    X = rng.normal(size=(1000, 9))
    fourier = RandomFourier(n_components=400, random_state=0).fit(X)
    expected = fourier.transform(X)
    with ThreadPoolExecutor(8) as pool:
        for Z in pool.map(fourier.transform, [X] * 24):
            np.testing.assert_allclose(Z, expected, rtol=0, atol=1e-14)


def transform_in_child(fourier, X, queue):
    queue.put(fourier.transform(X))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_forked_child(rng, threads):
    X = rng.normal(size=(2000, 9))
    fourier = RandomFourier(n_components=400, random_state=0).fit(X)
    expected = fourier.transform(X)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=transform_in_child, args=(fourier, X, queue))
    child.start()
    np.testing.assert_allclose(queue.get(timeout=120), expected, rtol=0, atol=1e-14)
    child.join(timeout=60)
    assert child.exitcode == 0


@pytest.mark.engine
@pytest.mark.parametrize("sampler", ["iid", "fastfood"])
def test_small_blocks_of_rows_change_nothing(rng, threads, monkeypatch, sampler):
    X = table(rng, 23)
    expected = features(X, sampler=sampler, n_components=6)
    monkeypatch.setattr("binfeat.features.fourier.features._SCRATCH_BYTES", 1)
    monkeypatch.setattr("binfeat.features.fourier.features._FEWEST_ROWS", 5)
    for container in (np.asarray, sparse.csr_array):
        Z = features(container(X), sampler=sampler, n_components=6)
        np.testing.assert_allclose(Z, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("sampler", ["iid", "orthogonal", "qmc", "fastfood"])
def test_seeds(rng, sampler):
    X = rng.normal(size=(5, 3))
    np.testing.assert_array_equal(features(X, sampler=sampler), features(X, sampler=sampler))
    assert not np.isclose(features(X, sampler=sampler), features(X, sampler=sampler, random_state=5)).all()
    unseeded = [features(X, sampler=sampler, random_state=None) for _ in range(2)]
    assert not np.array_equal(*unseeded)
    states = [features(X, sampler=sampler, random_state=np.random.RandomState(3)) for _ in range(2)]
    np.testing.assert_array_equal(*states)


def test_shifts_are_uniform_and_independent_of_frequencies():
    fourier = RandomFourier(gamma=1.0, n_components=4000, phase="offset", sampler="iid", random_state=0).fit([[0.0]])
    assert stats.kstest(fourier.random_offset_, stats.uniform(0, 2 * np.pi).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(fourier.random_offset_, fourier.random_weights_[0])[0, 1]) < 4 / np.sqrt(4000)


def test_auto():
    for kernel, expected in (("rbf", "orthogonal"), (kernels.Matern(1.5), "orthogonal"), ("laplacian", "iid")):
        assert RandomFourier(kernel=kernel).fit(X).sampler_ == expected


def test_heavy_tails(rng):
    """Frequencies outside the range of the trig kernel, and inputs of all magnitudes."""
    X = rng.normal(size=(50, 5)) * 10.0 ** np.arange(5)
    Z = features(X, kernel="laplacian", gamma=1.0, n_components=2000)
    np.testing.assert_allclose(np.sum(Z**2, axis=1), 1, rtol=1e-12)


def test_attributes_hold_arrays_numbers_and_strings_only():
    for sampler, phase in (("qmc", "offset"), ("fastfood", "pair")):
        fourier = RandomFourier(sampler=sampler, phase=phase).fit(X)
        fitted = {k: v for k, v in vars(fourier).items() if k not in fourier.get_params()}
        assert all(isinstance(v, np.ndarray | np.generic | int | float | str) for v in fitted.values())


def test_each_fit_starts_anew():
    fourier = RandomFourier(sampler="fastfood", phase="offset").fit(X)
    fourier.set_params(sampler="iid", phase="pair", n_components=10).fit(X)
    assert not any(name.startswith("fastfood") or name == "random_offset_" for name in vars(fourier))
    fourier.set_params(sampler="fastfood").fit(X)
    assert not hasattr(fourier, "random_weights_")


def test_parameters_changed_after_fit_wait_for_the_next():
    fourier = RandomFourier(n_components=8, random_state=0).fit(X)
    expected = fourier.transform(X)
    fourier.set_params(n_components=3, phase="offset", sampler="fastfood", gamma=2.0, kernel="hat")
    np.testing.assert_array_equal(fourier.transform(X), expected)
    assert len(fourier.get_feature_names_out()) == 8


def test_pickle_and_clone(rng):
    for sampler in ("orthogonal", "fastfood"):
        fourier = RandomFourier(sampler=sampler, random_state=0).fit(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fourier)).transform(X), fourier.transform(X))
        np.testing.assert_array_equal(clone(fourier).fit(X).transform(X), fourier.transform(X))


def test_names_and_pandas(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [2.0, 3.0]})
    out = RandomFourier(n_components=4).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == [f"randomfourier{i}" for i in range(4)]


def test_trains_linear_models():
    X, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(RandomFourier(n_components=300, random_state=0), LinearSVC())
    search = GridSearchCV(pipeline, {"randomfourier__gamma": [1e-4, 1e-3]}, cv=2).fit(X[:900], y[:900])
    assert search.score(X[900:], y[900:]) > 0.9


def test_a_pipeline_passes_weights_to_the_scale_of_inputs(rng):
    """`sample_weight` is a parameter of the step, or it is routed to `fit` as metadata."""
    X, weights = rng.normal(size=(200, 2)), rng.integers(5, size=200)
    expected = RandomFourier(gamma="scale", random_state=0).fit(X, sample_weight=weights)
    assert not np.array_equal(expected.gamma_, clone(expected).fit(X).gamma_)
    pipeline = make_pipeline(clone(expected), Ridge()).fit(X, X[:, 0], randomfourier__sample_weight=weights)
    np.testing.assert_array_equal(pipeline[0].gamma_, expected.gamma_)
    with config_context(enable_metadata_routing=True):
        steps = clone(expected).set_fit_request(sample_weight=True), Ridge().set_fit_request(sample_weight=False)
        routed = make_pipeline(*steps).fit(X, X[:, 0], sample_weight=weights)
    np.testing.assert_array_equal(routed[0].gamma_, expected.gamma_)


def test_a_full_kernel_matrix(rng):
    X = rng.normal(size=(60, 6))
    Z = features(X, gamma=0.2, n_components=20_000)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=0.2), atol=0.05)


X = np.arange(12.0).reshape(6, 2)
BAD_PARAMETERS = [
    ({"n_components": 7}, ValueError, r"n_components must be even with phase='pair'.*got 7. Use 8, or phase='offset'"),
    ({"n_components": 0}, ValueError, "n_components must be at least 1, got 0"),
    ({"n_components": 2.5}, TypeError, "n_components must be an integer"),
    ({"phase": "sine"}, ValueError, "phase must be 'pair' or 'offset', got 'sine'"),
    ({"phase": None}, ValueError, "phase must be 'pair' or 'offset'"),
    ({"gamma": -1.0}, ValueError, "gamma must be finite and non-negative"),
    ({"gamma": [1.0, 2.0, 3.0]}, ValueError, "gamma must be a number or have one value per input, 2 of them"),
    ({"gamma": 0.0}, ValueError, "gamma must be positive for at least one input"),
    ({"gamma": "auto"}, TypeError, "gamma must be a number, one number per input, 'scale', or 'learn'; got 'auto'"),
    ({"n_jobs": 0}, ValueError, "n_jobs must be None"),
    ({"kernel": "gauss"}, ValueError, "kernel must be 'rbf', 'laplacian'"),
    ({"kernel": kernels.GammaPitch(8)}, ValueError, "has no known spectral law.*Use RandomBinning"),
    ({"sampler": "sobol"}, ValueError, "sampler must be 'auto', 'iid', 'orthogonal', 'qmc', 'fastfood'; got 'sobol'"),
    (
        {"kernel": "laplacian", "sampler": "orthogonal"},
        ValueError,
        "biased.*works with sampler='auto', 'iid'",
    ),
    (
        {"kernel": "cauchy", "sampler": "fastfood"},
        ValueError,
        "biased.*works with kernels.RBF, kernels.Matern",
    ),
    ({"random_state": "seed"}, ValueError, "cannot be used to seed"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), BAD_PARAMETERS)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        RandomFourier(**parameters).fit(X)


def test_qmc_beyond_sobols_dimension():
    with pytest.raises(ValueError, match=r"Sobol points have at most 21201. Use one of sampler='iid', 'orthogonal'"):
        RandomFourier(sampler="qmc").fit(np.ones((2, 21_202)))


BAD_TABLES = [
    (np.array([[1.0, np.inf]]), ValueError, "infinity"),
    (np.array([[1.0, np.nan]]), ValueError, "NaN"),
    (sparse.csr_array([[1.0, np.inf]]), ValueError, "infinity"),
    (sparse.csr_array([[1.0, np.nan]]), ValueError, "NaN"),
    (np.array([["a", "b"]]), ValueError, "^Column 0 of X contains 'a', which is not a number. Encode it"),
    (np.array([[1j, 2]]), ValueError, "Complex data not supported"),
    (np.empty((0, 2)), ValueError, "0 sample"),
    (np.zeros(2), ValueError, "1D array"),
]


@pytest.mark.parametrize(("table", "error", "message"), BAD_TABLES)
def test_bad_tables(table, error, message):
    with pytest.raises(error, match=message):
        RandomFourier().fit(table)
    with pytest.raises(error, match=message):
        RandomFourier().fit(X).transform(table)


def test_wrong_number_of_inputs():
    with pytest.raises(ValueError, match="X has 3 features, but RandomFourier is expecting 2 features"):
        RandomFourier().fit(X).transform(np.ones((4, 3)))


@pytest.mark.parametrize("sampler", ["iid", "fastfood"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@PHASES
def test_overflow_is_refused(threads, sampler, container, phase):
    fourier = RandomFourier(gamma=[1.0, 10.0], sampler=sampler, phase=phase).fit(X.astype(np.float32))
    huge = container(np.array([[3e38, -3e38], [0.0, 1.0]], np.float32))
    with pytest.raises(ValueError, match=r"products with the frequencies overflow float32\. Scale X, decrease gamma"):
        fourier.transform(huge)
    assert np.isfinite(fourier.transform(huge.astype(np.float64))).all()


@pytest.mark.parametrize("sampler", ["iid", "fastfood"])
def test_overflow_of_frequencies_is_refused(sampler):
    tiny = (1e-42 * X).astype(np.float32)
    with pytest.raises(ValueError, match=r"The frequencies overflow float32\. Scale X, decrease gamma"):
        RandomFourier(n_components=4, sampler=sampler, random_state=0).fit(tiny)
    fourier = RandomFourier(n_components=4, sampler=sampler, random_state=0).fit(tiny.astype(np.float64))
    assert np.isfinite(copy.deepcopy(fourier).transform(tiny.astype(np.float64))).all()


def test_memory_is_estimated_first(memory_of):
    for sampler in ("iid", "fastfood"):
        with pytest.raises(MemoryError, match=r"drawing 500000000000 frequencies of 2 inputs needs about [\d,]+ bytes"):
            RandomFourier(n_components=10**12, sampler=sampler).fit(X)
    fourier = RandomFourier(n_components=100).fit(X)
    memory_of(2000)
    with pytest.raises(
        MemoryError, match=r"making 100 features of 6 rows needs about .* this computer has 2,000\. Use fewer"
    ):
        fourier.transform(X)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("sampler", ["iid", "fastfood"])
def test_edited_frequencies_of_another_size_are_refused(sampler, container):
    fourier = RandomFourier(n_components=4, phase="offset", sampler=sampler, random_state=0).fit(X)
    names = ["random_offset_"] if sampler == "fastfood" else ["random_offset_", "random_weights_"]
    for name in names:
        for shape in ((1,), (1, 4), (4, 2), (5,)):
            edited = copy.deepcopy(fourier)
            setattr(edited, name, np.zeros(shape))
            with pytest.raises(ValueError, match=f"{name} should have shape"):
                edited.transform(container(X))


@pytest.mark.parametrize("n_components", [2, 4])
def test_few_frequencies_of_many_inputs_take_little_memory(n_components):
    X = sparse.random(20, 10**5, density=1e-4, format="csr", random_state=0)
    peak, fourier = peak_bytes(lambda: RandomFourier(gamma=1.0, n_components=n_components, random_state=0).fit(X))
    assert peak < 40 * 8 * 10**5 * n_components  # a matrix of all pairs of inputs would have 10^10 entries
    frequencies = fourier.random_weights_.T
    np.testing.assert_allclose(frequencies @ frequencies.T * (1 - np.eye(len(frequencies))), 0, atol=1e-9)
    assert fourier.transform(X).shape == (20, n_components)
