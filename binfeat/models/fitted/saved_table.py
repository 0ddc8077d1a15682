"""Checks of the table encoder of a kernel model: columns, categories, ranks and scaling."""

from typing import Any

import numpy as np

from binfeat._common.calendar import PARTS, is_time
from binfeat._common.saved_values import (
    check_arrays,
    check_bounds,
    check_keys,
    check_rising,
    check_starts,
    check_word,
)
from binfeat.models.table.strings import DATES, NUMBERS

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
_STARTS = "number_starts", "string_starts", "rank_starts"
_QUANTILES = {"columns": (np.int64, "mapped"), "knots": (np.float64, "knots"), "ranks": (np.float64, "knots")}
_ARCSINH = {"columns": (np.int64, "mapped"), "centers": (np.float64, "mapped"), "units": (np.float64, "mapped")}
_SCALERS = {"arcsinh": _ARCSINH, "quantile": _QUANTILES, "warped": _QUANTILES, "none": {}, "standard": {}, "ranks": {}}


def check_table(columns: Any, sizes: dict[str, int]) -> None:
    """Raise ValueError for an encoder with inconsistent arrays; add the number of encoded columns to `sizes`."""
    check_keys(columns, (*_COLUMNS, *_STARTS), (), "_columns")
    check_arrays(columns, _COLUMNS, sizes, infinite=("lows", "highs"))
    if np.isnan(columns["lows"]).any() or np.isnan(columns["highs"]).any():
        raise ValueError("lows and highs should hold numbers.")
    n_columns, source = sizes["columns"], columns["source"]
    check_starts(columns, "number_starts", n_columns, sizes["numbers"])
    check_starts(columns, "string_starts", n_columns, sizes["strings"])
    check_rising(columns["numbers"], columns["number_starts"], "numbers")
    if sizes["inputs"] < n_columns or not np.array_equal(source[:n_columns], np.arange(n_columns)):
        raise ValueError("source should name columns, all of them.")
    check_bounds(columns, "source", least=0, most=n_columns - 1)
    _check_times(columns)
    n_ranked = columns["rank_starts"].size - 1
    check_starts(columns, "rank_starts", n_ranked, sizes["rank_knots"])
    own = columns["categorical"][:n_columns]
    n_coded = np.count_nonzero((np.diff(columns["number_starts"]) > 0) & ~own)
    n_beside = sizes["parts"] + n_ranked + n_coded
    _check_knots("ranks", columns["rank_starts"], columns["rank_knots"], n_beside <= sizes["inputs"] - n_columns)
    wanted = np.zeros(sizes["inputs"] - n_columns, dtype=bool)
    wanted[len(wanted) - n_coded :] = True
    if not np.array_equal(columns["categorical"][n_columns:], wanted):
        raise ValueError("categorical should be true for codes among the columns that follow the columns of the table.")


def _check_times(columns: dict[str, np.ndarray]) -> None:
    times, parts = columns["times"].tolist(), columns["parts"].tolist()
    unknown = [own for own in times if own not in ("", NUMBERS, DATES) and not is_time(own)]
    if unknown:
        raise ValueError(f"times should have kinds of times, got {unknown[0]!r}.")
    if not set(parts) <= set(PARTS):
        raise ValueError(f"parts should be among {list(PARTS)}, got {parts}.")


def check_scaler(scaler: Any, scaling: str, sizes: dict[str, int]) -> None:
    """Refuse a scaler that does not fit to the encoded columns."""
    layout = _SCALERS[scaling]
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


def check_scaling(state: dict[str, Any]) -> str:
    """Return the name of the scaling of a model."""
    return check_word(state, "scaling_", _SCALERS)


def _check_knots(what: str, starts: np.ndarray, knots: np.ndarray, are_inputs: bool | np.bool_) -> None:
    if (np.diff(starts) < 2).any() or not are_inputs:
        raise ValueError(f"{what} should have two knots for each of some inputs.")
    check_rising(knots, starts, f"knots of {what}")
