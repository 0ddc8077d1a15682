"""The case outliers: tables, rows, and peers that are not installed."""

import numpy as np
import pytest

from perf import outlier_tables
from perf.cases import outliers


def test_few_rows_of_one_class_are_kept(rng):
    X, y = np.arange(1000.0)[:, None], np.arange(1000) % 4
    table = outlier_tables.rare(X, y, 2, seed=0)
    assert table.outlier.sum() == 15
    assert (~table.outlier).sum() == 750
    np.testing.assert_array_equal(table.X[:, 0] % 4 == 2, table.outlier)


@pytest.mark.hard
def test_rows_of_a_quick_run(monkeypatch, rng):
    X = rng.normal(size=(400, 3))
    X[:20] *= 5
    table = outlier_tables.Outliers(X, np.arange(400) < 20)
    monkeypatch.setattr(outliers, "N_TREES", 20)
    monkeypatch.setattr(outliers, "FIVE", {"a": lambda: [table], "b": lambda: [table]})
    monkeypatch.setattr(outliers, "OTHERS", {"c": lambda: [table], "d": lambda: [table]})
    rows = {row.what: row for row in outliers._tables(quick=True)}
    assert rows["five tables: mean AUC, ours"].ours > 0.9
    assert rows["others: mean AUC minus IsolationForest's"].reach == (">=", 0.04)
    assert rows["others: standard error of the difference"].ours == 0


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(outliers, "_pyod", lambda *_: (_ for _ in ()).throw(ImportError("no pyod")))
    table = outlier_tables.Outliers(np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) < 5)
    rows = []
    assert outliers.OURS in outliers._areas(lambda: [table], True, rows)
    assert [row.what for row in rows] == [f"PyOD's {name}: not installed, skipped" for name in ("ECOD", "HBOS")]


@pytest.mark.hard
def test_drift_and_speed():
    drift = {row.what: row.ours for row in outliers._drift(3)}
    assert all(0 <= share <= 100 for share in drift.values())
    assert next(outliers._one_row(200)).ours > 1
