"""Steps of a penalty: down while that lowers the error, otherwise up, each penalty tried once."""

import numpy as np
import pytest

from binfeat import kernels
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.models.machines.learner import with_best_penalty

START = KernelSum([KernelPart(kernels.RBF(), np.ones(2))], 1.0)
STEP, ENDS = np.sqrt(10.0), (0.03, 33.0)


def descended(optimum, may_try=lambda best: True):
    """The penalty where steps end, and the penalties that were tried."""
    tried = []

    def make(kernel):
        tried.append(kernel.alpha)
        return Trial(kernel, abs(np.log(kernel.alpha / optimum)))

    best = with_best_penalty(make(START), make, may_try, ENDS)
    return best.kernel.alpha, tried


@pytest.mark.parametrize("n_steps", range(-5, 6))
def test_steps_end_at_an_optimum_or_at_the_last_penalty(n_steps):
    alpha, tried = descended(STEP**n_steps)
    assert alpha == pytest.approx(np.clip(STEP**n_steps, *ENDS))
    assert len(set(tried)) == len(tried)


def test_no_penalty_is_tried_if_nothing_is_to_be_gained():
    assert descended(STEP**3, lambda best: False) == (1.0, [1.0])
