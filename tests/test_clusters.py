"""Spectral embedding and clustering: dense eigenvectors, shapes, new rows, blocks, errors."""

import copy
import multiprocessing
import pickle
import sys
import warnings
from functools import partial

import naive
import numpy as np
import pytest
from callbacks import Callback
from graphs import assert_simple_attributes
from hard import each_value_once, hard
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from binfeat import (
    RandomBinning,
    RandomFeatureUnion,
    RandomFourier,
    SpectralClustering,
    SpectralEmbedding,
    blocks,
)
from binfeat.graph import clusters as clusters_module
from binfeat.graph import eigenvectors, missing, neighbors, scale, similarity, spectral

pd = pytest.importorskip("pandas")

MAP = RandomBinning(n_grids=20, random_state=0)


@pytest.fixture
def never_dense(monkeypatch):
    """Compute eigenvectors of few rows like those of many."""
    monkeypatch.setattr(eigenvectors, "_FEW_ROWS", 0)


@pytest.fixture
def least_sample(monkeypatch):
    """Set the number of rows from which a sample is used for the start."""
    return partial(monkeypatch.setattr, spectral, "_LEAST_ROWS")


def scaled(rows):
    return neighbors.ScaledRows.of(rows, np.ones(rows.shape[1]), np.zeros(rows.shape[1], bool))


@pytest.fixture
def blobs():
    return make_blobs(150, centers=3, random_state=2)


def test_graph_of_other_features_is_of_their_inner_products(rng):
    Z = rng.uniform(size=(30, 8))
    V = rng.normal(size=(30, 2))
    expected = naive.normalized(Z @ Z.T) @ V
    for features in (Z, sparse.csr_array(Z)):
        np.testing.assert_allclose(
            similarity.SimilarityGraph(features).normalized(np.asfortranarray(V)), expected, atol=1e-12
        )


@pytest.mark.parametrize("gamma", [0.3, *hard(1.0)])
def test_coordinates_are_means_of_dense_eigenvectors(rng, gamma, rows_met_in_a_bin):
    rows_met_in_a_bin(60)
    X = rng.normal(size=(60, 2))
    X = X[neighbors.alike_together(clone(MAP).set_params(gamma=gamma, output="codes").fit_transform(X))]
    codes = naive.codes(X, "laplacian", np.full(2, gamma), 20, 0)[0]
    W = naive.similarities(codes)
    W = naive.nearest_by_distance(W, X, np.ones(2), [False, False], n_nearest=15, equal=False)
    assert (W.sum(axis=1) > 0).all()
    values, vectors = naive.spectral_coordinates(W, 3)
    embedding = SpectralEmbedding(3, features=MAP, gamma=gamma).fit(X)
    np.testing.assert_allclose(embedding.eigenvalues_[:3], values, atol=1e-10)
    expected = naive.means_of_largest(naive.similarities_of_new_rows(codes, codes), vectors, 16)
    signs = np.sign((expected * embedding.embedding_).sum(axis=0))
    np.testing.assert_allclose(embedding.embedding_, expected * signs, atol=1e-9)


