"""Checks of a kernel model that is loaded from a file."""

from numbers import Integral
from typing import Any

import numpy as np

from binfeat._common.calibration import Calibration
from binfeat._common.saved_values import (
    check_arrays,
    check_bounds,
    check_inputs,
    check_keys,
    check_numbers_of,
    is_plain,
)
from binfeat.models.fitted.saved_function import check_function, check_posterior, check_spread
from binfeat.models.fitted.saved_table import check_scaler, check_scaling, check_table
from binfeat.models.fitted.saved_targets import check_labels, check_targets, n_calibrated
from binfeat.models.settings import SOLVER_OPTIONS, Settings
from binfeat.models.table.derived import NO_RANKS

SINGLES = "coef", "weights", "residuals", "scores"  # arrays that are float32 in a compact model
_DECISIONS = {"what": "U", "choice": "U", "error": "f", "seconds": "f"}
_RECORDS: dict[str, dict[str, tuple]] = {
    "_seen": {"hashes": (np.uint64, "seen")},
    "_rises": {"of_inputs": (np.float64, "columns")},
}
_HISTORY = {
    "held_out_error_": (np.float64, "two"),
    "learning_curve_": (np.float64, "batches", "two"),
    "length_scale_errors_": (np.float64, "steps"),
    "length_scale_gammas_": (np.float64, "steps", "any inputs"),
}
_KERNEL_GAMMA = 5  # first format with the kernel's gamma in `gamma_`, not an inverse length
_OPTIONS = *SOLVER_OPTIONS, "n_posterior_samples"  # parameters up to format 5
_RENAMED = {"width_errors_": "length_scale_errors_", "width_gammas_": "length_scale_gammas_"}


def migrate(state: dict, file_format: int) -> None:
    """Bring what a file of an older format has up to date."""
    for old, new in _RENAMED.items():
        if old in state:
            state[new] = state.pop(old)
    _move_options(state)
    if "_exact" in state:
        state.setdefault("_fitted_with", np.array(["of an older version"]))  # no fit goes on from it
        state.setdefault("_rotation", np.empty((0, 0)))
        state.setdefault("_local", {})
        state.setdefault("n_trees_", 0)
        medians = state["_columns"]["medians"]
        ends = {"lows": medians - np.inf, "highs": medians + np.inf}
        state["_columns"] = NO_RANKS | ends | state["_columns"]
    if "gamma_" in state and file_format < _KERNEL_GAMMA and _is_radial(state):
        state["gamma_"] = state["gamma_"] ** 2
        if not isinstance(state["gamma"], str):
            state["gamma"] = np.square(state["gamma"])
    if "sharpness_" in state:
        calibration = Calibration.of_factor(state.pop("sharpness_"), n_calibrated(state))
        state |= {"calibration_coef_": calibration.coef, "calibration_intercept_": calibration.intercept}


def _move_options(state: dict) -> None:
    """Move parameters of older formats to `solver_params`, and leave "auto" out."""
    given = {name: state.pop(name) for name in _OPTIONS if name in state}
    if given:
        options = {name: int(value) for name, value in given.items() if isinstance(value, Integral)}
        if options.get("max_grids") == Settings.max_grids:
            del options["max_grids"]
        state["solver_params"] = options or None


def _is_radial(state: dict) -> bool:
    """Return True if the gamma of the kernel multiplies squared distances."""
    record = state.get("_exact") or state.get("_local")
    if not record:
        return state["features_"] == "fourier"
    return bool(record["nus"][np.argmax(record["shares"])])  # 0 is the Laplacian


def check_regressor(state: dict[str, Any]) -> None:
    """Raise ValueError for a fitted `KernelMachineRegressor` with inconsistent attributes."""
    sizes = _check_machine(state)
    check_targets(state, sizes)
    check_posterior(state, sizes)
    check_spread(state, sizes)


def check_classifier(state: dict[str, Any]) -> None:
    """Raise ValueError for a fitted `KernelMachineClassifier` with inconsistent attributes."""
    check_labels(state, _check_machine(state))


def _check_machine(state: dict[str, Any]) -> dict[str, int]:
    """Check the attributes of regressors and classifiers; return lengths of axes by name."""
    sizes = {"columns": check_inputs(state), "two": 2}
    check_table(state["_columns"], sizes)
    check_scaler(state["_scaler"], check_scaling(state), sizes)
    check_function(state, sizes)
    check_arrays(state, {"feature_relevances_": (np.float64, "columns"), "gamma_": (np.float64, "inputs")}, sizes)
    check_bounds(state, "gamma_", "feature_relevances_", least=0.0)
    check_arrays(state, _HISTORY, dict(sizes), order="any", infinite=tuple(_HISTORY))
    check_numbers_of(state, kernel_=str, alpha_=float)
    if "status_" in state:  # which a fit that is interrupted takes away
        check_numbers_of(state, status_=str)
    _check_words(state)
    for name, layout in _RECORDS.items():
        record = state.get(name, {})
        check_keys(record, layout if record else {}, (), name)
        check_arrays(record, layout if record else {}, dict(sizes))
    return sizes


def _check_words(state: dict[str, Any]) -> None:
    """The decisions of the fit, and the settings that it was made with."""
    decisions = state["decisions_"]
    fields = decisions.dtype.fields if is_plain(decisions) and decisions.ndim == 1 else None
    if {name: kind.kind for name, (kind, _) in (fields or {}).items()} != _DECISIONS:
        raise ValueError(f"decisions_ should be an array with the fields {list(_DECISIONS)}.")
    words = state["_fitted_with"]
    if not is_plain(words) or words.ndim != 1 or words.dtype.kind != "U" or not words.size:
        raise ValueError("_fitted_with should be an array of strings.")
