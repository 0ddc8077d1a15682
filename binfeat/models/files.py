"""Saved kernel models: `load`."""

from os import PathLike
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from binfeat._common.memory import require_memory
from binfeat.models.estimator import KernelMachineBase

_KERNELS = "GammaPitch", "Hat", "Laplacian", "Matern", "RBF", "Skip"
TRUSTED = [
    "binfeat.KernelMachineClassifier",
    "binfeat.KernelMachineRegressor",
    *(f"binfeat.kernels.{name}" for name in _KERNELS),
]


_TRANSFORMERS = (  # of targets: their attributes are plain arrays, and they check what they compute
    "FunctionTransformer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
    "StandardScaler",
)
_UNPACKED, _RATIO = 2**28, 100  # bytes that any file may unpack to, and how many times its own size


def skops_io() -> Any:
    """The module that reads and writes skops files; ImportError with the command to install it."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Saved models require skops. Install it: pip install 'binfeat[persist]'.") from error
    return skops.io


def load(path: str | PathLike) -> Any:
    """Load a kernel model that was saved by `skops.io.dump`. Code in the file is never run.

    Only kernel models and their parts are loaded: `target_transform` can be a scaler of scikit-learn,
    `PowerTransformer`, `QuantileTransformer` or `FunctionTransformer`. For other estimators, and for models with other
    transformers or a splitter object as `cv`, call `skops.io.load` with the types that you trust. The sizes of all
    parts are checked before any part is unpacked.

    Parameters
    ----------
    path : str or path
        File written by this version or an older version.

    Returns
    -------
    model : KernelMachineRegressor or KernelMachineClassifier

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is damaged, truncated or from a newer version, unpacks to more than 256 MB and 100 times its size,
        or contains other objects than a kernel model.
    ImportError
        If skops is not installed.

    Examples
    --------
    >>> import binfeat
    >>> model = binfeat.load("model.skops")  # doctest: +SKIP
    """
    sio, path = skops_io(), Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        _check_sizes(path)
        types = sorted(set(sio.get_untrusted_types(file=path)) - set(TRUSTED))
        machine = None if types else sio.load(path, trusted=TRUSTED)
    except OSError:
        raise
    except Exception as error:  # any error of skops, zipfile and NumPy about damage
        raise ValueError(f"Cannot load a model from {path}: {error}") from error
    if not isinstance(machine, KernelMachineBase):
        held = ", ".join(types) or "no kernel model"
        raise ValueError(
            f"{path} contains {held}; load accepts only kernel models. See skops.io.load(path, trusted=...)."
        )
    for name in ("target_transform", "target_transformer_"):
        _check_transformer(vars(machine).get(name), f"{name} in {path}")
    return machine


def _check_sizes(path: Path) -> None:
    """Raise an error for a file that unpacks to far more than its size, or to more than the memory."""
    with ZipFile(path) as packed:
        n_bytes = sum(part.file_size for part in packed.infolist())
    if n_bytes > max(_UNPACKED, _RATIO * path.stat().st_size):
        raise ValueError(f"it would unpack to {n_bytes:,} bytes, more than {_RATIO} times its size.")
    require_memory(n_bytes, "the model", "Load it on a computer with more memory.")


def _check_transformer(transformer: object, where: str) -> None:
    """Raise a ValueError for a scikit-learn transformer that is not in the list."""
    kind = type(transformer)
    if kind.__module__.startswith("sklearn.") and kind.__name__ not in _TRANSFORMERS:
        raise ValueError(
            f"{where} is a {kind.__name__}; only {', '.join(_TRANSFORMERS)} are loaded. See skops.io.load."
        )
