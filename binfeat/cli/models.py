"""Kernel machines in files of skops, with the names of their targets."""

import numpy as np

from binfeat._common.whole_files import written
from binfeat.models import files


def require_finite(machine):
    """Refuse a machine whose errors or coefficients are not finite with a ValueError."""
    error = machine.held_out_error_[0]
    infinite = np.flatnonzero(np.isinf(machine.decisions_["error"]))
    if np.isfinite(error) and not infinite.size and np.isfinite(machine.feature_coef_).all():
        return
    place = f"the decision '{machine.decisions_['what'][infinite[0]]}'" if infinite.size else "rows left out"
    raise ValueError(
        f"The error of {place} is not finite, so no model was written. The table may be damaged, or have too few rows; "
        "give at least 4 rows, and look at its values."
    )


def save(machine, target, path):
    """Write a machine and the name of its target."""
    machine._target = target
    with written(path) as out:
        files.skops_io().dump(machine, out)


def load(path):
    """The machine in a file, with names of its columns; see `binfeat.load`."""
    machine = files.load(path)
    if not hasattr(machine, "feature_coef_") or not hasattr(machine, "feature_names_in_"):
        raise ValueError(f"{path} holds a machine without names of columns; fit it to a data frame or by this command.")
    return machine


def target_of(machine, path):
    """The name of the target of a machine; ValueError if the file does not say."""
    target = vars(machine).get("_target")
    if target is None:
        raise ValueError(f"{path} does not name the target; fit the machine by this command, or call its report().")
    return target
