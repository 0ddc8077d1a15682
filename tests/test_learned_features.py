"""Maps with ``gamma="learn"``: length scales, targets, tables, and errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from hard import easy, hard
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from solving import solve_ridge

from binfeat import CGRidge, RandomBinning, RandomFourier, blocks, kernels, learn_gamma
from binfeat._threads import _blas, thread_count

FOR_FEATURES = "binfeat.features.learn_gamma.for_features"  # module
MAPS = {
    "bins": RandomBinning(gamma="learn", n_grids=40, random_state=0),
    "hashed": RandomBinning(gamma="learn", n_grids=40, n_features=2**17, random_state=0),
    "fourier": RandomFourier(gamma="learn", n_components=80, random_state=0),
    "fourier, laplacian": RandomFourier(gamma="learn", kernel="laplacian", n_components=80, random_state=0),
}


@pytest.fixture(scope="module")
def friedman():
    """Return rows with five relevant and five irrelevant inputs, in units that differ by factors of 1,000."""
    X, y = make_friedman1(1500, noise=0.3, random_state=0)
    return X * 1000.0 ** (np.arange(10) % 3 - 1), y


@pytest.mark.parametrize("name", easy(MAPS, "bins"))
def test_learned_scales_beat_given_ones(friedman, name):
    X, y = friedman
    scores = {}
    for gamma in ("learn", "scale"):
        model = make_pipeline(clone(MAPS[name]).set_params(gamma=gamma), CGRidge(alpha=0.1))
        scores[gamma] = model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    assert 1 - scores["learn"] < 0.6 * (1 - scores["scale"])


@pytest.mark.parametrize("name", ["bins", *hard("fourier")])
def test_a_common_factor_times_learned_ratios(friedman, name):
    """Ratios of length scales equal those of `learn_gamma`, times a common power of 2."""
    X, y = (own[:400] for own in friedman)
    fitted = clone(MAPS[name]).fit(X, y)
    power = 2 if name == "fourier" else 1
    kernel = "rbf" if name == "fourier" else "laplacian"
    factor = fitted.gamma_ / learn_gamma(X, y, kernel=kernel, random_state=0).gamma
    assert np.ptp(factor) < 1e-9 * factor[0]
    assert np.log2(factor[0]) / power == pytest.approx(round(np.log2(factor[0]) / power))


def test_fit_transform_is_fit_then_transform(friedman):
    X, y = (own[:100] for own in friedman)
    for name in ("bins", "hashed"):
        Z = clone(MAPS[name]).fit_transform(X, y)
        assert (clone(MAPS[name]).fit(X, y).transform(X) != Z).nnz == 0


@pytest.mark.hard
def test_classes_and_several_targets(rng):
    X = rng.normal(size=(500, 5))
    names = np.array(["a", "b", "c"])[np.digitize(np.sin(2 * X[:, 1]) + X[:, 3], [-0.5, 0.5])]
    for y in (names, names == "a"):
        gamma = clone(MAPS["bins"]).fit(X, y).gamma_
        assert set(np.argsort(gamma)[-2:]) == {1, 3}
    both = np.column_stack([np.sin(2 * X[:, 0]), X[:, 4] ** 2])
    assert set(np.argsort(clone(MAPS["bins"]).fit(X, both).gamma_)[-2:]) == {0, 4}
    model = make_pipeline(clone(MAPS["bins"]), SGDClassifier(random_state=0)).fit(X[:400], names[:400])
    assert model.score(X[400:], names[400:]) > 0.6


def test_weights_categories_and_missing_values(rng):
    n = 900
    level = rng.integers(6, size=n)
    labels = pd.Categorical.from_codes(level, [*"uvwxyz"])
    X = pd.DataFrame({"noise": rng.normal(size=n), "x": rng.normal(size=n), "level": labels})
    y = np.sin(2 * X["x"].to_numpy()) + np.array([0, 3, 1, 5, 2, 4.0])[level]
    X.loc[::17, "x"] = np.nan
    binning = clone(MAPS["bins"]).set_params(categorical_features=["level"])
    gamma = binning.fit(X, y).gamma_
    assert min(gamma[1:]) > 2 * gamma[0]
    weights = np.repeat([1.0, 0.0], n // 2)
    spoilt = np.where(weights > 0, y, rng.normal(size=n) * 100)
    learned = binning.fit(X, spoilt, sample_weight=weights).gamma_
    assert learned[1] > 2 * learned[0]


@pytest.mark.parametrize("kind", easy(MAPS, "bins"))
def test_a_common_factor_of_the_weights_changes_nothing(friedman, kind):
    X, y = (own[:300] for own in friedman)
    weights = np.linspace(0.5, 1.5, 300)
    one, other = (clone(MAPS[kind]).fit(X, y, sample_weight=factor * weights).gamma_ for factor in (1.0, 2.0**-30))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", easy(MAPS, "fourier"))
def test_few_values_far_from_all_others_do_not_hide_the_rest(friedman, kind):
    """Missing numbers that are coded as -9999 have no kernel with the other rows, and change little else."""
    X, y = (own[:1500].copy() for own in friedman)
    X[np.arange(0, 1500, 97), 0] = X[np.arange(5, 1500, 89), 1] = -9999.0

    def score(rows):
        model = make_pipeline(clone(MAPS[kind]), CGRidge(alpha=0.1)).fit(rows[:1000], y[:1000])
        return model.score(rows[1000:], y[1000:])

    assert score(X) > score(friedman[0][:1500]) - 0.15


def test_sparse_and_blocks(friedman):
    X, y = (own[:200] for own in friedman)
    dense = clone(MAPS["bins"]).fit(X, y)
    np.testing.assert_array_equal(clone(MAPS["bins"]).fit(sparse.csr_array(X), y).gamma_, dense.gamma_)
    source = blocks(X, y, block_rows=80)
    np.testing.assert_array_equal(clone(MAPS["bins"]).fit(source).gamma_, dense.gamma_)
    np.testing.assert_array_equal(clone(MAPS["fourier"]).fit(source).gamma_, clone(MAPS["fourier"]).fit(X, y).gamma_)
    Z = clone(MAPS["bins"]).set_params(output="codes").fit_transform(source)
    assert CGRidge(alpha=0.1).fit(Z).score(Z, y) > 0.8


@pytest.mark.parametrize("name", ["fourier", *hard("bins")])
def test_on_dask(friedman, name, cluster):
    da = pytest.importorskip("dask.array")
    from binfeat import distributed

    X, y = (own[:300] for own in friedman)
    kind = distributed.RandomBinning if name == "bins" else distributed.RandomFourier
    here, there = clone(MAPS[name]), kind(**MAPS[name].get_params())
    there.fit(da.from_array(X, chunks=(100, 10)), da.from_array(y, chunks=100))
    np.testing.assert_array_equal(there.gamma_, here.fit(X, y).gamma_)
    with pytest.raises(ValueError, match="gamma='learn' needs targets"):
        kind(**MAPS[name].get_params()).fit(da.from_array(X, chunks=(100, 10)))


@pytest.mark.parametrize("name", MAPS)
def test_candidates_are_compared_by_the_same_random_features(friedman, name, monkeypatch):
    X, y = (own[:100] for own in friedman)
    errors = []
    monkeypatch.setattr(f"{FOR_FEATURES}._best_power", lambda error: errors.extend([error(0), error(0)]) or 0)
    clone(MAPS[name]).set_params(random_state=None).fit(X, y)
    assert errors[0] == errors[1]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", ["bins", "fourier"])
def test_the_common_factor_is_chosen_by_n_jobs_threads(friedman, threads, name, n_jobs, monkeypatch):
    threads(2)
    used = set()

    def solve(*given):
        used.update({thread_count(None), *(pool["num_threads"] for pool in _blas().info())})
        return solve_ridge(*given)

    monkeypatch.setattr(f"{FOR_FEATURES}.solve_ridge", solve)
    X, y = (own[:100] for own in friedman)
    with threadpoolctl.threadpool_limits(2, "blas"):
        clone(MAPS[name]).set_params(n_jobs=n_jobs).fit(X, y)
    assert max(used) == n_jobs


def test_few_rows():
    X = np.arange(10.0).reshape(5, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(RandomBinning(gamma="learn", random_state=0).fit(X, X[:, 0]).gamma_).all()


X = np.arange(60.0).reshape(30, 2)


@pytest.mark.parametrize(
    ("fit", "error", "message"),
    [
        (lambda: RandomBinning(gamma="learn").fit(X), ValueError, r"gamma='learn' needs targets: call fit\(X, y\)"),
        (lambda: RandomFourier(gamma="learn").fit(X), ValueError, r"gamma='learn' needs targets: call fit\(X, y\)"),
        (lambda: RandomBinning(gamma="learn").fit(X, X[:4, 0]), ValueError, "y must have one value per row of X, 30; "),
        (lambda: RandomBinning(gamma="learn").fit(X, X[:, 0] * np.nan), ValueError, "Input y contains NaN"),
        (lambda: RandomBinning(gamma="learn").fit(X, X[:, 0], [1.0]), ValueError, "sample_weight must have one value"),
        (lambda: RandomBinning(gamma="learn").fit(X * 1e200, X[:, 0]), ValueError, "X must be at most 1e.100"),
        (lambda: RandomBinning(gamma="learn").fit(blocks(X, X[:, 0]), X[:, 0]), ValueError, "y and sample_weight must"),
        (
            lambda: RandomFourier(gamma="learn", rotation=np.eye(2)).fit(X, X[:, 0]),
            ValueError,
            "gamma='learn' does not support rotation",
        ),
        (
            lambda: RandomFourier(gamma="learn", kernel="cauchy").fit(X, X[:, 0]),
            ValueError,
            "gamma='learn' has no search for kernel='cauchy'",
        ),
        (
            lambda: RandomFourier(gamma="learn", kernel=kernels.Matern(0.7)).fit(X, X[:, 0]),
            ValueError,
            "has no search for kernel=Matern.*nu of Matern must be 0.5, 1.5, 2.5 or infinity",
        ),
    ],
)
def test_refusals(fit, error, message):
    with pytest.raises(error, match=message):
        fit()


@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (RandomBinning(gamma="learn", n_grids=10**5), MemoryError, "drawing 100000 grids of 2 inputs"),
        (RandomFourier(gamma="learn", n_components=10**5), MemoryError, "drawing 50000 frequencies of 2 inputs"),
        (RandomFourier(gamma="learn", sampler="sobol"), ValueError, "^sampler must be 'auto', 'iid'"),
        (RandomFourier(kernel="laplacian", sampler="fastfood"), ValueError, "^sampler='fastfood' does not work with"),
        (RandomFourier(sampler="fastfood", rotation=np.eye(2)), ValueError, "^sampler='fastfood' does not support rot"),
        (RandomFourier(rotation=np.eye(3)), ValueError, "rotation must have a row per input"),
    ],
)
def test_errors_precede_the_search_and_further_blocks(memory_of, monkeypatch, model, source, error, message):
    memory_of(10**6)
    monkeypatch.setattr(f"{FOR_FEATURES}.learned_gamma", lambda *given, **options: pytest.fail("searched"))
    given = (blocks([(X, X[:, 0]), "no block"]),) if source else (X, X[:, 0])
    with pytest.raises(error, match=message):
        model.fit(*given)
