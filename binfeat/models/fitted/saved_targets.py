"""Checks of the target or label encoding of a kernel model."""

from typing import Any

import numpy as np

from binfeat._common.saved_values import (
    check_arrays,
    check_bounds,
    check_classes,
    check_keys,
    check_numbers_of,
    check_word,
)
from binfeat.models.target.transforms import TRANSFORMS, CallersTransform

_TARGETS = {
    "_target_mean": (np.float64, "targets"),
    "_target_std": (np.float64, "targets"),
    "_target_shifts": (np.float64, "shifts", "targets"),
}
_TRANSFORMS = {
    **{name: {} for name in TRANSFORMS},
    "arcsinh": {"center": (np.float64, "targets"), "unit": (np.float64, "targets")},
}
_MOST_CHOSEN = 7  # degrees of freedom that the choices of a fit count as
_CALIBRATION = {
    "calibration_coef_": (np.float64, "two", "classes", "classes"),
    "calibration_intercept_": (np.float64, "classes"),
}


def check_targets(state: dict[str, Any], sizes: dict[str, int]) -> None:
    """Refuse numbers of targets, or a transform, that do not fit together."""
    check_arrays(state, _TARGETS, sizes)
    check_bounds(state, "_target_std", above=0.0)
    if not sizes["shifts"]:
        raise ValueError("_target_shifts should have at least one row.")
    if "_target_limits" in state:
        limits = state["_target_limits"]
        check_arrays(state, {"_target_limits": (np.float64, "two", "targets")}, sizes, infinite=("_target_limits",))
        if not (limits[0] <= limits[1]).all() or (limits[0] == np.inf).any() or (limits[1] == -np.inf).any():
            raise ValueError("_target_limits should rise.")
    n_chosen = state.get("_n_chosen", 0)
    if type(n_chosen) is not int or not 0 <= n_chosen <= _MOST_CHOSEN:
        raise ValueError(f"_n_chosen should be an integer from 0 to {_MOST_CHOSEN}.")
    check_numbers_of(state, _one_target=bool)
    if state["_one_target"] and sizes["targets"] != 1:
        raise ValueError(f"_one_target should be false for {sizes['targets']} targets.")
    if "target_transformer_" in state:
        check_numbers_of(state, target_transform_=str)
        check_keys(state["_target_transform"], (), (), "_target_transform")
        _check_transformer(state["target_transformer_"], state["_target_mean"])
        return
    layout = _TRANSFORMS[check_word(state, "target_transform_", _TRANSFORMS)]
    check_keys(state["_target_transform"], layout, (), "_target_transform")
    check_arrays(state["_target_transform"], layout, sizes)
    if layout:
        check_bounds(state["_target_transform"], "unit", above=0.0)


def _check_transformer(transformer: Any, mean: np.ndarray) -> None:
    """Refuse a transformer of targets that cannot transform the mean back to finite numbers."""
    try:
        with np.errstate(all="ignore"):
            targets = CallersTransform(transformer).inverse(mean[np.newaxis])
    except Exception as error:  # of any transformer
        raise ValueError(f"target_transformer_ cannot transform targets back: {error}") from error
    if not np.isfinite(targets).all():
        raise ValueError(f"target_transformer_ should transform the mean back to finite numbers, got {targets[0]}.")


def check_labels(state: dict[str, Any], sizes: dict[str, int]) -> None:
    """Refuse classes that do not fit to the function, or to their calibrations."""
    check_numbers_of(state, multilabel_=bool)
    classes, n_targets = state["classes_"], 0
    if isinstance(classes, list):
        names = "classes_", *_CALIBRATION
        parts = zip(*(state[name] for name in names), strict=True)
        columns = [dict(zip(names, own, strict=True)) | {"multilabel_": False} for own in parts]
        if state["multilabel_"] or not columns:
            raise ValueError("classes_ should be an array where multilabel_ is true, and not be empty.")
    else:
        columns = [state]
    for own in columns:
        n_classes = check_classes(own["classes_"], fewest=1 if own["multilabel_"] else 2)
        n_targets += 1 if n_classes == 2 and not own["multilabel_"] else n_classes
        check_arrays(own, _CALIBRATION, {"two": 2, "classes": n_calibrated(own)}, order="C or Fortran")
    if n_targets != sizes["targets"]:
        raise ValueError(f"classes_ should belong to {sizes['targets']} targets, got {n_targets}.")


def n_calibrated(state: dict[str, Any]) -> int:
    """Return the number of classes of a calibration: the classes of the labels, or two for present and absent."""
    return 2 if state["multilabel_"] else len(state["classes_"])
