"""Usual calls of scikit-learn users work, or raise a helpful error."""

import re
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import threadpoolctl
from hard import hard
from kernel_models import FIXED
from sklearn.base import clone
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import binfeat
import binfeat.distributed
from binfeat import (
    BinMatrix,
    CGRidge,
    CGRidgeClassifier,
    KernelErrorDisplay,
    KernelMachineClassifier,
    KernelMachineRegressor,
    LabelSpreading,
    LearningCurveDisplay,
    OutlierDetector,
    RandomBinning,
    RandomFeatureUnion,
    RandomFourier,
    RelevanceDisplay,
    SpectralEmbedding,
    blocks,
    kernels,
)

CODES = {"gamma": 0.3, "n_grids": 20, "output": "codes", "random_state": 0}


@pytest.fixture
def frame(table):
    return pd.DataFrame(table[0], columns=["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("Estimator", "voting"),
    [
        (KernelMachineClassifier, partial(VotingClassifier, voting="soft")),
        *hard((KernelMachineRegressor, VotingRegressor)),
    ],
)
def test_models_of_several_seeds_vote(frame, table, Estimator, voting):
    frame, y = frame.assign(kind=pd.Categorical(np.where(frame["a"] > 0, "up", "down"))), table[1]
    y = y if Estimator is KernelMachineRegressor else np.where(y > 0, "yes", "no")
    models = [Estimator(**FIXED).set_params(random_state=seed) for seed in range(2)]
    both = voting([(str(model.random_state), model) for model in models]).fit(frame, y)
    what = "predict" if Estimator is KernelMachineRegressor else "predict_proba"
    expected = np.mean([getattr(model.fit(frame, y), what)(frame) for model in models], axis=0)
    np.testing.assert_allclose(getattr(both, what)(frame), expected)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_codes_are_refused_by_set_output_and_pass_the_global_setting(frame, table, container):
    _, y, _ = table
    refusal = (
        rf"set_output\(transform='{container}'\) requires features in an array, but RandomBinning returns a "
        r"BinMatrix. Call set_output\(transform='default'\)."
    )
    own = RandomBinning(**CODES).set_output(transform=container)
    pipeline = make_pipeline(StandardScaler(), RandomBinning(**CODES), CGRidge(alpha=0.1))
    for call in (
        partial(own.fit_transform, frame),
        partial(own.fit(frame).transform, frame),
        partial(sklearn.clone(own).fit_transform, frame),
        partial(pipeline.set_output(transform=container).fit, frame, y),
    ):
        with pytest.raises(ValueError, match=refusal):
            call()
    assert isinstance(own.set_output(transform="default").transform(frame), BinMatrix)
    with sklearn.config_context(transform_output=container):
        pipeline = make_pipeline(RandomBinning(**CODES), CGRidge(alpha=0.1)).fit(frame, y)
        assert pipeline.score(frame, y) > 0.8
        with pytest.raises(ValueError, match="outputs a scipy sparse matrix"):
            RandomBinning(gamma=0.3).fit_transform(frame)


def test_features_of_a_source_and_unions_pass_through_set_output(frame, table):
    X, y, _ = table
    with sklearn.config_context(transform_output="pandas"):
        streamed = make_pipeline(RandomFourier(random_state=0), CGRidge()).fit(blocks(X, y))
        union = RandomFeatureUnion([("bins", RandomBinning(**CODES)), ("waves", RandomFourier(random_state=0))])
        assert make_pipeline(union, CGRidge()).fit(frame, y).score(frame, y) > 0.8
        union.set_params(bins__output="csr", sparse_output=False)
        assert list(union.fit_transform(frame).columns) == list(union.get_feature_names_out())
    assert streamed.score(X, y) > 0.8


def test_features_that_are_no_array_say_who_takes_them(table):
    X, y, labels = table
    codes = RandomBinning(**CODES).fit_transform(X)
    refusal = (
        r"BinMatrix is not an array. It works with CGRidge .*; for other estimators use output='csr', or its tocsr"
    )
    for call in (np.asarray, lambda Z: LogisticRegression().fit(Z, labels)):
        with pytest.raises(TypeError, match=refusal):
            call(codes)
    with pytest.raises(TypeError, match=r"LazyFeatures is not an array.*use transform, or its toarray\(\)"):
        np.asarray(RandomFourier().fit(X).encode(X))
    with pytest.raises(TypeError, match=r"StackedFeatures is not an array.*use output='csr' in all maps, or its"):
        np.asarray(RandomFeatureUnion([("bins", RandomBinning(**CODES))]).fit_transform(X))
    with pytest.raises(TypeError, match=r"StreamedFeatures is not an array.*use features of rows in memory"):
        np.asarray(RandomFourier().fit_transform(blocks(X, y)))


@pytest.mark.parametrize(
    "fixed", [FIXED, {**FIXED, "features": "fourier", "kernel": "rbf"}, {"gamma": 0.5, "features": "exact"}], ids=str
)
def test_selection_of_inputs(frame, table, few_grids, fixed):
    _, _, labels = table
    model = KernelMachineClassifier(**fixed)
    assert not hasattr(model, "feature_importances_")
    for Selection in (SelectFromModel, RFE):
        selection = Selection(model).fit(frame, labels)
        assert 1 <= selection.get_support().sum() <= 3


@pytest.mark.hard
def test_learned_length_scales_select_the_inputs_that_matter(frame, table, few_grids):
    _, y, _ = table
    model = KernelMachineRegressor(features="binning", alpha=0.1, solver_params={"n_grids": 20}, random_state=0)
    for selection in (SelectFromModel(model, threshold=0.1), RFE(model, n_features_to_select=2)):
        selection.fit(frame, y)
        assert list(selection.get_feature_names_out()) == ["a", "b"]


@pytest.mark.parametrize("display", [RelevanceDisplay, LearningCurveDisplay])
def test_displays_say_what_they_take(display, table):
    X, y, _ = table
    pipeline = make_pipeline(StandardScaler(), KernelMachineRegressor(**FIXED)).fit(X, y)
    message = r"estimator must be a KernelMachineRegressor or KernelMachineClassifier \(for a pipeline, .*\); got "
    for wrong in (RandomBinning(gamma=1.0).fit(X), pipeline, None):
        with pytest.raises(TypeError, match=message + type(wrong).__name__):
            display.from_estimator(wrong)
    assert display.from_estimator(pipeline[-1])
    with pytest.raises(NotFittedError):
        display.from_estimator(KernelMachineRegressor())
    with pytest.raises(TypeError, match="estimator must be a map, with a method transform; got KernelMachineRegressor"):
        KernelErrorDisplay.from_estimator(pipeline[-1], X)


def test_parameters_of_kernel_objects(table):
    X, y, _ = table
    kernel = kernels.GammaPitch(8)
    pipeline = make_pipeline(RandomBinning(**{**CODES, "kernel": kernel}), CGRidge(alpha=0.1))
    search = GridSearchCV(pipeline, {"randombinning__kernel__shape": [2.0, 50.0]}, cv=2).fit(X, y)
    assert search.best_estimator_[0].kernel.shape == search.best_params_["randombinning__kernel__shape"]
    assert kernel == kernels.GammaPitch(8)
    for estimator in (RandomFourier(kernel=kernels.Matern(0.5)), KernelMachineRegressor(kernel=kernel)):
        (name,) = (name for name in estimator.get_params() if name.startswith("kernel__"))
        changed = clone(estimator).set_params(**{name: 2.5})
        assert changed.get_params()[name] == 2.5
        assert changed.get_params(deep=False).keys() == estimator.get_params(deep=False).keys()


def test_parameters_of_kernels_in_kernels_and_maps_in_unions():
    union = RandomFeatureUnion([("bins", RandomBinning(kernel=kernels.Skip(kernels.Hat(), 0.3)))])
    union.set_params(bins__kernel__kernel__shape=4, bins__kernel__kernel=kernels.GammaPitch(8), bins__kernel__share=0.5)
    assert union.transformers[0][1].kernel == kernels.Skip(kernels.GammaPitch(4), 0.5)
    assert union.get_params()["bins__kernel__kernel__shape"] == 4


@pytest.mark.parametrize(
    ("kernel", "params", "message"),
    [
        ("laplacian", {"kernel__shape": 2}, "kernel has no parameter 'shape' to set: it is 'laplacian'"),
        (kernels.GammaPitch(8), {"kernel__nu": 2}, r"kernel has no parameter 'nu' to set: it is GammaPitch\(shape=8"),
        (kernels.GammaPitch(8), {"kernel__shape": 0.5}, "shape must be a number above 1"),
        (kernels.GammaPitch, {"kernel__shape": 2}, "kernel has no parameter 'shape' to set: it is <class"),
        (kernels.GammaPitch(8), {"kernel__shape__x": 1}, r"kernel has no parameter 'x' to set: it is 8.0"),
    ],
)
def test_bad_parameters_of_kernel_objects(kernel, params, message):
    with pytest.raises(ValueError, match=message):
        RandomBinning(kernel=kernel).set_params(**params)


NUMERIC = [RandomBinning(gamma=1.0), RandomFourier(), CGRidge(), CGRidgeClassifier()]
TOWNS = {"a": [1.0, 2.0, 3.0], "n": ["1", "2", None], "town": ["Bonn", "Bari", "Brno"]}


@pytest.mark.parametrize("estimator", NUMERIC, ids=lambda own: type(own).__name__)
def test_words_name_the_column_and_a_remedy(estimator):
    message = (
        "Column {} of X contains {}, which is not a number. Encode it, for example by "
        "sklearn.preprocessing.OneHotEncoder, or use a kernel model, which accepts categories."
    )
    frame, y = pd.DataFrame(TOWNS), [0, 1, 1]
    bonn = frame["town"].to_numpy(dtype=str).reshape(-1, 1)
    refused = {
        "'town', 'Bonn'": (
            frame,
            frame.astype({"town": "category"}),
            pl.DataFrame(TOWNS),
            pa.table(TOWNS),
        ),
        "2, 'Bonn'": (frame.to_numpy(), frame.to_numpy().tolist()),
        "0, 'Bonn'": (bonn, bonn.tolist()),
    }
    for named, tables in refused.items():
        for X in tables:
            with pytest.raises(ValueError, match="^" + re.escape(message.format(*named.split(", ", 1))) + "$"):
                clone(estimator).fit(X, y)
    fitted = clone(estimator).fit(np.eye(3), y)
    call = getattr(fitted, "transform", None) or fitted.predict
    with pytest.raises(ValueError, match="Column 2 of X contains 'Bonn'"):
        call(frame.to_numpy())


@pytest.mark.parametrize(
    "estimator",
    [*NUMERIC, OutlierDetector(), LabelSpreading(), SpectralEmbedding(), RandomFeatureUnion([("a", RandomBinning())])],
    ids=lambda own: type(own).__name__,
)
def test_dates_and_durations_are_no_numbers(estimator):
    days = pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02", None]))
    frames = {
        "dates": pd.DataFrame({"day": days}),
        "dates in UTC": pd.DataFrame({"a": TOWNS["a"], "day": days.dt.tz_localize("UTC")}),
        "durations": pd.DataFrame({"a": TOWNS["a"], "day": days - days[0]}),
    }
    for times, frame in frames.items():
        tables = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.astype({"day": "category"})]
        message = f"^Column 'day' of X contains {times}, but must contain numbers. Convert them, for example to days"
        for X in tables:
            with pytest.raises(TypeError, match=message):
                clone(estimator).fit(X, [0, 1, 1])
    array = days.to_numpy().reshape(-1, 1)
    objects = np.array([[own] for own in array[:, 0]], dtype=object)
    for X, times in ((array, "dates"), (list(array), "dates"), (array - array[0], "durations"), (objects, "dates")):
        with pytest.raises(TypeError, match=f"^X contains {times}, but must"):
            clone(estimator).fit(X, [0, 1, 1])


