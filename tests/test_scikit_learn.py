"""Ordinary calls of someone who knows scikit-learn: they work, or are refused in words that help."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from binfeat import (
    BinMatrix,
    CGRidge,
    RandomBinning,
    RandomFeatureUnion,
    RandomFourier,
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
