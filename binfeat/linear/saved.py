"""Checks of a ridge model that is loaded from a file."""

from typing import Any

import numpy as np

from binfeat._common.saved_values import (
    FLOATS,
    INTEGERS,
    check_arrays,
    check_bounds,
    check_classes,
    check_inputs,
    check_keys,
    check_numbers_of,
    check_starts,
)
from binfeat.linear.compact_coef import expand
from binfeat.linear.incremental import kept_of
from binfeat.linear.posterior import RidgePosterior

_KEPT = {"Y": (np.float64, "rows", "targets")}
_SUMS = {
    "matrix": (np.float64, "features", "features"),
    "right": (np.float64, "features", "targets"),
    "means": (np.float64, "features"),
    "target_means": (np.float64, "targets"),
}
_KEPT_CSR = {"data": (FLOATS, "entries"), "indices": (INTEGERS, "entries"), "indptr": (INTEGERS, "starts")}
_CALIBRATION = {
    "calibration_coef_": (np.float64, "two", "classes", "classes"),
    "calibration_intercept_": (np.float64, "classes"),
}


def check_ridge(state: dict[str, Any]) -> None:
    expand(state)
    if "classes_" in state:
        raise ValueError("classes_ belong to a classifier.")
    _check_linear(state, {"features": check_inputs(state)})


def check_ridge_classifier(state: dict[str, Any]) -> None:
    expand(state)
    sizes = {"features": check_inputs(state)}
    check_numbers_of(state, multilabel_=bool)
    n_classes = check_classes(state["classes_"], fewest=1 if state["multilabel_"] else 2)
    sizes["targets"] = 1 if n_classes == 2 and not state["multilabel_"] else n_classes
    if np.ndim(state["coef_"]) != 2:
        raise ValueError(f"coef_ should have a row for each target, got {np.ndim(state['coef_'])} dimensions.")
    if "calibration_coef_" in state:
        check_arrays(state, _CALIBRATION, {"two": 2, "classes": 2 if state["multilabel_"] else n_classes}, order="any")
    _check_linear(state, sizes)


def _check_linear(state: dict[str, Any], sizes: dict[str, int]) -> None:
    """Check the linear function, its history, its posterior, and the stored rows of `partial_fit`."""
    flat = np.ndim(state["coef_"]) == 1
    axes = ("features",) if flat else ("targets", "features")
    check_arrays(state, {"coef_": (FLOATS, *axes)}, sizes, order="any")
    if flat:
        sizes["targets"] = 1
    _check_of_targets(state, "intercept_", flat, sizes, least=-np.inf)
    is_one_alpha = np.ndim(state["alpha_"]) == 0
    _check_of_targets(state, "alpha_", is_one_alpha, sizes, least=0.0)
    check_numbers_of(state, n_iter_=int, solver_=str)
    if "status_" in state:
        check_numbers_of(state, status_=str)
    if "_posterior" in state:
        posterior = state["_posterior"]
        check_keys(posterior, RidgePosterior.layout(), (), "_posterior")
        check_arrays(posterior, RidgePosterior.layout(), sizes, order="any")
        check_bounds(posterior, "alpha", above=0.0)
        _check_of_targets(state, "noise_variance_", flat, sizes, least=0.0)
    if "_kept" in state:
        _check_kept(state["_kept"], sizes, np.asarray(state["coef_"]).dtype)


def _check_of_targets(state: dict[str, Any], name: str, is_scalar: bool, sizes: dict[str, int], least: float) -> None:
    """Check one number per target, or a single number."""
    values = state[name]
    if is_scalar:
        if not isinstance(values, float | np.floating) or not least <= values < np.inf or values == -np.inf:
            raise ValueError(f"{name} should be a finite number of at least {least}, got {values!r}.")
    else:
        check_arrays(state, {name: (FLOATS, "targets")}, sizes, order="any")
        check_bounds(state, name, least=least)


def _check_kept(kept: Any, sizes: dict[str, int], dtype: np.dtype) -> None:
    """Check the rows of earlier calls of `partial_fit`, or their sums."""
    if type(kept) is not dict:
        raise TypeError(f"_kept should be a dict, got {type(kept).__name__}.")
    if "matrix" in kept:
        scalars = {"total": (np.float64,), "fit_intercept": (np.bool_,)}
        check_keys(kept, {**_SUMS, **scalars}, (), "_kept")
        check_arrays(kept, {**_SUMS, **scalars}, sizes)
        check_bounds(kept, "total", above=0.0)
        return
    check_arrays(kept, _KEPT, sizes)
    check_arrays(kept, {"weights": (np.float64, "rows", "one")} if "weights" in kept else {}, sizes | {"one": 1})
    if "weights" in kept:
        check_bounds(kept, "weights", least=0.0)
    if "codes" in kept:
        check_arrays(kept, {"codes": ((np.uint16, np.uint32), "grids", "rows")}, sizes)
        check_starts(kept, "offsets", sizes["grids"], sizes["features"])
    elif "indptr" in kept:
        check_arrays(kept, _KEPT_CSR, sizes | {"starts": sizes["rows"] + 1})
    else:
        check_arrays(kept, {"Z": (FLOATS, "rows", "features")}, sizes)
    kept_of(kept, sizes["features"], dtype)
