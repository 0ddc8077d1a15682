"""Checks of an `OutlierDetector` that is loaded from a file."""

import numpy as np

from binfeat._binning.saved import GRIDS
from binfeat._common.persistence import check_arrays, check_starts

_BINS = {"_bin_keys": (np.uint64, "bins"), "_bin_counts": (np.int64, "bins")}
_SAMPLE = {"_sample_keys": (np.uint64, "sampled"), "_sample_numbers": (np.int64, "sampled")}


def check_detector(state):
    """Refuse an `OutlierDetector` whose arrays do not fit together."""
    if "_bin_keys" not in state:
        return
    sizes = {"inputs": state["n_features_in_"]}
    for layout in (GRIDS, _BINS, _SAMPLE):
        check_arrays(state, layout, sizes)
    check_starts(state, "_bin_starts", sizes["grids"], sizes["bins"])
    if not (state["_bin_counts"] > 0).all():
        raise ValueError("_bin_counts should be positive.")
    if state["_sample_rows"].shape != (sizes["sampled"], sizes["inputs"]):
        raise ValueError(f"_sample_rows should have {sizes['sampled']} rows of {sizes['inputs']} inputs.")
    if not 1 <= state["_n_levels"] < sizes["grids"]:
        raise ValueError(f"_n_levels should be at least 1 and below {sizes['grids']}.")
