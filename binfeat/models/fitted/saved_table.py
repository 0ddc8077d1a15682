"""Checks of the table encoder and the targets of a kernel model that is loaded from a file."""

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.calendar import PARTS, is_time
from binfeat._common.saved_values import (
    LARGEST,
    State,
    check_arrays,
    check_bounds,
    check_classes,
    check_increasing,
    check_keys,
    check_numbers_of,
    check_starts,
    check_word,
)
from binfeat.models.table.findings import DATES, NUMBERS
from binfeat.models.table.targets import LINK, TRIED, TargetTransform

_COLUMNS = {
    "categorical": (np.bool_, "inputs"),
    "source": (np.int64, "inputs"),
    "medians": (np.float64, "columns"),
    "lows": (np.float64, "columns"),
    "highs": (np.float64, "columns"),
    "numbers": (np.float64, "numbers"),
    "strings": (str, "strings"),
    "missing": (np.bool_, "columns"),
    "times": (str, "columns"),
    "parts": (str, "parts"),
    "rank_knots": (np.float64, "rank_knots"),
    "rank_values": (np.float64, "rank_knots"),
}
_QUANTILES = {"columns": (np.int64, "mapped"), "knots": (np.float64, "knots"), "ranks": (np.float64, "knots")}
_SCALERS = {
    "arcsinh": {"columns": (np.int64, "mapped"), "centers": (np.float64, "mapped"), "units": (np.float64, "mapped")},
    "quantile": _QUANTILES,
    "warped": _QUANTILES,
    **{name: {} for name in ("none", "standard", "ranks")},
}


def check_table(columns: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    """Raise ValueError for an encoder with inconsistent arrays; add the number of encoded columns to `sizes`."""
    check_keys(columns, (*_COLUMNS, "number_starts", "string_starts", "rank_starts"), (), "_columns")
    check_arrays(columns, _COLUMNS, sizes, infinite=("lows", "highs"))
    if np.isnan(columns["lows"]).any() or np.isnan(columns["highs"]).any():
        raise ValueError("lows and highs should hold numbers.")
    n_columns, source = sizes["columns"], columns["source"]
    check_starts(columns, "number_starts", n_columns, sizes["numbers"])
    check_starts(columns, "string_starts", n_columns, sizes["strings"])
    check_increasing(columns["numbers"], columns["number_starts"], "numbers")
    if sizes["inputs"] < n_columns or not np.array_equal(source[:n_columns], np.arange(n_columns)):
        raise ValueError("source should name columns, all of them.")
    check_bounds(columns, "source", least=0, most=n_columns - 1)
    _check_times(columns)
    n_ranked = columns["rank_starts"].size - 1
    check_starts(columns, "rank_starts", n_ranked, sizes["rank_knots"])
    are_codes = columns["categorical"][n_columns:]
    n_coded = np.count_nonzero(are_codes)
    n_beside = sizes["parts"] + n_ranked + n_coded
    _check_knots("ranks", columns["rank_starts"], columns["rank_knots"], n_beside <= are_codes.size)
    coded = source[source.size - n_coded :]
    if not are_codes[are_codes.size - n_coded :].all():
        raise ValueError("categorical should be true for codes among the columns that follow the columns of the table.")
    if (np.diff(coded) <= 0).any() or columns["categorical"][coded].any():
        raise ValueError("source should name numeric columns for codes, in order.")


def _check_times(columns: dict[str, np.ndarray]) -> None:
    times, parts = columns["times"].tolist(), columns["parts"].tolist()
    unknown = [own for own in times if own not in ("", NUMBERS, DATES) and not is_time(own)]
    if unknown:
        raise ValueError(f"times should have kinds of times, got {unknown[0]!r}.")
    if not set(parts) <= set(PARTS):
        raise ValueError(f"parts should be among {list(PARTS)}, got {parts}.")


def check_scaler(state: State, sizes: dict[str, int]) -> None:
    scaler, layout = state["_scaler"], _SCALERS[check_word(state, "scaling_", _SCALERS)]
    check_keys(scaler, (*layout, *(["starts"] if layout is _QUANTILES else [])), (), "_scaler")
    check_arrays(scaler, layout, sizes)
    if not layout:
        return
    are_inputs = bool(np.isin(scaler["columns"], range(sizes["inputs"])).all())
    if np.unique(scaler["columns"]).size != scaler["columns"].size:
        raise ValueError("the scaler should have each column once.")
    if layout is _QUANTILES:
        check_starts(scaler, "starts", sizes["mapped"], sizes["knots"])
        _check_knots("the scaler", scaler["starts"], scaler["knots"], are_inputs)
    elif not are_inputs or not (scaler["units"] > 0).all():
        raise ValueError("the scaler should have positive units for some inputs.")


def _check_knots(what: str, starts: np.ndarray, knots: np.ndarray, are_inputs: bool | np.bool_) -> None:
    if (np.diff(starts) < 2).any() or not are_inputs:
        raise ValueError(f"{what} should have two knots for each of some inputs.")
    check_increasing(knots, starts, f"knots of {what}")


_TARGETS = {
    "_target_mean": (np.float64, "targets"),
    "_target_std": (np.float64, "targets"),
    "_target_shifts": (np.float64, "shifts", "targets"),
}
_TRANSFORMS = {
    **{name: {} for name in (*TRIED, LINK)},
    "arcsinh": {"center": (np.float64, "targets"), "unit": (np.float64, "targets")},
}
_MOST_CHOSEN = 7  # degrees of freedom that the choices of a fit count as
_CALIBRATION = {
    "calibration_coef_": (np.float64, "two", "classes", "classes"),
    "calibration_intercept_": (np.float64, "classes"),
}


def check_targets(state: State, sizes: dict[str, int]) -> None:
    check_arrays(state, _TARGETS, sizes)
    check_bounds(state, "_target_std", above=0.0)
    if not sizes["shifts"]:
        raise ValueError("_target_shifts should have at least one row.")
    if "_target_limits" in state:
        limits = state["_target_limits"]
        check_arrays(state, {"_target_limits": (np.float64, "two", "targets")}, sizes, infinite=("_target_limits",))
        if not (limits[0] <= limits[1]).all() or (limits[0] == np.inf).any() or (limits[1] == -np.inf).any():
            raise ValueError("_target_limits should increase.")
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


def _check_transformer(transformer: BaseEstimator, mean: np.ndarray) -> None:
    """Refuse a transformer of targets that transforms the mean back to numbers that are not finite, or immense."""
    try:
        with np.errstate(all="ignore"):
            targets = TargetTransform("given", transformer=transformer).inverse(mean[np.newaxis])
    except Exception as error:  # of any transformer
        raise ValueError(f"target_transformer_ cannot transform targets back: {error}") from error
    if not (np.abs(targets) <= LARGEST).all():
        raise ValueError(
            f"target_transformer_ should transform the mean back to numbers of at most {LARGEST:g}, got {targets[0]}."
        )


def check_labels(state: State, sizes: dict[str, int]) -> None:
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


def n_calibrated(state: State) -> int:
    """Return the number of classes of a calibration: the classes of the labels, or two for present and absent."""
    return 2 if state["multilabel_"] else len(state["classes_"])
