"""Saved models: `load`."""

from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

from sklearn.base import BaseEstimator

from binfeat._common.memory import require_memory
from binfeat._common.persistence import Persistent
from binfeat._common.saved_types import TRUSTED_TYPES, with_new_names

_TRANSFORMERS = (  # safe target transformers: their attributes are plain arrays, and they check results
    "FunctionTransformer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
    "StandardScaler",
)
_UNPACKED, _RATIO = 2**28, 100  # bytes that any file may unpack to, and how many times its own size


def skops_io() -> ModuleType:
    """The module that reads and writes skops files; ImportError with the command to install it."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Saved models require skops. Install it: pip install 'binfeat[persist]'.") from error
    return skops.io


def load(path: str | PathLike) -> Any:
    """Load an estimator of binfeat that was saved by `skops.io.dump`, without running code from the file.

    The file must contain a single estimator of binfeat. A `target_transform` can be a scaler of scikit-learn,
    `PowerTransformer`, `QuantileTransformer` or `FunctionTransformer`. For pipelines, other transformers, and splitter
    objects as `cv`, call ``skops.io.load(path, trusted=binfeat.TRUSTED_TYPES)``, and add the names of other types that
    you trust to the list. Files of earlier versions can be loaded. Estimators of `binfeat.distributed` require Dask.

    Parameters
    ----------
    path : str or path
        File of this version or of an earlier version.

    Returns
    -------
    model : estimator of this package

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is damaged, truncated or from a newer version, if its content has more than 256 MB and more than
        100 times the size of the file, or if it contains anything except an estimator of binfeat.
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
        renamed = with_new_names(path)
        where = {"file": path} if renamed is None else {"data": renamed}
        types = sorted(set(sio.get_untrusted_types(**where)) - set(TRUSTED_TYPES))
        model = None if types else (sio.load if renamed is None else sio.loads)(*where.values(), trusted=TRUSTED_TYPES)
    except OSError:
        raise
    except Exception as error:  # any error of skops, zipfile and NumPy about damage
        raise ValueError(f"Cannot load a model from {path}: {error}") from error
    if not isinstance(model, Persistent):
        held = ", ".join(types) or "no estimator of binfeat"
        raise ValueError(
            f"{path} contains {held}; load accepts only estimators of binfeat. See skops.io.load(path, trusted=...)."
        )
    for name, value in vars(model).items():
        _check_transformers(value, f"{name} in {path}")
    return model


def _check_sizes(path: Path) -> None:
    """Raise an error for a file that unpacks to far more than its size, or to more than the memory."""
    with ZipFile(path) as packed:
        n_bytes = sum(part.file_size for part in packed.infolist())
    if n_bytes > max(_UNPACKED, _RATIO * path.stat().st_size):
        raise ValueError(f"it would unpack to {n_bytes:,} bytes, more than {_RATIO} times its size.")
    require_memory(n_bytes, "the model", "Load it on a computer with more memory.")


def _check_transformers(value: object, where: str) -> None:
    """Raise a ValueError for a scikit-learn estimator that is not in the list, here or in a part of the value."""
    waiting, seen = [value], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        kind = type(part)
        if isinstance(part, BaseEstimator):
            if kind.__module__.startswith("sklearn.") and kind.__name__ not in _TRANSFORMERS:
                raise ValueError(
                    f"{where} is a {kind.__name__}; only {', '.join(_TRANSFORMERS)} are loaded. See skops.io.load."
                )
            waiting.extend(vars(part).values())
        elif isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)
