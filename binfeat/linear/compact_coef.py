"""Saved coefficients without unused columns, which have coefficients 0."""

from typing import Any

import numpy as np

from binfeat._common.saved_values import FLOATS, check_arrays

_WORTH = 0.5  # compact coefficients must need at most this share of the bytes


def compact(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a ridge model with used columns only, if it needs far fewer bytes."""
    coef = state.get("coef_")
    if not isinstance(coef, np.ndarray):
        return state
    used = ((coef != 0) | np.signbit(coef)).reshape(-1, coef.shape[-1]).any(axis=0)
    columns = np.flatnonzero(used)
    if columns.nbytes + columns.size * (coef.nbytes // max(1, used.size)) > _WORTH * coef.nbytes:
        return state
    return state | {"coef_": np.ascontiguousarray(coef[..., columns]), "_coef_columns": columns}


def expand(state: dict[str, Any]) -> None:
    """Restore all columns of a compact state in place; errors if its arrays do not fit together."""
    columns = state.pop("_coef_columns", None)
    if columns is None:
        return
    kept, n_features = state["coef_"], state["n_features_in_"]
    check_arrays({"columns": columns}, {"columns": (np.int64, "columns")}, {})
    axes = ("columns",) if np.ndim(kept) == 1 else ("targets", "columns")
    check_arrays({"coef_": kept}, {"coef_": (FLOATS, *axes)}, {"columns": columns.size})
    if columns.size and (columns[0] < 0 or columns[-1] >= n_features or (np.diff(columns) <= 0).any()):
        raise ValueError(f"the columns of coef_ should increase from 0 to {n_features - 1} at most.")
    coef = np.zeros((*kept.shape[:-1], n_features), kept.dtype)
    coef[..., columns] = kept
    state["coef_"] = coef
