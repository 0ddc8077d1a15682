"""Effects of levels in addition to an exact kernel, for tables of few rows."""

import numpy as np
import pytest
from kernel_models import assert_same_state
from panels import EFFECTS, GAMMA, TOLERANCE, panel, table, twin

from binfeat import KernelMachineRegressor

FEW = {"kernel": "laplacian", "gamma": GAMMA, "alpha": 0.3, "on_unseen": "ignore", "random_state": 0}


@pytest.mark.parametrize("most", [4000, 150], ids=["one cell", "some cells"])
def test_few_rows_have_effects_if_these_reduce_the_error(monkeypatch, limits, most):
    monkeypatch.setattr("binfeat.models.solvers.exact.MOST_IN_CLOSED_FORM", most)
    numbers, codes, y = panel(420)
    rows, X = table(numbers, codes), np.column_stack([numbers, codes])
    model = KernelMachineRegressor(**FEW).fit(rows[:400], y[:400])
    assert (model.features_, len(model._local["starts"]) > 2) == ("local", most < 400)
    mean, std, predictions, residuals, _ = twin(model, X, y, 400)
    np.testing.assert_allclose(model.predict(rows), mean + std * predictions[:, 0], atol=TOLERANCE)
    np.testing.assert_allclose(model.held_out_error_[0], np.mean(residuals**2), rtol=1e-3)
    limits(without=EFFECTS)
    plain = KernelMachineRegressor(**FEW).fit(rows[:400], y[:400])
    assert plain.features_ == "exact"
    assert model.held_out_error_[0] < 0.98 * plain.held_out_error_[0]
    assert model.score(rows[400:], y[400:]) > plain.score(rows[400:], y[400:])


@pytest.mark.parametrize("case", ["features", "loss", "groups", "cv", "levels"])
def test_few_rows_without_effects_are_exact(limits, case):
    """Models are bitwise equal if a parameter excludes effects, or if they gain nothing."""
    numbers, codes, y = panel(300)
    options, given = {**FEW}, {}
    if case == "features":
        options["features"] = "exact"
    elif case == "loss":
        options["loss"], y = "poisson", np.exp(y / 2).round()
    elif case == "groups":
        given["groups"] = codes[:, 1]
    elif case == "cv":
        options |= {"cv": [(np.arange(200), np.arange(200, 300))], "refit": False}
    else:
        y = np.sin(3 * numbers[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=300)
    rows = table(numbers, codes)
    model = KernelMachineRegressor(**options).fit(rows, y, **given)
    limits(without=EFFECTS)
    assert model.features_ == "exact"
    assert_same_state(model, KernelMachineRegressor(**options).fit(rows, y, **given))


def test_a_warm_start_with_few_rows_keeps_the_variances():
    numbers, codes, y = panel(500)
    rows = table(numbers, codes)
    model = KernelMachineRegressor(**FEW, warm_start=True).fit(rows[:400], y[:400])
    variances = model._local["level_variances"]
    model.fit(rows, y)
    assert model.features_ == "local"
    assert model._local["support"].shape[1] == 500
    np.testing.assert_array_equal(model._local["level_variances"], variances)


def test_effects_of_a_category_with_two_levels():
    """A large difference between two groups, which a product of kernels would have to learn for each number."""
    numbers, codes, y = panel(200, sizes=(2,))
    y = y + 10 * codes[:, 0]
    options = {**FEW, "gamma": GAMMA[:3]}
    model = KernelMachineRegressor(**options).fit(table(numbers, codes), y)
    assert model.features_ == "local"
    assert model._local["level_weights"].shape == (1, 2)
