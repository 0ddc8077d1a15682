"""Checks of a `RandomBinning` that is loaded from a file."""

import numpy as np

from binfeat._common.persistence import check_arrays, check_starts

GRIDS = {
    "_scale": (np.float64, "grids", "inputs"),
    "_shift": (np.float64, "grids", "inputs"),
    "_keys": (np.uint64, "grids", "inputs"),
    "_nan_keys": (np.uint64, "grids", "inputs"),
}
_BINS = {
    "_bin_keys": (np.uint64, "bins"),
    "bin_counts_": (np.int64, "bins"),
    "_rare_keys": (np.uint64, "rare bins"),
    "_rare_counts": (np.int64, "rare bins"),
}


def check_binning(state):
    """Refuse a `RandomBinning` whose arrays do not fit together."""
    if "_scale" not in state:
        return
    sizes = {"inputs": state["n_features_in_"]}
    check_arrays(state, GRIDS, sizes)
    if "bin_offsets_" not in state:  # it is sent to a worker during a fit
        return
    if not state["_hashed"]:
        check_arrays(state, _BINS, sizes)
        check_starts(state, "_rare_starts", sizes["grids"], sizes["rare bins"])
    last = int(state["bin_offsets_"][-1]) if state["_hashed"] else sizes["bins"]
    check_starts(state, "bin_offsets_", sizes["grids"], last)
    if state["_hashed"] and not 1 < state["bin_offsets_"][1] < 2**32:
        raise ValueError("bin_offsets_ should give each grid at least 2 columns.")