def test_mean_squares_of_coordinates_are_at_least_squared_eigenvalues(monkeypatch, rng):
    kept = []
    monkeypatch.setattr(SpectralEmbedding, "_keep_rows", lambda self, *found: kept.append(found))
    fourier = RandomFourier(n_components=300, gamma=0.01, random_state=0)
    for n_rows, features in ((27, None), (1000, None), (300, fourier)):
        gamma = "scale" if features is None else None
        embedding = SpectralEmbedding(3, features=features, gamma=gamma, tol=1e-6, random_state=0)
        squares = embedding.fit(rng.normal(size=(n_rows, 10))).eigenvalues_[:3] ** 2
        coordinates, graph = kept.pop()
        found = np.average(coordinates**2, axis=0, weights=graph.degrees)
        if features is None:
            assert (squares + 0.01 < found).all()
            assert (found < 1).all()
        else:
            np.testing.assert_allclose(found, squares, rtol=1e-5)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_block_krylov_beside_a_dense_solver(rng, never_dense, tol):
    basis = np.linalg.qr(rng.normal(size=(200, 200)))[0]
    spectrum = np.concatenate([[1.0], 1 - 0.01 * np.arange(1, 7), np.linspace(0.9, -0.1, 193)])
    matrix = (basis * spectrum) @ basis.T
    found = eigenvectors.leading_eigenvectors(lambda V: matrix @ V, basis[:, :1], 3, tol=tol, max_iter=400, seed=0)
    residuals = np.linalg.norm(matrix @ found.vectors - found.vectors * found.values[:3], axis=0)
    assert residuals.max() <= tol
    np.testing.assert_allclose(residuals, found.residuals, rtol=0.05, atol=1e-12)
    np.testing.assert_allclose(found.values, spectrum[1:5], atol=100 * tol + 1e-12)
    np.testing.assert_allclose(found.values[:3], spectrum[1:4], atol=tol**2 * 1000 + 1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(basis[:, 0] @ found.vectors, 0.0, atol=1e-10)


def test_eigenvectors_of_a_sample_are_near(rng, least_sample):
    least_sample(600)
    X = rng.uniform(size=(3000, 2)) * [4.0, 1.0]
    Z = RandomBinning(gamma=2.0, n_grids=32, min_count=2, output="codes", random_state=0).fit_transform(X)
    graph, options = neighbors.NeighborGraph(Z, scaled(X), 0), {"tol": 1e-4, "max_iter": 300, "seed": 0}
    cold = eigenvectors.leading_eigenvectors(graph.normalized, graph.known_vectors(3), 2, **options)
    near = spectral._start_from_sample(Z, graph, 3, **options)
    warm = eigenvectors.leading_eigenvectors(graph.normalized, graph.known_vectors(3), 2, start=near, **options)
    cosines = np.abs((near[:, :2] * cold.vectors).sum(axis=0)) / np.linalg.norm(near[:, :2], axis=0)
    assert cosines.min() > 0.9
    assert warm.n_products < cold.n_products
    np.testing.assert_allclose(warm.values[:2], cold.values[:2], atol=1e-6)
    np.testing.assert_allclose(np.abs((warm.vectors * cold.vectors).sum(axis=0)), 1.0, atol=1e-4)


def test_no_sample(rng):
    X = rng.uniform(size=(4000, 2))
    Z = RandomBinning(gamma=1.0, n_grids=32, output="codes", random_state=0).fit_transform(X)
    graph, options = neighbors.NeighborGraph(Z, scaled(X), 0), {"tol": 1e-3, "max_iter": 100, "seed": 0}
    assert spectral._start_from_sample(Z[:3999], graph, 3, **options) is None
    assert spectral._start_from_sample(Z, graph, 1000, **options) is None
    assert spectral._start_from_sample(Z, similarity.SimilarityGraph(Z.tocsr()), 3, **options) is None


def test_krylov_space_that_ends_early(rng, never_dense):
    """A matrix with three eigenvalues: a block and its product span the whole space."""
    basis = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    spectrum = np.concatenate([[1.0], np.full(2, 0.5), np.zeros(297)])
    matrix = (basis * spectrum) @ basis.T
    found = eigenvectors.leading_eigenvectors(lambda V: matrix @ V, basis[:, :1], 3, tol=1e-10, max_iter=50, seed=0)
    np.testing.assert_allclose(found.values, [0.5, 0.5, 0.0, 0.0], atol=1e-10)


@pytest.mark.parametrize("make", [make_moons, make_circles])
def test_clusters_of_any_shape(make):
    options = {"factor": 0.5} if make is make_circles else {}
    X, y = make(1000, noise=0.04, random_state=0, **options)
    clusters = SpectralClustering(2, random_state=0).fit(X)
    assert adjusted_rand_score(clusters.labels_, y) > 0.98
    X_new, y_new = make(300, noise=0.04, random_state=1, **options)
    assert adjusted_rand_score(clusters.predict(X_new), y_new) > 0.95


def test_a_pipeline_as_map(blobs):
    """Distances are those of the inputs of the map at its end."""
    X, _ = blobs
    binning = RandomBinning(n_grids=64, output="codes", gamma=1.0, random_state=0)
    scaled_first = make_pipeline(StandardScaler(), binning)
    direct = SpectralClustering(3, features=binning, gamma=None, random_state=0).fit(StandardScaler().fit_transform(X))
    for features in (scaled_first, make_pipeline(scaled_first)):
        clusters = SpectralClustering(3, features=features, gamma=None, random_state=0).fit(X)
        assert adjusted_rand_score(clusters.labels_, direct.labels_) == 1.0
        np.testing.assert_array_equal(clusters.predict(X), clusters.labels_)


def test_a_pipeline_without_a_first_step(blobs):
    X, _ = blobs
    pipeline = Pipeline([("none", "passthrough"), ("bins", clone(MAP).set_params(output="codes"))])
    clusters = SpectralClustering(3, features=pipeline, gamma=None, random_state=0).fit(X)
    assert clusters.n_features_in_ == 2
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clusters)).predict(X), clusters.labels_)


