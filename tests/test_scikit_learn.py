"""Ordinary calls of someone who knows scikit-learn: they work, or are refused in words that help."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from machines import FIXED
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from binfeat import (
    BinMatrix,
    CGRidge,
    KernelMachineClassifier,
    KernelMachineRegressor,
    LearningCurveDisplay,
    RandomBinning,
    RandomFeatureUnion,
    RandomFourier,
    RelevanceDisplay,
    blocks,
)

CODES = {"gamma": 0.3, "n_grids": 20, "output": "codes", "random_state": 0}


@pytest.fixture
def frame(table):
    return pd.DataFrame(table[0], columns=["a", "b", "c", "d"])


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_codes_pass_through_set_output(frame, table, container):
    pytest.importorskip(container)
    _, y, _ = table
    plain = make_pipeline(StandardScaler(), RandomBinning(**CODES), CGRidge(alpha=0.1)).fit(frame, y)
    own = RandomBinning(**CODES).set_output(transform=container)
    assert isinstance(own.fit_transform(frame), BinMatrix)
    assert isinstance(own.transform(frame), BinMatrix)
    pipeline = make_pipeline(StandardScaler(), RandomBinning(**CODES), CGRidge(alpha=0.1))
    pipeline.set_output(transform=container).fit(frame, y)
    np.testing.assert_allclose(pipeline.predict(frame), plain.predict(frame))
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
    X, _, labels = table
    codes = RandomBinning(**CODES).fit_transform(X)
    refusal = r"BinMatrix is not an array. It works with CGRidge .*; for other estimators use output='csr'"
    for call in (np.asarray, lambda Z: LogisticRegression().fit(Z, labels)):
        with pytest.raises(TypeError, match=refusal):
            call(codes)
    with pytest.raises(TypeError, match="LazyFeatures is not an array"):
        np.asarray(RandomFourier().fit(X).encode(X))


@pytest.mark.parametrize(
    "fixed", [FIXED, {**FIXED, "features": "fourier"}, {"gamma": 0.5, "features": "exact"}], ids=str
)
def test_selection_of_inputs(frame, table, few_grids, fixed):
    _, _, labels = table
    machine = KernelMachineClassifier(**fixed)
    assert not hasattr(machine, "feature_importances_")
    for Selection in (SelectFromModel, RFE):
        selection = Selection(machine, importance_getter="feature_importances_").fit(frame, labels)
        assert 1 <= selection.get_support().sum() <= 3
    np.testing.assert_array_equal(machine.fit(frame, labels).feature_importances_, machine.feature_relevances_)


def test_learned_length_scales_select_the_inputs_that_matter(frame, table, few_grids):
    _, y, _ = table
    machine = KernelMachineRegressor(features="binning", alpha=0.1, n_grids=20, random_state=0)
    for selection in (SelectFromModel(machine, threshold=0.1), RFE(machine, n_features_to_select=2)):
        selection.set_params(importance_getter="feature_importances_").fit(frame, y)
        assert list(selection.get_feature_names_out()) == ["a", "b"]


@pytest.mark.parametrize("display", [RelevanceDisplay, LearningCurveDisplay])
def test_displays_say_what_they_take(display, table):
    X, y, _ = table
    pipeline = make_pipeline(StandardScaler(), KernelMachineRegressor(**FIXED)).fit(X, y)
    message = "machine must be a KernelMachineRegressor or KernelMachineClassifier, of a pipeline its last step; got "
    for wrong in (RandomBinning(gamma=1.0).fit(X), pipeline, None):
        with pytest.raises(TypeError, match=message + type(wrong).__name__):
            display.from_estimator(wrong)
    assert display.from_estimator(pipeline[-1])
    with pytest.raises(NotFittedError):
        display.from_estimator(KernelMachineRegressor())
