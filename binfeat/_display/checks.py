"""Checks that displays share, and what their docstrings say of them."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._display.canvas import AX
from binfeat._machine.estimator import KernelMachineBase

# For docstrings of displays of a machine's inputs.
OF_INPUTS = {
    **AX,
    "machine": """\
machine : KernelMachineRegressor or KernelMachineClassifier
feature_names : array-like of str of shape (n_inputs,), default=None
    None uses the column names seen in `fit`, if there were any.""",
}


def require_machine(machine, attribute):
    """Refuse what is no kernel machine, or is not fitted."""
    if not isinstance(machine, KernelMachineBase):
        raise TypeError(
            "machine must be a KernelMachineRegressor or KernelMachineClassifier, of a pipeline its last step; "
            f"got {type(machine).__name__}."
        )
    check_is_fitted(machine, attribute)


def given_or_seen(feature_names, machine):
    """These names, or those of the columns seen in `fit`; None if there are neither."""
    return getattr(machine, "feature_names_in_", None) if feature_names is None else feature_names


def names_of(feature_names, values, what):
    """Names of the inputs, one for each row of `values`; ValueError if they are not as many."""
    if feature_names is None:
        return [f"x{j}" for j in range(len(values))]
    names = [str(name) for name in np.atleast_1d(np.asarray(feature_names, dtype=object))]
    if len(names) != len(values):
        raise ValueError(f"feature_names must have one name per {what}; got {len(names)} for shape {values.shape}.")
    return names
