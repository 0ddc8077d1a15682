"""Codes in numbers, such as -999 for a missing number, in a search for length scales."""

import naive
import numpy as np
import pytest
from hard import hard
from scipy import sparse

import binfeat
from binfeat.length_scales.codes import clip_codes, std_without_codes

NUMERIC = np.zeros(5, bool)


@pytest.fixture
def X(rng):
    return rng.normal(size=(2000, 5)) * 10.0 ** np.arange(-3, 2)


def test_usual_inputs_are_not_copied(X, rng):
    skewed = np.column_stack([X[:, 0], np.sinh(8 * X[:, 3]), rng.random(2000) < 0.01, np.full(2000, 3.0), X[:, 4]])
    skewed[::100, 4] = 1e4 * np.arange(20)  # too many values for codes
    assert clip_codes(skewed, NUMERIC, 0) is skewed


def test_two_groups_of_values_are_no_codes(rng):
    """The median can be between the groups, far from all values."""
    X = np.repeat([0.0, 1000.0], 40)[:, None] + 1e-6 * rng.normal(size=(80, 1))
    assert all(clip_codes(X, np.zeros(1, bool), seed) is X for seed in range(20))


@pytest.mark.parametrize("code", [-99.0, -9999.0, 1e9, np.finfo(float).max / 1e160])
def test_codes_stay_apart_and_other_values_are_unchanged(X, code):
    rows = np.arange(0, 2000, 83)
    coded = X.copy()
    coded[rows, 3] = code
    before = coded.copy()
    found, others = clip_codes(coded, NUMERIC, 0), np.setdiff1d(np.arange(2000), rows)
    np.testing.assert_array_equal(coded, before)
    np.testing.assert_array_equal(np.delete(found, 3, axis=1), np.delete(coded, 3, axis=1))
    np.testing.assert_array_equal(found[others, 3], coded[others, 3])
    assert np.unique(found[rows, 3]).size == 1
    assert 5 < abs(found[rows[0], 3]) < 20
    assert clip_codes(coded, np.arange(5) == 3, 0) is coded


def test_clipped_values_are_those_of_the_twin(X):
    code = np.where(np.arange(2000) % 71 == 0, -999.0, np.where(np.arange(2000) % 73 == 0, 9999.0, X[:, 3]))
    X = np.column_stack([X, code, np.sinh(8 * X[:, 3])])
    found = clip_codes(X, np.zeros(7, bool), 3)
    assert (found != X).any(axis=0).tolist() == [False] * 5 + [True, False]
    for j in range(7):
        np.testing.assert_array_equal(found[:, j], naive.clipped_codes(X[:, j], 3))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_standard_deviations_are_those_of_values_without_codes(X, form):
    numbers = np.column_stack([X[:, 0], np.sinh(2 * X[:, 3]), np.arange(2000) % 100 == 0, X[:, 4], X[:, 4]])
    coded = numbers.copy()
    coded[::100, 3:] = 1e4 * np.arange(1, 21)[:, None]
    found = std_without_codes(form(coded), np.arange(5) == 4)
    np.testing.assert_allclose(found[:3], numbers.std(axis=0)[:3], rtol=1e-6)
    assert numbers[:, 3].std() < found[3] < 2 * numbers[:, 3].std()
    assert found[4] == pytest.approx(coded[:, 4].std())


def test_a_second_mode_is_not_clipped(rng):
    X = rng.normal(size=(2000, 1)) + 100 * (np.arange(2000) % 5 == 0)[:, None]
    np.testing.assert_allclose(std_without_codes(X, np.zeros(1, bool)), X.std(axis=0), rtol=1e-6)


def test_few_equal_or_missing_values_have_a_standard_deviation():
    X = np.array([[0.0, np.nan, 5.0, 0.0], [0.0, np.nan, 5.0, 1e6], [0.0, np.nan, np.nan, np.nan]])
    for rows in (X, sparse.csr_array(X), X[:1]):
        found = std_without_codes(rows, np.zeros(4, bool))
        np.testing.assert_array_equal(found[:3], 0)
        assert found[3] == pytest.approx(X[: rows.shape[0], 3][:2].std())


@pytest.mark.parametrize("features", ["binning", *hard("fourier")])
def test_models_of_random_features_resolve_the_other_values(rng, features):
    X = rng.normal(size=(1200, 3))
    y = X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=1200)
    coded = X.copy()
    coded[::101, 0] = coded[50::97, 1] = -999.0
    model = binfeat.KernelMachineRegressor(features=features, random_state=0)
    plain = model.fit(X[:800], y[:800]).score(X[800:], y[800:])
    assert model.fit(coded[:800], y[:800]).score(coded[800:], y[800:]) > plain - 0.15


def test_shares_of_a_model_do_not_count_codes_in_full(rng):
    X = rng.normal(size=(1000, 3))
    y = np.sin(2 * X[:, 1])
    X[::101, 0] = -99999.0
    relevances = binfeat.learn_gamma(X, y, random_state=0).relevances
    assert relevances.argmax() == 1
