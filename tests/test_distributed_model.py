"""Kernel models on Dask make the same decisions as on blocks of the same rows, for any chunks."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from callbacks import Callback, Recorder
from hard import hard
from interrupts import interrupted
from kernel_models import FIXED, assert_same_state, decisions, with_options
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

import binfeat
from binfeat._rows import sampled

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

import binfeat.distributed as remote  # noqa: E402
from binfeat.distributed import _all_rows, _rows, _table  # noqa: E402

N, N_SAMPLED = 1500, 400
CHUNKS = [(N,), (600, 0, 899, 1)]
OPTIONS = {"solver_params": {"max_grids": 20}, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    X[::40, 1] = np.nan
    return X, np.sin(2 * X[:, 0]) + X[:, 2] + 0.1 * rng.normal(size=N), rng.uniform(size=N)


@pytest.fixture
def small_sample(sampled_rows, limits):
    """Treat tables of some hundred rows as larger than memory, and large enough for an overall length scale."""
    sampled_rows(N_SAMPLED)
    limits(n_steps=5, sample_rows=100, sample_grids=(5, 40), few_grids=5, n_fourier=64)


def chunked(values, chunks):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


def assert_same_decisions(got, expected, X):
    """Errors and predictions equal those in memory except for the order of sums, which iterations amplify."""
    assert decisions(got) == decisions(expected)
    np.testing.assert_allclose(got.decisions_["error"], expected.decisions_["error"], rtol=1e-3)
    np.testing.assert_allclose(got._scores(X), expected._scores(X), atol=1e-3)
    np.testing.assert_allclose(got.gamma_, expected.gamma_, rtol=1e-9)
    assert (got.status_, got.alpha_) == (expected.status_, expected.alpha_)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("n_rows", [300, 401, 5000])
def test_rows_of_the_sample_are_those_of_a_source(monkeypatch, n_rows, seed, sampled_rows):
    sampled_rows(N_SAMPLED)
    monkeypatch.setattr(sampled, "_KEYS", 700)
    source = binfeat.blocks(np.zeros((n_rows, 2)), np.zeros(n_rows), block_rows=331)
    expected = sampled.SampledSource(binfeat.KernelMachineRegressor(), source, seed).rows
    np.testing.assert_array_equal(sampled.sampled_rows(n_rows, 2, seed), expected)


@pytest.mark.parametrize("features", [*hard("binning"), "fourier"])
def test_decisions_are_those_of_blocks(rows, small_sample, features):
    X, y, weights = rows
    Y = np.column_stack([y, y**2])
    for target, own, chunks in ((y, None, CHUNKS[0]), (Y, weights, CHUNKS[1])):
        options = {**OPTIONS, "features": features}
        expected = binfeat.KernelMachineRegressor(**options).fit(binfeat.blocks(X, target, own, block_rows=700))
        model = remote.KernelMachineRegressor(**options)
        assert model.fit(chunked(X, chunks), chunked(target, (N - 500, 500)), own) is model
        assert_same_decisions(model, expected, X)


@pytest.mark.parametrize("loss", hard("poisson", "huber"))
def test_losses_are_those_of_blocks(rows, small_sample, loss):
    X, y, weights = rows
    both = np.column_stack([y, -y])
    both = np.ceil(np.exp(both)) if loss == "poisson" else both + 30.0 * (np.arange(N) % 50 == 0)[:, None]
    for target, own in ((both[:, 0], None), (both, weights)):
        options = {**FIXED, "alpha": "auto", "loss": loss}
        expected = binfeat.KernelMachineRegressor(**options).fit(binfeat.blocks(X, target, own, block_rows=700))
        model = remote.KernelMachineRegressor(**options).fit(chunked(X, CHUNKS[1]), chunked(target, (N,)), own)
        assert_same_decisions(model, expected, X)


def test_limits_of_predictions_are_those_of_blocks(rows, small_sample):
    X, y, weights = rows
    y, weights = np.exp(2 * y), np.where(y < 0, weights, np.where(y > 2, 0.0, 1.0))
    expected = binfeat.KernelMachineRegressor(**FIXED).fit(binfeat.blocks(X, y, weights, block_rows=700))
    model = remote.KernelMachineRegressor(**FIXED).fit(chunked(X, CHUNKS[1]), y, weights)
    assert model.target_transform_ == expected.target_transform_ == "log"
    np.testing.assert_allclose(model._target_limits, expected._target_limits, rtol=1e-6)
    largest = np.log(y[weights > 0].max())
    assert largest < model._target_limits[1] * model._target_std + model._target_mean < largest + 0.6


@pytest.mark.parametrize("options", [{"loss": "poisson"}, {"target_transform": FunctionTransformer(np.log, np.exp)}])
def test_targets_of_weight_zero_can_be_outside_the_domain(rows, small_sample, options):
    X, y, weights = rows
    y, weights = np.exp(y), weights.copy()
    y[::5], weights[::5] = -1.0, 0.0
    y[-1], weights[-1] = -2.0, 0.0  # the only row of its chunk
    options = {**FIXED, "alpha": "auto", **options}
    for target in (y, np.column_stack([y, y])):
        expected = binfeat.KernelMachineRegressor(**options).fit(binfeat.blocks(X, target, weights, block_rows=700))
        model = remote.KernelMachineRegressor(**options).fit(chunked(X, CHUNKS[1]), target, weights)
        assert_same_decisions(model, expected, X)


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_positive_targets_of_weight_zero_do_not_count(rows, small_sample, loss):
    X, y, _ = rows
    model = remote.KernelMachineRegressor(**FIXED, loss=loss)
    with pytest.raises(ValueError, match="needs some targets above 0 in rows of positive weight"):
        model.fit(chunked(X, CHUNKS[1]), np.maximum(y, 0.0), (y <= 0) * 1.0)


def test_error_is_that_of_all_rows_in_memory(rows, small_sample):
    """With decisions on a sample or on all rows, errors on new rows differ by at most a standard error."""
    X, y, _ = rows
    rng = np.random.default_rng(1)
    new = rng.normal(size=(N, 3))
    truth = np.sin(2 * new[:, 0]) + new[:, 2]
    options = {**with_options(FIXED, n_grids=40), "alpha": "auto"}
    memory = binfeat.KernelMachineRegressor(**options).fit(X, y)
    model = remote.KernelMachineRegressor(**options).fit(chunked(X, CHUNKS[1]), y)
    errors, own = ((each.predict(new) - truth) ** 2 for each in (memory, model))
    assert errors.mean() < 0.2 * truth.var()
    assert abs(own.mean() - errors.mean()) < errors.std() / np.sqrt(N)


def test_few_rows_are_fitted_in_memory(rows, few_steps):
    X, y, weights = (values[:300] for values in rows)
    model = remote.KernelMachineRegressor(random_state=0).fit(chunked(X, (200, 100)), y, weights)
    expected = binfeat.KernelMachineRegressor(random_state=0).fit(X, y, weights)
    assert expected.features_ == "exact"
    assert_same_state(model, expected)


def test_lazy_predictions_keep_chunks(rows, small_sample):
    X, y, _ = rows
    dX, Y = chunked(X, CHUNKS[1]), np.column_stack([y, -y])
    model = remote.KernelMachineRegressor(**FIXED).fit(dX, Y)
    lazy = model.predict(dX)
    assert lazy.chunks == ((600, 899, 1), (2,))
    expected = model.predict(X)
    np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)
    assert model.score(dX, Y) == pytest.approx(model.score(X, Y), abs=1e-12)
    local = model.to_local()
    assert type(local) is binfeat.KernelMachineRegressor
    np.testing.assert_array_equal(local.predict(X), expected)
    skops = pytest.importorskip("skops.io")
    loaded = skops.loads(skops.dumps(local), trusted=["binfeat.KernelMachineRegressor"])
    np.testing.assert_array_equal(loaded.predict(X), expected)


def saved_models():
    fixed = {"gamma": "scale", "features": "exact", "alpha": 0.1, "random_state": 0}
    return {
        "ridge": (remote.CGRidge(), "predict", "coef_"),
        "classes": (remote.CGRidgeClassifier(), "predict", "coef_"),
        "bins": (remote.RandomBinning(n_grids=3, random_state=0), "transform", "_bin_keys"),
        "fourier": (remote.RandomFourier(n_components=4, random_state=0), "transform", "random_weights_"),
        "outliers": (remote.OutlierDetector(n_grids=10, random_state=0), "score_samples", "_bin_keys"),
        "regressor": (remote.KernelMachineRegressor(**fixed), "predict", "feature_coef_"),
        "classifier": (remote.KernelMachineClassifier(**fixed), "predict_proba", "feature_coef_"),
    }


@pytest.mark.parametrize("kind", saved_models())
def test_load_accepts_all_estimators_on_dask_and_refuses_damaged_files(rows, tmp_path, kind):
    skops = pytest.importorskip("skops.io")
    model, method, array = saved_models()[kind]
    X, y = rows[0][1:40], rows[1][1:40]
    model.fit(chunked(X, (30, 9)), chunked(y > 0 if is_classifier(model) else y, (30, 9)))
    skops.dump(model, tmp_path / "model.skops")
    loaded = binfeat.load(tmp_path / "model.skops")
    assert type(loaded) is type(model)
    found, expected = (getattr(own, method)(X) for own in (loaded, model))
    assert (found != expected).sum() == 0
    setattr(model, array, getattr(model, array)[..., 1:])
    skops.dump(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match="damaged"):
        binfeat.load(tmp_path / "model.skops")


# With smaller penalties, solutions of the other cases depend on the order of sums.
@pytest.mark.parametrize(("class_weight", "alpha"), [({"b": 3.0}, "auto"), *hard((None, 1.0), ("balanced", 1.0))])
def test_classes(rows, small_sample, class_weight, alpha):
    X, y, weights = rows
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 1.5])]
    options = {**OPTIONS, "gamma": "scale", "features": "binning", "class_weight": class_weight, "alpha": alpha}
    expected = binfeat.KernelMachineClassifier(**options).fit(binfeat.blocks(X, labels, weights))
    dX = chunked(X, CHUNKS[1])
    model = remote.KernelMachineClassifier(**options).fit(dX, chunked(labels, (N,)), chunked(weights, (N,)))
    assert_same_decisions(model, expected, X)
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    np.testing.assert_allclose(model.calibration_coef_, expected.calibration_coef_, rtol=1e-3, atol=1e-4)
    assert model.predict(dX).dtype == labels.dtype
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(model, method)(dX)
        here = getattr(model, method)(X)
        assert (lazy.shape, lazy.chunks[0]) == (here.shape, (600, 899, 1))
        np.testing.assert_array_equal(lazy.compute(), here)


def test_two_classes(rows, small_sample):
    X, y, _ = rows
    dX = chunked(X, CHUNKS[0])
    model = remote.KernelMachineClassifier(**FIXED).fit(dX, chunked(y > 0, (700, 800)))
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(model, method)(dX).compute(), getattr(model, method)(X))


def test_frames(rows, small_sample):
    """Strings, categories, dates, missing values, names."""
    X, y, weights = rows
    kinds = np.array(["red", "green", "blue"])[np.digitize(X[:, 2], [-0.5, 0.5])]
    table = pd.DataFrame(
        {
            "number": X[:, 0],
            "gap": X[:, 1],
            "kind": kinds,
            "level": pd.Categorical(np.where(X[:, 2] > 1, "high", None)),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(N) % 300, unit="D"),
        }
    )
    options = {**OPTIONS, "gamma": "scale", "kernel": "laplacian", "alpha": 0.1}
    expected = binfeat.KernelMachineRegressor(**options).fit(binfeat.blocks(table, y, weights))
    more = dd.from_pandas(table.assign(y=y, weight=weights), npartitions=4)
    inputs = more[list(table)]
    model = remote.KernelMachineRegressor(**options).fit(inputs, more["y"], more["weight"])
    assert_same_decisions(model, expected, table)
    assert model.feature_names_in_.tolist() == list(table)
    np.testing.assert_allclose(model.predict(inputs).compute(), expected.predict(table), atol=1e-3)
    with pytest.raises(ValueError, match="The feature names should match"):
        model.predict(inputs.rename(columns={"number": "count"}))


def test_masked_values_are_missing_for_any_chunks(rows, few_steps):
    X, y = rows[0][:200], rows[1][:200]
    masked = da.ma.masked_equal(chunked(np.where(np.isnan(X), -999.0, X), (100, 100)), -999.0)
    model = remote.KernelMachineRegressor(random_state=0).fit(masked, y)
    assert_same_state(model, binfeat.KernelMachineRegressor(random_state=0).fit(X, y))


@pytest.mark.parametrize("kind", [int, str])
def test_categories_that_differ_among_chunks(rng, kind):
    """Numbers and strings of digits stay categories; one chunk has no categories at all."""
    codes = rng.integers(12, size=300)
    codes[:100] %= 5
    table = pd.DataFrame({"code": pd.Series(codes.astype(kind)), "x": rng.normal(size=300)})
    table = table.astype({"code": "Int64" if kind is int else object})
    table.loc[200:, "code"] = None
    y = np.sin(codes) + table["x"].to_numpy()
    lazy = dd.from_pandas(table, npartitions=3)
    lazy = lazy.assign(code=lazy["code"].astype("category"))
    options = {"on_unseen": "error", "features": "exact", "kernel": "laplacian", "random_state": 0}
    model = remote.KernelMachineRegressor(**options).fit(lazy, da.from_array(y, chunks=100))
    whole = table.astype({"code": "category"})
    expected = binfeat.KernelMachineRegressor(**options).fit(whole, y)
    np.testing.assert_array_equal(model.predict(whole), expected.predict(whole))
    new = pd.DataFrame({"code": pd.Categorical([kind(99)]), "x": [0.0]})
    with pytest.raises(ValueError, match="unseen categories"):
        model.predict(new)


@pytest.mark.parametrize(("n_jobs", "threads"), [(2, 2), *hard((None, 1))])
def test_tasks_take_threads(rows, small_sample, monkeypatch, n_jobs, threads):
    X, y, _ = rows
    number, taken = _all_rows.number_bins, []

    def noted(X, grids, n_jobs):
        taken.append(n_jobs)
        return number(X, grids, n_jobs)

    model = remote.KernelMachineRegressor(**FIXED).fit(chunked(X, CHUNKS[0]), y)
    monkeypatch.setattr(_all_rows, "number_bins", noted)
    other = remote.KernelMachineRegressor(**FIXED, n_jobs=n_jobs).fit(chunked(X, CHUNKS[0]), y)
    assert set(taken) == {threads}
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_groups_are_held_out_as_a_whole(rows, small_sample):
    X, y, _ = rows
    groups = np.arange(N) // 10
    options = {**OPTIONS, **FIXED}
    expected = binfeat.KernelMachineRegressor(**options).fit(binfeat.blocks(X, y), groups=groups)
    model = remote.KernelMachineRegressor(**options).fit(chunked(X, CHUNKS[1]), y, groups=chunked(groups, (N,)))
    assert_same_decisions(model, expected, X)


@pytest.mark.hard
def test_transformed_targets(rows, small_sample):
    X, y, _ = rows
    y = np.exp(y)
    options = {**OPTIONS, "gamma": "scale", "kernel": "laplacian", "alpha": 0.1, "features": "binning"}
    expected = binfeat.KernelMachineRegressor(**options).fit(binfeat.blocks(X, y))
    model = remote.KernelMachineRegressor(**options).fit(chunked(X, CHUNKS[1]), y)
    assert model.target_transform_ == "log"
    assert_same_decisions(model, expected, X)
    dX = chunked(X, CHUNKS[0])
    np.testing.assert_allclose(model.predict(dX).compute(), expected.predict(X), rtol=1e-3)


@pytest.mark.hard
def test_warm_start(rows, small_sample):
    """The penalty is large, so there are few iterations and little rounding."""
    X, y, _ = rows
    options = {**OPTIONS, "features": "binning", "warm_start": True, "alpha": 0.1}
    expected = binfeat.KernelMachineRegressor(**options).fit(binfeat.blocks(X[:900], y[:900]))
    model = remote.KernelMachineRegressor(**options).fit(chunked(X[:900], (900,)), y[:900])
    assert_same_decisions(model.fit(chunked(X, CHUNKS[1]), y), expected.fit(binfeat.blocks(X, y)), X)
    assert "length scales" not in model.decisions_["what"]


def bad_fits():
    good, ones = np.zeros((N, 3)), np.ones(N)
    far = good.copy()
    far[-1] = np.inf
    regressor, classifier = remote.KernelMachineRegressor, remote.KernelMachineClassifier
    return [
        (regressor(), far, ones, ValueError, "Chunk 1 of X: Input X contains infinity"),
        (regressor(), good, np.append(ones[:-1], np.nan), ValueError, "Chunk 1 of X: Input y contains NaN"),
        (regressor(), good, np.append(ones[:-1], 1e101), ValueError, "Chunk 1 of X: y must be at most 1e"),
        (regressor(), good, ones[:-1], ValueError, "X has 1500 rows, y has 1499"),
        (regressor(), good, ones.astype("M8[D]"), ValueError, "of X: y must contain numbers, not dates"),
        (regressor(), good, None, ValueError, "requires y to be passed"),
        (regressor(), good[:0], ones[:0], ValueError, "X has no rows in any chunk"),
        (
            regressor(features="exact"),
            good,
            ones,
            ValueError,
            "features='exact' requires all rows in memory; use 'auto'",
        ),
        (regressor(cv=[([0], [1])]), good, ones, ValueError, "cv contains row numbers, which require all rows in mem"),
        (regressor(loss="poisson"), good, -ones, ValueError, "loss='poisson' needs targets of at least 0; got -1"),
        (regressor(loss="gamma"), good, 0 * ones, ValueError, "loss='gamma' needs targets above 0; got 0"),
        (classifier(loss="log"), good, np.arange(N) % 2, ValueError, "loss='log' requires all rows in memory"),
        (regressor(solver_params={"n_grids": 0}), good, ones, ValueError, r"\['n_grids'\] must be at least 1"),
        (classifier(), good, ones, ValueError, "y must have at least two classes"),
        (classifier(scoring="roc_auc"), good, np.arange(N) % 3, ValueError, "'roc_auc' accepts two classes, got 3"),
        (
            classifier(class_weight="even"),
            good,
            np.arange(N) % 2,
            ValueError,
            "class_weight must be a dict, 'balanced'",
        ),
        (
            classifier(),
            good,
            np.arange(2 * N).reshape(N, 2) % 2,
            ValueError,
            "an indicator matrix of labels needs rows in memory",
        ),
    ]


@pytest.mark.parametrize(("model", "X", "y", "kind", "message"), bad_fits())
def test_bad_fits(model, X, y, kind, message, small_sample):
    with pytest.raises(kind, match=message):
        model.fit(da.from_array(X, chunks=(1000, 3)), y)
    assert not hasattr(model, "feature_coef_")


def test_other_bad_input(rows, small_sample):
    X, y, weights = rows
    model = remote.KernelMachineRegressor(**FIXED)
    dX = chunked(X, CHUNKS[0])
    with pytest.raises(ValueError, match="Chunk 0 of X: sample_weight must be finite and non-negative"):
        model.fit(dX, y, -weights)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        model.fit(dX, y, 0.0)
    with pytest.raises(ValueError, match=r"\['n_posterior_samples'\] requires rows in memory or a source"):
        remote.KernelMachineRegressor(**with_options(FIXED, n_posterior_samples=2)).fit(dX, y)
    own, (one, *_) = np.zeros(N), sampled.sampled_rows(N, 3, 0)
    own[one] = 1.0
    with pytest.raises(ValueError, match="sample_weight is zero for all training rows or for all validation rows"):
        model.fit(dX, y, own)
    with pytest.raises(NotFittedError):
        model.predict(dX)
    with pytest.raises(NotFittedError):
        model.to_local()
    model.fit(X[:100], y[:100])
    for call in (model.predict_interval, model.sample_y, partial(model.predict, return_std=True)):
        with pytest.raises(TypeError, match=r"requires rows in memory, got a Dask collection\. Pass rows in memory"):
            call(dX)
    with pytest.raises(ValueError, match="X has 2 features, but KernelMachineRegressor is expecting 3"):
        model.predict(dX[:, :2])
    with pytest.raises(ValueError, match=r"KernelMachineRegressor\.score requires y"):
        model.score(dX)


@pytest.mark.parametrize("features", ["binning", "fourier"])
def test_a_chunk_that_grows_after_the_sample_was_drawn(rows, small_sample, features):
    X, y, _ = rows
    reads = []

    def read():
        reads.append(None)
        return np.tile(X, (1 if len(reads) <= 2 else 4, 1))

    growing = da.from_delayed(dask.delayed(read, pure=False)(), X.shape, X.dtype)
    model = remote.KernelMachineRegressor(**{**OPTIONS, "features": features, "gamma": 1.0, "alpha": 1.0})
    synchronous = dask.config.set(scheduler="synchronous")
    with synchronous, pytest.raises(ValueError, match="Chunk 0 of X: it had 1500 rows when it was first read, and has"):
        model.fit(growing, y)


def test_rows_in_memory_are_taken_too(rows, few_steps):
    X, y, _ = (values[:200] for values in rows)
    expected = binfeat.KernelMachineRegressor(random_state=0).fit(X, y)
    assert_same_state(remote.KernelMachineRegressor(random_state=0).fit(X, y), expected)


def test_callbacks_and_limits_of_time(rows, small_sample):
    X, y, _ = rows
    dX, options = chunked(X, CHUNKS[0]), {**OPTIONS, "gamma": "scale", "features": "binning"}
    recorder, stopper = Recorder(), Callback("step", stop_at=1)
    model = remote.KernelMachineRegressor(**options).set_callbacks(recorder).fit(dX, y)
    assert list(recorder.stages()) == ["features", "grids", "refit"]
    stopped = remote.KernelMachineRegressor(**options).set_callbacks(stopper).fit(dX, y)
    assert (stopped.status_, stopper.ended, len(stopped.learning_curve_)) == ("stopped", True, 1)
    with pytest.warns(UserWarning, match="max_seconds=0 was exceeded"):
        finishing = remote.KernelMachineRegressor(**options, max_seconds=0).fit(dX, y)
    assert (finishing.status_, finishing.n_grids_ < model.n_grids_) == ("budget", True)


@pytest.mark.parametrize("after", [1, 8])
def test_ctrl_c_in_a_solve_keeps_the_model_so_far(rows, small_sample, after):
    X, y, _ = rows
    model = remote.KernelMachineRegressor(**{**FIXED, "gamma": "learn"})
    with interrupted(_rows.DaskRows, "sum", after + 1), pytest.raises(KeyboardInterrupt):
        model.fit(chunked(X, CHUNKS[1]), y)
    assert model.status_ == "interrupted"
    assert model.score(X, y) > 0.3


def test_ctrl_c_in_the_first_look_leaves_nothing(rows):
    model = remote.KernelMachineRegressor()
    synchronous = dask.config.set(scheduler="synchronous")
    with interrupted(_table, "_checked"), synchronous, pytest.raises(KeyboardInterrupt):
        model.fit(chunked(rows[0], CHUNKS[0]), rows[1])
    assert not [name for name in vars(model) if name.endswith("_")]
