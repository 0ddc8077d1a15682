"""Learned length scales: results, targets, rows, and errors."""

import pickle
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from interrupts import SEARCH_STEP, interrupted
from scipy import sparse

from binfeat import CGRidge, KernelMachineRegressor, RandomBinning, RandomFourier, kernels, learn_gamma, transform

QUICK = {"max_steps": 40, "max_rows": 200, "random_state": 0}


@pytest.fixture
def table(rng):
    X = rng.normal(size=(600, 6))
    X[:, 3] = X[:, 3] > 0
    return X, np.sin(2 * X[:, 1]) + 0.8 * X[:, 3] + 0.05 * rng.normal(size=600)


def test_finds_the_inputs_that_matter(table):
    X, y = table
    learned = learn_gamma(X, y, **QUICK)
    np.testing.assert_allclose(learned.relevances.sum(), 1.0)
    assert set(np.argsort(learned.relevances)[-2:]) == {1, 3}
    assert np.delete(learned.relevances, [1, 3]).max() < 0.2 * learned.relevances[[1, 3]].min()
    assert learned.errors.shape == (40,)
    assert learned.gammas.shape == (40, 6)
    assert learned.errors[-5:].mean() < learned.errors[0] / 2
    assert learned.alpha > 0

    def score(gamma):
        binning = RandomBinning(gamma=gamma, n_grids=200, output="codes", random_state=0)
        Z = binning.fit_transform(X[:400])
        return CGRidge(alpha=0.1).fit(Z, y[:400]).score(binning.transform(X[400:]), y[400:])

    assert 1 - score(learn_gamma(X[:400], y[:400], **QUICK).gamma) < (1 - score("scale")) / 2


def test_units_of_inputs_and_targets_do_not_matter(table):
    X, y = table
    units = 2.0 ** np.arange(-6, 6, 2)  # powers of two, because rounding is not tested here
    plain, scaled = learn_gamma(X, y, **QUICK), learn_gamma(X * units, 1024 * y, **QUICK)
    np.testing.assert_allclose(scaled.gamma * units, plain.gamma, rtol=1e-6)
    np.testing.assert_allclose(scaled.relevances, plain.relevances, rtol=1e-6)


def test_the_same_bits_again_and_for_any_number_of_threads(table, threads):
    threads(2)
    X, y = table
    first = learn_gamma(X, y, n_jobs=1, **QUICK)
    for n_jobs in (1, 2, None):
        np.testing.assert_array_equal(learn_gamma(X, y, n_jobs=n_jobs, **QUICK).gammas, first.gammas)
    other = learn_gamma(X, y, **{**QUICK, "random_state": 1})
    assert not np.array_equal(other.gamma, first.gamma)


def test_targets_of_each_kind(table):
    X, y = table
    for target in (y > 0, np.where(y > 0, "b", "a"), np.digitize(y, [-0.5, 0.5]).astype(str), np.stack([y, y**2], 1)):
        assert 1 in np.argsort(learn_gamma(X, target, **QUICK).relevances)[-2:]
    constant = learn_gamma(X, np.ones(600), **QUICK)
    assert np.isfinite(constant.gamma).all()


def test_categories_missing_values_and_constants(table, rng):
    X, _ = table
    X[:, 0] = rng.integers(6, size=600)
    X[::9, 2] = np.nan
    X[:, 5] = 3.0
    y = rng.normal(size=6)[X[:, 0].astype(int)] + X[:, 1]
    learned = learn_gamma(X, y, categorical_features=[0], **QUICK)
    assert set(np.argsort(learned.relevances)[-2:]) == {0, 1}
    assert learned.gamma[5] == learned.relevances[5] == 0.0
    assert np.isfinite(learned.gamma).all()


@pytest.mark.parametrize(("start", "unit"), [(1e6, 1.0), (0.0, 1e-6), (0.0, 1e6)])
def test_missing_values_do_not_hide_the_known_values_of_an_input(rng, start, unit):
    x, missing = rng.uniform(size=600), rng.uniform(size=600) < 0.4
    y = np.where(missing, 0.0, np.sin(6 * x))
    first, second = (
        learn_gamma(np.where(missing, np.nan, values)[:, np.newaxis], y, **QUICK).gamma
        for values in (x, start + unit * x)
    )
    assert first > 0.1
    np.testing.assert_allclose(unit * second, first, rtol=1e-3)


