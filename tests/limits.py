"""Limits on the search of kernel models in tests."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from binfeat.models import estimator, settings, solvers

# Constants of `binfeat._warm_up` that restrict it to float64 and 16-bit codes.
COMMON_TYPES = {"_TYPES": (np.float64,), "_MANY_BINS": 300}


def set_limits(patch, without=(), **figures):
    """Set the limits that are named until the patch is undone, and switch mechanisms off; all others stay.

    A limit on the steps of the search for length scales holds for the learner, too: at least six steps.
    """
    if "n_steps" in figures:
        for module, name in ((solvers.local, "CELLS"), (solvers.exact, "ALL_ROWS"), (solvers.exact, "FEW_ROWS")):
            plan = getattr(solvers.learner, name)
            patch.setattr(module, name, replace(plan, n_steps=min(plan.n_steps, max(6, figures["n_steps"]))))
    mechanisms = settings.Mechanisms(**dict.fromkeys(without, False))
    patch.setattr(estimator.KernelMachineBase, "_limits", settings.Limits(mechanisms=mechanisms, **figures))


@contextmanager
def limited(**figures):
    """Set limits for the fits in a `with` block, for fixtures of modules; tests use the fixture `limits`."""
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, **figures)
        yield


def current_limits():
    return estimator.KernelMachineBase._limits
