"""OutlierDetector on Dask has the counts, threshold and scores of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest
from hard import each_value_once

import binfeat
from binfeat._rows import row_sample

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

import binfeat.distributed as remote  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_scheduler")
CHUNKS = [(700,), (300, 0, 399, 1), (97,) * 7 + (21,)]


@pytest.fixture
def X(rng):
    return rng.normal(size=(700, 5))


@pytest.mark.parametrize(("most", "chunks"), each_value_once([100, 10_000], CHUNKS))
def test_same_scores_as_in_memory(chunks, most, X, monkeypatch):
    monkeypatch.setattr(row_sample, "MOST_ROWS", most)
    rows = da.from_array(X, chunks=(chunks, 5))
    detector, expected = (kind(random_state=0) for kind in (remote.OutlierDetector, binfeat.OutlierDetector))
    detector.fit(rows)
    expected.fit(X)
    assert detector.offset_ == expected.offset_
    for method in ("score_samples", "decision_function", "predict"):
        found = getattr(detector, method)(rows)
        assert found.dtype == getattr(expected, method)(X).dtype
        np.testing.assert_array_equal(found.compute(), getattr(expected, method)(X))
        np.testing.assert_array_equal(getattr(detector, method)(X[:3]), getattr(expected, method)(X[:3]))
    np.testing.assert_array_equal(detector.contributions(X[:3]), expected.contributions(X[:3]))


def test_dataframes(X):
    table = pd.DataFrame(X, columns=list("abcde"))
    detector = remote.OutlierDetector(random_state=0).fit(dd.from_pandas(table, npartitions=3))
    expected = binfeat.OutlierDetector(random_state=0).fit(table)
    np.testing.assert_array_equal(detector.score_samples(table), expected.score_samples(table))


def test_no_rows():
    rows = da.from_delayed(__import__("dask").delayed(np.empty)((0, 3)), (np.nan, 3), float)
    with pytest.raises(ValueError, match="X has no rows in any chunk; at least one is needed"):
        remote.OutlierDetector().fit(rows)
