"""Kernel models of raw tables: `KernelMachineRegressor` and `KernelMachineClassifier`."""

from binfeat.machine.classifier import KernelMachineClassifier
from binfeat.machine.regressor import KernelMachineRegressor

__all__ = ["KernelMachineClassifier", "KernelMachineRegressor"]