@pytest.mark.parametrize(
    "first",
    [
        FunctionTransformer(sparse.csc_array, accept_sparse=True),
        FunctionTransformer(pd.DataFrame),
        FunctionTransformer(np.ndarray.tolist),
    ],
)
def test_any_table_as_the_result_of_the_first_step_of_a_pipeline(blobs, first):
    X, _ = blobs
    found = []
    for step in (first, StandardScaler(with_mean=False, with_std=False)):
        features = make_pipeline(step, RandomBinning(n_grids=20, gamma=1.0, output="codes", random_state=0))
        found.append(SpectralEmbedding(3, features=features, gamma=None, random_state=0).fit_transform(X))
    np.testing.assert_array_equal(*found)


@pytest.mark.hard
def test_clusters_with_a_clear_gap_are_not_linked():
    r = np.random.default_rng(0)
    z = r.choice(3, 1500)
    t = np.sqrt(r.uniform(0.03, 1, 1500)) * 3 * np.pi
    angle = t + z * 2 * np.pi / 3
    spirals = np.column_stack([t * np.cos(angle), t * np.sin(angle)]) + 0.15 * r.normal(size=(1500, 2))
    assert adjusted_rand_score(SpectralClustering(3, random_state=0).fit(spirals).labels_, z) > 0.95


def rows_with_a_tail(rng):
    y = rng.integers(3, size=600)
    return np.exp(rng.normal(0, 0.4, (600, 3)) + np.array([[0, 0, 0], [2, 0, 2], [0, 2, 2]])[y]), y


@pytest.mark.hard
def test_rows_in_tails_of_clusters_and_in_sparse_clusters_are_not_separated():
    sparse_and_dense = make_blobs(900, cluster_std=[1, 2.5, 0.5], random_state=170)
    for (X, y), least in ((rows_with_a_tail(np.random.default_rng(1)), 0.97), (sparse_and_dense, 0.85)):
        clusters = SpectralClustering(3, random_state=0).fit(X)
        assert adjusted_rand_score(clusters.labels_, y) > least
        np.testing.assert_array_equal(clusters.predict(X), clusters.labels_)
        np.testing.assert_array_equal(clone(clusters).fit(sparse.csr_array(X)).labels_, clusters.labels_)


def test_new_rows_in_a_tail_belong_to_its_cluster():
    X, _ = rows_with_a_tail(np.random.default_rng(1))
    clusters = SpectralClustering(3, random_state=0).fit(X)
    X_new, y_new = rows_with_a_tail(np.random.default_rng(2))
    assert adjusted_rand_score(clusters.predict(X_new), y_new) > 0.95
    again = SpectralClustering(3, features=clusters.features_, gamma=None, random_state=0).fit(X)
    np.testing.assert_array_equal(again.labels_, clusters.labels_)  # the grids of a fitted map are not made wider again


def test_labels_and_coordinates_of_training_rows_are_those_of_new_rows(blobs):
    X, y = blobs
    clusters = SpectralClustering(3, random_state=0).fit(X)
    np.testing.assert_array_equal(clusters.predict(X), clusters.labels_)
    assert adjusted_rand_score(clusters.labels_, y) > 0.9
    embedding = SpectralEmbedding(random_state=0).fit(X)
    np.testing.assert_array_equal(embedding.transform(X), embedding.embedding_)
    assert embedding.set_output(transform="pandas").transform(X).columns[0] == "spectralembedding0"
    assert (embedding.set_output(transform="default").transform([[1e9, 1e9]]) == 0).all()
    assert clusters.predict([[1e9, 1e9]]).shape == (1,)


