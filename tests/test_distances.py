"""The nearest rows among candidates: the slow twin, categories, copies and sparse rows."""

import naive
import numpy as np
import pytest
from scipy import sparse

from binfeat.graph import distances

N = 40
GAMMA = np.array([1.0, 0.5, 2.0])
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(N, 3)) * (RNG.random((N, 3)) < 0.7)
LEVELS = np.column_stack([NUMBERS[:, :2], RNG.integers(3, size=N)])
COPIES = np.repeat(NUMBERS[:8], 5, axis=0)


def candidates(n=20):
    """Return similarities of all pairs, and candidates of each row."""
    W = RNG.random((N, N))
    np.fill_diagonal(W, 0.0)
    return W, np.argsort(-W, axis=1)[:, :n]


def links(rows, W, neighbors):
    near = distances.nearest_of(rows, np.arange(N), neighbors, np.take_along_axis(W, neighbors, 1) > 0, 7, None)
    own = np.zeros((N, N))
    np.put_along_axis(own, neighbors, near / 2, axis=1)
    return own + own.T


@pytest.mark.parametrize("X", [NUMBERS, LEVELS, COPIES], ids=["numbers", "levels", "copies"])
@pytest.mark.parametrize("n_rows", [3, 4096])
def test_nearest_rows_are_those_of_the_twin(monkeypatch, X, n_rows):
    monkeypatch.setattr(distances, "_ROWS_OF_A_PART", n_rows)
    categorical = np.array([False, False, X is LEVELS])
    W, neighbors = candidates()
    expected = naive.nearest_by_distance(W, X, GAMMA, categorical, 20)
    np.testing.assert_array_equal(links(distances.ScaledRows.of(X, GAMMA, categorical), W, neighbors), expected)


@pytest.mark.parametrize("X", [NUMBERS, COPIES], ids=["numbers", "copies"])
def test_sparse_rows_have_the_same_distances(X):
    dense, own = (distances.ScaledRows.of(each, GAMMA, np.zeros(3, bool)) for each in (X, sparse.csr_array(X)))
    W, neighbors = candidates()
    np.testing.assert_array_equal(links(own, W, neighbors), links(dense, W, neighbors))
