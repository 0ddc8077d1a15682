"""What fits of kernel machines may try in a test."""

from contextlib import contextmanager

import pytest

from binfeat.models import estimator, limits


def set_limits(patch, **figures):
    """Set the limits that are named until the patch is undone; all others are those of the package."""
    patch.setattr(estimator.KernelMachineBase, "_limits", limits.Limits(**figures))


@contextmanager
def limited(**figures):
    """Set limits for the fits of a `with` block, as in fixtures of modules; tests have the fixture `limits`."""
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, **figures)
        yield


def current_limits():
    return estimator.KernelMachineBase._limits
