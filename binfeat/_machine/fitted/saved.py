"""Checks of a kernel machine that is loaded from a file."""

import numpy as np

from binfeat._binning.saved import GRIDS
from binfeat._common.calibration import Calibration
from binfeat._common.persistence import FLOATS, check_arrays, check_starts
from binfeat._machine.table.ranks import NO_RANKS

SINGLES = "coef", "weights", "residuals", "scores"  # arrays that a compact machine has in float32
_COLUMNS = {
    "categorical": (np.bool_, "inputs"),
    "source": (np.int64, "inputs"),
    "medians": (np.float64, "columns"),
    "lows": (np.float64, "columns"),
    "highs": (np.float64, "columns"),
    "rank_knots": (np.float64, "rank_knots"),
    "rank_values": (np.float64, "rank_knots"),
}
_QUANTILES = {"columns": (np.int64, "mapped"), "knots": (np.float64, "knots"), "ranks": (np.float64, "knots")}

_EXACT = {
    "nus": (np.float64, "kernels"),
    "shares": (np.float64, "kernels"),
    "gammas": (np.float64, "kernels", "inputs"),
    "categorical": (np.bool_, "inputs"),
    "support": (np.float32, "inputs", "support"),
    "center": (np.float64, "inputs"),
    "unit": (np.float64, "inputs"),
    "alpha": (np.float64,),
    "weights": (FLOATS, "support"),
}
_LOCAL = {
    **_EXACT,
    "inputs": (np.int32, "splits"),
    "places": (np.float64, "splits"),
    "children": (np.int32, "splits", "two"),
    "roots": (np.int32, "trees"),
    "rows": (np.int32, "features"),
    "cell_alphas": (np.float64, "cells"),
    "cell_intercepts": (np.float64, "cells", "targets"),
}
_SPREAD = {
    **_EXACT,
    "coef": (FLOATS, "targets", "support"),
    "intercept": (np.float64, "targets"),
    "differ": (np.bool_,),
    "residuals": (FLOATS, "judged", "targets"),
}
_TARGETS = {
    "_target_mean": (np.float64, "targets"),
    "_target_std": (np.float64, "targets"),
    "_target_shifts": (np.float64, "shifts", "targets"),
}
_POSTERIOR = {
    "alpha": (np.float64,),
    "coef": (np.float32, "roots", "features"),
    "intercept": (np.float64, "roots"),
}
_CALIBRATION = {
    "calibration_coef_": (np.float64, "two", "classes", "classes"),
    "calibration_intercept_": (np.float64, "classes"),
}
_HELD_OUT = {"noise": (np.float64, "targets"), "scores": (FLOATS, "judged", "targets")}
_MOST_CHOSEN = 7  # degrees of freedom that the choices of a fit count as
_TRANSFORMS = {"center": (np.float64, "targets"), "unit": (np.float64, "targets")}
_RENAMED = {"width_errors_": "length_scale_errors_", "width_gammas_": "length_scale_gammas_"}


def migrate(state: dict, file_format: int) -> None:
    """Bring what a file of an older format has up to date."""
    for old, new in _RENAMED.items():
        if old in state:
            state[new] = state.pop(old)
    if "_exact" in state:
        state.setdefault("_rotation", np.empty((0, 0)))
        state.setdefault("_local", {})
        state.setdefault("n_trees_", 0)
        medians = state["_columns"]["medians"]
        ends = {"lows": medians - np.inf, "highs": medians + np.inf}
        state["_columns"] = NO_RANKS | ends | state["_columns"]
    if "sharpness_" in state:
        calibration = Calibration.of_factor(state.pop("sharpness_"), _n_calibrated(state))
        state |= {"calibration_coef_": calibration.coef, "calibration_intercept_": calibration.intercept}


def check_machine(state: dict) -> None:
    """Refuse a kernel machine whose arrays do not fit together."""
    if "_exact" not in state:
        return
    sizes = {"columns": state["n_features_in_"]}
    _check_table(state["_columns"], sizes)
    _check_function(state, sizes)
    _check_what_is_known(state, sizes)
    for own in _columns_of_labels(state):
        check_arrays(own, _CALIBRATION, {"two": 2, "classes": _n_calibrated(own)}, order="C or Fortran")
    if "_target_shifts" in state:
        _check_targets(state, sizes)
    scaler = state["_scaler"]
    if "knots" in scaler:
        check_arrays(scaler, _QUANTILES, sizes)
        check_starts(scaler, "starts", sizes["mapped"], sizes["knots"])
        _check_knots("the scaler", scaler["starts"], np.isin(scaler["columns"], range(sizes["inputs"])).all())


def _check_table(columns: dict, sizes: dict) -> None:
    """What becomes of the columns of a table."""
    check_arrays(columns, _COLUMNS, sizes)
    if columns["times"].shape != (sizes["columns"],):
        raise ValueError(f"times should have {sizes['columns']} strings.")
    if sizes["inputs"] < sizes["columns"] or not np.isin(columns["source"], range(sizes["columns"])).all():
        raise ValueError("source should name columns, all of them.")
    n_ranked = columns["rank_starts"].size - 1
    check_starts(columns, "rank_starts", n_ranked, sizes["rank_knots"])
    n_coded = np.count_nonzero((np.diff(columns["number_starts"]) > 0) & ~columns["categorical"][: sizes["columns"]])
    _check_knots("ranks", columns["rank_starts"], n_ranked + n_coded <= sizes["inputs"] - sizes["columns"])


