"""Checks of a kernel model that is loaded from a file."""

from collections.abc import Collection
from numbers import Integral

import numpy as np

from binfeat._common.array_record import ArrayRecord
from binfeat._common.calibration import Calibration
from binfeat._common.saved_values import (
    FLOATS,
    State,
    check_arrays,
    check_bounds,
    check_inputs,
    check_keys,
    check_numbers_of,
    check_starts,
    check_word,
    is_plain,
)
from binfeat.features.binning.saved import check_grids
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.exact import ExactFunction, NoiseModel
from binfeat.models.fitted.kernel_function import KERNELS, HeldOutErrors, KernelFunction
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.fitted.saved_table import (
    check_labels,
    check_scaler,
    check_table,
    check_targets,
    n_calibrated,
)
from binfeat.models.kernel_algebra.level_effects import NO_COLUMN, LevelColumns
from binfeat.models.settings import SOLVER_OPTIONS, Settings
from binfeat.models.table.derived import NO_RANKS
from binfeat.models.table.targets import LINK


def check_function(state: State, sizes: dict[str, int]) -> None:
    """Raise ValueError for a function with inconsistent arrays; add the numbers of features and targets to `sizes`."""
    features = check_word(state, "features_", ("exact", "local", "binning", "fourier", "hybrid"))
    check_numbers_of(state, n_grids_=int, n_trees_=int)
    for name in ("_exact", "_local"):
        if type(state[name]) is not dict:
            raise TypeError(f"{name} should be a dict, got {type(state[name]).__name__}.")
        if (features == name[1:]) != bool(state[name]):
            raise ValueError(f"{name} should hold a function only where features_ is {name[1:]!r}, got {features!r}.")
    n_grids = n_trees = 0
    if features == "exact":
        _check_names(ExactFunction, state["_exact"], "_exact", "coef")
        check_kernel(state["_exact"], sizes)
        sizes["features"] = sizes["support"]
    elif features == "local":
        _check_names(LocalFunction, state["_local"], "_local", "coef")
        _check_local(state["_local"], sizes)
        n_trees = sizes["trees"]
    else:
        n_grids = _check_features(state, sizes)
    if (state["n_grids_"], state["n_trees_"]) != (n_grids, n_trees):
        raise ValueError(f"n_grids_ and n_trees_ should be {n_grids} and {n_trees}.")
    layout = {"feature_coef_": (FLOATS, "targets", "features"), "intercept_": (np.float64, "targets")}
    check_arrays(state, layout, sizes)
    _check_anchors(state["_exact"], sizes)
    if not (sizes["targets"] and sizes["features"]):
        raise ValueError("feature_coef_ should have a target and a feature or more.")
    _check_linear_map(state["_rotation"], sizes)


def _check_names(kind: type[ArrayRecord], arrays: dict[str, np.ndarray], what: str, *apart: str) -> None:
    """Refuse a record that is not a dict with the fields of this kind, except for those that are stored apart."""
    check_keys(arrays, set(kind.names(optional=False)).difference(apart), kind.names(optional=True), what)


