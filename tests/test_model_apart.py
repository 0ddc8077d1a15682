"""Exact models with validation rows from the user: the last rows, or folds."""

import numpy as np
import pytest
from kernel_models import moments
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from binfeat.models.kernel_algebra.loss import LOSSES
from binfeat.models.solvers import choice

GIVEN = {
    "features": "exact",
    "kernel": "laplacian",
    "gamma": [0.5, 0.2, 0.0, 0.1],
    "alpha": 0.3,
    "random_state": 0,
}
EARLIER, LAST = np.arange(250), np.arange(270, 350)  # other rows are in neither
CV = [(EARLIER, LAST)]


@pytest.fixture
def short(limits):
    """Shorten searches."""
    limits(n_steps=6)


def matrix_of(model, X):
    """Return kernel values of all pairs of rows, plus the constant."""
    function = model._fitted.function
    columns = function.standardizer.columns(model._fitted.rows(model, X))
    return function.kernel()(columns, columns).astype(float) + 1


def losses_of(K, Y, alpha, train, out, weights=None):
    """Return squared errors of validation rows by a model of other rows."""
    v = np.ones(len(Y)) if weights is None else weights / weights[train].mean()
    coef = np.linalg.solve(K[np.ix_(train, train)] + np.diag(alpha / v[train]), Y[train])
    return (K[np.ix_(out, train)] @ coef - Y[out]) ** 2


@pytest.mark.parametrize("refit", [True, False])
def test_rows_held_out_are_predicted_from_the_others(table, refit):
    X, y, _ = table
    model = KernelMachineRegressor(**GIVEN, cv=CV, refit=refit).fit(X, y)
    assert model.feature_coef_.shape == (1, 330 if refit else 250)
    losses = losses_of(matrix_of(model, X), (y - y.mean()) / y.std(), 0.3, EARLIER, LAST)
    expected = losses.mean(), losses.std(ddof=1) / np.sqrt(len(losses))
    np.testing.assert_allclose(model.held_out_error_, expected, rtol=1e-4)


def test_weights_of_rows_held_out(table, rng):
    X, y, _ = table
    weights = rng.uniform(0.5, 2.0, 400)
    model = KernelMachineRegressor(**GIVEN, cv=CV).fit(X, y, weights)
    alpha = 0.3 / weights[EARLIER].mean()
    mean, std = moments(y, weights)
    losses = losses_of(matrix_of(model, X), (y - mean) / std, alpha, EARLIER, LAST, weights)
    np.testing.assert_allclose(model.held_out_error_[0], np.average(losses, weights=weights[LAST]), rtol=1e-4)


def test_few_rows_with_cv_have_an_exact_model_that_the_last_rows_validate(rng, short):
    X = np.c_[rng.normal(size=(300, 2)), np.arange(300) / 300]
    y = np.where(np.arange(300) < 240, X[:, 0], -X[:, 0])  # the last rows contradict all others
    model = KernelMachineRegressor(cv=[(np.arange(240), np.arange(240, 300))], random_state=0).fit(X, y)
    assert model.features_ == "exact"
    assert model.held_out_error_[0] > 0.8
    low, high = model.predict_interval(X[240:]).T
    assert (high - low).mean() > 2 * y.std()


def test_more_rows_with_cv_have_other_models(table, short, monkeypatch):
    X, y, _ = table
    monkeypatch.setattr(choice, "TUNING_ROWS", 399)
    assert KernelMachineRegressor(cv=3, solver_params={"max_grids": 10}, random_state=0).fit(X, y).features_ != "exact"


@pytest.mark.parametrize("groups", [None, np.arange(400) // 5])
def test_folds_are_left_out_one_by_one(table, groups):
    X, y, _ = table
    cv = KFold(4, shuffle=True, random_state=0) if groups is None else GroupKFold(4)
    model = KernelMachineRegressor(**GIVEN, cv=cv).fit(X, y, groups=groups)
    assert model.feature_coef_.shape == (1, 400)
    K, losses = matrix_of(model, X), np.empty(400)
    for train, out in cv.split(X, y, groups):
        losses[out] = losses_of(K, (y - y.mean()) / y.std(), 0.3, train, out)
    np.testing.assert_allclose(model.held_out_error_[0], losses.mean(), rtol=1e-4)
    first = clone(model).set_params(refit=False).fit(X, y, groups=groups)
    assert first.feature_coef_.shape == (1, 300)


@pytest.mark.parametrize("some", [ShuffleSplit(5, random_state=0), ShuffleSplit(2, random_state=0), TimeSeriesSplit(3)])
def test_splits_that_are_no_folds_hold_out_the_first(table, some):
    X, y, _ = table
    given = GIVEN | {"features": "auto"}
    first = KernelMachineRegressor(**given, cv=[next(some.split(X))]).fit(X, y)
    model = KernelMachineRegressor(**given, cv=some).fit(X, y)
    assert model.features_ == "exact"
    np.testing.assert_array_equal(model.feature_coef_, first.feature_coef_)
    assert "only the first split of cv" in model.summary()
    assert "first split" not in first.summary()


@pytest.mark.parametrize(
    ("options", "is_first"),
    [({}, False), ({"loss": "huber"}, False), ({"refit": False}, True), ({"loss": "tweedie"}, True)],
)
def test_the_summary_says_if_folds_are_not_used(table, options, is_first):
    X, y, _ = table
    model = KernelMachineRegressor(**GIVEN | options, cv=4).fit(X, np.abs(y))
    assert ("only the first split of cv" in model.summary()) == is_first


@pytest.mark.parametrize("loss", ["log", "squared_hinge"])
def test_margins_of_rows_held_out(table, loss):
    X, _, labels = table
    model = KernelMachineClassifier(**GIVEN, cv=CV, loss=loss)
    validated = model.fit(X, labels).held_out_error_[0]
    alone = KernelMachineClassifier(**{**GIVEN, "alpha": model.alpha_}, loss=loss).fit(X[EARLIER], labels[EARLIER])
    margins = np.where(labels[LAST] == alone.classes_[1], 1, -1) * alone._scores(X[LAST])[:, 0]
    losses = np.log1p(np.exp(-2 * margins)) if loss == "log" else np.maximum(0, 1 - margins) ** 2
    np.testing.assert_allclose(validated, losses.mean(), rtol=1e-3)


def test_deviance_of_rows_held_out(table, rng):
    X, y, _ = table
    counts = rng.poisson(np.exp(0.5 * y)).astype(float)
    validated = KernelMachineRegressor(**GIVEN, cv=CV, loss="poisson").fit(X, counts)
    alone = KernelMachineRegressor(**GIVEN, loss="poisson").fit(X[EARLIER], counts[EARLIER])
    expected = LOSSES["poisson"].of_means(counts[LAST, None], alone.predict(X[LAST])[:, None]).mean()
    np.testing.assert_allclose(validated.held_out_error_[0], expected, rtol=0.02)


def test_deviance_of_groups(table, rng, short):
    X = np.repeat(table[0][:60], 3, axis=0) + 1e-6 * rng.normal(size=(180, table[0].shape[1]))
    counts = np.repeat(rng.poisson(rng.gamma(0.5, 10, size=60)), 3).astype(float)  # known from its own rows only
    groups = np.repeat(np.arange(60), 3)
    alone, together = (
        KernelMachineRegressor(random_state=0, loss="poisson").fit(X, counts, groups=given).held_out_error_[0]
        for given in (None, groups)
    )
    assert together > 3 * alone
