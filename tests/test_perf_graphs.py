"""The cases clusters and few_labels: rows and figures."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from perf import graphs
from perf.cases import clusters, few_labels


@pytest.fixture
def blobs():
    """Return a loader of three blobs with the classes 2, 5 and 7."""
    X, y = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    return lambda: (X, np.array([2, 5, 7])[y])


def test_tables_have_numbered_classes(blobs):
    X, y = graphs.table(blobs)
    assert X.shape == (90, 2)
    assert set(y) == {0, 1, 2}
    few, of_few = graphs.table(blobs, 20)
    assert few.shape == (20, 2)
    assert all((X[y == label] == row).all(axis=1).any() for row, label in zip(few, of_few, strict=True))


def test_curved_clusters_lie_near_surfaces_of_their_own():
    X, y = graphs.curved(2000, n_inputs=12, n_clusters=3)
    assert X.shape == (2000, 12)
    np.testing.assert_allclose(np.bincount(y), 2000 / 3, rtol=0.1)
    for cluster in range(3):
        spread = np.linalg.svd(X[y == cluster] - X[y == cluster].mean(axis=0), compute_uv=False)
        assert (spread[:2] > 2 * spread[8]).all()  # flat in most directions except for the noise
    np.testing.assert_array_equal(graphs.curved(2000, n_inputs=12, n_clusters=3)[0], X)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_information_of_blobs_is_whole_and_differences_are_of_means(blobs):
    rows = {row.what: row for row in clusters._quality("pendigits", blobs, quick=True)}
    assert len(rows) == 5
    ours = rows["pendigits: mutual information, ours"]
    assert ours.ours == pytest.approx(1.0)
    assert ours.reach == (">=", 0.70)
    theirs = rows["pendigits: mutual information, scikit-learn, rbf"].ours
    assert rows["pendigits: mutual information minus scikit-learn, rbf"].ours == ours.ours - theirs


@pytest.mark.hard
def test_growth_compares_with_few_rows_in_proportion():
    *informed, fit, linear = clusters._growth((400, 800), lambda n: graphs.curved(n, n_clusters=2))
    assert [row.what for row in informed] == [f"{n} x 20: mutual information, ours" for n in (400, 800)]
    assert fit.ours == linear.ours
    assert linear.measured == pytest.approx(linear.ours / linear.reference)


def test_labels_that_are_right_are_of_rows_without_one(blobs):
    X, y = graphs.table(blobs)
    assert few_labels._shares_right(X, y, 0) == [100.0] * 3
    np.testing.assert_array_equal(few_labels.few_of(np.array([3, 1, 2]), [0, 2]), [3, -1, 2])
    rows = {row.what: row for row in few_labels._quality("blobs", blobs, quick=True)}
    assert rows["blobs: accuracy minus 7 neighbors"].ours == 0.0
    assert all(row.ok for row in rows.values() if row.reach is not None)