def test_missing_values_are_far_from_a_constant(rng):
    missing = rng.uniform(size=600) < 0.4
    gammas = [learn_gamma(np.where(missing, np.nan, c)[:, None], missing, **QUICK).gamma for c in (0.0, 0.1)]
    np.testing.assert_allclose(gammas[1], gammas[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_rows_of_each_type(table, dtype):
    X, y = table
    X = np.round(10 * X).clip(-128, 127).astype(dtype)
    options = {"max_steps": 3, "random_state": 0}
    expected = learn_gamma(X.astype(np.float64), y, **options)
    np.testing.assert_array_equal(learn_gamma(X, y, **options).gamma, expected.gamma)


@pytest.mark.filterwarnings("error")
def test_an_input_without_any_value(table):
    X, y = table
    X = np.column_stack([X, np.full(len(X), np.nan), np.where(np.arange(len(X)) % 300, np.nan, 1.0)])
    learned = learn_gamma(X, y, max_steps=3, random_state=0)
    assert np.isfinite(learned.gamma).all()
    assert learned.relevances[-2] == 0


def test_sparse_input_and_other_kernels(table):
    X, y = table
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = learn_gamma(X, y, **QUICK)
    np.testing.assert_array_equal(learn_gamma(sparse.csr_array(X), y, **QUICK).gamma, dense.gamma)
    others = "rbf", "hat", kernels.GammaPitch(8), *map(kernels.Matern, (0.5, 1.5, 2.5, np.inf))
    for kernel in others:
        assert learn_gamma(X, y, kernel=kernel, **QUICK).relevances.argmax() == 1


def test_rows_of_weight_zero_have_no_say(table):
    X, y = table
    weights = np.tile([0.0, 1.0], 300)
    learned = learn_gamma(X, np.where(weights > 0, y, 3 * X[:, 0]), sample_weight=weights, **QUICK)
    assert set(np.argsort(learned.relevances)[-2:]) == {1, 3}


def test_steps_and_rows_are_bounded(table):
    X, y = table
    options = {"max_steps": 3, "max_rows": 50, "random_state": 0}
    few = learn_gamma(X, y, **options)
    assert few.errors.shape == (3,)
    changed = X.copy()
    changed[np.random.default_rng(0).permutation(600)[150:]] += 5.0  # rows that no step uses
    np.testing.assert_array_equal(learn_gamma(changed, y, **options).gammas, few.gammas)


def test_ctrl_c_is_raised(table):
    X, y = table
    with interrupted(*SEARCH_STEP), pytest.raises(KeyboardInterrupt):
        learn_gamma(X, y, **QUICK)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "cauchy"}, ValueError, "kernel='cauchy' cannot be approximated by random binning"),
        ({"kernel": kernels.Matern(1.0)}, ValueError, "nu of Matern must be 0.5, 1.5, 2.5 or infinity"),
        ({"max_steps": 0}, ValueError, "max_steps must be at least 1, got 0"),
        ({"max_steps": 10_001}, ValueError, "max_steps must be at most 10000, got 10001"),
        ({"max_steps": "auto"}, TypeError, "max_steps must be an integer of at least 1, got 'auto'"),
        ({"max_rows": 1}, ValueError, "max_rows must be at least 2, got 1"),
        ({"max_rows": 1e3}, TypeError, "max_rows must be an integer of at least 2"),
        ({"categorical_features": [6]}, ValueError, "categorical_features must be a mask of length 6"),
        ({"sample_weight": np.ones(3)}, ValueError, "sample_weight must have one value per row"),
        ({"sample_weight": -1.0}, ValueError, "sample_weight must be finite and non-negative"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None, a positive integer"),
        ({"random_state": "a"}, ValueError, "'a' cannot be used to seed"),
        ({"X": np.full((600, 6), np.inf)}, ValueError, "Input X contains infinity"),
        ({"X": np.full((600, 6), -1e300)}, ValueError, "X must be at most 1e.100 in magnitude, got 1e.300"),
        ({"y": np.full(600, 1e300)}, ValueError, "y must be at most 1e.100 in magnitude"),
        ({"y": np.array(["a", None] * 300, dtype=object)}, TypeError, "y must have labels of one kind"),
        ({"y": np.full(600, np.nan)}, ValueError, "Input y contains NaN"),
        ({"y": np.arange(600).astype("M8[D]")}, ValueError, "y must contain numbers, not dates"),
        ({"y": np.ones(5)}, ValueError, "inconsistent numbers of samples"),
        ({"X": np.ones((1, 6)), "y": [1.0]}, ValueError, "At least 2 rows of positive weight are needed.*; got 1"),
    ],
)
def test_bad_input(table, options, error, message):
    X, y = table
    with pytest.raises(error, match=message):
        learn_gamma(**{"X": X, "y": y, **options})


def test_maps_accept_the_result_as_gamma(rng):
    X = rng.normal(size=(60, 2))
    learned = learn_gamma(X, X[:, 0], **{**QUICK, "max_steps": 2})
    for features in (RandomBinning(gamma=learned), RandomFourier(kernel="laplacian", gamma=learned)):
        np.testing.assert_array_equal(features.fit(X).gamma_, learned.gamma)
    assert (transform(X, gamma=learned) != transform(X, gamma=learned.gamma)).nnz == 0
    of_squares = learn_gamma(X, X[:, 0], **{**QUICK, "kernel": "rbf", "max_steps": 2})
    np.testing.assert_array_equal(RandomFourier(gamma=of_squares).fit(X).gamma_, of_squares.gamma)


