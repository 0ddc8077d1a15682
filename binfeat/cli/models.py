"""Kernel models in skops files, with the names of their targets."""

from pathlib import Path

import numpy as np

from binfeat._common.load import load as load_any
from binfeat._common.load import skops_io
from binfeat._common.whole_files import written
from binfeat.models.estimator import KernelMachineBase


def require_finite(machine: KernelMachineBase) -> None:
    """Raise ValueError if an error or a coefficient of a model is not finite."""
    error = machine.held_out_error_[0]
    infinite = np.flatnonzero(np.isinf(machine.decisions_["error"]))
    if np.isfinite(error) and not infinite.size and np.isfinite(machine.feature_coef_).all():
        return
    place = (
        f"error of the decision '{machine.decisions_['what'][infinite[0]]}'" if infinite.size else "validation error"
    )
    raise ValueError(
        f"The {place} is not finite, so no model was written. Check the values of the table, and pass at least 4 rows."
    )


def save(machine: KernelMachineBase, target: str, path: Path) -> None:
    machine._target = target
    with written(path) as out:
        skops_io().dump(machine, out)


def load(path: Path) -> KernelMachineBase:
    """Load a model with column names from a file; see `binfeat.load`."""
    machine = load_any(path)
    if not isinstance(machine, KernelMachineBase):
        raise ValueError(f"{path} contains no kernel model, but a {type(machine).__name__}; write one by binfeat fit.")
    if not hasattr(machine, "feature_coef_") or not hasattr(machine, "feature_names_in_"):
        raise ValueError(f"{path} contains a model without column names. Fit it to a data frame, or by this command.")
    return machine


def target_of(machine: KernelMachineBase, path: Path) -> str:
    """Return the name of the target of a model; ValueError if the file does not contain it."""
    target = vars(machine).get("_target")
    if target is None:
        raise ValueError(
            f"{path} does not contain the name of the target. Fit the model by this command, or call its report()."
        )
    return target
