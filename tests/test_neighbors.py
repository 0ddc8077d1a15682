"""The most similar rows of each row: the slow twin, bins of many rows, blocks of rows, threads."""

import naive
import numpy as np
import pytest
from scipy import sparse

from binfeat import BinMatrix, RandomBinning
from binfeat.graph import neighbors, wider_grids

X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.fixture
def kept_neighbors(monkeypatch):
    """Set the number of nearest rows, and of the rows from which they are selected."""

    def keep(n_rows):
        for name in ("N_NEAREST", "_N_CANDIDATES"):
            monkeypatch.setattr(neighbors, name, n_rows)

    return keep


def bins_of(rows, gamma=1.0, **options):
    return RandomBinning(gamma=gamma, n_grids=20, output="codes", random_state=0, **options).fit_transform(rows)


def graph_of(rows, gamma=1.0, **options):
    return neighbors.NeighborGraph(bins_of(rows, gamma, **options), scaled(rows), 0)


def scaled(rows):
    return neighbors.ScaledRows.of(rows, np.ones(rows.shape[1]), np.zeros(rows.shape[1], bool))


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
    W = naive.nearest_by_distance(W, rows, np.ones(2), [False, False], n_nearest=15, equal=False)
    expected = naive.normalized(W)
    np.testing.assert_allclose(matrix(graph_of(rows, gamma, min_count=min_count), 60), expected, atol=1e-12)


@pytest.mark.engine
def test_order_of_rows_does_not_matter(kept_neighbors, rows_met_in_a_bin):
    rows_met_in_a_bin(60)
    kept_neighbors(60)  # all, so the choice among equal ones does not matter
    order = np.random.default_rng(1).permutation(60)
    expected = matrix(graph_of(X), 60)[order][:, order]
    np.testing.assert_allclose(matrix(graph_of(X[order]), 60), expected, atol=1e-12)


@pytest.mark.engine
def test_only_rows_with_too_few_neighbors_are_compared_in_wider_grids(rows_met_in_a_bin):
    rows_met_in_a_bin(60)
    binning = RandomBinning(
        kernel=wider_grids.WiderGrids("laplacian"), gamma=4.0, n_grids=64, output="codes", random_state=0
    )
    Z, order, stages = binning.fit_transform(X), np.arange(60), wider_grids.stages_of(binning, 64)
    places, similarities = neighbors.BinMembers.of(Z, order, 0).nearest(Z, order, 60, stages, 60)
    found = np.zeros((60, 60))
    np.add.at(found, (order[:, None], places), similarities)
    same = Z.codes[:, :, None] == Z.codes[:, None, :]
    others = same.sum(axis=2, keepdims=True) - 1
    sums = np.cumsum(np.where(others > 0, same / np.maximum(others, 1) / 64, 0.0), axis=0)
    is_enough = (sums > 0).sum(axis=2) >= 8
    used = [next((n for n in stages if is_enough[n - 1, i]), 64) for i in range(60)]
    np.testing.assert_allclose(found, [sums[n - 1, i] for i, n in enumerate(used)], atol=1e-15)
    assert set(used) >= {56, 58}


def test_few_grids_are_searched_once(monkeypatch):
    calls, nearest = [], neighbors.nearest
    monkeypatch.setattr(neighbors, "nearest", lambda *own, **options: (calls.append(own), nearest(*own, **options)))
    Z = bins_of(X, 100.0)  # most rows have too few neighbors
    neighbors.BinMembers.of(Z, np.arange(60), 0).nearest(Z, np.arange(60), 60, wider_grids._stages(20))
    assert len(calls) == 1


def test_last_grids_are_2_4_8_and_16_times_as_wide():
    scales = [
        RandomBinning(kernel=k, n_grids=64, random_state=0).fit(X)._scale
        for k in ("hat", wider_grids.WiderGrids("hat"))
    ]
    widths = np.repeat([1, 2, 4, 8, 16], [56, 2, 2, 2, 2])
    np.testing.assert_allclose(scales[0] / scales[1], np.tile(widths[:, None], 2), rtol=1e-8)


@pytest.mark.parametrize("categorical", [[False, True, False], [True, True, True]])
def test_distances_of_categories_are_those_of_dense_rows(rng, categorical):
    rows = np.column_stack([rng.normal(size=40), rng.integers(0, 9, 40), rng.choice([0.0, 2.0], 40)])
    gamma, others, categorical = np.array([0.5, 2.0, 1.0]), rng.integers(0, 40, (40, 7)), np.array(categorical)
    found = [
        neighbors.ScaledRows.of(own, gamma, categorical).squares(np.arange(40), others)
        for own in (rows, sparse.csr_array(rows), sparse.csr_matrix(rows))
    ]
    apart = rows[:, None] - rows[others]
    expected = (np.where(categorical, apart != 0, apart) ** 2 * (gamma / 2) ** 2).sum(axis=2)
    np.testing.assert_allclose(found[0], expected, atol=1e-12)
    for own in found[1:]:
        np.testing.assert_array_equal(own, found[0])


def test_dense_categories_that_do_not_fit_in_memory_are_refused(memory_of):
    X = sparse.csr_array((1000, 200))
    memory_of(10**6)
    with pytest.raises(MemoryError, match="a dense copy of 200 categorical columns of 1,000 rows needs"):
        neighbors.ScaledRows.of(X, np.ones(200), np.ones(200, dtype=bool))


@pytest.mark.engine
def test_neighbors_of_few_codes():
    codes = np.array([[0, 0, 1, 1, 1, 65535], [0, 0, 0, 65535, 1, 1]], np.uint16)
    Z = BinMatrix(codes, [0, 2, 4])
    known = [[None if c == 65535 else c for c in row.tolist()] for row in codes]
    expected = naive.normalized(naive.nearest_only(naive.similarities(known), 5))
    np.testing.assert_allclose(
        matrix(neighbors.NeighborGraph(Z, scaled(np.arange(6.0)[:, None]), 0), 6), expected, atol=1e-12
    )


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