def test_gamma_of_the_widest_eigengap(blobs):
    X, y = blobs
    gammas = [1e-3, "scale", [0.3, 0.3]]
    clusters = SpectralClustering(3, gammas=gammas, random_state=0).fit(X)
    alone = [SpectralClustering(3, gamma=gamma, random_state=0).fit(X) for gamma in gammas]
    np.testing.assert_allclose(clusters.eigengaps_, [-np.diff(own.eigenvalues_)[-1] for own in alone])
    best = clusters.eigengaps_.argmax()
    assert best > 0
    np.testing.assert_array_equal(clusters.gamma_, alone[best].gamma_)
    assert adjusted_rand_score(clusters.labels_, y) > 0.9


def test_rows_without_neighbors_are_told(rng):
    X = np.concatenate([rng.normal(size=(100, 2)), 1e6 * rng.normal(size=(50, 2))])
    with pytest.warns(UserWarning, match="33% of the rows share no bin with another row and have no neighbors"):
        SpectralClustering(2, gamma=0.3, random_state=0).fit(X)


@pytest.mark.filterwarnings("ignore:Grids are too")
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_gamma_scale_fills_bins_with_three_rows(rng, unit):
    X = unit * rng.normal(size=(500, 3))
    gamma = scale.gamma_by_occupancy(RandomBinning(random_state=0), X)
    codes = naive.codes(X[:200], "laplacian", gamma, 2, 0)[0]
    assert len(set(codes[0])) > 50
    counts = RandomBinning(gamma=gamma, n_grids=200, random_state=1, output="codes").fit(X).bin_counts_
    assert np.exp((counts * np.log(counts)).sum() / counts.sum()) == pytest.approx(3.0, rel=0.25)