def test_gammas_for_another_power_of_distances_are_refused(rng):
    X = rng.normal(size=(60, 2))
    options = {**QUICK, "max_steps": 2}
    of_distances, of_squares = (learn_gamma(X, X[:, 0], kernel=kernel, **options) for kernel in ("laplacian", "rbf"))
    with pytest.raises(ValueError, match=r"a kernel of distances, but must be .* squared .* kernel='rbf'"):
        RandomFourier(gamma=of_distances).fit(X)
    with pytest.raises(ValueError, match=r"a kernel of distances, but must be .* kernel='rbf'"):
        kernels.RBF()(X, gamma=of_distances)
    message = r"a kernel of squared distances, but must be for a kernel of distances.* kernel='laplacian'"
    for use in (RandomBinning(gamma=of_squares).fit, partial(transform, gamma=of_squares)):
        with pytest.raises(ValueError, match=message):
            use(X)
    model = KernelMachineRegressor(features="exact", gamma=of_squares, random_state=0)  # compares both powers
    assert model.fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9


def test_gammas_of_old_files_are_accepted(rng):
    """Files of earlier versions contain no power, so it is unknown."""
    X = rng.normal(size=(60, 2))
    old = learn_gamma(X, X[:, 0], **{**QUICK, "max_steps": 2})
    old.__dict__.pop("power")
    old = pickle.loads(pickle.dumps(old))
    np.testing.assert_array_equal(RandomFourier(gamma=old).fit(X).gamma_, old.gamma)


def test_integers_with_few_values_are_classes(rng):
    """Digits are labels and not numbers: integer labels have the result of their names."""
    X = rng.normal(size=(300, 3))
    labels = np.digitize(X[:, 1], [-1, 0, 1])[::-1].copy()
    of_names = learn_gamma(X, np.array(list("abcd"))[labels], **QUICK)
    np.testing.assert_array_equal(learn_gamma(X, labels, **QUICK).gamma, of_names.gamma)
    assert (learn_gamma(X, labels.astype(float), **QUICK).gamma != of_names.gamma).any()


def test_rows_without_weight_decide_nothing(rng):
    X = rng.normal(size=(400, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    weights = np.ones(400)
    weights[7] = 0.0
    learned = learn_gamma(X, np.where(weights > 0, y, 1e9), sample_weight=weights, random_state=0)
    assert learned.relevances[:2].sum() > 0.8


def test_the_number_of_rows_of_weight_zero_does_not_change_the_penalty(rng):
    X, weights = rng.normal(size=(4000, 2)), np.zeros(4000)
    y, some = X[:, 0] + 0.5 * rng.normal(size=4000), slice(3900, None)
    weights[some] = 1.0
    few = learn_gamma(X[some], y[some], max_rows=100, random_state=0).alpha
    assert learn_gamma(X, y, sample_weight=weights, max_rows=100, random_state=0).alpha == pytest.approx(few, rel=0.5)


@pytest.mark.parametrize("learn", [learn_gamma, RandomBinning(gamma="learn", n_grids=2).fit])
def test_sparse_rows_that_do_not_fit_in_memory_if_they_are_dense_are_refused(memory_of, learn):
    X = sparse.csr_matrix((np.ones(300), (range(300), range(300))), shape=(300, 10**5))
    memory_of(2**28)
    with pytest.raises(MemoryError, match=r"learning length scales on 300 rows of 100000 inputs needs about 720,000,0"):
        learn(X, np.arange(300.0))


def test_targets_of_other_types_and_shapes_are_read_as_models_read_them(rng):
    X, few = rng.normal(size=(60, 2)), {**QUICK, "max_steps": 2}
    labels = np.digitize(X[:, 1], [-1, 1])
    names = np.array(["low", "medium", "high"])[labels]
    numbers, decimals = labels.astype(float), np.array(list(map(Decimal, labels.tolist())))
    same = [
        (numbers, (decimals, decimals[:, np.newaxis], pl.Series(decimals.tolist()))),
        (labels, (labels[:, np.newaxis], pd.DataFrame({"y": labels}))),
        (names, (names[:, np.newaxis], np.column_stack([names, names]))),
    ]
    for y, others in same:
        expected = learn_gamma(X, y, **few).gamma
        for other in others:
            np.testing.assert_allclose(learn_gamma(X, other, **few).gamma, expected, rtol=1e-9)


def test_labels_in_data_frames_are_categories(rng):
    names, X = np.array(["a", "b", "c"]), rng.normal(size=(60, 2))
    X[:, 0] = rng.integers(3, size=60)
    frame = pd.DataFrame({"name": names[X[:, 0].astype(int)], "x": X[:, 1]})
    few = {**QUICK, "max_steps": 2}
    learned = learn_gamma(frame, X[:, 0], categorical_features=["name"], **few)
    np.testing.assert_allclose(learned.gamma, learn_gamma(X, X[:, 0], categorical_features=[0], **few).gamma)