@pytest.mark.parametrize("name", [4, 64, "gap"])
def test_errors_name_the_column_even_if_its_name_is_in_the_message(name):
    with pytest.raises(ValueError, match=rf"^column {name!r} of X: Input X contains infinity .*float64"):
        RandomBinning(gamma=1.0).fit(pd.DataFrame({name: [1.0, np.inf]}))


def test_a_column_of_pandas_may_be_named_column_names():
    frame = pd.DataFrame({"column_names": [1.0, 1.0, 2.0], "town": ["Bonn", "Bari", "Brno"]})
    RandomBinning(gamma=1.0, n_grids=2).fit(frame[["column_names"]])
    with pytest.raises(ValueError, match="Column 'town' of X contains 'Bonn'"):
        RandomBinning().fit(frame)


@pytest.mark.parametrize("estimator", [CGRidge(), KernelMachineRegressor(**FIXED)], ids=lambda own: type(own).__name__)
def test_names_of_columns_in_arrow_batches_are_checked(estimator, rng):
    table = pa.table({"a": rng.normal(size=40), "b": rng.normal(size=40)})
    model = clone(estimator).fit(table, table["a"].to_numpy())
    (batch,) = table.to_batches()
    np.testing.assert_array_equal(model.predict(batch), model.predict(table))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(batch.select(["b", "a"]))
    assert clone(estimator).fit(batch, table["a"].to_numpy()).feature_names_in_.tolist() == ["a", "b"]


