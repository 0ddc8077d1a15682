"""Warnings of kernel models about questionable fits."""

import re
import warnings

import numpy as np
import pytest
from hard import hard
from kernel_models import FIXED, with_options

from binfeat import KernelMachineClassifier, KernelMachineRegressor


@pytest.fixture
def table(rng):
    X = rng.uniform(-1, 1, size=(120, 3))
    return X, X[:, 0] + X[:, 1] ** 2


def test_no_doubts(table):
    X, y = table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelMachineRegressor(**FIXED, max_seconds=1000.0).fit(X, y)
        KernelMachineClassifier(**FIXED).fit(X, y > 0)
        KernelMachineClassifier(**FIXED).fit(X, (y > 0).astype(float))


def test_few_rows(table):
    X, y = table
    for n_rows in (2, 4):
        with pytest.warns(UserWarning, match=f"{n_rows} rows are too few"):
            KernelMachineRegressor(**FIXED).fit(X[:n_rows], y[:n_rows])


def test_few_rows_with_nearly_all_the_weight(table):
    (X, y), weights = table, np.where(np.arange(120) < 3, 1e6, 1.0)
    with pytest.warns(UserWarning, match="120 rows count like 3 rows of equal weight.*Limit the largest weights"):
        KernelMachineRegressor(**FIXED).fit(X, y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelMachineRegressor(**FIXED).fit(X, y, sample_weight=np.exp(np.arange(120) / 10))  # worth 20 rows
        KernelMachineRegressor(**FIXED).fit(X[:40], y[:40], sample_weight=weights[:40])


def test_single_rows_of_classes(table):
    X, y = table
    labels = np.where(y > 0, "high", "low").astype(object)
    labels[:2] = "odd", "strange"
    with pytest.warns(UserWarning, match="2 of 4 classes have a single row, for example 'odd'"):
        KernelMachineClassifier(**FIXED).fit(X, labels)


def test_numbers_instead_of_classes(table):
    X, _ = table
    with pytest.warns(UserWarning, match="y contains 30 different floats.*KernelMachineRegressor"):
        KernelMachineClassifier(**FIXED).fit(X, np.arange(120) % 30 + 0.0)


def test_copies_that_are_few(table):
    X, y = table
    X, y = np.vstack([X, X[:30]]), np.append(y, y[:30])
    copies = re.escape("20% of the rows are copies of other rows") + ".*groups"
    with pytest.warns(UserWarning, match=copies):
        KernelMachineRegressor(**FIXED).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelMachineRegressor(**FIXED).fit(X, y, groups=np.append(np.arange(120), np.arange(30)))
        KernelMachineRegressor(**FIXED).fit(X, y + np.arange(150))  # repeated measurements
        KernelMachineRegressor(**FIXED).fit(np.round(X), np.round(y))  # equal by chance


def test_a_limit_that_cannot_be_kept(table, clock_of_fits):
    X, y = table
    clock_of_fits(iter(np.arange(0.0, 1e6, 0.01)).__next__)
    with pytest.warns(UserWarning, match=r"max_seconds=0.001 was exceeded: the fit took [\d.]+ s"):
        KernelMachineRegressor(**FIXED, max_seconds=0.001).fit(X, y)


def test_too_few_grids(table):
    with pytest.warns(UserWarning, match="Only . grids fit into max_bytes"):
        KernelMachineRegressor(**{**with_options(FIXED, n_grids=None), "features": "binning"}, max_bytes=2000).fit(
            *table
        )


@pytest.mark.parametrize("value", [1.0, np.nan, "a"])
@pytest.mark.parametrize("targets", ["constant", "varied"])
def test_constant_tables_make_constant_models(rng, value, targets):
    X = np.full((100, 3), value, dtype=object if isinstance(value, str) else float)
    y = np.full(100, 3.0) if targets == "constant" else rng.normal(size=100)
    with pytest.warns(UserWarning, match="All rows of X are equal, so predictions are constant") as found:
        model = KernelMachineRegressor(random_state=0).fit(X, y)
    assert len(found) == 1
    np.testing.assert_allclose(model.predict(X), y.mean(), atol=1e-2)


@pytest.mark.filterwarnings("ignore:All rows of X are equal")
@pytest.mark.parametrize(
    "parameters",
    [
        {"features": "binning"},
        {"gamma": "scale", "alpha": 0.1},
        *hard({"features": "local"}, {"cv": 2}, {"loss": "poisson"}),
    ],
)
def test_constant_tables_with_other_parameters(parameters):
    model = KernelMachineRegressor(random_state=0, **parameters).fit(np.ones((100, 3)), np.full(100, 3.0))
    np.testing.assert_allclose(model.predict(np.ones((2, 3))), 3.0)


@pytest.mark.filterwarnings("ignore:All rows of X are equal")
def test_constant_tables_of_classes_groups_and_weights(rng):
    X, labels = np.ones((100, 3)), np.arange(100) % 4 == 0
    model = KernelMachineClassifier(random_state=0).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.25, atol=0.02)
    for given in ({"groups": np.arange(100) // 10}, {"sample_weight": rng.random(100)}):
        model = KernelMachineRegressor(random_state=0).fit(X, np.full(100, 3.0), **given)
        np.testing.assert_allclose(model.predict(X), 3.0)
