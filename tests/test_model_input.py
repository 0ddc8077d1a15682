"""Kernel models: errors and their messages, and the smallest tables."""

import datetime
import re

import numpy as np
import pytest
from kernel_models import FIXED
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from binfeat import (
    CGRidge,
    KernelMachineClassifier,
    KernelMachineRegressor,
    kernels,
)

pytestmark = pytest.mark.usefixtures("few_grids")


def test_in_a_pipeline(table):
    X, _, labels = table
    pipeline = make_pipeline(StandardScaler(), KernelMachineClassifier(**FIXED)).fit(X, labels)
    assert pipeline.score(X, labels) > 0.8


@pytest.mark.parametrize(
    ("parameter", "value", "error", "message"),
    [
        (
            "features",
            "both",
            ValueError,
            "features must be 'auto', 'local', 'binning', 'fourier' or 'exact', got 'both'",
        ),
        (
            "kernel",
            "rbf",
            ValueError,
            "kernel='rbf' cannot be .*, or features='exact', 'local' or 'fourier'",
        ),
        ("kernel", "nonsense", ValueError, "kernel must be 'laplacian', 'hat'"),
        ("kernel", np.ones(2), ValueError, "kernel must be 'laplacian', 'hat'"),
        ("gamma", "auto", ValueError, "gamma must be 'learn' or 'scale', or a number, got 'auto'"),
        ("gamma", -1.0, ValueError, "gamma must be finite and non-negative, got -1.0"),
        ("gamma", [1.0, 2.0], ValueError, r"gamma must be a number or have one value per input, 4 of them"),
        ("gamma", 0.0, ValueError, "gamma must be positive for at least one input"),
        ("alpha", "learn", ValueError, "alpha must be 'auto', or a number, got 'learn'"),
        ("alpha", -1, ValueError, "alpha must be finite and at least 0.0, got -1"),
        ("alpha", None, TypeError, "alpha must be a number of at least 0.0, got None"),
        ("alpha", np.ones(2), TypeError, "alpha must be a number of at least 0.0, got array"),
        (
            "solver_params",
            {"n_grid": 10},
            ValueError,
            "solver_params must be None or a dict with keys among 'n_trees', .*; got the unknown key 'n_grid'",
        ),
        ("solver_params", {1: 10}, ValueError, "unknown key 1"),
        ("solver_params", 10, TypeError, "solver_params must be None or a dict with keys among .*, got 10"),
        ("solver_params", [("n_grids", 10)], TypeError, "solver_params must be None or a dict"),
        (
            "solver_params",
            {"n_grids": "many"},
            TypeError,
            r"\['n_grids'\] must be an integer of at least 1, got 'many'",
        ),
        ("solver_params", {"n_grids": 0}, ValueError, r"solver_params\['n_grids'\] must be at least 1, got 0"),
        ("solver_params", {"n_grids": 1.5}, TypeError, r"\['n_grids'\] must be an integer of at least 1, got 1.5"),
        ("solver_params", {"n_grids": None}, TypeError, r"\['n_grids'\] must be an integer of at least 1, got None"),
        ("categorical_features", [9], ValueError, "categorical_features must be a mask of length 4"),
        ("categorical_features", ["a"], ValueError, "categorical_features has .*'a'.*, which are not column names"),
        ("solver_params", {"max_grids": 0}, ValueError, r"solver_params\['max_grids'\] must be at least 1, got 0"),
        ("max_seconds", -1, ValueError, "max_seconds must be finite and at least 0.0, got -1"),
        ("max_seconds", "1", TypeError, "max_seconds must be a number of at least 0.0, got '1'"),
        ("max_bytes", 0, ValueError, "max_bytes must be at least 1, got 0"),
        ("max_bytes", 1e9, TypeError, "max_bytes must be an integer of at least 1"),
        ("cv", "all", ValueError, "Expected `?cv`? as an integer"),
        ("cv", [(range(10), [])], ValueError, "cv must contain at least one training row and one validation row"),
        ("cv", [([], range(10))], ValueError, "cv must contain at least one training row and one validation row"),
        (
            "cv",
            [(range(10), [400])],
            ValueError,
            "cv must yield pairs of row numbers, or of masks for the 400 rows: .*out of bounds",
        ),
        ("cv", [1], ValueError, "cv must yield pairs"),
        ("cv", [], ValueError, "cv contains no split"),
        (
            "cv",
            [(range(300), range(298, 400))],
            ValueError,
            "Training and validation rows of cv must not overlap, but 2 rows are in",
        ),
        ("refit", "no", TypeError, "refit must be True or False, got 'no'"),
        ("scoring", "nonsense", ValueError, "scoring.*nonsense"),
        ("n_jobs", 0, ValueError, "n_jobs must be None, a positive integer"),
        ("random_state", -1, ValueError, "Seed must be between 0"),
        ("random_state", "a", ValueError, "'a' cannot be used to seed"),
    ],
)
def test_bad_parameters(table, parameter, value, error, message):
    X, y, labels = table
    for kind, target in ((KernelMachineRegressor, y), (KernelMachineClassifier, labels)):
        model = kind(**{**FIXED, parameter: value})
        with pytest.raises(error, match=message):
            model.fit(X, target)
        with pytest.raises(NotFittedError):
            model.predict(X)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("cauchy", "kernel='cauchy' cannot be approximated by random binning"),
        (
            kernels.Matern(0.7),
            r"'auto' accepts .*, RBF, and Matern with nu 0.5, 1.5, 2.5 or infinity; got Matern\(nu=0.7",
        ),
        ("matern", "kernel must be 'auto', 'laplacian', 'rbf', 'hat', or .*RBF, Matern, Hat, .*; got 'matern'"),
        (np.ones(2), "kernel must be 'auto', 'laplacian', 'rbf', 'hat', or"),
    ],
)
def test_kernels_that_no_features_have(table, kernel, message):
    with pytest.raises(ValueError, match=message):
        KernelMachineRegressor(kernel=kernel).fit(table[0], table[1])