def _check_function(state: dict, sizes: dict) -> None:
    """The function that predicts."""
    if state["_exact"]:
        check_arrays(state["_exact"], _EXACT, sizes)
        _check_linear_map(state["_exact"].get("rotation"), sizes)
        sizes["features"] = sizes["support"]
    elif state["_local"]:
        _check_local(state["_local"], sizes)
    else:
        sizes["features"] = _check_features(state, sizes)
    check_arrays(state, {"feature_coef_": (FLOATS, "targets", "features")}, sizes)
    _check_linear_map(state.get("_rotation"), sizes)


def _check_what_is_known(state: dict, sizes: dict) -> None:
    """Hashes of the rows of `fit`, importances, sizes of residuals, the posterior and the rows held out."""
    if state.get("_seen"):
        check_arrays(state["_seen"], {"hashes": (np.uint64, "seen")}, {})
    if state.get("_rises"):
        check_arrays(state["_rises"], {"of_inputs": (np.float64, "columns")}, sizes)
    if state.get("_spread"):
        own = {name: size for name, size in sizes.items() if name in ("inputs", "targets")}
        check_arrays(state["_spread"], _SPREAD, own, order="C or Fortran")
        _check_linear_map(state["_spread"]["rotation"], own)
    for name, layout in (("_posterior", _POSTERIOR), ("_held_out", _HELD_OUT)):
        if state.get(name):
            check_arrays(state[name], layout, sizes, order="C or Fortran")  # for NumPy alone


def _check_targets(state: dict, sizes: dict) -> None:
    check_arrays(state, _TARGETS, sizes)
    if not sizes["shifts"]:
        raise ValueError("_target_shifts should have at least one row.")
    if "_target_limits" in state:
        check_arrays(state, {"_target_limits": (np.float64, "two", "targets")}, {**sizes, "two": 2})
    n_chosen, quantile = state.get("_n_chosen", 0), state.get("_quantile")
    if type(n_chosen) is not int or not 0 <= n_chosen <= _MOST_CHOSEN:
        raise ValueError(f"_n_chosen should be an integer from 0 to {_MOST_CHOSEN}.")
    if quantile is not None and not (type(quantile) is float and 0 < quantile < 1):
        raise ValueError("_quantile should be a float between 0 and 1, or None.")
    transform = state["_target_transform"]
    check_arrays(transform, {name: _TRANSFORMS[name] for name in transform}, sizes)


def _check_knots(what: str, starts: np.ndarray, are_inputs: bool | np.bool_) -> None:
    if (np.diff(starts) < 2).any() or not are_inputs:
        raise ValueError(f"{what} should have two knots for each of some inputs.")


def _columns_of_labels(state: dict) -> list[dict]:
    """What belongs to each column of labels; nothing of numbers."""
    if "calibration_coef_" not in state:
        return []
    if not isinstance(state["classes_"], list):
        return [state]
    names = "classes_", *_CALIBRATION
    parts = zip(*(state[name] for name in names), strict=True)
    return [dict(zip(names, own, strict=True)) | {"multilabel_": False} for own in parts]


def _n_calibrated(state: dict) -> int:
    """Classes of a calibration: those of the labels, or two, of a row that has a label or not."""
    return 2 if state["multilabel_"] else len(state["classes_"])


def _check_linear_map(linear_map: np.ndarray | None, sizes: dict[str, int]) -> None:
    """Refuse a linear map that does not suit the inputs; older files have none."""
    if linear_map is not None and linear_map.size:
        check_arrays({"rotation": linear_map}, {"rotation": (np.float64, "inputs", "rank")}, dict(sizes))


def _check_local(arrays: dict, sizes: dict[str, int]) -> None:
    """Refuse a local machine in which a row would not find its way to a cell, or a cell to its rows."""
    sizes["two"] = 2
    check_arrays(arrays, _LOCAL, sizes)
    _check_linear_map(arrays.get("rotation"), sizes)
    check_starts(arrays, "starts", sizes["cells"], sizes["features"])
    splits = np.arange(sizes["splits"])[:, np.newaxis]
    children, roots = arrays["children"], arrays["roots"]
    if not (children > splits)[children >= 0].all():
        raise ValueError("a split should come before its children.")
    for numbers in (children, roots):
        if numbers.size and not (-sizes["cells"] <= numbers.min() and numbers.max() < sizes["splits"]):
            raise ValueError("children and roots should be splits or cells.")
    if not sizes["trees"]:
        raise ValueError("roots should be splits or cells, at least one.")
    for name, most in (("inputs", sizes["inputs"]), ("rows", sizes["support"])):
        if arrays[name].size and not (arrays[name].min() >= 0 and arrays[name].max() < most):
            raise ValueError(f"{name} should be numbers below {most}.")


def _check_features(state: dict, sizes: dict[str, int]) -> int:
    """The number of bins and Fourier features of a machine, whose arrays fit together."""
    check_arrays(state, {**GRIDS, "_bin_keys": (np.uint64, "bins")}, sizes)
    check_starts(state, "_bin_starts", sizes["grids"], sizes["bins"])
    n_frequencies = state["_frequencies"].shape[1]
    if n_frequencies:
        check_arrays(state, {"_frequencies": (np.float64, "inputs", "frequencies")}, sizes)
    return sizes["bins"] + 2 * n_frequencies
