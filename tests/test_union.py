"""Unions of maps: their algebra, and ridge models on them."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from hard import easy, hard
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from solving import LazyFeatures, StackedFeatures

from binfeat import CGRidge, CGRidgeClassifier, RandomBinning, RandomFeatureUnion, RandomFourier, blocks

WEIGHTS = [0.5, 2.0, 1.0]


def parts(output="csr"):
    """Return two binning maps and one of Fourier features."""
    binning = RandomBinning(gamma=0.3, n_grids=9, output=output, random_state=1)
    other = RandomBinning(kernel="hat", gamma=0.2, n_grids=5, n_features=40, output=output, random_state=2)
    return [("bins", binning), ("waves", RandomFourier(n_components=30, random_state=3)), ("hashed", other)]


@pytest.fixture
def table(rng):
    X = rng.normal(size=(200, 3))
    return X, np.sin(X[:, 0]) + np.sign(X[:, 1]), np.array(["low", "mid", "top"])[np.digitize(X[:, 2], [-0.5, 0.5])]


def stacked(X):
    """Return the union, written out."""
    blocks = [part.fit_transform(X) for _, part in parts()]
    dense = [block.toarray() if sparse.issparse(block) else block for block in blocks]
    return np.hstack([np.sqrt(w) * block for w, block in zip(WEIGHTS, dense, strict=True)])


def union(output="csr", **options):
    return RandomFeatureUnion(parts(output), weights=WEIGHTS, **options)


def test_union_is_its_parts_side_by_side(table):
    X, expected = table[0], stacked(table[0])
    Z = union().fit_transform(X)
    assert sparse.issparse(Z)
    assert Z.format == "csr"
    np.testing.assert_allclose(Z.toarray(), expected)
    np.testing.assert_allclose(union().fit(X).transform(X).toarray(), expected)
    dense = union(sparse_output=False).fit(X).transform(X)
    assert isinstance(dense, np.ndarray)
    np.testing.assert_allclose(dense, expected)
    np.testing.assert_allclose(
        RandomFeatureUnion(parts()[:1]).fit_transform(X).toarray(), parts()[0][1].fit_transform(X).toarray()
    )


@pytest.mark.parametrize("chosen", [[0, 1, 2], *hard([0], [1], [0, 2])])
@pytest.mark.parametrize("interface", [None, "sparray"])
def test_unions_return_the_csr_class_of_their_maps(table, interface, chosen):
    if interface is not None and "sparse_interface" not in sklearn.get_config():
        pytest.skip("a setting of scikit-learn from 1.9 on")
    with sklearn.config_context(**({} if interface is None else {"sparse_interface": interface})):
        fitted = RandomFeatureUnion([parts()[i] for i in chosen]).fit(table[0])
        expected = sparse.csr_matrix if interface is None else sparse.csr_array
        assert {type(fitted.transform(table[0])), type(fitted.encode(table[0]).tocsr())} == {expected}


def test_inner_products_approximate_the_sum_of_kernels(rng):
    """Within four standard errors over independent unions."""
    X = rng.normal(size=(12, 2))
    estimates = []
    for seed in range(60):
        binning = RandomBinning(gamma=0.5, n_grids=20, random_state=seed)
        waves = RandomFourier(gamma=0.3, n_components=20, random_state=seed)
        Z = RandomFeatureUnion([("b", binning), ("w", waves)], weights=[2.0, 0.5]).fit_transform(X)
        estimates.append((Z @ Z.T).toarray())
    difference = X[:, None] - X
    exact = 2 * np.exp(-0.5 * np.abs(difference).sum(2)) + 0.5 * np.exp(-0.3 * (difference**2).sum(2))
    error = np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - exact) <= 4 * error + 1e-12).all()


@pytest.mark.parametrize("make", ["transform", "encode"])
def test_blocks(table, rng, make):
    X, expected = table[0], stacked(table[0])
    fitted = union("codes").fit(X)
    Z = getattr(fitted, make)(X)
    assert isinstance(Z, StackedFeatures)
    assert Z.shape == expected.shape
    assert len(Z) == len(X)
    W, V, weights = rng.normal(size=(Z.shape[1], 3)), rng.normal(size=(len(X), 3)), rng.random(len(X))
    np.testing.assert_allclose(Z @ W, expected @ W, atol=1e-12)
    np.testing.assert_allclose(Z.T @ V, expected.T @ V, atol=1e-12)
    np.testing.assert_allclose(Z @ W[:, 0], expected @ W[:, 0], atol=1e-12)
    np.testing.assert_allclose(Z.T @ V[:, 0], expected.T @ V[:, 0], atol=1e-12)
    np.testing.assert_allclose(Z.toarray(), expected)
    np.testing.assert_allclose(Z.tocsr().toarray(), expected)
    np.testing.assert_allclose(Z.gram_diagonal(), (expected**2).sum(axis=0))
    np.testing.assert_allclose(Z.gram_diagonal(weights), weights @ expected**2)
    np.testing.assert_allclose(Z[5:9].toarray(), expected[5:9])
    np.testing.assert_allclose(Z.take([7, 3]).toarray(), expected[[7, 3]])
    np.testing.assert_allclose(Z[weights > 0.5].toarray(), expected[weights > 0.5])
    np.testing.assert_allclose(svds(Z, 2)[1], np.sort(np.linalg.svd(expected)[1][:2]), rtol=1e-8)


@pytest.mark.parametrize("output", ["codes", *hard("csr")])
def test_sources(table, output):
    X, y, _ = table
    weights = np.arange(1.0, 1 + len(y))
    source = blocks(pd.DataFrame(X, columns=list("abc")), y, weights, block_rows=70)
    made = RandomFeatureUnion(parts(output), weights=WEIGHTS).set_params(waves__gamma=0.5)
    expected = clone(made).fit(X).encode(X).toarray()
    Z = clone(made).fit_transform(source)
    np.testing.assert_allclose(Z @ np.eye(Z.shape[1]), expected, atol=1e-12)
    np.testing.assert_array_equal(Z.y, y)
    np.testing.assert_array_equal(Z.sample_weight, weights)
    fitted = pickle.loads(pickle.dumps(clone(made).fit(source)))
    assert list(fitted.feature_names_in_) == list("abc")
    for method in (fitted.transform, fitted.encode):
        np.testing.assert_allclose(method(source) @ np.eye(Z.shape[1]), expected, atol=1e-12)
    ridge = CGRidge(tol=1e-10, max_iter=3000)
    coef = make_pipeline(clone(made), ridge).fit(source)[-1].coef_
    waves = [(name, RandomFourier(n_components=20, gamma=g, random_state=0)) for name, g in (("p", 1.0), ("q", 0.3))]
    of_source = make_pipeline(RandomFeatureUnion(waves), CGRidge()).fit(source)
    in_memory = CGRidge().fit(RandomFeatureUnion(waves, sparse_output=False).fit_transform(X), y, weights)
    assert of_source[-1].solver_ == in_memory.solver_ == "gram"
    np.testing.assert_allclose(of_source[-1].coef_, in_memory.coef_, atol=1e-8)
    nested = RandomFeatureUnion([("scaled", make_pipeline(RandomFourier(gamma=1.0)))]).fit(source)
    assert nested.n_features_in_ == 3
    np.testing.assert_allclose(coef, clone(ridge).fit(expected, y, weights).coef_, atol=1e-6)


@pytest.mark.parametrize("method", ["fit_transform", "transform"])
def test_features_in_files_become_csr_and_arrays(table, method):
    """Codes in a scratch file after `fit_transform`, blocks of a source after `transform`."""
    source = blocks(table[0], table[1], block_rows=70)
    made = union("codes").set_params(bins__max_bytes=10, hashed__max_bytes=10)
    Z = made.fit_transform(source) if method == "fit_transform" else made.fit(source).transform(source)
    assert all(block.computed for block in Z.blocks)
    for rows in (slice(None), slice(None, None, 3), slice(0)):
        for got in (Z[rows].tocsr().toarray(), Z[rows].toarray()):
            np.testing.assert_allclose(got, stacked(table[0])[rows], atol=1e-12)


@pytest.mark.parametrize("place", range(3))
def test_features_of_a_source_become_csr_and_arrays(table, memory_of, place):
    fitted = parts()[place][1].fit(table[0])
    Z, expected = fitted.transform(blocks(table[0], block_rows=70)), fitted.transform(table[0])
    expected = expected.toarray() if sparse.issparse(expected) else expected
    assert type(Z.tocsr()) is type(RandomBinning(gamma=1.0, n_grids=2).fit_transform(table[0]))
    for got in (Z.tocsr().toarray(), Z.toarray()):
        np.testing.assert_allclose(got, expected, atol=1e-12)
    memory_of(1000)
    with pytest.raises(MemoryError, match="the array needs about"):
        Z.toarray()


@pytest.mark.parametrize("kind", [sparse.coo_matrix, sparse.csc_matrix, pd.DataFrame, "nullable"])
def test_blocks_of_any_table(rng, kind):
    X = rng.normal(size=(5000, 3)).astype(np.float32)
    block = pd.DataFrame(X).convert_dtypes() if kind == "nullable" else kind(X)
    Z = StackedFeatures([block, X], [2.0, 1.0])
    expected = np.hstack([2 * X, X])
    np.testing.assert_allclose(Z.T @ X, expected.T @ X, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(Z[4990:].tocsr().toarray(), expected[4990:])
    np.testing.assert_allclose(Z.gram_diagonal(), (expected**2).sum(axis=0), rtol=1e-5)


def test_features_computed_when_needed(table, rng, monkeypatch, bytes_computed_at_a_time):
    X = table[0]
    waves = RandomFourier(n_components=30, random_state=0).fit(X)
    expected = waves.transform(X)
    bytes_computed_at_a_time(30 * 8 * 64)
    Z = waves.encode(X)
    assert isinstance(Z, LazyFeatures)
    assert [features.shape for _, features in Z.row_blocks()] == [(64, 30)] * 3 + [(8, 30)]
    W, V, weights = rng.normal(size=(30, 2)), rng.normal(size=(200, 2)), rng.random(200)
    np.testing.assert_allclose(Z @ W, expected @ W, atol=1e-12)
    np.testing.assert_allclose(Z.T @ V, expected.T @ V, atol=1e-12)
    np.testing.assert_allclose(Z.gram_diagonal(), (expected**2).sum(axis=0))
    np.testing.assert_allclose(Z.gram_diagonal(weights), weights @ expected**2)
    np.testing.assert_allclose(Z[::3].toarray(), expected[::3])
    y = table[1]
    for tol, solver in ((1e-12, "gram"), (1e-12, "cg")):
        monkeypatch.setattr("binfeat.linear.gram._GRAM_COST", 1 / 20 if solver == "gram" else np.inf)
        lazy, whole = (CGRidge(tol=tol, max_iter=1000).fit(form, y) for form in (Z, expected))
        assert lazy.solver_ == whole.solver_ == solver
        np.testing.assert_allclose(lazy.coef_, whole.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "made", [RandomFourier(n_components=6), RandomFourier(n_components=6, sampler="fastfood"), union()]
)
def test_computed_features_of_no_rows(table, made):
    X = table[0]
    Z = clone(made).fit(X).encode(X)
    for none in (np.zeros(len(X), dtype=bool), [], slice(7, 7)):
        assert Z[none].toarray().shape == (0, Z.shape[1])
    for rows in (None, [[0, 1], [2, 3]]):
        with pytest.raises(IndexError, match="take needs row numbers in one dimension"):
            Z[rows]
    np.testing.assert_allclose(Z[[-1]].toarray(), Z.toarray()[-1:], atol=1e-12)


MACHINES = {
    "ridge": CGRidge(alpha=0.3, tol=1e-10, max_iter=3000),
    "path": CGRidge(alphas=[0.1, 1.0, 10.0], tol=1e-10, max_iter=3000, cv=3),
    "classes": CGRidgeClassifier(alpha=0.3, tol=1e-10, max_iter=3000),
    "hinge": CGRidgeClassifier(alpha=0.3, tol=1e-8, max_iter=3000, loss="squared_hinge"),
}


@pytest.mark.parametrize("name", easy(MACHINES, "ridge"))
def test_models_on_blocks_and_on_csr(table, name):
    X, y, labels = table
    target = labels if isinstance(MACHINES[name], CGRidgeClassifier) else y
    weights = np.linspace(0.5, 2, len(X))
    blocks = clone(MACHINES[name]).fit(union("codes").fit_transform(X), target, sample_weight=weights)
    csr = clone(MACHINES[name]).fit(union().fit_transform(X), target, sample_weight=weights)
    np.testing.assert_allclose(blocks.coef_, csr.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(blocks.intercept_, csr.intercept_, rtol=1e-4, atol=1e-6)
    Z = union("codes").fit(X).transform(X)
    np.testing.assert_allclose(blocks.score(Z, target), csr.score(Z.tocsr(), target))
    assert cross_val_score(clone(MACHINES[name]), Z, target, cv=3).shape == (3,)


@pytest.mark.parametrize("dtype", [int, bool, np.float32])
@pytest.mark.parametrize("sparse_output", [True, False])
def test_weights_of_integers_and_flags(table, dtype, sparse_output):
    X = np.arange(12).reshape(-1, 1) % 3
    transformers = [("one_hot", OneHotEncoder(dtype=dtype)), ("bins", RandomBinning(gamma=1.0, n_grids=4))]
    union = RandomFeatureUnion(transformers, weights=[0.25, 1.0], sparse_output=sparse_output).fit(X)
    Z = union.transform(X)
    encoded = union.encode(X)
    for own in (Z.toarray() if sparse_output else Z, encoded.toarray(), encoded.tocsr().toarray()):
        np.testing.assert_array_equal(own[:, :3], 0.5 * np.eye(3)[X[:, 0]])


@pytest.mark.parametrize("dtype", [int, bool])
def test_blocks_of_dense_integers_and_flags(table, dtype):
    X = (table[0] * 2).astype(dtype)
    Z = RandomFeatureUnion([("same", FunctionTransformer())], weights=[0.25]).fit(X).encode(X)
    for own in (Z.toarray(), Z.tocsr().toarray(), Z @ np.eye(3)):
        np.testing.assert_array_equal(own, 0.5 * X)


def test_maps_that_return_nullable_data_frames(table):
    X = pd.DataFrame(table[0], columns=list("abc"))
    maps = [("same", FunctionTransformer(lambda X: X.convert_dtypes())), ("again", StandardScaler())]
    expected = np.hstack([X, StandardScaler().fit_transform(X)])
    np.testing.assert_allclose(RandomFeatureUnion(maps).fit_transform(X).toarray(), expected)


def test_maps_that_return_data_frames(table):
    X = pd.DataFrame(table[0], columns=list("abc"))
    scaler = StandardScaler()
    transformers = [("scaled", scaler), ("again", StandardScaler())]
    union = RandomFeatureUnion(transformers, weights=[4.0, 1.0], sparse_output=False)
    expected = union.fit_transform(X)
    scaler.set_output(transform="pandas")
    np.testing.assert_array_equal(union.fit_transform(X), expected)


@pytest.mark.parametrize("method", ["fit_transform", "transform", "encode"])
@pytest.mark.parametrize("convert", [lambda Z: Z, pd.DataFrame.convert_dtypes, lambda Z: Z.round().astype(int)])
def test_codes_and_maps_that_return_data_frames(table, method, convert):
    X = pd.DataFrame(table[0], columns=list("abc"))
    bins = RandomBinning(gamma=1.0, n_grids=4, output="codes", random_state=0)
    made = RandomFeatureUnion([("bins", bins), ("frame", FunctionTransformer(convert))])
    Z = getattr(made if method == "fit_transform" else made.fit(X), method)(X)
    expected = np.hstack([bins.fit_transform(X).toarray(), convert(X)]).astype(float)
    np.testing.assert_array_equal(Z.toarray(), expected)
    weights = np.arange(Z.shape[1]) / 100
    np.testing.assert_allclose(Z @ weights, expected @ weights)
    ridge = CGRidge(tol=1e-10, max_iter=3000)
    on_arrays = ridge.fit(expected, table[1]).predict(expected)
    np.testing.assert_allclose(ridge.fit(Z, table[1]).predict(Z), on_arrays, atol=1e-7)


def test_names_parameters_and_search(table):
    X, y, _ = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = union(sparse_output=False).fit(frame)
    names = fitted.get_feature_names_out()
    assert names.size == fitted.transform(frame).shape[1]
    assert names[0] == "bins__randombinning_0_0"
    assert "waves__randomfourier29" in names
    assert list(fitted.set_output(transform="pandas").transform(frame).columns) == list(names)
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame[["b", "a", "c"]])
    copy = clone(union()).set_params(bins__n_grids=3, waves__n_components=2)
    assert copy.get_params()["bins__n_grids"] == 3
    assert copy.fit_transform(X).shape[1] == parts()[0][1].set_params(n_grids=3).fit(X).n_bins_ + 2 + 40
    grid = {
        "randomfeatureunion__bins__gamma": [0.1, 1.0],
        "randomfeatureunion__weights": [[1, 0, 0], [1, 1, 1]],
        "cgridge__alpha": [1.0],
    }
    search = GridSearchCV(make_pipeline(union("codes"), CGRidge()), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.5


def test_parameters_are_set_in_order():
    """First the list, then its maps, then their parameters."""
    waves = RandomFourier(n_components=4)
    changed = union().set_params(
        new__n_components=6,
        new=waves,
        transformers=[("old", RandomBinning()), ("new", RandomBinning())],
        old__n_grids=3,
    )
    assert [name for name, _ in changed.transformers] == ["old", "new"]
    assert changed.transformers[1][1] is waves
    assert changed.get_params()["new"] is waves
    assert (changed.transformers[0][1].n_grids, waves.n_components) == (3, 6)
    assert set(changed.get_params(deep=False)) == {"transformers", "weights", "sparse_output"}
    given = changed.get_params()
    assert given["old__n_grids"] == 3
    assert clone(changed).get_params().keys() == given.keys()


def test_a_map_that_is_replaced_leaves_the_list_of_the_caller_alone():
    given = parts()
    changed = RandomFeatureUnion(given).set_params(bins=RandomFourier())
    assert isinstance(given[0][1], RandomBinning)
    assert isinstance(changed.transformers[0][1], RandomFourier)


def test_unknown_parameters_are_refused():
    for name in ("missing", "missing__n_grids", "bins__missing"):
        with pytest.raises(ValueError, match="Invalid parameter 'missing'"):
            union().set_params(**{name: 1})


@pytest.mark.parametrize("given", [None, "ab", [RandomBinning()], [("a", RandomBinning()), 3], [(1, RandomBinning())]])
def test_parameters_of_a_union_that_fit_would_refuse(given):
    assert RandomFeatureUnion(given).get_params() == {"transformers": given, "weights": None, "sparse_output": True}
    assert RandomFeatureUnion(given).set_params(transformers=parts()).get_params()["bins__n_grids"] == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transformers": []}, r"transformers must be a list of \(name, transformer\) pairs, got \[\]"),
        ({"transformers": "ab"}, "transformers must be a list of"),
        ({"transformers": [("a", 3)]}, r"it contains \('a', 3\)"),
        ({"transformers": [RandomBinning()]}, "it contains RandomBinning"),
        (
            {"transformers": [("a", RandomBinning()), ("a", RandomBinning())]},
            r"must have unique names, got \['a', 'a'\]",
        ),
        ({"transformers": [("a__b", RandomBinning())]}, r"names without '__' that are not parameters, got \['a__b'\]"),
        ({"transformers": [("weights", RandomBinning())]}, r"that are not parameters, got \['weights'\]"),
        ({"weights": [1.0]}, r"weights must be one number per transformer, 3; got \[1.0\]"),
        ({"weights": "abc"}, "weights must be one number per transformer, 3; got 'abc'"),
        ({"weights": [1, -1, 1]}, "weights must be finite and non-negative"),
        ({"weights": [1, np.nan, 1]}, "weights must be finite and non-negative"),
    ],
)
def test_bad_parameters(table, options, message):
    with pytest.raises(ValueError, match=message):
        RandomFeatureUnion(**{"transformers": parts()} | options).fit(table[0])


def test_other_width_is_refused(table):
    with pytest.raises(ValueError, match="X has 2 features, but RandomFeatureUnion is expecting 3"):
        union().fit(table[0]).transform(table[0][:, :2])


def test_rows_that_are_no_table_are_refused(table):
    fitted = union().fit(table[0])
    for call in (fitted.transform, fitted.encode):
        for row in (np.ones(3), [1.0, 2.0, 3.0], pd.Series([1.0, 2.0, 3.0])):
            with pytest.raises(ValueError, match=r"Expected (2D array, got 1D array|a 2-dimensional container)"):
                call(row)


def test_weights_of_rows_reach_the_maps_that_accept_them(rng):
    X = rng.normal(size=(60, 2))
    y, weights = np.where(np.arange(60) < 30, X[:, 0], X[:, 1]), np.repeat([1.0, 0.0], 30)
    binning = RandomBinning(gamma="learn", n_grids=20, random_state=0)
    expected = clone(binning).fit(X, y, weights).gamma_
    union = RandomFeatureUnion([("bins", binning), ("plain", FunctionTransformer())])
    for fit in (clone(union).fit, clone(union).fit_transform):
        fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(fit.__self__.transformers_[0][1].gamma_, expected)
    with sklearn.config_context(enable_metadata_routing=True):
        steps = clone(union).set_fit_request(sample_weight=True), CGRidge().set_fit_request(sample_weight=True)
        fitted = make_pipeline(*steps).fit(X, y, sample_weight=weights)[0]
    np.testing.assert_array_equal(fitted.transformers_[0][1].gamma_, expected)
    assert (clone(binning).fit(X, y).gamma_ != expected).any()