def test_numbers_in_strings_are_numbers():
    np.testing.assert_array_equal(CGRidge().fit([["1.5"], ["2"]], ["1", "2"]).predict([["2"]]).shape, (1,))


@pytest.mark.parametrize("model", [CGRidge(), KernelMachineRegressor(**FIXED)], ids=lambda own: type(own).__name__)
def test_labels_for_a_regressor(model, table):
    X, _, labels = table
    for y in (labels, labels.tolist(), pd.Series(labels), pd.Series(labels).astype("category")):
        with pytest.raises(ValueError, match=r"^y must contain numbers, got '(yes|no)'; for labels use a classifier"):
            model.fit(X, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: RandomBinning(categorical_features=["b", "zip"]).fit(X), r"has \['zip'\], which are not column"),
        (lambda X: RandomBinning(categorical_features=["a"]).fit(X + 0.5), "magnitude below 2.51; got 0.5"),
        (lambda X: CGRidgeClassifier().fit(X, ["Bonn"] * 3), "at least two classes, got one class: 'Bonn'"),
        (lambda X: KernelMachineClassifier().fit(X, [1] * 3), "at least two classes, got one class: 1"),
    ],
)
def test_values_are_printed_as_python_prints_them(call, message):
    with pytest.raises(ValueError, match=message):
        call(pd.DataFrame({"a": [0, 1, 2], "b": [0, 1, 2]}))


