"""Steps of an overall factor and of a penalty: the best of what they pass, each place tried once."""

from dataclasses import replace

import numpy as np
import pytest

from binfeat import kernels
from binfeat._machine.fitted.kernel_function import KernelPart
from binfeat._machine.machines.descent import Candidate, Descent, Try
from binfeat._machine.search.length_scales import LengthScales

PART = KernelPart(LengthScales(kernels.RBF(), np.ones(2), 1.0, 1.0, 10, 0), 1.0)


def with_alpha(candidate, step):
    return replace(candidate, alpha=candidate.alpha * step)


def with_factor(candidate, step):
    return replace(candidate, parts=[replace(part, factor=part.factor * step) for part in candidate.parts])


def descended(n_jobs, looks_ahead, optimum):
    """Where two rounds of both moves end, and how often each place was tried."""
    tried = []

    def make(candidate):
        tried.append(candidate.place)
        apart = np.log(np.array(candidate.place, float)) - np.log(optimum)
        return Try(candidate, float(apart @ np.array([[1.0, 0.6], [0.6, 1.0]]) @ apart), np.zeros((1, 1)))

    descent = Descent(make, lambda best: best.loss > 1e-9, n_jobs, looks_ahead)
    best = make(Candidate([PART], 1.0))
    for _ in range(2):
        best = descent.best(descent.best(best, with_alpha, 2.0), with_factor, 1.5)
    return best.candidate.place, tried


@pytest.mark.parametrize("optimum", [(1.0, 1.0), (1.5**3, 2.0**-4), (1.5**-2, 2.0**3), (1.2, 0.7)])
def test_looking_ahead_changes_nothing_but_what_is_tried(optimum):
    place, tried = descended(1, True, np.array(optimum))
    assert len(set(tried)) == len(tried)
    for n_jobs, looks_ahead in ((2, True), (2, False)):
        same, others = descended(n_jobs, looks_ahead, np.array(optimum))
        assert same == place
        assert set(tried) <= set(others)
        assert len(others) == len(tried) or looks_ahead


def test_it_ends_at_an_optimum_that_steps_reach():
    for optimum in 2.0 ** np.arange(-3.0, 4.0):
        (_, alpha), _ = descended(1, True, np.array([1.0, optimum]))
        assert alpha == optimum
