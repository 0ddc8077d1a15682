"""Checks of a ridge machine that is loaded from a file."""

import numpy as np

from binfeat._common.persistence import FLOATS, check_arrays, check_starts

_KEPT = {"Y": (np.float64, "rows", "targets")}
_KEPT_SUMS = {
    "matrix": (np.float64, "features", "features"),
    "right": (np.float64, "features", "targets"),
    "means": (np.float64, "features"),
    "target_means": (np.float64, "targets"),
}
_INTEGERS = np.int32, np.int64
_KEPT_CSR = {"data": (FLOATS, "entries"), "indices": (_INTEGERS, "entries"), "indptr": (_INTEGERS, "starts")}


def check_ridge(state: dict) -> None:
    """Refuse a ridge machine whose rows of earlier calls of `partial_fit` do not fit together."""
    kept = state.get("_kept")
    if kept is None:
        return
    sizes = {"features": state["n_features_in_"], "targets": np.atleast_2d(state["coef_"]).shape[0]}
    if "matrix" in kept:
        check_arrays(kept, _KEPT_SUMS, sizes)
        return
    check_arrays(kept, _KEPT, sizes)
    check_arrays(kept, {"weights": (np.float64, "rows", "one")} if "weights" in kept else {}, sizes | {"one": 1})
    if "codes" in kept:
        check_arrays(kept, {"codes": ((np.uint16, np.uint32), "grids", "rows")}, sizes)
        check_starts(kept, "offsets", sizes["grids"], sizes["features"])
    elif "indptr" in kept:
        check_arrays(kept, _KEPT_CSR, sizes | {"starts": sizes["rows"] + 1})
    else:
        check_arrays(kept, {"Z": (FLOATS, "rows", "features")}, sizes)
