"""Kernel machines in files of skops, with the names of their targets."""

from binfeat._common.whole_files import written
from binfeat._machine import files


def save(machine, target, path):
    """Write a machine and the name of its target."""
    machine._target = target
    with written(path) as part:
        files.skops_io().dump(machine, part)


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