def check_kernel(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    check_arrays(arrays, KernelFunction.layout(), sizes, infinite=("nus",))
    if not (sizes["kernels"] and sizes["support"] and np.isin(arrays["nus"], list(KERNELS)).all()):
        raise ValueError(f"nus should be among {sorted(KERNELS)}, one or more, and there should be rows.")
    check_bounds(arrays, "gammas", "shares", least=0.0)
    check_bounds(arrays, "unit", "alpha", above=0.0)
    check_bounds(arrays, "weights", least=1e-30)  # `fit` refuses larger ratios
    if not arrays["shares"][arrays["nus"] >= 0].sum() > 0:
        raise ValueError("shares of kernels that are not linear should have a positive sum.")
    if "rotation" in arrays:
        _check_linear_map(arrays["rotation"], sizes)
    if "weights_are_counts" in arrays:  # files of older versions have none
        check_arrays(arrays, KernelFunction.layout("weights_are_counts"), sizes)


def _check_anchors(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    """Refuse anchors that are not rows of the exact model; empty arrays, or none, represent all rows."""
    layout = ExactFunction.layout("anchors", "anchor_coef")
    if not any(name in arrays for name in layout):
        return
    check_keys(arrays, layout, arrays, "_exact")
    is_empty = not np.size(arrays["anchors"])
    own = {} if is_empty else {"targets": sizes["targets"]}
    check_arrays(arrays, layout, own)
    if not is_empty and not (arrays["anchors"].min() >= 0 and arrays["anchors"].max() < sizes["support"]):
        raise ValueError(f"anchors should be numbers below {sizes['support']}.")
    if is_empty and arrays["anchor_coef"].size:
        raise ValueError("anchor_coef should be empty without anchors.")


def check_posterior(state: State, sizes: dict[str, int]) -> None:
    for name, kind in (("_posterior", RidgePosterior), ("_held_out", HeldOutErrors)):
        optional = kind.names(optional=True)
        layout = kind.layout(*kind.names(optional=False), *optional)
        _check_record(state, name, layout, sizes, optional, order="C or Fortran")  # only used by NumPy
    if state.get("_posterior"):
        check_bounds(state["_posterior"], "alpha", above=0.0)
    if state.get("_held_out"):
        check_bounds(state["_held_out"], "noise", above=0.0)
        check_bounds(state["_held_out"], "scores", least=0.0)
        if "variance_factor" in state["_held_out"]:  # files of older versions have none
            check_bounds(state["_held_out"], "variance_factor", above=0.0)
        if not sizes["validated"]:
            raise ValueError("scores should be of one row or more.")
    elif state["features_"] != "exact" and state["target_transform_"] != LINK:
        raise ValueError("_held_out should have leave-one-out or validation errors.")


def check_noise_model(state: State, sizes: dict[str, int]) -> None:
    """Refuse sizes of residuals that do not fit to the function; files of older versions have none."""
    noise_model = state.get("_spread", {})
    if type(noise_model) is dict and not noise_model:
        return
    _check_names(NoiseModel, noise_model, "_spread")
    own = {name: size for name, size in sizes.items() if name in ("inputs", "targets")}
    check_kernel(noise_model, own)
    layout = {"coef": (FLOATS, "targets", "support"), **NoiseModel.layout("intercept", "differ", "residuals")}
    check_arrays(noise_model, layout, own, order="C or Fortran")
    _check_anchors(noise_model, own)
    if not own["validated"]:
        raise ValueError("residuals should be of one row or more.")


def _check_linear_map(linear_map: np.ndarray, sizes: dict[str, int]) -> None:
    own = dict(sizes) if np.size(linear_map) else {}
    check_arrays({"rotation": linear_map}, {"rotation": (np.float64, "inputs", "rank")}, own)


def _check_local(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    """Raise ValueError for a local model with invalid trees or cells."""
    check_kernel(arrays, sizes)
    check_arrays(arrays, CellTrees.layout() | LocalFunction.layout("rows", "cell_alphas", "cell_intercepts"), sizes)
    check_starts(arrays, "starts", sizes["cells"], sizes["features"])
    check_bounds(arrays, "cell_alphas", above=0.0)
    children, roots = arrays["children"], arrays["roots"]
    if not (children > np.arange(sizes["splits"])[:, np.newaxis])[children >= 0].all():
        raise ValueError("a split should come before its children.")
    for numbers in (children, roots):
        if numbers.size and not (-sizes["cells"] <= numbers.min() and numbers.max() < sizes["splits"]):
            raise ValueError("children and roots should be splits or cells.")
    if not sizes["trees"]:
        raise ValueError("roots should be splits or cells, at least one.")
    for name, most in (("inputs", sizes["inputs"]), ("rows", sizes["support"])):
        if arrays[name].size and not (arrays[name].min() >= 0 and arrays[name].max() < most):
            raise ValueError(f"{name} should be numbers below {most}.")
    if any(name.startswith("level_") for name in arrays):  # files of older versions have none
        _check_levels(arrays, sizes)


def _check_levels(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    """Refuse effects of levels that do not fit to the inputs or to each other; empty arrays represent none."""
    layout = LevelColumns.layout() | LocalFunction.layout("level_weights")
    check_keys(arrays, (*layout, "level_starts"), arrays, "_local")
    is_empty = not np.size(arrays["level_inputs"])
    own = {} if is_empty else {name: sizes[name] for name in ("inputs", "targets")}
    check_arrays(arrays, layout, own)
    if is_empty:
        return
    check_starts(arrays, "level_starts", own["categories"], own["codes"])
    check_bounds(arrays, "level_variances", above=0.0)
    inputs, columns = arrays["level_inputs"], arrays["level_columns"]
    if not (inputs.min() >= 0 and inputs.max() < own["inputs"] and arrays["categorical"][inputs].all()):
        raise ValueError("level_inputs should be numbers of categorical inputs.")
    known = np.sort(columns[columns != NO_COLUMN])
    if not (own["codes"] and np.array_equal(known, np.arange(own["levels"]))):
        raise ValueError(f"level_columns should be {NO_COLUMN}, or each number below {own['levels']} once.")


def _check_features(state: State, sizes: dict[str, int]) -> int:
    """Check the arrays of a model of random features, add the features to `sizes`, and return the number of grids."""
    check_grids(state, sizes, fewest=0)
    check_arrays(state, {"_bin_keys": (np.uint64, "bins")}, sizes)
    check_starts(state, "_bin_starts", sizes["grids"], sizes["bins"])
    own = sizes if np.size(state["_frequencies"]) else {}
    check_arrays(state, {"_frequencies": (np.float64, "inputs", "frequencies")}, own)
    sizes["features"] = sizes["bins"] + 2 * own.get("frequencies", 0)
    return sizes["grids"]


SINGLES = "coef", "anchor_coef", "weights", "residuals", "scores"  # arrays that are float32 in a compact model
_DECISIONS = {"what": "U", "choice": "U", "error": "f", "seconds": "f"}
_HISTORY = {
    "held_out_error_": (np.float64, "two"),
    "learning_curve_": (np.float64, "batches", "two"),
    "length_scale_errors_": (np.float64, "steps"),
    "length_scale_gammas_": (np.float64, "steps", "any inputs"),
}
_OPTIONS = *SOLVER_OPTIONS, "n_posterior_samples"  # parameters up to format 5


def migrate(state: dict, file_format: int) -> None:
    """Update the state of a file of an older format."""
    for name in ("errors_", "gammas_"):
        if f"width_{name}" in state:
            state[f"length_scale_{name}"] = state.pop(f"width_{name}")
    _move_options(state)
    if "_exact" in state:
        state.setdefault("_fitted_with", np.array(["of an older version"]))  # it cannot start a warm start
        state.setdefault("_rotation", np.empty((0, 0)))
        state.setdefault("_local", {})
        state.setdefault("n_trees_", 0)
        medians = state["_columns"]["medians"]
        ends = {"lows": medians - np.inf, "highs": medians + np.inf}
        state["_columns"] = NO_RANKS | ends | state["_columns"]
    if "gamma_" in state and file_format < 5 and _is_radial(state):  # inverse lengths
        state["gamma_"] = state["gamma_"] ** 2
        if not isinstance(state["gamma"], str):
            state["gamma"] = np.square(state["gamma"])
    if "sharpness_" in state:
        calibration = Calibration.of_factor(state.pop("sharpness_"), n_calibrated(state))
        state |= {"calibration_coef_": calibration.coef, "calibration_intercept_": calibration.intercept}


def _move_options(state: dict) -> None:
    """Move parameters of older formats to `solver_params`, and drop "auto"."""
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


def check_regressor(state: State) -> None:
    sizes = _check_model(state)
    check_targets(state, sizes)
    check_posterior(state, sizes)
    check_noise_model(state, sizes)


def check_classifier(state: State) -> None:
    check_labels(state, _check_model(state))


def _check_model(state: State) -> dict[str, int]:
    """Check the attributes of regressors and classifiers; return lengths of axes by name."""
    sizes = {"columns": check_inputs(state), "two": 2}
    check_table(state["_columns"], sizes)
    check_scaler(state, sizes)
    check_function(state, sizes)
    check_arrays(state, {"feature_relevances_": (np.float64, "columns"), "gamma_": (np.float64, "inputs")}, sizes)
    check_bounds(state, "gamma_", "feature_relevances_", least=0.0)
    check_arrays(state, _HISTORY, dict(sizes), order="any", infinite=tuple(_HISTORY))
    check_numbers_of(state, kernel_=str, alpha_=float)
    if "status_" in state:  # an interrupted fit removes it
        check_numbers_of(state, status_=str)
    _check_words(state)
    _check_record(state, "_seen", {"hashes": (np.uint64, "seen")}, dict(sizes))
    _check_record(state, "_rises", {"of_inputs": (np.float64, "columns")}, dict(sizes))
    return sizes


def _check_record(
    state: State,
    name: str,
    layout: dict[str, tuple],
    sizes: dict[str, int],
    optional: Collection[str] = (),
    order: str = "C",
) -> None:
    """Refuse arrays of a record, which may be empty or missing, that do not fit to the sizes."""
    record = state.get(name, {})
    names = set(layout) if record else set[str]()
    check_keys(record, names.difference(optional), names.intersection(optional), name)
    check_arrays(record, {key: layout[key] for key in layout if key in record}, sizes, order=order)


def _check_words(state: State) -> None:
    decisions = state["decisions_"]
    fields = decisions.dtype.fields if is_plain(decisions) and decisions.ndim == 1 else None
    if {name: kind.kind for name, (kind, _) in (fields or {}).items()} != _DECISIONS:
        raise ValueError(f"decisions_ should be an array with the fields {list(_DECISIONS)}.")
    words = state["_fitted_with"]
    if not is_plain(words) or words.ndim != 1 or words.dtype.kind != "U" or not words.size:
        raise ValueError("_fitted_with should be an array of strings.")