@pytest.mark.filterwarnings("ignore:Grids are too")
def test_gamma_scale_of_a_map_with_a_warm_start_is_the_same(rng):
    X = rng.normal(size=(200, 3))
    found = [scale.gamma_by_occupancy(RandomBinning(warm_start=own, random_state=0), X) for own in (False, True)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("offsets", [[0.0, 1e4], [0.0, 1.7e9], [1e6, -1e6]])
def test_inputs_far_from_each_other_have_the_length_scale_of_their_spread(offsets):
    X, moon = make_moons(300, noise=0.05, random_state=0)
    labels = SpectralClustering(2, random_state=0).fit(X + offsets).labels_
    assert adjusted_rand_score(moon, labels) > 0.95


def test_an_input_that_has_most_of_the_spread_is_named(blobs):
    X, y = blobs
    message = r"Input 1 has 2e\+03 times the spread of a typical input.*dominates the similarities.*Scale X"
    with pytest.warns(UserWarning, match=message):
        large = SpectralClustering(3, random_state=0).fit(sparse.csr_array(X * [1, 1000]))
    frame = pd.DataFrame(X * [1, 1000], columns=["width", "height"])
    with pytest.warns(UserWarning, match="Input 'height' has"):
        assert (SpectralClustering(3, random_state=0).fit(frame).labels_ == large.labels_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SpectralClustering(3, gamma=[0.3, 0.0003], random_state=0).fit(X * [1, 1000])
        assert adjusted_rand_score(SpectralClustering(3, random_state=0).fit(X).labels_, y) > 0.9


def test_gamma_scale_of_rows_that_are_all_alike():
    assert np.isfinite(scale.gamma_by_occupancy(RandomBinning(random_state=0), np.ones((20, 2)))).all()
    clusters = SpectralClustering(1, random_state=0).fit(np.ones((20, 2)))
    assert (clusters.labels_ == 0).all()


@pytest.mark.parametrize(
    "features",
    [
        RandomBinning(n_grids=64, n_features=2**14),
        RandomBinning(kernel="hat", gamma=0.1, n_grids=128, n_jobs=1),
        RandomFourier(n_components=512, gamma=0.02),
    ],
)
def test_any_map(blobs, features):
    X, y = blobs
    gamma = "scale" if features.gamma == "scale" else None
    clusters = SpectralClustering(3, features=features, gamma=gamma, random_state=0).fit(X)
    assert adjusted_rand_score(clusters.labels_, y) > 0.8
    assert features.get_params()["random_state"] is None


def test_union_has_its_own_gammas(blobs):
    X, y = blobs
    union = RandomFeatureUnion(
        [
            ("bins", RandomBinning(gamma=0.3, n_grids=32, output="codes", random_state=0)),
            ("fourier", RandomFourier(gamma=0.02, n_components=64, random_state=0)),
        ]
    )
    clusters = SpectralClustering(3, features=union, gamma=None, random_state=0).fit(X)
    assert adjusted_rand_score(clusters.labels_, y) > 0.9
    with pytest.raises(
        ValueError, match=r"gamma must be None for features without a parameter gamma.*RandomFeatureUnion"
    ):
        SpectralClustering(3, features=union).fit(X)
    with pytest.raises(ValueError, match=r"gammas must be None for features without a parameter gamma.*got \[0.1, 1\]"):
        SpectralClustering(3, features=union, gamma=None, gammas=[0.1, 1]).fit(X)


def test_same_from_blocks_and_sparse_rows(rng):
    X = rng.normal(size=(400, 2)) + 5 * rng.integers(2, size=(400, 1))
    whole = SpectralClustering(2, random_state=0).fit(X)
    streamed = SpectralClustering(2, random_state=0).fit(blocks(X, np.zeros(400), block_rows=90))
    np.testing.assert_allclose(streamed.gamma_, whole.gamma_, rtol=1e-6)
    assert adjusted_rand_score(streamed.labels_, whole.labels_) == 1
    assert streamed.n_features_in_ == 2
    np.testing.assert_array_equal(SpectralClustering(2, random_state=0).fit(sparse.csr_array(X)).labels_, whole.labels_)


def test_categories_of_sparse_rows_have_no_order(rng):
    X = np.column_stack([rng.normal(size=300), rng.integers(1, 10, 300)])
    features = RandomBinning(n_grids=20, categorical_features=[1], random_state=0)
    embedding = SpectralEmbedding(3, features=features, gamma=1.0, random_state=0)
    expected = embedding.fit_transform(X)
    np.testing.assert_array_equal(embedding.fit_transform(sparse.csr_matrix(X)), expected)


def test_median_replaces_missing_numbers_of_training_rows_and_of_new_rows(rng):
    z = rng.choice(3, 600)
    X = 10 * np.eye(3, 5)[z] + rng.normal(size=(600, 5))
    X[rng.random(X.shape) < 0.05] = np.nan
    X[0] = np.nan
    full = np.where(np.isnan(X), np.nanquantile(X, 0.5, axis=0, method="lower"), X)
    expected = SpectralClustering(3, random_state=0).fit(full)
    assert adjusted_rand_score(expected.labels_, z) > 0.8
    for rows in (X, sparse.csr_array(X), blocks(X, block_rows=90)):
        clusters = SpectralClustering(3, random_state=0).fit(rows)
        np.testing.assert_array_equal(clusters.labels_, expected.labels_)
        np.testing.assert_array_equal(clusters.predict(X), expected.predict(full))


def test_names_of_categorical_inputs_are_known(rng):
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.choice(3, 300).astype(float)})
    named, numbered = (
        SpectralClustering(3, features=RandomBinning(n_grids=20, categorical_features=own), random_state=0)
        for own in (["b"], [1])
    )
    expected = numbered.fit(X.to_numpy()).labels_
    for rows in (X, blocks(X, block_rows=90)):
        np.testing.assert_array_equal(named.fit(rows).labels_, expected)


def test_most_frequent_category_and_zeros_of_sparse_rows_replace_missing_values():
    X = np.array([[7.0, 0.0, 2.0], [np.nan, 0.0, 1.0], [7.0, np.nan, 5.0], [9.0, 0.0, np.nan], [1.0, 3.0, np.nan]])
    X = np.column_stack([X, np.full(5, np.nan)])
    categorical = np.arange(4) == 0
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_array_equal(missing.typical_values(rows, categorical), [7.0, 0.0, 2.0, 0.0])


