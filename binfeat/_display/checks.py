"""Checks that displays share."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._machine.base import KernelMachineBase


def require_machine(machine, attribute):
    """Refuse what is no kernel machine, or is not fitted."""
    if not isinstance(machine, KernelMachineBase):
        raise TypeError(
            "machine must be a KernelMachineRegressor or KernelMachineClassifier, of a pipeline its last step; "
            f"got {type(machine).__name__}."
        )
    check_is_fitted(machine, attribute)


def names_of(feature_names, values, what):
    """Names of the inputs, one for each row of `values`; ValueError if they are not as many."""
    if feature_names is None:
        return [f"x{j}" for j in range(len(values))]
    names = [str(name) for name in np.atleast_1d(np.asarray(feature_names, dtype=object))]
    if len(names) != len(values):
        raise ValueError(f"feature_names must have one name per {what}; got {len(names)} for shape {values.shape}.")
    return names