@pytest.mark.parametrize("estimator", [RandomFourier, CGRidge, CGRidgeClassifier])
def test_missing_values_point_to_an_imputer(estimator):
    with pytest.raises(
        ValueError, match=rf"(?s)X contains NaN.*{estimator.__name__}.*imputer transformer in a pipeline"
    ):
        estimator().fit([[np.nan], [1.0]], [0, 1])


@pytest.mark.parametrize("name", [name for name in binfeat.__all__ if hasattr(getattr(binfeat, name), "fit")])
def test_unknown_parameters_name_the_class(name):
    for module in (binfeat, binfeat.distributed):
        if hasattr(module, name):
            with pytest.raises(TypeError, match=rf"{name}.__init__\(\) got an unexpected keyword argument 'gama'"):
                getattr(module, name)(gama=1.0)


@pytest.mark.parametrize(("n_jobs", "expected"), [(1, {1}), (2, {2})])
def test_one_job_holds_blas_to_one_thread(table, few_grids, n_jobs, expected):
    X, y, _ = table
    seen = []

    def counted(estimator, X, y):
        seen.append({pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"})
        return 0.0

    model = KernelMachineRegressor(**{**FIXED, "alpha": "auto"}, scoring=counted, n_jobs=n_jobs)
    with threadpoolctl.threadpool_limits(2, "blas"):
        model.fit(X, y)
    assert seen
    assert seen == [expected] * len(seen)


@pytest.mark.parametrize("made", [RandomBinning(gamma=0.1, n_grids=3, random_state=0), CGRidge()])
def test_lazy_frames_are_collected(made):
    frame, y = pl.DataFrame({"a": np.arange(9.0), "b": np.ones(9)}), np.arange(9.0)
    lazy, eager = clone(made).fit(frame.lazy(), y), clone(made).fit(frame, y)
    assert lazy.feature_names_in_.tolist() == ["a", "b"]
    if made.__class__ is CGRidge:
        np.testing.assert_array_equal(lazy.predict(frame.lazy()), eager.predict(frame))
    else:
        np.testing.assert_array_equal(lazy.transform(frame.lazy()).toarray(), eager.transform(frame).toarray())
