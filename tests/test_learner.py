"""Steps of a penalty and of a factor: down while the error decreases, otherwise up."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from binfeat import KernelMachineRegressor, blocks, kernels
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.search import KernelSteps
from binfeat.models.solvers import learner
from binfeat.models.solvers.learner import descended, penalty_between

START = KernelSum([KernelPart(kernels.RBF(), np.ones(2))], 1.0)
STEP, ENDS = np.sqrt(10.0), (0.03, 33.0)


def ends(optimum, may_try=lambda best: True):
    """Return the final penalty, and the penalties that were tried."""
    tried = []

    def make(kernel):
        tried.append(kernel.alpha)
        return Trial(kernel, abs(np.log(kernel.alpha / optimum)))

    best = descended(make(START), [penalty_between(*ENDS)], make, may_try)
    return best.kernel.alpha, tried


@pytest.mark.parametrize("n_steps", range(-5, 6))
def test_steps_end_at_an_optimum_or_at_the_last_penalty(n_steps):
    alpha, tried = ends(STEP**n_steps)
    assert alpha == pytest.approx(np.clip(STEP**n_steps, *ENDS))
    assert len(set(tried)) == len(tried)


def test_no_penalty_is_tried_if_nothing_is_to_be_gained():
    assert ends(STEP**3, lambda best: False) == (1.0, [1.0])


def test_a_factor_of_all_gammas_is_found_next_to_the_penalty():
    def make(kernel):
        gamma = kernel.parts[0].gamma
        assert gamma[0] == gamma[1]
        return Trial(kernel, np.log(gamma[0] / 1.5**3) ** 2 + np.log(kernel.alpha / STEP**-2) ** 2)

    best = descended(make(START), 2 * [penalty_between(*ENDS), (KernelSum.scaled, 1.5)], make, lambda best: True)
    assert best.kernel.alpha == pytest.approx(STEP**-2)
    np.testing.assert_allclose(best.kernel.parts[0].gamma, 1.5**3)


@pytest.mark.parametrize("learns", [True, False])
def test_few_rows_learn_each_length_scale_and_keep_given_ones(rng, learns):
    X = rng.uniform(-1, 1, size=(200, 3))
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=200)
    gamma = "learn" if learns else np.array([1.0, 0.3, 0.1])
    model = KernelMachineRegressor(kernel="rbf", gamma=gamma, random_state=0).fit(X, y)
    if learns:
        ratios = model.gamma_ / model.length_scale_gammas_[-1]
        assert np.ptp(ratios) > 0.01 * ratios.mean()
    else:
        np.testing.assert_allclose(model.gamma_, gamma)
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize(
    ("n_rows", "noise", "share"), [(200, 0.1, 1.0), (200, 2.0, 0.5), (1600, 2.0, 0.5)], ids=["clear", "noisy", "cells"]
)
def test_noisy_targets_take_half_of_the_steps(rng, monkeypatch, n_rows, noise, share):
    taken, left_out = [], learner.Learner._left_out

    def counted(self, steps, sets, number):
        taken.append(number)
        return left_out(self, steps, sets, number)

    monkeypatch.setattr(learner.Learner, "_left_out", counted)
    X = rng.uniform(-1, 1, size=(n_rows, 3))
    KernelMachineRegressor(kernel="rbf", random_state=0).fit(X, X[:, 0] + noise * rng.normal(size=n_rows))
    plan = learner.FEW_ROWS if n_rows <= 1500 else learner.ALL_ROWS
    assert max(taken) + 1 == share * plan.n_steps


@pytest.mark.parametrize("factor_rate", [1.0, 3.0])
def test_a_common_factor_moves_at_its_own_rate(factor_rate):
    gammas, rate = np.array([[1.0, 2.0]]), 0.1
    steps = KernelSteps(
        gammas, np.ones(1), 1.0, prior=0.0, least_alpha=1e-9, factor_rate=factor_rate, keeps_proportions=True
    )
    left_out = SimpleNamespace(error=1.0, slopes=np.array([0.5, 0.5, 0.0]), alpha_slope=0.0)
    steps.step([left_out], rate)
    np.testing.assert_allclose(np.log(steps.gammas / gammas), -rate * (1 + factor_rate), rtol=1e-6)


@pytest.mark.parametrize(("many_rows", "n_splits"), [(1000, 3), (3000, 1)])
def test_cells_of_many_rows_are_split_again(rng, monkeypatch, many_rows, n_splits):
    monkeypatch.setattr(learner, "SEARCH", replace(learner.SEARCH, many_rows=many_rows))
    splits, cells = [], learner.Learner._cells

    def split(self, kernel):
        if self._plan.takes_cells:
            splits.append(kernel)
        return cells(self, kernel)

    monkeypatch.setattr(learner.Learner, "_cells", split)
    X = rng.uniform(-1, 1, size=(2000, 3))
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=2000)
    options = {"features": "local", "solver_params": {"cell_rows": 500, "n_trees": 1}}
    KernelMachineRegressor(**options, kernel="rbf", random_state=0).fit(X, y)
    assert len(splits) == n_splits


def test_steps_for_length_scales_are_as_many_as_in_memory(rng, limits, sampled_rows, monkeypatch):
    """More rows than in the sample need finer kernels, and so more steps."""
    limits(n_steps=4)
    monkeypatch.setattr("binfeat.length_scales.search.SEARCH", replace(learner.SEARCH, many_rows=300))
    X = rng.uniform(-1, 1, size=(1200, 2))
    options = {"features": "binning", "kernel": "laplacian", "solver_params": {"n_grids": 10}, "random_state": 0}
    memory = KernelMachineRegressor(**options).fit(X, X[:, 0])
    sampled_rows(400)
    of_blocks = KernelMachineRegressor(**options).fit(blocks(X, X[:, 0]))
    assert of_blocks.length_scale_errors_.shape == memory.length_scale_errors_.shape == (10,)
