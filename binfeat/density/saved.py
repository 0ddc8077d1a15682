"""Checks of an `OutlierDetector` that is loaded from a file."""

import numpy as np

from binfeat._common.saved_values import (
    FLOATS,
    INTEGERS,
    State,
    check_arrays,
    check_bounds,
    check_inputs,
    check_numbers_of,
    check_starts,
)
from binfeat._common.sparse_tables import check_sparse
from binfeat._common.validation import check_integer
from binfeat._rows.row_sample import RowSample
from binfeat.features.binning.saved import check_grids, check_scales

_COUNTS = {
    "_bin_keys": (np.uint64, "bins"),
    "_bin_counts": (np.int64, "bins"),
    "_row_hashes": (np.uint64, "rows"),
    "_row_orders": (np.uint64, "rows"),
    "_sizes": (np.int64, "counted grids"),
}
_SPARSE = {"data": (np.float64, "entries"), "indices": (INTEGERS, "entries"), "indptr": (INTEGERS, "starts")}


def check_detector(state: State) -> None:
    sizes = {"inputs": check_inputs(state)}
    check_grids(state, sizes, fewest=2, infinite=("_scale",))  # of the grid that distinguishes rows
    check_scales(state, sizes)
    check_numbers_of(state, n_rows_=int, _n_seen=int, _takes_arrays=bool)
    n_grids = sizes["counted grids"] = sizes["grids"] - 1
    check_arrays(state, _COUNTS, sizes)
    check_starts(state, "_bin_starts", n_grids, sizes["bins"])
    check_bounds(state, "_bin_counts", "_sizes", least=0, most=state["n_rows_"])
    sample = state["_sample_arrays"]
    check_arrays(sample, {"orders": (np.uint64, "sampled")}, sizes)
    layout = {"rows": (np.float64, "sampled", "inputs")} if "rows" in sample else _SPARSE
    check_arrays(sample, layout, sizes | {"starts": sizes["sampled"] + 1}, infinite=("rows", "data"))
    check_sparse(RowSample.from_arrays(sample, sizes["inputs"]).rows, "_sample_arrays")
    check_arrays({"offset_": np.asarray(state["offset_"])}, {"offset_": ((*FLOATS, *INTEGERS),)}, sizes)
    for name, least, most in (("_n_levels", 1, n_grids), ("_width", 1, 2**64), ("_seed", 0, np.inf)):
        check_integer(state[name], name, least, most)
