"""Kernel machines in files."""

from os import PathLike
from pathlib import Path
from typing import Any

from binfeat._machine.estimator import KernelMachineBase

_KERNELS = "GammaPitch", "Hat", "Laplacian", "Matern", "RBF", "Skip"
TRUSTED = [
    "binfeat.machine.KernelMachineClassifier",
    "binfeat.machine.KernelMachineRegressor",
    *(f"binfeat.kernels.{name}" for name in _KERNELS),
]


def skops_io() -> Any:
    """The module that reads and writes files of skops. ImportError says what to install."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Models are files of skops. Install it: pip install 'binfeat[persist]'.") from error
    return skops.io


def load(path: str | PathLike) -> Any:
    """Load a kernel machine from a file of `skops.io.dump`, and run no code of the file.

    Only kernel machines and what they are made of are loaded. For other estimators, and for machines with a `cv` that
    is an object or a transformer of targets that is not scikit-learn's, call `skops.io.load` with the types that you
    trust.

    Parameters
    ----------
    path : str or path
        Of a file that this version or an older one has written.

    Returns
    -------
    machine : KernelMachineRegressor or KernelMachineClassifier

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, cut short, of a newer version, or holds anything else than a kernel machine.
    ImportError
        If skops is not installed.

    Examples
    --------
    >>> import binfeat
    >>> machine = binfeat.load("model.skops")  # doctest: +SKIP
    """
    sio, path = skops_io(), Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        types = sorted(set(sio.get_untrusted_types(file=path)) - set(TRUSTED))
        machine = None if types else sio.load(path, trusted=TRUSTED)
    except OSError:
        raise
    except Exception as error:  # any error of skops, zipfile and NumPy about damage
        raise ValueError(f"{path} is no model that can be loaded: {error}") from error
    if not isinstance(machine, KernelMachineBase):
        held = ", ".join(types) or "no kernel machine"
        raise ValueError(f"{path} holds {held}; kernel machines alone work. See skops.io.load(path, trusted=...).")
    return machine
