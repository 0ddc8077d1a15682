"""What fits of kernel machines may try in a test."""

from contextlib import contextmanager

import pytest

from binfeat.models import estimator, settings


def set_limits(patch, without=(), **figures):
    """Set the limits that are named until the patch is undone, and switch mechanisms off; all others stay."""
    mechanisms = settings.Mechanisms(**dict.fromkeys(without, False))
    patch.setattr(estimator.KernelMachineBase, "_limits", settings.Limits(mechanisms=mechanisms, **figures))


@contextmanager
def limited(**figures):
    """Set limits for the fits of a `with` block, as in fixtures of modules; tests have the fixture `limits`."""
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, **figures)
        yield


def current_limits():
    return estimator.KernelMachineBase._limits