@pytest.mark.parametrize("kernel", ["laplacian", "hat", kernels.GammaPitch(3.0), kernels.Matern(0.7), "matern"])
def test_fourier_features_of_a_model_refuse_kernels_that_are_not_radial(table, kernel):
    message = rf"features='fourier' accepts kernel='auto', 'rbf', kernels.RBF, or .*; got {re.escape(repr(kernel))}\."
    for kind, target in ((KernelMachineRegressor, table[1]), (KernelMachineClassifier, table[2])):
        with pytest.raises(ValueError, match=message):
            kind(features="fourier", kernel=kernel).fit(table[0], target)


def test_labels_that_pandas_lacks():
    pd = pytest.importorskip("pandas")
    labels = pd.Series(["x", None, "x", "y"], dtype="string")
    with pytest.raises(ValueError, match="Input y contains NA, a missing value"):
        KernelMachineClassifier().fit(np.ones((4, 2)), labels)


ONES, Y5 = np.ones((5, 2)), np.arange(5.0)


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "message"),
    [
        (ONES[:1], Y5[:1], {}, ValueError, "KernelMachineRegressor requires at least 2 rows"),
        (ONES * 1e101, Y5, {}, ValueError, "X must be at most 1e.100 in magnitude, got 1e.101; divide it"),
        (ONES, Y5 * -1e101, {}, ValueError, "y must be at most 1e.100 in magnitude, got 4e.101; divide it"),
        (ONES[:0], Y5[:0], {}, ValueError, "Found array with 0 sample"),
        (ONES, None, {}, ValueError, "requires y to be passed"),
        (ONES, Y5[:4], {}, ValueError, "inconsistent numbers of samples"),
        (ONES, np.where(Y5 > 3, np.nan, Y5), {}, ValueError, "Input y contains NaN"),
        (ONES, np.where(Y5 > 3, np.inf, Y5), {}, ValueError, "Input y contains infinity"),
        (ONES, np.ones((5, 1, 1)), {}, ValueError, "dim"),
        (np.where(ONES > 0, np.inf, 0), Y5, {}, ValueError, "Input X contains infinity"),
        (ONES[0], Y5, {}, ValueError, "Expected 2D array, got 1D array"),
        (np.full((5, 2), "a"), Y5, {"categorical_features": None}, ValueError, "must contain numbers"),
        (ONES, Y5, {"sample_weight": np.ones(4)}, ValueError, "sample_weight must have one value per row"),
        (ONES, Y5, {"sample_weight": -np.ones(5)}, ValueError, "sample_weight must be finite and non-negative"),
        (ONES, Y5, {"sample_weight": np.zeros(5)}, ValueError, "sample_weight is zero for every row"),
        (ONES, Y5, {"sample_weight": np.eye(5)[0]}, ValueError, "sample_weight must be above 0 for at least 2 rows"),
        (ONES, Y5, {"groups": np.ones(4)}, ValueError, "groups must contain one number or string per row"),
        (ONES, Y5, {"groups": np.array([None, "a", "a", "b", "b"])}, ValueError, "groups must not contain missing"),
        (ONES, Y5, {"groups": np.ones(5)}, ValueError, "groups must contain at least 2 groups"),
    ],
)
def test_bad_tables(X, y, options, error, message):
    model = KernelMachineRegressor(categorical_features=options.pop("categorical_features", "from_dtype"))
    with pytest.raises(error, match=message):
        model.fit(X, y, **options)


