"""Steps of an overall factor and of a penalty: the best of what they pass, each place tried once."""

import numpy as np
import pytest

from binfeat import _threads, kernels
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.models.machines.descent import Descent, place

START = KernelSum([KernelPart(kernels.RBF(), np.ones(2))], 1.0)
STEP, ENDS = np.sqrt(10.0), (0.03, 33.0)


def descended(n_jobs, looks_ahead, optimum):
    """Where two rounds of both moves end, and how often each place was tried."""
    tried = []

    def make(kernel, near=None):
        tried.append(place(kernel))
        apart = np.log(np.array(place(kernel), float)) - np.log(optimum)
        return Trial(kernel, float(apart @ np.array([[1.0, 0.6], [0.6, 1.0]]) @ apart))

    descent = Descent(make, lambda best: best.error > 1e-9, ENDS, n_jobs, looks_ahead)
    best = descent.in_turn(make(START), learns_alpha=True, learns_factor=True)
    return place(best.kernel), tried


@pytest.mark.parametrize("optimum", [(1.0, 1.0), (1.5**3, STEP**-2), (1.5**-2, STEP**3), (1.2, 0.7)])
def test_looking_ahead_changes_nothing_but_what_is_tried(optimum):
    place, tried = descended(1, True, np.array(optimum))
    assert len(set(tried)) == len(tried)
    for n_jobs, looks_ahead in ((2, True), (2, False)):
        same, others = descended(n_jobs, looks_ahead, np.array(optimum))
        assert same == place
        assert set(tried) <= set(others)
        assert len(others) == len(tried) or looks_ahead
    assert _threads._pool.use(lambda: descended(2, True, np.array(optimum)), None)[1] == tried  # threads are taken


def test_it_ends_at_an_optimum_that_steps_reach_or_at_the_last_penalty():
    for n_steps in range(-5, 6):
        (_, alpha), _ = descended(1, True, np.array([1.0, STEP**n_steps]))
        assert alpha == pytest.approx(np.clip(STEP**n_steps, *ENDS))