@pytest.mark.parametrize("least_rows", [100, *hard(1000)])
def test_same_for_any_number_of_threads(rng, threads, least_sample, least_rows):
    least_sample(least_rows)
    X = rng.normal(size=(700, 3))
    found = []
    for n in (1, 2):
        threads(n)
        found.append(SpectralEmbedding(3, random_state=0, gamma=1.0, max_iter=7, tol=1).fit_transform(X))
    np.testing.assert_array_equal(*found)


def test_the_map_has_the_number_of_threads_of_the_estimator_unless_it_has_its_own(blobs):
    for features, expected in ((None, 2), (MAP, 2), (clone(MAP).set_params(n_jobs=1), 1)):
        clusters = SpectralClustering(3, features=features, n_jobs=2, random_state=0).fit(blobs[0])
        assert clusters.features_.n_jobs == expected


def test_a_long_curve_has_the_order_of_its_rows():
    r = np.random.default_rng(0)
    t = np.sort(r.random(1500))
    helix = np.column_stack([np.cos(6 * t), np.sin(6 * t), 2 * t]) + 0.01 * r.normal(size=(1500, 3))
    coordinate = SpectralEmbedding(1, random_state=0).fit_transform(helix)[:, 0]
    assert abs(np.corrcoef(np.argsort(np.argsort(coordinate)), np.arange(1500))[0, 1]) > 0.99


def test_unfinished_solve_is_said(rng):
    X = rng.normal(size=(700, 3))
    with pytest.warns(
        ConvergenceWarning, match=r"residuals up to .* after 1 products, above tol=1e-12: increase max_iter"
    ):
        embedding = SpectralEmbedding(random_state=0, tol=1e-12, max_iter=1).fit(X)
    assert embedding.n_iter_ == 1


def test_callbacks_see_products_and_stop(rng):
    X = rng.normal(size=(700, 3))
    callback = Callback("iteration", stop_at=3)
    embedding = SpectralEmbedding(random_state=0, tol=1e-12)
    embedding.set_callbacks(callback)
    with pytest.warns(ConvergenceWarning):
        embedding.fit(X)
    assert embedding.n_iter_ == 3
    assert callback.ended


X = np.random.default_rng(0).normal(size=(30, 2))


@pytest.fixture(scope="module")
def two_clusters():
    return SpectralClustering(2, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_clusters": 31}, ValueError, "n_clusters=31 must be at most n_samples=30"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1, got 0"),
        ({"n_clusters": 2.0}, TypeError, "n_clusters must be an integer"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1, got 0"),
        ({"tol": -1}, ValueError, "tol must be finite and at least 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1, got 0"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None, a positive integer"),
        ({"features": 3}, TypeError, r"features must be a map, such as RandomBinning\(\), or None, got 3"),
        ({"features": RandomBinning}, TypeError, r"features must be a map, such as RandomBinning\(\), or None, got <"),
        (
            {"gamma": "large"},
            TypeError,
            "gamma must be a number, one number per input.*; got 'large'",
        ),
        ({"gamma": [1.0, 2.0, 3.0]}, ValueError, "gamma must be a number or have one value per input, 2 of them"),
        ({"gamma": 1e9}, ValueError, "gamma is too large: no two rows of X share a bin. Decrease gamma"),
        ({"gammas": []}, ValueError, "gammas must be a sequence of at least one gamma, or None"),
        ({"gammas": np.array(3)}, ValueError, "gammas must be a sequence of at least one gamma, or None, got array"),
        ({"gammas": "scale"}, ValueError, "gammas must be a sequence of at least one gamma, or None"),
    ],
)
def test_bad_parameters(two_clusters, parameters, error, message):
    clusters = copy.deepcopy(two_clusters)
    expected = clusters.predict(X)
    clusters.set_params(**parameters)
    with pytest.raises(error, match=message):
        clusters.fit(X)
    np.testing.assert_array_equal(clusters.predict(X), expected)


def test_eigenvectors_that_do_not_fit_in_memory_are_refused(rng, monkeypatch):
    monkeypatch.setattr("binfeat._common.memory.memory_limit", lambda: 10**6)
    known = np.full((5000, 1), 5000**-0.5)
    with pytest.raises(MemoryError, match=r"the search for eigenvectors needs about 3,080,000 bytes.*Use fewer comp"):
        eigenvectors.leading_eigenvectors(lambda V: V, known, 2, tol=1e-4, max_iter=9, seed=0)