def test_series_of_polars():
    pl = pytest.importorskip("polars")
    X, y = pl.DataFrame({"x": np.arange(60.0)}), pl.Series(np.arange(60.0))
    assert KernelMachineRegressor(**FIXED).fit(X, y).score(X, y) > 0.9
    days = pl.Series([datetime.date(2026, 1, 1)] * 60)
    with pytest.raises(ValueError, match="y must contain numbers, not dates"):
        KernelMachineRegressor(**FIXED).fit(X, days)
    several = X.with_columns(pl.Series("pair", [{"a": 1, "b": 2}] * 60))
    with pytest.raises(TypeError, match="Column 'pair' of X has several values per row"):
        KernelMachineRegressor(**FIXED).fit(several, y)
    lists = X.with_columns(pl.Series("list", [[1, 2]] * 60))
    with pytest.raises(TypeError, match="Column 'list' of X has several values per row; use one column per value"):
        KernelMachineRegressor(**FIXED).fit(lists, y)


def test_integers_of_128_bits_are_numbers():
    pl = pytest.importorskip("polars", minversion="1.18")
    few, rows = pl.Series("x", range(60), dtype=pl.Int128), pl.DataFrame({"x": np.arange(60.0)})
    ids = pl.Series("id", [2**60 + k // 20 for k in range(60)], dtype=pl.Int128).to_frame()
    for estimator in (KernelMachineRegressor(**FIXED), CGRidge()):
        expected = clone(estimator).fit(rows, rows["x"]).predict(rows)
        for y in (few, few.to_frame()):
            predictions = clone(estimator).fit(few.to_frame(), y).predict(few.to_frame())
            np.testing.assert_array_equal(predictions.ravel(), expected)
    model = KernelMachineRegressor(**FIXED, categorical_features=["id"]).fit(ids, np.arange(60) // 20)
    assert model.score(ids, np.arange(60) // 20) > 0.9


def test_no_weight_in_a_part():
    model = KernelMachineRegressor(cv=[([0, 1, 2], [3, 4])])
    for weights in ([0, 0, 0, 1, 1], [1, 1, 1, 0, 0]):
        with pytest.raises(ValueError, match="sample_weight is zero for all training rows or for all validation rows"):
            model.fit(ONES, Y5, sample_weight=weights)


def test_rows_with_weight_can_have_a_single_class(table):
    """As with scikit-learn's linear models, so that bootstrap weights are possible."""
    X, _, labels = table
    model = KernelMachineClassifier(features="exact", random_state=0)
    model.fit(X[:80], labels[:80], sample_weight=labels[:80] == "no")
    assert set(model.classes_) == set(labels)
    assert (model.predict(X) == "no").all()


def test_bad_labels(table):
    X, y, labels = table
    with pytest.raises(ValueError, match=re.escape("y must have at least two classes, got one class: ")):
        KernelMachineClassifier().fit(X, np.full(400, "yes"))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        KernelMachineClassifier().fit(X, y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        KernelMachineClassifier().fit(X, None)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        KernelMachineClassifier().fit(X, np.where(y > 0, 1.0, np.nan))
    with pytest.raises(ValueError, match="class_weight"):
        KernelMachineClassifier(class_weight="unbalanced").fit(X, labels)
    with pytest.raises(ValueError, match="sample_weight must have one value per row"):
        KernelMachineClassifier(class_weight="balanced").fit(X, labels, sample_weight=np.ones(3))


def test_bad_rows_in_predict(table):
    X, y, _ = table
    model = KernelMachineRegressor(**FIXED)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    for rows, message in (
        (X[:, :3], "X has 3 features, but KernelMachineRegressor is expecting 4"),
        (np.full((1, 4), np.inf), "Input X contains infinity"),
        (X[:0], "Found array with 0 sample"),
        (X[0], "Expected 2D array, got 1D array"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(rows)


def test_the_smallest_tables():
    X = np.array([[0.0], [1.0]])
    assert np.isfinite(KernelMachineRegressor(random_state=0).fit(X, [1.0, 2.0]).predict(X)).all()
    model = KernelMachineClassifier(random_state=0).fit(X, ["a", "b"])
    assert set(model.predict(X)) <= {"a", "b"}
    flat = KernelMachineRegressor(random_state=0).fit(np.ones((10, 2)), np.arange(10.0))
    np.testing.assert_allclose(flat.predict(np.ones((1, 2))), 4.5, atol=1e-9)
