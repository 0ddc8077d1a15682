"""What fits of kernel machines may try in a test."""

from contextlib import contextmanager

import pytest

from binfeat._machine.estimator import KernelMachineBase
from binfeat._machine.limits import Limits


def set_limits(patch, **figures):
    """Set limits by name until the patch is undone; the others are the package's."""
    patch.setattr(KernelMachineBase, "_limits", Limits(**figures))


@contextmanager
def limited(**figures):
    """Limits for fits outside of a test; inside of one, the fixture `limits` sets them."""
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, **figures)
        yield


def current_limits():
    return KernelMachineBase._limits
