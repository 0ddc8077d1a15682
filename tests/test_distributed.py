"""The same results on Dask as in memory, for any chunks and dataframes; test_distributed_cluster.py uses processes."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hard import each_value_once, easy, hard
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

import binfeat

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")
dask_bag = pytest.importorskip("dask.bag")

from dask import delayed  # noqa: E402

import binfeat.distributed as remote  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_scheduler")
N = 1200
CHUNKS = [(N,), (500, 0, 699, 1), (97,) * 12 + (36,), (0, 0, 400, 800)]
NAMES = ["a", "b", "c"]


def name_of(value):
    """Return the name of a chunk by its number."""
    return f"{len(value)} chunks" if isinstance(value, tuple) else str(value)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)).round(1)
    X[::50, 1] = np.nan
    return X, np.sin(2 * X[:, 0]) + X[:, 2] + 0.1 * rng.normal(size=N), rng.uniform(size=N)


def binnings(**options):
    options = {"gamma": 0.5, "n_grids": 15, "output": "codes", "random_state": 0, **options}
    return binfeat.RandomBinning(**options), remote.RandomBinning(**options)


def chunked(values, chunks):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


def frame(X, npartitions=3):
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=npartitions)


def assert_same_map(got, expected):
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray | float | int):
            np.testing.assert_array_equal(getattr(got, name), value, err_msg=name)


def assert_same_model(got, expected, rtol=1e-4):
    np.testing.assert_allclose(got.coef_, expected.coef_, rtol=0, atol=rtol * np.abs(expected.coef_).max())
    np.testing.assert_allclose(got.intercept_, expected.intercept_, rtol=rtol, atol=rtol)
    for name in ("coef_", "intercept_"):
        assert type(getattr(got, name)) is type(getattr(expected, name))
        assert getattr(got, name).dtype == getattr(expected, name).dtype
    assert got.n_features_in_ == expected.n_features_in_
    assert got.solver_ == expected.solver_
    assert got.alpha_ == expected.alpha_
    assert got.status_ == expected.status_


@pytest.mark.parametrize(
    ("options", "chunks"),
    each_value_once([{"gamma": "scale"}, {"min_count": 3}, {"n_features": 1000}], CHUNKS),
    ids=name_of,
)
def test_same_bins_in_the_same_columns(rows, chunks, options):
    X = rows[0]
    here, there = binnings(**options)
    Z, blocks = here.fit_transform(X), there.fit_transform(chunked(X, chunks))
    assert_same_map(there, here)
    assert_same_map(clone(there).fit(chunked(X, chunks)), here)
    assert blocks.shape == Z.shape
    assert blocks.dtype == Z.dtype
    for made in (blocks.compute(), there.encode(chunked(X, chunks)).compute(), there.transform(X)):
        np.testing.assert_array_equal(made.codes, Z.codes)
        assert made.codes.dtype == Z.codes.dtype


def test_csr_chunks(rows):
    X = rows[0].astype(np.float32)
    here, there = binnings(output="csr")
    Z = there.fit_transform(chunked(X, CHUNKS[1]))
    expected = here.fit_transform(X)
    for made in (Z, there.transform(chunked(X, CHUNKS[2]))):
        assert type(made._meta) is type(expected)
        assert made.dtype == np.float32
        assert (made.compute() != expected).nnz == 0
        assert made.compute().dtype == np.float32


def test_unseen_shares(rows):
    X = rows[0]
    here, there = (binning.fit(X[:100]) for binning in binnings())
    shares = there.unseen_shares(chunked(X, CHUNKS[2]))
    assert (shares.chunks[0], shares.dtype) == (CHUNKS[2], np.float64)
    np.testing.assert_array_equal(shares.compute(), here.unseen_shares(X))


def test_methods_are_available_as_in_memory():
    for options in ({"gamma": "scale"}, {"gamma": 1.0}, {"gamma": 1.0, "n_features": 10}):
        for method in ("partial_fit", "unseen_shares"):
            here, there = (hasattr(binning, method) for binning in binnings(**options))
            assert here == there


def test_columns_in_chunks(rows):
    X = rows[0]
    here, there = binnings()
    there.fit(da.from_array(X, chunks=(500, 2)))
    assert_same_map(there, here.fit(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dataframes(rows, dtype):
    X, y, weights = rows
    X = X.astype(dtype)
    here, there = binnings(categorical_features=["c"], gamma="scale")
    X[:, 2] = np.rint(X[:, 2])
    table = frame(X)
    Z = here.fit_transform(pd.DataFrame(X, columns=NAMES))
    blocks = there.fit_transform(table)
    assert_same_map(there, here)
    np.testing.assert_array_equal(there.feature_names_in_, NAMES)
    np.testing.assert_array_equal(blocks.compute().codes, Z.codes)
    assert blocks.dtype == Z.dtype
    assert np.isnan(blocks.shape[0])
    series = dd.from_pandas(pd.DataFrame({"y": y, "w": weights}), npartitions=3)
    model = remote.CGRidge(tol=1e-5).fit(blocks, series["y"], series["w"])
    expected = binfeat.CGRidge(tol=1e-5).fit(Z, y, weights)
    assert_same_model(model, expected, rtol=1e-3)
    np.testing.assert_allclose(model.predict(there.transform(table)).compute(), expected.predict(Z), atol=1e-3)
    assert model.score(blocks, series["y"]) == pytest.approx(expected.score(Z, y), abs=1e-4)
    assert model.score(Z, y) == pytest.approx(expected.score(Z, y), abs=1e-4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "bool", "float16", "float64"])
def test_float_types_of_frames_with_several_types_are_those_of_memory(rows, dtype):
    table = pd.DataFrame({"a": rows[0][:, 0].astype(np.float32), "b": (rows[1] > 0).astype(dtype)})
    for name in ("RandomFourier", "RandomBinning"):
        here, there = (getattr(module, name)(gamma=1.0, random_state=0) for module in (binfeat, remote))
        features = there.fit_transform(dd.from_pandas(table, npartitions=2))
        expected = here.fit_transform(table)
        assert features.dtype == features.compute().dtype == expected.dtype


def test_columns_of_files(rows, tmp_path):
    """Dask reads several files together if it needs few of their columns."""
    X, y, weights = rows
    own = pd.DataFrame(X, columns=NAMES).fillna(0.0).assign(more=1.0, y=y, w=weights)
    dd.from_pandas(own, npartitions=5).to_parquet(tmp_path)
    table = dd.read_parquet(tmp_path)
    assert len(table["y"].to_delayed()) < table.npartitions
    expected = binfeat.CGRidge(tol=1e-5).fit(own.drop(columns=["y", "w"]), y, weights)
    model = remote.CGRidge(tol=1e-5).fit(table.drop(columns=["y", "w"]), table["y"], table["w"])
    assert_same_model(model, expected)
    score = model.score(table.drop(columns=["y", "w"]), table["y"])
    assert score == pytest.approx(expected.score(own.drop(columns=["y", "w"]), y), abs=1e-4)
    grids = {"gamma": 0.5, "n_grids": 8, "random_state": 0}
    Z = remote.RandomBinning(**grids).fit_transform(table[NAMES])
    assert Z.shape[1] == binfeat.RandomBinning(**grids).fit_transform(own[NAMES]).shape[1]
    options = {"max_steps": 3, "max_rows": 50, "random_state": 0}
    learned = remote.learn_gamma(table[NAMES], table["y"], sample_weight=weights, **options)
    expected = remote.learn_gamma(chunked(own[NAMES].to_numpy(), 500), y, sample_weight=weights, **options)
    np.testing.assert_array_equal(learned.gamma, expected.gamma)


@pytest.mark.parametrize(
    "other",
    [
        lambda y: y,
        lambda y: y.tolist(),
        lambda y: dd.from_pandas(pd.Series(y), npartitions=2),
        lambda y: dd.from_pandas(pd.DataFrame({"y": y}), npartitions=7),
        lambda y: chunked(y, 97),
        lambda y: dd.from_pandas(pd.Series(y), npartitions=7).to_dask_array(),
    ],
    ids=["array", "list", "few", "many", "dask", "unknown"],
)
def test_targets_in_other_chunks(rows, other):
    X, y, weights = np.nan_to_num(rows[0]), *rows[1:]
    expected = binfeat.CGRidge(tol=1e-5).fit(X, y, weights)
    for table in (frame(X), chunked(X, CHUNKS[1])):
        model = remote.CGRidge(tol=1e-5).fit(table, other(y), weights)
        np.testing.assert_allclose(model.coef_.ravel(), expected.coef_, atol=1e-5)


def test_frames_that_turn_out_to_have_no_rows(rows):
    table = frame(rows[0])
    none = table[table[NAMES[0]] > 1e9]
    with pytest.raises(ValueError, match="X has no rows in any chunk; at least one is needed"):
        binnings()[1].fit(none)
    with pytest.raises(ValueError, match="X has no rows in any chunk; at least one is needed"):
        remote.RandomFourier(gamma="scale").fit(none)
    binning = binnings()[1].fit(table)
    with pytest.raises(ValueError, match="X has no rows in any chunk; at least one is needed"):
        remote.CGRidge().fit(binning.transform(none), none[NAMES[0]])
    fourier = remote.RandomFourier(n_components=4, gamma=1.0, random_state=0).fit(table)
    assert fourier.transform(none).compute().shape == (0, 4)


@pytest.mark.parametrize(("gamma", "chunks"), each_value_once(["scale", 0.3], CHUNKS), ids=name_of)
def test_fourier_features_and_gram(rows, chunks, gamma):
    X, y, weights = rows
    X = np.nan_to_num(X)
    options = {"gamma": gamma, "n_components": 40, "random_state": 0}
    here, there = binfeat.RandomFourier(**options), remote.RandomFourier(**options)
    Z, features = here.fit_transform(X, y, weights), there.fit_transform(chunked(X, chunks), y, weights)
    assert_same_map(there, here)
    assert features.chunks == (tuple(n for n in chunks if n), (40,))
    np.testing.assert_allclose(features.compute(), Z, atol=1e-14)  # BLAS rounds products of a single row differently
    np.testing.assert_array_equal(there.transform(X), Z)
    weights = np.where(np.arange(N) < 400, 0, weights)  # in one case the first chunk has weights of 0
    for intercept in (True, False):
        model = remote.CGRidge(fit_intercept=intercept).fit(features, y, weights)
        expected = binfeat.CGRidge(fit_intercept=intercept).fit(Z, y, weights)
        assert model.solver_ == "gram"
        assert_same_model(model, expected, rtol=1e-9)
    assert model.traffic_.tolist() == [[0, 8 * 40 * 41]]


@pytest.mark.parametrize("chunks", [CHUNKS[1], *hard((CHUNKS[0],), (CHUNKS[2],), (CHUNKS[3],))], ids=len)
@pytest.mark.parametrize("container", ["codes", *hard("csr")])
def test_ridge(rows, chunks, container):
    X, y, weights = rows
    here, there = binnings(output=container)
    Z, blocks = here.fit_transform(X), there.fit_transform(chunked(X, chunks))
    Y = np.column_stack([y, y**2])
    for options, target, own in [
        ({}, y, None),
        ({"fit_intercept": False}, y, weights),
        ({"alpha": np.array([1.0, 3.0])}, Y, weights),
    ]:
        expected = binfeat.CGRidge(tol=1e-6, **options).fit(Z, target, own)
        model = remote.CGRidge(tol=1e-6, **options)
        assert model.fit(blocks, chunked(target, (700, 500)), own) is model
        if np.ndim(model.alpha_):
            model.alpha_ = expected.alpha_ = 0.0
        assert_same_model(model, expected)
        lazy = model.predict(blocks)
        assert lazy.shape == target.shape
        np.testing.assert_allclose(lazy.compute(), expected.predict(Z), atol=1e-4)
        np.testing.assert_array_equal(model.predict(Z).shape, target.shape)


@pytest.mark.parametrize(
    "choice", [{"alphas": [1.0, 0.1]}, {"early_stopping": True}, *hard({"alphas": [1.0, 0.1], "cv": 3})]
)
def test_rows_held_out_are_those_of_memory(rows, choice):
    X, y, _ = rows
    here, there = binnings()
    Z, blocks = here.fit_transform(X), there.fit_transform(chunked(X, CHUNKS[1]))
    expected = binfeat.CGRidge(tol=1e-2, random_state=0, **choice).fit(Z, y)
    model = remote.CGRidge(tol=1e-2, random_state=0, **choice).fit(blocks, y)
    assert_same_model(model, expected, rtol=1e-9)
    if "alphas" in choice:
        np.testing.assert_allclose(model.path_scores_, expected.path_scores_, atol=1e-9)
    labels = np.where(y > 0, "yes", "no")
    expected = binfeat.CGRidgeClassifier(random_state=0, **choice).fit(Z, labels)
    assert_same_model(remote.CGRidgeClassifier(random_state=0, **choice).fit(blocks, labels), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("n_classes", "class_weight"),
    easy(product([2, 3], [None, "balanced", {"a": 2.0}]), (2, {"a": 2.0}), (3, "balanced")),
)
def test_classes(rows, class_weight, n_classes):
    X, y, weights = rows
    here, there = binnings()
    Z, blocks = here.fit_transform(X), there.fit_transform(chunked(X, CHUNKS[1]))
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5][: n_classes - 1])]
    options = {"tol": 1e-6, "class_weight": class_weight}
    expected = binfeat.CGRidgeClassifier(**options).fit(Z, labels, weights)
    model = remote.CGRidgeClassifier(**options).fit(blocks, chunked(labels, (N,)), chunked(weights, (N,)))
    assert_same_model(model, expected)
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    scores, predicted = model.decision_function(blocks), model.predict(blocks)
    np.testing.assert_allclose(scores.compute(), expected.decision_function(Z), atol=1e-4)
    np.testing.assert_array_equal(predicted.compute(), expected.predict(Z))
    assert model.score(blocks, labels, weights) == pytest.approx(expected.score(Z, labels, weights), abs=1e-12)
    assert scores.shape == expected.decision_function(Z).shape
    assert predicted.dtype == labels.dtype


@pytest.mark.parametrize("kind", [remote.CGRidgeClassifier, remote.KernelMachineClassifier])
def test_labels_that_are_numbers_in_some_chunks_and_strings_in_others_are_refused(kind):
    X = da.from_array(np.arange(40.0).reshape(20, 2), chunks=(10, 2))
    y = da.from_array(np.array([1, 2] * 5 + ["1", "b"] * 5, dtype=object), chunks=10)
    with pytest.raises(TypeError, match="y must have labels of one kind, all numbers or all strings, but some chunks"):
        kind().fit(X, y)


@pytest.mark.parametrize("kind", [np.asarray, partial(da.from_array, chunks=700)])
def test_scores_of_labels_that_are_objects(rows, kind):
    X, y, _ = rows
    X, labels = np.nan_to_num(X), (y > 0).astype(int).astype(object)
    expected = binfeat.CGRidgeClassifier().fit(X, labels).score(X, labels)
    dX = chunked(X, CHUNKS[1])
    assert remote.CGRidgeClassifier().fit(dX, kind(labels)).score(dX, kind(labels)) == expected


def test_declared_dtypes_of_predictions_for_float32_features(rows):
    X, y, _ = rows
    blocks = chunked(X[:, [0, 2]].astype(np.float32), CHUNKS[1])
    predicted = remote.CGRidge().fit(blocks, chunked(y, (N,))).predict(blocks)
    scores = remote.CGRidgeClassifier().fit(blocks, chunked(y > 0, (N,))).decision_function(blocks)
    assert predicted.dtype == predicted.compute().dtype == scores.dtype == scores.compute().dtype == np.float64


def test_pipeline_and_warm_start(rows):
    X, y, _ = rows
    model = make_pipeline(binnings()[1], remote.CGRidge(tol=1e-3, warm_start=True))
    expected = make_pipeline(binnings()[0], binfeat.CGRidge(tol=1e-3)).fit(X, y)
    model.fit(chunked(X, CHUNKS[1]), y)
    assert_same_model(model[-1], expected[-1], rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-9)
    assert model.fit(chunked(X, CHUNKS[1]), y)[-1].n_iter_ == 1


def test_what_takes_rows_in_memory_only(rows):
    X, y, _ = rows
    there = binnings()[1]
    Z, blocks, sets = there.fit_transform(X), there.fit_transform(chunked(X, CHUNKS[1])), np.stack([y > 0, y > 1], 1)
    with pytest.raises(TypeError, match="partial_fit requires rows in memory, got a Dask collection"):
        remote.CGRidge().partial_fit(blocks, y)
    assert_same_model(remote.CGRidge().partial_fit(Z, y), binfeat.CGRidge().partial_fit(Z, y), rtol=1e-12)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        remote.CGRidgeClassifier().fit(blocks, sets)
    model = remote.CGRidgeClassifier().fit(Z, sets)
    np.testing.assert_array_equal(model.predict(blocks).compute(), model.predict(Z))


def test_rows_in_memory_are_taken_too(rows):
    X, y, _ = rows
    here, there = binnings()
    assert_same_map(there.fit(X), here.fit(X))
    assert_same_map(there.partial_fit(X[:10] + 9), here.partial_fit(X[:10] + 9))
    Z = here.fit_transform(X)
    assert_same_model(remote.CGRidge().fit(there.fit_transform(X), y), binfeat.CGRidge().fit(Z, y), rtol=1e-12)
    expected = binfeat.CGRidgeClassifier().fit(Z, y > 0)
    model = remote.CGRidgeClassifier().fit(Z, y > 0)
    assert_same_model(model, expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(Z), expected.predict(Z))
    X = np.nan_to_num(X)
    assert_same_map(remote.RandomFourier(random_state=0).fit(X), binfeat.RandomFourier(random_state=0).fit(X))
    learned = remote.learn_gamma(X, y, max_steps=2, random_state=0)
    np.testing.assert_array_equal(learned.gamma, binfeat.learn_gamma(X, y, max_steps=2, random_state=0).gamma)


def test_widths_from_a_sample_that_does_not_depend_on_chunks(rows):
    X, y, weights = rows
    options = {"max_steps": 3, "random_state": 0}
    expected = binfeat.learn_gamma(X, y, sample_weight=weights, **options)
    table = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y, w=weights), npartitions=3)
    learned = remote.learn_gamma(table[NAMES], table["y"], sample_weight=table["w"], **options)
    np.testing.assert_array_equal(learned.gamma, expected.gamma)
    small = [
        remote.learn_gamma(chunked(X, chunks), y, sample_weight=2.0, max_rows=200, **options).gamma for chunks in CHUNKS
    ]
    for other in small[1:]:
        np.testing.assert_array_equal(other, small[0])
    assert (small[0] != expected.gamma).any()


def test_masked_values_are_missing_in_samples_of_several_chunks(rows):
    X, y, _ = rows
    options = {"max_steps": 3, "random_state": 0}
    expected = binfeat.learn_gamma(X, y, **options)
    for chunks in CHUNKS[:2]:
        masked = da.ma.masked_equal(chunked(np.where(np.isnan(X), -999.0, X), chunks), -999.0)
        learned = remote.learn_gamma(masked, y, **options)
        np.testing.assert_array_equal(learned.gamma, expected.gamma)


@pytest.mark.parametrize("kind", [np.ma.asarray, partial(da.from_array, chunks=500)])
def test_masked_groups_of_ridge_models_are_missing(rows, kind):
    X, y, _ = rows
    groups = kind(np.ma.masked_equal(np.arange(N) // 10, 3))
    with pytest.raises(ValueError, match="groups must not contain missing values, but 10 of 1,200 rows have one"):
        remote.CGRidge(alphas=[1.0, 0.1]).fit(chunked(np.nan_to_num(X), CHUNKS[1]), y, groups=groups)


@pytest.mark.parametrize("name", ["RandomBinning", "RandomFourier"])
def test_maps_that_learn_draw_from_a_random_state_as_in_memory(rows, name):
    X, y = np.nan_to_num(rows[0][:100]), rows[1][:100]
    here, there = (
        getattr(module, name)(gamma="learn", random_state=np.random.RandomState(3)) for module in (binfeat, remote)
    )
    assert_same_map(there.fit(chunked(X, (60, 40)), y), here.fit(X, y))


def test_traffic_is_one_block_out_and_one_sum_back(rows):
    X, y, _ = rows
    blocks = binnings()[1].fit_transform(chunked(X, CHUNKS[1]))
    with pytest.warns(ConvergenceWarning, match="after 55 iterations"):
        model = remote.CGRidge(tol=0, max_iter=55).fit(blocks, np.column_stack([y, y**2]))
    assert model.traffic_.shape == (56, 2)  # one product recomputes the residual after 50 iterations
    assert (model.traffic_ == 2 * 8 * blocks.shape[1]).all()


def lying(parts, meta):
    """Return an array or a frame of these chunks, with a wrong `meta`."""
    if isinstance(meta, pd.DataFrame):
        return dd.from_delayed([delayed(part) for part in parts], meta=meta, verify_meta=False)
    return da.concatenate([da.from_delayed(delayed(part), (len(part), 3), meta=meta) for part in parts])


def bad_chunks():
    good = np.ones((5, 3))
    table = pd.DataFrame(good, columns=NAMES)
    kinds = table.assign(c=pd.Categorical([1, 2, 1, 2, 1]))
    others = table.assign(c=pd.Categorical([1, 3, 1, 3, 1]))
    return [
        ([good, good[:, :2]], good[:0], ValueError, r"it must have the shape \(n_rows, 3\), got \(5, 2\)"),
        (
            [good, good.astype(np.float32)],
            good[:0],
            TypeError,
            "it must have the dtype of the collection, float64; got float32",
        ),
        ([good, good * np.inf], good[:0], ValueError, "Input X contains infinity"),
        ([good, good / 2], good[:0], ValueError, "Input 0 is in categorical_features"),
        (
            [table, table[["a", "c", "b"]]],
            table[:0],
            ValueError,
            r"its columns must be \['a', 'b', 'c'\], got \['a', 'c'",
        ),
        (
            [table, table.astype({"b": int})],
            table[:0],
            TypeError,
            "column 'b' must have the dtype of the collection, .*float64.* got .*int64",
        ),
        ([kinds, others], kinds[:0], TypeError, "column 'c' must have the dtype of the collection, CategoricalDtype"),
    ]


@pytest.mark.parametrize(("parts", "meta", "kind", "message"), bad_chunks())
def test_errors_name_the_chunk(parts, meta, kind, message):
    with pytest.raises(kind, match=f"Chunk 1 of X: {message}"):
        binnings(categorical_features=[0])[1].fit(lying(parts, meta))


def test_a_chunk_of_targets_with_two_dimensions_is_named():
    parts = [da.from_delayed(delayed(np.ones)(shape), (5,), meta=np.empty(0)) for shape in (5, (5, 1))]
    with pytest.raises(ValueError, match=r"Chunk 1 of y: it must have the shape \(n_rows,\), got \(5, 1\)"):
        remote.CGRidge().fit(da.ones((10, 2), chunks=(5, 2)), da.concatenate(parts))


@pytest.mark.parametrize("X", [da.ones(10, chunks=5), dd.from_pandas(pd.Series(np.ones(10)), npartitions=2)])
def test_rows_of_one_dimension_are_refused(X):
    for model in (remote.KernelMachineRegressor(), remote.CGRidge(), remote.RandomFourier(gamma=1.0), binnings()[1]):
        with pytest.raises(ValueError, match=r"X must have two dimensions, \(n_rows, n_inputs\), got one. Pass"):
            model.fit(X, X)


@pytest.mark.parametrize(("y", "kind"), [("target", "str"), (5, "int"), ({1, 2}, "set")])
def test_a_scalar_instead_of_targets_or_groups_is_refused(rows, y, kind):
    X = chunked(np.nan_to_num(rows[0]), CHUNKS[1])
    message = f" must have at least one value per row of X, got {kind}"
    for model in (remote.CGRidge(), remote.KernelMachineRegressor()):
        with pytest.raises(ValueError, match=f"y{message}"):
            model.fit(X, y)
    with pytest.raises(ValueError, match=f"groups{message}"):
        remote.KernelMachineRegressor().fit(X, rows[1], groups=y)


def test_errors_of_features_and_targets_name_the_chunk(rows):
    X, y, weights = rows
    Z, y = frame(X[:, ::2][:, [0, 1, 1]], 2), y.copy()
    short = dd.from_delayed([delayed(pd.Series(y[:600])), delayed(pd.Series(y[600:-1]))], meta=pd.Series(y[:0]))
    with pytest.raises(ValueError, match="Chunk 1 of X: it has 600 rows, and the chunk of y has 599"):
        remote.CGRidge().fit(Z, short)
    for wrong in (frame(X[1:], 3)["a"], y[1:], chunked(y[1:], 100)):
        with pytest.raises(ValueError, match="X has 1200 rows, y has 1199"):
            remote.CGRidge().fit(Z, wrong)
    Z = chunked(np.nan_to_num(X), (700, 500))
    with pytest.raises(ValueError, match="X has 1200 rows, y has 1199"):
        remote.CGRidge().fit(Z, y[1:])
    y[-1] = np.nan
    with pytest.raises(ValueError, match="Chunk 1 of X: Input y contains NaN"):
        remote.CGRidge().fit(Z, y)
    weights = np.where(np.arange(N) < 700, 1.0, -1.0)
    with pytest.raises(ValueError, match="Chunk 1 of X: sample_weight must be finite and non-negative"):
        remote.CGRidge().fit(Z, np.ones(N), weights)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        remote.CGRidge().fit(Z, np.ones(N), 0.0)
    with pytest.raises(ValueError, match="Chunk 1 of y: it must have 600 rows, as the chunk of X; got 599"):
        remote.learn_gamma(frame(X, 2), short)


@pytest.mark.parametrize("gamma", ["scale", 1.0, "learn"])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (0.0, "sample_weight is zero for every row"),
        (np.zeros(N), "sample_weight is zero for every row"),
        (np.ones(N - 1), "X has 1200 rows, sample_weight has 1199"),
        (-np.ones(N), "sample_weight must be finite and non-negative"),
        ("one", "sample_weight must be numbers"),
    ],
)
def test_maps_check_weights(rows, weights, message, gamma):
    X, y, _ = rows
    for kind in (remote.RandomBinning, remote.RandomFourier):
        with pytest.raises((TypeError, ValueError), match=message):
            kind(gamma=gamma).fit(chunked(np.nan_to_num(X), CHUNKS[1]), y, weights)


@pytest.mark.parametrize("gamma", ["scale", 1.0])
def test_maps_compare_the_lengths_of_frames_and_weights(rows, gamma):
    table, weights = frame(rows[0], 2), dd.from_pandas(pd.Series(np.ones(N // 3)), npartitions=2)
    with pytest.raises(ValueError, match=r"must have one value per row, shape \(600,\); got shape \(200,\)"):
        remote.RandomBinning(gamma=gamma).fit(table, sample_weight=weights)


def test_other_bad_input(rows):
    X, y, _ = rows
    dX = chunked(X, CHUNKS[1])
    binning = binnings()[1]
    with pytest.raises(TypeError, match="X must be a Dask array of one or two dimensions or a Dask dataframe, got Bag"):
        binning.fit(dask_bag.from_sequence([1, 2]))
    with pytest.raises(ValueError, match="X has no rows in any chunk"):
        binning.fit(chunked(X[:0], (0,)))
    with pytest.raises(TypeError, match="partial_fit requires rows in memory"):
        binning.partial_fit(dX)
    with pytest.raises(ValueError, match="n_grids must be at least 1"):
        binnings(n_grids=0)[1].fit(dX)
    blocks = binning.fit_transform(dX)
    with pytest.raises(ValueError, match="X has 2 features, but RandomBinning is expecting 3"):
        binning.transform(dX[:, :2])
    with pytest.raises(ValueError, match="X has no rows in any chunk"):
        remote.CGRidge().fit(blocks.tocsr()[:0], y[:0])
    with pytest.raises(ValueError, match="Sums of products of X and y, or coefficients"):
        remote.CGRidge().fit(chunked(1e200 * np.arange(X.size).reshape(X.shape), CHUNKS[1]), y)
    with pytest.raises(ValueError, match=r"y must have at least two classes, got one class: .*1"):
        remote.CGRidgeClassifier().fit(blocks, np.ones(N, int))
    with pytest.raises(ValueError, match="loss must be 'squared_error' for a Dask collection, got 'squared_hinge'"):
        remote.CGRidgeClassifier(loss="squared_hinge").fit(blocks, y > 0)
    with pytest.raises(ValueError, match="requires y to be passed"):
        remote.CGRidge().fit(blocks, None)
    model = remote.CGRidge().fit(blocks, y)
    with pytest.raises(ValueError, match="X has 3 features, but CGRidge is expecting"):
        model.predict(dX)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"warm_start": "a"}, "warm_start must be"),
        ({"alpha": -1.0}, "alpha must be finite and non-negative"),
        ({"alphas": [1.0, -1.0]}, "alphas must be finite and non-negative"),
        ({"alphas": [1.0], "early_stopping": True}, "early_stopping=True does not support alphas"),
        (
            {"n_posterior_samples": 2},
            "n_posterior_samples=2 needs rows in memory .*; set it to None",
        ),
        ({"probability": True}, "probability=True needs rows in memory or a source of blocks; set it to False"),
        ({"loss": "squared_hinge"}, "loss must be 'squared_error' for a Dask collection"),
    ],
)
def test_parameters_are_checked_before_the_first_chunk_is_computed(options, message):
    kind = remote.CGRidgeClassifier if options.keys() & {"probability", "loss"} else remote.CGRidge
    X = da.zeros((N, 3), chunks=(600, 3)).map_blocks(pytest.fail, meta=np.empty((0, 3)))
    with pytest.raises((TypeError, ValueError), match=message):
        kind(**options).fit(X, np.arange(N) % 2)


def test_a_flag_of_numpy_is_a_flag(rows):
    X, y, _ = rows
    X, labels = np.nan_to_num(X), y > 0
    model = remote.CGRidgeClassifier(probability=np.False_, early_stopping=np.False_)
    expected = binfeat.CGRidgeClassifier().fit(X, labels)
    assert_same_model(model.fit(chunked(X, CHUNKS[1]), labels), expected, rtol=1e-9)


def test_traffic_is_of_the_last_fit(rows):
    X, y, _ = rows
    X = np.nan_to_num(X)
    model = remote.CGRidge().fit(chunked(X, CHUNKS[1]), y)
    assert len(model.traffic_)
    assert not hasattr(model.fit(X, y), "traffic_")


def test_error_bars_are_of_rows_in_memory(rows):
    X, y, _ = rows
    X, lazy = np.nan_to_num(X), chunked(np.nan_to_num(X), (600, 600))
    model = remote.CGRidge(n_posterior_samples=2)
    with pytest.raises(ValueError, match="n_posterior_samples=2 needs rows in memory"):
        model.fit(lazy, y)
    with pytest.raises(ValueError, match="return_std=True needs X in memory"):
        model.fit(X, y).predict(lazy, return_std=True)
    assert model.predict(X, return_std=True)[1].shape == (N,)
