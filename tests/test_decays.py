"""Kernels' values in place of distances, beside float64."""

import numpy as np
import pytest

from binfeat._engine.decays import decays, gaussian_values, matern_values

pytestmark = pytest.mark.engine

ULP = np.finfo(np.float32).eps
NO_FALLS = np.empty((0, 0), np.float32)


def test_exponentials():
    """To two units in the last place of the result, and of the argument's rounding nothing is added."""
    t = np.concatenate([np.linspace(0, 87, 3001), np.logspace(-8, 1.9, 1000), [0.0]]).astype(np.float32)[np.newaxis]
    found = t.copy()
    decays(found)
    np.testing.assert_allclose(found, np.exp(-t.astype(np.float64)), rtol=2 * ULP)
    assert found[0, -1] == 1.0


def test_far_away_nothing_is_subnormal_or_infinite():
    found = np.array([[87.0, 88.0, 1e4, 1e30, np.inf]], np.float32)
    decays(found)
    assert (found >= np.finfo(np.float32).tiny).all()
    np.testing.assert_allclose(found, np.exp(-87.0), rtol=2 * ULP)


@pytest.fixture
def squares(rng):
    """Products and squares of rows, and their squared distances."""
    A, B = rng.normal(size=(5, 3)).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
    of_A, of_B = (rows.astype(np.float64) ** 2 for rows in (A, B))
    parts = -2 * A @ B.T, of_A.sum(axis=1).astype(np.float32), of_B.sum(axis=1).astype(np.float32)
    return parts, ((A[:, np.newaxis].astype(np.float64) - B) ** 2).sum(axis=2)


def test_gaussian(squares):
    parts, s = squares
    gaussian_values(*parts)
    np.testing.assert_allclose(parts[0], np.exp(-s), atol=20 * ULP)


@pytest.mark.parametrize(("smoothness", "series"), [(0, (1, 0, 0)), (1, (1, 1, 0)), (2, (1, 1, 1 / 3))])
def test_matern(squares, smoothness, series):
    parts, s = squares
    factor = 4 * smoothness + 2
    z = np.sqrt(factor * s)
    alone, falls = parts[0].copy(), np.empty(s.shape, np.float32)
    matern_values(alone, *parts[1:], smoothness, NO_FALLS)
    matern_values(*parts, smoothness, falls)
    np.testing.assert_array_equal(parts[0], alone)
    np.testing.assert_allclose(parts[0], np.polyval(series[::-1], z) * np.exp(-z), atol=20 * ULP)
    step = 1e-6

    def values(square):
        z = np.sqrt(factor * square)
        return np.polyval(series[::-1], z) * np.exp(-z)

    np.testing.assert_allclose(falls, (values(s - step) - values(s + step)) / (2 * step), rtol=1e-4, atol=1e-6)


def test_rows_that_do_not_differ_have_no_fall():
    products, falls, squares = (
        np.zeros((1, 2), np.float32),
        np.full((1, 2), np.nan, np.float32),
        np.zeros(2, np.float32),
    )
    matern_values(products, squares[:1], squares, 0, falls)
    np.testing.assert_array_equal(products, 1.0)
    np.testing.assert_array_equal(falls, 0.0)


def test_a_row_and_itself(rng):
    """What rounding leaves of its distance is not below 0."""
    A = (100 * rng.normal(size=(50, 4))).astype(np.float32)
    products, squares = -2 * A @ A.T, np.einsum("ij,ij->i", A, A)
    matern_values(products, squares, squares, 1, NO_FALLS)
    assert np.isfinite(products).all()
    assert (products <= 1).all()
