"""Kernel machines in files of skops, with the names of their targets, and checks of the names of new files."""

import os

from binfeat._common.whole_files import written

_TRUSTED = {"binfeat.machine.KernelMachineRegressor", "binfeat.machine.KernelMachineClassifier"}


def skops_io():
    """The module that reads and writes files of skops. ImportError says what to install."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Models are files of skops. Install it: pip install 'binfeat[command]'.") from error
    return skops.io


def save(machine, target, path):
    """Write a machine and the name of its target."""
    machine._target = target
    with written(path) as part:
        skops_io().dump(machine, part)


def load(path):
    """The machine in a file; ValueError if the file holds anything else, is damaged, or of a newer version."""
    sio = skops_io()
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        types = set(sio.get_untrusted_types(file=path))
        machine = sio.load(path, trusted=sorted(_TRUSTED)) if types <= _TRUSTED else None
    except OSError:
        raise
    except Exception as error:  # any error of skops, zipfile and NumPy about damage
        raise ValueError(f"{path} is no model that can be loaded: {error}") from error
    if not types or machine is None:
        raise ValueError(f"{path} holds {', '.join(sorted(types)) or 'no kernel machine'}; kernel machines alone work.")
    if not hasattr(machine, "feature_coef_") or not hasattr(machine, "feature_names_in_"):
        raise ValueError(f"{path} holds a machine without names of columns; fit it to a data frame or by this command.")
    return machine


def target_of(machine, path):
    """The name of the target of a machine; ValueError if the file does not say."""
    target = vars(machine).get("_target")
    if target is None:
        raise ValueError(f"{path} does not name the target; fit the machine by this command, or call its report().")
    return target


def require_writable(path):
    """Raise OSError before any work is done if a file of this name cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written: its folder is read-only.")
