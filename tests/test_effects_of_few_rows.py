"""Effects of levels in addition to an exact kernel, for tables of few rows."""

import numpy as np
import pytest
from machines import assert_same_state
from panels import EFFECTS, GAMMA, TOLERANCE, panel, table, twin

from binfeat import KernelMachineRegressor

FEW = {"kernel": "laplacian", "gamma": GAMMA, "alpha": 0.3, "on_unseen": "ignore", "random_state": 0}


@pytest.mark.parametrize("most", [4000, 150], ids=["one cell", "some cells"])
def test_few_rows_have_effects_if_these_reduce_the_error(monkeypatch, limits, most):
    monkeypatch.setattr("binfeat.models.solvers.exact.MOST_IN_CLOSED_FORM", most)
    numbers, codes, y = panel(420)
    rows, X = table(numbers, codes), np.column_stack([numbers, codes])
    machine = KernelMachineRegressor(**FEW).fit(rows[:400], y[:400])
    assert (machine.features_, len(machine._local["starts"]) > 2) == ("local", most < 400)
    mean, std, predictions, residuals, _ = twin(machine, X, y, 400)
    np.testing.assert_allclose(machine.predict(rows), mean + std * predictions[:, 0], atol=TOLERANCE)
    np.testing.assert_allclose(machine.held_out_error_[0], np.mean(residuals**2), rtol=1e-3)
    limits(without=EFFECTS)
    plain = KernelMachineRegressor(**FEW).fit(rows[:400], y[:400])
    assert plain.features_ == "exact"
    assert machine.held_out_error_[0] < 0.98 * plain.held_out_error_[0]
    assert machine.score(rows[400:], y[400:]) > plain.score(rows[400:], y[400:])


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
    machine = KernelMachineRegressor(**options).fit(rows, y, **given)
    limits(without=EFFECTS)
    assert machine.features_ == "exact"
    assert_same_state(machine, KernelMachineRegressor(**options).fit(rows, y, **given))


def test_a_warm_start_with_few_rows_keeps_the_variances():
    numbers, codes, y = panel(500)
    rows = table(numbers, codes)
    machine = KernelMachineRegressor(**FEW, warm_start=True).fit(rows[:400], y[:400])
    variances = machine._local["level_variances"]
    machine.fit(rows, y)
    assert machine.features_ == "local"
    assert machine._local["support"].shape[1] == 500
    np.testing.assert_array_equal(machine._local["level_variances"], variances)


def test_effects_of_a_category_with_two_levels():
    """A large difference between two groups, which a product of kernels would have to learn for each number."""
    numbers, codes, y = panel(200, sizes=(2,))
    y = y + 10 * codes[:, 0]
    options = {**FEW, "gamma": GAMMA[:3]}
    machine = KernelMachineRegressor(**options).fit(table(numbers, codes), y)
    assert machine.features_ == "local"
    assert machine._local["level_weights"].shape == (1, 2)
