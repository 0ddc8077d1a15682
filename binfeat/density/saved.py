"""Checks of an `OutlierDetector` that is loaded from a file."""

import numpy as np

from binfeat._common.saved_values import INTEGERS, State, check_arrays, check_bounds, check_inputs, check_starts
from binfeat._common.sparse_tables import check_sparse
from binfeat._rows.row_sample import RowSample
from binfeat.features.binning.saved import check_grids

_COUNTS = {
    "_bin_keys": (np.uint64, "bins"),
    "_bin_counts": (np.int64, "bins"),
    "_row_hashes": (np.uint64, "rows"),
    "_row_orders": (np.uint64, "rows"),
    "_sizes": (np.int64, "counted grids"),
}
_SPARSE = {"data": (np.float64, "entries"), "indices": (INTEGERS, "entries"), "indptr": (INTEGERS, "starts")}
_MOST = 2**53  # rows


def check_detector(state: State) -> None:
    if "_bin_keys" not in state:
        return
    sizes = {"inputs": check_inputs(state)}
    check_grids(state, sizes, fewest=2)
    n_grids = sizes["counted grids"] = sizes["grids"] - 1
    check_arrays(state, _COUNTS, sizes)
    check_starts(state, "_bin_starts", n_grids, sizes["bins"])
    check_bounds(state, "_bin_counts", "_sizes", least=0, most=_MOST)
    sample = state["_sample_arrays"]
    check_arrays(sample, {"orders": (np.uint64, "sampled")}, sizes)
    layout = {"rows": (np.float64, "sampled", "inputs")} if "rows" in sample else _SPARSE
    check_arrays(sample, layout, sizes | {"starts": sizes["sampled"] + 1}, infinite=("rows", "data"))
    check_sparse(RowSample.from_arrays(sample, sizes["inputs"]).rows, "_sample_arrays")
    for name, most in (("_n_levels", n_grids), ("_width", 2**64)):
        if not (isinstance(state[name], int) and 1 <= state[name] <= most):
            raise ValueError(f"{name} should be an integer from 1 to {most}, got {state[name]!r}.")
