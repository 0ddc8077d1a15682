"""Kernel models in skops files, with the names of their targets."""

from pathlib import Path

import numpy as np

from binfeat._common.load import load as load_any
from binfeat._common.load import skops_io
from binfeat._common.whole_files import written
from binfeat.models.estimator import KernelMachineBase


def require_finite(model: KernelMachineBase) -> None:
    """Raise ValueError if an error or a coefficient of a model is not finite."""
    error = model.held_out_error_[0]
    infinite = np.flatnonzero(np.isinf(model.decisions_["error"]))
    if np.isfinite(error) and not infinite.size and np.isfinite(model.feature_coef_).all():
        return
    place = f"error of the decision '{model.decisions_['what'][infinite[0]]}'" if infinite.size else "validation error"
    raise ValueError(
        f"The {place} is not finite, so no model was written. Check the values of the table, and pass at least 4 rows."
    )


def save(model: KernelMachineBase, target: str, path: Path) -> None:
    model._target = target
    with written(path) as out:
        skops_io().dump(model, out)


def load(path: Path) -> KernelMachineBase:
    """Load a model with column names from a file; see `binfeat.load`."""
    model = load_any(path)
    if not isinstance(model, KernelMachineBase):
        raise ValueError(f"{path} contains no kernel model, but a {type(model).__name__}; write one by binfeat fit.")
    if not hasattr(model, "feature_coef_") or not hasattr(model, "feature_names_in_"):
        raise ValueError(f"{path} contains a model without column names. Fit it to a data frame, or by this command.")
    return model


def target_of(model: KernelMachineBase, path: Path) -> str:
    """Return the name of the target of a model; ValueError if the file does not contain it."""
    target = vars(model).get("_target")
    if target is None:
        raise ValueError(
            f"{path} does not contain the name of the target. Fit the model by this command, or call its report()."
        )
    return target
