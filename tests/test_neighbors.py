"""The most similar rows of each row: the slow twin, bins of many rows, blocks of rows, threads."""

from functools import partial

import naive
import numpy as np
import pytest

from binfeat import BinMatrix, RandomBinning
from binfeat.graph import neighbors

X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.fixture
def kept_neighbors(monkeypatch):
    """Set the number of nearest rows."""
    return partial(monkeypatch.setattr, neighbors, "N_NEAREST")


def bins_of(rows, gamma=1.0, **options):
    return RandomBinning(gamma=gamma, n_grids=20, output="codes", random_state=0, **options).fit_transform(rows)


def graph_of(rows, gamma=1.0, **options):
    return neighbors.NeighborGraph(bins_of(rows, gamma, **options), 0)


def matrix(graph, n_rows):
    return graph.normalized(np.eye(n_rows, order="F"))


@pytest.mark.engine
@pytest.mark.parametrize("gamma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("min_count", [1, 2])
def test_neighbors_are_those_of_the_twin(gamma, min_count, rows_met_in_a_bin):
    rows_met_in_a_bin(60)
    order = neighbors.alike_together(bins_of(X, gamma, min_count=min_count))
    rows = X[order]  # the first of equally similar rows are neighbors
    W = naive.similarities(naive.codes(rows, "laplacian", np.full(2, gamma), 20, 0)[0])
    expected = naive.normalized(naive.nearest_only(W, 15))
    np.testing.assert_allclose(matrix(graph_of(rows, gamma, min_count=min_count), 60), expected, atol=1e-12)


@pytest.mark.engine
def test_order_of_rows_does_not_matter(kept_neighbors, rows_met_in_a_bin):
    rows_met_in_a_bin(60)
    kept_neighbors(60)  # all, so the choice among equal ones does not matter
    order = np.random.default_rng(1).permutation(60)
    expected = matrix(graph_of(X), 60)[order][:, order]
    np.testing.assert_allclose(matrix(graph_of(X[order]), 60), expected, atol=1e-12)


@pytest.mark.engine
def test_neighbors_of_few_codes():
    codes = np.array([[0, 0, 1, 1, 1, 65535], [0, 0, 0, 65535, 1, 1]], np.uint16)
    Z = BinMatrix(codes, [0, 2, 4])
    known = [[None if c == 65535 else c for c in row.tolist()] for row in codes]
    expected = naive.normalized(naive.nearest_only(naive.similarities(known), 5))
    np.testing.assert_allclose(matrix(neighbors.NeighborGraph(Z, 0), 6), expected, atol=1e-12)


def test_rows_of_a_large_bin_meet_16_of_them(kept_neighbors):
    kept_neighbors(100)
    S = matrix(graph_of(np.zeros((100, 2))), 100)
    met = (S > 0).sum(axis=0)
    assert sorted(met) == [16] * 84 + [99] * 16


def test_same_in_any_blocks_and_threads(threads, monkeypatch):
    expected = matrix(graph_of(X), 60)
    for n_rows in (1, 7):
        monkeypatch.setattr(neighbors, "_ROWS_AT_A_TIME", n_rows)
        monkeypatch.setattr(neighbors, "_ROWS_OF_A_PART", n_rows)
        for n in (1, 2):
            threads(n)
            np.testing.assert_array_equal(matrix(graph_of(X), 60), expected)