def test_bad_rows():
    with pytest.raises(ValueError, match="Input X contains infinity"):
        SpectralClustering(2).fit([[0.0, np.inf], [1.0, 2.0]])
    with pytest.raises(ValueError, match="n_components=30 must be below n_samples=30"):
        SpectralEmbedding(30).fit(X)
    embedding = SpectralEmbedding(random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but SpectralEmbedding is expecting 2"):
        embedding.transform(np.ones((2, 3)))


def test_similarities_below_zero_are_refused(rng):
    fourier = RandomFourier(n_components=4, gamma=50.0, random_state=0)
    with pytest.raises(ValueError, match=r"gamma is too large for the features: row \d+ has a similarity of -"):
        SpectralClustering(2, features=fourier, gamma=None).fit(rng.normal(size=(100, 3)))


def test_attributes_hold_arrays_numbers_and_a_map():
    assert_simple_attributes(SpectralClustering(2, random_state=0).fit(X), X, "predict")
    assert_simple_attributes(SpectralEmbedding(random_state=0).fit(X), X, "transform")


def test_copies_of_rows_do_not_make_grids_fine(rng):
    apart = rng.random(600) < 0.5
    X = np.round(np.where(apart[:, np.newaxis], rng.normal(0, 1, (600, 2)), rng.normal(7, 1, (600, 2))))
    for rows in (X, sparse.csr_matrix(X)):
        found = SpectralClustering(2, random_state=0).fit(rows).labels_
        assert adjusted_rand_score(apart, found) > 0.95  # 0.1 if copies counted as rows of a bin
    few = np.where(apart[:, np.newaxis], rng.integers(0, 3, (600, 2)), rng.integers(8, 11, (600, 2)))
    with pytest.warns(UserWarning, match="X has 18 different rows among 600, .* decrease gamma"):
        SpectralClustering(2, random_state=0).fit(few.astype(float))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_copies_of_rows_with_missing_values_do_not_make_grids_fine(kind, rng):
    X = rng.normal(size=(101, 3))
    X[::2, 2] = np.nan
    gamma = SpectralEmbedding(random_state=0).fit(X).gamma_
    copies = SpectralEmbedding(random_state=0).fit(kind(np.repeat(X, 3, axis=0))).gamma_
    np.testing.assert_allclose(copies, gamma, rtol=1e-12)  # 3 times as high if copies counted


@pytest.mark.parametrize(("n_clusters", "seed"), each_value_once([4, 5], range(3)))
def test_components_come_before_splits(seed, n_clusters):
    X, _ = make_blobs(600, centers=[[0, 0], [8, 0]], random_state=seed)
    X = np.vstack([X, [[50, 50], [50.1, 50], [50, 50.1]]])
    with pytest.warns(
        UserWarning, match="A cluster contains only 3 of 603 rows.*Remove these rows if they are outliers"
    ):
        clusters = SpectralClustering(n_clusters, random_state=seed).fit(X)
    assert set(clusters.labels_[-3:]).isdisjoint(clusters.labels_[:-3])
    assert np.unique(clusters.labels_[-3:]).size == 1
    np.testing.assert_array_equal(clusters.predict(X), clusters.labels_)


def test_few_rows_of_a_component_are_seen_in_a_sample_of_rows(monkeypatch):
    monkeypatch.setattr(clusters_module, "_MOST_ROWS", 60)
    X, _ = make_blobs(900, centers=[[0, 0]], random_state=0)
    X = np.vstack([X, [[50, 50], [50.1, 50], [50, 50.1]]])
    with pytest.warns(UserWarning, match="A cluster contains only 3 of 903 rows"):
        labels = SpectralClustering(3, gamma=0.5, random_state=0).fit(X).labels_
    assert set(labels[-3:]).isdisjoint(labels[:-3])


def test_more_components_than_clusters_are_said(rng):
    X = np.repeat([[0.0, 0], [50, 0], [0, 50], [50, 50]], 30, axis=0) + rng.normal(size=(120, 2))
    with pytest.warns(UserWarning, match=r"4 connected components, more than n_clusters=3"):
        SpectralClustering(3, gamma=0.3, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = SpectralClustering(4, gamma=0.3, random_state=0).fit(X).labels_
    np.testing.assert_array_equal(np.sort(labels.reshape(4, 30).min(axis=1)), range(4))
    np.testing.assert_array_equal(labels.reshape(4, 30).min(axis=1), labels.reshape(4, 30).max(axis=1))


def test_components_of_the_graph(rng):
    X = np.append(np.repeat([[0.0], [50]], 20, axis=0) + 0.1 * rng.normal(size=(40, 1)), [[1000.0]], axis=0)
    Z = RandomBinning(gamma=0.5, n_grids=64, min_count=2, output="codes", random_state=0).fit_transform(X)
    components = neighbors.NeighborGraph(Z, scaled(X), 0).components
    np.testing.assert_array_equal(components, np.repeat([0, 1, -1], [20, 20, 1]))
    np.testing.assert_array_equal(similarity.SimilarityGraph(np.eye(3)[[0, 1, 1]]).components, [0, 0, 0])


@pytest.mark.parametrize("seed", [0, *hard(1)])
@pytest.mark.parametrize("n_rows", [3000, *hard(200, 8000)])
def test_clusters_of_separate_components(n_rows, seed):
    """Within a component, eigenvalues are nearly 1, so vectors with small residuals can mix components."""
    rng, strip = np.random.default_rng(seed), np.arange(n_rows) % 2
    X = np.column_stack([rng.uniform(0, n_rows / 50, size=n_rows), rng.uniform(size=n_rows) + 10 * strip])
    clusters = SpectralClustering(2, gamma=[1.0, 1.0], random_state=0).fit(X)
    assert adjusted_rand_score(strip, clusters.labels_) == 1.0
    assert clusters.eigenvalues_[0] == 1.0
    embedding = SpectralEmbedding(1, gamma=[1.0, 1.0], random_state=0).fit(X).embedding_[:, 0]
    for own in (embedding[strip == 0], embedding[strip == 1]):
        np.testing.assert_allclose(own, own.mean(), rtol=1e-9)


def test_known_vectors(rng):
    """They are orthonormal, have the eigenvalue 1, and are as many as wanted, of the largest components."""
    X = np.repeat([[0.0], [50], [100], [1e4]], [30, 40, 20, 1], axis=0) + 0.1 * rng.normal(size=(91, 1))
    Z = RandomBinning(gamma=0.5, n_grids=64, min_count=2, output="codes", random_state=0).fit_transform(X)
    graph = neighbors.NeighborGraph(Z, scaled(X), 0)
    for most, n_known in ((1, 1), (2, 2), (3, 3), (9, 3)):
        known = graph.known_vectors(most)
        assert known.shape == (91, n_known)
        np.testing.assert_array_equal(known[:, 0], graph.known)
        np.testing.assert_allclose(known.T @ known, np.eye(n_known), atol=1e-12)
        np.testing.assert_allclose(graph.normalized(np.asfortranarray(known)), known, atol=1e-12)
    largest = np.sign(graph.known_vectors(2)[:, 1])
    np.testing.assert_array_equal(largest[30] * largest, np.repeat([-1, 1, -1, 0], [30, 40, 20, 1]))
    found = eigenvectors.leading_eigenvectors(
        graph.normalized, graph.known_vectors(4), 3, tol=1e-6, max_iter=99, seed=0
    )
    np.testing.assert_allclose(found.values[:2], 1.0, atol=1e-12)
    assert found.values[2] < 0.99
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-9)


def clusters_in_child(clusters, X, queue):
    queue.put((clone(clusters).fit(X).labels_, clusters.predict(X)))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_forked_child():
    X, _ = make_moons(600, noise=0.05, random_state=0)
    pairwise_distances_argmin(X, X[:9])  # uses OpenMP threads, which a forked child does not have
    clusters = SpectralClustering(2, random_state=0).fit(X)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=clusters_in_child, args=(clusters, X, queue), daemon=True)
    child.start()
    for labels in queue.get(timeout=120):
        np.testing.assert_array_equal(labels, clusters.labels_)
    child.join(timeout=60)
    assert child.exitcode == 0
