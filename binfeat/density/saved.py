"""Checks of an `OutlierDetector` that is loaded from a file."""

import numpy as np

from binfeat._common.saved_values import check_arrays, check_starts
from binfeat.density.row_sample import RowSample
from binfeat.features.binning.saved import GRIDS

_BINS = {"_bin_keys": (np.uint64, "bins"), "_bin_counts": (np.int64, "bins")}
_SAMPLE = {"keys": (np.uint64, "sampled"), "numbers": (np.int64, "sampled")}


def check_detector(state):
    """Refuse an `OutlierDetector` whose arrays do not fit together."""
    if "_bin_keys" not in state:
        return
    sizes = {"inputs": state["n_features_in_"]}
    check_arrays(state, GRIDS | _BINS, sizes)
    check_starts(state, "_bin_starts", sizes["grids"], sizes["bins"])
    if not (state["_bin_counts"] > 0).all():
        raise ValueError("_bin_counts should be positive.")
    sample = state["_sample_arrays"]
    check_arrays(sample, _SAMPLE, sizes)
    RowSample.from_arrays(sample, sizes["inputs"])  # SciPy checks the arrays of a sparse sample
    if "rows" in sample:
        check_arrays(sample, {"rows": (np.float64, "sampled", "inputs")}, sizes, infinite=("rows",))
    if not 1 <= state["_n_levels"] < sizes["grids"]:
        raise ValueError(f"_n_levels should be at least 1 and below {sizes['grids']}.")
